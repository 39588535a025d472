"""Which family answers: cross-validation grouped by execution, then a fit on everything."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from workers.estimators.base import Estimator, Floats, Inputs, Integers, Prediction, TooLittleData
from workers.estimators.combined import Blend
from workers.estimators.intervals import Offsets, calibrate
from workers.estimators.mean import Mean
from workers.estimators.registry import FAMILIES, FREE, Family
from workers.estimators.replicates import distinct
from workers.estimators.stages import Form, Rows, Stages, decompose

MOST_FOLDS = 10
MOST_ALONE = 20  # executions up to which each is a fold of its own
FEWEST_INPUTS = 5
SIMPLER = 1.01  # a simpler family is taken if its error is within this factor of the best,
DOUBT = 1.0  # or within so many standard errors of the paired difference between executions (Breiman et al. 1984),
WORST = 1.2  # but never beyond this factor
SMALL_SAMPLE_PENALTY = 2.5  # with n executions the error of a family that is free in form counts 1 + CAUTION / n times
BLENDED = 3
BLENDING_NEEDS = 7  # distinct inputs per parameter of the simplest family
Name = TypeVar("Name", bound=str)
Reading = Callable[[Estimator, Floats, Floats], Floats]
"""Log of a fitted family's median at ``X`` [n, D], read as whoever uses it will, after learning from inputs [l, D]."""


def directly(fitted: Estimator, learned: Floats, X: Floats) -> Floats:  # noqa: ARG001 - see ``Reading``
    """The family itself."""
    return np.asarray(np.log(fitted.median(X)), np.float64)


@dataclass(frozen=True)
class Candidate:
    """A family that was tried: its held-out predictions of the log metric [n], or why there are none."""

    family: str
    held_out: Floats | None
    log_error: float
    mape: float
    reason: str = ""

    def residuals(self, logs: Floats) -> Floats:
        """Held-out log residuals [n] of a candidate that could be fitted."""
        return np.full(len(logs), np.nan) if self.held_out is None else logs - self.held_out

    def report(self, chosen: str) -> dict[str, Any]:
        """As in a model's report."""
        found: dict[str, Any] = {"family": self.family, "chosen": self.family == chosen}
        if self.held_out is None:
            return found | {"mape": None, "reason": self.reason}
        return found | {"mape": self.mape, "log_error": self.log_error}


@dataclass(frozen=True)
class Selection:
    """The chosen family fitted on all rows, with what cross-validation found.

    Attributes:
        family: its name; form: how iterations enter; stages: levels and elasticities.
        estimator: fitted on all rows.
        candidates: all that were tried, in order of complexity.
        offsets: conformal bounds of the log residual, at inputs that were not measured where the folds say so.
        folds: fold of each row by execution alone, [n]; residuals: log residuals of the chosen family without it, [n].
    """

    family: str
    form: Form
    stages: Stages
    estimator: Estimator
    candidates: tuple[Candidate, ...]
    offsets: Offsets
    folds: Integers
    residuals: Floats

    @property
    def chosen(self) -> Candidate:
        """The candidate that was chosen."""
        return next(c for c in self.candidates if c.family == self.family)

    @property
    def naive_mape(self) -> float:
        """Error of the mean, whatever the allocation and iteration."""
        return next(c.mape for c in self.candidates if c.family == "mean")

    def log_mean(self, X: Floats, bins: Integers) -> Floats:
        """Log of the median at ``X`` [n, D] in ``bins`` [n]."""
        return self.stages.compose(np.log(self.estimator.median(X)), bins)

    def predict(self, X: Floats, bins: Integers | None = None) -> Prediction:
        """Median and calibrated interval for a row of a new execution."""
        centre = self.log_mean(X, np.zeros(len(X), np.intp) if bins is None else bins)
        return Prediction(np.exp(centre), np.exp(centre + self.offsets.low), np.exp(centre + self.offsets.high))


def execution_folds(groups: Integers, seed: int) -> Integers:
    """Fold of each row [n]; the rows of an execution share one."""
    names, inverse = np.unique(groups, return_inverse=True)
    count = len(names) if len(names) <= MOST_ALONE else MOST_FOLDS if len(names) <= 100 else MOST_FOLDS // 2
    fold = np.random.default_rng(seed).permutation(len(names)) % count
    return fold[inverse].astype(np.intp)


