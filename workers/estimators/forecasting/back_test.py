"""Rolling origins: families are fitted to what was before an origin, and compared with what came after it.

The first folds choose the family that answers at each horizon (``choose``) and the weights of a stack; the folds after
them, which neither had any part in, tell how large its error is and how much its interval covers. The interval is
conformal (Vovk et al., 2005; Papadopoulos, 2008): quantiles of the errors at origins that no fit had seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from app.kinds.forecasting.answer import LEVEL, Forecaster, Forward, bounded, written
from app.kinds.forecasting.families import Family, Stacked
from app.kinds.forecasting.series import DAY, DAYS, WEEK, Floats, Series, calendar, seasons, unscaled
from workers.estimators.forecasting.families import (
    ALL,
    ARIMA,
    HYBRID,
    QUICK,
    SIMPLICITY,
    STACKED,
    Asked,
    Told,
    cross_fitted,
    fitted,
    weighed,
)

HELD_OUT, FOLDS, CHOOSING = 1 / 3, 4, 2
BLOCKS = 5  # of a fold, between which a standard error is taken, since successive errors are correlated
DAILY = 0.1  # share of the variance that the time of day explains, from which on there is a daily course
LEAST_KEPT = 2_000
FEWEST = 24  # intervals, without which nothing is said


class BackTest(NamedTuple):
    """What a back-test found, by horizon.

    Attributes:
        families: medians of each family on the folds that choose, the stack's included.
        weights: of the families in the stack, in their order, [H, F].
        names: of the family that answers.
        answers: medians of the family that answers, on all folds.
    """

    families: list[dict[str, Told]]
    weights: Floats
    names: list[str]
    answers: list[Told]

    @property
    def needed(self) -> set[str]:
        """Families that have to be fitted for those that answer."""
        members, stacks = [*self.families[0]], np.array([name == STACKED for name in self.names])
        found = {members[place] for place in np.flatnonzero(self.weights[stacks].any(axis=0))}
        found |= {*self.names} - {STACKED}
        return found | ({ARIMA} if HYBRID in found else set())


def forecaster(
    name: str, series: Series, horizons: Sequence[int], seed: int, names: Sequence[str] = ALL
) -> tuple[Forecaster, dict[str, Any]]:
    """The family that answers at each horizon, fitted to all of a series; and the report.

    Args:
        name: of the series.
        series: at least ``FEWEST`` intervals.
        horizons: in intervals; those that are longer than an eighth of the series are left out.
        seed: of networks and trees.
        names: of the families that are tried; an ARIMA is needed for the hybrid.
    """
    asked = Asked(series.sized(), tuple(ahead for ahead in horizons if ahead < len(series.counts) // 8), seed, names)
    tested = back_test(asked)
    return chosen(name, asked, tested, fitted(asked._replace(names=tested.needed), len(series.counts)))


def chosen(
    name: str, asked: Asked, tested: BackTest, every: Mapping[str, Forward]
) -> tuple[Forecaster, dict[str, Any]]:
    """The forecaster that answers with the families of a back-test, and its report.

    Args:
        name: of the series.
        asked: what all families were fitted to.
        tested: the back-test.
        every: the families that it needs, fitted to all.
    """
    series, answering = asked.series, _answering(asked, tested, every)
    made = Forecaster(
        name,
        asked.horizons,
        tuple([*answering].index(one) for one in tested.names),
        tuple(answering),
        tuple(answering.values()),
        np.stack([one.errors(range(FOLDS)) for one in tested.answers]),
        series.since(max(len(series.counts) - kept(series), 0)),
    )
    return made, _report(asked, tested)


def choose(families: Mapping[str, Told], ahead: int, *, daily: bool) -> str:
    """The family that answers ``ahead`` intervals before: one rule for all series.

    Of the families whose mean absolute error is within one standard error of the least (Breiman et al. 1984), the
    ARIMA + GRU hybrid where there is a daily course, else the simplest in the order of ``SIMPLICITY``. The standard
    error is that of the difference to the best, between blocks of origins no shorter than the horizon.
    """
    best = min(families.values(), key=Told.error)
    near = [name for name, one in families.items() if not _clearly_worse(one, best, ahead)]
    return HYBRID if daily and HYBRID in near else min(near, key=SIMPLICITY.index)


def _clearly_worse(one: Told, best: Told, ahead: int) -> bool:
    blocks = list[float]()
    for own, least in zip(one.absolute, best.absolute, strict=True):
        count = min(max(len(own) // ahead, 1), BLOCKS)
        blocks += [float(part.mean()) for part in np.array_split(own - least, count)]
    doubt = float(np.std(blocks, ddof=1)) / np.sqrt(len(blocks))
    return one.error() - best.error() > doubt


def daily_course(series: Series) -> float:
    """Share of the variance of scaled counts that the time of day explains in the second half of a series, by harmonics
    fitted to the first half; 0 where the series is too short to know a day.
    """
    half, day = len(series.counts) // 2, round(DAY / series.seconds)
    if day not in seasons(half, series.seconds):
        return 0.0
    values, dated = series.scaled, calendar(series.times, (day,))
    course = np.linalg.lstsq(dated[:half], values[:half], rcond=None)[0]
    return float(1 - (values - dated @ course)[half:].var() / max(float(values[half:].var()), 1e-12))


def _answering(asked: Asked, tested: BackTest, every: Mapping[str, Forward]) -> dict[str, Forward]:
    """The families that answer at some horizon, out of fitted ones."""
    found = {name: every[name] for name in sorted({*tested.names} - {STACKED})}
    if STACKED in tested.names:
        own = np.where(np.array([[name == STACKED] for name in tested.names]), tested.weights, 0.0)
        members, used = [*tested.families[0]], np.flatnonzero(own.any(axis=0)).tolist()
        stacked = tuple(cast("Family", every[members[place]]) for place in used)
        found[STACKED] = Stacked(asked.horizons, stacked, own[:, used])
    return found


def kept(series: Series) -> int:
    """How many of the last intervals tell all that any family reads; an ARIMA has long forgotten what was before."""
    day, week = (round(span / series.seconds) for span in (DAY, WEEK))
    return max(LEAST_KEPT, (DAYS + 2) * day, 2 * week)


def back_test(asked: Asked) -> BackTest:
    """Choose on the first folds, and follow what answers over the later ones, where nothing else is fitted."""
    count = len(asked.series.counts)
    cuts = np.linspace(count * (1 - HELD_OUT), count, FOLDS + 1).astype(np.int64).tolist()
    folds = [*pairwise(cuts)]
    alone: list[dict[str, Told]] = [{} for _ in asked.horizons]
    for first, last in folds[:CHOOSING]:
        for name, family in fitted(asked._replace(series=asked.series.until(first)), cuts[0]).items():
            for families, (medians, came) in zip(alone, played(family, asked, first, last), strict=True):
                families.setdefault(name, Told([], [], asked.series.unit)).add(medians, came)
    weights = np.stack([weighed(families, range(CHOOSING)) for families in alone])
    every = [families | ({STACKED: cross_fitted(families)} if len(families) > 1 else {}) for families in alone]
    daily = daily_course(asked.series.until(cuts[CHOOSING])) >= DAILY
    names = [choose(families, ahead, daily=daily) for families, ahead in zip(every, asked.horizons, strict=True)]
    tested = BackTest(
        every, weights, names, [families[name].copy() for families, name in zip(every, names, strict=True)]
    )
    needed = asked._replace(names=tested.needed)
    for first, last in folds[CHOOSING:]:
        known = fitted(needed._replace(series=asked.series.until(first)), cuts[0])
        answering = _answering(asked, tested, known)
        found = {name: played(family, asked, first, last) for name, family in answering.items()}
        for place, (name, answer) in enumerate(zip(names, tested.answers, strict=True)):
            answer.add(*found[name][place])
    return tested


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
    """Share of what came within the bounds, on the folds that did not choose; each by the errors of those before it."""
    inside = []
    for fold in range(CHOOSING, FOLDS):
        bounds = bounded(told.medians[fold][:, None], told.errors(range(fold))[None], told.unit)
        counts = unscaled(told.came[fold], told.unit)
        inside.append((bounds.low[:, 0] <= counts + 1e-9) & (counts <= bounds.high[:, 0] + 1e-9))
    return float(np.concatenate(inside).mean())


def _report(asked: Asked, tested: BackTest) -> dict[str, Any]:
    """Mean absolute errors in counts by horizon: of the family that answers on the folds after the choice, and of all
    families on the folds that chose, the least first.
    """
    horizons = []
    for ahead, families, name, answer in zip(
        asked.horizons, tested.families, tested.names, tested.answers, strict=True
    ):
        later = range(CHOOSING, FOLDS)
        ranked = sorted(families, key=lambda one: families[one].error())
        horizons.append(
            {
                "horizon_seconds": ahead * asked.series.seconds,
                "family": name,
                "mae": answer.error(later),
                "coverage": coverage(answer),
                "level": LEVEL,
                "held_out": sum(len(answer.came[fold]) for fold in later),
                "candidates": [{"family": one, "mae": families[one].error(), "chosen": one == name} for one in ranked],
            }
        )
    return {
        "interval_seconds": asked.series.seconds,
        "intervals": len(asked.series.counts),
        "origins": FOLDS,
        "choosing_origins": CHOOSING,
        "horizons": horizons,
    }


# Forecasters of several series at once, as a domain model keeps them.


SECONDS = 600.0
"""Of an interval, where a kind has no reason to count by others."""
HORIZONS = (1, 6, 36, 144)
MOST_INTERVALS = 100_000
MOST_TRAINED = 4


def counted(times: Floats, classes: NDArray[Any], names: Sequence[str]) -> dict[str, Series]:
    """What came by class, in whole intervals from the first to the last; none where these are too few.

    Args:
        times: when each came, ascending, in seconds since 1970 or since a start of its own, [n].
        classes: positions in ``names``, [n].
        names: of the series.
    """
    first, last = (int(times[end] // SECONDS) for end in (0, -1)) if len(times) else (0, 0)
    first = max(first, last - MOST_INTERVALS)
    if last - first < FEWEST:
        return {}
    place = (times // SECONDS).astype(np.int64) - first
    whole = (place >= 0) & (place < last - first)  # the last interval, in which the log ends, is left out
    each = [np.bincount(place[whole & (classes == one)], minlength=last - first) for one in range(len(names))]
    start = SECONDS * first
    return {name: Series(own.astype(np.float64), start, SECONDS) for name, own in zip(names, each, strict=True)}


def forecasters(series: Mapping[str, Series], seed: int) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """What a model keeps of them, and the report of each by name; networks and trees are for the busiest alone."""
    busiest = sorted(series, key=lambda name: -float(series[name].counts.sum()))[:MOST_TRAINED]
    found = [forecaster(name, one, HORIZONS, seed, ALL if name in busiest else QUICK) for name, one in series.items()]
    told = {name: report for name, (_, report) in zip(series, found, strict=True)}
    return (written([made for made, _ in found]) if found else np.zeros(0, np.uint8)), told
