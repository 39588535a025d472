"""HTTP endpoints of samples, and their export in formats that can be uploaded again."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import FastAPI, Header, Query, Request, Response, status
from fastapi.responses import StreamingResponse

from app.database import tables
from app.database.engine import Database
from app.errors import FieldError, Invalid, NotAcceptable, TooLarge, TooManyRequests, UnsupportedMedia
from app.http.dependencies import (
    FromDatabase,
    FromSettings,
    NounRouter,
    Tenant,
    UtcTime,
    WorkloadName,
    command,
    problems,
)
from app.http.idempotency import IdempotentUpload, Once
from app.http.pagination import Page, PageRequest, Paging, join_pieces, page, stream_page
from app.http.streams import PiecewiseResponse
from app.kinds.contract.samples import FILE, Export, Format, SampleCodec
from app.kinds.registry import AnyExecution
from app.samples import service
from app.samples.body import EXPORTS, FORMATS, Body
from app.samples.intake import StoredExecution, UploadRead

router = NounRouter("samples")
PAGE = 100
JSON = "application/json"
PIECES = 1000


class Executions(Page[AnyExecution | StoredExecution]):
    """A page of executions."""


UPLOADS_AT_ONCE, UPLOADS_WAITING = 4, 64
"""Largest numbers of one tenant's uploads that are read, and that wait."""
SPOOL_BYTES = 1 << 20
RETRY_SECONDS = 10


def _media(formats: Mapping[str, Format | None]) -> dict[str, Any]:
    """OpenAPI media types with schema and example of each format."""
    media_types: dict[str, Any] = {}
    for media, form in formats.items():
        media_types[media] = {"schema": dict(FILE) if form is None else dict(form.schema)}
        if form is not None and form.example is not None:
            media_types[media]["example"] = form.example
    return media_types


_LAST_CSV = dict(sorted(FORMATS.items(), key=lambda item: item[0] == "text/csv"))
"""Generated clients send a file as the last of the media types."""
_BODY: dict[str, Any] = {"required": True, "content": _media(_LAST_CSV)}
Execution = Annotated[
    str | None, Query(max_length=255, description="Name of one execution; for an uploaded trace, the name to give it.")
]


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    operation_id="upload_samples",
    response_model=UploadRead,
    summary="Upload samples",
    openapi_extra={"requestBody": _BODY} | command("samples create"),
    responses=problems(
        400,
        404,
        413,
        415,
        _400="The body ended early; executions accepted before that are stored.",
        _422="Nothing was accepted; `errors` names line and field of each rejected execution.",
    ),
)
async def upload(
    workload: WorkloadName,
    request: Request,
    database: FromDatabase,
    settings: FromSettings,
    tenant: Tenant,
    once: IdempotentUpload,
    execution: Execution = None,
    skip_bad: Annotated[
        bool,
        Query(description="Skip and report invalid lines of a batch log instead of rejecting it."),
    ] = False,
) -> UploadRead | Response:
    """Upload executions as JSON, newline-delimited JSON or CSV, or a trace, optionally with `Content-Encoding: gzip`.

    The body is streamed, whatever its size. Each execution is stored entirely or not at all: *accepted*, *duplicate*
    (already stored with the same content) or *rejected* with line, field and reason. The rows of an execution must be
    contiguous, with iterations counting up without gaps. An interrupted upload can simply be sent again.

    Which media types are accepted depends on the workload's kind. A trace, plain or gzipped, becomes one execution; the
    response says what it lacks and what looks wrong in it.\f
    Raises TooLarge, UnsupportedMedia, Invalid if nothing was accepted, NotFound without such a workload."""
    body = Body(request.receive)
    limiter = _limiter(request.app, tenant)
    upload = service.Upload(
        media_type=_media_type(request),
        name=execution,
        chunks=body.chunks(),
        check=body.check,
        gzip=_gzip(request),
        limit_bytes=settings.upload_limit_bytes,
        json_limit_bytes=settings.json_limit_bytes,
        trace_limit_bytes=settings.trace_limit_bytes,
        skip_bad=skip_bad,
    )
    limit = upload.largest
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > limit:
        message = f"must be at most {limit}"
        raise TooLarge(
            f"the body has {int(length):,} bytes; at most {limit:,} are accepted as {upload.media_type}",
            errors=[FieldError("/header/content-length", message, int(length))],
        )
    store = functools.partial(service.upload, database, tenant, workload)
    work = functools.partial(store, upload) if once.key is None else functools.partial(_once, once, store, upload)
    feeding = asyncio.create_task(body.feed())
    try:
        return await anyio.to_thread.run_sync(work, limiter=limiter)
    finally:
        feeding.cancel()
        body.abandon()


def _once(once: Once, store: Callable[[service.Upload], UploadRead], upload: service.Upload) -> Response:
    """Run an upload under an idempotency key; the body is spooled to disk first, to hash it (SHA-256)."""
    digest = hashlib.sha256()
    with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as spool:
        for chunk in upload.chunks:
            digest.update(chunk)
            spool.write(chunk)
        spool.seek(0)
        again = upload._replace(chunks=iter(functools.partial(spool.read, SPOOL_BYTES), b""))
        return once.run(lambda _: store(again), status=status.HTTP_201_CREATED, content=digest.hexdigest())


