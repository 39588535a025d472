"""SQL of what pages tell beside the lists of nouns: counts by workload, runs in outline, reports at equal distances."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session, aliased

from app.database.tables import Agent, DomainModel, Evaluation, Execution, Iteration, Job, Promotion, Run, Workload

LATEST = 20
"""Ended runs of a workload by which its share on target is told."""


class Counts(NamedTuple):
    """What a workload has.

    Attributes:
        model, agent: newest versions.
        live: its runs that go on.
        working: types of its jobs that have not ended.
    """

    samples: int = 0
    model: int | None = None
    agent: int | None = None
    live: int = 0
    working: frozenset[str] = frozenset()


def counts(session: Session, workload_ids: Sequence[str]) -> dict[str, Counts]:
    """What each of these workloads has."""

    def by_workload(column: Any, *where: Any) -> dict[str, int]:
        owner = column.class_.workload_id
        chosen = func.count(column) if column.key == "id" else func.max(column)
        rows = session.execute(select(owner, chosen).where(owner.in_(workload_ids), *where).group_by(owner))
        return {row[0]: row[1] for row in rows}

    samples, live = by_workload(Execution.id), by_workload(Run.id, Run.state == "running")
    models, agents = by_workload(DomainModel.version), by_workload(Agent.version)
    working = _working(session, workload_ids)
    return {
        one: Counts(samples.get(one, 0), models.get(one), agents.get(one), live.get(one, 0), working[one])
        for one in workload_ids
    }


def _working(session: Session, workload_ids: Sequence[str]) -> dict[str, frozenset[str]]:
    unfinished = select(Job.workload_id, Job.type).where(Job.workload_id.in_(workload_ids), Job.finished_at.is_(None))
    rows = session.execute(unfinished.distinct()).all()
    return {one: frozenset(row.type for row in rows if row.workload_id == one) for one in workload_ids}


def standing(session: Session, workload_id: str) -> tuple[Any, ...]:
    """Another when something of what a workload's page shows is; every part of it is at the end of an index."""
    newest = [
        select(func.max(column)).where(column.class_.workload_id == workload_id).scalar_subquery()
        for column in (
            DomainModel.version,
            Agent.version,
            *(table.created_at for table in (Promotion, Evaluation, Execution, Run)),
        )
    ]
    unfinished = select(func.count(Job.id)).where(Job.workload_id == workload_id, Job.finished_at.is_(None))
    revision = select(Workload.revision).where(Workload.id == workload_id)
    return tuple(session.execute(select(*newest, unfinished.scalar_subquery(), revision.scalar_subquery())).one())


class Ended(NamedTuple):
    """A run that has ended, with its last decision and its state as stored."""

    id: str
    start: dict[str, Any]
    decision: dict[str, Any]
    state: Any


def ended(session: Session, workload_id: str, limit: int = LATEST) -> list[Ended]:
    """A workload's newest ended runs, newest first."""
    at_end = (Iteration.run_id == Run.id) & (Iteration.iteration == Run.next_iteration - 1)
    rows = session.execute(
        select(Run.id, Run.start, Run.decision, Run.state_vector, Iteration)
        .outerjoin(Iteration, at_end)
        .where(Run.workload_id == workload_id, Run.state != "running")
        .order_by(Run.created_at.desc(), Run.id.desc())
        .limit(limit)
    )
    return [
        Ended(row.id, row.start, row.Iteration.decision if row.Iteration else row.decision, row.state_vector)
        for row in rows
    ]


def drifted(session: Session, tenant: str, since: datetime, limit: int) -> list[tuple[str, str, dict[str, Any]]]:
    """Newest runs that have noticed drifts: id, workload's name, and what they keep of them."""
    rows = session.execute(
        select(Run.id, Workload.name, Run.drift)
        .join(Workload, Workload.id == Run.workload_id)
        .where(Run.tenant == tenant, Run.drifts > 0, Run.created_at >= since)
        .order_by(Run.created_at.desc())
        .limit(limit)
    )
    return [(row.id, row.name, row.drift or {}) for row in rows]


def failed(session: Session, tenant: str, since: datetime, limit: int) -> list[tuple[Job, str]]:
    """Newest failed jobs that no later one of their sort has made up for, and the names of their workloads."""
    later = aliased(Job)
    mended = (later.workload_id == Job.workload_id, later.type == Job.type, later.created_at > Job.created_at)
    done = exists().where(*mended, later.state == "succeeded")
    rows = session.execute(
        select(Job, Workload.name)
        .join(Workload, Workload.id == Job.workload_id)
        .where(Job.tenant == tenant, Job.state == "failed", Job.type != "trial", Job.created_at >= since, ~done)
        .order_by(Job.created_at.desc())
        .limit(limit)
    )
    return [(row.Job, row.name) for row in rows]


def verdict(session: Session, workload_id: str) -> str | None:
    """Why a workload's newest agent was promoted or not, as its report says."""
    reason = Agent.report["reason"].as_string()
    newest = select(reason).where(Agent.workload_id == workload_id).order_by(Agent.version.desc()).limit(1)
    return session.scalar(newest)


def iterations(session: Session, run: str, numbers: Sequence[int]) -> list[Iteration]:
    """Reported iterations of these numbers, in order: each is looked up by its key, whatever stands between them."""
    query = select(Iteration).where(Iteration.run_id == run, Iteration.iteration.in_(numbers))
    return list(session.scalars(query.order_by(Iteration.iteration)))


def data(session: Session, workload_id: str, limit: int) -> list[bytes]:
    """Data of a workload's newest executions."""
    query = select(Execution.data).where(Execution.workload_id == workload_id)
    newest = query.order_by(Execution.created_at.desc(), Execution.id.desc()).limit(limit)
    return list(session.scalars(newest))
