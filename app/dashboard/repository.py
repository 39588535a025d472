"""SQL queries for pages: counts by workload, summaries of runs, evenly spaced reports."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, case, exists, func, literal, or_, select, true, union_all
from sqlalchemy.orm import Session, aliased

from app.database.tables import (
    ADVISED,
    DRIFTED,
    JUDGED,
    Agent,
    DomainModel,
    Evaluation,
    Execution,
    Iteration,
    Job,
    Promotion,
    Run,
    Workload,
)
from app.runs.outcomes import ATTENTION, Staleness, having, silence

LATEST = 20
"""Number of newest judged runs of a workload that are counted."""


class Counts(NamedTuple):
    """Counts of a workload's objects.

    Attributes:
        samples: number of executions.
        model, agent: newest versions; None: there are none.
        live: number of running runs.
        working: types of jobs that have not ended.
    """

    samples: int = 0
    model: int | None = None
    agent: int | None = None
    live: int = 0
    working: frozenset[str] = frozenset()


def counts(session: Session, workload_ids: Sequence[str]) -> dict[str, Counts]:
    """Counts of each workload's objects, by workload id."""

    def of(chosen: Any, owner: Any, *where: Any) -> Any:
        return select(chosen).where(owner == Workload.id, *where).correlate(Workload).scalar_subquery()

    columns = (
        of(func.count(Execution.id), Execution.workload_id),
        of(func.max(DomainModel.version), DomainModel.workload_id),
        of(func.max(Agent.version), Agent.workload_id),
        of(func.count(Run.id), Run.workload_id, Run.state == "running"),
    )
    unfinished = select(Job.workload_id, Job.type).where(Job.workload_id.in_(workload_ids), Job.finished_at.is_(None))
    jobs = session.execute(unfinished.distinct()).all()
    working = {one: frozenset(row.type for row in jobs if row.workload_id == one) for one in workload_ids}
    rows = session.execute(select(Workload.id, *columns).where(Workload.id.in_(workload_ids)))
    return {one: Counts(samples, model, agent, live, working[one]) for one, samples, model, agent, live in rows}


def page_fingerprint(session: Session, workload_id: str) -> tuple[Any, ...]:
    """Values that change when a workload's page does, all read from the ends of indexes."""
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
    """Numbers of a workload's newest judged or failed runs: ``of`` at most 20 runs, ``met`` met their targets."""

    met: int = 0
    of: int = 0


def targets(session: Session, workload_ids: Sequence[str]) -> dict[str, Targets]:
    """Number of each workload's newest runs that met their targets, by workload id, without those of mode ``advise``;
    failed runs count as not met."""

    def newest(workload: str) -> Select[tuple[str, str]]:
        judged = (
            select(Run.workload_id, Run.outcome)
            .where(Run.workload_id == workload, JUDGED, ~ADVISED)
            .order_by(Run.finished_at.desc(), Run.id.desc())
            .limit(LATEST)
            .subquery()
        )
        return select(judged.c.workload_id, judged.c.outcome)

    by_workload: dict[str, list[str]] = {workload: [] for workload in workload_ids}
    if by_workload:
        for row in session.execute(union_all(*map(newest, by_workload))):
            by_workload[row.workload_id].append(row.outcome)
    return {workload: Targets(outcomes.count("met"), len(outcomes)) for workload, outcomes in by_workload.items()}


class Outcomes(NamedTuple):
    """Numbers of a workload's runs: of those that run now, and of those that ended lately.

    ``failed``, ``missed``, ``cap_reached``: all of them; ``met``, ``judged``: without mode ``advise``, those that met
    their targets, and those that met or missed them or failed.
    """

    live: int = 0
    failed: int = 0
    missed: int = 0
    met: int = 0
    judged: int = 0
    cap_reached: int = 0


def outcomes(session: Session, tenant: str, since: datetime, rule: Staleness) -> dict[str, Outcomes]:
    """Numbers of a tenant's running runs, and of those that were judged or failed since ``since``, by workload id;
    workloads without such runs are missing. ``rule`` derives outcomes that are not stored."""
    applied = func.sum(case((~ADVISED, 1), else_=0))
    mine = func.coalesce(Run.tenant, "") == tenant  # an expression: SQLite is to use the index of times, not of tenants
    outcome = silence(rule).outcome
    ended = select(Run.workload_id, outcome, func.count(), applied).where(mine, Run.finished_at >= since)
    live = select(Run.workload_id, literal("live"), func.count(), literal(0))
    live = live.where(Run.tenant == tenant, Run.state == "running").group_by(Run.workload_id)
    outcomes: dict[str, Outcomes] = {}
    parts = union_all(ended.group_by(Run.workload_id, outcome), live)
    for workload, name, number, of_these in session.execute(parts):
        if name in ("live", "met", "missed", "failed", "cap_reached"):
            known = outcomes.get(workload, Outcomes())
            counted = {"met": of_these} if name == "met" else {name: number}
            outcomes[workload] = known._replace(**counted, judged=known.judged + of_these * (name != "cap_reached"))
    return outcomes


