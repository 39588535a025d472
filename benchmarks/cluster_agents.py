"""Rules of kind `cluster` beside published ones: mean completion times, loads, priorities, small exact systems.

``STEWARD_DATA=… python -m benchmarks cluster_agents[:PART]``. 64 GPUs in the published simulator, where jobs choose
their batches; nobody is told what is left of a job, or how fast it will be.

**published**: the four shared workloads, beside Pollux's published completion times. What a job will need, and how fast
its application is, is known from the jobs of the *other three* workloads, played before, and from those of its own that
came before it. In these logs all jobs of an application need equally much, which is more regular than life; the rows
without throughput have no more than that from other jobs. No constant was chosen on the held-out workload alone: they
are round numbers on a plateau, on logs drawn hour by hour from all four.
**half**, **double**: logs of half and twice the load, drawn hour by hour from workloads 3 and 4; what is known is from
workloads 1 and 2. Equal share, FIFO, SRTF, Tiresias and Optimus as published, and SLAQ, at the batches that
were submitted; SRTF and Optimus are told in truth what is left, SLAQ how the validation metric goes on. Goodput's jobs
choose their batches.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import statistics
from collections.abc import Sequence
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from app.kinds.cluster.allocation.completion import soonest
from app.kinds.cluster.allocation.fairness import goodput
from app.kinds.cluster.allocation.optimus import optimus
from app.kinds.cluster.allocation.shares import equal_share, fifo, srtf
from app.kinds.cluster.allocation.situation import Rule
from app.kinds.cluster.allocation.slaq import slaq
from app.kinds.cluster.allocation.tiresias import tiresias
from benchmarks.cluster_goodput import GOAL, WORKLOADS, interval
from workers.evaluation.statistics import mean_interval
from workers.kinds.cluster.estimation.experience import Experience
from workers.kinds.cluster.simulator.adaptive import AdaptiveSimulator
from workers.kinds.cluster.simulator.drawn import draw
from workers.kinds.cluster.simulator.log import Submission, read_log
from workers.kinds.cluster.simulator.measured import Application, read_applications
from workers.kinds.cluster.simulator.simulator import ClusterSimulator

LOADS = {"half": 0.5, "double": 2.0}
PARTS = ("published", *LOADS)
DRAWS = {"half": 12, "double": 4}
FIXED: tuple[Rule, ...] = (equal_share, fifo, srtf, tiresias, optimus, slaq)
KNOWN, DRAWN = WORKLOADS[:2], WORKLOADS[2:]
Row = dict[str, Any]


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """The rows of each part."""
    known = {"published": _published} | {name: partial(_load, name, load) for name, load in LOADS.items()}
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


def _load(part: str, load: float) -> list[Row]:
    """The served rule beside each published one on logs of a load, by paired differences over logs."""
    names, experience = [rule.__name__ for rule in FIXED], Experience()
    for known in KNOWN:
        AdaptiveSimulator(_applications(), _logs()[known], soonest, experience=experience).run()
    sources, found = [_logs()[name] for name in DRAWN], []
    for seed in range(DRAWS[part]):
        log = draw(sources, load, np.random.default_rng(seed))
        played: list[ClusterSimulator] = [ClusterSimulator(_applications(), log, rule) for rule in FIXED]
        played += [AdaptiveSimulator(_applications(), log, goodput)]
        played += [AdaptiveSimulator(_applications(), log, soonest, experience=deepcopy(experience))]
        found.append([statistics.mean(one.run().values()) for one in played])
    *others, own = np.array(found).T
    return [_beside(part, name, own, other) for name, other in zip([*names, "goodput"], others, strict=True)]


def _beside(part: str, name: str, own: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> Row:
    ahead = mean_interval(other - own)
    mean, low = ahead["mean"], ahead["low"]
    return {
        "name": f"soonest, {part} load, {len(own)} logs (ahead by {mean:,.0f} s, at least {low:,.0f})",
        "value": float(own.mean()),
        "unit": "s",
        "peer": name,
        "peer_value": float(other.mean()),
        "ratio": float(own.mean() / other.mean()),
        "goal": f"ahead with 95 %: {'met' if low > 0 else 'missed'}",
    }


def _goal(ratio: float, most: float) -> str:
    return f"≤ {most:g}: {'met' if ratio <= most else 'missed'}"


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("cluster_agents", results())
