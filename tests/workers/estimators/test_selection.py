"""Which family is chosen, and on what grounds: folds, forms, simplicity, caution."""

from functools import cache, partial
from typing import Any, Self

import numpy as np
import pytest

from workers.estimators import selection
from workers.estimators.base import Floats, Inputs, Integers, Rows, TooLittleData
from workers.estimators.families import LogLinear, Mean
from workers.estimators.registry import FAMILIES, FREE, Family
from workers.estimators.selection import Candidate, Selection, execution_folds, input_folds, select

GPUS = Inputs(("gpus",))
SIMPLE = {name: FAMILIES[name] for name in ("mean", "ernest", "log_linear")}


def planted(executions: int = 24, noise: float = 0.02, seed: int = 0) -> tuple[Floats, Floats, Integers]:
    """One row per execution of 2 + 60/gpus seconds."""
    rng = np.random.default_rng(seed)
    gpus = rng.integers(1, 17, executions).astype(float)
    return gpus[:, None], (2 + 60 / gpus) * np.exp(noise * rng.normal(size=executions)), np.arange(executions)


@pytest.mark.parametrize(("executions", "folds"), [(2, 2), (20, 20), (21, 10), (100, 10), (101, 5)])
def test_folds_are_even_and_split_no_execution(executions: int, folds: int) -> None:
    groups = np.repeat(np.arange(executions), 3)
    values = execution_folds(groups, 1)
    assert (values.reshape(-1, 3) == values[::3, None]).all()
    sizes = np.bincount(values[::3])
    assert len(sizes) == folds
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(values, execution_folds(groups, 1))
    if folds < executions:
        assert (values != execution_folds(groups, 2)).any()


@pytest.mark.parametrize(
    ("inputs", "repeats", "rows", "by_input"),
    [
        (5, 2, 1, True),
        (4, 4, 1, False),  # too few inputs to hold one out
        (8, 1, 1, False),  # nothing was repeated
        (5, 2, 3, True),  # executions of several rows at one input each
    ],
)
def test_inputs_are_held_out_where_they_were_repeated(inputs: int, repeats: int, rows: int, by_input: bool) -> None:
    executions = inputs * repeats
    X = np.repeat(np.arange(executions) % inputs, rows).astype(float)[:, None]
    groups = np.repeat(np.arange(executions), rows)
    expected = execution_folds(X[:, 0].astype(int) if by_input else groups, 3)
    np.testing.assert_array_equal(input_folds(X, groups, 3), expected)


def test_executions_that_move_are_held_out_as_a_whole() -> None:
    X, groups = np.tile(np.arange(6.0), 10)[:, None], np.repeat(np.arange(10), 6)
    np.testing.assert_array_equal(input_folds(X, groups, 3), execution_folds(groups, 3))


def test_two_executions_are_enough_and_one_is_not() -> None:
    X, y, groups = planted(2)
    assert select(GPUS, X, y, groups, families=SIMPLE).family == "mean"
    with pytest.raises(TooLittleData, match="needs 2 executions; has 1"):
        select(GPUS, X[:1], y[:1], groups[:1], families=SIMPLE)


@pytest.fixture(scope="module")
def chosen() -> Selection:
    return select(GPUS, *planted(60), families=SIMPLE)


def test_the_family_of_the_data_is_chosen_and_its_errors_are_held_out(chosen: Selection) -> None:
    X, y, _ = planted(60)
    assert (chosen.family, chosen.form, chosen.chosen.family) == ("ernest", "none", "ernest")
    assert chosen.nested.log_error == pytest.approx(chosen.chosen.log_error, rel=0.1)
    np.testing.assert_allclose(chosen.residuals, np.log(y) - np.log(2 + 60 / X[:, 0]), atol=0.05)
    assert chosen.chosen.held_out is not None
    assert chosen.chosen.log_error == pytest.approx(np.abs(np.log(y) - chosen.chosen.held_out).mean())
    assert chosen.chosen.mape == pytest.approx(np.abs(np.exp(chosen.chosen.held_out) / y - 1).mean())
    mean = next(c for c in chosen.candidates if c.family == "mean")
    assert chosen.naive_mape == mean.mape > 10 * chosen.chosen.mape
    assert mean.report("ernest") == {"family": "mean", "chosen": False, "mape": mean.mape, "log_error": mean.log_error}
    assert chosen.chosen.report("ernest")["chosen"] is True


