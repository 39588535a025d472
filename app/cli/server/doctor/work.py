"""The broker, workers and the jobs that wait for them, keys, and the API itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy.orm import Session

from app import startup
from app.cli.server import lock, probe
from app.cli.server.doctor.finding import Finding, refused
from app.cli.server.doctor.storage import guarded
from app.cli.server.listen import bind
from app.database import seen
from app.database.clock import database_time
from app.database.engine import Database
from app.database.tables import Key
from app.jobs import listing
from app.keys import repository as keys
from app.settings import Settings

MOST_NAMED = 3
LONG_SECONDS = 300.0
"""For which a job may wait while workers live."""
CLOCK_SET_BACK = timedelta(seconds=60)
KEYS_END_SOON = timedelta(days=7)


def of_database(settings: Settings, database: Database) -> Iterator[Finding]:
    """Workers, jobs and keys, as the database has them."""
    yield guarded("workers", database, partial(workers, settings=settings))
    yield guarded("jobs", database, jobs)
    yield guarded("keys", database, partial(of_keys, settings=settings))


def broker(settings: Settings) -> Finding:
    """Whether the broker answers."""
    try:
        startup.check_broker_url(settings)
    except startup.StartupError as error:
        return refused("broker", error)
    problem = startup.broker_problem(settings)
    if problem is not None:
        return refused("broker", startup.StartupError(problem))
    where = f"files in {settings.broker_dir}" if settings.files_as_broker else "answers"
    return Finding("broker", "ok", where)


def workers(session: Session, settings: Settings) -> Finding:
    """Who of them has given a sign lately."""
    now, known = database_time(session), seen.known(session)
    alive = [one for one in known if now - one.seen_at < timedelta(seconds=settings.worker_seen_seconds)]
    silent = [one for one in known if one not in alive]
    told = f"{len(alive)} alive{_named([one.name for one in alive])}"
    if any(one.seen_at > now + CLOCK_SET_BACK for one in known):
        return Finding("workers", "warn", f"{told}; signs of life lie ahead of time", "set the database's clock right")
    if not alive:
        return Finding(
            "workers",
            "fail",
            f"none seen in the last {settings.worker_seen_seconds:g} s",
            "start one: steward worker, or steward serve, which brings one",
        )
    if silent:
        detail = f"{told}; {len(silent)} silent without having signed off{_named([one.name for one in silent])}"
        return Finding(
            "workers", "warn", detail, "see their logs; their jobs are taken over, and they are forgotten in a day"
        )
    return Finding("workers", "ok", told)


def _named(names: list[str]) -> str:
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f" ({', '.join(names[:MOST_NAMED])}{rest})" if names else ""


def jobs(session: Session) -> Finding:
    """How many there are in each state, and how long the first in line has waited."""
    counts: dict[str, int] = {}
    for (_, state), number in listing.counts(session).items():
        counts[state] = counts.get(state, 0) + number
    detail = ", ".join(f"{number} {state}" for state, number in sorted(counts.items())) or "none"
    seconds = listing.waiting_seconds(session)
    if seconds > LONG_SECONDS:
        detail += f"; the first in line has waited for {_long(seconds)}"
        return Finding("jobs", "warn", detail, "start more workers (steward worker), or see what holds them: GET /jobs")
    return Finding("jobs", "ok", detail)


def _long(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def of_keys(session: Session, settings: Settings) -> Finding:
    """How many are valid, and which end soon."""
    now = database_time(session)
    valid = [key for key in keys.valid(session) if key.expires_at is None or key.expires_at > now]
    if not valid:
        asked = settings.authentication == "required" or keys.fingerprint(session).made > 0
        if asked and not settings.oidc_issuer:
            return Finding("keys", "fail", "keys are asked for, and none is valid", "steward key create --scopes admin")
        return Finding("keys", "ok", "none is valid, and none is asked for by keys of its own")
    soon = _ending(valid, now)
    if soon:
        return Finding(
            "keys", "warn", f"{len(valid)} valid; {', '.join(soon)}", "make others before (steward key create)"
        )
    return Finding("keys", "ok", f"{len(valid)} valid")


def _ending(valid: list[Key], now: datetime) -> list[str]:
    soon = [key for key in valid if key.expires_at is not None and key.expires_at < now + KEYS_END_SOON]
    return [f"{key.id} of {key.tenant} ends at {key.expires_at:%Y-%m-%d %H:%M} UTC" for key in soon[:MOST_NAMED]]


def api(settings: Settings) -> Finding:
    """Whether it answers here, and whether it is ready."""
    address = probe.address(settings)
    holder = lock.holder(settings.data_dir)
    try:
        answer = probe.get(settings, "/readyz")
    except OSError as error:
        if holder is not None:
            detail = f"process {holder} serves {settings.data_dir}, and {address} does not answer ({error})"
            return Finding(
                "api", "warn", detail, "it may listen elsewhere (STEWARD_HOST, STEWARD_PORT); else see its log"
            )
        return _free(settings, Finding("api", "ok", f"does not run at {address}"))
    return _readiness(address, answer.status, answer.body)


def _free(settings: Settings, found: Finding) -> Finding:
    """What was found, unless something that doesn't speak HTTP has the port."""
    try:
        for one in bind(settings):
            one.close()
    except startup.StartupError as error:
        detail, _, remedy = str(error).partition("; ")
        return Finding("api", "fail", detail, remedy)
    except OSError as error:
        return Finding("api", "fail", f"STEWARD_HOST={settings.host!r}: {error}", "name an address of this machine")
    return found


def issuer(settings: Settings) -> Finding:
    """Whether the identity provider's keys can be had; there is one."""
    from app.keys.provider import UNUSABLE, published

    where = settings.oidc_keys_url or settings.oidc_issuer
    try:
        count = len(published(settings))
    except UNUSABLE as error:
        remedy = "see that STEWARD_OIDC_ISSUER and STEWARD_OIDC_KEYS_URL are right, and that it is reached from here"
        return Finding("issuer", "fail", f"the keys of {where} can't be had: {error}", remedy)
    return Finding("issuer", "ok", f"{where} publishes {count} {'key' if count == 1 else 'keys'}")


def _readiness(address: str, status: int, body: bytes) -> Finding:
    try:
        told = json.loads(body)
        wrong = [f"{name}: {value}" for name, value in told.items() if isinstance(value, str) and value != "ok"]
    except (ValueError, AttributeError):
        return Finding("api", "warn", f"{address} answers with {status}, not as Steward does", "choose another port")
    if told.get("ready") is True:
        return Finding("api", "ok", f"answers at {address}, and is ready")
    return Finding("api", "warn", f"answers at {address}, and is not ready: {'; '.join(wrong)}", "see the lines above")
