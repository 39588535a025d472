"""Back-test with rolling origins: families are fitted to the counts before an origin and compared with those after it.

The first folds choose the family for each horizon (``choose``) and the weights of a stack; the later folds, which had
no part in either, give its error and the coverage of its interval. The interval is conformal (Vovk et al. 2005;
Papadopoulos 2008): quantiles of the errors at origins that no fit had used.

Shapes: H horizons, F families, m intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from app.kinds.forecasting.answer import LEVEL, Forecaster, Forward, forecast_bounds, serialise
from app.kinds.forecasting.families import Family, Stacked
from app.kinds.forecasting.series import DAY, DAYS, WEEK, Floats, Series, calendar, seasons, unscale
from workers.estimators.forecasting.families import (
    ALL,
    ARIMA,
    HYBRID,
    QUICK,
    SIMPLICITY,
    STACKED,
    FitTask,
    HorizonForecasts,
    cross_fitted,
    fit_families,
    stacking_weights,
)

HELD_OUT, FOLDS, CHOOSING = 1 / 3, 4, 2
BLOCKS = 5  # per fold, for a standard error between blocks, since successive errors are correlated
DAILY = 0.1  # least share of variance explained by the time of day that counts as a daily course
LEAST_KEPT = 2_000
FEWEST = 24  # fewest intervals for a forecast


class BackTest(NamedTuple):
    """Results of a back-test over H horizons and F families; a stack is a weighted sum of families' medians.

    Attributes:
        families: for each horizon, medians by family's name (stack included) on the folds that choose the family.
        weights: weights of the families in each horizon's stack, in the order of ``families``, [H, F].
        names: name of the chosen family for each horizon.
        chosen_forecasts: medians of the chosen family on all folds, for each horizon.
    """

    families: list[dict[str, HorizonForecasts]]
    weights: Floats
    names: list[str]
    chosen_forecasts: list[HorizonForecasts]

    @property
    def needed(self) -> set[str]:
        """Names of the families to fit: the chosen ones, the members of a chosen stack, and ARIMA for ARIMA + GRU."""
        members, stacks = [*self.families[0]], np.array([name == STACKED for name in self.names])
        result = {members[place] for place in np.flatnonzero(self.weights[stacks].any(axis=0))}
        result |= {*self.names} - {STACKED}
        return result | ({ARIMA} if HYBRID in result else set())


def forecaster(
    name: str, series: Series, horizons: Sequence[int], seed: int, names: Sequence[str] = ALL
) -> tuple[Forecaster, dict[str, Any]]:
    """Back-test a series, and fit the chosen family of each horizon to all of it; return forecaster and JSON report.

    Args:
        name: name of the series.
        series: counts of at least 24 intervals (`FEWEST`).
        horizons: numbers of intervals; only those shorter than an eighth of the series are used, at least one.
        seed: seed of networks and trees.
        names: names of the families to try; ARIMA + GRU needs ARIMA among them.
    """
    task = FitTask(series.sized(), tuple(ahead for ahead in horizons if ahead < len(series.counts) // 8), seed, names)
    tested = back_test(task)
    return build_forecaster(name, task, tested, fit_families(task._replace(names=tested.needed), len(series.counts)))


def build_forecaster(
    name: str, task: FitTask, tested: BackTest, every: Mapping[str, Forward]
) -> tuple[Forecaster, dict[str, Any]]:
    """Return the forecaster from the families that a back-test chose, and its JSON report.

    Args:
        name: name of the series.
        task: series, horizons, seed and families of the back-test.
        tested: results of the back-test.
        every: the families in ``tested.needed``, fitted to the whole series, by name.
    """
    series, answering = task.series, _answering(task, tested, every)
    forecaster = Forecaster(
        name,
        task.horizons,
        tuple([*answering].index(one) for one in tested.names),
        tuple(answering),
        tuple(answering.values()),
        np.stack([one.errors(range(FOLDS)) for one in tested.chosen_forecasts]),
        series.since(max(len(series.counts) - history_length(series), 0)),
    )
    return forecaster, _report(task, tested)


def choose(families: Mapping[str, HorizonForecasts], ahead: int, *, daily: bool) -> str:
    """Return the best family's name for a horizon of ``ahead`` intervals, from medians and counts in ``families``.

    The candidates are the families whose mean absolute error is within one standard error of the least (Breiman et al.
    1984). Of these it is ARIMA + GRU if ``daily`` (counts depend on the time of day), else the simplest family. The
    standard error is that of the difference to the best family, over blocks of origins no shorter than the horizon.
    """
    best = min(families.values(), key=HorizonForecasts.error)
    near = [name for name, one in families.items() if not _clearly_worse(one, best, ahead)]
    return HYBRID if daily and HYBRID in near else min(near, key=SIMPLICITY.index)


def _clearly_worse(one: HorizonForecasts, best: HorizonForecasts, ahead: int) -> bool:
    blocks = list[float]()
    for own, least in zip(one.absolute, best.absolute, strict=True):
        count = min(max(len(own) // ahead, 1), BLOCKS)
        blocks += [float(part.mean()) for part in np.array_split(own - least, count)]
    doubt = float(np.std(blocks, ddof=1)) / np.sqrt(len(blocks))
    return one.error() - best.error() > doubt


def daily_course(series: Series) -> float:
    """Return the share (at most 1) of the scaled counts' variance, in a series' second half, due to the time of day.

    Harmonics are fitted to the first half. 0 where the series is too short for a daily season; negative for a bad fit.
    """
    half, day = len(series.counts) // 2, round(DAY / series.seconds)
    if day not in seasons(half, series.seconds):
        return 0.0
    values, dated = series.scaled, calendar(series.times, (day,))
    course = np.linalg.lstsq(dated[:half], values[:half], rcond=None)[0]
    return float(1 - (values - dated @ course)[half:].var() / max(float(values[half:].var()), 1e-12))


def _answering(task: FitTask, tested: BackTest, every: Mapping[str, Forward]) -> dict[str, Forward]:
    """Return the families chosen at any horizon, by name, from the fitted ones in ``every``; stacks are built here."""
    result = {name: every[name] for name in sorted({*tested.names} - {STACKED})}
    if STACKED in tested.names:
        own = np.where(np.array([[name == STACKED] for name in tested.names]), tested.weights, 0.0)
        members, used = [*tested.families[0]], np.flatnonzero(own.any(axis=0)).tolist()
        stacked = tuple(cast("Family", every[members[place]]) for place in used)
        result[STACKED] = Stacked(task.horizons, stacked, own[:, used])
    return result


def history_length(series: Series) -> int:
    """Return the number of last intervals of a series that a forecaster needs for every family's features and lags."""
    day, week = (round(span / series.seconds) for span in (DAY, WEEK))
    return max(LEAST_KEPT, (DAYS + 2) * day, 2 * week)


