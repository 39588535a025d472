"""Settings that contradict one another, or what they are set on."""

from __future__ import annotations

import difflib
import os
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

from app.cli.server.doctor.finding import Finding, refused
from app.cli.server.listen import check_address, is_loopback
from app.settings import Settings
from app.startup import StartupError, check_traces

CHECK = "settings"
PREFIX = "STEWARD_"
OTHERS = ("STEWARD_API_KEY", "STEWARD_URL", "STEWARD_DATA", "STEWARD_POSTGRES_PASSWORD")
"""Variables of the command line, of `make` and of compose."""
EXPIRES_SOON = timedelta(days=14)


def findings(settings: Settings, environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """What is wrong with the settings; one line that all is well where nothing is."""
    found = [*unknown(environment), *_network(settings), *_traces(settings), *_storage(settings), *_times(settings)]
    yield from found or [Finding(CHECK, "ok", "nothing contradicts")]


def unknown(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Variables that look like settings and are none."""
    known = [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known and name not in OTHERS:
            alike = difflib.get_close_matches(name, known, 1)
            remedy = f"did you mean {alike[0]}?" if alike else "remove it; the list: docs/reference/settings.md"
            yield Finding(CHECK, "warn", f"{name} is no setting, and has no effect", remedy)


def _network(settings: Settings) -> Iterator[Finding]:
    """Who reaches the API, and how."""
    try:
        check_address(settings)
    except StartupError as error:
        yield refused(CHECK, error)
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
        yield refused(CHECK, error)


def certificate(chain: Path, key: Path, now: datetime) -> Iterator[Finding]:
    """A certificate that can't be served with, or not for long."""
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
    """What several hosts can't share, and what can't be archived."""
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
    if by_age and settings.archive and find_spec("pyarrow") is None:
        yield Finding(
            CHECK,
            "warn",
            "what is too old is to be archived, and what writes the archive is not installed here: nothing is deleted",
            "where workers run, pip install 'steward[archive]'; or set STEWARD_ARCHIVE=false",
        )


def _times(settings: Settings) -> Iterator[Finding]:
    """Durations of which one must be longer than another."""
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