def test_a_prediction_has_bounds_on_both_sides_that_hold_nine_in_ten(chosen: Selection) -> None:
    X, y, _ = planted(400, seed=9)
    predictions = chosen.predict(X)
    np.testing.assert_allclose(predictions.mean, 2 + 60 / X[:, 0], rtol=0.05)
    assert (predictions.low < predictions.mean).all()
    assert (predictions.mean < predictions.high).all()
    np.testing.assert_allclose(np.log(predictions.low / predictions.mean), chosen.offsets.low)
    np.testing.assert_allclose(np.log(predictions.high / predictions.mean), chosen.offsets.high)
    assert ((y >= predictions.low) & (y <= predictions.high)).mean() == pytest.approx(0.9, abs=0.07)


class Memoriser(Mean):
    """A family whose search remembers every row that it sees."""

    def __init__(self, inputs: Inputs, known: dict[float, float] | None = None) -> None:
        super().__init__(inputs)
        self.name, self.known = "memoriser", known

    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        super().fit(X, y, groups)
        self.known = dict(zip(X[:, 0].tolist(), y.tolist(), strict=True)) if self.known is None else self.known
        return self

    def median(self, X: Floats) -> Floats:
        usual, known = super().median(X), self.known or {}
        return np.array([known.get(x, u) for x, u in zip(X[:, 0].tolist(), usual.tolist(), strict=True)])

    def frozen(self) -> "Memoriser":
        return Memoriser(self.inputs, self.known)


@pytest.mark.parametrize("repeats", [1, 2])  # executions, or inputs, are held out
def test_a_search_does_not_see_the_rows_that_its_errors_are_of(repeats: int) -> None:
    gpus = np.repeat(np.arange(1.0, 25.0), repeats)
    y = np.exp(np.repeat(np.random.default_rng(0).normal(size=24), repeats))
    families = {"mean": SIMPLE["mean"], "memoriser": Family(Memoriser, lambda _: 1, 0)}
    query = select(GPUS, gpus[:, None], y, np.arange(len(y)), families=families)
    errors = {candidate.family: candidate.log_error for candidate in query.candidates}
    assert errors["memoriser"] == pytest.approx(errors["mean"], rel=0.05)
    assert query.nested.log_error == pytest.approx(errors["mean"], rel=0.05)
    assert np.abs(query.residuals).mean() > 0.5 * errors["mean"]


@cache
def drawn(name: int, place: int) -> float:
    """A standard normal variable of its own for each name and place."""
    return float(np.random.default_rng([name, place]).normal())


class Lucky(Mean):
    """A family that predicts at random, the same at the same input."""

    def __init__(self, inputs: Inputs, name: str) -> None:
        super().__init__(inputs)
        self.name = name

    def median(self, X: Floats) -> Floats:
        return np.exp(np.array([drawn(int(self.name), int(x)) for x in X[:, 0]]))

    def frozen(self) -> "Lucky":
        return Lucky(self.inputs, self.name)


def test_the_error_that_is_reported_is_not_that_of_the_luckiest_family() -> None:
    """Sixty families that know nothing: each errs by 2/√π, the mean by √(2/π), the best of twelve rows by about .6."""
    names = [str(seed) for seed in range(60)]
    families = {"mean": SIMPLE["mean"]}
    families |= {name: Family(partial(Lucky, name=name), lambda _: 1, 0) for name in names}
    reported, visited = [], []
    for seed in range(4):
        y = np.exp(np.random.default_rng(seed).normal(size=12))
        query = select(GPUS, np.arange(12.0)[:, None], y, np.arange(12), seed=seed, families=families)
        reported.append(query.nested.log_error)
        visited.append(query.chosen.log_error)
    assert np.mean(visited) < 0.7
    assert np.mean(reported) > np.sqrt(2 / np.pi)


