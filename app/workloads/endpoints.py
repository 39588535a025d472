"""HTTP endpoints of workloads."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request, Response, status

from app.dependencies import FromDatabase, Tenant, WorkloadName, problems
from app.kinds.iterative.spec import Spec
from app.pagination import Page, Paging, page
from app.workloads import service
from app.workloads.schemas import EXAMPLE, WorkloadPatch, WorkloadRead

router = APIRouter(prefix="/workloads", tags=["workloads"])

SpecBody = Annotated[Spec, Body(openapi_examples={"training": {"summary": "A training on GPUs", "value": EXAMPLE}})]


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    summary="Register a workload",
    responses={
        200: {"model": WorkloadRead, "description": "The same spec is registered already."},
        **problems(409, 413, 415, _409="Another spec is registered under that name."),
    },
)
def register(
    request: Request, response: Response, spec: SpecBody, database: FromDatabase, tenant: Tenant
) -> WorkloadRead:
    """Register what is to be allocated for. The same spec again changes nothing and is answered with 200."""
    workload, new = service.register(database, tenant, spec)
    response.status_code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
    response.headers["Location"] = f"{request.url.path}/{workload.name}"
    return workload


@router.get("", summary="List workloads", responses=problems())
def listed(request: Request, database: FromDatabase, tenant: Tenant, paging: Paging) -> Page[WorkloadRead]:
    """Workloads by name, page by page."""
    return page(request, service.listed(database, tenant, paging), service.read)


@router.get("/{workload}", summary="Read a workload", responses=problems(404))
def read(workload: WorkloadName, database: FromDatabase, tenant: Tenant) -> WorkloadRead:
    """A workload with its spec as it stands."""
    return service.get(database, tenant, workload)


@router.patch("/{workload}", summary="Change targets, prices or weights", responses=problems(404, 413, 415))
def change(workload: WorkloadName, patch: WorkloadPatch, database: FromDatabase, tenant: Tenant) -> WorkloadRead:
    """Change what needs no new training; decisions obey within a second, and `spec_version` counts up."""
    return service.change(database, tenant, workload, patch)


@router.delete(
    "/{workload}",
    status_code=status.HTTP_204_NO_CONTENT,
    summary="Delete a workload",
    responses=problems(404),
)
def delete(workload: WorkloadName, database: FromDatabase, tenant: Tenant) -> None:
    """Delete a workload with all that hangs on it: samples, models, agents, jobs and runs."""
    service.delete(database, tenant, workload)
