"""``steward doctor``: what is wrong, and what helps."""

from __future__ import annotations

import typer

from app.cli.options import REFUSED, AsJson, DataDir


def register(cli: typer.Typer) -> None:
    """Add the command to the ``steward`` command."""
    cli.command()(doctor)


def doctor(
    data: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Look for what is wrong, and say what helps.

    It looks at settings, disk, database, broker, workers and API.

    It creates nothing and shows no secret; whether the service runs does not matter.

    Exit status: 0 nothing has failed (there may be warnings), 1 something has, 2 the settings can't be read.
    """
    from app import startup
    from app.cli.server.doctor import report
    from app.cli.server.doctor.examine import examine

    found = examine(startup.load_settings(data_dir=data))
    if as_json:
        typer.echo(report.document(found))
    else:
        for line in report.lines(found):
            typer.echo(line)
    if report.worst(found) == "fail":
        raise typer.Exit(REFUSED)
