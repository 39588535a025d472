"""What counts as outside of a policy's experience: bounds from both sides, and one value of many is enough."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.kinds.contract.policy import Situation
from app.kinds.iterative.heuristics import default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.observation import view
from app.kinds.iterative.policies import (
    MODEL_NOISE,
    UNEXPLAINED,
    Experience,
    Verdict,
    decide,
    experience_of,
    outside_conditions,
)
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, advance, begin
from tests.app.kinds.iterative.policies.test_guard import artifact, reported, situation
from tests.planted import planted_spec, planted_table

SPEC = planted_spec(
    resources=[
        {"name": "executors", "minimum": 4, "maximum": 36, "max_steps": 1, "initial": 16, "price_per_hour": 1.0},
        {
            "name": "memory",
            "minimum": 0,
            "maximum": 40,
            "step": 2,
            "max_steps": 1,
            "initial": 20,
            "price_per_hour": 2.0,
        },
    ],
    metrics=[
        {"name": "iteration_seconds", "target": 330.0, "scope": "run"},
        {"name": "loss", "target": 1.0},
        {"name": "speed"},
    ],
    features=[{"name": "batch", "minimum": 16, "maximum": 64}, {"name": "depth", "minimum": 1, "maximum": 9}],
)
LAYOUT = Layout(SPEC)
TABLE = replace(
    planted_table(SPEC),
    seen_low=np.array([10.0, 10.0]),
    seen_high=np.array([20.0, 30.0]),
    feature_low=np.array([32.0, 2.0]),
    feature_high=np.array([48.0, 8.0]),
)
PROJECTOR = Projector(LAYOUT, TABLE)
EXPERIENCE = experience_of(LAYOUT)
WAY = "run_effect"


def state(executors: float = 16, memory: float = 20, **changes: Any) -> State:
    levels = np.array([[executors - 4, memory / 2]]).astype(int)
    return begin(PROJECTOR, levels, features=[[40.0, 4.0]])._replace(**changes)


def outside(run: State, experience: Experience = EXPERIENCE) -> list[str]:
    """The ways in which a run is outside."""
    situation = Situation(PROJECTOR, run, view(PROJECTOR, run))
    return [way for way, rows in outside_conditions(situation, experience).items() if rows[0]]


def test_what_was_seen_is_not_outside() -> None:
    assert outside(state()) == []


@pytest.mark.parametrize(
    ("executors", "memory", "expected"),
    [
        (9, 20, []),  # a step and a half is still near
        (8, 20, ["allocation"]),
        (21, 20, []),
        (22, 20, ["allocation"]),
        (16, 8, []),
        (16, 6, ["allocation"]),
        (16, 32, []),
        (16, 34, ["allocation"]),
    ],
)
def test_an_allocation_is_near_what_was_seen_in_every_resource(
    executors: float, memory: float, expected: list[str]
) -> None:
    assert outside(state(executors, memory)) == expected


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ([32.0, 2.0], []),
        ([48.0, 8.0], []),
        ([31.9, 4.0], ["features"]),
        ([48.1, 4.0], ["features"]),
        ([40.0, 1.9], ["features"]),
        ([40.0, 8.1], ["features"]),
    ],
)
def test_features_lie_within_what_was_seen_bounds_included(features: list[float], expected: list[str]) -> None:
    assert outside(state(features=np.array([features]))) == expected


@pytest.mark.parametrize(
    ("factor", "expected"), [(1.0, []), (-1.0, []), (1.01, ["run_effect"]), (-1.01, ["run_effect"])]
)
@pytest.mark.parametrize("metric", [0, 1, 2])
def test_one_metric_far_from_its_model_is_enough(metric: int, factor: float, expected: list[str]) -> None:
    assert UNEXPLAINED == 4.0
    effect = np.zeros((1, 3))
    effect[0, metric] = factor * 4.0 * PROJECTOR.effect_scale[metric]
    assert outside(state(effect=effect)) == expected


@pytest.mark.parametrize(("name", "low", "high"), [("targets", 0.5, 2.0), ("weights", 0.9, 1.1), ("prices", 0.9, 1.1)])
@pytest.mark.parametrize("column", [0, 1])
def test_one_value_off_is_enough_and_the_edges_belong(name: str, low: float, high: float, column: int) -> None:
    ones = {"targets": np.ones((1, 3)), "weights": np.ones((1, 3)), "prices": np.ones((1, 2))}
    experience = Experience(dict.fromkeys(LAYOUT.metrics, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0))
    for ratio, expected in ((low, []), (high, []), (0.99 * low, [name]), (1.01 * high, [name])):
        values = ones[name].copy()
        values[0, column] = ratio
        assert outside(state()._replace(**{**ones, name: values}), experience) == expected


def test_a_target_that_either_does_not_have_is_never_off() -> None:
    unknown = replace(EXPERIENCE, targets={"loss": 1.0})
    assert outside(state(targets=np.array([[1e9, 1.0, 1e9]])), unknown) == []
    assert outside(state(targets=np.array([[330.0, np.nan, np.nan]]))) == []


def test_what_was_never_seen_stays_called_so_when_a_change_would_gain_nothing() -> None:
    """The policy's values do not speak against the heuristic, which answers for it."""
    slow = reported(level=2)
    run = slow._replace(targets=slow.targets / 5)
    heuristic = default_heuristic(situation(run).projector).act(situation(run)).action[0]
    assert heuristic != situation(run).projector.layout.noop
    got = decide(situation(run), artifact(8, np.zeros(9), hysteresis=1.0))
    assert (got.verdict[0], got.action[0]) == (Verdict.OUTSIDE_EXPERIENCE, heuristic)


@pytest.mark.parametrize(("gain", "verdict"), [(0.9, Verdict.WITHIN_NOISE), (1.1, Verdict.FOLLOWED)])
def test_a_heuristic_changes_only_for_more_than_the_noise_of_the_model(
    monkeypatch: pytest.MonkeyPatch, gain: float, verdict: Verdict
) -> None:
    run = advance(PROJECTOR, state(), state().levels, np.array([[10.0, 1.0, 1.0]]), np.array([[40.0, 4.0]]))
    observation = view(PROJECTOR, run)
    outlook = np.full_like(observation.outlook, -1.0)
    best = next(a for a in range(outlook.shape[1]) if a != LAYOUT.noop and observation.mask[0, a])
    outlook[0, best] += gain * MODEL_NOISE
    got = decide(Situation(PROJECTOR, run, observation._replace(outlook=outlook)), None)
    assert got.verdict[0] == verdict
    assert got.action[0] == (best if verdict == Verdict.FOLLOWED else LAYOUT.noop)


def test_an_agent_without_hysteresis_changes_for_any_gain() -> None:
    assert experience_of(LAYOUT).hysteresis == 0
    assert experience_of(LAYOUT, 0.25) == replace(experience_of(LAYOUT), hysteresis=0.25)
