"""SQL of what pages tell beside the lists of nouns: counts by workload, runs in outline, reports at equal distances."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from app.database.tables import Agent, DomainModel, Evaluation, Execution, Iteration, Job, Promotion, Run, Workload
from app.runs.outcomes import ATTENTION, Staleness, silence

LATEST = 20
"""Ended runs of a workload that are counted."""


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


class Targets(NamedTuple):
    """How many of a workload's newest ended runs met their targets, of those that could be judged, or failed."""

    met: int = 0
    of: int = 0


def targets(session: Session, workload_id: str) -> Targets:
    """Of a workload; a failed run has met none."""
    newest = (
        select(Run.outcome)
        .where(Run.workload_id == workload_id, Run.outcome.in_(("met", "missed", "failed")))
        .order_by(Run.created_at.desc(), Run.id.desc())
        .limit(LATEST)
    )
    found = list(session.scalars(newest))
    return Targets(found.count("met"), len(found))


class Troubled(NamedTuple):
    """The newest run of a workload with an outcome that needs attention, and how many there are of them."""

    workload: str
    outcome: str
    run: str
    reason: str | None
    silent: float
    expected: float
    number: int


def troubled(session: Session, tenant: str, since: datetime, rule: Staleness) -> list[Troubled]:
    """Runs that are stale or at risk, and those that failed or missed their targets lately, by workload and outcome.

    A run that failed or missed is made up for by a later one of its workload that met its targets, or had none.
    """
    live, later = silence(rule), aliased(Run)
    better = (later.workload_id == Run.workload_id, later.created_at > Run.created_at)
    lost = and_(
        Run.outcome.in_(("failed", "missed")),
        Run.created_at >= since,
        ~exists().where(*better, later.outcome.in_(("met", "completed"))),
    )
    alike, newest = (Run.workload_id, live.outcome), (Run.created_at.desc(), Run.id.desc())
    found = (
        select(
            Workload.name,
            live.outcome.label("outcome"),
            Run.id,
            Run.outcome_reason,
            live.silent.label("silent"),
            live.expected.label("expected"),
            func.count().over(partition_by=alike).label("number"),
            func.row_number().over(partition_by=alike, order_by=newest).label("place"),
        )
        .join(Workload, Workload.id == Run.workload_id)
        .where(Run.tenant == tenant, or_(lost, Run.outcome == "at_risk", live.stale))
        .subquery()
    )
    rows = session.execute(select(*list(found.c)[:-1]).where(found.c.place == 1).order_by(found.c.name)).all()
    grouped = [Troubled(*row) for row in rows]
    return sorted(grouped, key=lambda one: ATTENTION.index(one.outcome))


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
