"""Lists of runs, jobs and evaluations, newest first: all, or those of a workload or in a state."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from app.dashboard import shown
from app.dashboard.chosen import Chosen, job_table, of_jobs, of_runs
from app.dashboard.rendering import page
from app.evaluations import service as evaluations
from app.http.dependencies import SLUG, FromDatabase, FromStaleness, Tenant
from app.http.pagination import PageRequest
from app.jobs.schemas import JobState
from app.kinds.contract.run_outcome import RunOutcome
from app.runs import service as runs
from app.runs.schemas import RunState

ROWS = 50

router = APIRouter(include_in_schema=False)
Cursor = Annotated[str | None, Query(max_length=1024)]
Workload = Annotated[str | None, Query(pattern=SLUG)]


@router.get("/ui/runs")
def run_list(
    database: FromDatabase,
    tenant: Tenant,
    rule: FromStaleness,
    cursor: Cursor = None,
    workload: Workload = None,
    state: RunState | None = None,
    outcome: RunOutcome | None = None,
) -> HTMLResponse:
    """Runs."""
    found = runs.listed(database, tenant, PageRequest(ROWS, cursor), rule, workload, state, outcome)
    chosen = of_runs(workload, state, outcome)
    lines = [shown.line(runs.read_listed(one)) for one in found.rows]
    return page("runs.html", section="runs", runs=lines, older=chosen.older(found.cursor), chosen=chosen)


@router.get("/ui/jobs")
def job_list(
    database: FromDatabase,
    tenant: Tenant,
    cursor: Cursor = None,
    workload: Workload = None,
    state: JobState | None = None,
    rows: Annotated[int, Query(ge=1, le=ROWS)] = ROWS,
    part: bool = False,
) -> HTMLResponse:
    """Jobs; only what changes of them where ``part``."""
    chosen = of_jobs(workload, state)
    table = job_table(database, tenant, chosen, PageRequest(rows, cursor))
    return page("job_table.html" if part else "jobs.html", section="jobs", table=table, chosen=chosen)


@router.get("/ui/evaluations")
def evaluation_list(
    database: FromDatabase, tenant: Tenant, cursor: Cursor = None, workload: Workload = None
) -> HTMLResponse:
    """Evaluations; each has its own page."""
    found, names = evaluations.listed(database, tenant, PageRequest(ROWS, cursor), workload)
    lines = [evaluations.read(one, names[one.workload_id]) for one in found.rows]
    chosen = Chosen("/ui/evaluations", workload=workload)
    older = chosen.older(found.cursor)
    return page("evaluations.html", section="evaluations", evaluations=lines, older=older, chosen=chosen)
