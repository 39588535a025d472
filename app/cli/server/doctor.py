"""`steward doctor`: checks of configuration, storage, broker, workers and API."""

from __future__ import annotations

import difflib
import json
import os
import platform
import shutil
import ssl
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from sqlalchemy import inspect, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app import installed, startup
from app.cli.general import own_version
from app.cli.server import data, probe
from app.cli.server.serve import bind, check_address, is_loopback
from app.database import leases
from app.database.base import utc_now
from app.database.engine import LEAST_FREE_BYTES, Database
from app.database.leases import database_time
from app.jobs import repository as listing
from app.keys import ring
from app.settings import Settings
from app.startup import StartupError, check_traces

# Findings, and the removal of secrets from them.


Status = Literal["ok", "warn", "fail"]
SHORTEST_SECRET = 4
HIDDEN = "***"


class Finding(NamedTuple):
    """Result of one check.

    Attributes:
        check: name of the check.
        status: `ok`: no problem; `warn`: Steward can't work fully, or not for long; `fail`: it can't work.
        detail: the finding in words.
        remedy: what to do; empty if all is well.
    """

    check: str
    status: Status
    detail: str
    remedy: str = ""


def failed_finding(check: str, error: startup.StartupError) -> Finding:
    """A failed finding from a StartupError, whose message ends with the remedy."""
    detail, _, remedy = str(error).rpartition("; ")
    return Finding(check, "fail", detail or remedy, remedy if detail else "")


def hiding(settings: Settings) -> Callable[[str], str]:
    """A function that replaces the settings' passwords and the caller's key in texts by “***”."""
    secrets = {os.environ.get("STEWARD_API_KEY", "")}
    for url in (settings.database_url, settings.broker_url):
        password = _password(url)
        secrets |= {password, unquote(password)}
    known = sorted((one for one in secrets if len(one) >= SHORTEST_SECRET), key=len, reverse=True)

    def hide(text: str) -> str:
        for secret in known:
            text = text.replace(secret, HIDDEN)
        return startup.without_password(text)

    return hide


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:  # no URL: it is refused elsewhere
        return ""


def redact(findings: Iterable[Finding], settings: Settings) -> Iterator[Finding]:
    """The findings without secrets."""
    hide = hiding(settings)
    for one in findings:
        yield one._replace(detail=hide(one.detail), remedy=hide(one.remedy))


# Database, tables, clock, and disk space.


MEBIBYTE, GIBIBYTE = 1 << 20, 1 << 30
LITTLE_FREE_BYTES, LITTLE_FREE_SHARE = GIBIBYTE, 0.05
MANY_CONNECTIONS = 0.8
CLOCK_WARNS, CLOCK_FAILS = 1.0, 30.0
"""Difference of two clocks in seconds that warns, and that fails; leases depend on the database's clock only."""


def size(number: float) -> str:
    """Format a number of bytes as MiB, or as GiB from 1 GiB on, with one decimal."""
    return f"{number / GIBIBYTE:.1f} GiB" if number >= GIBIBYTE else f"{number / MEBIBYTE:.1f} MiB"


def database_finding(name: str, database: Database, check: Callable[[Session], Finding]) -> Finding:
    """Finding of a check with a database session; a failure if the database doesn't respond."""
    try:
        with database.reading() as session:
            return check(session)
    except SQLAlchemyError as error:
        reason = startup.first_line(getattr(error, "orig", None) or error)
        return Finding(name, "fail", reason, "see what is said of the database and its tables")


def _server(session: Session) -> Finding:
    """Database system, size, connections, and whether it accepts writes."""
    connection = session.connection()
    url, version = connection.engine.url, ".".join(map(str, connection.dialect.server_version_info or ()))
    if connection.dialect.name == "sqlite":
        return _file(Path(url.database or ""), version)
    many, most, stored, standby = session.execute(
        text(
            "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
            "current_setting('max_connections')::int, pg_database_size(current_database()), pg_is_in_recovery()"
        )
    ).one()
    place = f"{url.host or 'localhost'}:{url.port or 5432}/{url.database}"
    detail = f"PostgreSQL {version} at {place}, {size(stored)}, {many} of {most} connections"
    if standby:
        return Finding("database", "fail", f"{detail}; it is a standby and takes no writes", "name the primary")
    if many > MANY_CONNECTIONS * most:
        remedy = "raise max_connections, or lower STEWARD_DATABASE_POOL_SIZE of every process"
        return Finding("database", "warn", detail, remedy)
    return Finding("database", "ok", detail)


