"""All checks in order: what others rest on first."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version

from app import startup
from app.cli.server.doctor import configuration, storage, work
from app.cli.server.doctor.finding import Finding, refused, shown
from app.database.engine import Database
from app.settings import Settings


def examine(settings: Settings) -> list[Finding]:
    """What is found with these settings. Nothing is created, and no secret is told."""
    return list(shown(_found(settings), settings))


def _found(settings: Settings) -> Iterator[Finding]:
    yield Finding("release", "ok", f"steward {version('steward')}, Python {platform.python_version()}")
    yield from configuration.findings(settings)
    yield from storage.disk(settings)
    yield from _database(settings)
    yield work.broker(settings)
    if settings.oidc_issuer:
        yield work.issuer(settings)
    yield work.api(settings)


def _database(settings: Settings) -> Iterator[Finding]:
    try:
        startup.check_database(settings, creates=False)
    except startup.StartupError as error:
        yield refused("database", error)
        return
    database = Database(settings.database_url, settings)
    try:
        yield from storage.of_database(database)
        yield from work.of_database(settings, database)
    finally:
        database.dispose()
