"""SQL about samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import delete, func, insert, or_, select, update
from sqlalchemy.orm import Session, undefer

from app.database.tables import Execution, Iteration
from app.http.pagination import PageRequest, Slice, paginate


class Known(NamedTuple):
    """A stored execution, without its data."""

    id: str
    name: str
    digest: str
    iterations: int


def known(session: Session, workload_id: str, names: Sequence[str]) -> dict[str, Known]:
    """Those of the named executions that are stored."""
    columns = select(Execution.id, Execution.name, Execution.digest, Execution.iterations)
    rows = session.execute(columns.where(Execution.workload_id == workload_id, Execution.name.in_(names)))
    return {row.name: Known(*row) for row in rows}


def add(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Insert executions."""
    if rows:
        session.execute(insert(Execution), rows)


def remove(session: Session, identifiers: Sequence[str]) -> None:
    """Delete executions by id."""
    if identifiers:
        session.execute(delete(Execution).where(Execution.id.in_(identifiers)))


def count_of_tenant(session: Session, tenant: str) -> int:
    """How many executions of all its workloads are stored; nobody else counts until the transaction ends."""
    if session.get_bind().dialect.name == "postgresql":  # SQLite has one writer at a time
        session.execute(select(func.pg_advisory_xact_lock(func.hashtext(f"executions of {tenant}"))))
    return session.scalar(select(func.count(Execution.id)).where(Execution.tenant == tenant)) or 0


def remove_before(session: Session, workload_id: str, before: datetime) -> None:
    """Delete a workload's executions that were stored before a time."""
    old = (Execution.workload_id == workload_id, Execution.created_at < before)
    session.execute(delete(Execution).where(*old).execution_options(synchronize_session=False))


def count(session: Session, workload_id: str) -> int:
    """Number of a workload's executions."""
    found = session.scalar(select(func.count()).select_from(Execution).where(Execution.workload_id == workload_id))
    return found or 0


def listed(
    session: Session, workload_id: str, request: PageRequest, name: str | None = None, *, data: bool = False
) -> Slice[Execution]:
    """A workload's executions, oldest first, or the one of that name; with their data if asked."""
    statement = select(Execution).where(Execution.workload_id == workload_id)
    if data:
        statement = statement.options(undefer(Execution.data))
    if name is not None:
        statement = statement.where(Execution.name == name)
    weigh = _weight if data else None
    return paginate(session, statement, [Execution.created_at, Execution.id], request, weigh=weigh)


def _weight(row: Execution) -> int:
    return len(row.data)


def data_of(session: Session, identifier: str) -> bytes | None:
    """The data of an execution, if it is still there."""
    return session.scalar(select(Execution.data).where(Execution.id == identifier))


def add_summaries(session: Session, summaries: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep summaries, by the ids of their executions."""
    for identifier, summary in summaries.items():
        session.execute(update(Execution).where(Execution.id == identifier).values(summary=dict(summary)))


def stored(session: Session, workload_id: str) -> Iterator[tuple[str, bytes]]:
    """Identifier and data of all executions, oldest first."""
    statement = select(Execution.name, Execution.data).where(Execution.workload_id == workload_id)
    rows = session.execute(statement.order_by(Execution.created_at, Execution.id).execution_options(yield_per=100))
    return ((row.name, row.data) for row in rows)


REPORTS_AT_ONCE = 500
PART = "@"
"""Between a run's id and the iteration from which a sample of it begins."""


class Cut(NamedTuple):
    """Where a run is cut: the iteration from which on something has drifted, and when that was noticed."""

    since: int
    at: datetime


def remove_of_run(session: Session, workload_id: str, run_id: str) -> None:
    """Delete what a run was made samples of."""
    names = or_(Execution.name == run_id, Execution.name.startswith(f"{run_id}{PART}"))
    of_run = Execution.workload_id == workload_id, Execution.source == "run", names
    session.execute(delete(Execution).where(*of_run).execution_options(synchronize_session=False))


def reports_of_run(session: Session, run_id: str) -> list[tuple[int, dict[str, Any]]]:
    """The reports of a run with their iterations, in order."""
    statement = select(Iteration).where(Iteration.run_id == run_id).order_by(Iteration.iteration)
    rows = session.scalars(statement.execution_options(yield_per=REPORTS_AT_ONCE))
    return [(row.iteration, row.report) for row in rows]
