"""Selection of a regression family: cross-validation grouped by execution, then a fit on all rows.

The reported errors are those of nested cross-validation (Stone 1974; Varma and Simon 2006). The folds form three parts.
A row is predicted by the family chosen on the other two parts, with hyper-parameters searched there, fitted to all rows
outside its fold. The cost is bounded: three searches, each on two thirds of the rows, instead of one on all, and nine
more fits of each family to four ninths of the rows.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from workers.estimators.base import (
    Estimator,
    Floats,
    Form,
    Inputs,
    Integers,
    Prediction,
    Rows,
    Stages,
    TooLittleData,
    decompose,
    distinct,
)
from workers.estimators.families import Blend
from workers.estimators.registry import FAMILIES, FREE, Family
from workers.estimators.residuals import Offsets, calibrate

MOST_FOLDS = 10
MOST_ALONE = 20  # most executions with one fold each
FEWEST_INPUTS = 5
PARTS, INNER = 3, 3  # parts of the folds; folds within the rest of a part
SIMPLER = 1.01  # a simpler family is chosen if its error is within this factor of the best,
DOUBT = 1.0  # or within so many standard errors of the paired difference between executions (Breiman et al. 1984),
WORST = 1.2  # but never beyond this factor
SMALL_SAMPLE_PENALTY = 2.5  # the error of a non-parametric family counts 1 + this / n times, for n executions
MEAN, BLEND = "mean", "blend"
BLENDED = 3
BLENDING_NEEDS = 7  # least number of distinct inputs per parameter of the simplest family
Name = TypeVar("Name", bound=str)
Flags = NDArray[np.bool_]
Reading = Callable[[Estimator, Floats, Floats], Floats]
"""Function from a fitted family, its l fitted inputs [l, D] and ``X`` [n, D] to the natural log of the median, [n]."""


def directly(fitted: Estimator, learned: Floats, X: Floats) -> Floats:  # noqa: ARG001 - see ``Reading``
    """Return the natural log [n] of the family's median at ``X`` [n, D]: n rows of D inputs; ``learned`` is ignored."""
    return np.asarray(np.log(fitted.median(X)), np.float64)


@dataclass(frozen=True)
class Candidate:
    """Results of one family in cross-validation over n rows.

    Attributes:
        family: name of the family.
        held_out: cross-validated predictions of the natural-log metric, [n]; None if the family could not be fitted.
        log_error: mean absolute natural-log error; inf if not fitted.
        mape: mean absolute percentage error as a share (0.1 is 10 %); inf if not fitted.
        reason: why the family could not be fitted, in words; empty if it was.
    """

    family: str
    held_out: Floats | None
    log_error: float
    mape: float
    reason: str = ""

    def residuals(self, logs: Floats) -> Floats:
        """Return the natural-log residuals [n], ``logs`` [n] minus held-out predictions; NaN if it was not fitted."""
        return np.full(len(logs), np.nan) if self.held_out is None else logs - self.held_out

    def report(self, chosen: str) -> dict[str, Any]:
        """Return the JSON entry of the model's report: family, whether it is ``chosen``, and errors or a reason."""
        result: dict[str, Any] = {"family": self.family, "chosen": self.family == chosen}
        if self.held_out is None:
            return result | {"mape": None, "reason": self.reason}
        return result | {"mape": self.mape, "log_error": self.log_error}


