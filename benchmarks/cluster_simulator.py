"""Seconds of processor time in which the published simulator's workloads are played, beside the published programme.

``STEWARD_DATA=… python -m benchmarks cluster_simulator``. Four workloads of 160 jobs on 64 GPUs, under Tiresias and
Optimus; every job's completion time equals the published one, or nothing is told. Reading the measurements (once) is
not counted; what the originals take was told with their data, on another machine.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import statistics
import time
from pathlib import Path
from typing import Any

from app.kinds.cluster.placement import Rule
from app.kinds.cluster.strategies import optimus, tiresias
from tests.pollux.measured import read_applications
from tests.pollux.simulator import ClusterSimulator, read_log

GOAL_SECONDS, REPEATS = 0.5, 3
WORKLOADS = ("workload-1", "workload-2", "workload-3", "workload-4")
ORIGINAL_SECONDS = {"tiresias": 30.0, "optimus": 200.0}


def results() -> list[dict[str, Any]]:
    """The slowest of the four workloads under each rule, each the median of some repeats."""
    folder = Path(os.environ["STEWARD_DATA"]) / "pollux-osdi21"
    return [_row(folder, rule) for rule in (tiresias, optimus)]


def _row(folder: Path, rule: Rule) -> dict[str, Any]:
    name, seconds = rule.__name__, {workload: _seconds(folder, rule, workload) for workload in WORKLOADS}
    slowest, each = max(seconds.values()), ", ".join(f"{one:.2f}" for one in seconds.values())
    return {
        "name": f"published cluster simulator, {name} (workloads 1–4: {each} s)",
        "value": slowest,
        "unit": "s",
        "peer": "the published programme, about",
        "peer_value": ORIGINAL_SECONDS[name],
        "ratio": slowest / ORIGINAL_SECONDS[name],
        "goal": f"≤ {GOAL_SECONDS} s: {'met' if slowest <= GOAL_SECONDS else 'missed'}",
    }


def _seconds(folder: Path, rule: Rule, workload: str) -> float:
    golden = json.loads((folder / "golden_jct.json").read_text())[rule.__name__]["jct"][workload]
    log, matches = read_log(folder / "workloads" / f"{workload}.csv"), []
    for _ in range(REPEATS):
        applications = read_applications(folder / "traces")
        start = time.process_time()
        completed = ClusterSimulator(applications, log, rule).run()
        matches.append(time.process_time() - start)
        if completed != golden:
            raise ValueError(f"{workload} under {rule.__name__} is not as published")
    return statistics.median(matches)


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("cluster_simulator", results())
