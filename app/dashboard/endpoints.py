"""The dashboard's routes: pages over the services, event streams that make pages reload parts, examples, sign-in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse

from app.agents.schemas import LARGEST_VERSION
from app.dashboard import (
    compare,
    export,
    job_page,
    judged,
    rendering,
    repository,
    run_page,
    spec_page,
    tables,
    workload_page,
)
from app.dashboard.lists import compiler_of, overview
from app.dashboard.rendering import page
from app.dashboard.run_page import Opened
from app.database.engine import Database
from app.domain_models import service as domain_models
from app.domain_models.service import FitRequest
from app.errors import NotFound
from app.http.caller import Caller
from app.http.dependencies import FromCaller, FromDatabase, FromSettings, FromStaleness, Tenant, WorkloadName
from app.http.streams import PiecewiseResponse, run_in_stream_thread
from app.jobs import service as jobs
from app.jobs.service import FINAL_STATES
from app.keys import service as secrets
from app.keys.access import LONGEST, NAME
from app.keys.ring import KeyRing
from app.kinds.contract.inputs import LARGEST_ITERATION
from app.kinds.registry import DEFAULT, KINDS, parse_spec
from app.runs.service import load
from app.samples import service as samples
from app.settings import Settings
from app.workloads import service as workloads

router = APIRouter(include_in_schema=False)
router.include_router(rendering.router)
router.include_router(tables.router)
router.include_router(compare.router)
router.include_router(export.router)
router.include_router(spec_page.router)
Identifier = Annotated[str, Path(max_length=64)]
MOST_FIELDS = 4
WRONG = "This is no key of this service, or it was revoked or has expired."
LEAST_SECONDS = 1.0
"""Shortest time between two events."""
KEEP_ALIVE_SECONDS = 15.0
CHANGED = "event: changed\ndata: .\n\n"
Look = Callable[[], tuple[Hashable, bool]]


@router.get("/")
def home(database: FromDatabase, tenant: Tenant, rule: FromStaleness) -> HTMLResponse:
    """The home page: workloads, notices and the latest runs; without any workload, the first steps."""
    result = overview(database, tenant, rule)
    return page("home.html", section="home", result=result, examples=example_names())


@router.get("/ui/workloads/{workload}")
def workload(
    request: Request, workload: WorkloadName, database: FromDatabase, tenant: Tenant, rule: FromStaleness
) -> HTMLResponse:
    """The page of a workload; raises NotFound (404) if there is none of this name."""
    result = workload_page.page(database, tenant, workload, compiler_of(request, tenant), rule)
    return page("workload.html", section="home", result=result)


@router.get("/ui/workloads/{workload}/agents/{version}")
def agent(
    request: Request,
    workload: WorkloadName,
    version: Annotated[int, Path(ge=1, le=LARGEST_VERSION)],
    database: FromDatabase,
    tenant: Tenant,
) -> HTMLResponse:
    """The page of an agent; raises NotFound (404) if there is no such workload or version."""
    result = judged.page(database, tenant, workload, version, compiler_of(request, tenant))
    return page("agent.html", section="home", result=result)


@router.get("/ui/workloads/{workload}/changes")
def workload_changes(
    request: Request, workload: WorkloadName, database: FromDatabase, settings: FromSettings, caller: FromCaller
) -> StreamingResponse:
    """Event stream: ``changed`` when a workload has another model, agent, champion or live runs; raises NotFound."""

    def look() -> tuple[object, bool]:
        with database.reading() as session:
            return repository.page_fingerprint(session, workloads.require(session, caller.tenant, workload).id), False

    look()
    return changes(request, settings, caller, look)


@router.get("/ui/runs/{run}")
def run(
    request: Request,
    run: Identifier,
    database: FromDatabase,
    tenant: Tenant,
    rule: FromStaleness,
    part: bool = False,
    every: bool = False,
    since: Annotated[int | None, Query(ge=0, le=LARGEST_ITERATION)] = None,
) -> HTMLResponse:
    """The page of a run, or with ``part`` only its changing parts; raises NotFound (404) without such a run.

    ``every``, ``since``: which decisions are shown: each one, instead of those that change the allocation; from this
    iteration on, instead of the newest.
    """
    result = run_page.page(database, tenant, run, compiler_of(request, tenant), rule, Opened(every, since))
    return page("run_live.html" if part else "run.html", section="runs", result=result, part=part)


@router.get("/ui/runs/{run}/decisions")
def decisions(
    run: Identifier,
    database: FromDatabase,
    tenant: Tenant,
    rule: FromStaleness,
    before: Annotated[int | None, Query(ge=0, le=LARGEST_ITERATION)] = None,
    every: bool = False,
) -> HTMLResponse:
    """Rows (HTML) of a run's decisions before iteration ``before`` (None: the newest), each one if ``every``, else
    those that change the allocation; raises NotFound (404) without such a run."""
    with database.reading() as session:
        lines, older = run_page.decisions(session, load(session, tenant, run, rule), before, Opened(every))
    since = older or 0 if every or before is not None else None
    return page("decisions.html", decisions=lines, older=older, every=every, since=since, id=run, beside=True)


@router.get("/ui/runs/{run}/others")
def others(
    request: Request, run: Identifier, database: FromDatabase, tenant: Tenant, rule: FromStaleness
) -> HTMLResponse:
    """HTML part of a run's page: what other policies would have done; loaded once it is opened; raises NotFound."""
    return page("others.html", result=run_page.hindsight(database, tenant, run, compiler_of(request, tenant), rule))