@dataclass(frozen=True)
class Selection:
    """The chosen family, fitted to all n rows, with the results of cross-validation.

    Attributes:
        family, form: name of the family, and form of the iteration effects: ``none``, ``levels`` or ``elastic``.
        stages: level and elasticity of each iteration bin.
        estimator: the family fitted on all rows.
        candidates: results of all families tried, in order of complexity.
        nested: results of nested cross-validation, where a row serves neither search nor choice of the family that
            predicts it. With two executions, or without a report, these are the chosen family's own results.
        offsets: conformal bounds of the natural-log residual, at unmeasured inputs where folds are by input.
        folds: fold of each row when split by execution only, [n].
        residuals: natural-log residuals of nested predictions in these folds, [n].
    """

    family: str
    form: Form
    stages: Stages
    estimator: Estimator
    candidates: tuple[Candidate, ...]
    nested: Candidate
    offsets: Offsets
    folds: Integers
    residuals: Floats

    @property
    def chosen(self) -> Candidate:
        """Results of the chosen family in cross-validation."""
        return next(c for c in self.candidates if c.family == self.family)

    @property
    def naive_mape(self) -> float:
        """MAPE (a share: 0.1 is 10 %) of the constant model, which ignores allocation and iteration."""
        return next(c.mape for c in self.candidates if c.family == MEAN)

    def log_mean(self, X: Floats, bins: Integers) -> Floats:
        """Return the natural log [n] of the predicted median at ``X`` [n, D] in iteration ``bins`` [n]."""
        return self.stages.compose(np.log(self.estimator.median(X)), bins)

    def predict(self, X: Floats, bins: Integers | None = None) -> Prediction:
        """Predict median and calibrated 90 % interval of a new execution at ``X`` [n, D], in the metric's unit.

        ``bins`` are iteration bins [n]; None: bin 0 for all.
        """
        centre = self.log_mean(X, np.zeros(len(X), np.intp) if bins is None else bins)
        return Prediction(np.exp(centre), np.exp(centre + self.offsets.low), np.exp(centre + self.offsets.high))


def execution_folds(groups: Integers, seed: int) -> Integers:
    """Return the fold [n] of each row by its execution (``groups`` [n]): all rows of an execution have the same fold.

    Each execution is a fold up to 20 executions; there are 10 folds up to 100 executions, and 5 beyond.
    """
    names, inverse = np.unique(groups, return_inverse=True)
    count = len(names) if len(names) <= MOST_ALONE else MOST_FOLDS if len(names) <= 100 else MOST_FOLDS // 2
    fold = np.random.default_rng(seed).permutation(len(names)) % count
    return fold[inverse].astype(np.intp)


