"""Outcomes of runs, against sums done by hand."""

from typing import Any

import numpy as np
import pytest

from app.charts.text import amount
from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.spec import Resource
from tests.planted import planted_spec, planted_table
from workers.evaluation.arena import play
from workers.evaluation.statistics import Level
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.off_policy import hours_of, outcomes_of
from workers.kinds.iterative.problem import IterativeProblem

LATE = {"name": "iteration_seconds", "unit": "s", "scope": "run"}
GPUS = {"name": "gpus", "minimum": 2, "maximum": 8, "initial": 4, "price_per_hour": 2.5}


def counted(level: int | None = None, **changes: Any) -> dict[str, float]:
    """Means by name of runs that hold, or go to a level and stay: almost without noise."""
    spec = planted_spec(**changes)
    table = planted_table(spec, effect=0.0, noise=0.0)
    problem = IterativeProblem(spec, table)
    policy = HEURISTICS["hold"] if level is None else problem.static({"gpus": level})
    outcomes = play(problem.world(4, 0), Level.SEEDS, 1, problem.player(policy)).outcomes
    names = [outcome.name for outcome in outcomes_of(spec)]
    return dict(zip(names, outcomes.mean(axis=0).tolist(), strict=True))


def seconds(gpus: float) -> float:
    return 2 + 60 / gpus + 0.1 * gpus


def test_a_late_run_tells_by_how_much_and_what_it_held() -> None:
    late = counted(resources=[GPUS], metrics=[{**LATE, "target": 10.0}], iterations=3)
    gpus = round(late["GPU-hours"] * 3600 / (late["lateness"] + 10))
    assert late["missed deadlines"] == 1
    assert late["lateness"] == pytest.approx(3 * seconds(gpus) - 10, rel=1e-4)
    assert late["GPU-hours"] == pytest.approx(gpus * 3 * seconds(gpus) / 3600, rel=1e-4)
    assert late["cost"] == pytest.approx(2.5 * late["GPU-hours"], rel=1e-4)
    assert late["changes"] == 0


@pytest.mark.parametrize(
    ("name", "unit", "text", "whole"),
    [
        ("gpus", "", "GPU-hours", 1),
        ("gpus", "gpu", "GPU-hours", 1),
        ("gpus", "%", "GPU-hours", 100),
        ("cpu", "percent", "core-hours", 100),
        ("cpu", "%", "core-hours", 100),
        ("cores", "", "core-hours", 1),
        ("executors", "", "executor-hours", 1),
        ("memory", "GiB", "GiB-hours", 1),
    ],
)
def test_hours_are_of_what_is_allocated(name: str, unit: str, text: str, whole: float) -> None:
    resource = Resource(name=name, unit=unit, minimum=1, maximum=8)
    assert hours_of([resource]) == [(text, whole)]


@pytest.mark.parametrize(
    ("metric", "weights", "names", "binding"),
    [
        ({**LATE, "target": 10.0}, {}, ["missed deadlines", "lateness"], True),
        ({**LATE, "target": 10.0, "weight": 0.5}, {"sla": 2.0, "cost": 1.0}, ["missed deadlines", "lateness"], True),
        ({**LATE, "target": 10.0, "weight": 0.4}, {"sla": 2.0, "cost": 1.0}, ["missed deadlines", "lateness"], False),
        ({**LATE, "target": 10.0, "goal": "at_least"}, {}, ["runs that miss {}", "{} missed by"], True),
        ({**LATE, "target": 10.0, "goal": "track"}, {}, ["runs that miss {}", "{} missed by"], False),
        ({**LATE, "target": 10.0, "scope": "iteration"}, {}, ["iterations that miss {}", "{} missed by"], False),
    ],
)
def test_a_runs_target_is_a_promise_unless_cost_weighs_more(
    metric: dict[str, Any], weights: dict[str, float], names: list[str], binding: bool
) -> None:
    weighed = {"weights": {"change": 0.0, **weights}} if weights else {}
    missed, by, hours, changes = outcomes_of(planted_spec(metrics=[metric], **weighed))
    assert [missed.name, by.name] == [name.format("iteration_seconds") for name in names]
    assert (missed.unit, missed.binding, by.unit) == ("share", binding, "s")
    assert (hours.name, changes.name) == ("executor-hours", "changes")


def test_hours_of_two_that_would_be_called_the_same_are_told_apart() -> None:
    both = [Resource(name=name, minimum=1, maximum=8) for name in ("cpu", "core", "gpus")]
    assert [name for name, _ in hours_of(both)] == ["cpu core-hours", "core core-hours", "GPU-hours"]


def test_hours_in_per_cent_are_of_whole_cores() -> None:
    cpu = {"name": "gpus", "unit": "%", "minimum": 2, "maximum": 8, "initial": 4, "price_per_hour": 2.5}
    result = counted(resources=[cpu], metrics=[{**LATE, "target": 1e6}], iterations=3)
    assert result["cost"] == pytest.approx(250 * result["GPU-hours"], rel=1e-4)


def test_a_run_in_time_is_late_by_nothing_and_one_resource_at_price_one_is_its_own_money() -> None:
    timely = counted(resources=[{**GPUS, "price_per_hour": 1.0}], metrics=[{**LATE, "target": 1e6}], iterations=3)
    assert (timely["missed deadlines"], timely["lateness"]) == (0, 0)
    assert "cost" not in timely


def test_iterations_that_miss_are_a_share_and_changes_are_counted() -> None:
    """From the largest allocation, which meets the target, a step at a time to the smallest."""
    target = seconds(8) * 1.02
    metrics = [{"name": "iteration_seconds", "unit": "s", "target": target}]
    result = counted(0, resources=[{**GPUS, "max_steps": 1}], metrics=metrics, iterations=12)
    took = np.array([*(seconds(gpus) for gpus in (8, 7, 6, 5, 4, 3)), *[seconds(2)] * 6])
    assert result["iterations that miss iteration_seconds"] == pytest.approx(11 / 12)
    assert result["iteration_seconds missed by"] == pytest.approx(np.maximum(took - target, 0).mean(), rel=0.01)
    assert result["changes"] == 6


def test_the_verdict_counts_what_the_evaluation_does() -> None:
    spec = planted_spec(iterations=6, metrics=[{**LATE, "target": 60.0}])
    table = planted_table(spec)
    judged = Evaluator(spec, table, 3, 4096).score(HEURISTICS["threshold"]).outcomes
    problem = IterativeProblem(spec, table)
    played = play(problem.world(4096, 0), Level.SEEDS, 3, problem.player(HEURISTICS["threshold"])).outcomes
    error = np.hypot(judged.std(axis=0), played.std(axis=0)) / 64
    assert (np.abs(judged.mean(axis=0) - played.mean(axis=0)) <= 4.5 * error + 1e-9).all()
    assert judged.mean(axis=0)[0] > 0


def test_amounts_have_the_digits_that_carry_something() -> None:
    assert amount(0.0423, "share") == "4.2 %"
    assert amount(1912.4, "s") == "1,912 s"
    assert amount(0.1299, "") == "0.13"
