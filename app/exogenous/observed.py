"""Counts of what came, as users put them after each interval: forecasts go on from there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy.orm import Session

from app.exogenous import repository
from app.kinds.forecasting.answer import Observed
from app.kinds.forecasting.forecaster import Forecaster


def counts(session: Session, workload_id: str, forecasters: Sequence[Forecaster]) -> Observed:
    """Rows that were issued when their interval was over, by series and time, after what forecasters were fitted to."""
    ends = {one.name: one.history for one in forecasters}
    found: dict[str, dict[float, float]] = {name: {} for name in ends}
    since = datetime.fromtimestamp(min(history.end for history in ends.values()), UTC)
    for row in repository.observed(session, workload_id, since):
        if row.series in ends and row.issued_at.timestamp() >= row.time.timestamp() + ends[row.series].seconds:
            found[row.series][row.time.timestamp()] = row.mean
    return found
