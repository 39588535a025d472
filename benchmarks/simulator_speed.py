"""Environment steps a second of the iterative simulator on one core, observation, mask and outlook included.

``python -m benchmarks.simulator_speed``. The problem is planted: 33 allocations, 9 actions, 30 iterations, a deadline.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import time
from typing import Any

import numpy as np

from app.kinds.iterative.layout import Layout
from benchmarks.problems import planted_one
from workers.kinds.iterative.simulator import TRAINING, IterativeSimulator, Ranges

GOAL = 5e6
BATCH, STEPS, REPEATS = 4096, 290, 7


def results() -> list[dict[str, Any]]:
    """Median of several repeats, with their range."""
    rows = []
    for name, ranges in (("lock-step", Ranges()), ("training starts", TRAINING)):
        speeds = [speed(ranges, seed) for seed in range(REPEATS)]
        spread = f"{min(speeds) / 1e6:.2f}–{max(speeds) / 1e6:.2f} M/s over {REPEATS} seeds, batch {BATCH}"
        value = statistics.median(speeds)
        rows.append(
            {
                "name": f"simulator, {name} ({spread})",
                "value": value,
                "unit": "steps/s",
                "peer": None,
                "peer_value": None,
                "ratio": None,
                "goal": f"≥ {GOAL:.0e}: {'met' if value >= GOAL else 'missed'}",
            }
        )
    return rows


def speed(ranges: Ranges, seed: int) -> float:
    """Environment steps per second of processor time."""
    problem = planted_one()
    simulator = IterativeSimulator(Layout(problem.spec), problem.table, BATCH, seed, ranges)
    simulator.reset()
    actions = np.random.default_rng(seed).integers(0, 9, (16, BATCH))
    start = time.process_time()
    for i in range(STEPS):
        simulator.step(actions[i % 16])
    return BATCH * STEPS / (time.process_time() - start)


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("simulator_speed", results())
