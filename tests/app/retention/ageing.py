"""Workloads whose runs, jobs, evaluations and versions are old."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.database.engine import Database
from app.database.tables import Agent, DomainModel, Evaluation, Iteration, Job, JobEvent, Run

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OLD, YOUNG = NOW - timedelta(days=100), NOW - timedelta(days=1)


def clock(_: Session) -> datetime:
    """The time at which things are deleted."""
    return NOW


def add_run(database: Database, workload_id: str, identifier: str, iterations: int, **changes: Any) -> str:
    """A run that ended long ago."""
    row: dict[str, Any] = {
        "state": "finished",
        "created_at": OLD,
        "finished_at": OLD,
        "next_iteration": iterations,
    } | changes
    common = {"spec_version": 1, "start": {}, "state_vector": [], "decision": {"kind": "iterative"}}
    with database.session() as session:
        session.add(Run(id=identifier, tenant="default", workload_id=workload_id, **common, **row))
        session.flush()
        session.add_all(
            Iteration.of(
                identifier,
                number,
                {"metrics": {"iteration_seconds": number}},
                {"kind": "iterative", "iteration": number + 1},
                tenant="default",
                digest=f"{number:032}",
                reported_at=OLD,
            )
            for number in range(row.get("kept_from") or 0, iterations)
        )
    return identifier


def add_job(database: Database, workload_id: str, identifier: str, events: int, state: str = "succeeded") -> str:
    """A job that ended long ago, or has not."""
    ended = OLD if state in ("succeeded", "failed", "cancelled") else None
    common = {"type": "fit", "request": {}, "state": state, "created_at": OLD, "finished_at": ended}
    with database.session() as session:
        session.add(Job(id=identifier, tenant="default", workload_id=workload_id, **common))
        session.flush()
        session.add_all(
            JobEvent(tenant="default", job_id=identifier, sequence=1 + i, data={"state": "running"}, created_at=OLD)
            for i in range(events)
        )
    return identifier


def age(database: Database, *tables: type[Agent | DomainModel | Evaluation]) -> None:
    """Have all rows be old."""
    with database.session() as session:
        for table in tables:
            session.execute(update(table).values(created_at=OLD))


def count(database: Database, table: type[Any]) -> int:
    """Rows of a table."""
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def iterations(database: Database, run: str) -> list[int]:
    """What is stored of a run."""
    with database.reading() as session:
        statement = select(Iteration.iteration).where(Iteration.run_id == run).order_by(Iteration.iteration)
        return list(session.scalars(statement))


Interrupt = Callable[[], None]
