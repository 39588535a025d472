"""Rules of kind `cluster` beside published ones: mean completion times, loads, priorities, small exact systems.

``STEWARD_DATA=… python -m benchmarks cluster_agents[:PART]``. 64 GPUs in the published simulator, where jobs choose
their batches; nobody is told what is left of a job, or how fast it will be.

**published**: the four shared workloads, beside Pollux's published completion times. What a job will need, and how fast
its application is, is known from the jobs of the *other three* workloads, played before, and from those of its own that
came before it. In these logs all jobs of an application need equally much, which is more regular than life; the rows
without throughput have no more than that from other jobs. No constant was chosen on the held-out workload alone: they
are round numbers on a plateau, on logs drawn hour by hour from all four.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import statistics
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from app.kinds.cluster.allocation.completion import soonest
from benchmarks.cluster_goodput import GOAL, WORKLOADS, interval
from workers.kinds.cluster.estimation.experience import Experience
from workers.kinds.cluster.simulator.adaptive import AdaptiveSimulator
from workers.kinds.cluster.simulator.log import Submission, read_log
from workers.kinds.cluster.simulator.measured import Application, read_applications

PARTS = ("published",)
Row = dict[str, Any]


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """The rows of each part."""
    known = {"published": _published}
    return [row for part in parts for row in known[part]()]


@cache
def _folder() -> Path:
    return Path(os.environ["STEWARD_DATA"]) / "pollux-osdi21"


@cache
def _applications() -> dict[str, Application]:
    return read_applications(_folder() / "traces")


@cache
def _logs() -> dict[str, list[Submission]]:
    return {name: read_log(_folder() / "workloads" / f"{name}.csv") for name in WORKLOADS}


def _published() -> list[Row]:
    golden = json.loads((_folder() / "golden_jct.json").read_text())["pollux"]["jct"]
    rows = []
    for throughput, told in ((False, "needs alone"), (True, "needs and throughput")):
        found = [_held_out(name, golden[name], told, throughput=throughput) for name in WORKLOADS]
        ratio = statistics.mean(row["ratio"] for row in found)
        mean = {"name": f"soonest, {told}, mean of the ratios", "value": ratio, "unit": "× Pollux", "peer": None}
        rows += [*found, {**mean, "peer_value": None, "ratio": ratio, "goal": _goal(ratio, GOAL)}]
    return rows


def _held_out(workload: str, published: dict[str, float], told: str, *, throughput: bool) -> Row:
    """One workload, by experience of the others."""
    experience = Experience(throughput=throughput)
    for other in WORKLOADS:
        if other != workload:
            AdaptiveSimulator(_applications(), _logs()[other], soonest, experience=experience).run()
    log = _logs()[workload]
    times = AdaptiveSimulator(_applications(), log, soonest, experience=experience).run()
    ours, theirs = (np.array([by_name[job.name] for job in log]) for by_name in (times, published))
    ratio = float(ours.mean() / theirs.mean())
    low, high = interval(ours, theirs)
    return {
        "name": f"soonest, {told}, {workload} (ratio over resampled jobs {low:.3f}–{high:.3f})",
        "value": float(ours.mean()),
        "unit": "s",
        "peer": "Pollux, as published",
        "peer_value": float(theirs.mean()),
        "ratio": ratio,
        "goal": _goal(ratio, GOAL),
    }


def _goal(ratio: float, most: float) -> str:
    return f"≤ {most:g}: {'met' if ratio <= most else 'missed'}"


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("cluster_agents", results())
