"""What trainings of kind ``cluster`` measure first: the default rule, tuned, and knowing what jobs are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.strategies import USUAL
from app.kinds.contract.policy import Policy
from tests.workers.kinds.cluster.test_world import workload
from workers.evaluation.arena import Bare, play
from workers.evaluation.statistics import Level, mean_interval
from workers.inputs import Conditions, Workload
from workers.kinds.cluster.kind import KIND, LearnedCluster
from workers.kinds.cluster.rivals import ClusterRivals, constants_at
from workers.kinds.cluster.world import RulePolicy
from workers.kinds.simulated.headroom import measure
from workers.learning.training.driver import Training
from workers.learning.training.request import Request


@cache
def crowded() -> Workload:
    """The documented workload with eight times as many jobs."""
    cluster = workload()
    model = ClusterModel.from_bytes(cluster.model)
    arrivals = model.arrivals._replace(rate=8 * model.arrivals.rate)
    return replace(cluster, model=replace(model, arrivals=arrivals).to_bytes())


@pytest.fixture(scope="module")
def rivals() -> ClusterRivals:
    rivals = KIND.rivals(crowded())
    assert isinstance(rivals, ClusterRivals)
    return rivals


def test_without_other_numbers_it_is_the_rule_that_is_served(rivals: ClusterRivals) -> None:
    for seed in (3, 4):
        served = play(KIND.world(crowded(), Conditions(3, seed)), Level.SEEDS, seed, Bare(RulePolicy(rivals.served)))
        assert rivals.play(np.zeros((1, 3)), seed, 3)[0] == pytest.approx(served.returns, abs=1e-6)
        assert rivals.play(np.zeros((1, 3)), seed, 3, quick=True)[0] == pytest.approx(served.returns, rel=0.02)
    assert constants_at(np.zeros(3)) == USUAL


def test_every_number_changes_what_is_done(rivals: ClusterRivals) -> None:
    points = np.concatenate([np.zeros((1, 3)), -2 * np.eye(3), 2 * np.eye(3)])
    result = rivals.play(points, 7, 4)
    changes = np.abs(result[1:] - result[0]).max(axis=1)
    assert (np.maximum(changes[:3], changes[3:]) > 1e-4).all(), changes
    assert all(0 < constants_at(point).scaling < 1 for point in points)


def test_lengths_that_are_known_change_what_is_done_and_pay(rivals: ClusterRivals) -> None:
    gain = rivals.play_knowing(np.zeros(3), 11, 12) - rivals.play(np.zeros((1, 3)), 11, 12)[0]
    assert np.abs(gain).max() > 1e-4
    assert mean_interval(gain)["low"] > 0
    room, details = measure(rivals, 1, 2, generations=1, population=4)
    assert room.beyond is None
    assert "no bound in hindsight: none is cheap" in room.text()
    assert len(details["tuned"]) == len(details["knowable"]) == 6


class Brief(LearnedCluster):
    """Judged in seconds."""

    judged_episodes = 4

    def pictures(self, workload: Workload, shown: Mapping[str, Policy], seed: int) -> dict[str, Any]:
        del workload, shown, seed
        return {}


@pytest.mark.slow
def test_a_training_tells_the_headroom_and_the_share_that_its_agent_won(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.kinds.simulated.headroom.GENERATIONS", 1)
    monkeypatch.setattr("workers.kinds.cluster.rivals.ClusterRivals.share", 0.18)
    training = Training(Brief().trainer(crowded(), Request("ppo", budget=2_048, seed=3), None))
    while not training.done:
        training.advance()
    room = training.result().report["headroom"]
    assert set(room["numbers"]) == {"scaling", "damping", "horizon_seconds"}
    assert {"served", "tuned", "knowable", "gain", "left", "text", "agent", "share_won"} <= set(room)
    assert room["beyond"] is None
