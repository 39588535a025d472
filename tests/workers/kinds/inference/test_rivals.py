"""What trainings of kind ``inference`` measure first: the default rule, tuned, and knowing rates and service times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.kinds.contract.policy import Policy
from app.kinds.inference.heuristics import BASELINES, WITHOUT_MODEL, Composed, Fixed
from app.kinds.inference.scaling import Lookahead
from tests.workers.kinds.inference.systems import layout, service, world
from workers.evaluation.arena import Bare, play
from workers.evaluation.statistics import Level, mean_interval
from workers.inputs import Conditions, Workload
from workers.kinds.inference.evaluation.problem import requests_of
from workers.kinds.inference.kind import KIND, LearnedInference
from workers.kinds.inference.rivals import InferenceRivals, KnowingRule, Truth
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.kinds.simulated.training import SimulatedTraining
from workers.learning.training.driver import Training
from workers.learning.training.request import Request, Untrainable

CPU = [{"name": "cpu", "minimum": 1, "maximum": 3, "price_per_hour": 1, "startup_seconds": 5}]
QUALITY = {"full_until": 0.2, "zero_at": 1.5}
SYSTEM = layout(2, 2, CPU, batches=[1, 2, 4], quality=QUALITY, episode_seconds=60, control_seconds=10)
BURSTS = replace(
    service(SYSTEM, np.array([0.08, 0.2])[None, :, None] * np.array([1.0, 1.6, 2.6]), [8.0, 4.0]),
    variation=np.array([1.0, 1.0]),
)
SPEC = SYSTEM.spec.model_copy(update={"weights": SYSTEM.spec.weights.model_copy(update={"cost": 0.5})})
WORKLOAD = Workload(SPEC, BURSTS.to_bytes())


@pytest.fixture(scope="module")
def rivals() -> InferenceRivals:
    rivals = KIND.rivals(WORKLOAD)
    assert isinstance(rivals, InferenceRivals)
    return rivals


def returns(policy: Policy, seed: int, episodes: int) -> Any:
    world = KIND.world(WORKLOAD, Conditions(episodes, seed))
    return play(world, Level.SEEDS, seed, Bare(policy)).returns


def test_without_other_numbers_it_is_the_rule_that_is_served_and_each_point_plays_as_alone(
    rivals: InferenceRivals,
) -> None:
    points = np.array([np.zeros(5), [0.5, -1.0, 0.7, 0.3, -0.4]])
    for seed in (3, 4):
        together = rivals.play(points, seed, 3)
        assert together.shape == (2, 3)
        assert together[0] == pytest.approx(returns(BASELINES[0], seed, 3))
        assert together[1] == pytest.approx(rivals.play(points[1:], seed, 3)[0])
        assert np.abs(together[1] - together[0]).max() > 1e-4
    assert rivals.served == BASELINES[0].name


def test_every_number_changes_what_is_done(rivals: InferenceRivals) -> None:
    result = rivals.play(np.concatenate([np.zeros((1, 5)), -2.5 * np.eye(5), 2.5 * np.eye(5)]), 7, 8)
    changes = np.abs(result[1:] - result[0]).max(axis=1)
    assert (np.maximum(changes[:5], changes[5:]) > 1e-4).all(), changes


def test_the_rates_are_those_by_which_requests_come() -> None:
    result = world(SYSTEM, BURSTS, 64, 5)
    result.reset()
    paths, requests = Truth.of(result).rate, requests_of(result)
    assert paths.shape[:2] == (64, 2)
    counts = np.zeros(paths.shape)
    place = (requests.time / result.load.window).astype(int)
    np.add.at(counts, (requests.episode, requests.user, place), 1)
    expected = paths * result.load.window
    observation = (counts - expected).reshape(64, -1).sum(axis=1) / np.sqrt(expected.reshape(64, -1).sum(axis=1))
    assert abs(mean_interval(observation)["mean"]) < 4 / 8  # 64 standard normal numbers, four standard errors
    assert 0.5 < observation.std() < 1.5
    assert paths.std() > 1.0


def test_recorded_requests_have_no_rate() -> None:
    log = RecordedArrivals([np.arange(90.0), np.arange(45.0)], 0.0, 30.0)
    result = world(SYSTEM, BURSTS, 2, recorded=log)
    result.reset()
    with pytest.raises(ValueError, match="no known rate"):
        Truth.of(result)


@pytest.mark.slow
def test_to_know_the_rates_is_worth_something_where_they_vary_and_nothing_where_not(
    rivals: InferenceRivals,
) -> None:
    for point in (np.zeros(5), np.full(5, 0.1)):
        gain = rivals.play_knowing(point, 11, 24) - rivals.play(point[None], 11, 24)[0]
        assert mean_interval(gain)["low"] > 0
    steady = replace(BURSTS, variation=np.zeros(2))  # the forecast is the usual rate, whatever came
    without, point = KIND.rivals(replace(WORKLOAD, model=steady.to_bytes())), np.zeros(5)
    played = without.play(point[None], 11, 16)[0]
    assert abs((without.play_knowing(point, 11, 16) - played).mean()) < 0.01 * abs(played.mean())
    with pytest.raises(RuntimeError, match="watch"):
        KnowingRule(np.zeros(5)).act(world(SYSTEM, BURSTS, 2))


def test_no_policy_has_more_than_the_bound(rivals: InferenceRivals) -> None:
    bound = rivals.bounds(3, 8)
    assert bound is not None
    rules = (*BASELINES, Composed(Lookahead(), Fixed((1,))), WITHOUT_MODEL)
    assert all((returns(rule, 3, 8) <= bound).all() for rule in rules)


class Brief(LearnedInference):
    """Judged in seconds."""

    judged_episodes, judged_decisions = 16, 1 << 11

    def pictures(self, workload: Workload, shown: Mapping[str, Policy], seed: int) -> dict[str, Any]:
        del workload, shown, seed
        return {}


def trained(workload: Workload, request: Request) -> dict[str, Any]:
    """The report of a training."""
    training = Training(Brief().trainer(workload, request, None))
    while not training.done:
        training.advance()
    return training.result().report


@pytest.mark.slow
def test_a_training_tells_the_headroom_and_the_share_that_its_agent_won(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.kinds.simulated.headroom.GENERATIONS", 1)
    monkeypatch.setattr("workers.kinds.inference.rivals.InferenceRivals.share", 2.0)
    room = trained(WORKLOAD, Request("ppo", budget=2_048, seed=3))["headroom"]
    assert set(room["numbers"]) == {"load", "variation", "price", "horizon", "changes"}
    assert {"served", "tuned", "knowable", "gain", "left", "beyond", "text", "agent", "share_won"} <= set(room)
    assert room["agent"]["mean"] <= room["tuned"]["mean"] + room["beyond"]["mean"]
    assert room["knows"] == "each run's rates and service times"


def test_where_the_rule_is_at_the_bound_nothing_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.kinds.simulated.headroom.GENERATIONS", 1)
    monkeypatch.setattr("workers.kinds.inference.rivals.InferenceRivals.share", 2.0)
    idle = layout(1, 1, [{**CPU[0], "maximum": 1}], quality=QUALITY, episode_seconds=60, control_seconds=10)
    workload = Workload(idle.spec, service(idle, 0.01, [2.0]).to_bytes())
    with pytest.raises(Untrainable, match=r'nothing to gain here: .*train all the same with "force": true'):
        trained(workload, Request("ppo", budget=2_048, seed=3))
    forced = trained(workload, Request("ppo", budget=2_048, seed=3, force=True))
    assert forced["environment_steps"] > 0


def test_a_small_training_measures_none() -> None:
    problem = SimulatedTraining(KIND, WORKLOAD, 1)
    assert "headroom" not in problem.plan(100_000).details
    assert "headroom" not in problem.plan().details


def test_a_model_of_several_members_has_the_service_times_of_each_episode() -> None:
    several = replace(BURSTS, log_seconds=np.concatenate([BURSTS.log_seconds, BURSTS.log_seconds + 0.5]))
    world = KIND.world(replace(WORKLOAD, model=several.to_bytes()), Conditions(16, 2))
    rule = KnowingRule(np.zeros(5))
    play(world, Level.SEEDS, 2, Bare(rule))
    assert rule.truth is not None
    seconds = rule.truth.seconds[:, 0, 0, 0]
    assert set(np.round(seconds, 6)) == set(np.round(np.exp(several.log_seconds[:, 0, 0, 0]), 6))
