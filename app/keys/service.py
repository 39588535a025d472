"""Keys: made, listed, revoked; and the tokens of runs."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import cast

from app.audit import service as audit
from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Key, RunToken
from app.errors import NotFound
from app.http.caller import SCOPES, Caller
from app.http.idempotency.once import Record, no_record
from app.http.pagination import PageRequest, Slice
from app.keys import repository, secrets
from app.keys.schemas import KeyMade, KeyRead, KeyRequest, ScopeName


def create(database: Database, tenant: str, request: KeyRequest, made_by: str, record: Record = no_record) -> KeyMade:
    """Make a key. What is recorded for a repeat of the request has no secret in it."""
    made = secrets.make()
    row = Key(
        id=made.id,
        tenant=tenant,
        name=request.name,
        digest=made.digest,
        scopes=_ordered(request.scopes),
        created_by=made_by,
        expires_at=request.expires_at,
        created_at=utc_now(),
    )
    with database.session() as session:
        repository.add(session, row)
        audit.add(session, tenant, "key.create", f"key {made.id}", {"scopes": row.scopes, "name": row.name})
        answer = KeyMade(key=None, **read(row).model_dump())
        record(session, answer)
    return answer.model_copy(update={"key": made.text})


def _ordered(scopes: Collection[str]) -> list[str]:
    return [scope for scope in SCOPES if scope in scopes]


def read(row: Key) -> KeyRead:
    """A key as answered."""
    return KeyRead(
        id=row.id,
        tenant=row.tenant,
        name=row.name,
        scopes=cast("list[ScopeName]", row.scopes),
        created_by=row.created_by,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )


def listed(database: Database, tenant: str, request: PageRequest) -> Slice[Key]:
    """A page of a tenant's keys, newest first; those that were revoked, too."""
    with database.reading() as session:
        return repository.listed(session, tenant, request)


def every(database: Database) -> list[KeyRead]:
    """The keys of all tenants, for who runs the service."""
    with database.reading() as session:
        return [read(row) for row in repository.every(session)]


def revoke(database: Database, tenant: str | None, key: str, now: datetime | None = None) -> None:
    """Revoke a key, of any tenant with None; doing so again changes nothing.

    Raises:
        NotFound: there is no such key.
    """
    with database.session() as session:
        row = session.get(Key, key)
        if row is None or tenant not in (None, row.tenant):
            raise NotFound(f"no key {key!r}")
        if repository.revoke(session, tenant, key, now or utc_now()):
            audit.add(session, row.tenant, "key.revoke", f"key {key}", {"name": row.name})


def issue_run_token(database: Database, caller: Caller, run: str) -> str:
    """A token that can report to this run and read it, and nothing else; void when its caller's key is revoked."""
    made = secrets.make(secrets.RUN_PREFIX)
    row = RunToken(
        id=made.id, run_id=run, tenant=caller.tenant, digest=made.digest, key_id=caller.key, created_at=utc_now()
    )
    with database.session() as session:
        repository.add(session, row)
        audit.add(session, caller.tenant, "run.token", f"run {run}", {"token": made.id})
    return made.text
