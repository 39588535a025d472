"""SQL queries on evaluations, on executions to hold out, and on champions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session, undefer

from app.database.tables import Agent, Champion, DomainModel, Evaluation, Execution, Job, Workload
from app.http.pagination import PageRequest, Slice, json_size, paginate

NAMES_AT_ONCE = 500


class StoredName(NamedTuple):
    """Name and time of storage of an execution that can be held out."""

    name: str
    created_at: datetime


def find(session: Session, tenant: str, evaluation_id: str, *, whole: bool = False) -> Evaluation | None:
    """A tenant's evaluation by id, with its figures if `whole`; None if there is none."""
    statement = select(Evaluation).where(Evaluation.tenant == tenant, Evaluation.id == evaluation_id)
    return session.scalar(statement.options(undefer(Evaluation.report)) if whole else statement)


def page(session: Session, tenant: str, evaluation_id: str) -> bytes | None:
    """The HTML report, compressed by zlib; None if there is no such evaluation."""
    statement = select(Evaluation.page).where(Evaluation.tenant == tenant, Evaluation.id == evaluation_id)
    return session.scalar(statement)


def list_evaluations(session: Session, tenant: str, request: PageRequest, workload_id: str | None) -> Slice[Evaluation]:
    """One page of a tenant's evaluations, newest first; workload None: any."""
    statement = select(Evaluation).where(Evaluation.tenant == tenant)
    if workload_id is not None:
        statement = statement.where(Evaluation.workload_id == workload_id)
    keys = [Evaluation.created_at, Evaluation.id]
    return paginate(session, statement, keys, request, descending=True, weigh=_weight)


def _weight(row: Evaluation) -> int:
    return json_size([row.request, row.verdicts])


def stored_executions(session: Session, workload_id: str) -> list[StoredName]:
    """Names and times of a workload's executions, oldest first."""
    statement = select(Execution.name, Execution.created_at).where(Execution.workload_id == workload_id)
    rows = session.execute(statement.order_by(Execution.created_at, Execution.id))
    return [StoredName(row.name, row.created_at) for row in rows]


def existing_names(session: Session, workload_id: str, names: Sequence[str]) -> set[str]:
    """The names that executions of the workload have."""
    found: set[str] = set()
    for start in range(0, len(names), NAMES_AT_ONCE):
        some = names[start : start + NAMES_AT_ONCE]
        statement = select(Execution.name).where(Execution.workload_id == workload_id, Execution.name.in_(some))
        found.update(session.scalars(statement))
    return found


def model_time(session: Session, workload_id: str, version: int) -> datetime | None:
    """Creation time of a version of the domain model; None if there is no such version."""
    statement = select(DomainModel.created_at)
    return session.scalar(statement.where(DomainModel.workload_id == workload_id, DomainModel.version == version))


def is_busy(session: Session) -> bool:
    """Whether any tenant's job is queued, or any evaluation running."""
    going_on = and_(Job.type == "evaluate", Job.state == "running")
    return session.scalar(select(Job.id).where(or_(Job.state == "queued", going_on)).limit(1)) is not None


def job_state(session: Session, job_id: str) -> str | None:
    """State of a job; None if it was deleted."""
    return session.scalar(select(Job.state).where(Job.id == job_id))


class ChampionAgent(NamedTuple):
    """A champion: its agent's id and version, its workload's id, and the version of the workload's spec."""

    id: str
    version: int
    workload_id: str
    spec_version: int


def champions(session: Session) -> list[ChampionAgent]:
    """Champions of all tenants and roles, without duplicates, oldest agent first."""
    same = and_(Agent.workload_id == Champion.workload_id, Agent.version == Champion.version)
    statement = select(Agent.id, Agent.version, Workload.id, Workload.spec_version).join(Champion, same)
    statement = statement.join(Workload, Workload.id == Agent.workload_id).order_by(Agent.created_at, Agent.id)
    return list(dict.fromkeys(ChampionAgent(*row) for row in session.execute(statement)))
