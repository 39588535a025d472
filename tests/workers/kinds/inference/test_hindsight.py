from typing import Any

import numpy as np
import pytest

from app.kinds.inference.heuristics import BASELINES, statics
from tests.workers.kinds.inference.hindsight import bounded
from tests.workers.kinds.inference.systems import layout, service
from workers.evaluation.arena import Bare, play
from workers.evaluation.statistics import Level
from workers.inputs import Conditions
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.kinds.inference.simulator.world import InferenceWorld

SPEC: dict[str, Any] = {
    "users": 2,
    "variants": 2,
    "batches": [1, 4],
    "queue_limit": 30,
    "quality": {"full_until": 0.3, "zero_at": 1.5},
    "episode_seconds": 40,
    "control_seconds": 5,
    "servers": [{"name": "cpu", "minimum": 1, "maximum": 2, "price_per_hour": 1, "startup_seconds": 2}],
}
SECONDS = [[[0.1, 0.25], [0.25, 0.7]]]


@pytest.mark.parametrize("seed", range(3))
def test_no_policy_is_better_than_the_bound_and_the_bound_is_not_far(seed: int) -> None:
    result, random = layout(**SPEC), np.random.default_rng(seed)
    model = service(result, SECONDS)
    times = [np.sort(random.uniform(0, 40, random.integers(50, 250))) for _ in range(2)]
    bound = bounded(result, model, times, 0.1)
    log, returns = RecordedArrivals(times, 0.0, 0.0), {}
    for policy in (*BASELINES, *statics(result).values()):
        world = InferenceWorld(result, [model], Conditions(1, 0), log)
        returns[policy.name] = float(play(world, Level.SEEDS, 0, Bare(policy)).returns[0])
    assert max(returns.values()) <= bound.best
    assert max(returns.values()) > bound.best - 0.3


def test_one_request_is_answered_as_well_as_can_be() -> None:
    result = layout(**{**SPEC, "weights": {"cost": 0.0}})
    bound = bounded(result, service(result, SECONDS), [np.array([10.05]), np.zeros(0)], 0.1)
    assert bound.best == pytest.approx(0.0, abs=1e-9)
    late = layout(**{**SPEC, "weights": {"cost": 0.0}, "quality": {"full_until": 0.0, "zero_at": 1.0}})
    bound = bounded(late, service(late, SECONDS), [np.array([10.05]), np.zeros(0)], 0.1)
    quickest = max(0.75 * (1 - 0.1), 1.0 * (1 - 0.25))
    assert bound.quality == pytest.approx(1 - quickest, abs=1e-9)


def test_requests_that_no_server_can_take_are_lost_in_the_bound_too() -> None:
    result = layout(
        **{**SPEC, "users": 1, "variants": 1, "weights": {"cost": 0.0}, "servers": [{"name": "cpu", "maximum": 1}]}
    )
    model = service(result, [[[1.0, 4.0]]])
    times = np.arange(0, 40, 0.1)  # ten a second, one of which can be answered
    assert bounded(result, model, [times], 0.1).quality > 0.88