def input_folds(X: Floats, groups: Integers, seed: int) -> Integers:
    """Fold of each row [n]; where executions stayed at one input each, and inputs were repeated, it is by input.

    The error is then that at an input which was not measured, as most of an allocation grid is not. Else by execution.
    """
    first, cell = distinct(X)
    runs, _ = distinct(X, groups)
    still = len(runs) == len(np.unique(groups))
    return execution_folds(cell if still and FEWEST_INPUTS <= len(first) < len(runs) else groups, seed)


def select(
    inputs: Inputs,
    X: Floats,
    y: Floats,
    groups: Integers,
    bins: Integers | None = None,
    *,
    bin_count: int = 1,
    seed: int = 0,
    families: dict[str, Family] | None = None,
    reading: Reading = directly,
) -> Selection:
    """Fit the families that the data can carry to ``X`` [n, D] and ``y`` [n], and choose.

    ``groups`` [n] names the execution of each row, ``bins`` [n] its iteration bin. The form of the iterations is chosen
    first, with the simplest family; then the family. A family is judged by its mean absolute log error, which at small
    errors is the MAPE, and at large ones does not favour predicting too low. Everything is measured through
    ``reading``.

    Raises:
        TooLittleData: a single execution.
    """
    if len(np.unique(groups)) < 2:
        raise TooLittleData("2 executions", f"{len(np.unique(groups))}")
    rows = Rows(X, np.log(y), groups, np.zeros(len(y), np.intp) if bins is None else bins)
    tried = FAMILIES if families is None else families
    folds = input_folds(X, groups, seed), execution_folds(groups, seed)
    with threadpool_limits(1):
        return _select(inputs, rows, folds, bin_count, tried, reading)


def _select(
    inputs: Inputs,
    rows: Rows,
    both: tuple[Integers, Integers],
    bins: int,
    families: dict[str, Family],
    reading: Reading,
) -> Selection:
    folds, by_execution = both
    forms: tuple[Form, ...] = ("none", "levels", "elastic") if bins > 1 else ("none",)
    split = {form: _decompositions(rows, folds, bins, form) for form in forms}
    form = _form(inputs, rows, folds, split, families)
    candidates = _candidates(inputs, rows, folds, split[form], families, reading)
    if bins > 1:  # the naive mean knows no iterations
        candidates["mean"] = _validate(Mean(inputs), rows, folds, split["none"])
    able = {name: _penalised(c, rows, families) for name, c in candidates.items() if c.held_out is not None}
    complexity = {name: families[name].complexity if name in families else FREE + 1 for name in able}
    family = _simplest(able, complexity)
    stages = split[form][-1]
    estimator = _make(family, candidates, families, inputs)
    estimator.fit(stages.rows.X, np.exp(stages.rows.logs), stages.rows.groups)
    found = candidates[family]
    offsets = calibrate(_honest(able, candidates, rows, folds, complexity), rows.groups, folds)
    if not np.array_equal(folds, by_execution):
        found = _validate(estimator, rows, by_execution, _decompositions(rows, by_execution, bins, form), reading)
    residuals = found.residuals(rows.logs)
    return Selection(family, form, stages, estimator, tuple(candidates.values()), offsets, by_execution, residuals)


def _form(
    inputs: Inputs, rows: Rows, folds: Integers, split: dict[Form, list[Stages]], families: dict[str, Family]
) -> Form:
    """How iterations enter, judged with a simple family."""
    probe = families.get("log_linear", next(iter(families.values()))).make(inputs)
    errors = {form: _by_execution(_validate(probe, rows, folds, split[form]), rows) for form in split}
    return _simplest(errors, {form: place for place, form in enumerate(errors)})


def _decompositions(rows: Rows, folds: Integers, bins: int, form: Form) -> list[Stages]:
    """Stages without each fold in turn, and last of all rows."""
    return [
        *(decompose(rows.where(folds != k), bins, form) for k in range(folds.max() + 1)),
        decompose(rows, bins, form),
    ]


