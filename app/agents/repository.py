"""SQL about agents and their promotions."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.database.tables import Agent, Promotion
from app.http.pagination import PageRequest, Slice, paginate


class Artifact(NamedTuple):
    """An agent's exported policy, as stored."""

    id: str
    version: int
    model_version: int
    artifact: bytes


def find(session: Session, workload_id: str, version: int) -> Agent | None:
    """One version, without its artifact."""
    return session.scalar(select(Agent).where(Agent.workload_id == workload_id, Agent.version == version))


def latest_version(session: Session, workload_id: str) -> int | None:
    """The newest version; None before the first training."""
    return session.scalar(select(func.max(Agent.version)).where(Agent.workload_id == workload_id))


def listed(session: Session, workload_id: str, request: PageRequest) -> Slice[Agent]:
    """A workload's agents, newest first."""
    statement = select(Agent).where(Agent.workload_id == workload_id)
    return paginate(session, statement, [Agent.version], request, descending=True)


def promotions(session: Session, workload_id: str, request: PageRequest) -> Slice[Promotion]:
    """Changes of a workload's champions, newest first."""
    statement = select(Promotion).where(Promotion.workload_id == workload_id)
    return paginate(session, statement, [Promotion.created_at, Promotion.id], request, descending=True)


def artifact(session: Session, workload_id: str, version: int) -> Artifact | None:
    """The exported policy of one version."""
    statement = select(Agent.id, Agent.version, Agent.model_version, Agent.artifact).where(
        Agent.workload_id == workload_id, Agent.version == version
    )
    row = session.execute(statement).first()
    return None if row is None else Artifact(row.id, row.version, row.model_version, row.artifact)


def last_promotion_of(session: Session, workload_id: str, role: str, version: int) -> Promotion | None:
    """How this version last became the champion of a role."""
    statement = select(Promotion).where(
        Promotion.workload_id == workload_id, Promotion.role == role, Promotion.agent_version == version
    )
    return session.scalar(statement.order_by(Promotion.created_at.desc(), Promotion.id.desc()).limit(1))
