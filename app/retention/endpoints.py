"""HTTP endpoints of retention."""

from __future__ import annotations

from app.http.dependencies import FromDatabase, FromSettings, NounRouter, Tenant, WorkloadName, command, problems
from app.retention import service
from app.retention.batches import Retention, RetentionRead

router = NounRouter("retention")


@router.get(
    "",
    operation_id="read_retention",
    openapi_extra=command("retention show"),
    summary="Read retention periods",
    responses=problems(404),
)
def get_retention(
    workload: WorkloadName, database: FromDatabase, settings: FromSettings, tenant: Tenant
) -> RetentionRead:
    """Get how long the workload's data is kept.\f Raises NotFound without such a workload."""
    return service.get_retention(database, settings, tenant, workload)


@router.put(
    "",
    operation_id="put_retention",
    openapi_extra=command("retention set"),
    summary="Set retention periods",
    responses=problems(404, 413, 415),
)
def put(
    workload: WorkloadName, database: FromDatabase, settings: FromSettings, tenant: Tenant, retention: Retention
) -> RetentionRead:
    """Set how long the workload's data is kept; omitted fields follow the service's settings.\f
    Raises NotFound without such a workload."""
    return service.put(database, settings, tenant, workload, retention)
