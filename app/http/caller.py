"""The authenticated caller of a request, as determined by the gateway."""

from __future__ import annotations

from collections.abc import Collection
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from starlette.types import Scope

from app.database.base import DEFAULT_TENANT
from app.settings import Settings

READ, REPORT, TRAIN, ADMIN = "read", "report", "train", "admin"
SCOPES = (READ, REPORT, TRAIN, ADMIN)
ALL = frozenset(SCOPES)
LONGEST_TENANT = 63
TENANT = rf"^[a-z0-9][a-z0-9._-]{{0,{LONGEST_TENANT - 1}}}$"


class Quotas(NamedTuple):
    """Quotas of a tenant; 0 means no limit.

    Attributes:
        jobs: most jobs queued or running.
        executions: most stored executions.
        training_hours: most estimated hours of one training on one core.
    """

    jobs: int = 0
    executions: int = 0
    training_hours: float = 0.0

    @classmethod
    def of(cls, settings: Settings) -> Quotas:
        """The quotas of every tenant, from the settings."""
        return cls(settings.tenant_jobs, settings.tenant_executions, settings.tenant_training_hours)


UNLIMITED = Quotas()


class Caller(NamedTuple):
    """The authenticated caller of a request.

    Attributes:
        tenant: the tenant whose objects it can see.
        scopes: its permissions; `admin` includes all.
        name: its name in the audit log: `key:<id>`, `subject:<name>`, `run:<id>`, `anybody`.
        key: id of its API key; None for another credential.
        run: with a run's token, the only run that it may report to and read (``scopes`` is void then); None otherwise.
        address: address of the client, on ordinary routes only.
        quotas: quotas of its tenant.
    """

    tenant: str
    scopes: frozenset[str]
    name: str
    key: str | None = None
    run: str | None = None
    address: str | None = None
    quotas: Quotas = UNLIMITED


ANYBODY = Caller(DEFAULT_TENANT, ALL, "anybody")
"""Every caller of a service that requires no keys."""

current_caller: ContextVar[Caller | None] = ContextVar("current_caller", default=None)
"""Caller of the current ordinary request; None in commands and workers."""


def current_quotas() -> Quotas:
    """Quotas of the current request's tenant; unlimited in commands and workers."""
    caller = current_caller.get()
    return UNLIMITED if caller is None else caller.quotas


class Guard(Protocol):
    """Authenticates and authorises requests."""

    def cached_caller(self, scope: Scope, route: str | None) -> Caller | None:
        """The caller, if its credential is cached; None: call ``admit``. Raises TooManyRequests beyond its rate
        limit."""
        ...

    async def admit(self, scope: Scope, route: str | None) -> Caller:
        """The caller, if it may make this request; ``route``: template of the path, None if not known yet.

        Raises:
            BadRequest, Unauthorised, Forbidden, Misdirected: the request is malformed or not permitted.
            TooManyRequests: the caller exceeds its rate limit.
        """
        ...


def granted_scopes(scopes: Collection[str]) -> frozenset[str]:
    """The scopes that these scopes grant: `admin` grants all."""
    return ALL if ADMIN in scopes else frozenset(scopes)
