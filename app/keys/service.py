"""Operations on keys: secrets, creation, listing, revocation; tokens of runs."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import CursorResult, select, update
from sqlalchemy.exc import IntegrityError

from app.audit import service as audit
from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Key, RunToken
from app.errors import NotFound
from app.http.caller import SCOPES, Caller
from app.http.dependencies import UtcTime
from app.http.idempotency import Record, no_record
from app.http.pagination import PageRequest, Slice
from app.keys import ring

# Format of keys: `stw_<id>_<secret>`, of run tokens `stw_run_<id>_<secret>`.
#
# The id selects the row. The secret has 256 random bits, for which SHA-256 is as good as a slow
# hash.


PREFIX, RUN_PREFIX = "stw_", "stw_run_"
SECRET_BYTES = 32
LONGEST = 128
NOBODY = "0" * 64
"""Digest compared with for unknown ids, so that the comparison takes as long."""


class NewSecret(NamedTuple):
    """A new secret: its id, the text shown once, and the digest to be stored."""

    id: str
    text: str
    digest: str


class Credential(NamedTuple):
    """A parsed credential: whether it is a run's token, its id, and its secret."""

    of_run: bool
    id: str
    secret: str


def make(prefix: str = PREFIX) -> NewSecret:
    """A new random id and secret, whose text begins with ``prefix``; only the digest may be stored."""
    identifier, secret = secrets.token_hex(8), secrets.token_urlsafe(SECRET_BYTES)
    return NewSecret(identifier, f"{prefix}{identifier}_{secret}", digest(secret))


def digest(secret: str) -> str:
    """SHA-256 of a secret, in hexadecimal digits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def parse(text: str) -> Credential | None:
    """The parts of a key or run token; None for other texts."""
    of_run = text.startswith(RUN_PREFIX)
    if len(text) > LONGEST or not text.startswith(PREFIX):
        return None
    identifier, _, secret = text[len(RUN_PREFIX if of_run else PREFIX) :].partition("_")
    return Credential(of_run, identifier, secret) if identifier and secret else None


def matches(secret: str, stored: str | None) -> bool:
    """Whether the secret has the stored digest, compared in constant time; False for digest None."""
    return hmac.compare_digest(digest(secret), stored or NOBODY) and stored is not None


# API schemas of keys.


ScopeName = Literal["read", "report", "train", "admin"]


def _future(moment: datetime) -> datetime:
    if moment <= datetime.now(UTC):
        raise ValueError("must be in the future")
    return moment


class KeyRequest(BaseModel):
    """Parameters of a new key of the caller's tenant."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        "", max_length=120, description="Purpose of the key, as free text.", examples=["nightly training"]
    )
    scopes: set[ScopeName] = Field(
        {"read", "report"},
        min_length=1,
        description="Permissions of the key; `admin` includes all.",
        examples=[["report"]],
    )
    expires_at: Annotated[UtcTime, AfterValidator(_future)] | None = Field(
        None, description="Expiry time; null: never."
    )


class KeyRead(BaseModel):
    """A key, without its secret."""

    id: str
    tenant: str
    name: str
    scopes: list[ScopeName]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class KeyMade(KeyRead):
    """A new key, shown only this once."""

    key: str | None = Field(description="Send as `Authorization: Bearer …`; null in a repeated response.")


# Operations on keys and run tokens.


def create(database: Database, tenant: str, request: KeyRequest, made_by: str, record: Record = no_record) -> KeyMade:
    """Create a key and return it with its secret.

    ``made_by``: name of the creator; ``record``: stores the response, without the secret."""
    result = make()
    row = Key(
        id=result.id,
        tenant=tenant,
        name=request.name,
        digest=result.digest,
        scopes=[scope for scope in SCOPES if scope in request.scopes],
        created_by=made_by,
        expires_at=request.expires_at,
        created_at=utc_now(),
    )
    with database.session() as session:
        ring.add(session, row)
        audit.add(session, tenant, "key.create", f"key {result.id}", {"scopes": row.scopes, "name": row.name})
        answer = KeyMade(key=None, **to_response(row).model_dump())
        record(session, answer)
    return answer.model_copy(update={"key": result.text})


def to_response(row: Key) -> KeyRead:
    """API representation of a key, without its secret."""
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


def list_keys(database: Database, tenant: str, request: PageRequest) -> Slice[Key]:
    """One page of a tenant's keys, newest first, including revoked ones; raises Invalid for a foreign cursor."""
    with database.reading() as session:
        return ring.list_keys(session, tenant, request)


def every(database: Database) -> list[KeyRead]:
    """Keys of all tenants, ordered by tenant and time."""
    with database.reading() as session:
        return [
            to_response(row) for row in session.scalars(select(Key).order_by(Key.tenant, Key.created_at, Key.id)).all()
        ]


def revoke(database: Database, tenant: str | None, key: str, now: datetime | None = None) -> None:
    """Revoke a key (tenant None: of any tenant); repeating it changes nothing.

    Raises:
        NotFound: there is no such key.
    """
    with database.session() as session:
        row = session.get(Key, key)
        if row is None or tenant not in (None, row.tenant):
            raise NotFound(f"no key {key!r}")
        statement = update(Key).where(Key.id == key, Key.revoked_at.is_(None)).values(revoked_at=now or utc_now())
        if tenant is not None:
            statement = statement.where(Key.tenant == tenant)
        statement = statement.execution_options(synchronize_session=False)
        if cast("CursorResult[Any]", session.execute(statement)).rowcount == 1:
            audit.add(session, row.tenant, "key.revoke", f"key {key}", {"name": row.name})


def issue_run_token(database: Database, caller: Caller, run: str) -> str:
    """A new token that can only report to this run and read it; invalid once its caller's key is revoked.

    Raises:
        NotFound: the run was deleted.
    """
    result = make(RUN_PREFIX)
    row = RunToken(
        id=result.id, run_id=run, tenant=caller.tenant, digest=result.digest, key_id=caller.key, created_at=utc_now()
    )
    try:
        with database.session() as session:
            ring.add(session, row)
            audit.add(session, caller.tenant, "run.token", f"run {run}", {"token": result.id})
    except IntegrityError as error:
        raise NotFound(f"no run {run!r}: it was started by this request, and deleted since") from error
    return result.text


# Tokens of runs are cached when first used.


LARGEST_CACHE = 100_000


class Token(NamedTuple):
    """A run token: run, tenant, SHA-256 of its secret, and the key that requested it (None: another credential)."""

    run: str
    tenant: str
    digest: str
    key: str | None


class RunTokens:
    """Cache of run tokens by id. Unknown ids are looked up one at a time, so that made-up ones can't overload the
    database."""

    def __init__(self, database: Database, size: int = LARGEST_CACHE) -> None:
        self._database, self._size = database, size
        self._known: OrderedDict[str, Token] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="run-tokens")

    async def get(self, identifier: str) -> Token | None:
        """The token with this id; None if there is none."""
        token = self._known.get(identifier)
        if token is None:
            token = await asyncio.get_running_loop().run_in_executor(self._thread, self._read, identifier)
        return token

    def _read(self, identifier: str) -> Token | None:
        with self._database.reading() as session:
            rows = session.scalars(select(RunToken).where(RunToken.id.in_([identifier]))).all()
        for row in rows:
            self._known[row.id] = Token(row.run_id, row.tenant, row.digest, row.key_id)
            while len(self._known) > self._size:
                self._known.popitem(last=False)
        return self._known.get(identifier)