@router.get("/ui/runs/{run}/changes")
def run_changes(
    request: Request,
    run: Identifier,
    database: FromDatabase,
    settings: FromSettings,
    caller: FromCaller,
    rule: FromStaleness,
) -> StreamingResponse:
    """Event stream: ``changed`` when a run has a new report or another outcome, ``ended`` at its end; raises
    NotFound."""

    def look() -> tuple[object, bool]:
        with database.reading() as session:
            result = load(session, caller.tenant, run, rule)
            return (result.run.next_iteration, result.outcome), result.run.state != "running"

    look()
    return changes(request, settings, caller, look)


@router.get("/ui/jobs/{job}")
def job(job: Identifier, database: FromDatabase, tenant: Tenant, part: bool = False) -> HTMLResponse:
    """The page of a job, or with ``part`` only its changing parts; raises NotFound (404) without such a job."""
    result = job_page.page(database, tenant, job)
    return page("job_live.html" if part else "job.html", section="jobs", result=result)


@router.get("/ui/jobs/{job}/changes")
def job_changes(
    request: Request, job: Identifier, database: FromDatabase, settings: FromSettings, caller: FromCaller
) -> StreamingResponse:
    """Event stream: ``changed`` when a job's state or progress changes, ``ended`` at its end; raises NotFound."""

    def look() -> tuple[object, bool]:
        result = jobs.get(database, caller.tenant, job)
        return (result.state, result.progress, result.eta_seconds), result.state in FINAL_STATES

    look()
    return changes(request, settings, caller, look)


def example_names() -> list[tuple[str, str]]:
    """Names of kinds with summaries of their examples, the default kind first."""
    names = sorted(KINDS, key=lambda name: (name != DEFAULT, name))
    return [(name, KINDS[name].example.summary) for name in names]


@router.post("/ui/examples/{kind}")
def load_example(
    kind: Annotated[str, Path(max_length=63)], database: FromDatabase, settings: FromSettings, tenant: Tenant
) -> Response:
    """Register a kind's example, queue its fit, and redirect to its workload's page; raises NotFound or Conflict."""
    name = _load_example(database, tenant, settings, kind)
    return Response(status_code=204, headers={"HX-Redirect": f"/ui/workloads/{name}"})


