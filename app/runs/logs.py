"""Reports of past runs: of ended runs as a whole, and of all runs within a time window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any, NamedTuple

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.database.tables import ADVISED, RULED, Iteration, Run
from app.runs.repository import RUNNING

LARGEST = 500
AT_ONCE = 1_000  # reports


class LoggedReports(NamedTuple):
    """Reports of a run in order, all or those of a time window, and its start parameters."""

    reports: Sequence[dict[str, Any]]
    start: Mapping[str, Any]


def logged_runs(session: Session, workload_id: str, limit: int = LARGEST) -> list[LoggedReports]:
    """The workload's newest ``limit`` ended runs that have reports, newest first.

    Runs started with a named rule are left out, as are those of mode ``advise``, because an agent's gain over what was
    done there says nothing about the default policy.
    """
    ended = select(Run.id, Run.start).where(
        *(Run.workload_id == workload_id, Run.state != "running", Run.next_iteration > 0, Run.kept_from.is_(None)),
        *(~RULED, ~ADVISED),
    )
    logged_runs = []
    for run, start in session.execute(ended.order_by(Run.created_at.desc(), Run.id.desc()).limit(limit)).all():
        rows = select(Iteration).where(Iteration.run_id == run).order_by(Iteration.iteration)
        logged_runs.append(LoggedReports([row.report for row in session.scalars(rows)], start))
    return logged_runs


def reported_runs(
    session: Session, workload_id: str, since: datetime, until: datetime, limit: int = LARGEST
) -> list[LoggedReports]:
    """Reports at ``since`` < time ≤ ``until`` of the workload's newest runs, newest first; only runs with any."""
    present = select(Run.id, Run.start).where(
        Run.workload_id == workload_id,
        Run.next_iteration > 0,
        Run.created_at <= until,
        or_(Run.state == RUNNING, Run.finished_at > since),
    )
    runs = session.execute(present.order_by(Run.created_at.desc(), Run.id.desc()).limit(limit)).all()
    results = [(_of_window(session, run, since, until), start) for run, start in runs]
    return [LoggedReports(reports, start) for reports, start in results if reports]


def _of_window(session: Session, run: str, since: datetime, until: datetime) -> list[dict[str, Any]]:
    """A run's reports in the window, in order; read backwards from the last, so that earlier ones are not loaded."""
    rows = select(Iteration).where(Iteration.run_id == run)
    rows = rows.order_by(Iteration.iteration.desc()).execution_options(yield_per=AT_ONCE)
    with session.scalars(rows) as newest:
        late = takewhile(lambda row: row.reported_at > since, newest)
        return [row.report for row in late if row.reported_at <= until][::-1]
