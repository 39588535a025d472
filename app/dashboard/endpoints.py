"""The dashboard's routes: pages over the services, and event streams that make pages reload parts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from app.agents.schemas import LARGEST_VERSION
from app.dashboard import (
    compare,
    example,
    export,
    job_page,
    judged,
    rendering,
    repository,
    run_page,
    sign_in,
    spec_page,
    tables,
    workload_page,
)
from app.dashboard.lists import compiler_of, overview
from app.dashboard.rendering import page
from app.dashboard.run_page import Opened
from app.dashboard.streams import changes
from app.http.dependencies import FromCaller, FromDatabase, FromSettings, FromStaleness, Tenant, WorkloadName
from app.jobs import service as jobs
from app.jobs.service import FINAL_STATES
from app.kinds.contract.inputs import LARGEST_ITERATION
from app.runs.service import load
from app.workloads import service as workloads

router = APIRouter(include_in_schema=False)
router.include_router(rendering.router)
router.include_router(tables.router)
router.include_router(compare.router)
router.include_router(export.router)
router.include_router(spec_page.router)
router.include_router(sign_in.router)
Identifier = Annotated[str, Path(max_length=64)]


@router.get("/")
def home(database: FromDatabase, tenant: Tenant, rule: FromStaleness) -> HTMLResponse:
    """The home page: workloads, notices and the latest runs; without any workload, the first steps."""
    result = overview(database, tenant, rule)
    return page("home.html", section="home", result=result, examples=example.example_names())


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
    """Event stream: ``changed`` when a workload has another model, agent, champion or live runs."""

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
    """HTML part of a run's page: what other policies would have done; loaded once it is opened."""
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
    """Event stream: ``changed`` when a run has a new report or another outcome, ``ended`` at its end."""

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
    """Event stream: ``changed`` when a job's state or progress changes, ``ended`` at its end."""

    def look() -> tuple[object, bool]:
        result = jobs.get(database, caller.tenant, job)
        return (result.state, result.progress, result.eta_seconds), result.state in FINAL_STATES

    look()
    return changes(request, settings, caller, look)


@router.post("/ui/examples/{kind}")
def load_example(
    kind: Annotated[str, Path(max_length=63)], database: FromDatabase, settings: FromSettings, tenant: Tenant
) -> Response:
    """Register a kind's example, queue its fit, and redirect to its workload's page; raises NotFound or Conflict."""
    name = example.load(database, tenant, settings, kind)
    return Response(status_code=204, headers={"HX-Redirect": f"/ui/workloads/{name}"})