def input_folds(X: Floats, groups: Integers, seed: int) -> Integers:
    """Return each row's fold [n]: by input, if executions have one input each and inputs repeat, else by execution.

    ``X`` [n, D] are inputs, ``groups`` [n] execution indices. Folds by input, which need at least 5 distinct inputs,
    give errors at an unmeasured input, as most of an allocation grid is.
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
    reported: bool = True,
) -> Selection:
    """Fit all families that the data suffice for to ``X`` [n, D] and ``y`` [n] (positive), and choose one.

    First the form of the iteration effects (none, a level per bin, an elasticity too) is chosen, with a simple family;
    then the family, by mean absolute natural-log error: the MAPE for small errors, without favour for low predictions.

    Args:
        inputs: names of the columns of ``X``.
        X, y: inputs and metric (in any unit) of each row.
        groups: index of each row's execution, [n].
        bins: iteration bin of each row, [n]; None: all in bin 0.
        bin_count: number of bins.
        seed: seed of the folds.
        families: families to try, by name; None: the registry's.
        reading: function that computes the predictions to be scored from a fitted family.
        reported: whether to run nested cross-validation for unbiased errors, at about half as much work again.

    Raises:
        TooLittleData: fewer than two executions.
    """
    if len(np.unique(groups)) < 2:
        raise TooLittleData("2 executions", f"{len(np.unique(groups))}")
    rows = Rows(X, np.log(y), groups, np.zeros(len(y), np.intp) if bins is None else bins)
    tried = FAMILIES if families is None else families
    task = _Task(inputs, tried, bin_count, reading)
    with threadpool_limits(1):
        return _select(task, rows, input_folds(X, groups, seed), execution_folds(groups, seed), reported)


class _Split(NamedTuple):
    """n rows, their folds [n], and iteration effects by form (none, levels, elastic): without each fold, then all."""

    rows: Rows
    folds: Integers
    stages: Mapping[Form, list[Stages]]

    @property
    def fold_count(self) -> int:
        return int(self.folds.max()) + 1


@dataclass(frozen=True)
class _Task:
    """Arguments of a selection: inputs, families, number of iteration bins, and the function that reads predictions."""

    inputs: Inputs
    families: Mapping[str, Family]
    bins: int
    reading: Reading

    def split(self, rows: Rows, folds: Integers) -> _Split:
        """Estimate iteration effects by form (none, levels, elastic): without each of ``folds`` [n], then of all."""
        forms: tuple[Form, ...] = ("none", "levels", "elastic") if self.bins > 1 else ("none",)
        learned = [*(rows.where(folds != fold) for fold in range(int(folds.max()) + 1)), rows]
        return _Split(rows, folds, {form: [decompose(part, self.bins, form) for part in learned] for form in forms})


class _SearchCache:
    """Cache of families whose hyper-parameters were searched on the same rows; each is fitted on first use."""

    def __init__(self, task: _Task, stages: Mapping[Form, Stages]) -> None:
        self.task, self.stages = task, stages
        self._found: dict[tuple[str, Form], Estimator] = {}

    def get(self, name: str, form: Form) -> Estimator:
        if (name, form) not in self._found:
            rows = self.stages[form].rows
            result = self.task.families[name].make(self.task.inputs)
            self._found[name, form] = result.fit(rows.X, np.exp(rows.logs), rows.groups)
        return self._found[name, form]


@dataclass(frozen=True)
class _Choice:
    """Result of one cross-validation over G executions.

    Attributes:
        form: iteration effects: ``none``, ``levels`` (a level per iteration bin) or ``elastic`` (an elasticity too).
        candidates: results of each family tried, by name; those that could not be fitted included.
        errors: mean absolute natural-log error of each held-out execution, [G], by fitted family; raised a little
            for non-parametric families where G is small.
        complexity: by fitted family, 0 (constant) to 5 (mean of several); of equally good ones the least is chosen.
        searched: for each fold, a cache of families with the hyper-parameters found for it.
    """

    form: Form
    candidates: dict[str, Candidate]
    errors: dict[str, Floats]
    complexity: dict[str, int]
    searched: Sequence[_SearchCache]

    def family(self, able: Collection[str]) -> str:
        """Return the name of the chosen family among the names in ``able``."""
        return _simplest({name: error for name, error in self.errors.items() if name in able}, self.complexity)

    def members(self, family: str, able: Collection[str]) -> list[str]:
        """Return the families to fit: ``family``; for ``blend``, a mean of families, the 3 best ones in ``able``."""
        return (
            [name for name in _rank_candidates(self.candidates) if name in able][:BLENDED]
            if family == BLEND
            else [family]
        )


def _select(task: _Task, rows: Rows, folds: Integers, by_execution: Integers, reported: bool) -> Selection:
    parts, split, nested = folds % PARTS, task.split(rows, folds), list[_Choice]()
    searched: Sequence[_SearchCache] = ()
    if reported and split.fold_count > 2:
        rests = [parts != part for part in range(PARTS)]
        nested = [_choose(task, task.split(rows.where(rest), _merge_folds(folds[rest]))) for rest in rests]
        searched = [nested[fold % PARTS].searched[0] for fold in range(split.fold_count)]
    elif reported:
        by_fold = [{form: stages[fold] for form, stages in split.stages.items()} for fold in range(split.fold_count)]
        searched = [_SearchCache(task, stages) for stages in by_fold]
    choice = _choose(task, split, searched)
    able = choice.errors
    family, stages = choice.family(able), split.stages[choice.form][-1]
    result = [task.families[name].make(task.inputs) for name in choice.members(family, able)]
    estimator = Blend(task.inputs, result) if family == BLEND else result[0]
    estimator.fit(stages.rows.X, np.exp(stages.rows.logs), stages.rows.groups)
    outcome = without = choice.candidates[family]
    if family == MEAN:  # its candidate ignores iterations, the fitted model does not
        outcome = without = _validate(split, choice.searched, family, choice.form, task.reading)
    if nested:
        outcome = without = _score_candidate(family, _predict_nested(task, split, nested, parts, able), rows.logs)
        if not np.array_equal(folds, by_execution):
            again = task.split(rows, by_execution)
            without = _score_candidate(family, _predict_nested(task, again, nested, parts, able), rows.logs)
    return Selection(
        family,
        choice.form,
        stages,
        estimator,
        tuple(choice.candidates.values()),
        outcome,
        calibrate(outcome.residuals(rows.logs), rows.groups, folds),
        by_execution,
        without.residuals(rows.logs),
    )


def _merge_folds(folds: Integers) -> Integers:
    """Return the folds [n] merged to at most 3 folds (`INNER`), numbered from 0."""
    _, place = np.unique(folds, return_inverse=True)
    return (place % INNER).astype(np.intp)


def _choose(task: _Task, split: _Split, searched: Sequence[_SearchCache] = ()) -> _Choice:
    """Choose the form of the iteration effects, and score all families, by cross-validation over the folds.

    ``searched``: a cache of families with hyper-parameters for each fold; empty: they are searched once, on all rows.
    """
    if not searched:
        searched = [_SearchCache(task, {form: stages[-1] for form, stages in split.stages.items()})] * split.fold_count
    form = _form(task, split, searched)
    cells = len(distinct(split.stages[form][-1].rows.X)[0])
    candidates = {
        name: _validate(split, searched, name, "none" if name == MEAN else form, task.reading)
        for name, family in task.families.items()
        if cells >= family.needs(task.inputs)
    }
    best = [candidates[name].held_out for name in _rank_candidates(candidates)[:BLENDED]]
    if len(best) == BLENDED and cells >= BLENDING_NEEDS * (1 + task.inputs.width):
        candidates[BLEND] = _score_candidate(BLEND, np.mean(np.array(best, np.float64), axis=0), split.rows.logs)
    able = {name: candidate for name, candidate in candidates.items() if candidate.held_out is not None}
    errors = {name: _penalised_errors(candidate, split.rows, task.families) for name, candidate in able.items()}
    complexity = {name: task.families[name].complexity if name in task.families else FREE + 1 for name in able}
    return _Choice(form, candidates, errors, complexity, searched)


def _form(task: _Task, split: _Split, searched: Sequence[_SearchCache]) -> Form:
    """Choose the iteration effects' form (none, levels, elastic) by cross-validation of one simple family."""
    probe = "log_linear" if "log_linear" in task.families else next(iter(task.families))
    scores = {form: _validate(split, searched, probe, form, directly) for form in split.stages}
    errors = {form: _by_execution(candidate, split.rows) for form, candidate in scores.items()}
    return _simplest(errors, {form: place for place, form in enumerate(errors)})


