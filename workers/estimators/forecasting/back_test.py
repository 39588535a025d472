"""Rolling origins: each family is fitted to what was before, and told what came after, several times over.

What answers at a horizon is what errs least there: a family, or several weighed, of which each fold is told by the
weights of the others. Its interval is conformal (Vovk et al., 2005; Papadopoulos, 2008): quantiles of the errors at
origins that no fit had seen; the coverage that is told is of each fold by the errors of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from app.kinds.forecasting.forecaster import LEVEL, Forecaster, Forward, bounded
from app.kinds.forecasting.series import DAY, DAYS, WEEK, Floats, Series, unscaled
from app.kinds.forecasting.stacked import Family, Stacked
from workers.estimators.forecasting.families import ALL, STACKED, Asked, fitted
from workers.estimators.forecasting.stacking import cross_fitted, weighed
from workers.estimators.forecasting.told import Told

HELD_OUT, FOLDS = 0.25, 3
LEAST_KEPT = 2_000
FEWEST = 24  # intervals, without which nothing is said


def forecaster(
    name: str, series: Series, horizons: Sequence[int], seed: int, names: Sequence[str] = ALL
) -> tuple[Forecaster, dict[str, Any]]:
    """The best at each horizon, fitted to all of a series; and the report.

    Args:
        name: of the series.
        series: at least ``FEWEST`` intervals.
        horizons: in intervals; those that are longer than an eighth of the series are left out.
        seed: of networks and trees.
        names: of the families that are tried; an ARIMA is needed for the hybrid.
    """
    asked = Asked(series.sized(), tuple(ahead for ahead in horizons if ahead < len(series.counts) // 8), seed, names)
    return chosen(name, asked, back_test(asked), fitted(asked, len(series.counts)))


def chosen(
    name: str, asked: Asked, told: list[dict[str, Told]], every: dict[str, Forward]
) -> tuple[Forecaster, dict[str, Any]]:
    """See ``forecaster``.

    Args:
        name: of the series.
        asked: what all families were fitted to.
        told: of the back-test.
        every: the families, fitted to all.
    """
    series, told, every = asked.series, [*told], dict(every)
    if len(every) > 1:
        every[STACKED] = _stacked(asked, told, every)
        told = [{**families, STACKED: cross_fitted(families)} for families in told]
    names = [min(families, key=lambda one: families[one].error()) for families in told]
    used = sorted(set(names))
    best = [families[one] for families, one in zip(told, names, strict=True)]
    made = Forecaster(
        name,
        asked.horizons,
        tuple(used.index(one) for one in names),
        tuple(used),
        tuple(every[one] for one in used),
        np.stack([one.errors(range(FOLDS)) for one in best]),
        series.since(max(len(series.counts) - kept(series), 0)),
    )
    return made, _report(asked, told, names)


def _stacked(asked: Asked, told: Sequence[dict[str, Told]], every: Mapping[str, Forward]) -> Stacked:
    """Families weighed at each horizon by the whole back-test; without those that weigh nothing at any."""
    names = [*told[0]]
    weights = np.stack([weighed(families, range(FOLDS)) for families in told])
    used = np.flatnonzero(weights.any(axis=0)).tolist()
    return Stacked(asked.horizons, tuple(cast("Family", every[names[one]]) for one in used), weights[:, used])


def kept(series: Series) -> int:
    """How many of the last intervals tell all that any family reads; an ARIMA has long forgotten what was before."""
    day, week = (round(span / series.seconds) for span in (DAY, WEEK))
    return max(LEAST_KEPT, (DAYS + 2) * day, 2 * week)


def back_test(asked: Asked) -> list[dict[str, Told]]:
    """What each family told, by horizon."""
    count = len(asked.series.counts)
    cuts = np.linspace(count * (1 - HELD_OUT), count, FOLDS + 1).astype(np.int64).tolist()
    found: list[dict[str, Told]] = [{} for _ in asked.horizons]
    for first, last in pairwise(cuts):
        families = fitted(asked._replace(series=asked.series.until(first)), cuts[0])
        for name, family in families.items():
            for families_of, (medians, came) in zip(found, played(family, asked, first, last), strict=True):
                told = families_of.setdefault(name, Told([], [], asked.series.unit))
                told.medians.append(medians)
                told.came.append(came)
    return found


def played(family: Forward, asked: Asked, first: int, last: int) -> list[tuple[Floats, Floats]]:
    """By horizon, what a family told of the intervals from ``first`` to ``last``, and what came; in scaled terms."""
    series, values = asked.series.until(last), asked.series.scaled
    origins = np.arange(max(first - max(asked.horizons), 0), last - 1)
    medians = family.medians(series, origins)
    found = []
    for place, ahead in enumerate(asked.horizons):
        within = (origins + ahead >= first) & (origins + ahead < last)
        found.append((medians[within, place], values[origins[within] + ahead]))
    return found


def coverage(told: Told) -> float:
    """Share of what came that was within the bounds, of each fold by the others' errors."""
    inside = []
    for fold, (medians, came) in enumerate(zip(told.medians, told.came, strict=True)):
        others = [place for place in range(len(told.came)) if place != fold]
        bounds = bounded(medians[:, None], told.errors(others)[None], told.unit)
        counts = unscaled(came, told.unit)
        inside.append((bounds.low[:, 0] <= counts + 1e-9) & (counts <= bounds.high[:, 0] + 1e-9))
    return float(np.concatenate(inside).mean())


def _report(asked: Asked, told: list[dict[str, Told]], answering: Sequence[str]) -> dict[str, Any]:
    """What each family erred by, in counts, at each horizon; the least first."""
    horizons = []
    for ahead, families, best in zip(asked.horizons, told, answering, strict=True):
        ranked = sorted(families, key=lambda name: families[name].error())
        horizons.append(
            {
                "horizon_seconds": ahead * asked.series.seconds,
                "family": best,
                "coverage": coverage(families[best]),
                "level": LEVEL,
                "held_out": sum(map(len, families[best].came)),
                "candidates": [
                    {"family": name, "mae": families[name].error(), "chosen": name == best} for name in ranked
                ],
            }
        )
    return {
        "interval_seconds": asked.series.seconds,
        "intervals": len(asked.series.counts),
        "origins": FOLDS,
        "horizons": horizons,
    }
