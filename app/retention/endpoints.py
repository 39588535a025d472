"""HTTP endpoints of retention."""

from __future__ import annotations

from fastapi import APIRouter

from app.http.dependencies import FromDatabase, FromSettings, Tenant, WorkloadName, problems
from app.retention import service
from app.retention.schemas import Retention, RetentionRead

router = APIRouter(prefix="/workloads/{workload}/retention", tags=["retention"])


@router.get("", operation_id="read_retention", summary="Read how long things are kept", responses=problems(404))
def read(workload: WorkloadName, database: FromDatabase, settings: FromSettings, tenant: Tenant) -> RetentionRead:
    """How long what hangs on the workload is kept."""
    return service.read(database, settings, tenant, workload)


@router.put("", operation_id="put_retention", summary="Say how long things are kept", responses=problems(404, 413, 415))
def put(
    workload: WorkloadName, database: FromDatabase, settings: FromSettings, tenant: Tenant, retention: Retention
) -> RetentionRead:
    """Say how long what hangs on the workload is kept from now on; what is left out goes by the service's settings."""
    return service.put(database, settings, tenant, workload, retention)
