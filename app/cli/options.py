"""Options and exit statuses that several commands share."""

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from app import HOST, PORT, installed

DONE, REFUSED, MISUSED, UNREACHABLE, UNMET, ABSENT, FORBIDDEN, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130
"""Exit statuses; UNMET: a required level isn't reached, ABSENT: 404, FORBIDDEN: 401 and 403."""
STATUSES = (
    "Exit status: 0 done, 1 refused or failed, 2 usage error or can't start, 3 service unreachable, 4 requirement "
    "not met, 5 not found, 6 not authorized, 130 interrupted."
)
SERVICE = f"http://{HOST}:{PORT}"
LEVELS = ("L0", "L1", "L2", "L3", "L4")
SUFFIXES = (".html", ".svg", ".png")


def drawable(file: Path | None) -> Path | None:
    """Callback of a plot option: checks early that the file can be drawn, and makes its folder; None for None.

    Raises:
        typer.BadParameter: its suffix is none of ``SUFFIXES``, its folder can't be made, or no drawing package is
            installed.
    """
    if file is None:
        return None
    if file.suffix.lower() not in SUFFIXES:
        raise typer.BadParameter(f"{file.name}: a plot is one of {', '.join(SUFFIXES)}")
    if "vl-convert-python" in installed.missing("worker"):
        raise typer.BadParameter(f"plots need more packages: {installed.command('worker')}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from error
    return file


Plot = Annotated[
    Path | None, typer.Option(callback=drawable, help="File for a plot of the report: .html, .svg or .png.")
]


def without_userinfo(url: str) -> str:
    """A URL without user and password, as messages have it."""
    return re.sub(r"^([\w+.-]+://)?.*@", r"\1", url, flags=re.DOTALL)


def visible(text: str) -> str:
    """A text on one line, with U+FFFD for each control character, which a terminal would obey."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "\ufffd", " ".join(text.split()))


def address(url: str) -> str:
    """Callback of the option for the service's address; BadParameter if it doesn't begin with http:// or https://."""
    if not url.startswith(("http://", "https://")):
        raise typer.BadParameter(
            f"{without_userinfo(url)!r} is not the address of a service, such as http://127.0.0.1:8080"
        )
    return url


Url = Annotated[str, typer.Option(envvar="STEWARD_URL", callback=address, help="Address of the service.")]
Margin = Annotated[
    float | None,
    typer.Option(
        "--equivalence-margin",
        min=0,
        max=1,
        help="Margin of practical equivalence, as a share of the best heuristic's return. [default: 0.01]",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only, one document per line.")]
Format = Literal["table", "wide", "json", "yaml", "name", "csv"]
Output = Annotated[
    Format | None, typer.Option("--output", "-o", help="Format; wide: all columns, name: full ids or names alone.")
]


def require_one_format(output: str | None, *, as_json: bool) -> None:
    """Raise typer.BadParameter if both ``--output`` and ``--json`` are given."""
    if as_json and output:
        raise typer.BadParameter(f"--json and --output {output} exclude one another")


NoHeaders = Annotated[bool, typer.Option("--no-headers", help="Leave out the heads of columns.")]
DataDir = Annotated[Path | None, typer.Option("--data", help="Folder for all data of the embedded mode.")]
