"""HTTP endpoints of evaluations."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request, Response, status
from fastapi.responses import HTMLResponse

from app.evaluations import service
from app.evaluations.schemas import EvaluationRead, EvaluationReport, EvaluationRequest
from app.http.dependencies import SLUG, FromDatabase, NounRouter, Tenant, command, problems
from app.http.idempotency import IdempotentPost
from app.http.limits import inline, policy
from app.http.pagination import NEWEST, ByAge, Page, Paging, page
from app.jobs.service import JobRead
from app.workloads.search import SEARCH

router = NounRouter("evaluations")

EvaluationId = Annotated[
    str, Path(alias="id", max_length=64, pattern=r"^[0-9A-Za-z_-]+$", description="The evaluation's id.")
]


@router.post(
    "",
    status_code=status.HTTP_202_ACCEPTED,
    operation_id="evaluate_agents",
    openapi_extra=command("evaluate create", arguments=["workload"]),
    summary="Evaluate agents",
    response_model=JobRead,
    responses=problems(404, 409, 413, 415, _409="There is no agent to evaluate yet, or no champion."),
)
def evaluate(body: EvaluationRequest, database: FromDatabase, tenant: Tenant, once: IdempotentPost) -> Response:
    """Queue an evaluation of agents, level by level; the job's result names it.\f
    Raises NotFound, Conflict without agents or a model, Invalid, TooManyRequests at the quota of jobs."""
    return once.run(
        lambda record: service.request_evaluation(database, tenant, body, record), status=status.HTTP_202_ACCEPTED
    )


@router.lists(
    404,
    columns=[
        "id",
        "workload",
        "model: model_version",
        "agents: verdicts.agent",
        "level: verdicts.level",
        "age: created_at",
    ],
    wide=["judge: verdicts.judge", "reason: verdicts.reason"],
)
def list_evaluations(
    request: Request,
    database: FromDatabase,
    tenant: Tenant,
    paging: Paging,
    workload: Annotated[str | None, Query(pattern=SLUG, description="Filter by workload.")] = None,
    search: Annotated[
        str | None,
        Query(pattern=SEARCH, description="First characters of its id (at least 4) or of its workload's name."),
    ] = None,
    sort: ByAge = NEWEST,
) -> Page[EvaluationRead]:
    """List completed evaluations, newest first unless sorted otherwise, without their figures.\f
    Raises NotFound, Invalid for a foreign cursor."""
    newest = sort == NEWEST
    result, names = service.list_evaluations(database, tenant, paging, workload, search, descending=newest)
    return page(request, result, lambda evaluation: service.to_response(evaluation, names[evaluation.workload_id]))


@router.reads("/{id}")
def get_evaluation(evaluation: EvaluationId, database: FromDatabase, tenant: Tenant) -> EvaluationReport:
    """Get one evaluation with all its figures.\f Raises NotFound if there is none."""
    return service.get(database, tenant, evaluation)


@router.deletes("/{id}")
def delete(evaluation: EvaluationId, database: FromDatabase, tenant: Tenant) -> None:
    """Delete an evaluation; nothing depends on it.\f Raises NotFound if there is none."""
    service.delete(database, tenant, evaluation)


@router.get(
    "/{id}/report",
    operation_id="read_evaluation_report",
    openapi_extra=command("evaluate report", file="report.html"),
    summary="Read an evaluation's report",
    response_class=HTMLResponse,
    responses={
        200: {
            "description": "A self-contained page with tables and plots.",
            "content": {"text/html": {"schema": {"type": "string"}}},
        },
        **problems(404),
    },
)
def report(evaluation: EvaluationId, database: FromDatabase, tenant: Tenant) -> HTMLResponse:
    """Get one evaluation as an HTML page.\f Raises NotFound if there is none."""
    page = service.page(database, tenant, evaluation)
    return HTMLResponse(page, headers=policy(style=inline(page.decode(), "style"), img_src="data:"))
