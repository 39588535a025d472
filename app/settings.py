"""Settings, typed and validated, from environment variables with the prefix ``STEWARD_``."""

from __future__ import annotations

import hashlib
from base64 import b64decode
from functools import lru_cache
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app import HOST, PORT

LOOPBACK = ("localhost", "127.0.0.1", "::1")
MEBIBYTE = 1024 * 1024
LEAST_KEY, MOST_KEY = 24, 64
"""Bounds of the size of a webhook key in bytes."""
MOST_RECEIVERS = 16
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(lambda value: str(value).lower())]


def _split_list(value: object) -> object:
    """A comma-separated text as a tuple of its parts."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(str.lower, names))


Addresses = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)]
"""Tuple of URLs, comma-separated in the environment."""
Names = Annotated[Addresses, AfterValidator(_lower)]
"""Tuple of names, comma-separated in the environment, in lower case."""
Days = Annotated[float, Field(gt=0, le=36_500)]


def is_confidential(address: str) -> bool:
    """Whether a URL is https or on this host, so that responses can't be read or changed in transit."""
    return address.startswith("https://") or urlsplit(address).hostname in LOOPBACK


def _is_web_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        sound = address.isprintable() and not set(' <>"') & set(address)
        return sound and parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def receiver_of(url: str) -> str:
    """Name of a receiver of webhooks in the database: 16 hexadecimal digits of its URL's SHA-256."""
    return hashlib.sha256(url.encode()).hexdigest()[:16]


