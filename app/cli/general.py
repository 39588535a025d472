"""Options before the command, and commands about the command line itself: version, explanations."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from app.cli.options import SERVICE, STATUSES, AsJson, Url, address, without_userinfo

PROGRAM = "steward"


def register(cli: typer.Typer) -> None:
    """Add the options before the command, and ``version`` and ``explain``."""
    cli.callback(epilog=STATUSES)(before)
    cli.command(epilog=STATUSES)(version)
    cli.command()(explain)


def _print_version(wanted: bool) -> None:  # a callback of an option
    if wanted:
        typer.echo(f"{PROGRAM} {own_version()}")
        raise typer.Exit


def before(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(callback=lambda url: url and address(url), help="Address of the service. [env: STEWARD_URL]"),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Key for the service; other users of this machine can see it. [env: STEWARD_API_KEY]"),
    ] = None,
    version: Annotated[  # noqa: ARG001 # its callback prints it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print this program's version.")
    ] = False,
) -> None:
    """Steward: allocation as a service."""
    for name, text in (("STEWARD_URL", url), ("STEWARD_API_KEY", token)):
        if text is not None:
            before = os.environ.get(name)
            os.environ[name] = text
            context.call_on_close(lambda name=name, before=before: _restore(name, before))


def _restore(name: str, before: str | None) -> None:
    if before is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = before


def own_version() -> str:
    """This program's version; ``unknown`` where it is not installed as a package."""
    from importlib.metadata import PackageNotFoundError, version

    from app.installed import DISTRIBUTION

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


def version(as_json: AsJson = False, url: Url = SERVICE) -> None:
    """Print the versions of this program and of the service."""
    import json

    from app.cli.remote.service import Service, UnreachableError

    with Service(url) as service:
        document = service.call("GET", "/openapi.json")
    try:
        result = {"client": own_version(), "server": str(document["info"]["version"])}
    except (LookupError, TypeError) as error:
        raise UnreachableError(f"{without_userinfo(url)} is not a Steward service") from error
    lines = f"client {result['client']}\nserver {result['server']} at {without_userinfo(url)}"
    typer.echo(json.dumps(result) if as_json else lines)


def explain(
    field: Annotated[str, typer.Argument(help="A noun, or a field of it: workload, run.outcome, workload.targets.")],
) -> None:
    """Explain the fields of a noun.

    By the API's schema: steward explain workload.targets.

    Exit status: 0 done, 2 there is no such noun or field (those that there are are named).
    """
    from app.cli.explain import lines

    typer.echo("\n".join(lines(field)))
