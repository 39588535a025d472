"""HTTP endpoints of samples."""

from __future__ import annotations

import functools
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import anyio
import anyio.from_thread
import anyio.to_thread
from fastapi import APIRouter, FastAPI, Header, Query, Request, Response, status
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from app.errors import BadRequest, FieldError, TooLarge, UnsupportedMedia
from app.http.dependencies import FromDatabase, FromSettings, Tenant, WorkloadName, problems
from app.http.idempotency.once import IdempotentUpload, Once
from app.http.pagination import Page, Paging, page
from app.samples import service
from app.samples.export import JSON, export, preferred
from app.samples.schemas import CSV_EXAMPLE, SAMPLE_EXAMPLE, SWF_EXAMPLE, ExecutionRead, UploadRead
from app.samples.shelves import EXPORTS, FORMATS

router = APIRouter(prefix="/workloads/{workload}/samples", tags=["samples"])

UPLOADS_AT_ONCE = 16
SPOOL_BYTES = 1 << 20

_SAMPLE: dict[str, Any] = {
    "type": "object",
    "required": ["execution", "reports"],
    "properties": {
        "execution": {"type": "string", "minLength": 1, "maxLength": 255},
        "reports": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["allocation", "metrics"],
                "properties": {
                    "iteration": {"type": "integer", "minimum": 0},
                    **{
                        part: {"type": "object", "additionalProperties": {"type": "number"}}
                        for part in ("allocation", "metrics", "features")
                    },
                },
            },
        },
    },
}
_FILE = {"type": "string", "format": "binary"}  # generated clients send it as it is
_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["samples"],
                "properties": {"samples": {"type": "array", "items": _SAMPLE}},
            },
            "example": {"samples": [SAMPLE_EXAMPLE]},
        },
        "application/x-ndjson": {"schema": {**_FILE, "description": "One sample per line, as JSON."}},
        "application/x-swf": {
            "schema": {**_FILE, "description": "Kind `workflow`: a batch log in Standard Workload Format."},
            "example": SWF_EXAMPLE,
        },
        "application/vnd.wfformat+json": {
            "schema": {**_FILE, "description": "Kind `workflow`: a workflow in WfFormat 1.4 or 1.5."}
        },
        "text/csv": {"schema": {**_FILE, "description": "One iteration per row."}, "example": CSV_EXAMPLE},
    },
}
Execution = Annotated[
    str | None, Query(max_length=255, description="Name of one execution; of an uploaded trace, what to call it.")
]


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    operation_id="upload_samples",
    response_model=UploadRead,
    summary="Upload samples",
    openapi_extra={"requestBody": _BODY},
    responses=problems(
        400,
        404,
        413,
        415,
        _400="The body ended early; what was accepted before is kept.",
        _422="Nothing could be accepted; `errors` names line and field of each refused execution.",
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
) -> UploadRead | Response:
    """Upload executions as JSON, newline-delimited JSON or CSV, or a trace; also with `Content-Encoding: gzip`.

    The body is read as it comes, whatever its size. Each execution is stored whole or not at all: *accepted*,
    *duplicate* (stored already with the same content) or *rejected* with line, field and reason. The rows of an
    execution stand in one block, iterations counting from 0 without gaps. An upload that broke off can simply be sent
    again.

    For a workload of kind `workflow` a body is one trace, in Standard Workload Format or WfFormat, gzip or plain, and
    becomes one execution; what it lacks and what looks wrong in it is answered.
    """
    given = service.Upload(
        media_type=_media_type(request),
        name=execution,
        chunks=_chunks(request),
        gzip=_gzip(request),
        limit_bytes=settings.upload_limit_bytes,
        json_limit_bytes=settings.json_limit_bytes,
        trace_limit_bytes=settings.trace_limit_bytes,
    )
    _check_length(request, given)
    store = functools.partial(service.upload, database, tenant, workload)
    work = functools.partial(store, given) if once.key is None else functools.partial(_once, once, store, given)
    return await anyio.to_thread.run_sync(work, limiter=_limiter(request.app))