class Broken(LogLinear):
    """Cannot be fitted."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__(inputs)
        self.name = "broken"

    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        raise np.linalg.LinAlgError("singular")

    def frozen(self) -> "Broken":
        return Broken(self.inputs)


def test_a_family_that_cannot_be_fitted_is_told_and_never_chosen() -> None:
    query = select(GPUS, *planted(), families={"mean": SIMPLE["mean"], "broken": Family(Broken, lambda _: 1, 0)})
    assert query.family == "mean"
    fit_report = next(c for c in query.candidates if c.family == "broken").report("mean")
    assert fit_report == {"family": "broken", "chosen": False, "mape": None, "reason": "could not be fitted: singular"}


def test_what_cannot_be_fitted_without_a_part_of_the_rows_costs_the_report_and_not_the_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Chosen on parts of the rows, it fails where the error that is reported is measured."""
    calls: list[str] = []
    real = selection._predict_fold

    def failing(*values: Any) -> Floats:
        if values[2] == "log_linear" and calls:
            raise np.linalg.LinAlgError("singular")
        return real(*values)

    nested = selection._predict_nested

    def begun(*values: Any) -> Any:
        calls.append("begun")
        return nested(*values)

    monkeypatch.setattr(selection, "_predict_fold", failing)
    monkeypatch.setattr(selection, "_predict_nested", begun)
    query = select(GPUS, *planted(), families={name: SIMPLE[name] for name in ("mean", "log_linear")})
    assert query.family == "log_linear"
    assert np.isfinite(query.nested.log_error)
    assert query.nested.log_error > query.chosen.log_error


def test_a_family_is_tried_from_as_many_inputs_on_as_it_needs() -> None:
    X, y, groups = planted(60)
    inputs = len(np.unique(X))
    needs = {"enough": Family(Mean, lambda _: inputs, 1), "more": Family(Mean, lambda _: inputs + 1, 1)}
    query = select(GPUS, X, y, groups, families={"mean": SIMPLE["mean"], **needs})
    assert len(query.candidates) == 2


@pytest.mark.parametrize("inputs", [13, 14])
def test_a_blend_is_the_mean_of_the_three_best_and_needs_fourteen_inputs_for_a_line(inputs: int) -> None:
    gpus = np.tile(np.arange(1.0, inputs + 1), 2)[:, None]
    y = 2 + 60 / gpus[:, 0]
    families = {**SIMPLE, "log_quadratic": FAMILIES["log_quadratic"]}
    result = {c.family: c for c in select(GPUS, gpus, y, np.arange(len(y)), families=families).candidates}
    assert ("blend" in result) == (inputs == 14)
    if "blend" in result:
        best = [result[name].held_out for name in ("ernest", "log_linear", "log_quadratic")]
        np.testing.assert_allclose(result["blend"].held_out, np.mean(best, axis=0))  # type: ignore[arg-type]


def test_a_blend_consists_of_the_three_best() -> None:
    errors = {"a": 3.0, "b": 1.0, "mean": 0.1, "c": 2.0, "blend": 0.5, "d": 4.0}
    candidates = {name: Candidate(name, np.zeros(1), error, error) for name, error in errors.items()}
    choice = selection._Choice("none", candidates, {}, {}, ())
    assert choice.members("blend", candidates) == ["b", "c", "a"]
    assert choice.members("blend", ["a", "c", "d"]) == ["c", "a", "d"]
    assert choice.members("a", candidates) == ["a"]


@pytest.mark.parametrize("form", ["none", "levels", "elastic"])
def test_the_form_of_the_iterations_is_that_of_the_data(form: str) -> None:
    rng = np.random.default_rng(0)
    groups, bins = (a.ravel() for a in np.meshgrid(np.arange(30), np.arange(6), indexing="ij"))
    gpus = rng.integers(1, 17, 30).astype(float)[groups]
    level = np.array([3.0, 0.0, 0.5, 0.0, 0.5, 1.0]) * (form != "none")
    elasticity = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 0.2]) if form == "elastic" else np.ones(6)
    y = np.exp(3 + level[bins] - elasticity[bins] * np.log(gpus) + 0.02 * rng.normal(size=len(bins)))
    query = select(GPUS, gpus[:, None], y, groups, bins, bin_count=6, families=SIMPLE)
    assert query.form == form
    np.testing.assert_allclose(np.exp(query.log_mean(gpus[:, None], bins)), y, rtol=0.2)
    blind = select(GPUS, gpus[:, None], y, groups, families=SIMPLE)
    assert query.naive_mape == blind.naive_mape  # the naive mean knows no iterations


