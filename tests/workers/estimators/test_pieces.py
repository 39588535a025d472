"""The parts between the families and the table: replicates, stages, intervals, residuals, change cost, criterion."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from app.charts.text import number
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import initial_table
from app.kinds.iterative.spec import Criterion, Spec
from workers.estimators import residuals
from workers.estimators.base import (
    CriterionMissed,
    Rows,
    TooLittleData,
    collapse,
    decompose,
    grouped_median,
    replicate_variance,
)
from workers.estimators.residuals import Measurements, bounds, calibrate, unexplained_entries, weighted_quantile
from workers.kinds.iterative import fit, grid
from workers.kinds.iterative.fit import change_cost
from workers.kinds.iterative.grid import Executions


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-10, 10)), min_size=1, max_size=60))
def test_grouped_median_is_the_median(pairs: list[tuple[int, float]]) -> None:
    index, values = np.array([i for i, _ in pairs]), np.array([v for _, v in pairs])
    result = grouped_median(values, index, 5)
    for i in range(5):
        expected = np.median(values[index == i]) if (index == i).any() else np.nan
        np.testing.assert_allclose(result[i], expected)


def test_an_execution_counts_once_however_long_it_ran() -> None:
    X = np.array([[1.0]] * 12)
    logs = np.array([5.0] * 10 + [1.0, 3.0])
    cells = collapse(X, logs, np.array([0] * 10 + [1, 2]))
    assert cells.logs.tolist() == [3.0]
    assert cells.counts.tolist() == [3.0]


def test_replicate_variance_is_between_executions() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(np.arange(50.0), 8)[:, None]
    logs = 0.3 * rng.normal(size=400)
    variance = replicate_variance(X, logs, np.arange(400))
    np.testing.assert_allclose(np.sqrt(variance), 0.3, rtol=0.15)
    assert replicate_variance(X[::8], logs[::8], np.arange(50)) == 0.0


def _staged(elastic: bool, seed: int = 0) -> tuple[Rows, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    level = np.array([5.0, 0.0, 0.5, 0.0, 0.5, 0.0, 0.5, 3.0])
    elasticity = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]) if elastic else np.ones(8)
    groups, bins = (a.ravel() for a in np.meshgrid(np.arange(30), np.arange(8), indexing="ij"))
    gpus = rng.integers(1, 17, 30).astype(float)[groups]
    logs = level[bins] - elasticity[bins] * np.log(gpus) + 0.02 * rng.normal(size=len(bins))
    return Rows(gpus[:, None], logs, groups, bins), level, elasticity


@pytest.mark.parametrize("elastic", [False, True])
def test_stages_are_taken_apart(elastic: bool) -> None:
    rows, level, elasticity = _staged(elastic)
    stages = decompose(rows, 8, "elastic" if elastic else "levels")
    assert len(stages.rows.X) == 30
    effect = np.log(stages.rows.X[:, 0])
    slope = np.polyfit(effect, stages.rows.logs, 1)[0]
    np.testing.assert_allclose(stages.elasticity * slope, -elasticity, atol=0.06)
    rebuilt = stages.compose(stages.rows.logs[np.argsort(stages.rows.groups)][rows.groups], rows.bins)
    assert float(np.abs(rebuilt - rows.logs).max()) < 0.12
    contrast = np.diff(stages.level) if not elastic else np.array([0.0])
    np.testing.assert_allclose(contrast, np.diff(level) if not elastic else [0.0], atol=0.05)


def test_stages_that_were_not_seen_lie_between_their_neighbours() -> None:
    rows, level, _ = _staged(elastic=False)
    stages = decompose(rows.where(rows.bins != 2), 8, "levels")
    np.testing.assert_allclose(stages.level[2] - stages.level[1], (level[3] - level[1]) / 2, atol=0.05)


def test_levels_that_differ_by_noise_alone_are_drawn_together() -> None:
    rng = np.random.default_rng(0)
    groups, bins = (a.ravel() for a in np.meshgrid(np.arange(4), np.arange(40), indexing="ij"))
    rows = Rows(np.ones((160, 1)), 0.1 * rng.normal(size=160), groups, bins)
    assert float(decompose(rows, 40, "levels").level.std()) < 0.03


def test_conformal_bounds_cover_new_executions() -> None:
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(200):
        sample, new = rng.standard_t(4, size=60), rng.standard_t(4, size=60)
        low, high = bounds(sample, np.arange(60))
        shares.append(((new >= low) & (new <= high)).mean())
    error = np.std(shares) / np.sqrt(len(shares))
    assert abs(np.mean(shares) - 0.9) < 0.015 + 3 * error


def test_few_executions_get_students_bounds() -> None:
    low, high = bounds(np.array([-0.1, 0.1, 0.1, -0.1]), np.arange(4))
    np.testing.assert_allclose([low, high], [-0.2353, 0.2353], atol=1e-3)


def test_with_few_executions_a_wider_level_reaches_further_and_each_execution_weighs_one() -> None:
    residuals, groups = np.array([0.3, 0.3, 0.3, -0.1]), np.array([0, 0, 0, 1])
    reach = student.ppf(0.975, 1) * np.sqrt((0.3**2 + 0.1**2) / 2)
    assert bounds(residuals, groups, 0.95) == pytest.approx((-reach, reach))


def test_from_twenty_executions_on_the_outer_twentieths_are_left_out() -> None:
    """Of the ranks of a new value among twenty, one in 21 lies beyond each end: the ends are the bounds."""
    residuals = np.random.default_rng(0).permutation(np.arange(20.0) - 5)
    assert bounds(residuals, np.arange(20)) == (-5.0, 14.0)
    assert bounds(residuals, np.arange(20), 0.8) == (-4.0, 13.0)  # two of 21 ranks a side
    assert bounds(np.abs(residuals) + 1, np.arange(20))[0] == 0.0  # an interval holds the median
    assert bounds(-np.abs(residuals) - 1, np.arange(20))[1] == 0.0
    assert bounds(residuals[:19], np.arange(19))[0] == -bounds(residuals[:19], np.arange(19))[1]


def test_a_quantile_stays_within_the_values_and_ends_where_the_weight_does() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([2.0, 1.0, 1.0])
    assert [weighted_quantile(values, weights, p) for p in (0.0, 0.25, 0.26, 0.5, 0.51, 1.0)] == [1, 1, 2, 2, 3, 3]


def test_coverage_counts_executions_and_bounds_come_from_all_folds() -> None:
    """Two folds; the first has an outlier of many rows, which the second's bounds leave out."""
    residual = np.concatenate([np.full(5, 9.0), np.linspace(-1, 1, 59)])
    groups = np.concatenate([np.zeros(5, np.intp), np.arange(1, 60)])
    calibration = calibrate(residual, groups, (np.arange(64) >= 30).astype(np.intp))
    assert (calibration.low, calibration.high) == bounds(residual, groups)
    assert calibration.level == 0.9
    inside = []
    for fold in (slice(0, 30), slice(30, 64)):
        others = np.delete(np.arange(64), fold)
        low, high = bounds(residual[others], groups[others])
        inside += ((residual[fold] >= low) & (residual[fold] <= high)).tolist()
    assert calibration.coverage == pytest.approx(sum(inside[5:]) / 60)
    assert not any(inside[:5])


