"""SQL queries on exogenous rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, delete, func, select
from sqlalchemy.orm import Session, aliased

from app.database.leases import insert
from app.database.tables import ExogenousRow
from app.http.pagination import PageRequest, Slice, decode_cursor, encode_cursor, paginate
from app.kinds.forecasting.answer import Forecaster, Observed


class Series(NamedTuple):
    """Summary of a series: number of rows, first and last time, and newest issue."""

    series: str
    rows: int
    since: datetime
    until: datetime
    issued_at: datetime


class Period(NamedTuple):
    """Times from ``since`` to before ``until``, None: unbounded; ``issued_at``: one issue, None: the newest."""

    since: datetime | None = None
    until: datetime | None = None
    issued_at: datetime | None = None


def put(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows, replacing those of the same workload, series, time and issue."""
    statement = insert(session, ExogenousRow.__table__)
    keys = [column.name for column in ExogenousRow.__table__.primary_key]
    values = {name: statement.excluded[name] for name in ("mean", "low", "high")}
    session.execute(statement.on_conflict_do_update(index_elements=keys, set_=values), rows)


def count(session: Session, workload_id: str) -> int:
    """Number of rows of a workload, of all series and issues."""
    return session.scalar(select(func.count()).where(ExogenousRow.workload_id == workload_id)) or 0


def _summaries(workload_id: str) -> Select[str, int, datetime, datetime, datetime]:
    row = ExogenousRow
    summary = (func.count(), func.min(row.time), func.max(row.time), func.max(row.issued_at))
    return select(row.series, *summary).where(row.workload_id == workload_id).group_by(row.series)


def find(session: Session, workload_id: str, series: str) -> Series | None:
    """Summary of a series; None if it has no rows."""
    found = session.execute(_summaries(workload_id).where(ExogenousRow.series == series)).first()
    return None if found is None else Series(*found)


def list_series(session: Session, workload_id: str, request: PageRequest) -> Slice[Series]:
    """One page of a workload's series, ordered by name."""
    statement = _summaries(workload_id).order_by(ExogenousRow.series).limit(request.limit + 1)
    if request.cursor is not None:
        statement = statement.where(ExogenousRow.series > decode_cursor(request.cursor, [str])[0])
    found = [Series(*row) for row in session.execute(statement)]
    rows = found[: request.limit]
    return Slice(rows, encode_cursor([rows[-1].series]) if len(found) > len(rows) else None)


def _newest(workload_id: str, known_at: datetime | None = None) -> Select[ExogenousRow]:
    """Query for the newest row of each series and time; of those issued by ``known_at``, if given."""
    row, other = ExogenousRow, aliased(ExogenousRow)
    last = select(func.max(other.issued_at)).where(
        other.workload_id == row.workload_id, other.series == row.series, other.time == row.time
    )
    if known_at is not None:
        last = last.where(other.issued_at <= known_at)
    return select(row).where(row.workload_id == workload_id, row.issued_at == last.scalar_subquery())


def rows(session: Session, workload_id: str, series: str, period: Period, request: PageRequest) -> Slice[ExogenousRow]:
    """One page of a series' rows within a period, ordered by time, one row per time."""
    row = ExogenousRow
    statement = _newest(workload_id)
    if period.issued_at is not None:
        statement = select(row).where(row.workload_id == workload_id, row.issued_at == period.issued_at)
    statement = statement.where(row.series == series)
    if period.since is not None:
        statement = statement.where(row.time >= period.since)
    if period.until is not None:
        statement = statement.where(row.time < period.until)
    return paginate(session, statement, [row.time], request)


def newest(session: Session, workload_id: str, known_at: datetime | None = None) -> list[ExogenousRow]:
    """The newest row of each series and time, ordered by both; of those issued by ``known_at``, if given."""
    statement = _newest(workload_id, known_at).order_by(ExogenousRow.series, ExogenousRow.time)
    return list(session.scalars(statement))


def list_observations(session: Session, workload_id: str, since: datetime) -> list[ExogenousRow]:
    """Observations (rows issued after their own time) of times from ``since`` on, in order of issue."""
    row = ExogenousRow
    statement = select(row).where(row.workload_id == workload_id, row.time >= since, row.issued_at > row.time)
    return list(session.scalars(statement.order_by(row.issued_at)))


def remove(session: Session, workload_id: str, series: str, before: datetime | None) -> None:
    """Delete a series; with ``before``, only its rows of earlier times."""
    statement = delete(ExogenousRow).where(ExogenousRow.workload_id == workload_id, ExogenousRow.series == series)
    session.execute(statement if before is None else statement.where(ExogenousRow.time < before))


# Observed counts of arrivals, uploaded after each interval, from which forecasts continue.


def counts(session: Session, workload_id: str, forecasters: Sequence[Forecaster]) -> Observed:
    """Observed counts by series and time (POSIX seconds), from the end of the forecasters' training data on."""
    ends = {one.name: one.history for one in forecasters}
    found: dict[str, dict[float, float]] = {name: {} for name in ends}
    since = datetime.fromtimestamp(min(history.end for history in ends.values()), UTC)
    for row in list_observations(session, workload_id, since):
        if row.series in ends and row.issued_at.timestamp() >= row.time.timestamp() + ends[row.series].seconds:
            found[row.series][row.time.timestamp()] = row.mean
    return found
