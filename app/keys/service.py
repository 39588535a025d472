"""Rules of keys: creation, secrets, revocation and the tokens of runs."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
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

# Secrets and the texts that carry them: `stw_<id>_<secret>`, of a run `stw_run_<id>_<secret>`.
#
# The id says which row to compare with. The secret has 256 random bits: a plain SHA-256 of it is as good as a slow
# hash.


PREFIX, RUN_PREFIX = "stw_", "stw_run_"
SECRET_BYTES = 32
LONGEST = 128
NOBODY = "0" * 64
"""What the secret of an unknown id is compared with, so that it takes as long."""


class Made(NamedTuple):
    """A new secret: its id, the text that is shown once, and the hash that is kept."""

    id: str
    text: str
    digest: str


class Given(NamedTuple):
    """What a caller sent: whether it is a run's, its id, and its secret."""

    of_run: bool
    id: str
    secret: str


def make(prefix: str = PREFIX) -> Made:
    """Draw a new id and secret; of the secret only the digest is to be stored."""
    identifier, secret = secrets.token_hex(8), secrets.token_urlsafe(SECRET_BYTES)
    return Made(identifier, f"{prefix}{identifier}_{secret}", digest(secret))


def digest(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def parse(text: str) -> Given | None:
    """The parts of a text; None where it is none of ours."""
    of_run = text.startswith(RUN_PREFIX)
    if len(text) > LONGEST or not text.startswith(PREFIX):
        return None
    identifier, _, secret = text[len(RUN_PREFIX if of_run else PREFIX) :].partition("_")
    return Given(of_run, identifier, secret) if identifier and secret else None


def matches(secret: str, kept: str | None) -> bool:
    """Whether this is the secret of what is kept, in a time that tells nothing of where they differ."""
    return hmac.compare_digest(digest(secret), kept or NOBODY) and kept is not None


# What crosses the API about keys.


ScopeName = Literal["read", "report", "train", "admin"]


def _future(moment: datetime) -> datetime:
    if moment <= datetime.now(UTC):
        raise ValueError("must be in the future")
    return moment


class KeyRequest(BaseModel):
    """A key to create for the caller's tenant."""

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


# Keys: made, listed, revoked; and the tokens of runs.


def create(database: Database, tenant: str, request: KeyRequest, made_by: str, record: Record = no_record) -> KeyMade:
    """Make a key. What is recorded for a repeat of the request has no secret in it."""
    made = make()
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
        ring.add(session, row)
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
        return ring.listed(session, tenant, request)


def every(database: Database) -> list[KeyRead]:
    """The keys of all tenants, for who runs the service."""
    with database.reading() as session:
        return [read(row) for row in ring.every(session)]


def revoke(database: Database, tenant: str | None, key: str, now: datetime | None = None) -> None:
    """Revoke a key, of any tenant with None; doing so again changes nothing.

    Raises:
        NotFound: there is no such key.
    """
    with database.session() as session:
        row = session.get(Key, key)
        if row is None or tenant not in (None, row.tenant):
            raise NotFound(f"no key {key!r}")
        if ring.revoke(session, tenant, key, now or utc_now()):
            audit.add(session, row.tenant, "key.revoke", f"key {key}", {"name": row.name})


def issue_run_token(database: Database, caller: Caller, run: str) -> str:
    """A token that can report to this run and read it, and nothing else; void when its caller's key is revoked.

    Raises:
        NotFound: the run was deleted.
    """
    made = make(RUN_PREFIX)
    row = RunToken(
        id=made.id, run_id=run, tenant=caller.tenant, digest=made.digest, key_id=caller.key, created_at=utc_now()
    )
    try:
        with database.session() as session:
            ring.add(session, row)
            audit.add(session, caller.tenant, "run.token", f"run {run}", {"token": made.id})
    except IntegrityError as error:
        raise NotFound(f"no run {run!r}: it was started by this request, and deleted since") from error
    return made.text


# Tokens of runs, as a process keeps them: read from the database when they are first seen.


LARGEST_CACHE = 100_000


class Token(NamedTuple):
    """A run's token: its run, the run's tenant, the digest of its secret, and the key that asked for it."""

    run: str
    tenant: str
    digest: str
    key: str | None


class RunTokens:
    """Tokens by id. Those that aren't known are looked up one at a time, however many are asked for:
    whoever makes them up keeps others waiting who are new, and the database not busy."""

    def __init__(self, database: Database, size: int = LARGEST_CACHE) -> None:
        self._database, self._size = database, size
        self._known: OrderedDict[str, Token] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="run-tokens")

    async def get(self, identifier: str) -> Token | None:
        """The token of that id, if there is one."""
        found = self._known.get(identifier)
        if found is None:
            found = await asyncio.get_running_loop().run_in_executor(self._thread, self._read, identifier)
        return found

    def _read(self, identifier: str) -> Token | None:
        with self._database.reading() as session:
            rows = ring.run_tokens(session, [identifier])
        for row in rows:
            self._known[row.id] = Token(row.run_id, row.tenant, row.digest, row.key_id)
            while len(self._known) > self._size:
                self._known.popitem(last=False)
        return self._known.get(identifier)