def _limiter(app: FastAPI, tenant: str) -> anyio.CapacityLimiter:
    """The tenant's limiter of upload threads, so that one tenant's slow uploads delay no other tenant.

    Raises:
        TooManyRequests: too many uploads of the tenant wait.
    """
    if not hasattr(app.state, "upload_limiters"):
        app.state.upload_limiters = {}
    limiters: dict[str, anyio.CapacityLimiter] = app.state.upload_limiters
    limiter = limiters.setdefault(tenant, anyio.CapacityLimiter(UPLOADS_AT_ONCE))
    if limiter.statistics().tasks_waiting >= UPLOADS_WAITING:
        raise TooManyRequests(
            f"tenant {tenant} has {UPLOADS_AT_ONCE} uploads in progress and {UPLOADS_WAITING} queued, the maximum; "
            "nothing was stored, repeat the request",
            "uploads",
            retry_after=RETRY_SECONDS,
        )
    return limiter


def _media_type(request: Request) -> str:
    text = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if text in FORMATS:
        return text
    raise _unsupported_media("content-type", text, ", ".join(FORMATS))


def _gzip(request: Request) -> bool:
    text = request.headers.get("content-encoding", "identity").strip().lower()
    if text not in ("gzip", "identity"):
        raise _unsupported_media("content-encoding", text, "gzip, identity")
    return text == "gzip"


def _unsupported_media(header: str, text: str, accepted: str) -> UnsupportedMedia:
    message = f"must be one of {accepted}"
    return UnsupportedMedia(
        f"{header} {text!r} isn't accepted: {message}", errors=[FieldError(f"/header/{header}", message, text)]
    )


@router.get(
    "",
    operation_id="list_samples",
    openapi_extra={
        "x-cli": {
            "samples list": {
                "help": "List executions, oldest first.",
                "columns": ["execution", "source", "iterations", "lasted: seconds", "age: created_at"],
            },
            "samples show": {
                "help": "Show an execution with every report.",
                "arguments": ["execution"],
                "fixed": {"reports": True},
            },
            "samples export": {},
        }
    },
    summary="List or export samples",
    responses={
        200: {
            "content": _media(EXPORTS),
        },
        **problems(404, 406),
    },
    response_model=Executions,
)
def list_executions(
    workload: WorkloadName,
    request: Request,
    database: FromDatabase,
    tenant: Tenant,
    paging: Paging,
    reports: Annotated[bool, Query(description="Whether to include every iteration.")] = False,
    execution: Execution = None,
    accept: Annotated[
        str, Header(description="`text/csv` exports all samples; traces are exported one at a time.")
    ] = JSON,
) -> Page[AnyExecution | StoredExecution] | StreamingResponse:
    """List executions, oldest first, page by page; or export them, depending on `Accept`.

    `text/csv` exports all iterations together; traces are exported one at a time, named by `execution`.\f
    Raises NotAcceptable for a format the kind lacks, Invalid for two executions in it or a foreign cursor, NotFound."""
    media_type = preferred_format(accept, EXPORTS)
    if media_type is not None:
        return PiecewiseResponse(export(database, tenant, workload, media_type, execution), media_type)
    answer = stream_page if reports else page
    return answer(request, *service.list_executions(database, tenant, workload, paging, execution, reports=reports))


@router.deletes("", 409, _409="A job that may read the samples has not ended; it is named.")
def delete(
    workload: WorkloadName,
    database: FromDatabase,
    tenant: Tenant,
    execution: Execution = None,
    before: Annotated[UtcTime | None, Query(description="Delete executions stored before this time.")] = None,
) -> None:
    """Delete one execution by name, or all stored before a given time; exactly one of the two is required.\f
    Raises NotFound, Invalid for neither or both, Conflict if a job may read them."""
    service.delete(database, tenant, workload, execution, before)


# Export, page by page.


def preferred_format(accept: str, exports: Iterable[str]) -> str | None:
    """The export format that an ``Accept`` header prefers to JSON; None: JSON."""
    qualities = {JSON: 0.0, **dict.fromkeys(exports, 0.0)}
    for part in accept.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name in qualities:
            qualities[name] = _quality(parameters)
    best = max(qualities, key=lambda name: qualities[name])
    return best if qualities[best] > qualities[JSON] else None


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q" and re.fullmatch(r"[01](\.[0-9]{0,3})?", value.strip()):
            return float(value)
    return 1.0


def export(database: Database, tenant: str, name: str, media_type: str, execution: str | None = None) -> Iterator[str]:
    """Yield a workload's executions, or a single one, as pieces of text in ``media_type``, reading page by page.

    Raises:
        NotAcceptable: the workload's kind has no such export.
        NotFound: there is no such workload or execution.
        Invalid: the format holds one execution, and there is none or more.
    """
    result, codec = service.readable(database, tenant, name, PageRequest(PAGE), execution)
    how = codec.exports.get(media_type)
    if how is None:
        accepted = ", ".join([*codec.exports, JSON])
        message = f"must be one of {accepted} for this kind of workload"
        raise NotAcceptable(f"accept: {message}", errors=[FieldError("/header/accept", message, media_type)])
    if how.single and len(result.rows) != 1:
        many = "more than 100" if result.cursor else str(len(result.rows))
        message = f"must name one execution: {media_type} holds one, and the workload has {many}"
        raise Invalid(f"execution {message}", errors=[FieldError("/query/execution", message, None)])
    pages = _pages(database, tenant, name, execution)
    return join_pieces(_text(how, codec, chain([next(pages)], pages)))


def _pages(database: Database, tenant: str, name: str, execution: str | None) -> Iterator[list[tables.Execution]]:
    cursor: str | None = None
    while True:
        executions = service.export_executions(database, tenant, name, PageRequest(PAGE, cursor), execution)
        cursor = executions.cursor
        yield executions.rows
        if cursor is None:
            return


def _text(how: Export, codec: SampleCodec, pages: Iterable[list[tables.Execution]]) -> Iterator[str]:
    yield how.head(codec)
    for rows in pages:
        for execution in rows:
            pieces = how.body(codec, execution)
            while text := "".join(islice(pieces, PIECES)):
                yield text
