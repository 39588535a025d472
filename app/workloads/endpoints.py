"""HTTP endpoints of workloads."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response, status

from app.database.base import utc_now
from app.http.dependencies import (
    FromDatabase,
    JsonObject,
    NounRouter,
    Tenant,
    WorkloadName,
    any_of,
    command,
    components,
    one_of,
    problems,
)
from app.http.idempotency import IdempotentPost
from app.http.pagination import Page, Paging, page
from app.kinds.registry import KINDS, parse_spec
from app.runs import savings
from app.runs.savings import WorkloadSavings
from app.workloads import service
from app.workloads.service import WorkloadListed, WorkloadRead

router = NounRouter("workloads")
openapi_schemas = components([kind.patch for kind in KINDS.values()])

EXAMPLES: dict[str, Any] = {
    name: {"summary": kind.example.summary, "value": dict(kind.example.spec)} for name, kind in KINDS.items()
}
BODY = one_of({name: kind.spec for name, kind in KINDS.items()}, examples=EXAMPLES)


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    operation_id="register_workload",
    summary="Register a workload",
    openapi_extra=BODY | command("workload create", document=True),
    response_model=WorkloadRead,
    responses={
        200: {"model": WorkloadRead, "description": "The same spec is already registered."},
        **problems(409, 413, 415, _409="A different spec is registered under that name."),
    },
)
def register(body: JsonObject, database: FromDatabase, tenant: Tenant, once: IdempotentPost) -> Response:
    """Register a workload. Repeating the same spec changes nothing and returns 200.\f
    Raises Conflict if another spec has its name, Invalid for a member that doesn't exist."""
    spec = parse_spec(body)
    return once.run(lambda record: service.register(database, tenant, spec, record))


@router.lists(columns=["name", "kind", "spec: spec_version", "champion", "age: created_at", "problem"])
def list_workloads(request: Request, database: FromDatabase, tenant: Tenant, paging: Paging) -> Page[WorkloadListed]:
    """List workloads by name, page by page.\f Raises Invalid for a foreign cursor."""
    return page(request, service.list_workloads(database, tenant, paging), service.read_listed)


@router.reads("/{workload}")
def get_workload(workload: WorkloadName, database: FromDatabase, tenant: Tenant) -> WorkloadRead:
    """Get a workload with its current spec.\f Raises NotFound if there is none."""
    return service.get(database, tenant, workload)


@router.patch(
    "/{workload}",
    operation_id="change_workload",
    summary="Update a workload",
    openapi_extra=any_of([kind.patch for kind in KINDS.values()]) | command("workload update"),
    responses=problems(404, 413, 415),
)
def change(workload: WorkloadName, patch: JsonObject, database: FromDatabase, tenant: Tenant) -> WorkloadRead:
    """Change prices, weights, targets and the like; decisions follow within a second.

    `spec_version` is incremented. Agents that were trained for something else are `outdated` then.\f
    Raises ValidationError, InvalidInput or Invalid for a patch that doesn't fit, NotFound."""
    return service.change(database, tenant, workload, patch)


@router.get(
    "/{workload}/savings",
    operation_id="read_savings",
    openapi_extra=command("workload savings"),
    summary="Read savings",
    responses=problems(404),
)
def get_savings(workload: WorkloadName, database: FromDatabase, tenant: Tenant) -> WorkloadSavings:
    """Get the savings of finished runs against the largest and the best fixed allocation, by month, with bounds.\f
    Raises NotFound without such a workload."""
    with database.reading() as session:
        row = service.require(session, tenant, workload)
        return savings.by_month(session, row.id, row.name, utc_now())


@router.deletes(
    "/{workload}",
    409,
    _409="A run is active, a job has not ended, or another workload has it as a member; they are named.",
)
def delete(
    workload: WorkloadName,
    database: FromDatabase,
    tenant: Tenant,
    force: Annotated[bool, Query(description="Delete even if runs are active or jobs have not ended.")] = False,
) -> None:
    """Delete a workload and everything in it: samples, models, agents, jobs and runs.\f
    Raises NotFound, Conflict if it is in use."""
    service.delete(database, tenant, workload, force=force)
