"""SQL queries on agents and their promotions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.database.tables import Agent, Champion, Promotion, Workload
from app.http.pagination import PageRequest, Slice, json_size, paginate
from app.retention import holds
from app.workloads.versions import Versions


class Artifact(NamedTuple):
    """An agent's exported policy as stored: agent's id, version, its model's version, and the safetensors bytes."""

    id: str
    version: int
    model_version: int
    artifact: bytes


AGENTS = Versions(Agent, "agents", "train", holds.agents)


def steps_per_second(session: Session, workload_id: str) -> float | None:
    """Environment steps per second of the newest training that recorded them; None if no training did."""
    reports = session.scalars(
        select(Agent.report).where(Agent.workload_id == workload_id).order_by(Agent.version.desc())
    )
    rates = (float(report.get("steps_per_second") or 0) for report in reports.yield_per(1))
    return next((rate for rate in rates if rate > 0), None)


def promotions(session: Session, workload_id: str, request: PageRequest) -> Slice[Promotion]:
    """One page of a workload's promotions and rollbacks, newest first; raises Invalid for a cursor of another list."""
    statement = select(Promotion).where(Promotion.workload_id == workload_id)
    keys = [Promotion.created_at, Promotion.id]
    return paginate(session, statement, keys, request, descending=True, weigh=_weight)


def _weight(row: Promotion) -> int:
    return json_size([row.reason, row.figures])


def artifact(session: Session, workload_id: str, version: int) -> Artifact | None:
    """The exported policy of one version; None if there is no such version."""
    statement = select(Agent.id, Agent.version, Agent.model_version, Agent.artifact).where(
        Agent.workload_id == workload_id, Agent.version == version
    )
    row = session.execute(statement).first()
    return None if row is None else Artifact(row.id, row.version, row.model_version, row.artifact)


class ServicePeriod(NamedTuple):
    """A period in which a version was champion of a role; ``until`` is None if it still is."""

    since: datetime
    until: datetime | None


def last_served(session: Session, workload_id: str, versions: Sequence[int]) -> dict[int, ServicePeriod]:
    """The last period as champion of each version; versions that were never champion are left out.

    If a version is champion of several roles now, its longest present period counts; otherwise the period that ended
    last.
    """
    order = (Promotion.created_at, Promotion.id)
    replaced = func.lead(Promotion.created_at, type_=Promotion.created_at.type)
    spans = (
        select(
            Promotion.agent_version,
            Promotion.created_at.label("since"),
            replaced.over(partition_by=Promotion.role, order_by=order).label("until"),
        )
        .where(Promotion.workload_id == workload_id)
        .subquery()
    )
    service_periods: dict[int, ServicePeriod] = {}
    for row in session.execute(select(spans).where(spans.c.agent_version.in_(versions)).order_by(spans.c.since)):
        known = service_periods.get(row.agent_version)
        if known is None or (known.until is not None and (row.until is None or row.until > known.until)):
            service_periods[row.agent_version] = ServicePeriod(row.since, row.until)
    return service_periods


def last_promotion_of(session: Session, workload_id: str, role: str, version: int) -> Promotion | None:
    """The newest promotion of a version in a role; None if it was never promoted there."""
    statement = select(Promotion).where(
        Promotion.workload_id == workload_id, Promotion.role == role, Promotion.agent_version == version
    )
    return session.scalar(statement.order_by(Promotion.created_at.desc(), Promotion.id.desc()).limit(1))


def champions(session: Session, tenant: str) -> list[tuple[str, str, datetime]]:
    """Workload's name, role and time of training of each of a tenant's champions."""
    trained = (Agent.workload_id == Champion.workload_id) & (Agent.version == Champion.version)
    query = select(Workload.name, Champion.role, Agent.created_at).select_from(Champion).join(Agent, trained)
    rows = session.execute(query.join(Workload, Workload.id == Champion.workload_id).where(Champion.tenant == tenant))
    return [(name, role, trained_at) for name, role, trained_at in rows]
