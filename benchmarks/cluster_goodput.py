"""Mean completion time under the goodput rule, beside Pollux's published one, on the four shared workloads.

``STEWARD_DATA=… python -m benchmarks cluster_goodput``. 160 jobs on 64 GPUs in the published simulator; jobs choose
their batches and know what they have measured of themselves, as under Pollux: nothing of what is left of them, nor of
others. The rule has Pollux's objective, and no number in it was fitted to these workloads; no part of it is random.
Pollux's own search is, and one run of it was published.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from app.kinds.cluster.strategies import goodput
from tests.pollux.adaptive import AdaptiveSimulator
from tests.pollux.measured import read_applications
from tests.pollux.simulator import read_log

GOAL = 0.9
WORKLOADS = ("workload-1", "workload-2", "workload-3", "workload-4")
RESAMPLES = 2_000


def results() -> list[dict[str, Any]]:
    """A row for each workload, and their mean ratio."""
    folder = Path(os.environ["STEWARD_DATA"]) / "pollux-osdi21"
    published = json.loads((folder / "golden_jct.json").read_text())["pollux"]["jct"]
    rows = [_row(folder, workload, published[workload]) for workload in WORKLOADS]
    ratio = statistics.mean(row["ratio"] for row in rows)
    whole = {"name": "goodput rule, mean of the ratios", "value": ratio, "unit": "× Pollux", "peer": None}
    return [*rows, {**whole, "peer_value": None, "ratio": ratio, "goal": _goal(ratio)}]


def _row(folder: Path, workload: str, published: dict[str, float]) -> dict[str, Any]:
    log = read_log(folder / "workloads" / f"{workload}.csv")
    result = AdaptiveSimulator(read_applications(folder / "traces"), log, goodput).run()
    ours, theirs = (np.array([times[job.name] for job in log]) for times in (result, published))
    ratio = float(ours.mean() / theirs.mean())
    low, high = interval(ours, theirs)
    return {
        "name": f"goodput rule, {workload} (ratio over resampled jobs {low:.3f}–{high:.3f})",
        "value": float(ours.mean()),
        "unit": "s",
        "peer": "Pollux, as published",
        "peer_value": float(theirs.mean()),
        "ratio": ratio,
        "goal": _goal(ratio),
    }


def interval(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> tuple[float, float]:
    """95 % of the ratio of means over jobs drawn with replacement, the same ones for both."""
    drawn = np.random.default_rng(0).integers(0, len(ours), (RESAMPLES, len(ours)))
    low, high = np.quantile(ours[drawn].mean(axis=1) / theirs[drawn].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def _goal(ratio: float) -> str:
    return f"≤ {GOAL} × Pollux: {'met' if ratio <= GOAL else 'missed'}"


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("cluster_goodput", results())