@pytest.mark.parametrize("executions", [2, 3, 6])  # two and three: without nested cross-validation, and with it
def test_where_allocations_are_too_few_for_a_family_iterations_still_have_their_levels(executions: int) -> None:
    rng = np.random.default_rng(1)
    groups, bins = (a.ravel() for a in np.meshgrid(np.arange(executions), np.arange(8), indexing="ij"))
    y = np.exp(np.tile([0.0, 3.0], 4)[bins] + 0.02 * rng.normal(size=len(bins)))
    query = select(GPUS, np.full((len(y), 1), 4.0), y, groups, bins, bin_count=8, families=SIMPLE)
    assert (query.family, query.form) == ("mean", "levels")
    for errors in (query.nested.residuals(np.log(y)), query.residuals):
        assert np.abs(errors).max() < 0.2
    assert query.offsets.high < 0.3
    assert query.naive_mape > 1


BEST = np.ones(100)
TREMBLING = np.tile([1.0, -1.0], 50)


@pytest.mark.parametrize(
    ("excess", "worse"),
    [
        (np.full(100, 0.009), False),  # within a hundredth
        (np.full(100, 0.011), True),
        (0.09 + TREMBLING, False),  # within a standard error
        (0.11 + TREMBLING, True),
        (0.19 + 10 * TREMBLING, False),  # in doubt, but never beyond a fifth
        (0.21 + 10 * TREMBLING, True),
    ],
)
def test_a_simpler_family_is_taken_unless_it_is_clearly_worse(excess: Floats, worse: bool) -> None:
    errors = {"simple": BEST + excess, "best": BEST}
    assert selection._simplest(errors, {"simple": 1, "best": 2}) == ("best" if worse else "simple")


def test_of_equally_simple_families_the_better_one_is_taken() -> None:
    errors = {"good": BEST + 0.005, "best": BEST, "complex": BEST - 0.001}
    assert selection._simplest(errors, {"good": 1, "best": 1, "complex": 2}) == "best"


@pytest.mark.parametrize(("complexity", "factor"), [(FREE, 1.5), (FREE - 1, 1.0)])
def test_a_family_without_form_has_to_be_better_where_executions_are_few(complexity: int, factor: float) -> None:
    """By execution, whatever the number of its rows; five executions make half as much again."""
    groups = np.array([0, 0, 1, 2, 3, 4])
    rows = Rows(np.ones((6, 1)), np.zeros(6), groups, np.zeros(6, np.intp))
    candidate = Candidate("any", np.array([1.0, -3.0, 1.0, 1.0, -1.0, 1.0]), 0, 0)
    errors = selection._penalised_errors(candidate, rows, {"any": Family(Mean, lambda _: 1, complexity)})
    np.testing.assert_allclose(errors, factor * np.array([2.0, 1.0, 1.0, 1.0, 1.0]))
    np.testing.assert_allclose(
        selection._penalised_errors(candidate, rows, {}), 1.5 * np.array([2.0, 1.0, 1.0, 1.0, 1.0])
    )


def test_without_a_report_the_errors_are_the_chosen_familys_own_and_searches_see_all_rows() -> None:
    X, y, groups = planted()
    found = select(GPUS, X, y, groups, families=SIMPLE, reported=False)
    assert found.family == "ernest"
    assert found.nested is found.chosen
    np.testing.assert_array_equal(found.residuals, found.chosen.residuals(np.log(y)))
    gpus, noise = np.arange(1.0, 13.0), np.exp(np.random.default_rng(0).normal(size=12))
    families = {"mean": SIMPLE["mean"], "memoriser": Family(Memoriser, lambda _: 1, 0)}
    seen = select(GPUS, gpus[:, None], noise, np.arange(12), families=families, reported=False)
    assert seen.family == "memoriser"
    assert seen.chosen.log_error == pytest.approx(0, abs=1e-12)


def test_what_is_left_out_is_one_bin_the_first_seed_and_the_registry() -> None:
    X, y, groups = planted()
    found = select(GPUS, X, y, groups, families=SIMPLE)
    told = select(GPUS, X, y, groups, np.zeros(24, np.intp), bin_count=1, seed=0, families=SIMPLE)
    np.testing.assert_array_equal(found.residuals, told.residuals)
    np.testing.assert_array_equal(found.folds, execution_folds(groups, 0))
    two = select(GPUS, np.array([[1.0], [2.0]]), np.array([3.0, 2.0]), np.arange(2))
    assert [c.family for c in two.candidates] == [name for name, one in FAMILIES.items() if one.needs(GPUS) <= 2]


