"""Learn how curves of an application go, and which family tells best what is left, on later points of other curves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.learning_curves import (
    AGES,
    ALIKE,
    FAMILIES,
    PARAMETRIC,
    Ahead,
    LearningCurves,
    Seen,
    kept,
    like_others,
    parametric,
)

LEVEL = 0.9
POINTS, DIRECTIONS = 48, 8
FEWEST_CURVES, FEWEST_POINTS = 9, 5
"""Of nine errors one is beyond a tenth of those to come (``_factor``); of fewer none is."""
WHOLE = 0.95
"""Of the median length that a curve must reach to say how others go."""
OWN_NOISE = 0.02
FOLDS = 5
SMALLEST = 1e-9


class Curve(NamedTuple):
    """One job's: iterations, ascending, and values that rise, [n] each."""

    iteration: Floats
    value: Floats


class Tested(NamedTuple):
    """Ends that were foretold from ``AGES`` on, [n]; NaN where a family says nothing.

    Attributes:
        error, half: of each family, and half its interval, [2, n].
        gain: what was gained by the end.
        curve: of which curve.
        age: from which of ``AGES``.
    """

    error: Floats
    half: Floats
    gain: Floats
    curve: Integers
    age: Integers


class Fitted(NamedTuple):
    """A class of curves, as ``LearningCurves`` has them, and its report."""

    grid: Floats
    mean: Floats
    basis: Floats
    noise: Floats
    family: int
    factor: Floats
    report: dict[str, Any]


def fit_class(curves: Sequence[Curve], seed: int) -> Fitted:
    """How curves of one application go; with too few whole ones nothing is learned but how wide intervals must be."""
    usable = [one for one in curves if len(one.value) >= FEWEST_POINTS]
    whole = _whole(usable)
    if len(whole) < FEWEST_CURVES:
        return _alone(whole or usable or curves, _tested([], usable, np.arange(len(usable))), len(curves))
    fold = np.random.default_rng([seed, 11]).permutation(len(whole)) % FOLDS
    parts = [
        _tested(
            [one for one, at in zip(whole, fold.tolist(), strict=True) if at != held],
            whole,
            np.flatnonzero(fold == held),
        )
        for held in range(FOLDS)
    ]
    tested = Tested(*(np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True)))
    errors = _errors(tested)
    family = ALIKE if np.isnan(errors).any() else int(errors.argmin())
    grid, mean, basis, noise = alike(whole)
    return Fitted(grid, mean, basis, noise, family, _factors(tested), _report(tested, family, len(curves)))


def classes(application: Sequence[int], rises: Sequence[bool], fitted: Sequence[Fitted]) -> LearningCurves:
    """All classes together."""
    if not fitted:
        return none()
    family, factor = np.array([one.family for one in fitted]), np.stack([one.factor for one in fitted])
    grid, mean, basis, noise = (np.stack(parts) for parts in zip(*(one[:4] for one in fitted), strict=True))
    names, directions = np.array(application, np.int64), np.array(rises, np.bool_)
    return LearningCurves(names, directions, grid, mean, basis, noise, family, factor)


def none() -> LearningCurves:
    """No class."""
    points, whole = np.zeros((0, POINTS)), np.zeros(0, np.int64)
    basis = np.zeros((0, POINTS, DIRECTIONS))
    return LearningCurves(
        whole, whole.astype(np.bool_), points, points, basis, points, whole, np.zeros((0, len(FAMILIES), len(AGES)))
    )


def alike(curves: Sequence[Curve]) -> tuple[Floats, Floats, Floats, Floats]:
    """Grid [E], mean [E], basis [E, R] and noise [E] of whole curves: their principal components."""
    grid = np.linspace(
        min(one.iteration[0] for one in curves), float(np.median([one.iteration[-1] for one in curves])), POINTS
    )
    table = np.stack([np.interp(grid, one.iteration, one.value) for one in curves])
    mean = table.mean(axis=0)
    _, size, across = np.linalg.svd(table - mean, full_matrices=False)
    number = min(DIRECTIONS, max(1, len(curves) - 2))
    basis = np.zeros((POINTS, DIRECTIONS))
    basis[:, :number] = across[:number].T * size[:number] / np.sqrt(max(len(curves) - 1, 1))
    varied = table.var(axis=0)
    rest = np.maximum(varied - (basis**2).sum(axis=1), 0.0)
    # points of a grid that is finer than the curve repeat what it says
    denser = max(1.0, POINTS / float(np.median([len(one.value) for one in curves])))
    return grid, mean, basis, denser * (rest + OWN_NOISE * varied) + SMALLEST * max(float(varied.max()), SMALLEST)


def _whole(curves: Sequence[Curve]) -> list[Curve]:
    if not curves:
        return []
    usual = float(np.median([one.iteration[-1] for one in curves]))
    return [one for one in curves if one.iteration[-1] >= WHOLE * usual]


