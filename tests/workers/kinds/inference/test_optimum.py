from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy
from app.kinds.inference.heuristics import BASELINES, statics
from app.kinds.inference.layout import Layout
from tests.workers.kinds.inference.systems import layout, service
from workers.evaluation.arena import Bare, play
from workers.evaluation.statistics import Level
from workers.inputs import Conditions
from workers.kinds.inference.evaluation.optimum import Intractable, solve
from workers.kinds.inference.simulator.world import InferenceWorld

SPEC: dict[str, Any] = {
    "users": 2,
    "variants": 2,
    "batches": [1, 2],
    "queue_limit": 5,
    "quality": {"full_until": 300, "zero_at": 600},
    "episode_seconds": 400,
    "weights": {"cost": 0.0, "fairness": 0.0, "switching": 0.05},
    "servers": [{"name": "cpu", "maximum": 1, "switch_seconds": 0.1}],
}
SECONDS = [[[0.3, 0.4], [0.7, 1.1]]]


def returns(layout: Layout, model: Any, policy: Policy) -> NDArray[np.floating]:
    return play(InferenceWorld(layout, [model], Conditions(96, 0)), Level.SEEDS, 3, Bare(policy)).returns


@pytest.fixture(scope="module")
def earned() -> NDArray[np.floating]:
    """Returns of the optimum."""
    result = layout(**SPEC)
    model = service(result, SECONDS, [1.6, 1.2], spread=0.2)
    return returns(result, model, solve(result, model).policy(result))


def test_the_simulator_pays_the_optimum_what_it_promises(earned: NDArray[np.floating]) -> None:
    result = layout(**SPEC)
    solution = solve(result, service(result, SECONDS, [1.6, 1.2], spread=0.2))
    assert solution.exact
    error = float(earned.std(ddof=1)) / len(earned) ** 0.5
    assert -earned.mean() == pytest.approx(
        solution.loss / solution.rate, abs=3 * error + 0.001
    )  # a beginning without queues


@pytest.mark.slow
def test_nobody_earns_more_than_the_optimum(earned: NDArray[np.floating]) -> None:
    result = layout(**SPEC)
    model = service(result, SECONDS, [1.6, 1.2], spread=0.2)
    for policy in (*BASELINES, *statics(result).values()):
        paired = returns(result, model, policy) - earned
        assert paired.mean() < 2 * paired.std(ddof=1) / len(paired) ** 0.5, policy.name


def test_one_queue_loses_what_the_embedded_chain_says() -> None:
    """M/D/1/K by its chain after departures, whose losses follow from the chance that the server is idle."""
    result = layout(**{**SPEC, "users": 1, "variants": 1, "batches": [1], "queue_limit": 3})
    rate, seconds = 2.0, 0.8
    solution = solve(result, service(result, seconds, [rate]))
    arrived = [np.exp(-rate * seconds) * (rate * seconds) ** n / [1, 1, 2, 6][n] for n in range(4)]
    chain = np.zeros((4, 4))  # requests that wait when a batch ends
    for left in range(4):
        begin = max(left - 1, 0)
        for n in range(3 - begin):
            chain[left, begin + n] = arrived[n]
        chain[left, 3] = 1 - chain[left].sum()
    system = np.vstack([chain.T - np.eye(4), np.ones(4)])
    share = np.linalg.lstsq(system, np.array([0, 0, 0, 0, 1.0]))[0]
    answered = 1 / (seconds + share[0] / rate)  # per second
    assert solution.loss == pytest.approx(rate - answered, rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"queue_limit": 20}, "more than 12 requests"),
        ({"servers": [{"name": "cpu", "minimum": 2, "maximum": 2}]}, "more than one server"),
        ({"quality": {"full_until": 0.1, "zero_at": 1}}, "by delay"),
        ({"users": 3}, "more than two users"),
    ],
)
def test_other_systems_are_refused(changes: dict[str, object], reason: str) -> None:
    result = layout(**{**SPEC, **changes})
    with pytest.raises(Intractable, match=reason):
        solve(result, service(result, np.full((2, 2), 0.3)[None]))