def _file(path: Path, version: str) -> Finding:
    stored = sum(one.stat().st_size for one in (path, path.with_name(f"{path.name}-wal")) if one.is_file())
    return Finding("database", "ok", f"SQLite {version}, {size(stored)}, {path}")


def _tables(session: Session) -> Finding:
    from migrations.runner import head, is_known

    upgrade = "steward db upgrade (steward serve does it when it starts)"
    if not inspect(session.connection()).has_table("alembic_version"):
        return Finding("tables", "fail", "there are none yet", upgrade)
    revision = session.scalar(text("SELECT version_num FROM alembic_version")) or "none"
    if revision == head():
        return Finding("tables", "ok", f"of this release ({revision})")
    if is_known(revision):
        return Finding("tables", "fail", f"of an earlier release ({revision}; this one's are {head()})", upgrade)
    remedy = "end the upgrade: start the release that made them everywhere (docs/how-to/operate.md)"
    return Finding("tables", "warn", f"of a later release ({revision}), unknown to this one", remedy)


def _clock(session: Session) -> Finding:
    before = utc_now()
    theirs = database_time(session)
    return apart(theirs, before, utc_now(), embedded=session.connection().dialect.name == "sqlite")


def apart(theirs: datetime, before: datetime, after: datetime, *, embedded: bool) -> Finding:
    """Finding on the database's clock ``theirs``, compared with this host's, read ``before`` and ``after`` it."""
    if embedded:
        return Finding("clock", "ok", "the database's is this machine's")
    seconds = (theirs - before - (after - before) / 2).total_seconds()
    status: Status = "fail" if abs(seconds) > CLOCK_FAILS else "warn" if abs(seconds) > CLOCK_WARNS else "ok"
    direction = "ahead of" if seconds > 0 else "behind"
    detail = f"the database's is {abs(seconds):.3f} s {direction} this machine's"
    return Finding("clock", status, detail, "" if status == "ok" else "have both keep time by NTP (chrony)")


def disk(settings: Settings) -> Iterator[Finding]:
    """Free space of the file systems of the data folder and of the archive."""
    folders = {"disk": settings.data_dir, "archive": settings.archive_folder}
    visited = set[int]()
    for name, folder in folders.items():
        place = next(one for one in (folder, *folder.parents) if one.exists())
        if place.stat().st_dev not in visited:
            visited.add(place.stat().st_dev)
            total, _, free = shutil.disk_usage(place)
            status: Status = "ok"
            if free < LITTLE_FREE_BYTES or free < LITTLE_FREE_SHARE * total:
                status = "fail" if free < 16 * LEAST_FREE_BYTES else "warn"
            remedy = "" if status == "ok" else "free some space; steward db prune --dry-run tells what is too old"
            yield Finding(name, status, f"{size(free)} of {size(total)} free at {place}", remedy)


# Broker, workers, jobs, keys, and the API.


MOST_NAMED = 3
LONG_SECONDS = 300.0
"""Seconds for which a job may be queued without a warning."""
CLOCK_SET_BACK = timedelta(seconds=60)
KEYS_END_SOON = timedelta(days=7)


def broker(settings: Settings) -> Finding:
    """Whether the broker responds."""
    try:
        startup.check_broker_url(settings)
    except startup.StartupError as error:
        return failed_finding("broker", error)
    problem = startup.broker_problem(settings)
    if problem is not None:
        return failed_finding("broker", startup.StartupError(problem))
    where = f"files in {settings.broker_dir}" if settings.files_as_broker else "answers"
    return Finding("broker", "ok", where)


