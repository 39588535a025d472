"""Idempotency keys: a repeated POST gets the stored response of the first one."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Protocol, cast
from uuid import uuid4

from fastapi import Depends, Header, Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse
from sqlalchemy import CursorResult, delete, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.database.engine import Database
from app.database.leases import database_time, insert
from app.database.tables import IdempotencyKey
from app.errors import Conflict, FieldError, Invalid
from app.settings import Settings

# SQL queries on idempotency keys. A key without a status belongs to a request in flight.


def claim(session: Session, tenant: str, key: str, token: str, digest: str, now: datetime) -> bool:
    """Insert the key if it doesn't exist; False if another request holds it.

    ``token`` identifies this request, ``digest`` its content (SHA-256).
    """
    values = {"tenant": tenant, "key": key, "claim": token, "digest": digest, "created_at": now}
    statement = insert(session, IdempotencyKey).values(**values).on_conflict_do_nothing()
    return session.scalar(statement.returning(IdempotencyKey.key)) is not None


def find(session: Session, tenant: str, key: str) -> IdempotencyKey | None:
    """The key's row; None if there is none."""
    return session.get(IdempotencyKey, (tenant, key))


def store(session: Session, tenant: str, key: str, token: str, answer: dict[str, Any]) -> bool:
    """Store the response ``answer`` (`status`, `body`, `headers`) under a key; False if this token lost the key."""
    statement = (
        update(IdempotencyKey)
        .where(IdempotencyKey.tenant == tenant, IdempotencyKey.key == key, IdempotencyKey.claim == token)
        .values(**answer)
    )
    return cast("CursorResult[Any]", session.execute(statement)).rowcount == 1


def release(session: Session, tenant: str, key: str, token: str) -> None:
    """Delete the key of a failed request, if this token still holds it and no response is stored."""
    _delete(session, tenant, key, token, None)


def forget(session: Session, row: IdempotencyKey) -> None:
    """Delete a key whose time is over, unless it has changed since ``row`` was read.

    On PostgreSQL the slow request that holds it may store its response meanwhile; then this response stays.
    """
    _delete(session, row.tenant, row.key, row.claim, row.status)


def _delete(session: Session, tenant: str, key: str, token: str, status: int | None) -> None:
    own = (IdempotencyKey.tenant == tenant, IdempotencyKey.key == key, IdempotencyKey.claim == token)
    statement = delete(IdempotencyKey).where(*own, IdempotencyKey.status.is_not_distinct_from(status))
    session.execute(statement.execution_options(synchronize_session=False))


def purge(session: Session, before: datetime) -> None:
    """Delete keys of all tenants created before ``before``, without commit."""
    session.execute(delete(IdempotencyKey).where(IdempotencyKey.created_at < before))


# The dependency that makes a POST idempotent under the header `Idempotency-Key`.
#
# In an endpoint that creates something:
#
#     @router.post("/workloads/{name}/models", status_code=202)
#     def fit(name: Slug, body: FitRequest, once: IdempotentPost, database: ...) -> Response:
#         return once.run(lambda record: service.request_fit(database, name, body, record), status=202)
#
# and in its service, inside the unit of work that creates, as the last thing before its end:
#
#     def request_fit(database, name, body, record: Record = no_record) -> JobView:
#         with database.session() as session:
#             view = ...
#             record(session, view)          # the answer is kept in the same transaction
#         return view
#
# `record` also takes `status` and `headers` where they differ from those given to `run` (e.g. 200 for a workload that
# was there before). Without the header all this costs nothing. With it: the same key and the same request again gives
# the stored answer (with `Idempotent-Replayed: true`); the same key with another request is 422; while the first is in
# flight it is 409. A request that fails leaves its key free.
#
# A streamed body cannot be hashed beforehand: use `IdempotentUpload` and pass `content=<sha256 of the body>` to `run`.


logger = logging.getLogger(__name__)

HEADER = "Idempotency-Key"
POINTER = f"/header/{HEADER}"


