"""``steward key`` and ``steward audit``: commands that use the database directly, so that they can create the first
key.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.nouns import ROWS
from app.cli.options import ABSENT, AsJson, DataDir

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from app.database.engine import Database
    from app.keys.service import KeyRead

TenantName = Annotated[str, typer.Option("--tenant", help="Owner of the key: lower-case letters, digits, . _ -")]

LISTED = "`steward key list` lists them"


def register(cli: typer.Typer) -> None:
    """Add the group ``key`` and the command ``audit`` to the ``steward`` command."""
    key = typer.Typer(help="Manage API keys.", no_args_is_help=True)
    cli.add_typer(key, name="key")
    key.command()(create)
    key.command("list")(list_keys)
    key.command()(show)
    key.command()(delete)
    cli.command()(audit)


def _moment(text: str | None) -> datetime | None:
    """A future time given as `90d`, `12h` or RFC 3339 (UTC by default); None for None.

    Raises:
        typer.BadParameter: the text is malformed, or the time has passed.
    """
    from datetime import UTC, datetime, timedelta

    if text is None:
        return None
    try:
        if text[-1:] in ("d", "h") and text[:-1].isdecimal():
            moment = datetime.now(UTC) + timedelta(**{{"d": "days", "h": "hours"}[text[-1]]: int(text[:-1])})
        else:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"{text!r}: give 90d, 12h, or a time like 2027-01-31T00:00:00Z") from error
    if moment <= datetime.now(UTC):
        raise typer.BadParameter(f"{text!r} has passed")
    return moment


@contextmanager
def _database(data: DataDir, *, creates: bool = False) -> Iterator[Database]:
    """Context manager: the database, migrated to this version; ``creates``: a missing embedded one is created. Raises
    StartupError if it is unavailable."""
    from app import startup
    from app.cli.server.data import migrate
    from app.database.engine import Database

    settings = startup.load_settings(data_dir=data)
    if creates:
        startup.check_folder(settings.data_dir)
    startup.check_database(settings, creates=creates)
    migrate(settings)
    database = Database(settings.database_url, settings)
    try:
        yield database
    finally:
        database.dispose()


def create(
    tenant: TenantName = "default",
    scopes: Annotated[
        str, typer.Option(help="Comma-separated: read, report, train, admin (includes all).")
    ] = "read,report",
    name: Annotated[str, typer.Option(help="Purpose of the key.")] = "",
    expires: Annotated[
        str | None, typer.Option(help="Expiry: 90d, 12h, or a time like 2027-01-31T00:00:00Z. [default: never]")
    ] = None,
    data: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Create a key; it is shown only once. Once a key exists, every caller needs one.

    Exit status: 0 done, 2 usage error or database unavailable.
    """
    import re

    from pydantic import ValidationError

    from app.http.caller import TENANT
    from app.keys import service
    from app.keys.service import KeyRequest

    if re.fullmatch(TENANT, tenant) is None:
        raise typer.BadParameter(f"{tenant!r}: 1 to 63 of a-z, 0-9, . _ -, and a letter or digit first")
    fields = {"name": name, "scopes": [part.strip() for part in scopes.split(",")], "expires_at": _moment(expires)}
    try:
        request = KeyRequest.model_validate(fields)
    except ValidationError as error:
        issue = error.errors()[0]
        raise typer.BadParameter(f"--{issue['loc'][0]}: {issue['msg']}") from error
    with _database(data, creates=True) as database:
        result = service.create(database, tenant, request, "command")
    typer.echo(f"key {result.id} of tenant {tenant}: {', '.join(result.scopes)}; it is not shown again", err=True)
    typer.echo(result.model_dump_json() if as_json else result.key)


def list_keys(data: DataDir = None, as_json: AsJson = False) -> None:
    """List the keys of all tenants, without their secrets."""
    from app.keys import service

    with _database(data) as database:
        result = service.every(database)
    if as_json:
        for key in result:
            typer.echo(key.model_dump_json())
        return
    from app.cli.operations import Column
    from app.cli.remote.output import console, list_parts

    columns = [Column(name, name) for name in ("id", "tenant", "scopes", "state", "name")]
    rows = [{**key.model_dump(), "state": _state(key)} for key in result]
    output = console()
    output.print(*list_parts(columns, rows, "table", output.width))


def _state(key: KeyRead) -> str:
    if key.revoked_at:
        return f"revoked {key.revoked_at:%Y-%m-%d}"
    return f"until {key.expires_at:%Y-%m-%d %H:%M}" if key.expires_at else "valid"


def show(
    key: Annotated[str, typer.Argument(help="The key's id.")], data: DataDir = None, as_json: AsJson = False
) -> None:
    """Show a key, without its secret.

    Exit status: 0 done, 2 database unavailable, 5 not found.
    """
    from app.cli.remote.output import tree
    from app.keys import service

    with _database(data) as database:
        result = next((one for one in service.every(database) if one.id == key), None)
    if result is None:
        typer.echo(f"steward key: no key {key!r}; {LISTED}", err=True)
        raise typer.Exit(ABSENT)
    typer.echo(result.model_dump_json() if as_json else "\n".join(tree(result.model_dump(mode="json"))))


def delete(
    key: Annotated[str, typer.Argument(help="The key's id.")], data: DataDir = None, as_json: AsJson = False
) -> None:
    """Revoke a key; every API process follows within a second. It stays listed.

    Exit status: 0 done, 2 database unavailable, 5 not found.
    """
    from app.errors import NotFound
    from app.keys import service

    with _database(data) as database:
        try:
            service.revoke(database, None, key)
        except NotFound as error:
            typer.echo(f"steward key: {error}; {LISTED}", err=True)
            raise typer.Exit(ABSENT) from error
    typer.echo(json.dumps({"id": key}) if as_json else f"key {key} is revoked", err=not as_json)


def audit(
    tenant: Annotated[str | None, typer.Option(help="Filter by tenant.")] = None,
    action: Annotated[str | None, typer.Option(help="Filter by action: key.create, or a prefix such as key.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"Maximum number of rows. [default: {ROWS} in the table, else all]")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    data: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List audit records, newest first.

    Promotions, changes, deletions and key operations; --csv prints all columns.
    """
    from itertools import islice

    from app.audit import service
    from app.cli.server.data import show

    with _database(data) as database:
        entries = service.every(database, tenant, action)
        if not (as_csv or as_json):
            show([*islice(entries, limit or ROWS)], limit or ROWS)
            return
        for line in (service.as_csv if as_csv else service.as_ndjson)(islice(entries, limit)):
            typer.echo(line, nl=False)
