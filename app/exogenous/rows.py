"""SQL of exogenous series: values from outside a workload, such as arrivals or prices, that decisions depend on.

A row says: at ``time``, ``series`` has value ``mean`` with interval [``low``, ``high``], as known at ``issued_at``. A
row issued before its time is a forecast; one issued when its interval is over is an observation. Where several rows
are about the same time, the row issued last is in force.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session, aliased

from app.database.tables import ExogenousRow
from app.kinds.forecasting.answer import Forecaster, Observed


def in_force(workload_id: str, known_at: datetime | None = None) -> Select[ExogenousRow]:
    """Query for the row issued last, or last by ``known_at``, for each series and time of a workload."""
    row, other = ExogenousRow, aliased(ExogenousRow)
    last_issue = select(func.max(other.issued_at)).where(
        other.workload_id == row.workload_id, other.series == row.series, other.time == row.time
    )
    if known_at is not None:
        last_issue = last_issue.where(other.issued_at <= known_at)
    return select(row).where(row.workload_id == workload_id, row.issued_at == last_issue.scalar_subquery())


def rows_in_force(session: Session, workload_id: str, known_at: datetime | None = None) -> list[ExogenousRow]:
    """The row issued last for each series and time, ordered by both; ``known_at``: only of rows issued by then."""
    statement = in_force(workload_id, known_at).order_by(ExogenousRow.series, ExogenousRow.time)
    return list(session.scalars(statement))


def observed_counts(session: Session, workload_id: str, forecasters: Sequence[Forecaster]) -> Observed:
    """Values observed since the (one or more) forecasters were fitted: ``{series: {time in Unix seconds: value}}``.

    Only rows count that were issued after their interval was over; of several, the one issued last.
    """
    history = {forecaster.name: forecaster.history for forecaster in forecasters}
    since = datetime.fromtimestamp(min(one.end for one in history.values()), UTC)
    row = ExogenousRow
    statement = select(row).where(row.workload_id == workload_id, row.time >= since, row.issued_at > row.time)
    counts: dict[str, dict[float, float]] = {name: {} for name in history}
    for entry in session.scalars(statement.order_by(row.issued_at)):
        time = entry.time.timestamp()
        if entry.series in history and entry.issued_at.timestamp() >= time + history[entry.series].seconds:
            counts[entry.series][time] = entry.mean
    return counts
