"""Decisions a second of the inference simulator on one core, observation, mask and a random legal policy included.

``python -m benchmarks.inference_speed``. Two users, two variants, four batch sizes, one to four servers, ten requests a
second of each user, half of them in bursts; worlds for learners, which begin anew as they end.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import time
from typing import Any

import numpy as np

from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.spec import InferenceSpec
from workers.inputs import Conditions
from workers.kinds.inference.simulator.world import InferenceWorld

GOAL = 1e6
BATCH, STEPS, REPEATS = 4_096, 150, 7
SPEC = InferenceSpec.model_validate(
    {
        "name": "speed",
        "kind": "inference",
        "variants": [{"name": "small", "accuracy": 0.7}, {"name": "large", "accuracy": 0.8}],
        "servers": [{"name": "cpu", "minimum": 1, "maximum": 4, "price_per_hour": 1, "startup_seconds": 5}],
        "users": [
            {"name": "a", "quality": {"full_until": 0.2, "zero_at": 1}},
            {"name": "b", "weight": 2, "quality": {"full_until": 0.5, "zero_at": 2}},
        ],
        "batches": [1, 2, 4, 8],
    }
)
SECONDS = np.array([[[0.03, 0.04, 0.06, 0.1], [0.08, 0.11, 0.17, 0.29]]])
MODEL = ServiceModel(
    np.log(SECONDS)[None], np.full(2, 0.1), np.full((2, 1), 10.0), np.array([0.2, 0.0]), np.ones((1, 2), np.bool_)
)


def results() -> list[dict[str, Any]]:
    """Median of several repeats, with their range."""
    speeds = [speed(seed) for seed in range(REPEATS)]
    value = statistics.median(speeds)
    spread = f"{min(speeds) / 1e6:.2f}–{max(speeds) / 1e6:.2f} M/s over {REPEATS} seeds, batch {BATCH}"
    return [
        {
            "name": f"inference simulator ({spread})",
            "value": value,
            "unit": "decisions/s",
            "peer": None,
            "peer_value": None,
            "ratio": None,
            "goal": f"≥ {GOAL:.0e}: {'met' if value >= GOAL else 'missed'}",
        }
    ]


def speed(seed: int) -> float:
    """Decisions per second of processor time, after a time in which queues fill."""
    world, random = (
        InferenceWorld(Layout(SPEC), [MODEL], Conditions(BATCH, seed, "learning")),
        np.random.default_rng(seed),
    )
    _, mask = world.reset()
    begin = 0.0
    for step in range(2 * STEPS):
        if step == STEPS:
            begin = time.process_time()
        mask = world.step(np.where(mask, random.random(mask.shape, np.float32), -1.0).argmax(axis=1)).mask
    return BATCH * STEPS / (time.process_time() - begin)


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("inference_speed", results())
