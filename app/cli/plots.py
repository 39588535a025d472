"""Plots that the command line writes: what a file may be called, and the process that draws it.

What draws is a child: the service never imports it.
"""

import sys
from pathlib import Path
from typing import Any

import typer

SUFFIXES = (".html", ".svg", ".png")


def checked(file: Path | None) -> Path | None:
    """A file that can be drawn to, before anything is done for it.

    Raises:
        typer.BadParameter: its suffix is none of ``SUFFIXES``.
    """
    if file is not None and file.suffix.lower() not in SUFFIXES:
        raise typer.BadParameter(f"{file.name}: a plot is one of {', '.join(SUFFIXES)}")
    return file


def draw_agent(agent: dict[str, Any], file: Path) -> int:
    """Draw the report of an agent, as the API answers with it; the exit status, with complaints on standard error."""
    import json
    import subprocess

    command = [sys.executable, "-m", "workers.evaluation.report.agent", "--", str(file)]
    return subprocess.run(command, input=json.dumps(agent).encode(), check=False).returncode
