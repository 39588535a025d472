"""Who calls: what the gateway has found out, for all that is done for the request."""

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
    """What a tenant may have at a time; 0 for no limit.

    Attributes:
        jobs: that wait or run.
        executions: that are stored.
        training_hours: that one training may take, as estimated, on one core.
    """

    jobs: int = 0
    executions: int = 0
    training_hours: float = 0.0

    @classmethod
    def of(cls, settings: Settings) -> Quotas:
        """The quotas of every tenant."""
        return cls(settings.tenant_jobs, settings.tenant_executions, settings.tenant_training_hours)


UNLIMITED = Quotas()


class Caller(NamedTuple):
    """Who calls.

    Attributes:
        tenant: whose nouns there are for it; all others' are not there.
        scopes: what it may do; `admin` stands for all.
        name: how the audit calls it: `key:<id>`, `subject:<name>`, `run:<id>`, `anybody`.
        key: id of the API key that it was named by.
        run: the run that it may do nothing but report to and read; its scopes are void then.
        address: from where the request came, on ordinary routes.
        quotas: what its tenant may have.
    """

    tenant: str
    scopes: frozenset[str]
    name: str
    key: str | None = None
    run: str | None = None
    address: str | None = None
    quotas: Quotas = UNLIMITED


ANYBODY = Caller(DEFAULT_TENANT, ALL, "anybody")
"""Whoever reaches a service that asks for no keys."""

current_caller: ContextVar[Caller | None] = ContextVar("current_caller", default=None)
"""For whom an ordinary route works; None in a command or a worker."""


def current_quotas() -> Quotas:
    """Of the tenant for whom an ordinary route works; none for a command or a worker."""
    caller = current_caller.get()
    return UNLIMITED if caller is None else caller.quotas


class Guard(Protocol):
    """Lets requests in, or not."""

    def recognised(self, scope: Scope, route: str | None) -> Caller | None:
        """Who calls, where that can be told at once: somebody like that was let in before; None: `admit` tells.

        Raises:
            TooManyRequests: not now.
        """
        ...

    async def admit(self, scope: Scope, route: str | None) -> Caller:
        """Who calls, if it may do what it asks for; ``route``: the template of the path, where it is known already.

        Raises:
            BadRequest, Unauthorised, Forbidden, Misdirected, TooManyRequests: it may not, or not now.
        """
        ...


def allowed(scopes: Collection[str]) -> frozenset[str]:
    """The scopes as they are checked: `admin` may do all."""
    return ALL if ADMIN in scopes else frozenset(scopes)