def _once(once: Once, store: Callable[[service.Upload], UploadRead], given: service.Upload) -> Response:
    """Under an idempotency key the body is put on disk first: its digest tells whether it is the same request."""
    digest = hashlib.sha256()
    with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as spool:
        for chunk in given.chunks:
            digest.update(chunk)
            spool.write(chunk)
        spool.seek(0)
        again = given._replace(chunks=iter(functools.partial(spool.read, SPOOL_BYTES), b""))
        return once.run(lambda _: store(again), status=status.HTTP_201_CREATED, content=digest.hexdigest())


def _limiter(app: FastAPI) -> anyio.CapacityLimiter:
    """Uploads have threads of their own: however many and slow they are, other requests find theirs free."""
    if not hasattr(app.state, "upload_limiter"):
        app.state.upload_limiter = anyio.CapacityLimiter(UPLOADS_AT_ONCE)
    limiter: anyio.CapacityLimiter = app.state.upload_limiter
    return limiter


def _chunks(request: Request) -> Iterator[bytes]:
    """The body, fetched from the event loop by the thread that reads it."""
    stream = aiter(request.stream())
    end = b""
    try:
        while chunk := anyio.from_thread.run(anext, stream, end):
            yield chunk
    except ClientDisconnect as error:
        raise BadRequest("the body ended early; the execution that was being read isn't kept") from error


def _media_type(request: Request) -> str:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given in FORMATS:
        return given
    raise _unsupported("content-type", given, ", ".join(FORMATS))


def _gzip(request: Request) -> bool:
    given = request.headers.get("content-encoding", "identity").strip().lower()
    if given not in ("gzip", "identity"):
        raise _unsupported("content-encoding", given, "gzip, identity")
    return given == "gzip"


def _unsupported(header: str, given: str, accepted: str) -> UnsupportedMedia:
    message = f"must be one of {accepted}"
    return UnsupportedMedia(
        f"{header} {given!r} isn't accepted: {message}", errors=[FieldError(f"/header/{header}", message, given)]
    )


def _check_length(request: Request, given: service.Upload) -> None:
    limit = given.largest
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > limit:
        message = f"must be at most {limit}"
        raise TooLarge(
            f"the body has {int(length):,} bytes; at most {limit:,} are accepted as {given.media_type}",
            errors=[FieldError("/header/content-length", message, int(length))],
        )


@router.get(
    "",
    operation_id="list_samples",
    summary="List or export samples",
    responses={
        200: {
            "content": {
                "text/csv": {"schema": {"type": "string"}, "example": CSV_EXAMPLE},
                "application/x-swf": {"schema": {"type": "string"}, "example": SWF_EXAMPLE},
                "application/vnd.wfformat+json": {"schema": {"type": "object"}},
            }
        },
        **problems(404, 406),
    },
    response_model=Page[ExecutionRead],
)
def listed(
    workload: WorkloadName,
    request: Request,
    database: FromDatabase,
    tenant: Tenant,
    paging: Paging,
    reports: Annotated[bool, Query(description="Whether to list every iteration.")] = False,
    execution: Execution = None,
    accept: Annotated[str, Header(description="`text/csv` exports all samples; traces come one by one.")] = JSON,
) -> Page[ExecutionRead] | StreamingResponse:
    """Executions, oldest first, page by page; or exported by `Accept`.

    Samples of kind `iterative` are exported all together as `text/csv`; those of kind `workflow` one by one, named by
    `execution` where there are several, as `application/x-swf` or `application/vnd.wfformat+json`.
    """
    media_type = preferred(accept, EXPORTS)
    if media_type is not None:
        return StreamingResponse(export(database, tenant, workload, media_type, execution), media_type=media_type)
    found, shelf = service.listed(database, tenant, workload, paging, execution)
    return page(request, found, functools.partial(shelf.read, reports=reports))
