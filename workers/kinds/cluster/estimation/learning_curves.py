"""Learn how curves of an application go, and which family tells best what is left, on later points of other curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.learning_curves import (
    ALIKE,
    FAMILIES,
    PARAMETRIC,
    LearningCurves,
    Seen,
    like_others,
    parametric,
)

POINTS, DIRECTIONS = 48, 8
FEWEST_CURVES, FEWEST_POINTS = 8, 5
WHOLE = 0.95
"""Of the median length that a curve must reach to say how others go."""
OWN_NOISE = 0.02
FOLDS = 5
PARTS = (0.2, 0.4, 0.6, 0.8)
"""Of curves, from which their ends are foretold."""
LEVEL, WIDEST = 0.9, 20.0
SMALLEST = 1e-9


class Curve(NamedTuple):
    """One job's: iterations, ascending, and values that rise, [n] each."""

    iteration: Floats
    value: Floats


class Tested(NamedTuple):
    """Ends that were foretold, [n]: error of each family and its half interval, [2, n]; gain; of which
    curve, and which of ``PARTS`` was seen of it.
    """

    error: Floats
    half: Floats
    gain: Floats
    curve: Integers
    part: Integers


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
        tested = _tested([], usable, np.zeros(0, np.int64))
        return _alone(whole or usable or curves, tested, len(curves))
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
    errors = np.abs(tested.error).mean(axis=1)
    family = int(errors.argmin())
    grid, mean, basis, noise = alike(whole)
    return Fitted(
        grid, mean, basis, noise, family, _factors(tested), _report(tested, family, len(curves), learned=True)
    )


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
        whole, whole.astype(np.bool_), points, points, basis, points, whole, np.zeros((0, len(FAMILIES), len(PARTS)))
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
    """Ends of the ``asked`` curves, from parts of each; of none but by the parametric family where none are known."""
    which = asked if len(known) else np.arange(len(curves))
    parts = [(at, part) for at in which.tolist() for part in PARTS]
    if not parts:
        nothing = np.zeros(0, np.int64)
        return Tested(np.zeros((2, 0)), np.zeros((2, 0)), np.zeros(0), nothing, nothing)
    seen, until = _cut([curves[at] for at, _ in parts], [part for _, part in parts])
    end = np.array([curves[at].value[-1] for at, _ in parts])
    lone = parametric(seen, until)
    if len(known):
        learned = classes([0], [True], [Fitted(*alike(known), ALIKE, np.ones((len(FAMILIES), len(PARTS))), {})])
        others = like_others(learned, 0, seen, until)
    else:
        others = lone
    told = (others, lone)
    error = np.stack([one.level + one.gain - end for one in told])
    half = np.stack([one.half for one in told])
    sound = np.isfinite(error).all(axis=0)
    curve = np.array([at for at, _ in parts])[sound]
    stage = np.tile(np.arange(len(PARTS)), len(which))[sound]
    return Tested(error[:, sound], half[:, sound], (end - lone.level)[sound], curve, stage)


def _cut(curves: Sequence[Curve], parts: Sequence[float]) -> tuple[Seen, Floats]:
    counts = [max(1, int(part * len(one.value))) for one, part in zip(curves, parts, strict=True)]
    iteration, value = np.full((2, len(curves), max(counts)), np.nan)
    for row, (one, count) in enumerate(zip(curves, counts, strict=True)):
        iteration[row, :count], value[row, :count] = one.iteration[:count], one.value[:count]
    return Seen(iteration, value), np.array([one.iteration[-1] for one in curves])


def _factors(tested: Tested) -> Floats:
    """Of each family and stage, by which half intervals must be multiplied to hold, [2, 4]; 1: not known."""
    stages = [tested.part == stage for stage in range(len(PARTS))]
    return np.stack(
        [_factor(_distance(tested)[:, own]) if own.any() else np.ones(len(FAMILIES)) for own in stages], axis=1
    )


def _distance(tested: Tested) -> Floats:
    """Errors in half intervals, [2, n]."""
    return np.asarray(np.abs(tested.error) / np.maximum(tested.half, SMALLEST), np.float64)


def _factor(distance: Floats) -> Floats:
    return np.asarray(np.clip(np.quantile(distance, LEVEL, axis=-1), 0.1, WIDEST), np.float64)


def _alone(curves: Sequence[Curve], tested: Tested, count: int) -> Fitted:
    start, end = curves[0].iteration[0], max(one.iteration[-1] for one in curves)
    grid, empty = np.linspace(start, max(end, start + 1e-9), POINTS), np.zeros(POINTS)
    factor, report = _factors(tested), _report(tested, PARAMETRIC, count, learned=False)
    return Fitted(grid, empty, np.zeros((POINTS, DIRECTIONS)), empty + 1.0, PARAMETRIC, factor, report)


def _report(tested: Tested, family: int, curves: int, *, learned: bool) -> dict[str, Any]:
    """Errors of the end of curves, from a fifth to four fifths of each, beside that of what they have by then."""
    if not tested.error.size:
        return {"family": FAMILIES[family], "curves": curves, "error": None, "naive_error": None, "coverage": None}
    errors = np.abs(tested.error).mean(axis=1)
    candidates = [
        {"family": name, "error": float(error), "chosen": place == family}
        for place, (name, error) in enumerate(zip(FAMILIES, errors, strict=True))
        if learned or place == PARAMETRIC
    ]
    return {
        "family": FAMILIES[family],
        "curves": curves,
        "candidates": candidates,
        "error": float(errors[family]),
        "naive_error": float(np.abs(tested.gain).mean()),
        "coverage": _coverage(tested, family),
        "level": LEVEL,
    }


def _coverage(tested: Tested, family: int) -> float:
    """Share of ends within intervals whose factor the curves of the other half asked for, stage by stage."""
    distance, odd = _distance(tested)[family], tested.curve % 2 == 1
    inside = [
        distance[own & here] <= _factor(distance[~own & here])
        for own in (odd, ~odd)
        for here in (tested.part == stage for stage in range(len(PARTS)))
        if (own & here).any() and (~own & here).any()
    ]
    return float(np.concatenate(inside).mean()) if inside else 1.0
