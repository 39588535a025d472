"""``GET /``: one read-only page of what is there and what was decided lately."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from app.dashboard.page import STYLE, overview
from app.evaluations import service as evaluations
from app.http.browsers import policy
from app.http.dependencies import FromDatabase, Tenant
from app.http.pagination import PageRequest
from app.jobs import service as jobs
from app.runs import service as runs
from app.workloads import service as workloads

ROWS = 20

router = APIRouter()


@router.get("/", include_in_schema=False, response_class=HTMLResponse)
def dashboard(database: FromDatabase, tenant: Tenant) -> HTMLResponse:
    """Workloads, the latest runs with their last decision, and the latest evaluations and jobs."""
    found_jobs, names = jobs.listed(database, tenant, PageRequest(ROWS), None, None)
    judged, judged_names = evaluations.listed(database, tenant, PageRequest(ROWS), None)
    page = overview(
        [workloads.read_listed(workload) for workload in workloads.listed(database, tenant, PageRequest(ROWS)).rows],
        [runs.read_listed(run) for run in runs.listed(database, tenant, PageRequest(ROWS)).rows],
        [evaluations.read(evaluation, judged_names[evaluation.workload_id]) for evaluation in judged.rows],
        [jobs.read(job, names[job.workload_id]) for job in found_jobs.rows],
    )
    return HTMLResponse(page, headers={"Cache-Control": "no-store", **policy(style=STYLE)})
