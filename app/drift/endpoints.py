"""HTTP endpoints of drifts."""

from __future__ import annotations

from app.drift import service
from app.drift.steps import DriftRead, DriftResponse
from app.http.dependencies import FromDatabase, NounRouter, Tenant, WorkloadName, command, problems

router = NounRouter("drift")


@router.get(
    "",
    operation_id="read_drift",
    openapi_extra=command("drift show"),
    summary="Read the drift response",
    responses=problems(404),
)
def get_drift(workload: WorkloadName, database: FromDatabase, tenant: Tenant) -> DriftRead:
    """Get how the workload responds to drift, and its latest adaptations, step by step.\f
    Raises NotFound without such a workload."""
    return service.get_drift(database, tenant, workload)


@router.put(
    "",
    operation_id="respond_to_drift",
    openapi_extra=command("drift set"),
    summary="Set the drift response",
    responses=problems(404, 413, 415),
)
def respond(workload: WorkloadName, database: FromDatabase, tenant: Tenant, response: DriftResponse) -> DriftRead:
    """Set how to respond to drift from now on. Drift is detected in any case, and recorded with the run.\f
    Raises NotFound, Invalid for a kind without domain model or an online algorithm."""
    return service.respond(database, tenant, workload, response)