def back_test(task: FitTask) -> BackTest:
    """Choose families on the first 2 of 4 folds, and refit and score only the chosen ones on the other folds."""
    count = len(task.series.counts)
    cuts = np.linspace(count * (1 - HELD_OUT), count, FOLDS + 1).astype(np.int64).tolist()
    folds = [*pairwise(cuts)]
    alone: list[dict[str, HorizonForecasts]] = [{} for _ in task.horizons]
    for first, last in folds[:CHOOSING]:
        for name, family in fit_families(task._replace(series=task.series.until(first)), cuts[0]).items():
            for families, (medians, came) in zip(alone, replay_family(family, task, first, last), strict=True):
                families.setdefault(name, HorizonForecasts([], [], task.series.unit)).add(medians, came)
    weights = np.stack([stacking_weights(families, range(CHOOSING)) for families in alone])
    every = [families | ({STACKED: cross_fitted(families)} if len(families) > 1 else {}) for families in alone]
    daily = daily_course(task.series.until(cuts[CHOOSING])) >= DAILY
    names = [choose(families, ahead, daily=daily) for families, ahead in zip(every, task.horizons, strict=True)]
    tested = BackTest(
        every, weights, names, [families[name].copy() for families, name in zip(every, names, strict=True)]
    )
    needed = task._replace(names=tested.needed)
    for first, last in folds[CHOOSING:]:
        known = fit_families(needed._replace(series=task.series.until(first)), cuts[0])
        answering = _answering(task, tested, known)
        results = {name: replay_family(family, task, first, last) for name, family in answering.items()}
        for place, (name, answer) in enumerate(zip(names, tested.chosen_forecasts, strict=True)):
            answer.add(*results[name][place])
    return tested