def _load_example(database: Database, tenant: str, settings: Settings, kind: str) -> str:
    """Register a kind's example, upload its samples and request a fit; returns its workload's name.

    Repeating it changes nothing.

    Raises:
        NotFound: there is no such kind.
        Conflict: another workload has its name.
    """
    if kind not in KINDS:
        raise NotFound(f"no kind {kind!r}; installed: {', '.join(KINDS)}")
    example = KINDS[kind].example
    spec = parse_spec({"kind": kind, **example.spec})
    name = workloads.register(database, tenant, spec).name
    media, body = max(example.samples.items(), key=lambda sample: len(sample[1]))
    named = KINDS[kind].samples.formats[media].named
    stored = samples.upload(
        database,
        tenant,
        name,
        samples.Upload(
            media_type=media,
            name="example" if named else None,
            chunks=iter([body]),
            gzip=False,
            limit_bytes=settings.upload_limit_bytes,
            json_limit_bytes=settings.json_limit_bytes,
        ),
    )
    if stored.accepted and KINDS[kind].simulated:
        domain_models.request_fit(database, tenant, name, FitRequest())
    return name


# Sign-in with a key, which the browser keeps in a cookie until it is closed.


@router.get("/ui/sign-in")
async def sign_in_form(request: Request) -> Response:
    """The sign-in form as HTML; if no key is required, it says so."""
    state = request.app.state
    return page(
        "sign_in.html",
        section="",
        wrong="",
        key_required=bool(state.keys.any or state.settings.authentication == "required" or state.settings.oidc_issuer),
        signed_in=NAME in request.cookies,
    )


@router.post("/ui/sign-in")
async def sign_in(request: Request) -> Response:
    """Store a valid key in a cookie and redirect to the home page; for any other text show the form with 403."""
    key = _key((await request.body()).decode("utf-8", "replace"))
    if len(key) > LONGEST // 2 or not await _is_valid(request.app.state.keys, key):
        return page("sign_in.html", status=403, section="", wrong=WRONG, key_required=True, signed_in=False)
    answer = RedirectResponse("/", status_code=303)
    secure = request.url.scheme == "https"
    answer.set_cookie(NAME, key, httponly=True, samesite="strict", secure=secure, path="/")
    return answer


def _key(body: str) -> str:
    """The key in a form's body; empty if the form has too many fields."""
    try:
        return parse_qs(body, max_num_fields=MOST_FIELDS).get("key", [""])[0].strip()
    except ValueError:
        return ""


async def _is_valid(keys: KeyRing, text: str) -> bool:
    secret = secrets.parse(text)
    if secret is None or secret.of_run:
        return False
    if keys.get(secret.id) is None:
        await keys.look_again()
    entry = keys.get(secret.id)
    right = secrets.matches(secret.secret, entry and entry.digest)
    return right and entry is not None and not entry.has_expired


@router.post("/ui/sign-out")
async def sign_out() -> Response:
    """Delete the sign-in cookie."""
    answer = RedirectResponse("/ui/sign-in", status_code=303)
    answer.delete_cookie(NAME, httponly=True, samesite="strict", path="/")
    return answer


# Server-sent events that tell pages to reload changed parts.


def changes(request: Request, settings: Settings, caller: Caller, find: Look) -> StreamingResponse:
    """Server-sent events of a page, which may be out of date when it connects. ``changed`` is sent first, and whenever
    the first value of ``find()`` changes; ``ended`` once its second is True. Sending them raises TooManyRequests if the
    tenant has too many streams open."""
    stream = _stream(request, settings, caller, find)
    return PiecewiseResponse(stream, "text/event-stream", events=True, stored=False)


async def _stream(request: Request, settings: Settings, caller: Caller, find: Look) -> AsyncIterator[str]:
    ends = spoken = time.monotonic()
    ends += settings.stream_seconds
    before, over = await run_in_stream_thread(find)
    yield "retry: 2000\n\n"
    if not over:
        yield CHANGED
    while not over and time.monotonic() < ends and request.app.state.keys.holds(caller.key):
        await asyncio.sleep(max(settings.stream_poll_seconds, LEAST_SECONDS))
        if await request.is_disconnected():
            return
        result, over = await run_in_stream_thread(find)
        if result != before:
            before, spoken = result, time.monotonic()
            yield CHANGED
        elif time.monotonic() - spoken > KEEP_ALIVE_SECONDS:
            spoken = time.monotonic()
            yield ": still there\n\n"
    if over:
        yield "event: ended\ndata: .\n\n"
