"""HTTP endpoints of jobs: list, read, follow, cancel."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Literal

from fastapi import Header, Path, Query, Request, Response, status
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from app.database.engine import Database
from app.errors import FieldError, Invalid
from app.http.caller import Caller
from app.http.dependencies import FromCaller, FromDatabase, FromSettings, NounRouter, Tenant, command, problems
from app.http.idempotency import IdempotentPost
from app.http.pagination import NEWEST, ByAge, Page, Paging, page
from app.http.streams import PiecewiseResponse, run_in_stream_thread
from app.jobs import service
from app.jobs.service import JobRead, JobState
from app.settings import Settings
from app.workloads.search import SEARCH

router = NounRouter("jobs")

JobId = Annotated[str, Path(alias="id", max_length=64, description="The job's id.")]
KEEP_ALIVE_SECONDS = 15.0


@router.lists(
    404,
    columns=[
        *("id", "type", "workload", "state", "progress"),
        *("took: started_at..finished_at", "age: created_at", "error: error.detail"),
    ],
    wide=["priority", "attempts", "left: eta_seconds", "result"],
)
def list_jobs(
    request: Request,
    paging: Paging,
    database: FromDatabase,
    tenant: Tenant,
    workload: Annotated[str | None, Query(description="Filter by workload.")] = None,
    state: Annotated[JobState | None, Query(description="Filter by state.")] = None,
    job_type: Annotated[
        Literal["fit", "train", "evaluate"] | None, Query(alias="type", description="Filter by type.")
    ] = None,
    search: Annotated[
        str | None,
        Query(pattern=SEARCH, description="First characters of the job's id (at least 4) or of its workload's name."),
    ] = None,
    sort: ByAge = NEWEST,
) -> Page[JobRead]:
    """List jobs, newest first unless sorted otherwise.\f Raises NotFound, Invalid for a foreign cursor."""
    newest = sort == NEWEST
    result, names = service.list_jobs(database, tenant, paging, workload, state, job_type, search, descending=newest)
    return page(request, result, lambda job: service.to_response(job, names[job.workload_id]))


@router.get(
    "/{id}",
    operation_id="read_job",
    openapi_extra={"x-cli": {"job show": {}, "job watch": {"help": "Follow a job until it ends.", "result": ""}}},
    summary="Read a job",
    responses=problems(404),
)
def read_job(job: JobId, database: FromDatabase, tenant: Tenant) -> JobRead:
    """Get a job with its state, progress and result.\f Raises NotFound if there is none."""
    return service.get(database, tenant, job)


@router.deletes("/{id}", 409, _409="It has not ended, or something active depends on it; the cause is named.")
def delete_job(job: JobId, database: FromDatabase, tenant: Tenant) -> None:
    """Delete a job that has ended, with its events and trials; its results are kept.\f
    Raises NotFound, or Conflict if it has not ended or is needed."""
    service.delete(database, tenant, job)


@router.post(
    "/{id}/cancel",
    operation_id="cancel_job",
    openapi_extra=command("job cancel"),
    summary="Cancel a job",
    responses=problems(404, 409),
)
def cancel_job(job: JobId, database: FromDatabase, tenant: Tenant) -> JobRead:
    """Cancel a job: at once if it waits; one that runs stops at its next chunk, or is ended after 4 s.

    Repeating changes nothing.\f
    Raises NotFound, Conflict if it has succeeded or failed."""
    return service.cancel(database, tenant, job)


@router.post(
    "/{id}/retry",
    status_code=status.HTTP_202_ACCEPTED,
    operation_id="retry_job",
    openapi_extra=command("job retry"),
    summary="Retry a job",
    response_model=JobRead,
    responses=problems(404, 409, _409="It has not failed, nor been cancelled."),
)
def retry_job(job: JobId, database: FromDatabase, tenant: Tenant, once: IdempotentPost) -> Response:
    """Queue a job with the request of one that failed or was cancelled; that one stays as it is.\f
    Raises NotFound, Conflict if it hasn't failed, and what queueing such a job raises."""
    return once.run(lambda record: service.retry(database, tenant, job, record), status=status.HTTP_202_ACCEPTED)


@router.get(
    "/{id}/events",
    operation_id="follow_job",
    summary="Follow a job",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events, each with an id, until the job ends. Resume with `Last-Event-ID`.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **problems(404),
    },
)
async def follow_job(
    request: Request,
    job: JobId,
    database: FromDatabase,
    settings: FromSettings,
    caller: FromCaller,
    last_event_id: Annotated[str | None, Header(description="Id of the last event received.")] = None,
) -> StreamingResponse:
    """Stream a job's progress as server-sent events, from the beginning or after `Last-Event-ID`.\f
    Raises NotFound, Invalid for another `Last-Event-ID`, TooManyRequests for too many streams."""
    after = _position(last_event_id)
    await run_in_threadpool(service.events, database, caller.tenant, job, after)
    stream = _stream(request, database, settings, caller, job, after)
    return PiecewiseResponse(stream, "text/event-stream", events=True, stored=False)


def _position(last_event_id: str | None) -> int:
    if not last_event_id:
        return 0
    if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 10):
        message = "must be the id of an event of this job"
        raise Invalid(f"Last-Event-ID {message}", errors=[FieldError("/header/Last-Event-ID", message, last_event_id)])
    return int(last_event_id)


async def _stream(
    request: Request, database: Database, settings: Settings, caller: Caller, job: str, after: int
) -> AsyncIterator[str]:
    ends = time.monotonic() + settings.stream_seconds
    spoken = time.monotonic()
    keys = request.app.state.keys
    while time.monotonic() < ends and keys.holds(caller.key) and not await request.is_disconnected():
        result, complete = await run_in_stream_thread(partial(service.events, database, caller.tenant, job, after))
        for event in result:
            after = event.sequence
            data = {**event.data, "at": event.created_at.isoformat()}
            yield f"id: {event.sequence}\nevent: {event.data['state']}\ndata: {json.dumps(data)}\n\n"
        if complete:
            return
        if result:
            spoken = time.monotonic()
        elif time.monotonic() - spoken > KEEP_ALIVE_SECONDS:
            spoken = time.monotonic()
            yield ": still there\n\n"
        await asyncio.sleep(settings.stream_poll_seconds)