def _candidates(
    inputs: Inputs,
    rows: Rows,
    folds: Integers,
    split: list[Stages],
    families: dict[str, Family],
    reading: Reading,
) -> dict[str, Candidate]:
    cells = len(distinct(split[-1].rows.X)[0])
    carried = {name: family for name, family in families.items() if cells >= family.needs(inputs)}
    tried = {name: _validate(family.make(inputs), rows, folds, split, reading) for name, family in carried.items()}
    ranked = sorted(
        (c for c in tried.values() if c.held_out is not None and c.family != "mean"), key=lambda c: c.log_error
    )
    if len(ranked) >= BLENDED and cells >= BLENDING_NEEDS * (1 + inputs.width):
        best = [c.held_out for c in ranked[:BLENDED] if c.held_out is not None]
        tried["blend"] = _judged("blend", np.mean(best, axis=0), rows.logs)
    return tried


def _validate(
    estimator: Estimator, rows: Rows, folds: Integers, split: list[Stages], reading: Reading = directly
) -> Candidate:
    """Held-out predictions; hyper-parameters are searched once, on all rows of the training set."""
    held_out = np.empty(len(rows.logs))
    try:
        every = split[-1].rows
        searched = estimator.frozen().fit(every.X, np.exp(every.logs), every.groups)
        for k, stages in enumerate(split[:-1]):
            judged = folds == k
            fitted = searched.frozen().fit(stages.rows.X, np.exp(stages.rows.logs), stages.rows.groups)
            curve = reading(fitted, rows.X[~judged], rows.X[judged])
            held_out[judged] = stages.compose(curve, rows.bins[judged])
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        return Candidate(estimator.name, None, np.inf, np.inf, f"could not be fitted: {error}")
    return _judged(estimator.name, held_out, rows.logs)


def _judged(name: str, held_out: Floats, logs: Floats) -> Candidate:
    error = held_out - logs
    return Candidate(name, held_out, float(np.abs(error).mean()), float(np.abs(np.expm1(error)).mean()))


def _simplest(errors: Mapping[Name, Floats], complexity: Mapping[Name, int]) -> Name:
    """Of the least complex ones that the best does not clearly beat (``errors`` [n] each), the best."""
    mean = {name: float(error.mean()) for name, error in errors.items()}
    best = errors[min(mean, key=lambda name: mean[name])]
    near = [name for name, error in errors.items() if not _clearly_worse(error, best)]
    return min(near, key=lambda name: (complexity[name], mean[name]))


def _by_execution(candidate: Candidate, rows: Rows) -> Floats:
    """Mean absolute log error of each execution, [G]."""
    _, execution = np.unique(rows.groups, return_inverse=True)
    held_out = np.full(len(rows.logs), np.inf) if candidate.held_out is None else candidate.held_out
    counts = np.bincount(execution)
    return np.asarray(np.bincount(execution, np.abs(held_out - rows.logs)) / counts, np.float64)


def _honest(
    errors: Mapping[str, Floats],
    candidates: Mapping[str, Candidate],
    rows: Rows,
    folds: Integers,
    complexity: Mapping[str, int],
) -> Floats:
    """Held-out log residuals [n] of a choice that did not see the fold: choosing among many makes errors look small."""
    _, first = np.unique(rows.groups, return_index=True)
    residuals = np.empty(len(rows.logs))
    for fold in np.unique(folds):
        judged = folds == fold
        others = folds[first] != fold
        family = _simplest({name: error[others] for name, error in errors.items()}, complexity)
        residuals[judged] = candidates[family].residuals(rows.logs)[judged]
    return residuals


def _penalised(candidate: Candidate, rows: Rows, families: dict[str, Family]) -> Floats:
    errors = _by_execution(candidate, rows)
    free = candidate.family not in families or families[candidate.family].complexity >= FREE
    return errors * (1 + SMALL_SAMPLE_PENALTY / len(errors)) if free else errors


def _clearly_worse(error: Floats, best: Floats) -> bool:
    excess = error - best
    least = float(best.mean())
    doubt = min(DOUBT * float(excess.std()) / np.sqrt(len(excess)), (WORST - 1) * least)
    return float(excess.mean()) > max(doubt, (SIMPLER - 1) * least, 1e-9)


def _make(family: str, candidates: dict[str, Candidate], families: dict[str, Family], inputs: Inputs) -> Estimator:
    if family != "blend":
        return families[family].make(inputs)
    ranked = sorted((c for c in candidates.values() if c.family not in ("mean", "blend")), key=lambda c: c.log_error)
    return Blend(inputs, [families[c.family].make(inputs) for c in ranked[:BLENDED]])
