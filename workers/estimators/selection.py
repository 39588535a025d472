"""Which family answers: cross-validation grouped by execution, then a fit on everything."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from workers.estimators.base import Estimator, Floats, Inputs, Integers, Prediction, TooLittleData
from workers.estimators.combined import Blend
from workers.estimators.intervals import Offsets, calibrate
from workers.estimators.registry import FAMILIES, Family
from workers.estimators.replicates import distinct
from workers.estimators.stages import Form, Rows, Stages, decompose

MOST_FOLDS = 10
SIMPLER = 1.01  # a simpler family is taken if its error is within this factor of the best
BLENDED = 3
Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class Candidate:
    """A family that was tried: its held-out predictions of the log metric [n], or why there are none."""

    family: str
    held_out: Floats | None
    log_error: float
    mape: float
    reason: str = ""

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
        folds: fold of each row, [n]; residuals: held-out log residuals of the chosen family, [n].
        offsets: conformal bounds of the log residual.
    """

    family: str
    form: Form
    stages: Stages
    estimator: Estimator
    candidates: tuple[Candidate, ...]
    folds: Integers
    residuals: Floats
    offsets: Offsets

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
        return self.stages.compose(np.log(self.estimator.predict(X).mean), bins)

    def predict(self, X: Floats, bins: Integers | None = None) -> Prediction:
        """Median and calibrated interval for a row of a new execution."""
        centre = self.log_mean(X, np.zeros(len(X), np.intp) if bins is None else bins)
        return Prediction(np.exp(centre), np.exp(centre + self.offsets.low), np.exp(centre + self.offsets.high))


def grouped_folds(groups: Integers, seed: int) -> Integers:
    """Fold of each row [n]; the rows of an execution share one."""
    names, inverse = np.unique(groups, return_inverse=True)
    count = min(len(names), MOST_FOLDS if len(names) <= 100 else MOST_FOLDS // 2)
    fold = np.random.default_rng(seed).permutation(len(names)) % count
    return fold[inverse].astype(np.intp)


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
) -> Selection:
    """Fit the families that the data can carry to ``X`` [n, D] and ``y`` [n], and choose.

    ``groups`` [n] names the execution of each row, ``bins`` [n] its iteration bin. The form of the iterations is chosen
    first, with the simplest family; then the family. A family is judged by its mean absolute log error, which at small
    errors is the MAPE, and at large ones does not favour predicting too low.

    Raises:
        TooLittleData: a single execution.
    """
    if len(np.unique(groups)) < 2:
        raise TooLittleData("2 executions", f"{len(np.unique(groups))}")
    rows = Rows(X, np.log(y), groups, np.zeros(len(y), np.intp) if bins is None else bins)
    folds = grouped_folds(groups, seed)
    with threadpool_limits(1):
        return _select(inputs, rows, folds, bin_count, FAMILIES if families is None else families)


def _select(inputs: Inputs, rows: Rows, folds: Integers, bins: int, families: dict[str, Family]) -> Selection:
    probe = "log_linear" if "log_linear" in families else next(iter(families))
    forms: tuple[Form, ...] = ("none", "levels", "elastic") if bins > 1 else ("none",)
    split = {form: _decompositions(rows, folds, bins, form) for form in forms}
    trials = {form: _validate(probe, families[probe], inputs, rows, folds, split[form]) for form in forms}
    form = _simplest({f: trials[f].log_error for f in forms})
    candidates = _candidates(inputs, rows, folds, split[form], families)
    if bins > 1:  # the naive mean knows no iterations
        candidates["mean"] = _validate("mean", families["mean"], inputs, rows, folds, split["none"])
    able = {name: c.log_error for name, c in candidates.items() if c.held_out is not None}
    family = _simplest(able)
    stages = split[form][-1]
    estimator = _make(family, candidates, families, inputs)
    estimator.fit(stages.rows.X, np.exp(stages.rows.logs), stages.rows.groups)
    held_out = candidates[family].held_out
    assert held_out is not None
    residuals = rows.logs - held_out
    offsets = calibrate(residuals, rows.groups, folds)
    return Selection(family, form, stages, estimator, tuple(candidates.values()), folds, residuals, offsets)


def _decompositions(rows: Rows, folds: Integers, bins: int, form: Form) -> list[Stages]:
    """Stages without each fold in turn, and last of all rows."""
    return [*(decompose(rows.where(folds != k), bins, form) for k in range(folds.max() + 1)), decompose(rows, bins, form)]


def _candidates(
    inputs: Inputs, rows: Rows, folds: Integers, split: list[Stages], families: dict[str, Family]
) -> dict[str, Candidate]:
    cells = len(distinct(split[-1].rows.X)[0])
    carried = {name: family for name, family in families.items() if cells >= family.needs(inputs)}
    tried = {name: _validate(name, family, inputs, rows, folds, split) for name, family in carried.items()}
    ranked = sorted((c for c in tried.values() if c.held_out is not None and c.family != "mean"), key=lambda c: c.log_error)
    if len(ranked) >= BLENDED:
        best = [c.held_out for c in ranked[:BLENDED] if c.held_out is not None]
        tried["blend"] = _judged("blend", np.mean(best, axis=0), rows.logs)
    return tried


def _validate(
    name: str, family: Family, inputs: Inputs, rows: Rows, folds: Integers, split: list[Stages]
) -> Candidate:
    """Held-out predictions; hyper-parameters are searched once, on all rows of the training set."""
    held_out = np.empty(len(rows.logs))
    try:
        searched = family.make(inputs).fit(split[-1].rows.X, np.exp(split[-1].rows.logs), split[-1].rows.groups)
        for k, stages in enumerate(split[:-1]):
            judged = folds == k
            fitted = searched.frozen().fit(stages.rows.X, np.exp(stages.rows.logs), stages.rows.groups)
            curve = np.log(fitted.predict(rows.X[judged]).mean)
            held_out[judged] = stages.compose(curve, rows.bins[judged])
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        return Candidate(name, None, np.inf, np.inf, f"could not be fitted: {error}")
    return _judged(name, held_out, rows.logs)


def _judged(name: str, held_out: Floats, logs: Floats) -> Candidate:
    error = held_out - logs
    return Candidate(name, held_out, float(np.abs(error).mean()), float(np.abs(np.expm1(error)).mean()))


def _simplest(errors: Mapping[Name, float]) -> Name:
    """The first of ``errors`` (in order of complexity) that is within a hair of the least."""
    least = min(errors.values())
    return next(name for name, error in errors.items() if error <= SIMPLER * least + 1e-9)


def _make(family: str, candidates: dict[str, Candidate], families: dict[str, Family], inputs: Inputs) -> Estimator:
    if family != "blend":
        return families[family].make(inputs)
    ranked = sorted((c for c in candidates.values() if c.family not in ("mean", "blend")), key=lambda c: c.log_error)
    return Blend(inputs, [families[c.family].make(inputs) for c in ranked[:BLENDED]])