def workers(session: Session, settings: Settings) -> Finding:
    """Finding on the workers: names and number of those with a recent heartbeat, or that there is none."""
    now, known = database_time(session), leases.registered_workers(session)
    alive = [one for one in known if now - one.seen_at < timedelta(seconds=settings.worker_seen_seconds)]
    silent = [one for one in known if one not in alive]
    summary = f"{len(alive)} alive{_name_some([one.name for one in alive])}"
    if any(one.seen_at > now + CLOCK_SET_BACK for one in known):
        return Finding(
            "workers", "warn", f"{summary}; signs of life lie ahead of time", "set the database's clock right"
        )
    if not alive:
        return Finding(
            "workers",
            "fail",
            f"none seen in the last {settings.worker_seen_seconds:g} s",
            "start one: steward worker, or steward serve, which brings one",
        )
    if silent:
        detail = f"{summary}; {len(silent)} silent without having signed off{_name_some([one.name for one in silent])}"
        return Finding(
            "workers", "warn", detail, "see their logs; their jobs are taken over, and they are forgotten in a day"
        )
    return Finding("workers", "ok", summary)


def _name_some(names: list[str]) -> str:
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f" ({', '.join(names[:MOST_NAMED])}{rest})" if names else ""


def jobs(session: Session) -> Finding:
    """Number of jobs by state, and how long the first queued one has waited."""
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
    """Number of valid keys, and which expire soon."""
    now = database_time(session)
    valid = [key for key in ring.valid(session) if key.expires_at is None or key.expires_at > now]
    if not valid:
        keys_required = settings.authentication == "required" or ring.fingerprint(session).created > 0
        if keys_required and not settings.oidc_issuer:
            return Finding("keys", "fail", "keys are asked for, and none is valid", "steward key create --scopes admin")
        return Finding("keys", "ok", "none is valid, and none is asked for by keys of its own")
    ending = [key for key in valid if key.expires_at is not None and key.expires_at < now + KEYS_END_SOON]
    soon = [f"{key.id} of {key.tenant} ends at {key.expires_at:%Y-%m-%d %H:%M} UTC" for key in ending[:MOST_NAMED]]
    if soon:
        return Finding(
            "keys", "warn", f"{len(valid)} valid; {', '.join(soon)}", "make others before (steward key create)"
        )
    return Finding("keys", "ok", f"{len(valid)} valid")


def api(settings: Settings) -> Finding:
    """Whether the API responds on this host, and is ready."""
    address = probe.address(settings)
    holder = data.holder(settings.data_dir)
    try:
        answer = probe.get(address, "/readyz")
    except OSError as error:
        if holder is not None:
            detail = f"process {holder} serves {settings.data_dir}, and {address} does not answer ({error})"
            return Finding(
                "api", "warn", detail, "it may listen elsewhere (STEWARD_HOST, STEWARD_PORT); else see its log"
            )
        return _free(settings, Finding("api", "ok", f"does not run at {address}"))
    try:
        health = json.loads(answer.body)
        wrong = [f"{name}: {value}" for name, value in health.items() if isinstance(value, str) and value != "ok"]
    except (ValueError, AttributeError):
        return Finding(
            "api", "warn", f"{address} answers with {answer.status}, not as Steward does", "choose another port"
        )
    if health.get("ready") is True:
        return Finding("api", "ok", f"answers at {address}, and is ready")
    return Finding("api", "warn", f"answers at {address}, and is not ready: {'; '.join(wrong)}", "see the lines above")


def _free(settings: Settings, finding: Finding) -> Finding:
    """The finding of the API's check, or a failure if a program that doesn't speak HTTP uses the port."""
    try:
        for one in bind(settings):
            one.close()
    except startup.StartupError as error:
        detail, _, remedy = str(error).partition("; ")
        return Finding("api", "fail", detail, remedy)
    except OSError as error:
        return Finding("api", "fail", f"STEWARD_HOST={settings.host!r}: {error}", "name an address of this machine")
    return finding


def issuer(settings: Settings) -> Finding:
    """Whether the configured identity provider's keys can be fetched."""
    from app.keys.provider import UNUSABLE, fetch_signing_keys

    where = settings.oidc_keys_url or settings.oidc_issuer
    try:
        count = len(fetch_signing_keys(settings))
    except UNUSABLE as error:
        remedy = "see that STEWARD_OIDC_ISSUER and STEWARD_OIDC_KEYS_URL are right, and that it is reached from here"
        return Finding("issuer", "fail", f"the keys of {where} are not available: {error}", remedy)
    return Finding("issuer", "ok", f"{where} publishes {count} {'key' if count == 1 else 'keys'}")