def test_where_inputs_are_held_out_residuals_are_told_by_execution_too() -> None:
    gpus = np.tile(np.arange(1.0, 13.0), 3)
    y = (2 + 60 / gpus) * np.exp(0.05 * np.random.default_rng(2).normal(size=36))
    found = select(GPUS, gpus[:, None], y, np.arange(36), families=SIMPLE)
    np.testing.assert_array_equal(found.folds, execution_folds(np.arange(36), 0))
    assert (found.residuals != found.nested.residuals(np.log(y))).any()
    assert np.abs(found.residuals).mean() == pytest.approx(found.nested.log_error, rel=0.3)


class Biased(Mean):
    """Knows the truth but for an error of its own at each input."""

    def __init__(self, inputs: Inputs, name: str) -> None:
        super().__init__(inputs)
        self.name = name

    def median(self, X: Floats) -> Floats:
        return (2 + 60 / X[:, 0]) * np.exp([0.5 * drawn(int(self.name), int(x)) for x in X[:, 0]])

    def frozen(self) -> "Biased":
        return Biased(self.inputs, self.name)


def test_a_blend_that_is_better_than_its_parts_is_chosen_fitted_and_scored_as_their_mean() -> None:
    gpus = np.arange(1.0, 41.0)[:, None]
    y = 2 + 60 / gpus[:, 0]
    names = ["1", "2", "3"]
    families = {name: Family(partial(Biased, name=name), lambda _: 1, 1) for name in names}
    found = select(GPUS, gpus, y, np.arange(40), families={"mean": SIMPLE["mean"], **families})
    mean = np.mean([np.log(Biased(GPUS, name).median(gpus)) for name in names], axis=0)
    assert found.family == "blend"
    np.testing.assert_allclose(np.log(found.estimator.median(gpus)), mean)
    assert np.isclose(found.residuals, np.log(y) - mean).mean() > 0.6  # it was chosen without two parts of three, too
    alone = select(GPUS, gpus, y, np.arange(40), families={"mean": SIMPLE["mean"], **families}, reported=False)
    np.testing.assert_allclose(alone.residuals, np.log(y) - mean)


def test_scores_by_hand() -> None:
    """Two rows of one execution and one of another; what was not fitted errs without bounds."""
    logs = np.log([1.0, 4.0, 8.0])
    found = selection._score_candidate("any", np.log([2.0, 4.0, 4.0]), logs)
    assert [found.log_error, found.mape] == pytest.approx([2 * np.log(2) / 3, (1 + 0 + 0.5) / 3])
    np.testing.assert_allclose(found.residuals(logs), [-np.log(2), 0, np.log(2)])
    rows = Rows(np.ones((3, 1)), logs, np.array([5, 5, 9]), np.zeros(3, np.intp))
    np.testing.assert_allclose(selection._by_execution(found, rows), [np.log(2) / 2, np.log(2)])
    unfitted = Candidate("any", None, np.inf, np.inf, "why")
    assert np.isnan(unfitted.residuals(logs)).all()
    assert np.isinf(selection._by_execution(unfitted, rows)).all()


def test_folds_are_merged_to_three_by_their_order() -> None:
    assert selection._merge_folds(np.array([7, 2, 9, 4, 2, 11])).tolist() == [2, 0, 0, 1, 0, 1]


def test_a_prediction_is_for_the_first_bin_unless_it_is_told_another() -> None:
    groups, bins = (a.ravel() for a in np.meshgrid(np.arange(12), np.arange(2), indexing="ij"))
    gpus = np.random.default_rng(0).integers(1, 17, 12).astype(float)[groups]
    found = select(GPUS, gpus[:, None], np.where(bins == 0, 8.0, 2.0), groups, bins, bin_count=2, families=SIMPLE)
    X = np.array([[4.0], [9.0]])
    np.testing.assert_allclose(found.predict(X).mean, [8.0, 8.0], rtol=0.01)
    np.testing.assert_allclose(found.predict(X, np.array([1, 0])).mean, [2.0, 8.0], rtol=0.01)