class Record(Protocol):
    """Function that stores the response of a creating request in the session that creates."""

    def __call__(
        self, session: Session, body: Any, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Store the response, if there is a key; raises Conflict if a repeated request has taken over the key."""
        ...


def no_record(
    session: Session, body: Any, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> None:
    """Do nothing; the default of services' parameter ``record``."""


class Once:
    """One request with its idempotency key, or without one (None)."""

    status: int
    headers: dict[str, str]
    finish: Callable[[dict[str, Any]], dict[str, Any]] | None

    def __init__(self, database: Database, settings: Settings, tenant: str, key: str | None, digest: str) -> None:
        self.database = database
        self.settings = settings
        self.key = key
        self.tenant = tenant
        self.digest = digest
        self.token = uuid4().hex
        self.has_record = False

    def run(
        self,
        work: Callable[[Record], Any],
        *,
        status: int = 201,
        headers: Mapping[str, str] | None = None,
        content: str = "",
        finish: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> Response:
        """Run ``work`` once per key and respond with its result (a Pydantic model or JSON), or with the stored
        response.

        ``content``: hash of a streamed body. ``finish`` adds parts that must not be stored, such as a secret, to any
        response.

        Raises:
            Conflict, Invalid: the first request with this key is in flight, or was another request.
            Exception: whatever ``work`` raises; the key is free again then.
        """
        self.finish = finish
        self.status, self.headers = status, dict(headers or {})
        if self.key is None:
            return self._respond(work(self._record))
        self.digest = hashlib.sha256(f"{self.digest} {content}".encode()).hexdigest()
        stored = self._claim(self.key)
        if stored is not None:
            replayed = {**(stored.headers or {}), "Idempotent-Replayed": "true"}
            return self._json((stored.body or {}).get("answer"), cast("int", stored.status), replayed)
        try:
            body = work(self._record)
            if not self.has_record:  # the work kept nothing itself; its own transactions are repeatable
                with self.database.session() as session:
                    self._record(session, body)
        except BaseException:
            self._release(self.key)
            raise
        return self._respond(body)

    def _release(self, key: str) -> None:
        """Free the key; if the database is unreachable, it becomes free after `idempotency_claim_seconds`."""
        try:
            with self.database.session(in_time=False) as session:
                release(session, self.tenant, key, self.token)
        except SQLAlchemyError as error:
            logger.warning("%s %r stays in flight for a while: %s", HEADER, key, error)

    def _respond(self, body: Any) -> Response:
        return self._json(jsonable_encoder(body), self.status, self.headers)

    def _json(self, body: Any, status: int, headers: Mapping[str, str]) -> Response:
        if self.finish is None:
            return JSONResponse(body, status, headers)
        return JSONResponse(self.finish(body), status, {**headers, "Cache-Control": "no-store"})

    def _record(
        self, session: Session, body: Any, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status or self.status
        self.headers = {**self.headers, **(headers or {})}
        if self.key is None:
            return
        answer = {"status": self.status, "body": {"answer": jsonable_encoder(body)}, "headers": self.headers}
        if not store(session, self.tenant, self.key, self.token, answer):
            raise Conflict(f"{HEADER} {self.key!r} was taken over by a repeat of this request")
        self.has_record = True

    def _claim(self, key: str) -> IdempotencyKey | None:
        """Claim the key, or return the row with its stored response; raises Conflict if the first request with this key
        is in flight, and Invalid if it was another request."""
        with self.database.session() as session:
            now = database_time(session)
            if claim(session, self.tenant, key, self.token, self.digest, now):
                return None
            row = find(session, self.tenant, key)
            if row is not None and not self._stale(row, now):
                if row.digest != self.digest:
                    message = "was used with another request"
                    raise Invalid(f"{HEADER} {self.key!r} {message}", errors=[FieldError(POINTER, message, self.key)])
                if row.status is None:
                    raise self._in_flight()
                return row
            if row is not None:
                forget(session, row)
            if not claim(session, self.tenant, key, self.token, self.digest, now):
                raise self._in_flight()
            return None

    def _stale(self, row: IdempotencyKey, now: datetime) -> bool:
        settings = self.settings
        patience = settings.idempotency_claim_seconds if row.status is None else settings.idempotency_seconds
        return row.created_at < now - timedelta(seconds=patience)

    def _in_flight(self) -> Conflict:
        return Conflict(f"the first request under {HEADER} {self.key!r} is still in flight", retry_after=1)


Key = Annotated[
    str | None,
    Header(
        alias=HEADER,
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="Chosen by the client: a request repeated with the same key runs once and gets the same response.",
    ),
]


def _once(request: Request, key: str | None, body: bytes) -> Once:
    about = f"{request.method} {request.url.path}?{request.url.query} ".encode()
    digest = hashlib.sha256(about + body).hexdigest() if key is not None else ""
    tenant = request.scope["caller"].tenant
    return Once(request.app.state.database, request.app.state.settings, tenant, key, digest)


async def _post(request: Request, key: Key = None) -> Once:
    return _once(request, key, await request.body())


async def _upload(request: Request, key: Key = None) -> Once:
    return _once(request, key, b"")


IdempotentPost = Annotated[Once, Depends(_post)]
"""Dependency of a creating POST whose body is read before."""

IdempotentUpload = Annotated[Once, Depends(_upload)]
"""Dependency of a creating POST whose body is streamed; pass its hash to `run(content=…)`."""
