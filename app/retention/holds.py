"""SQL queries for what active objects need, which is never deleted, by request or by age.

Reasons are phrases for error messages: "job 5f… (train) goes on from it".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.database.tables import Adaptation, Agent, Champion, DomainModel, Job, Promotion, Run, Trial, Workload
from app.errors import Conflict
from app.jobs.repository import OPEN

RUNNING = "running"
MOST_NAMED = 5

Reasons = Mapping[int, Sequence[str]]
"""Reasons by version; versions without any are left out."""


class OpenJob(NamedTuple):
    """A queued, running or waiting job, with its request."""

    id: str
    type: str
    request: Mapping[str, Any]

    def __str__(self) -> str:
        return f"job {self.id} ({self.type})"


def refuse(what: str, reasons: Sequence[str], remedy: str = "") -> None:
    """Raise Conflict with the ``reasons`` against deleting ``what`` and a ``remedy``; no effect without reasons."""
    if reasons:
        more = f" and {len(reasons) - MOST_NAMED} more" if len(reasons) > MOST_NAMED else ""
        text = "; ".join(reasons[:MOST_NAMED])
        raise Conflict(f"{what} can't be deleted: {text}{more}{'; ' if remedy else ''}{remedy}")


def open_jobs(session: Session, workload_id: str) -> list[OpenJob]:
    """A workload's jobs that have not ended, without trials."""
    statement = select(Job.id, Job.type, Job.request).where(Job.workload_id == workload_id, Job.type != "trial")
    rows = session.execute(statement.where(Job.state.in_(OPEN)).order_by(Job.created_at, Job.id))
    return [OpenJob(row.id, row.type, row.request) for row in rows]


def going_on(session: Session, workload_id: str) -> Adaptation | None:
    """The workload's adaptation in progress; None if there is none."""
    return session.scalar(
        select(Adaptation).where(Adaptation.workload_id == workload_id, Adaptation.going_on.is_(True))
    )


def workload(session: Session, workload_id: str) -> list[str]:
    """Reasons against deleting a workload: running runs and open jobs."""
    running = select(Run.id).where(Run.workload_id == workload_id, Run.state == RUNNING)
    runs = session.scalars(running.order_by(Run.created_at, Run.id).limit(MOST_NAMED + 1))
    return [
        *(f"run {run} is running" for run in runs),
        *(f"{job} has not ended" for job in open_jobs(session, workload_id)),
    ]


def samples(session: Session, workload_id: str) -> list[str]:
    """Reasons against deleting a workload's samples: open jobs."""
    return [f"{job} has not ended, and may read it" for job in open_jobs(session, workload_id)]


def run(session: Session, run: Run) -> list[str]:
    """Reasons against deleting a run; empty if nothing needs it."""
    if run.state == RUNNING:
        return ["it is running; finish or fail it first"]
    adaptation = going_on(session, run.workload_id)
    if adaptation is not None and (run.id == adaptation.run_id or run.id in adaptation.marks):
        return [f"adaptation {adaptation.id}, which is in progress, is judged by it"]
    return []


def job(session: Session, job: Job) -> list[str]:
    """Reasons against deleting a job; empty if nothing needs it."""
    if job.state in OPEN:
        return ["it has not ended; cancel it first"]
    adaptation = going_on(session, job.workload_id)
    if adaptation is not None and adaptation.job_id == job.id:
        return [f"adaptation {adaptation.id}, which is in progress, needs its result"]
    parent = select(Job.id).join(Trial, Trial.parent_id == Job.id).where(Trial.job_id == job.id)
    training = session.scalar(parent.where(Job.state.in_(OPEN)))
    return [] if training is None else [f"job {training} (train) compares it"]


def agents(session: Session, workload_id: str) -> Reasons:
    """Reasons against deleting a workload's agents, by version; versions that nothing needs are missing."""
    return _by_version(_agents(session, workload_id))


