"""``steward doctor`` and ``steward webhooks test``: diagnosis of an installation, and of the receivers of messages."""

from __future__ import annotations

import json

import typer

from app.cli.nouns import ROWS
from app.cli.options import REFUSED, AsJson, DataDir


def register(cli: typer.Typer) -> None:
    """Add the command ``doctor`` and the group ``webhooks`` to the ``steward`` command."""
    cli.command()(doctor)
    webhooks = typer.Typer(help="Inspect and try out webhooks.", no_args_is_help=True)
    cli.add_typer(webhooks, name="webhooks")
    webhooks.callback()(_webhooks)
    webhooks.command("list")(list_messages)
    webhooks.command("test")(send_test)


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


def _webhooks() -> None:
    """Messages about runs in danger and failed jobs; STEWARD_WEBHOOK_URLS names the receivers."""


def list_messages(data: DataDir = None, as_json: AsJson = False) -> None:
    """List the newest messages of all tenants.

    At most 50, those of the last days; `problem` says why the last attempt failed.

    Exit status: 0 done, 2 database unavailable.
    """
    from sqlalchemy import select

    from app import startup
    from app.cli.operations import Column
    from app.cli.remote.output import console, list_parts, print_parts
    from app.database.engine import Database
    from app.database.tables import WebhookDelivery as Row

    settings = startup.load_settings(data_dir=data)
    startup.check_database(settings, creates=False)
    database, names = Database(settings.database_url, settings), ("event", "tenant", "subject", "attempts", "problem")
    columns = [getattr(Row, name) for name in (*names, "created_at", "due_at", "delivered_at")]
    with database.reading() as session:
        rows = session.execute(select(*columns).order_by(Row.created_at.desc()).limit(ROWS)).mappings()
        found = [json.loads(json.dumps(dict(row), default=str)) for row in rows]
    database.dispose()
    if as_json:
        for row in found:
            typer.echo(json.dumps(row))
        return
    printed, heads = console(), [Column(name, name) for name in (*names, "delivered_at")]
    print_parts(printed, list_parts(heads, found, "table", printed.width))


def send_test(data: DataDir = None) -> None:
    """Send a signed test message to each receiver.

    Exit status: 0 all received it, 1 one did not, 2 no receiver, or invalid settings.
    """
    import os
    import subprocess

    from app import startup
    from app.processes import child_command

    settings = startup.load_settings(data_dir=data)
    folder = {"STEWARD_DATA_DIR": str(settings.data_dir)}
    done = subprocess.run(child_command("workers.webhooks", "test"), check=False, env={**os.environ, **folder})
    raise typer.Exit(done.returncode)
