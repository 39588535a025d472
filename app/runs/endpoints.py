"""HTTP endpoints of runs; reports take a hot route, with its entry in the schema."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from fastapi import Path, Query, Request, Response, status

from app.errors import Forbidden
from app.http.dependencies import (
    SLUG,
    FromCaller,
    FromDatabase,
    FromStaleness,
    JsonObject,
    NounRouter,
    Tenant,
    any_of,
    command,
    components,
    one_of,
    problems,
    union_schema,
)
from app.http.exchange import Answer, Exchange, HotRoute
from app.http.idempotency import IdempotentPost
from app.http.pagination import Page, Paging, page, stream_page
from app.http.query import check_query, query_values
from app.keys import service as keys
from app.kinds.contract.inputs import LARGEST_ITERATION, number_at
from app.kinds.contract.run_outcome import RunOutcome
from app.kinds.registry import KINDS
from app.runs import service
from app.runs.reporter import Reporter
from app.runs.repository import Sort
from app.runs.service import IterationRead, RunListed, RunPatch, RunRead, RunStarted, RunState, WorkloadOnly
from app.workloads import priors
from app.workloads.search import SEARCH

STARTS = [kind.start for kind in KINDS.values()]
RunId = Annotated[str, Path(alias="run", max_length=64, description="The run's id.")]


ENDS = "Finish, fail or cancel a run."

router = NounRouter("runs")


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    operation_id="start_run",
    summary="Start a run",
    response_model=RunStarted,
    openapi_extra=any_of(STARTS) | command("run create", arguments=["workload"]),
    responses=problems(404, 409, 413, 415, _409="A cap leaves no room for the run's first iteration."),
)
def start(
    request: Request,
    body: JsonObject,
    database: FromDatabase,
    caller: FromCaller,
    once: IdempotentPost,
    rule: FromStaleness,
) -> Response:
    """Start a run of a workload; the response has the first decision, its initial allocation.\f Raises NotFound without
    the workload, Conflict if a cap leaves no room, ValidationError, InvalidInput or Invalid for other parameters."""
    named = WorkloadOnly.model_validate(body)
    state = request.app.state
    compiled = state.compiled_workloads.current(named.workload, caller.tenant)  # other processes may have changed it
    if compiled.snapshot.model is None and priors.takes(compiled.snapshot.spec):
        priors.renew(database, caller.tenant, named.workload, rule)  # or another process has, since
        compiled = state.compiled_workloads.current(named.workload, caller.tenant)

    def token(answer: dict[str, Any]) -> dict[str, Any]:
        return {**answer, "token": keys.issue_run_token(database, caller, answer["id"])}

    return once.run(
        lambda record: service.start(database, caller.tenant, compiled, body, record, runs=state.started_runs),
        finish=token if body.get("token") is True else None,
    )


@router.lists(
    404,
    columns=[
        *("id", "workload", "outcome", "iterations", "probability: decision.chances"),
        *("elapsed: created_at..finished_at", "cost: savings.cost", "age: created_at"),
    ],
    wide=[
        *("state", "agent", "allocation: decision.allocation", "source: decision.source"),
        "granted: decision.granted.state",
        *("saved: savings.largest.saved.value", "reason: outcome_reason"),
    ],
)
def list_runs(
    request: Request,
    database: FromDatabase,
    tenant: Tenant,
    rule: FromStaleness,
    paging: Paging,
    workload: Annotated[str | None, Query(pattern=SLUG, description="Filter by workload.")] = None,
    state: Annotated[RunState | None, Query(description="Filter by state.")] = None,
    outcome: Annotated[
        list[RunOutcome] | None, Query(max_length=len(get_args(RunOutcome)), description="Filter by outcome.")
    ] = None,
    search: Annotated[
        str | None,
        Query(pattern=SEARCH, description="First characters of the run's id (at least 4) or of its workload's name."),
    ] = None,
    sort: Annotated[
        Sort,
        Query(
            description="Order; `-`: the latest, longest, dearest or gravest first. By another column than `started`, "
            "the newest 500 matching runs are sorted; those without a cost come last."
        ),
    ] = "-started",
) -> Page[RunListed]:
    """List runs with their last decisions, newest first unless sorted otherwise.\f Raises NotFound, Invalid for a
    foreign cursor."""
    runs = service.list_runs(database, tenant, paging, rule, workload, state, outcome or (), search, sort)
    return page(request, runs, service.read_listed)


@router.reads("/{run}")
def get_run(run: RunId, database: FromDatabase, tenant: Tenant, rule: FromStaleness) -> RunRead:
    """Get a run with its last decision.\f Raises NotFound if there is none."""
    return service.get(database, tenant, run, rule)


@router.patch(
    "/{run}",
    operation_id="end_run",
    openapi_extra={
        "x-cli": {
            **command("run finish", options=["state", "reason"], fixed={"state": "finished"}, help=ENDS)["x-cli"],
            **command("run update", help="Change the targets or caps of a running run, for it alone.")["x-cli"],
        }
    },
    summary="End a run, or change its targets or caps",
    responses=problems(404, 409, 413, 415),
)
def end(
    request: Request, run: RunId, patch: RunPatch, database: FromDatabase, caller: FromCaller, rule: FromStaleness
) -> RunRead:
    """Finish, fail or cancel a run: it gets its outcome, and its iterations become a sample of its workload.

    Repeating changes nothing; the first reason stays. A run that has ended in another state is a conflict. With
    `targets` or `caps` the run goes on: every decision from now on aims at them, or keeps to them, and they judge its
    end. A run's own token can't change its caps.\f
    Raises Forbidden for that, NotFound, Conflict, TooManyRequests at the quota of executions, Invalid, InvalidInput.
    """
    if "caps" in patch.model_fields_set and caller.run is not None:
        raise Forbidden("the token of a run can't change its caps; a key of scope report can")
    compiled, tenant = request.app.state.compiled_workloads, caller.tenant
    return service.change(database, tenant, run, patch, lambda workload: compiled.fetch(workload, tenant), rule)


@router.deletes("/{run}", 409, _409="It is active, or something active depends on it; the cause is named.")
def delete(run: RunId, database: FromDatabase, tenant: Tenant) -> None:
    """Delete a run that has ended, with its iterations; the sample made from it is kept.\f Raises NotFound, or Conflict
    if it is running or needed."""
    service.delete(database, tenant, run)


@router.get(
    "/{run}/iterations",
    operation_id="list_iterations",
    openapi_extra=command(
        "run iterations",
        columns=[
            *("iteration", "allocation: report.allocation", "measured: report.metrics"),
            *("next: decision.allocation", "reason: decision.reason.text"),
        ],
        wide=["probability: decision.chances", "source: decision.source", "reported: reported_at"],
    ),
    summary="List iterations",
    response_model=Page[IterationRead],
    responses=problems(404),
)
def iterations(request: Request, run: RunId, database: FromDatabase, tenant: Tenant, paging: Paging) -> Response:
    """List a run's reported iterations with their decisions, in order, page by page.\f Raises NotFound, Invalid for a
    foreign cursor."""
    result, kind = service.iterations(database, tenant, run, paging)
    return stream_page(request, result, lambda row: service.read_iteration(row, kind))


async def put_iteration(request: Exchange) -> Answer:
    """Answer `PUT /runs/{run}/iterations/{iteration}`: store a report, and decide the next step. Raises NotFound,
    Conflict, TooLarge, TooManyRequests or Unavailable; for an invalid report ValidationError, Invalid, InvalidInput or
    Contradiction."""
    if request.scope["query_string"]:
        check_query(query_values(request.scope), ())
    iteration = number_at("/path/iteration", request.path["iteration"])
    body = await request.body()
    reporter: Reporter = request.app.state.reporter
    tenant, run = request.caller.tenant, request.path["run"]
    return Answer(*await reporter.report(tenant, run, iteration, body, request.commit))


hot_routes = [HotRoute("/runs/{run}/iterations/{iteration}", put_iteration, "PUT")]


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "description": description, "schema": schema}


_DECISION = {"application/json": {"schema": union_schema({name: kind.decision for name, kind in KINDS.items()})}}
_REPORTED = {409: "Another report has that number, numbers are skipped (the next one is named), or the run has ended."}

openapi_schemas: dict[str, Any] = components([*STARTS, *(kind.engine.report for kind in KINDS.values())])
openapi_paths: dict[str, Any] = {
    "/runs/{run}/iterations/{iteration}": {
        "put": {
            "tags": ["runs"],
            "operationId": "report_iteration",
            **command("run report"),
            "summary": "Report an iteration and get the next step",
            "description": "Report an iteration, as defined by the workload's kind: what it used and measured, or the "
            "queue, in full or as changes. The next step is returned once both are on disk. Repeating the same report "
            "returns the same step.",
            "parameters": [
                _parameter("run", "The run's id.", {"type": "string"}),
                _parameter(
                    "iteration",
                    "The reported iteration, counting from 0.",
                    {"type": "integer", "minimum": 0, "maximum": LARGEST_ITERATION},
                ),
            ],
            **one_of({name: kind.engine.report for name, kind in KINDS.items()}),
            "responses": {
                "200": {"description": "Repeated report: the same decision.", "content": _DECISION},
                "201": {"description": "The report is stored; this is the next step.", "content": _DECISION},
                **{str(code): answer for code, answer in problems(404, 409, 413, 415, _409=_REPORTED[409]).items()},
            },
        }
    }
}