def _agents(session: Session, workload_id: str) -> Iterator[tuple[int | None, str]]:
    for champion in session.scalars(select(Champion).where(Champion.workload_id == workload_id)):
        yield champion.version, f"it is the champion of role {champion.role!r}"
        # Version that a rollback of a champion restores; None: the heuristics
        statement = select(Promotion.previous).where(
            Promotion.workload_id == champion.workload_id,
            Promotion.role == champion.role,
            Promotion.agent_version == champion.version,
        )
        yield (
            session.scalar(statement.order_by(Promotion.created_at.desc(), Promotion.id.desc()).limit(1)),
            f"agent {champion.version}, the champion, would be rolled back to it",
        )
    shadows = select(Run.shadow_version, func.min(Run.id).label("run")).where(
        Run.workload_id == workload_id, Run.shadow_version.is_not(None), Run.state == RUNNING
    )
    for row in session.execute(shadows.group_by(Run.shadow_version)):
        yield row.shadow_version, f"it is the shadow of run {row.run}, which is running"
    for one in open_jobs(session, workload_id):
        yield one.request.get("start_from"), f"{one} continues it"
        for version in one.request.get("agents") or ():
            yield version, f"{one} judges it"
    adaptation = going_on(session, workload_id)
    if adaptation is not None:
        yield adaptation.agent_version, f"adaptation {adaptation.id}, which is in progress, is testing it"
        yield adaptation.predecessor, f"adaptation {adaptation.id}, which is in progress, may roll it back"


def models(session: Session, workload_id: str) -> Reasons:
    """Reasons against deleting a workload's domain models, by version; versions that nothing needs are missing."""
    return _by_version(_models(session, workload_id))


def _models(session: Session, workload_id: str) -> Iterator[tuple[int | None, str]]:
    own = select(Agent.model_version).join(
        Champion, (Champion.workload_id == Agent.workload_id) & (Champion.version == Agent.version)
    )
    if not any(session.scalars(own.where(Agent.workload_id == workload_id))):
        newest = select(func.max(DomainModel.version)).where(DomainModel.workload_id == workload_id)
        yield session.scalar(newest), "decisions use it: it is the newest, and no agent uses another"
    trained = select(Agent.version, Agent.model_version).where(Agent.workload_id == workload_id)
    for agent in session.execute(trained.order_by(Agent.version)):
        yield agent.model_version, f"agent {agent.version} was trained on it"
    for one in open_jobs(session, workload_id):
        yield one.request.get("model"), f"{one} uses it"
    adaptation = going_on(session, workload_id)
    if adaptation is not None:
        yield adaptation.model_version, f"adaptation {adaptation.id}, which is in progress, uses it"


def _by_version(reasons: Iterator[tuple[int | None, str]]) -> Reasons:
    by_version: dict[int, list[str]] = defaultdict(list)
    for version, reason in reasons:
        if version is not None:
            by_version[version].append(reason)
    return by_version


def forget_version(row: Workload, *, agent: int = 0, model: int = 0) -> None:
    """Record the number of a deleted version of the agent or the domain model (0: none), so that it isn't reused."""
    if agent:
        row.deleted_agent = max(row.deleted_agent or 0, agent)
    if model:
        row.deleted_model = max(row.deleted_model or 0, model)


def needed_runs(session: Session, workload_id: str) -> list[str]:
    """Ids of ended runs that an adaptation in progress needs."""
    adaptation = going_on(session, workload_id)
    return [] if adaptation is None else [adaptation.run_id, *adaptation.marks]


def needed_jobs(session: Session, workload_id: str) -> list[str]:
    """Ids of ended jobs that an adaptation in progress or an open training needs."""
    adaptation = going_on(session, workload_id)
    parent = select(Job.id).where(Job.workload_id == workload_id, Job.state.in_(OPEN))
    trials = session.scalars(select(Trial.job_id).where(Trial.parent_id.in_(parent))).all()
    return [*trials, *([adaptation.job_id] if adaptation is not None and adaptation.job_id is not None else [])]