def extras(settings: Settings) -> Finding:
    """Finding on the missing extras, each with its purpose; a warning if `serve` should start workers, and can't."""
    absent = [name for name in installed.EXTRAS if installed.missing(name)]
    named = f"not installed here: {', '.join(f'{name} ({installed.EXTRAS[name]})' for name in absent)}"
    if "worker" in absent and settings.workers:
        remedy = f"{installed.command('worker')}, or have workers elsewhere and set STEWARD_WORKERS=0"
        return Finding("extras", "warn", f"{named}; fits and trainings wait for a worker", remedy)
    return Finding("extras", "ok", named if absent else "all are installed")


# Settings that contradict each other or the installation.


CHECK = "settings"
PREFIX = "STEWARD_"
OTHERS = ("STEWARD_API_KEY", "STEWARD_URL", "STEWARD_DATA", "STEWARD_POSTGRES_PASSWORD")
"""Variables of the command line, of `make` and of compose that are no settings."""
EXPIRES_SOON = timedelta(days=14)


def findings(settings: Settings, environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Problems of the settings; one finding that all is well if there are none."""
    results = [
        *unknown_variables(environment),
        *_network(settings),
        *_traces(settings),
        *_storage(settings),
        *_times(settings),
    ]
    yield from results or [Finding(CHECK, "ok", "nothing contradicts")]


def unknown_variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Environment variables with the prefix STEWARD_ that aren't settings."""
    known = [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known and name not in OTHERS:
            alike = difflib.get_close_matches(name, known, 1)
            remedy = f"did you mean {alike[0]}?" if alike else "remove it; the list: docs/reference/settings.md"
            yield Finding(CHECK, "warn", f"{name} is no setting, and has no effect", remedy)


def _network(settings: Settings) -> Iterator[Finding]:
    """Problems of the API's address, encryption and certificate."""
    try:
        check_address(settings)
    except StartupError as error:
        yield failed_finding(CHECK, error)
    if not (is_loopback(settings.host) or settings.tls_certificate or settings.trusted_proxies):
        yield Finding(
            CHECK,
            "warn",
            f"STEWARD_HOST={settings.host!r} without TLS: keys travel unencrypted",
            "set STEWARD_TLS_CERTIFICATE and STEWARD_TLS_KEY, or name the proxy in STEWARD_TRUSTED_PROXIES",
        )
    if settings.tls_certificate is not None and settings.tls_key is not None:
        yield from certificate(settings.tls_certificate, settings.tls_key, datetime.now(UTC))


def _traces(settings: Settings) -> Iterator[Finding]:
    try:
        check_traces(settings)
    except StartupError as error:
        yield failed_finding(CHECK, error)


def certificate(chain: Path, key: Path, now: datetime) -> Iterator[Finding]:
    """Problems of a TLS certificate (files ``chain`` and ``key``): unusable, expired, or expiring within 14 days."""
    from cryptography import x509

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(chain, key)
        ends = x509.load_pem_x509_certificate(chain.read_bytes()).not_valid_after_utc
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        yield Finding(CHECK, "fail", f"STEWARD_TLS_CERTIFICATE={str(chain)!r}: {error}", "name a PEM file and its key")
        return
    if ends < now + EXPIRES_SOON:
        status, verb = ("fail", "expired") if ends < now else ("warn", "expires")
        detail = f"STEWARD_TLS_CERTIFICATE={str(chain)!r} {verb} at {ends:%Y-%m-%d %H:%M} UTC"
        yield Finding(CHECK, status, detail, "renew it, then start the API again")  # type: ignore[arg-type]


def _storage(settings: Settings) -> Iterator[Finding]:
    """Findings on storage that several hosts can't share, and on packages that archives need where workers run."""
    embedded = settings.database_url.startswith("sqlite")
    if embedded and not settings.files_as_broker:
        yield Finding(
            CHECK,
            "warn",
            "the database is a file of this host, while the broker may be reached by others",
            "name a PostgreSQL in STEWARD_DATABASE_URL if workers run on other hosts, else leave the broker out",
        )
    if not embedded and settings.files_as_broker:
        yield Finding(
            CHECK,
            "warn",
            "jobs are announced in files of this host: workers of others find them by their sweeper, seconds later",
            "name a Redis in STEWARD_BROKER_URL",
        )
    by_age = any(value is not None for name, value in settings if name.startswith("retention_"))
    if by_age and settings.archive and settings.workers and installed.missing("archive"):
        yield Finding(
            CHECK,
            "warn",
            "what is too old is to be archived, and what writes the archive is not installed here: nothing is deleted",
            f"where workers run, {installed.command('archive')}; or set STEWARD_ARCHIVE=false",
        )


def _times(settings: Settings) -> Iterator[Finding]:
    """Findings on durations (seconds) in the settings that are shorter than they must be, relative to others."""
    for longer, shorter, factor, why in (
        ("lease_seconds", "heartbeat_seconds", 2, "jobs are taken from workers that live"),
        ("worker_seen_seconds", "heartbeat_seconds", 2, "workers that live count as gone"),
        ("idempotency_claim_seconds", "request_timeout_seconds", 1, "a POST may be done twice under one key"),
        ("lease_seconds", "progress_seconds", 1, "jobs are taken from workers that live"),
    ):
        value, least = getattr(settings, longer), factor * getattr(settings, shorter)
        if value < least:
            name, other = f"{PREFIX}{longer.upper()}", f"{PREFIX}{shorter.upper()}"
            times = f"{factor} × " if factor > 1 else ""
            yield Finding(CHECK, "warn", f"{name}={value:g} is less than {times}{other}: {why}", f"{least:g} or more")


# All checks, in order of dependence.


def examine(settings: Settings) -> list[Finding]:
    """Findings of all checks with these settings; creates nothing, and contains no secrets."""
    return list(redact(_findings(settings), settings))


def _findings(settings: Settings) -> Iterator[Finding]:
    yield Finding("release", "ok", f"steward {own_version()}, Python {platform.python_version()}")
    yield extras(settings)
    yield from findings(settings)
    yield from disk(settings)
    yield from _database(settings)
    yield broker(settings)
    if settings.oidc_issuer:
        yield issuer(settings)
    yield api(settings)


def _database(settings: Settings) -> Iterator[Finding]:
    try:
        startup.check_database(settings, creates=False)
    except startup.StartupError as error:
        yield failed_finding("database", error)
        return
    database = Database(settings.database_url, settings)
    try:
        # Findings about the database, the version of its tables, and its clock
        for name, check in (("database", _server), ("tables", _tables), ("clock", _clock)):
            yield database_finding(name, database, check)
        # Findings about workers, jobs and keys, from the database
        yield database_finding("workers", database, partial(workers, settings=settings))
        yield database_finding("jobs", database, jobs)
        yield database_finding("keys", database, partial(of_keys, settings=settings))
    finally:
        database.dispose()


# Findings as text of 80 columns, and as JSON.


COLUMNS = 80
ORDER: tuple[Status, ...] = ("ok", "warn", "fail")


def worst(findings: Iterable[Finding]) -> Status:
    """The worst status; `ok` without findings."""
    return max((one.status for one in findings), key=ORDER.index, default="ok")


def lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Lines of text, each finding followed by its remedy."""
    wide = max(len(one.check) for one in findings)
    for one in findings:
        begin = f"{one.status:4}  {one.check:{wide}}  "
        yield from _wrap_lines(begin, one.detail, " " * len(begin))
        if one.remedy:
            yield from _wrap_lines(f"{' ' * len(begin)}-> ", one.remedy, " " * (len(begin) + 3))


def _wrap_lines(begin: str, text: str, indent: str) -> list[str]:
    plain = " ".join(text.split())
    return textwrap.wrap(plain, COLUMNS, initial_indent=begin, subsequent_indent=indent, break_on_hyphens=False)


def document(findings: Sequence[Finding]) -> str:
    """Findings as the text of a JSON document."""
    return json.dumps({"status": worst(findings), "checks": [one._asdict() for one in findings]})