def site_of(url: str) -> str:
    """Scheme, host and port of a URL: what may be shown and logged of it; raises ValueError for an invalid port."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


class Settings(BaseSettings):
    """Settings of the API, the workers and the command line. Durations are seconds, sizes are bytes."""

    model_config = SettingsConfigDict(env_prefix="STEWARD_", extra="ignore", hide_input_in_errors=True)

    data_dir: Path = Field(Path("steward-data"), description="Folder for all data of the embedded mode.")
    database_url: str = Field("", description="SQLAlchemy URL; empty: SQLite in `data_dir`.")
    broker_url: str = Field("", description="Celery broker URL; empty: files in `data_dir`.")
    host: str = Field(HOST, description="Address the API binds to.")
    port: int = Field(PORT, ge=0, le=65535, description="Port the API binds to; 0 takes a free one.")
    workers: int = Field(1, ge=0, description="Worker processes that `serve` starts; 0 for none.")
    log_level: LogLevel = Field("info", description="debug, info, warning or error.")

    log_format: Literal["text", "json"] = Field("text", description="Plain text, or one JSON object per line.")
    log_requests: bool = Field(False, description="Whether to log each request, with its decision.")
    traces: bool = Field(
        False, description="Whether to export spans to OpenTelemetry (extra `otel`; `OTEL_EXPORTER_OTLP_ENDPOINT`)."
    )

    authentication: Literal["auto", "required"] = Field(
        "auto", description="When keys are required: once one exists (`auto`), or always."
    )
    oidc_issuer: str = Field("", description="Identity provider whose tokens are accepted besides keys; empty: none.")
    oidc_audience: str = Field("steward", description="Audience that its tokens must have.")
    oidc_keys_url: str = Field("", description="URL of its public keys; empty: discovered from the issuer.")
    oidc_keys_seconds: float = Field(300.0, gt=0, description="How long its public keys are cached.")
    oidc_tenant_claim: str = Field("tenant", description="Claim that names the tenant; dots for nested claims.")
    oidc_scopes_claim: str = Field("scope", description="Claim that lists the scopes, as a string or a list.")
    oidc_scopes_prefix: str = Field("", description="Prefix of each scope in that claim, for example `steward:`.")
    key_requests_per_second: float = Field(0.0, ge=0, description="Maximum requests per second of a key; 0: unlimited.")
    tenant_requests_per_second: float = Field(0.0, ge=0, description="The same for all keys of a tenant together.")
    tenant_jobs: int = Field(0, ge=0, description="Maximum waiting and running jobs of a tenant; 0: unlimited.")
    tenant_executions: int = Field(0, ge=0, description="Maximum stored executions of a tenant; 0: unlimited.")
    tenant_training_hours: float = Field(
        24.0, ge=0, description="Maximum hours of one training on one core, as estimated from its budget; 0: unlimited."
    )
    tls_certificate: Path | None = Field(
        None, description="Certificate (chain) of the API, PEM; with `tls_key`, enables TLS."
    )
    tls_key: Path | None = Field(None, description="Private key of the certificate, PEM.")
    trusted_proxies: Names = Field(
        (),
        description="Proxies whose `X-Forwarded-For` and `-Proto` are trusted: addresses or networks, comma-separated.",
    )
    allowed_hosts: Names = Field(
        (),
        description="Host names that requests may use, comma-separated; without keys, loopback names are allowed too.",
    )
    allowed_origins: Names = Field(
        (), description="Origins whose pages may write, comma-separated: `https://portal.example`."
    )

    json_limit_bytes: int = Field(16 * MEBIBYTE, gt=0, description="Maximum request body, except for uploads.")
    upload_limit_bytes: int = Field(2048 * MEBIBYTE, gt=0, description="Maximum body of a sample upload.")
    trace_limit_bytes: int = Field(
        256 * MEBIBYTE, gt=0, description="Maximum trace, uncompressed; it is read as a whole."
    )
    request_timeout_seconds: float = Field(30.0, gt=0, description="A request that takes longer is answered with 503.")
    upload_timeout_seconds: float = Field(900.0, gt=0, description="The same for a sample upload.")
    header_timeout_seconds: float = Field(10.0, gt=0, description="Maximum time to receive a complete header.")
    retry_after_seconds: int = Field(2, ge=1, description="`Retry-After` of a 503.")
    stream_poll_seconds: float = Field(0.2, gt=0, description="How often an event stream checks for new events.")
    stream_seconds: float = Field(300.0, gt=0, description="An event stream is closed after this; clients resume it.")

    database_pool_size: int = Field(40, ge=1, description="Maximum database connections per process.")
    database_connect_seconds: int = Field(5, ge=1, description="Timeout for opening a PostgreSQL connection.")
    database_silence_seconds: int = Field(
        15, ge=2, description="A PostgreSQL connection without acknowledgements for this long is closed, at both ends."
    )
    database_lock_seconds: float = Field(15.0, gt=0, description="Timeout for another user's PostgreSQL lock.")
    sqlite_busy_seconds: float = Field(15.0, gt=0, description="Timeout for another writer's SQLite lock.")

    lease_seconds: float = Field(20.0, gt=0, description="A job whose worker is silent for this long is taken over.")
    heartbeat_seconds: float = Field(4.0, gt=0, description="How often a worker renews its lease.")
    sweep_seconds: float = Field(3.0, gt=0, description="How often lost jobs are searched for.")
    requeue_seconds: float = Field(10.0, gt=0, description="A job queued for this long is announced again.")
    checkpoint_seconds: float = Field(2.0, ge=0, description="Minimum time between checkpoints.")
    progress_seconds: float = Field(0.5, ge=0, description="Minimum time between progress reports.")
    max_attempts: int = Field(3, ge=1, description="A job fails after losing its worker this many times.")
    worker_seen_seconds: float = Field(30.0, gt=0, description="A worker silent for longer does not count as ready.")
    worker_warm: bool = Field(True, description="Import learning libraries when a worker starts, not at its first job.")
    worker_nice: int = Field(10, ge=0, le=19, description="Niceness of worker processes.")
    training_nice: int = Field(19, ge=0, le=19, description="Niceness of trainings; fits and commands take precedence.")

    stale_after_iterations: float = Field(
        10.0, ge=1, description="A run is stale after this many expected iterations without a report."
    )
    stale_after_seconds: float = Field(
        300.0, gt=0, description="A run is not stale earlier; also an iteration's length where nothing predicts it."
    )

    policy_poll_seconds: float = Field(0.5, gt=0, description="How often the API checks for a newly promoted agent.")
    workload_cache_bytes: int = Field(
        256 << 20, ge=0, description="Most memory for workloads ready to decide; others are loaded for each report."
    )
    idempotency_seconds: float = Field(86400.0, gt=0, description="How long an Idempotency-Key is remembered.")
    idempotency_claim_seconds: float = Field(60.0, gt=0, description="An unanswered key can be reused after this.")

    currency: str = Field(
        "$",
        max_length=8,
        description="Currency of all prices, shown with every cost: a sign (`€`) or a code (`EUR`); empty: cost units.",
    )
    documentation_url: str = Field("", pattern=r"^(https?://\S+)?$", description="Linked from the dashboard, if set.")

    public_url: str = Field(
        "", description="Address of the dashboard, for links in messages: `https://steward.example`; empty: no links."
    )
    webhook_urls: Addresses = Field(
        (),
        repr=False,
        description="URLs that workers tell of runs at risk, stale, missed, failed or stopped at a cap, and of failed "
        "jobs, comma-separated.",
    )
    webhook_secret: str = Field(
        "",
        repr=False,
        description="Secret that signs these messages (Standard Webhooks): base64 of 24 to 64 bytes, `whsec_` before "
        "it or not.",
    )
    webhook_seconds: float = Field(10.0, gt=0, description="How often workers look for what to tell.")

    retention_iterations_days: Days | None = Field(
        None, description="Days after which iterations of ended runs are deleted."
    )
    retention_runs_days: Days | None = Field(None, description="Days after which ended runs are deleted.")
    retention_jobs_days: Days | None = Field(None, description="Days after which ended jobs are deleted.")
    retention_events_days: Days | None = Field(None, description="Days after which events of ended jobs are deleted.")
    retention_evaluations_days: Days | None = Field(None, description="Days after which evaluations are deleted.")
    retention_artifacts_days: Days | None = Field(
        None, description="Days after which superseded agents and models are deleted."
    )
    archive: bool = Field(True, description="Whether data deleted by age is archived (Parquet) first.")
    archive_dir: Path | None = Field(None, description="Folder of the archive; default: `archive` in `data_dir`.")
    prune_seconds: float = Field(3600.0, gt=0, description="How often a worker deletes data by age.")

    @model_validator(mode="after")
    def _embedded_defaults(self) -> Settings:
        self.data_dir = self.data_dir.expanduser().absolute()
        if not self.database_url:
            self.database_url = f"sqlite:///{self.data_dir / 'steward.db'}"
        if not self.broker_url:
            self.broker_url = "filesystem://localhost//"
        return self

    @model_validator(mode="after")
    def _transport(self) -> Settings:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("STEWARD_TLS_CERTIFICATE and STEWARD_TLS_KEY go together")
        for name in ("oidc_issuer", "oidc_keys_url"):
            address = getattr(self, name)
            if address and not is_confidential(address):
                text = "an identity provider is asked over https alone"
                raise ValueError(f"STEWARD_{name.upper()}={address!r}: {text}; begin it with https://")
        for proxy in self.trusted_proxies:
            try:
                ip_network(proxy, strict=False)
            except ValueError as error:
                text = "STEWARD_TRUSTED_PROXIES lists addresses or networks"
                raise ValueError(f"{text}: {error}") from error
        return self

    @model_validator(mode="after")
    def _webhooks(self) -> Settings:
        """Check addresses and secret; raises ValueError, whose message quotes no webhook's URL and no secret."""
        if len(self.webhook_urls) > MOST_RECEIVERS:  # not a bound of the field: its refusal would show all URLs
            raise ValueError(f"STEWARD_WEBHOOK_URLS names at most {MOST_RECEIVERS} receivers")
        for name, addresses in (("PUBLIC_URL", filter(None, [self.public_url])), ("WEBHOOK_URLS", self.webhook_urls)):
            if not all(map(_is_web_address, addresses)):
                text = "begins with https:// or http://, names a host, and has neither spaces, quotes nor < and >"
                raise ValueError(f"STEWARD_{name} {text}")
        if {"?", "#"} & set(self.public_url):  # paths are appended to it
            raise ValueError("STEWARD_PUBLIC_URL has neither query nor fragment: no ? and no #")
        if self.webhook_urls or self.webhook_secret:
            try:
                size = len(self.webhook_key)
            except ValueError:
                size = 0
            if not LEAST_KEY <= size <= MOST_KEY:
                text = "STEWARD_WEBHOOK_URLS needs STEWARD_WEBHOOK_SECRET, base64 of 24 to 64 bytes"
                raise ValueError(f"{text}; make one: openssl rand -base64 32")
        return self

    @property
    def webhook_key(self) -> bytes:
        """The key that signs messages; raises ValueError if the secret is no base64."""
        return b64decode(self.webhook_secret.removeprefix("whsec_"), validate=True)

    @property
    def embedded(self) -> bool:
        """Whether the database or the broker is in `data_dir`, which processes then share."""
        return self.files_as_broker or Path(self.database_url.partition("///")[2]).is_relative_to(self.data_dir)

    @property
    def files_as_broker(self) -> bool:
        """Whether the broker is embedded, for workers of this host."""
        return self.broker_url.startswith("filesystem:")

    @property
    def archive_folder(self) -> Path:
        """Folder of archived data: ``archive_dir``, else ``archive`` in ``data_dir``."""
        return self.archive_dir or self.data_dir / "archive"

    @property
    def broker_dir(self) -> Path:
        """Folder of the embedded broker."""
        return self.data_dir / "broker"


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The settings of this process, read once and cached; raises Pydantic's ValidationError for an invalid one."""
    return Settings()
