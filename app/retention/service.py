"""How long what hangs on a workload is kept: as was put for it, else as the settings say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from app.audit import service as audit
from app.database.engine import Database
from app.database.tables import Workload
from app.kinds.contract.stored import stored
from app.retention.schemas import Retention, RetentionRead
from app.settings import Settings
from app.workloads import service as workloads


def effective(given: Mapping[str, Any] | None, settings: Settings) -> Retention:
    """What applies to a workload for which this was put."""
    defaults = {name: getattr(settings, f"retention_{name}") for name in Retention.model_fields}
    return Retention.model_validate({**defaults, **(given or {})})


def is_limited(retention: Retention) -> bool:
    """Whether anything is ever deleted by it."""
    return any(days is not None for days in retention.model_dump().values())


def concerned(database: Database, settings: Settings) -> list[tuple[Workload, Retention]]:
    """Workloads of which something is not kept for ever, and for how long."""
    with database.reading() as session:
        found = session.scalars(select(Workload).order_by(Workload.created_at, Workload.id)).all()
    each = [(workload, effective(workload.retention, settings)) for workload in found]
    return [(workload, retention) for workload, retention in each if is_limited(retention)]


def read(database: Database, settings: Settings, tenant: str, name: str) -> RetentionRead:
    """How long what hangs on a workload is kept."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
    with stored(f"retention of {workload.name!r}"):
        return RetentionRead(
            workload=workload.name,
            given=Retention.model_validate(workload.retention or {}),
            effective=effective(workload.retention, settings),
        )


def put(database: Database, settings: Settings, tenant: str, name: str, given: Retention) -> RetentionRead:
    """Say how long what hangs on a workload is kept from now on; what was put before is forgotten."""
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        workload.retention = given.model_dump(exclude_unset=True) or None
        audit.add(session, tenant, "retention.put", f"workload {workload.name}", workload.retention)
    return read(database, settings, tenant, name)
