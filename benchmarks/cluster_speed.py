"""Job-decisions a second of the compiled cluster simulator on one core: intervals, the served rule, and nodes.

``STEWARD_DATA=… python -m benchmarks cluster_speed``. Logs drawn from the four shared workloads on 64 GPUs, played to
their ends; each job that is there counts once for each interval, since each is decided for anew. Processor time.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cluster_goodput import WORKLOADS
from tests.pollux.measured import read_applications
from tests.pollux.simulator import Settings, draw, read_log
from tests.pollux.tables import clusters, play, tabled

GOAL, BATCH, REPEATS = 200_000, 32, 5


def results() -> list[dict[str, Any]]:
    """One row for each load, the median of some repeats."""
    folder = Path(os.environ["STEWARD_DATA"]) / "pollux-osdi21"
    applications, settings = read_applications(folder / "traces"), Settings()
    logs = [read_log(folder / "workloads" / f"{name}.csv") for name in WORKLOADS]
    rules = tabled(applications, settings)
    rows = []
    for load in (0.5, 1.0, 2.0):
        drawn = [draw(logs, load, np.random.default_rng(seed)) for seed in range(BATCH)]
        play(rules, clusters(drawn[:1], [*applications], settings))  # compiled before it is timed
        speeds = []
        for _ in range(REPEATS):
            many, start = clusters(drawn, [*applications], settings), time.process_time()
            speeds.append(play(rules, many) / (time.process_time() - start))
        value, spread = statistics.median(speeds), f"{min(speeds) / 1e6:.2f}–{max(speeds) / 1e6:.2f} M/s"
        name = f"cluster simulator, load {load:g} ({BATCH} clusters, {REPEATS} repeats {spread})"
        goal = f"≥ {GOAL:,}: {'met' if value >= GOAL else 'missed'}"
        rows.append({"name": name, "value": value, "unit": "job-decisions/s", "peer": None} | {"goal": goal})
    return [{**row, "peer_value": None, "ratio": None} for row in rows]


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("cluster_speed", results())