def _rank_candidates(candidates: Mapping[str, Candidate]) -> list[str]:
    """Return the names of the fitted candidates except mean and blend, in ascending order of log error."""
    able = [c for c in candidates.values() if c.held_out is not None and c.family not in (MEAN, BLEND)]
    return [c.family for c in sorted(able, key=lambda c: c.log_error)]


def _validate(split: _Split, searched: Sequence[_SearchCache], name: str, form: Form, reading: Reading) -> Candidate:
    held_out = np.empty(len(split.folds))
    try:
        for fold, known in enumerate(searched):
            judged = split.folds == fold
            held_out[judged] = _predict_fold(split, known, name, form, fold, judged, reading)
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        return Candidate(name, None, np.inf, np.inf, f"could not be fitted: {error}")
    return _score_candidate(name, held_out, split.rows.logs)


def _predict_fold(
    split: _Split, searched: _SearchCache, name: str, form: Form, fold: int, judged: Flags, reading: Reading
) -> Floats:
    """Predict ln metric [m] of the m rows where ``judged`` [n] is true, by family ``name`` fitted without ``fold``."""
    rows, stages = split.rows, split.stages[form][fold]
    fitted = searched.get(name, form).frozen().fit(stages.rows.X, np.exp(stages.rows.logs), stages.rows.groups)
    return stages.compose(reading(fitted, rows.X[split.folds != fold], rows.X[judged]), rows.bins[judged])


