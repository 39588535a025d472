"""Which agents may answer: those that are fairer where that counts, and none that has collapsed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.kinds.inference.layout import WAIT, Layout
from app.policies.network import NetworkPolicy
from tests.workers.kinds.inference.systems import layout, service
from workers.inputs import Workload
from workers.kinds.inference.kind import KIND, LearnedInference
from workers.learning.training.driver import PlannedPolicy, Training
from workers.learning.training.request import Request

NO_PLAN = PlannedPolicy(why_not="nothing is planned")
BUDGET = 60_000


class Brief(LearnedInference):
    """The kind, judged on fewer episodes."""

    judged_episodes = 64


def workload(fairness: float) -> Workload:
    """Two users of one server that is asked for more than it can do; the second asks for less."""
    result = layout(
        users=2,
        variants=2,
        quality={"full_until": 0.4, "zero_at": 2.5},
        batches=[1, 2, 4],
        queue_limit=10,
        episode_seconds=30,
        control_seconds=4,
        weights={"quality": 1, "fairness": fairness, "cost": 0, "switching": 0},
    )
    seconds = 0.12 * (0.4 + 0.6 * result.batches)
    return Workload(result.spec, service(result, [[seconds, 2 * seconds]], (10.0, 2.5), 0.1).to_bytes())


def constant(layout: Layout, action: int, instead: int) -> bytes:
    """A network that sees nothing: it takes one action, another where that isn't legal, else waits."""
    bias = np.full(layout.actions, -1.0)
    bias[[WAIT, instead, action]] = [0.0, 1.0, 2.0]
    config: dict[str, Any] = {"algorithm": "ppo", "layers": [], "activation": "relu", "dueling": False}
    weight = np.zeros((layout.actions, len(layout.entries)))
    policy = NetworkPolicy.build(config, {"advantage.weight": weight, "advantage.bias": bias})
    return KIND.save(policy, layout.spec)


@pytest.mark.slow
def test_an_agent_that_learned_to_be_fair_is_promoted_and_only_where_that_counts() -> None:
    weighed, request = workload(1.0), Request("ppo", BUDGET, seed=1)
    training = Training(Brief().trainer(weighed, request, None))
    while not training.done:
        training.advance()
    trained = training.result()
    assert trained.report["promoted"], trained.report["reason"]
    [jain] = [row["policies"] for row in trained.report["outcomes"] if row["name"] == "jain"]
    assert jain["agent"]["low"] > jain[trained.report["incumbent"]]["high"]
    plain = Brief().training(workload(0.0), request).judge(trained.artifact, NO_PLAN, None, 0.01)
    assert not plain["promoted"]


@pytest.mark.parametrize("answering", ["a rule", "an agent that has collapsed, too"])
@pytest.mark.parametrize("way", ["waits", "one user, one at a time, as slowly as can be"])
def test_no_agent_that_has_collapsed_is_promoted(way: str, answering: str) -> None:
    small = workload(0.25)
    layout = Layout(small.spec)
    slow = int(layout.action_of(0, 1, 0))
    collapsed = {"waits": constant(layout, WAIT, WAIT)}.get(way, constant(layout, slow, slow))
    champion = None if answering == "a rule" else constant(layout, WAIT, WAIT)
    report = Brief().training(small, Request("ppo", seed=3)).judge(collapsed, NO_PLAN, champion, 0.01)
    assert not report["promoted"]
    assert "not at least as good as the best heuristic" in report["reason"]
