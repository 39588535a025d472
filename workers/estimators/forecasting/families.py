"""The families, the order of their simplicity, and how many intervals each needs before it is tried."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple, cast

from app.kinds.forecasting.forecaster import Forward
from app.kinds.forecasting.naive import Last, Seasonal
from app.kinds.forecasting.series import Series, seasons

if TYPE_CHECKING:
    from app.kinds.forecasting.arima import Arima

ARIMA, GRU, HYBRID, BOOSTING = "arima", "gru", "arima_gru", "gradient_boosting"
STACKED = "stacked"
LAST, DAY_BEFORE, WEEK_BEFORE = "last_value", "day_before", "week_before"


class Asked(NamedTuple):
    """What families are fitted to, and for; ``names``: of those that are tried."""

    series: Series
    horizons: tuple[int, ...]
    seed: int
    names: Collection[str]


class Family(NamedTuple):
    """How a family is fitted, given what others were fitted to already; and from how many intervals on it is tried."""

    fit: Callable[[Asked, dict[str, Forward]], Forward]
    needs: int


def _arima(asked: Asked, _: dict[str, Forward]) -> Forward:
    from workers.estimators.forecasting.arima import fit_arima

    return fit_arima(asked.series, asked.horizons)


def _gru(asked: Asked, _: dict[str, Forward]) -> Forward:
    from workers.estimators.forecasting.gru import fit_gru

    return fit_gru(asked.series, asked.horizons, asked.seed)


def _hybrid(asked: Asked, fitted: dict[str, Forward]) -> Forward:
    from workers.estimators.forecasting.gru import fit_gru

    return fit_gru(asked.series, asked.horizons, asked.seed, cast("Arima", fitted[ARIMA]))


def _boosting(asked: Asked, _: dict[str, Forward]) -> Forward:
    from workers.estimators.forecasting.boosting import fit_boosting

    return fit_boosting(asked.series, asked.horizons, asked.seed)


FAMILIES = {
    LAST: Family(lambda asked, _: Last(asked.horizons), 1),
    ARIMA: Family(_arima, 100),
    GRU: Family(_gru, 500),
    HYBRID: Family(_hybrid, 500),
    BOOSTING: Family(_boosting, 500),
}

QUICK = (LAST, DAY_BEFORE, WEEK_BEFORE, ARIMA)
ALL = (*QUICK, BOOSTING, GRU, HYBRID)
SIMPLICITY = (*ALL, STACKED)
"""From the simplest on, by what is fitted: nothing; a few coefficients; trees; networks; networks about an ARIMA; and
weights of all of these."""


def fitted(asked: Asked, counts: int) -> dict[str, Forward]:
    """All families that a series can carry.

    Args:
        asked: the series.
        counts: intervals that decide what it can carry: the same for all origins of a back-test.
    """
    found: dict[str, Forward] = {}
    for name, season in zip((DAY_BEFORE, WEEK_BEFORE), seasons(counts, asked.series.seconds), strict=False):
        if name in asked.names:
            found[name] = Seasonal(asked.horizons, season)
    for name, family in FAMILIES.items():
        if counts >= family.needs and name in asked.names:
            found[name] = family.fit(asked, found)
    return found