def _predict_nested(
    task: _Task, split: _Split, choices: Sequence[_Choice], parts: Integers, able: Collection[str]
) -> Floats:
    """Predict the natural-log metric [n] by the family chosen without the row's part, fitted without the row's fold.

    ``choices``: results without each part. ``parts`` [n]: part of each row; an execution is in one part and one fold.
    ``able``: families that can be fitted to all rows.
    """
    held_out = np.empty(len(parts))
    for part, choice in enumerate(choices):
        members = choice.members(choice.family(able), able)
        for fold in np.unique(split.folds[parts == part]).tolist():
            judged, known = (split.folds == fold) & (parts == part), choice.searched[0]
            rows = [_try_predict(split, known, name, choice.form, fold, judged, task.reading) for name in members]
            result = [one for one in rows if one is not None]
            if not result:
                result = [_predict_fold(split, known, MEAN, choice.form, fold, judged, directly)]
            held_out[judged] = np.mean(result, axis=0)
    return held_out


def _try_predict(
    split: _Split, searched: _SearchCache, name: str, form: Form, fold: int, judged: Flags, reading: Reading
) -> Floats | None:
    """Predict ln metric [m] of the m ``judged`` rows without ``fold``; None where the family cannot be fitted."""
    try:
        return _predict_fold(split, searched, name, form, fold, judged, reading)
    except (np.linalg.LinAlgError, FloatingPointError):
        return None


def _score_candidate(name: str, held_out: Floats, logs: Floats) -> Candidate:
    error = held_out - logs
    return Candidate(name, held_out, float(np.abs(error).mean()), float(np.abs(np.expm1(error)).mean()))


def _simplest(errors: Mapping[Name, Floats], complexity: Mapping[Name, int]) -> Name:
    """Return the name of the best of the least complex choices whose errors [G] are not clearly above the least."""
    mean = {name: float(error.mean()) for name, error in errors.items()}
    best = errors[min(mean, key=lambda name: mean[name])]
    near = [name for name, error in errors.items() if not _clearly_worse(error, best)]
    return min(near, key=lambda name: (complexity[name], mean[name]))


def _by_execution(candidate: Candidate, rows: Rows) -> Floats:
    """Return the mean absolute natural-log error of each of G executions, [G]; inf for one that was not fitted."""
    _, execution = np.unique(rows.groups, return_inverse=True)
    held_out = np.full(len(rows.logs), np.inf) if candidate.held_out is None else candidate.held_out
    counts = np.bincount(execution)
    return np.asarray(np.bincount(execution, np.abs(held_out - rows.logs)) / counts, np.float64)


def _penalised_errors(candidate: Candidate, rows: Rows, families: Mapping[str, Family]) -> Floats:
    errors = _by_execution(candidate, rows)
    free = candidate.family not in families or families[candidate.family].complexity >= FREE
    return errors * (1 + SMALL_SAMPLE_PENALTY / len(errors)) if free else errors


def _clearly_worse(error: Floats, best: Floats) -> bool:
    excess = error - best
    least = float(best.mean())
    doubt = min(DOUBT * float(excess.std()) / np.sqrt(len(excess)), (WORST - 1) * least)
    return float(excess.mean()) > max(doubt, (SIMPLER - 1) * least, 1e-9)
