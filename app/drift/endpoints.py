"""HTTP endpoints of drifts."""

from __future__ import annotations

from fastapi import APIRouter

from app.drift import service
from app.drift.schemas import DriftRead, DriftResponse
from app.http.dependencies import FromDatabase, Tenant, WorkloadName, problems

router = APIRouter(prefix="/workloads/{workload}/drift", tags=["drift"])


@router.get("", operation_id="read_drift", summary="Read how drifts are answered", responses=problems(404))
def read(workload: WorkloadName, database: FromDatabase, tenant: Tenant) -> DriftRead:
    """How the workload answers drifts, and what was done about the last ones, step by step."""
    return service.read(database, tenant, workload)


@router.put(
    "", operation_id="respond_to_drift", summary="Say how drifts are answered", responses=problems(404, 413, 415)
)
def respond(workload: WorkloadName, database: FromDatabase, tenant: Tenant, response: DriftResponse) -> DriftRead:
    """Say how drifts are to be answered from now on. They are noticed in any case, and stand in the run's record."""
    return service.respond(database, tenant, workload, response)
