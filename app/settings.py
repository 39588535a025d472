"""All settings, typed and validated; read from the environment with the prefix ``STEWARD_``."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

LOOPBACK = ("localhost", "127.0.0.1", "::1")
MEBIBYTE = 1024 * 1024
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(lambda value: str(value).lower())]


def _listed(value: object) -> object:
    """A text with commas as its parts."""
    return tuple(part.strip().lower() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
"""Several, with commas between them."""
Days = Annotated[float, Field(gt=0, le=36_500)]


def is_confidential(address: str) -> bool:
    """Whether what is asked for there can't be changed on its way: over https, or on this machine."""
    return address.startswith("https://") or urlsplit(address).hostname in LOOPBACK


class Settings(BaseSettings):
    """Settings of the API, the workers and the command line. Durations are seconds, sizes are bytes."""

    model_config = SettingsConfigDict(env_prefix="STEWARD_", extra="ignore")

    data_dir: Path = Field(Path("steward-data"), description="Folder for everything the embedded mode keeps.")
    database_url: str = Field("", description="SQLAlchemy URL; empty: SQLite in `data_dir`.")
    broker_url: str = Field("", description="Celery broker URL; empty: files in `data_dir`.")
    host: str = Field("127.0.0.1", description="Address the API binds.")
    port: int = Field(8080, ge=0, le=65535, description="Port the API binds; 0 takes a free one.")
    workers: int = Field(1, ge=0, description="Worker processes that `serve` starts; 0 for none.")
    log_level: LogLevel = Field("info", description="debug, info, warning or error.")

    log_format: Literal["text", "json"] = Field("text", description="Lines for people, or one JSON object a line.")
    log_requests: bool = Field(False, description="Whether each answered request is a line, with its decision.")
    traces: bool = Field(
        False, description="Whether spans go to OpenTelemetry (extra `otel`; `OTEL_EXPORTER_OTLP_ENDPOINT`)."
    )

    authentication: Literal["auto", "required"] = Field(
        "auto", description="Whether keys are asked for: from the first one on, or in any case."
    )
    oidc_issuer: str = Field("", description="Identity provider whose tokens are taken beside keys; empty: none.")
    oidc_audience: str = Field("steward", description="The audience that its tokens must be for.")
    oidc_keys_url: str = Field("", description="Where its keys are published; empty: it says so itself.")
    oidc_keys_seconds: float = Field(300.0, gt=0, description="How long its keys are kept before they are read again.")
    oidc_tenant_claim: str = Field("tenant", description="The claim that names the tenant, or the way to it with dots.")
    oidc_scopes_claim: str = Field("scope", description="The claim that lists the scopes: a text, or a list.")
    oidc_scopes_prefix: str = Field("", description="What stands before each scope in it, for example `steward:`.")
    key_requests_per_second: float = Field(0.0, ge=0, description="Most requests of a key in a second; 0: any number.")
    tenant_requests_per_second: float = Field(0.0, ge=0, description="The same of all keys of a tenant together.")
    tenant_jobs: int = Field(0, ge=0, description="Most jobs of a tenant that wait or run; 0: any number.")
    tenant_executions: int = Field(0, ge=0, description="Most stored executions of a tenant; 0: any number.")
    tls_certificate: Path | None = Field(
        None, description="Certificate (chain) of the API, PEM; with `tls_key` it serves TLS."
    )
    tls_key: Path | None = Field(None, description="Private key of the certificate, PEM.")
    trusted_proxies: Names = Field(
        (), description="Addresses or networks of proxies whose `X-Forwarded-For` and `-Proto` are taken, with commas."
    )
    allowed_hosts: Names = Field(
        (), description="Names that requests may be sent to, with commas; without keys loopback's may, too."
    )
    allowed_origins: Names = Field(
        (), description="Origins whose pages may write, with commas: `https://portal.example`."
    )

    json_limit_bytes: int = Field(16 * MEBIBYTE, gt=0, description="Largest request body, uploads aside.")
    upload_limit_bytes: int = Field(2048 * MEBIBYTE, gt=0, description="Largest body of a sample upload.")
    trace_limit_bytes: int = Field(256 * MEBIBYTE, gt=0, description="Largest trace, unpacked: it is read as a whole.")
    request_timeout_seconds: float = Field(30.0, gt=0, description="A request that takes longer ends as 503.")
    upload_timeout_seconds: float = Field(900.0, gt=0, description="The same for a sample upload.")
    header_timeout_seconds: float = Field(10.0, gt=0, description="A connection without a whole header ends after it.")
    retry_after_seconds: int = Field(2, ge=1, description="`Retry-After` of a 503.")
    stream_poll_seconds: float = Field(0.2, gt=0, description="How often an event stream looks for new events.")
    stream_seconds: float = Field(300.0, gt=0, description="An event stream ends after this; clients resume it.")

    database_pool_size: int = Field(40, ge=1, description="Most database connections of one process.")
    database_connect_seconds: int = Field(5, ge=1, description="Patience for a new PostgreSQL connection.")
    database_silence_seconds: int = Field(
        15, ge=2, description="A PostgreSQL connection whose other end acknowledges nothing for so long is given up."
    )
    sqlite_busy_seconds: float = Field(15.0, gt=0, description="Patience for another writer's SQLite lock.")

    lease_seconds: float = Field(20.0, gt=0, description="A job whose worker is silent for this long is taken over.")
    heartbeat_seconds: float = Field(4.0, gt=0, description="How often a worker renews its lease.")
    sweep_seconds: float = Field(3.0, gt=0, description="How often lost jobs are looked for.")
    requeue_seconds: float = Field(10.0, gt=0, description="A job queued for this long is announced again.")
    checkpoint_seconds: float = Field(2.0, ge=0, description="At least this long between two checkpoints.")
    progress_seconds: float = Field(0.5, ge=0, description="At least this long between two reports of progress.")
    max_attempts: int = Field(3, ge=1, description="A job that lost its worker this often fails.")
    worker_seen_seconds: float = Field(30.0, gt=0, description="A worker silent for longer does not count as ready.")
    worker_warm: bool = Field(True, description="Import what learns when a worker starts, not at its first job.")
    worker_nice: int = Field(10, ge=0, le=19, description="Niceness of worker processes.")
    training_nice: int = Field(19, ge=0, le=19, description="Niceness of trainings: fits and commands go before.")

    pack_reports: bool = Field(True, description="Store reports packed; false while the release before serves beside.")
    policy_poll_seconds: float = Field(0.5, gt=0, description="How often the API looks for a newly promoted agent.")
    idempotency_seconds: float = Field(86400.0, gt=0, description="How long an Idempotency-Key is remembered.")
    idempotency_claim_seconds: float = Field(60.0, gt=0, description="An unanswered key is free again after this.")

    retention_iterations_days: Days | None = Field(None, description="Age at which ended runs' iterations go.")
    retention_runs_days: Days | None = Field(None, description="Age at which ended runs go.")
    retention_jobs_days: Days | None = Field(None, description="Age at which ended jobs go.")
    retention_events_days: Days | None = Field(None, description="Age at which ended jobs' events go.")
    retention_evaluations_days: Days | None = Field(None, description="Age at which evaluations go.")
    retention_artifacts_days: Days | None = Field(None, description="Age at which superseded agents, models go.")
    archive: bool = Field(True, description="Whether what goes by age is archived (Parquet) first.")
    archive_dir: Path | None = Field(None, description="Folder of the archive; none: `archive` in `data_dir`.")
    prune_seconds: float = Field(3600.0, gt=0, description="How often a worker deletes what is too old.")

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
        for address in (self.oidc_issuer, self.oidc_keys_url):
            if address and not is_confidential(address):
                raise ValueError(f"an identity provider is asked over https alone, not at {address!r}")
        for proxy in self.trusted_proxies:
            ip_network(proxy, strict=False)
        return self

    @property
    def embedded(self) -> bool:
        """Whether the database or the broker is in `data_dir`: what else runs there shares them."""
        return self.files_as_broker or Path(self.database_url.partition("///")[2]).is_relative_to(self.data_dir)

    @property
    def files_as_broker(self) -> bool:
        """Whether jobs are announced through files, to workers of this host."""
        return self.broker_url.startswith("filesystem:")

    @property
    def archive_folder(self) -> Path:
        """Folder of what was deleted by age."""
        return self.archive_dir or self.data_dir / "archive"

    @property
    def broker_dir(self) -> Path:
        """Folder of the embedded file broker."""
        return self.data_dir / "broker"


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The settings of this process, read once."""
    return Settings()
