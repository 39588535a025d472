"""``steward doctor``: diagnosis of an installation."""

from __future__ import annotations

import typer

from app.cli.options import REFUSED, AsJson, DataDir


def register(cli: typer.Typer) -> None:
    """Add the command ``doctor`` to the ``steward`` command."""
    cli.command()(doctor)


def doctor(
    data: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Diagnose problems and suggest fixes.

    Checks settings, disk, database, broker, identity provider, workers and API.

    Creates nothing and shows no secrets; the service need not be running.

    Exit status: 0 no check failed (warnings are possible), 1 a check failed, 2 invalid settings.
    """
    from app import startup
    from app.cli.server import doctor as report
    from app.cli.server.doctor import examine

    found = examine(startup.load_settings(data_dir=data))
    if as_json:
        typer.echo(report.document(found))
    else:
        for line in report.lines(found):
            typer.echo(line)
    if report.worst(found) == "fail":
        raise typer.Exit(REFUSED)