def replay_family(family: Forward, task: FitTask, first: int, last: int) -> list[tuple[Floats, Floats]]:
    """Return, for each horizon, a family's medians and the actual values of the intervals ``first`` to ``last`` − 1.

    Both are [m], for m intervals, and scaled: ln(1 + count / unit).
    """
    series, values = task.series.until(last), task.series.scaled
    origins = np.arange(max(first - max(task.horizons), 0), last - 1)
    medians = family.medians(series, origins)
    forecasts = []
    for place, ahead in enumerate(task.horizons):
        within = (origins + ahead >= first) & (origins + ahead < last)
        forecasts.append((medians[within, place], values[origins[within] + ahead]))
    return forecasts


def coverage(forecasts: HorizonForecasts) -> float:
    """Return the share (0 to 1) of later folds' counts inside the 90 % interval from the preceding folds' errors."""
    inside = []
    for fold in range(CHOOSING, FOLDS):
        bounds = forecast_bounds(forecasts.medians[fold][:, None], forecasts.errors(range(fold))[None], forecasts.unit)
        counts = unscale(forecasts.came[fold], forecasts.unit)
        inside.append((bounds.low[:, 0] <= counts + 1e-9) & (counts <= bounds.high[:, 0] + 1e-9))
    return float(np.concatenate(inside).mean())


def _report(task: FitTask, tested: BackTest) -> dict[str, Any]:
    """Return the JSON report of a back-test: by horizon, mean absolute error (counts) and coverage (0 to 1)."""
    horizons = []
    for ahead, families, name, answer in zip(
        task.horizons, tested.families, tested.names, tested.chosen_forecasts, strict=True
    ):
        later = range(CHOOSING, FOLDS)
        ranked = sorted(families, key=lambda one: families[one].error())
        horizons.append(
            {
                "horizon_seconds": ahead * task.series.seconds,
                "family": name,
                "mae": answer.error(later),
                "coverage": coverage(answer),
                "level": LEVEL,
                "held_out": sum(len(answer.came[fold]) for fold in later),
                "candidates": [{"family": one, "mae": families[one].error(), "chosen": one == name} for one in ranked],
            }
        )
    return {
        "interval_seconds": task.series.seconds,
        "intervals": len(task.series.counts),
        "origins": FOLDS,
        "choosing_origins": CHOOSING,
        "horizons": horizons,
    }


# Forecasters of several series at once, as stored in a domain model.


SECONDS = 600.0
"""Default length of a counting interval, in seconds."""
HORIZONS = (1, 6, 36, 144)
MOST_INTERVALS = 100_000
MOST_TRAINED = 4


def count_by_class(times: Floats, classes: NDArray[Any], names: Sequence[str]) -> dict[str, Series]:
    """Count arrivals by class in whole intervals of 600 seconds (`SECONDS`); empty for fewer than 24 intervals.

    Args:
        times: arrival times in ascending order, in seconds since 1970 or since any other origin, [n].
        classes: index of each arrival's class in ``names``, [n].
        names: names of the classes, and so of the series.
    """
    first, last = (int(times[end] // SECONDS) for end in (0, -1)) if len(times) else (0, 0)
    first = max(first, last - MOST_INTERVALS)
    if last - first < FEWEST:
        return {}
    place = (times // SECONDS).astype(np.int64) - first
    whole = (place >= 0) & (place < last - first)  # the incomplete last interval is left out
    each = [np.bincount(place[whole & (classes == one)], minlength=last - first) for one in range(len(names))]
    start = SECONDS * first
    return {name: Series(own.astype(np.float64), start, SECONDS) for name, own in zip(names, each, strict=True)}


def forecasters(series: Mapping[str, Series], seed: int) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """Fit a forecaster to each series; return all as serialised bytes, uint8 [n], and their JSON reports by name.

    n is 0 without series. Networks and trees are tried for the 4 series (`MOST_TRAINED`) with the most arrivals only.
    """
    busiest = sorted(series, key=lambda name: -float(series[name].counts.sum()))[:MOST_TRAINED]
    fits = [forecaster(name, one, HORIZONS, seed, ALL if name in busiest else QUICK) for name, one in series.items()]
    fields = {name: report for name, (_, report) in zip(series, fits, strict=True)}
    return (serialise([result for result, _ in fits]) if fits else np.zeros(0, np.uint8)), fields