def test_a_single_fold_is_judged_by_its_own_bounds() -> None:
    calibration = calibrate(np.array([0.1, -0.1, 0.1]), np.arange(3), np.zeros(3, np.intp))
    assert calibration.coverage == 1.0


def test_coverage_is_judged_without_the_fold() -> None:
    residual = np.concatenate([np.zeros(90), np.full(10, 9.0)])
    calibration = calibrate(residual, np.arange(100), (residual > 0).astype(np.intp))
    assert calibration.coverage == pytest.approx(0.9)


def test_weighted_quantile_counts_weights() -> None:
    values, weights = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 8.0])
    assert [weighted_quantile(values, weights, p) for p in (0.05, 0.2, 0.5)] == [1.0, 2.0, 3.0]


def _walk(drift: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    runs, length = 60, 40
    effect = 0.3 * rng.normal(size=runs)[:, None] + np.cumsum(drift * rng.normal(size=(runs, length)), axis=1)
    residual = effect + 0.05 * rng.normal(size=(runs, length))
    groups, iterations = np.meshgrid(np.arange(runs), np.arange(length), indexing="ij")
    return residual.ravel(), groups.ravel(), iterations.ravel()


def test_spreads_are_recovered() -> None:
    residual, groups, iterations = _walk(0.0)
    result = residuals.decompose(residual, groups, iterations, groups, 0)
    np.testing.assert_allclose([result.effects.std(), result.within.std()], [0.3, 0.05], rtol=0.2)
    assert result.drift_sd == 0.0
    assert abs(result.bounds.coverage - 0.9) < 0.03


def test_drift_is_seen_where_there_is_one() -> None:
    residual, groups, iterations = _walk(0.03)
    result = residuals.decompose(residual, groups, iterations, groups, 0)
    np.testing.assert_allclose(result.drift_sd, 0.03, rtol=0.25)


@pytest.mark.parametrize(("executions", "shown"), [(2, False), (3, False), (4, True)])
def test_drift_is_shown_by_four_executions_and_not_by_fewer(executions: int, shown: bool) -> None:
    residual, groups, iterations = (part[: executions * 40] for part in _walk(0.2))
    assert (residuals.decompose(residual, groups, iterations, groups, 0).drift_sd > 0) is shown


def test_injected_failures_are_named_and_do_not_widen_the_noise() -> None:
    residual, groups, iterations = _walk(0.0)
    residual = residual.copy()
    residual[(groups == 7) & (iterations == 3)] += np.log(10)
    residual[groups == 9] += np.log(8)
    spreads = residuals.decompose(residual, groups, iterations, groups, 0)
    assert spreads.bounds.high - spreads.bounds.low < 4 * 0.05
    names = [f"run-{i}" for i in range(60)]
    entries = unexplained_entries(Measurements("iteration_seconds", " s", names, groups, iterations, residual), spreads)
    fields = {(e["kind"], e["execution"], e.get("iteration")): e["factor"] for e in entries if e["kind"] != "stage"}
    assert fields["iteration", "run-7", 3] == pytest.approx(10, rel=0.2)
    assert fields["execution", "run-9", None] > 4
    assert "run-7" in next(e["text"] for e in entries if e.get("iteration") == 3)


def test_a_stage_that_nothing_explains_is_named_as_a_whole() -> None:
    residual, groups, iterations = _walk(0.0)
    rng = np.random.default_rng(5)
    residual = residual + np.where(iterations == 1, 1.5 * rng.normal(size=len(residual)), 0.0)
    spreads = residuals.decompose(residual, groups, iterations, groups, 0)
    entries = unexplained_entries(
        Measurements("iteration_seconds", " s", ["x"] * 60, groups, iterations, residual), spreads
    )
    stages = [e for e in entries if e["kind"] == "stage"]
    assert [e["iteration"] for e in stages] == [1]
    assert "neither allocation nor features explain it" in stages[0]["text"]


def test_change_cost_is_measured_per_resource() -> None:
    rng = np.random.default_rng(0)
    changed = (rng.random((400, 2)) < [0.1, 0.05]).astype(float)
    expected = np.full(400, 40.0)
    seconds = expected * np.exp(0.03 * rng.normal(size=400)) + changed @ [12.0, 30.0]
    seconds[5] += 500
    result = change_cost(seconds, expected, changed, np.array([1.0, 1.0]))
    assert result.measured.tolist() == [True, True]
    np.testing.assert_allclose(result.seconds, [12.0, 30.0], rtol=0.15)


def test_change_cost_is_the_specs_where_nothing_changed() -> None:
    result = change_cost(np.full(50, 3.0), np.full(50, 3.0), np.zeros((50, 1)), np.array([7.0]))
    assert result.seconds.tolist() == [7.0]
    assert not result.measured.any()


def _layout() -> Layout:
    return Layout(
        Spec.model_validate(
            {"name": "w", "resources": [{"name": "gpus", "minimum": 1, "maximum": 8}], "iterations": 10}
        )
    )


def test_the_criterion_names_its_figures() -> None:
    with pytest.raises(CriterionMissed, match=r"takes 2 ms; the criterion allows 1 ms \(max_seconds, 1 ms\)"):
        fit.check(Criterion(), 0.002, 100.0)
    with pytest.raises(CriterionMissed, match=r"max_fraction 0.001 of a real iteration of 500 ms"):
        fit.check(Criterion(), 6e-4, 0.5)
    fit.check(Criterion(), 4e-4, 0.5)
    assert fit.simulated_iteration_seconds(initial_table(_layout()), 0, iter(range(100)).__next__) == 1 / 1024


def test_iteration_bins_are_contiguous_and_bounded() -> None:
    assert grid.iteration_bins(5, 10).tolist() == [0, 1, 2, 3, 4]
    bins = grid.iteration_bins(10_000, 10)
    assert bins.max() == grid.MOST_BINS - 1
    assert (np.diff(bins) >= 0).all()
    assert grid.iteration_bins(100, grid.MOST_ENTRIES).max() == 0


def test_feature_nodes_are_what_was_seen_or_quantiles() -> None:
    rng = np.random.default_rng(0)
    nodes = grid.feature_nodes(np.column_stack([rng.choice([16.0, 32.0], 100), rng.normal(size=100)]), 8)
    assert nodes[0].tolist() == [16.0, 32.0]
    assert len(nodes[1]) == grid.MOST_NODES
    wide = grid.feature_nodes(rng.normal(size=(100, 8)), 8)
    assert np.prod([len(n) for n in wide]) <= grid.MOST_CELLS
    few = [[len(n) for n in grid.feature_nodes(rng.normal(size=(100, 2)), count)] for count in (20_000, 30_001)]
    assert few == [[1, 2], [1, 1]]  # as many cells as a table of so many allocations may have
    assert grid.inputs(_layout(), nodes[:0]).shape == (8, 1)


def test_executions_are_read_under_each_other() -> None:
    rows = np.array([[0.0, 2.0, 5.0], [1.0, 4.0, 3.0]])
    read = Executions((("a", rows), ("b", rows[:1])))
    flat = read.flat(_layout())
    assert read.names == ["a", "b"]
    assert flat.groups.tolist() == [0, 0, 1]
    assert flat.changed[:, 0].tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(ValueError, match=r"must be \[n, 3\]"):
        Executions((("a", np.zeros((2, 5))),)).flat(_layout())


def test_too_little_data_speaks_in_terms() -> None:
    error = TooLittleData("3 executions at 3 allocations", "1 at 1")
    assert str(error) == "needs 3 executions at 3 allocations; has 1 at 1"


def test_a_residual_is_as_if_its_rows_execution_had_been_judged_without_it() -> None:
    found = residuals.leave_one_out(np.array([0.2, 0.2, 0.2, 0.2, 0.2, 0.3]), np.array([0, 0, 0, 2, 2, 5]))
    np.testing.assert_allclose(found, [0.3, 0.3, 0.3, 0.4, 0.4, 0.3])


def test_every_execution_has_the_same_weight_in_a_mean() -> None:
    assert residuals.mean_by_execution(np.array([1.0, 2.0, 3.0, 10.0]), np.array([4, 4, 4, 7])) == pytest.approx(6.0)


def test_an_execution_is_a_sequence_in_order_of_its_iterations_without_outliers() -> None:
    """The robust standard deviation is 1.4826 times the median size: four of them bound a residual."""
    within = np.array([3.0, -1.0, 2.0, -2.0, 99.0, -99.0, 1.0])
    groups, iterations = np.array([1, 0, 1, 1, 0, 1, 0]), np.array([2, 1, 0, 1, 0, 3, 2])
    bound = 4 * 1.4826 * 2
    found = [part.tolist() for part in residuals._sequences(within, groups, iterations)]
    assert found == [[bound, -1.0, 1.0], [2.0, -2.0, 3.0, -bound]]


def test_differences_are_summed_by_lag_up_to_the_length_of_a_sequence() -> None:
    sums, counts = residuals._variogram([np.array([1.0, 3.0, 6.0, 10.0]), np.array([5.0, 4.0]), np.array([7.0])], 3)
    assert sums.tolist() == [[4 + 9 + 16, 25 + 49, 81], [1, 0, 0], [0, 0, 0]]
    assert counts.tolist() == [[3, 2, 1], [1, 0, 0], [0, 0, 0]]


def test_the_drift_is_the_weighted_slope_over_the_lags_that_there_are() -> None:
    counts = np.array([[30.0, 0.0, 20.0, 1.0], [5.0, 0.0, 4.0, 0.0]])  # one pair is a lag, too
    lags = np.array([1.0, 2.0, 3.0, 4.0])
    assert residuals._slope(counts * (0.5 + 0.25 * lags), counts) == pytest.approx(0.25)
    bent = np.array([1.0, 9.0, 2.0, 7.0])
    weights = counts.sum(axis=0)[[0, 2, 3]]
    expected = np.polyfit(lags[[0, 2, 3]], bent[[0, 2, 3]], 1, w=np.sqrt(weights))[0]
    assert residuals._slope(counts * bent, counts) == pytest.approx(expected)
    assert residuals._slope(counts[:, :3] * bent[:3], counts[:, :3]) == 0.0  # two lags


def test_a_drift_that_some_executions_contradict_is_none() -> None:
    """Half of them drift, and half draw back just as far; all of them do in the second case."""
    walk, back = np.cumsum(np.full(12, 0.1)), np.tile([0.4, -0.4], 6)
    groups, iterations = np.repeat(np.arange(8), 12), np.tile(np.arange(12), 8)

    def drift(*parts: np.ndarray) -> float:
        within = np.concatenate([parts[run % len(parts)] for run in range(8)])
        return residuals.decompose(within, groups, iterations, groups, 0).drift_sd

    assert drift(walk, -walk) > 0.1
    assert drift(walk * 0.01, back) == 0.0
    assert drift(back) == 0.0


def entries_of(
    within: np.ndarray, effects: np.ndarray, iterations: np.ndarray, groups: np.ndarray, logs: np.ndarray | None = None
) -> list[dict[str, Any]]:
    names = [f"run-{i}" for i in range(len(effects))]
    rows = Measurements("loss", " s", names, groups, iterations, within if logs is None else logs)
    return unexplained_entries(rows, residuals.Spreads(0.0, effects, within, residuals.Offsets(-1, 1, 0.9, 0.9)))


def rectangle(executions: int, usual: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Residuals of five iterations, of the usual size and either sign, and their executions and iterations."""
    groups, iterations = np.repeat(np.arange(executions), 5), np.tile(np.arange(5), executions)
    return usual * (1.0 - 2.0 * (groups % 2)), groups, iterations


@pytest.mark.parametrize(
    ("usual", "size", "named"),
    [(0.02, 0.40, False), (0.02, 0.41, True), (0.1, 0.59, False), (0.1, 0.60, True)],
)
def test_an_iteration_is_named_beyond_half_as_much_again_and_four_deviations(
    usual: float, size: float, named: bool
) -> None:
    within, groups, iterations = rectangle(10, usual)
    within[13] = -size
    found = entries_of(within, np.zeros(10), iterations, groups, within + 3.0)
    assert [(one["kind"], one["execution"], one["iteration"]) for one in found] == [("iteration", "run-2", 3)] * named
    if named:
        assert found[0]["factor"] == pytest.approx(np.exp(-size), rel=1e-3)
        assert found[0]["text"].startswith(f"execution 'run-2', iteration 3: loss {number(np.exp(3 - size))} s, ")


@pytest.mark.parametrize(
    ("usual", "size", "executions", "named"),
    [
        (0.02, 0.13, 10, False),  # the spread, of 1.4826 times as much, within half of what is reported of one row
        (0.02, 0.14, 10, True),
        (0.02, 0.14, 8, True),
        (0.02, 0.14, 7, False),  # of too few
        (0.1, 0.29, 10, False),  # within three times that of the usual iteration
        (0.1, 0.31, 10, True),
    ],
)
def test_a_stage_is_named_where_many_executions_vary_far_more_than_elsewhere(
    usual: float, size: float, executions: int, named: bool
) -> None:
    within, groups, iterations = rectangle(executions, usual)
    within[iterations == 1] *= size / usual
    logs = np.where(iterations == 1, groups * 0.25, 7.0)
    found = entries_of(within, np.zeros(executions), iterations, groups, logs)
    assert [(one["kind"], one["iteration"]) for one in found] == [("stage", 1)] * named
    if named:
        values = np.exp(0.25 * np.arange(executions))
        low, high = np.quantile(values, [0.05, 0.95])
        assert found[0]["factor"] == pytest.approx(high / low, rel=1e-3)
        assert f"from {number(low)} to {number(high)} s over {executions} executions" in found[0]["text"]


def test_in_a_stage_that_varies_a_row_is_named_by_that_stages_spread() -> None:
    within, groups, iterations = rectangle(10, 0.02)
    within[iterations == 1] *= 10.0
    within[1], within[6] = 4 * 1.4826 * 0.2 + 0.01, -4 * 1.4826 * 0.2 + 0.01
    found = entries_of(within, np.zeros(10), iterations, groups)
    assert {(one["kind"], one.get("execution")) for one in found} == {("stage", None), ("iteration", "run-0")}


@pytest.mark.parametrize(
    ("usual", "size", "named"), [(0.05, 0.40, False), (0.05, 0.41, True), (0.2, 0.88, False), (0.2, 0.90, True)]
)
def test_an_execution_is_named_by_its_distance_from_the_median_of_all(usual: float, size: float, named: bool) -> None:
    """Beyond half as much again and three robust deviations of the effects; one without rows has none."""
    effects = 0.7 + np.array([*[-usual] * 4, 0, 0, 0, *[usual] * 4, size, -size, np.nan])
    within, groups, iterations = rectangle(13, 0.02)
    found = entries_of(within, effects, iterations, groups)
    assert {(one["kind"], one["execution"]) for one in found} == (
        {("execution", "run-11"), ("execution", "run-12")} if named else set()
    )
    if named:
        assert {one["factor"] for one in found} == {float(f"{np.exp(sign * size):.4g}") for sign in (1, -1)}


def test_of_many_entries_the_hundred_largest_are_given_in_order() -> None:
    """One iteration of each of 120 executions is off, not always the same one."""
    within, groups, iterations = rectangle(120, 0.02)
    off = np.arange(120) * 5 + np.arange(120) % 5
    within[off] = np.where(np.arange(120) % 2, -1.0, 1.0) * np.linspace(1.0, 2.0, 120)
    found = entries_of(within, np.zeros(120), iterations, groups)
    assert [one["execution"] for one in found] == [f"run-{run}" for run in range(119, 19, -1)]
