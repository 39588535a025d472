"""From executions to the exported table and its report."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from workers.estimators.base import CriterionMissed, EstimationError, Inputs, TooLittleData
from workers.estimators.registry import FAMILIES
from workers.estimators.selection import input_folds, select
from workers.kinds.iterative import fit
from workers.kinds.iterative.fit import FittedModel, check_judge, fit_domain_model
from workers.kinds.iterative.grid import Executions

GPUS = {"name": "gpus", "minimum": 1, "maximum": 16, "change_seconds": 5.0}


def _spec(**changes: Any) -> Spec:
    return Spec.model_validate({"name": "w", "resources": [GPUS], "iterations": 12} | changes)


def _seconds(gpus: np.ndarray) -> np.ndarray:
    return np.asarray(2.0 + 60.0 / gpus)


def _executions(
    count: int = 24, effect: float = 0.1, noise: float = 0.02, seed: int = 0, moving: bool = False
) -> Executions:
    rng = np.random.default_rng(seed)
    items = []
    for run in range(count):
        gpus = np.full(12, float(rng.integers(1, 17)))
        if moving:
            gpus[rng.integers(2, 6) :] = float(rng.integers(1, 17))
        seconds = _seconds(gpus) * np.exp(effect * rng.normal() + noise * rng.normal(size=12))
        seconds[0] *= 3  # a warm-up
        seconds[1:] += 5.0 * (np.diff(gpus) != 0)
        items.append((f"run-{run}", np.column_stack([np.arange(12.0), gpus, seconds])))
    return Executions(tuple(items))


@pytest.fixture(scope="module")
def usual() -> FittedModel:
    return fit_domain_model(_spec(), _executions(), seed=3, clock=lambda: 0.0)


def test_more_metrics_are_fitted_to_fewer_inputs_each(monkeypatch: pytest.MonkeyPatch) -> None:
    cells: list[int] = []

    def selected(inputs: Inputs, *rest: Any, **named: Any) -> Any:
        cells.append(inputs.most_cells)
        return select(inputs, *rest, **{**named, "families": {"mean": FAMILIES["mean"]}})

    monkeypatch.setattr(fit, "select", selected)
    for count in (1, 4, 8):
        executions = Executions(
            tuple((name, np.hstack([rows, np.tile(rows[:, 2:], count - 1)])) for name, rows in _executions(3).items)
        )
        fit_domain_model(_spec(metrics=[{"name": f"m{n}"} for n in range(count - 1)]), executions, reported=False)
    assert cells == [1_500] * 5 + [1_191] * 8
    assert cells[-1] ** 3 * 8 == pytest.approx(cells[0] ** 3 * 4, rel=0.01)


def test_a_planted_workload_is_recovered() -> None:
    spec = _spec()
    fitted = fit_domain_model(spec, _executions(60), seed=1)
    table, report, layout = fitted.table, fitted.report, Layout(spec)
    truth = np.log(_seconds(layout.allocations[:, 0]))[:, None] + np.log([3.0] + [1.0] * 11)
    assert table.log_mean.shape == (1, 16, 1, 12)
    assert float(np.abs(table.log_mean[0, :, 0, :] - truth).mean()) < 0.06
    np.testing.assert_allclose([table.effect_sd[0], table.noise_sd[0]], [0.1, 0.02], rtol=0.4)
    assert table.drift_sd[0] == 0.0
    assert report["metrics"]["iteration_seconds"]["mape"] < 0.12 < report["metrics"]["iteration_seconds"]["naive_mape"]
    assert abs(report["metrics"]["iteration_seconds"]["coverage"] - 0.9) < 0.08
    assert report["metrics"]["iteration_seconds"]["iterations"] == "levels"
    assert sum(c["chosen"] for c in report["candidates"]) == 1
    assert report["executions"] == 60
    assert report["observations"] == 720


def test_the_report_is_plain_json_and_the_table_survives_bytes(usual: FittedModel) -> None:
    assert json.loads(json.dumps(usual.report, allow_nan=False)) == usual.report
    again = ModelTable.from_bytes(usual.table.to_bytes())
    np.testing.assert_array_equal(again.log_mean, usual.table.log_mean)
    np.testing.assert_array_equal(again.change_seconds, usual.table.change_seconds)


def test_the_same_seed_gives_the_same_model(usual: FittedModel) -> None:
    again = fit_domain_model(_spec(), _executions(), seed=3, clock=lambda: 0.0)
    for field in dataclasses.fields(usual.table):
        np.testing.assert_array_equal(getattr(usual.table, field.name), getattr(again.table, field.name))
    assert usual.report == again.report


def test_change_seconds_are_measured_where_allocations_move(usual: FittedModel) -> None:
    report = fit_domain_model(_spec(), _executions(40, effect=0.02, moving=True), reported=False).report
    assert report["change_seconds_measured"] == {"gpus": True}
    assert report["change_seconds"]["gpus"] == pytest.approx(5.0, rel=0.25)
    assert usual.report["change_seconds_measured"] == {"gpus": False}
    assert usual.report["change_seconds"] == {"gpus": 5.0}


def test_changes_that_launchers_measured_are_taken_and_left_out_of_iterations(usual: FittedModel) -> None:
    items = []
    for run, (name, data) in enumerate(_executions(40, effect=0.02).items[:30]):
        moved = data.copy()
        moved[6:, 1] = 1 + (moved[6:, 1] + 4) % 16
        moved[6:, 2] = _seconds(moved[6:, 1])
        change = moved[6].copy()
        change[[0, 2]] = 5.5, 38.0 + run % 5  # 40 s on average
        items.append((name, np.insert(moved, 6, change, axis=0) if run % 10 == 0 else data))
    fitted = fit_domain_model(_spec(), Executions(tuple(items)), seed=3, clock=lambda: 0.0, reported=False)
    assert fitted.report["change_seconds_measured"] == {"gpus": True}  # three are enough, where they are measured
    assert fitted.report["change_seconds"]["gpus"] == pytest.approx(38.0, abs=0.5)
    assert fitted.report["observations"] == 30 * 12
    at = Layout(_spec()).index(np.array([[3]]))
    seconds = [np.exp(one.table.log_mean[0, at, 0, 6]) for one in (fitted, usual)]
    assert seconds[0] == pytest.approx(seconds[1], rel=0.1)


def test_features_and_further_metrics_are_tabled() -> None:
    spec = _spec(
        metrics=[{"name": "loss", "target": 0.1}],
        features=[{"name": "batch", "minimum": 1, "maximum": 512}],
    )
    rng = np.random.default_rng(0)
    items = []
    for run in range(40):
        gpus, batch = float(rng.integers(1, 17)), float(rng.choice([32, 128]))
        loss = 1 / (np.arange(12) + 1) * np.exp(0.01 * rng.normal(size=12))
        seconds = (1 + 0.5 * batch / gpus) * np.exp(0.02 * rng.normal(size=12))
        items.append(
            (f"r{run}", np.column_stack([np.arange(12), np.full(12, gpus), loss, seconds, np.full(12, batch)]))
        )
    table = fit_domain_model(spec, Executions(tuple(items)), reported=False).table
    assert table.log_mean.shape == (2, 16, 2, 12)
    assert [nodes.tolist() for nodes in table.feature_nodes] == [[32.0, 128.0]]
    np.testing.assert_allclose(np.exp(table.log_mean[0, :, 0, 9]), 0.1, rtol=0.1)
    expected = 1 + 0.5 * np.array([32.0, 128.0]) / 8
    np.testing.assert_allclose(np.exp(table.log_mean[1, 7, :, 3]), expected, rtol=0.1)


def test_two_resources_are_tabled_in_the_layouts_order() -> None:
    cpus = {"name": "cpus", "minimum": 2, "maximum": 8, "step": 2}
    spec = _spec(resources=[GPUS, cpus])
    rng = np.random.default_rng(0)
    items = []
    for run in range(60):
        gpus, cores = float(rng.integers(1, 17)), float(rng.choice([2, 4, 6, 8]))
        seconds = 40 / gpus * (2 / cores) ** 0.5 * np.exp(0.02 * rng.normal(size=12))
        items.append((f"r{run}", np.column_stack([np.arange(12), np.full(12, gpus), np.full(12, cores), seconds])))
    table = fit_domain_model(spec, Executions(tuple(items)), reported=False).table
    allocations = Layout(spec).allocations
    truth = 40 / allocations[:, 0] * (2 / allocations[:, 1]) ** 0.5
    error = np.abs(np.exp(table.log_mean[0, :, 0, 0]) / truth - 1)
    assert float(np.median(error)) < 0.1


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_executions_are_a_state_with_terms(count: int) -> None:
    items = tuple((f"r{i}", np.array([[0.0, 1.0 + i, 10.0 - i], [1.0, 1.0 + i, 10.5 - i]])) for i in range(count))
    with pytest.raises(TooLittleData, match=f"needs 2 executions; has {count}"):
        fit_domain_model(_spec(), Executions(items))


@pytest.mark.parametrize(("count", "has"), [(2, "2 at 2"), (9, "9 at 1")])
def test_who_judges_has_seen_allocations_differ(count: int, has: str) -> None:
    at = [1.0, 2.0] if count == 2 else [4.0] * count
    items = tuple((f"r{i}", np.array([[0.0, gpus, 10.0 + i]])) for i, gpus in enumerate(at))
    layout = Layout(_spec())
    with pytest.raises(TooLittleData, match=f"needs 3 executions at 3 allocations; has {has}"):
        check_judge(layout, Executions(items).flat(layout))


@pytest.mark.parametrize("gpus", [(4.0, 8.0), (4.0, 4.0)])
def test_two_executions_leave_open_what_they_have_not_seen(gpus: tuple[float, float]) -> None:
    """Members agree where runs were measured, and disagree by more the further from there."""
    noise = np.random.default_rng(1).normal(0, 0.02, (2, 12))
    items = tuple(
        (f"r{i}", np.column_stack([np.arange(12.0), np.full(12, at), _seconds(np.full(12, at)) * np.exp(noise[i])]))
        for i, at in enumerate(gpus)
    )
    drawn = [fit_domain_model(_spec(), Executions(items), seed, reported=False).table.members for seed in range(6)]
    apart = np.mean([np.asarray(members)[:, 0, :, 0, 0].std(axis=0) for members in drawn], axis=0)  # by gpus less one
    assert apart[3] < apart[1] < apart[0]
    assert apart[3] < 0.2 < apart[0]


def test_three_executions_at_three_allocations_are_enough() -> None:
    items = tuple(
        (
            f"r{g}",
            np.column_stack([np.arange(12.0), np.full(12, g), _seconds(np.full(12, g)) * (1 + 0.01 * np.arange(12))]),
        )
        for g in (2.0, 4.0, 8.0)
    )
    fitted = fit_domain_model(_spec(), Executions(items), reported=False)
    assert np.isfinite(fitted.table.log_mean).all()
    inside = np.exp(fitted.table.log_mean[0, [1, 3, 7], 0, 6])
    np.testing.assert_allclose(inside, _seconds(np.array([2.0, 4.0, 8.0])) * 1.06, rtol=0.15)


def test_constant_data_are_named() -> None:
    items = tuple(
        (f"r{g}", np.column_stack([np.arange(5.0), np.full(5, g), np.full(5, 30.0)])) for g in (1.0, 2.0, 4.0)
    )
    with pytest.raises(TooLittleData, match="has 15 times 30 s") as caught:
        fit_domain_model(_spec(), Executions(items))
    assert caught.value.pointer == "/metrics/iteration_seconds"


def test_a_constant_second_metric_is_only_averaged() -> None:
    spec = _spec(metrics=[{"name": "memory", "target": None}])
    items = tuple((n, np.insert(data, 2, 7.0, axis=1)) for n, data in _executions(8).items)
    table = fit_domain_model(spec, Executions(items), reported=False).table
    np.testing.assert_allclose(np.exp(table.log_mean[0]), 7.0, rtol=1e-6)


def test_a_metric_that_is_not_positive_is_refused() -> None:
    items = tuple((n, data * [1, 1, -1]) for n, data in _executions(4).items)
    with pytest.raises(EstimationError, match=r"iteration_seconds must be greater than 0"):
        fit_domain_model(_spec(), Executions(items))


def test_a_missed_criterion_fails_with_figures() -> None:
    ticks = iter(float(i) for i in range(1000))
    with pytest.raises(CriterionMissed, match=r"one simulated iteration takes 977 µs; the criterion allows 1 µs"):
        fit_domain_model(_spec(criterion={"max_seconds": 1e-6}), _executions(8), clock=ticks.__next__, reported=False)


def test_a_failure_in_one_run_is_told() -> None:
    items = [(n, data.copy()) for n, data in _executions(30).items]
    items[4][1][6, 2] *= 15
    report = fit_domain_model(_spec(), Executions(tuple(items)), reported=False).report
    first = report["unexplained"][0]
    assert (first["kind"], first["execution"], first["iteration"]) == ("iteration", "run-4", 6)
    assert first["factor"] == pytest.approx(15, rel=0.2)


def test_folds_never_split_an_execution_and_hold_repeated_inputs_out_together() -> None:
    X = np.repeat(np.arange(8.0), 5)[:, None]
    groups = np.arange(40)
    by_input = input_folds(X, groups, 0)
    assert all(len(set(by_input[X[:, 0] == value])) == 1 for value in range(8))
    moving = input_folds(np.arange(40.0)[:, None], np.repeat(np.arange(4), 10), 0)
    assert all(len(set(moving[run * 10 : run * 10 + 10])) == 1 for run in range(4))


def test_the_family_that_made_the_data_wins_or_ties() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(1, 33, 60).astype(float)[:, None]
    y = _seconds(X[:, 0]) * np.exp(0.02 * rng.normal(size=60))
    chosen = select(Inputs(("gpus",)), X, y, np.arange(60))
    assert chosen.family in {"ernest", "absolute_ernest"}
    assert chosen.chosen.mape < 0.03 < chosen.naive_mape


def test_one_execution_can_not_be_validated() -> None:
    with pytest.raises(TooLittleData, match="needs 2 executions; has 1"):
        select(Inputs(("gpus",)), np.ones((5, 1)), np.ones(5), np.zeros(5, np.intp))


def test_real_logs_with_failures_are_fitted_and_told(shared_data: Path) -> None:
    from benchmarks.domain_data import ellis

    spec, executions = ellis(shared_data, "kmeans")
    report = fit_domain_model(spec, executions).report
    metric = report["metrics"]["iteration_seconds"]
    assert metric["iterations"] != "none"
    assert metric["mape"] < metric["naive_mape"]
    assert abs(metric["coverage"] - 0.9) < 0.05
    assert {"execution", "iteration", "stage"} <= {e["kind"] for e in report["unexplained"]}
    assert any(e.get("execution") == "63" for e in report["unexplained"])
