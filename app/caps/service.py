"""Caps of tenants, and what the runs of a month have used of the caps that they share.

A month's runs are those that ended in it, and those that run and have started or reported in it (UTC); each counts as a
whole. A run that goes on counts with its present iteration, as far as that is predicted. So of several runs that pass a
cap at once none goes on for more than the iteration that it has begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.database.base import utc_now
from app.database.engine import Database
from app.database.leases import insert
from app.database.tables import Iteration, MonthlySpending, Run, TenantCaps, Workload
from app.errors import FieldError, Invalid
from app.kinds.contract.caps import Cap, Caps, Scope
from app.kinds.contract.engine import Snapshot
from app.kinds.registry import KINDS
from app.workloads import members

USED = ("cost", "seconds")


class CapsRead(BaseModel):
    """A tenant's caps, and what its runs of this month have used."""

    month: str = Field(description="The month, UTC.", examples=["2026-11"])
    caps: Caps
    cost: float = Field(description="Cost of the month's runs, with the iterations that are under way.")
    seconds: float = Field(description="Sum of the iterations' seconds of the month's runs, likewise.")


def spent(
    session: Session, tenant: str, workload_id: str | None, now: datetime, but: str | None = None
) -> dict[str, float]:
    """`cost` (in the settings' currency) and `seconds` of the runs of the month of ``now``: of one workload, or of all
    (None), without the running one with id ``but``. Runs of kinds that don't state them count as 0."""
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    last = (
        select(Iteration.reported_at)
        .where(Iteration.run_id == Run.id, Iteration.iteration == Run.next_iteration - 1)
        .correlate(Run)
        .scalar_subquery()
    )
    live = [Run.tenant == tenant, Run.state == "running", func.coalesce(last, Run.created_at) >= month]
    ended = [MonthlySpending.tenant == tenant, MonthlySpending.month == f"{now:%Y-%m}"]
    if workload_id is not None:
        # An expression: SQLite is to use the index of states, not that of all runs of the workload ever
        live.append(func.coalesce(Run.workload_id, "") == workload_id)
        ended.append(MonthlySpending.workload_id == workload_id)
    if but is not None:
        live.append(Run.id != but)
    going = select(func.sum(Run.cost + Run.next_cost), func.sum(Run.seconds + Run.next_seconds)).where(*live)
    over = select(func.sum(MonthlySpending.cost), func.sum(MonthlySpending.seconds)).where(*ended)
    rows = [session.execute(query).one() for query in (going, over)]
    return {name: (rows[0][at] or 0.0) + (rows[1][at] or 0.0) for at, name in enumerate(USED)}


def add_ended(session: Session, run: Run, now: datetime) -> None:
    """Add `cost` and `seconds` of a run that ends ``now`` to its month's sums, in the caller's transaction; call it
    once a run. Reports then read one row, not all runs of the month, and the sums remain when the run is deleted."""
    if run.cost or run.seconds:
        key = {"tenant": run.tenant, "month": f"{now:%Y-%m}", "workload_id": run.workload_id}
        row = insert(session, MonthlySpending).values(**key, cost=run.cost, seconds=run.seconds)
        sums = {name: getattr(MonthlySpending, name) + getattr(row.excluded, name) for name in USED}
        session.execute(row.on_conflict_do_update(index_elements=list(key), set_=sums))


def in_force(
    database: Database, tenant: str, own: Mapping[str, Any] | None, snapshot: Snapshot, now: datetime, run: str | None
) -> tuple[Cap, ...]:
    """The caps of a run: its own, and those that it shares with other runs, with what these have used (read from the
    database). ``own``: its own caps as in its start parameters, None: none; ``run``: its id, None before its start."""
    in_force = [Cap("run", of, limit) for of, limit in Caps.model_validate(own or {}).limits.items()]
    if snapshot.caps:
        with database.reading() as session:
            for scope, caps in snapshot.caps.items():
                used = spent(session, tenant, snapshot.workload_id if scope == "workload" else None, now, run)
                in_force += [Cap(scope, of, limit, used[of]) for of, limit in caps.limits.items()]
    return tuple(in_force)


def shared(session: Session, tenant: str, spec: Any) -> dict[Scope, Caps]:
    """The caps that runs of a workload share: its own by its ``spec``, and its tenant's; only those that are set."""
    row = session.get(TenantCaps, tenant)
    of_tenant = None if row is None else Caps.model_validate(row.caps)
    result: dict[Scope, Caps | None] = {"workload": getattr(spec, "caps", None), "tenant": of_tenant}
    return {scope: caps for scope, caps in result.items() if caps is not None and caps.limits}


def check_metered(kind: str, caps: Caps | None) -> None:
    """Raise Invalid, which names ``/caps``, if runs of a kind can't have caps."""
    if not KINDS[kind].engine.serving.metered:
        accepted = f"must be left out: what runs of kind {kind} have cost is unknown while they go on"
        raise Invalid(f"/caps: {accepted}", errors=[FieldError("/caps", accepted, caps and caps.model_dump())])


def read(database: Database, tenant: str, now: datetime | None = None) -> CapsRead:
    """A tenant's caps, with what its runs have used in the month of ``now``."""
    at = now or utc_now()
    with database.reading() as session:
        row = session.get(TenantCaps, tenant)
        return CapsRead(
            month=f"{at:%Y-%m}",
            caps=Caps() if row is None else Caps.model_validate(row.caps),
            **spent(session, tenant, None, at),
        )


def put(database: Database, tenant: str, caps: Caps) -> CapsRead:
    """Replace a tenant's caps; decisions follow within a second."""
    stored = caps.model_dump(mode="json", exclude_none=True)
    with database.session() as session:
        row = insert(session, TenantCaps).values(tenant=tenant, caps=stored)
        session.execute(row.on_conflict_do_update(index_elements=[TenantCaps.tenant], set_={"caps": stored}))
        members.bump(session, *session.scalars(select(Workload.id).where(Workload.tenant == tenant)))
        audit.add(session, tenant, "caps.put", f"tenant {tenant}", stored)
    return read(database, tenant)