class TroubledWorkload(NamedTuple):
    """The newest run of a workload with a bad outcome, and the ``number`` of such runs.

    ``silent_seconds``: seconds since its last report; ``expected``: seconds per iteration, None: unknown; ``spec``: the
    workload's spec as stored.
    """

    workload: str
    outcome: str
    run: str
    reason: str | None
    silent_seconds: float
    expected: float | None
    spec: dict[str, Any]
    number: int


def troubled_runs(session: Session, tenant: str, since: datetime, rule: Staleness) -> list[TroubledWorkload]:
    """Runs that are stale or at risk, and those that failed, missed targets or reached a cap since ``since``, by
    workload and outcome.

    One that has ended so is left out once a later run of its workload met its targets, or completed with reports.
    """
    live = silence(rule)
    something = Run.next_iteration > Run.decision["iteration"].as_integer()
    good = or_(having("met", rule), and_(having("completed", rule), something))
    recent = (Run.tenant == tenant, Run.finished_at >= since)
    mended = (
        select(Run.workload_id, func.max(Run.finished_at).label("at")).where(*recent, good).group_by(Run.workload_id)
    ).subquery()
    bad = or_(having("failed", rule), having("missed", rule), having("cap_reached", rule))
    lost = and_(bad, Run.finished_at >= since, func.coalesce(Run.finished_at > mended.c.at, true()))
    alike = (Run.workload_id, live.outcome)
    newest = (func.coalesce(Run.finished_at, Run.created_at).desc(), Run.id.desc())
    query = (
        select(
            Workload.name,
            live.outcome.label("outcome"),
            Run.id,
            Run.outcome_reason.label("reason"),
            live.silent_seconds.label("silent_seconds"),
            live.expected.label("expected"),
            Workload.spec,
            func.count().over(partition_by=alike).label("number"),
            func.row_number().over(partition_by=alike, order_by=newest).label("place"),
        )
        .join(Workload, Workload.id == Run.workload_id)
        .outerjoin(mended, mended.c.workload_id == Run.workload_id)
        .where(Run.tenant == tenant, or_(lost, having("at_risk", rule), live.stale))
        .subquery()
    )
    rows = session.execute(select(*list(query.c)[:-1]).where(query.c.place == 1).order_by(query.c.name)).all()
    grouped = [TroubledWorkload(*row) for row in rows]
    return sorted(grouped, key=lambda one: ATTENTION.index(one.outcome))


class DriftedWorkload(NamedTuple):
    """The newest run of a workload with drift notices, its drift state, and the number of such runs."""

    workload: str
    run: str
    drift: dict[str, Any] | None
    number: int


def drifted_runs(session: Session, tenant: str, since: datetime) -> list[DriftedWorkload]:
    """Runs with drift notices started since ``since``, by workload."""
    alike, newest = Run.workload_id, (Run.created_at.desc(), Run.id.desc())
    query = (
        select(
            Workload.name,
            Run.id,
            Run.drift,
            func.count().over(partition_by=alike).label("number"),
            func.row_number().over(partition_by=alike, order_by=newest).label("place"),
        )
        .join(Workload, Workload.id == Run.workload_id)
        .where(Run.tenant == tenant, DRIFTED, Run.created_at >= since)
        .subquery()
    )
    rows = session.execute(select(*list(query.c)[:-1]).where(query.c.place == 1).order_by(query.c.name))
    return [DriftedWorkload(*row) for row in rows]


def failed_jobs(session: Session, tenant: str, since: datetime, limit: int) -> tuple[list[tuple[Job, str]], int]:
    """The newest failed jobs since ``since`` without a later success of their type, with workloads' names.

    The second value is the number of all such jobs; the list has at most ``limit``.
    """
    later = aliased(Job)
    mended = (later.workload_id == Job.workload_id, later.type == Job.type, later.created_at > Job.created_at)
    done = exists().where(*mended, later.state == "succeeded")
    rows = session.execute(
        select(Job, Workload.name, func.count().over().label("number"))
        .join(Workload, Workload.id == Job.workload_id)
        .where(Job.tenant == tenant, Job.state == "failed", Job.type != "trial", Job.created_at >= since, ~done)
        .order_by(Job.created_at.desc())
        .limit(limit)
    ).all()
    return [(row.Job, row.name) for row in rows], rows[0].number if rows else 0


def iterations(session: Session, run: str, numbers: Sequence[int]) -> list[Iteration]:
    """Reported iterations with these numbers, in order; looked up by key."""
    query = select(Iteration).where(Iteration.run_id == run, Iteration.iteration.in_(numbers))
    return list(session.scalars(query.order_by(Iteration.iteration)))


def data(session: Session, workload_id: str, limit: int) -> list[bytes]:
    """Encoded data of a workload's newest executions, at most ``limit``."""
    query = select(Execution.data).where(Execution.workload_id == workload_id)
    newest = query.order_by(Execution.created_at.desc(), Execution.id.desc()).limit(limit)
    return list(session.scalars(newest))