def _tested(known: Sequence[Curve], curves: Sequence[Curve], asked: Integers) -> Tested:
    """Ends of the ``asked`` curves, of which the service has what it keeps; by the parametric family alone where none
    are known.
    """
    which, ages = np.repeat(asked, len(AGES)), np.tile(np.arange(len(AGES)), len(asked))
    own = [curves[at] for at in which.tolist()]
    seen, until = _cut(own, [*AGES] * len(asked))
    end = np.array([one.value[-1] for one in own])
    lone = parametric(seen, until)
    others = Ahead(*np.full((len(Ahead._fields), len(which)), np.nan))
    if len(known):
        learned = classes([0], [True], [Fitted(*alike(known), ALIKE, np.ones((len(FAMILIES), len(AGES))), {})])
        others = like_others(learned, 0, seen, until)
    error = np.stack([one.level + one.gain - end for one in (others, lone)])
    return Tested(error, np.stack([others.half, lone.half]), end - lone.level, which, ages)


def _cut(curves: Sequence[Curve], parts: Sequence[float]) -> tuple[Seen, Floats]:
    """What is kept of curves at their first points at which a part is done, the last never; and where they end."""
    until = np.array([one.iteration[-1] for one in curves])
    due = (1 - SMALLEST) * np.asarray(parts) * until
    there = [
        _kept(min(int(np.searchsorted(one.iteration, when)) + 1, len(one.value) - 1))
        for one, when in zip(curves, due.tolist(), strict=True)
    ]
    iteration, value = np.full((2, len(curves), max(map(len, there), default=0)), np.nan)
    for row, (one, own) in enumerate(zip(curves, there, strict=True)):
        iteration[row, : len(own)], value[row, : len(own)] = one.iteration[own], one.value[own]
    return Seen(iteration, value), until


_kept = cache(kept)


def _errors(tested: Tested) -> Floats:
    """Mean absolute error of each family over what all of them foretell, [2]; NaN: one foretells nothing."""
    told = np.isfinite(tested.error).all(axis=0)
    if not told.any():
        return np.full(len(tested.error), np.nan)
    return np.asarray(np.abs(tested.error[:, told]).mean(axis=1), np.float64)


def _factors(tested: Tested) -> Floats:
    """Of each family and age, by which half intervals must be multiplied to hold, [2, 10]."""
    distance = _distance(tested)
    return np.array([[_factor(own[tested.age == age]) for age in range(len(AGES))] for own in distance])


def _distance(tested: Tested) -> Floats:
    """Errors in half intervals, [2, n]."""
    return np.asarray(np.abs(tested.error) / np.maximum(tested.half, SMALLEST), np.float64)


def _factor(distance: Floats) -> float:
    """What the distance of the next job is within with a probability of ``LEVEL``, if it is one like these [n].

    Conformal prediction: the ⌈``LEVEL``·(n + 1)⌉-th smallest (Lei et al., "Distribution-free predictive inference for
    regression", JASA 2018, section 2), here of curves that were left out (Barber et al., "Predictive inference with
    the jackknife+", Annals of Statistics 2021). NaN where n is too small for that.
    """
    told = np.sort(distance[np.isfinite(distance)])
    place = math.ceil(LEVEL * (len(told) + 1) - SMALLEST)
    return float(told[place - 1]) if place <= len(told) else math.nan


def _alone(curves: Sequence[Curve], tested: Tested, count: int) -> Fitted:
    start, end = curves[0].iteration[0], max(one.iteration[-1] for one in curves)
    grid, empty = np.linspace(start, max(end, start + 1e-9), POINTS), np.zeros(POINTS)
    report = _report(tested, PARAMETRIC, count)
    return Fitted(grid, empty, np.zeros((POINTS, DIRECTIONS)), empty + 1.0, PARAMETRIC, _factors(tested), report)


def _report(tested: Tested, family: int, curves: int) -> dict[str, Any]:
    """Errors of the end of curves, over ``AGES``, beside that of what they have by then."""
    there = np.asarray(np.isfinite(tested.error).any(axis=1), np.bool_)
    told = np.isfinite(tested.error[there]).all(axis=0) & there.any()
    if not told.any():
        return {"family": FAMILIES[family], "curves": curves, "error": None, "naive_error": None, "coverage": None}
    errors, gains = np.abs(tested.error[:, told]).mean(axis=1).tolist(), np.abs(tested.gain[told])
    candidates = [
        {"family": name, "error": error, "chosen": place == family}
        for place, (name, error) in enumerate(zip(FAMILIES, errors, strict=True))
        if there[place]
    ]
    return {
        "family": FAMILIES[family],
        "curves": curves,
        "candidates": candidates,
        "error": errors[family],
        "naive_error": float(gains.mean()) if np.isfinite(gains).all() else None,
        "coverage": _coverage(tested, family),
        "level": LEVEL,
    }


def _coverage(tested: Tested, family: int) -> float | None:
    """Share of ends within intervals whose width the other half of the curves told, age by age; None: too few."""
    distance, odd = _distance(tested)[family], tested.curve % 2 == 1
    inside = list[bool]()
    for own, age in itertools.product((odd, ~odd), range(len(AGES))):
        here = (tested.age == age) & np.isfinite(distance)
        factor = _factor(distance[~own & here])
        inside += (distance[own & here] <= factor).tolist() if np.isfinite(factor) else []
    return float(np.mean(inside)) if inside else None
