"""A workload that needs memory: what a run needs at its end shows only in its first iterations."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import load, save
from app.policies.network import NetworkPolicy
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.simulator import ExpectedSimulator, Ranges
from workers.learning.algorithms.config import ActorCritic, Entropy, Network, Optimiser
from workers.learning.execution.serial import Plan, Serial

ITERATIONS, SHOWN = 8, 3
GUESSING = 0.5 * (float(np.e) - 1) / ITERATIONS  # what half of the runs miss who don't remember, and noise not counted
SPEC = planted_spec(
    iterations=ITERATIONS,
    resources=[{"name": "gpus", "minimum": 1, "maximum": 3, "max_steps": 2, "initial": 2}],
    metrics=[{"name": "latency", "target": 1.0, "goal": "track", "scope": "iteration"}],
    features=[{"name": "kind", "minimum": 0, "maximum": 1}],
    weights={"sla": 1.0, "cost": 0.0, "change": 0.0},
)
FORGETFUL = ActorCritic(
    network=Network(layers=(32,), activation="tanh"),
    rollout=ITERATIONS - 1,
    surrogate="clipped",
    epochs=3,
    value_weight=0.003,
    optimiser=Optimiser(rate=1e-2, clip=0.5),
    entropy=Entropy(start=0.1),
)


def table() -> ModelTable:
    """The latency is on target at 2 GPUs, and e times the target elsewhere; in the last iteration at 1 or at 3, as the
    kind has it.

    A run shows its kind, 0 or 1, in its first iterations, 1/2 from then on, and the kind again in its last, of which
    nobody sees anything before it is over. Who would remember by an allocation misses in every iteration in between.
    """
    layout = Layout(SPEC)
    gpus, nodes = layout.allocations[:, 0], np.array([0.0, 0.5, 1.0])
    usual, last = np.abs(gpus - 2)[:, None].repeat(3, axis=1), gpus[:, None] != 1 + 2 * nodes
    logs = np.zeros((len(layout.metrics), 3, 3, 2), np.float32)
    logs[layout.metrics.index("latency")] = np.stack([usual, last], axis=2)
    place, kind = np.arange(ITERATIONS), np.array([[0.0], [1.0]])
    course = np.where((place < SHOWN) | (place == ITERATIONS - 1), kind, 0.5)[:, :, None]
    return replace(
        planted_table(SPEC, effect=0.02, noise=0.02),
        log_mean=logs,
        iteration_bin=(place == ITERATIONS - 1).astype(np.int32),
        feature_nodes=(nodes,),
        feature_low=np.array([0.0]),
        feature_high=np.array([1.0]),
        courses=course.astype(np.float32),
    )


@pytest.mark.slow
@pytest.mark.parametrize("units", [16, None])
def test_only_who_remembers_the_kind_is_right_at_the_end(units: int | None) -> None:
    """1,000 episodes: the standard error of what is missed by guessing is 3 % of it."""
    config = msgspec.structs.replace(FORGETFUL, recurrent=units)
    environment = ExpectedSimulator(Layout(SPEC), table(), 64, 3, Ranges())
    learner = Serial(config, environment, Plan(64 * 800, 64 * 140), 0)
    while not learner.done:
        learner.advance()
    kind, described, arrays = learner.agent.export()
    assert kind == "network"
    policy = NetworkPolicy.build({"algorithm": "tested", **described}, dict(arrays))
    missed = -Evaluator(SPEC, table(), 77, 1_000).score(load(save(policy, Layout(SPEC))).policy).returns.mean()
    if units:
        assert missed < 0.4 * GUESSING
    else:
        assert missed > 0.85 * GUESSING
