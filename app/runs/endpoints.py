"""HTTP endpoints of runs; reports take a hot route, with its entry in the schema."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response, status
from pydantic import BaseModel

from app.database.base import DEFAULT_TENANT
from app.http.dependencies import FromDatabase, Tenant, problems
from app.http.exchange import Exchange
from app.http.fast_path import Answer, HotRoute, of_loop
from app.http.idempotency.once import IdempotentPost
from app.http.pagination import Page, Paging, page
from app.http.query import LARGEST_ITERATION, check_query, number_at, query_values
from app.kinds.workflow.queue.report import QueueReport
from app.runs import service
from app.runs.reporter import Reporter
from app.runs.schemas import IterationRead, IterationReport, RunPatch, RunRead, RunStart, RunStarted

RunId = Annotated[str, Path(alias="run", max_length=64, description="The run's id.")]


router = APIRouter(prefix="/runs", tags=["runs"])


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    operation_id="start_run",
    summary="Start a run",
    response_model=RunStarted,
    responses=problems(404, 413, 415),
)
def start(request: Request, body: RunStart, database: FromDatabase, tenant: Tenant, once: IdempotentPost) -> Response:
    """Start a live run of a workload; the first decision is the initial allocation."""
    basis = request.app.state.bases.fetch(body.workload, tenant)
    return once.run(lambda record: service.start(database, tenant, basis, body, record))


@router.get("/{run}", operation_id="read_run", summary="Read a run", responses=problems(404))
def read(run: RunId, database: FromDatabase, tenant: Tenant) -> RunRead:
    """A run with its last decision."""
    return service.get(database, tenant, run)


@router.patch("/{run}", operation_id="end_run", summary="End a run", responses=problems(404, 409, 413, 415))
def end(run: RunId, patch: RunPatch, database: FromDatabase, tenant: Tenant) -> RunRead:
    """Finish or fail a run: its iterations become a sample of its workload. The same again changes nothing."""
    return service.end(database, tenant, run, patch)


@router.get("/{run}/iterations", operation_id="list_iterations", summary="List iterations", responses=problems(404))
def iterations(
    request: Request, run: RunId, database: FromDatabase, tenant: Tenant, paging: Paging
) -> Page[IterationRead]:
    """A run's reported iterations with their decisions, in order, page by page."""
    return page(request, service.iterations(database, tenant, run, paging), service.read_iteration)


async def put_iteration(request: Exchange) -> Answer:
    """`PUT /runs/{run}/iterations/{iteration}`."""
    if request.scope["query_string"]:
        check_query(query_values(request.scope), ())
    iteration = number_at("/path/iteration", request.path["iteration"])
    body = await request.body()
    state = request.app.state
    reporter = of_loop(request.app, Reporter, state.database, state.bases)
    code, decision = await reporter.report(DEFAULT_TENANT, request.path["run"], iteration, body)
    return Answer(code, decision)


hot_routes = [HotRoute("/runs/{run}/iterations/{iteration}", put_iteration, "PUT")]


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "description": description, "schema": schema}


def _either(*names: str) -> dict[str, Any]:
    """A body that is one of several, by the workload's kind."""
    return {"application/json": {"schema": {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in names]}}}


def _schemas(*models: type[BaseModel]) -> dict[str, Any]:
    """Models with all that they refer to."""
    found: dict[str, Any] = {}
    for model in models:
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        found |= {**schema.pop("$defs", {}), model.__name__: schema}
    return found


_DECISION = _either("Decision", "QueueDecision")
_REPORTED = {
    409: "Another report is kept under that number, numbers are left out (the next one is named), or the run has ended."
}

openapi_schemas: dict[str, Any] = _schemas(IterationReport, QueueReport)
openapi_paths: dict[str, Any] = {
    "/runs/{run}/iterations/{iteration}": {
        "put": {
            "tags": ["runs"],
            "operationId": "report_iteration",
            "summary": "Report an iteration, get the next step",
            "description": "Reports what an iteration used and measured, and is answered with the step for the next "
            "one once both are on disk; in a run of kind `workflow`, reports the queue, whole or as what has changed, "
            "and is answered with placements. The same report again is answered the same.",
            "parameters": [
                _parameter("run", "The run's id.", {"type": "string"}),
                _parameter(
                    "iteration",
                    "The reported iteration, counting from 0.",
                    {"type": "integer", "minimum": 0, "maximum": LARGEST_ITERATION},
                ),
            ],
            "requestBody": {
                "required": True,
                "content": _either("IterationReport", "QueueReport"),
            },
            "responses": {
                "200": {"description": "The same report again: the same decision.", "content": _DECISION},
                "201": {"description": "The report is kept; this is the next step.", "content": _DECISION},
                **{str(code): answer for code, answer in problems(404, 409, 413, 415, _409=_REPORTED[409]).items()},
            },
        }
    }
}
