"""``steward doctor`` and ``steward webhooks test``: diagnosis of an installation, and of the receivers of messages."""

from __future__ import annotations

import json
from datetime import datetime

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


def doctor(data: DataDir = None, as_json: AsJson = False) -> None:
    """Diagnose problems and suggest fixes.

    Checks settings, disk, database, broker, identity provider, workers and API.

    Creates nothing and shows no secrets; the service need not be running.

    Exit status: 0 no check failed (warnings are possible), 1 a check failed, 2 invalid settings.
    """
    from app import startup
    from app.cli.server import doctor as report
    from app.cli.server.doctor import examine

    findings = examine(startup.load_settings(data_dir=data))
    if as_json:
        typer.echo(report.document(findings))
    else:
        for line in report.lines(findings):
            typer.echo(line)
    if report.worst(findings) == "fail":
        raise typer.Exit(REFUSED)


def _webhooks() -> None:
    """Messages about runs in danger and failed jobs; STEWARD_WEBHOOK_URLS names the receivers."""


def list_messages(data: DataDir = None, as_json: AsJson = False) -> None:
    """List the newest messages of all tenants.

    At most 50, those of the last days. `state` is delivered, due or dropped; `problem` says why the last attempt
    failed. `receiver` is the site of a URL of STEWARD_WEBHOOK_URLS, or a digest of one that is not named there.

    Exit status: 0 done, 2 database unavailable.
    """
    from sqlalchemy import case, select
    from sqlalchemy.exc import SQLAlchemyError

    from app import startup
    from app.cli.operations import Column
    from app.cli.remote.output import console, list_parts, print_parts
    from app.database.engine import Database
    from app.database.tables import WebhookDelivery as Row
    from app.settings import receiver_of, site_of

    settings = startup.load_settings(data_dir=data)
    startup.check_database(settings, creates=False)
    sites = {receiver_of(url): site_of(url) for url in settings.webhook_urls}
    state = case((Row.delivered_at.is_not(None), "delivered"), (Row.due_at.is_not(None), "due"), else_="dropped")
    of_row = (Row.event, Row.tenant, Row.subject, Row.receiver, state.label("state"), Row.attempts, Row.problem)
    query = select(*of_row, Row.created_at, Row.due_at, Row.delivered_at).order_by(Row.created_at.desc()).limit(ROWS)
    database = Database(settings.database_url, settings)
    try:
        with database.reading() as session:
            rows = session.execute(query).mappings().all()
    except SQLAlchemyError as error:
        problem = startup.first_line(getattr(error, "orig", None) or error)
        raise startup.StartupError(f"messages can't be read: {problem}; run `steward db upgrade`") from error
    finally:
        database.dispose()
    results = [dict(row) | {"receiver": sites.get(row["receiver"], row["receiver"])} for row in rows]
    shown = json.loads(json.dumps(results, default=datetime.isoformat))
    if as_json:
        for one in shown:
            typer.echo(json.dumps(one))
        return
    heads = ("event", "tenant", "subject", "receiver", "state", "problem")
    printed = console()
    print_parts(printed, list_parts([Column(name, name) for name in heads], shown, "table", printed.width))


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
