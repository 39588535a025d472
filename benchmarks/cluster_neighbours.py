"""Jobs that slow one another down on shared nodes: mean completion time where placement knows of it, and without.

``STEWARD_DATA=… python -m benchmarks cluster_neighbours``. 64 GPUs in the published simulator, where jobs choose
their batches and know what others of their application needed in workloads 1 and 2; logs drawn hour by hour from
workloads 3 and 4. A matrix is planted, another for each log: beside a job of another application, or of its own, steps
take 1 to 2.5 times as long. Placement is told what is recovered of it from 300 steps with a tenth of noise; without
that it packs jobs as ever. Both follow the same rule, log by log.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.strategies import soonest
from benchmarks.cluster_goodput import WORKLOADS
from tests.pollux.adaptive import AdaptiveSimulator, Experience
from tests.pollux.measured import read_applications
from tests.pollux.simulator import draw, read_log
from workers.evaluation.statistics import mean_interval
from workers.kinds.cluster.estimation import SharedSteps, fit_pairs

LOGS, STEPS, NOISE, WORST = 8, 300, 0.1, 2.5
Row = dict[str, Any]


def planted(seed: int, count: int) -> tuple[Floats, Floats]:
    """Logs of slow-downs in truth, and as they are recovered from steps, [A, A] each."""
    numbers = np.random.default_rng(seed)
    truth = numbers.uniform(0.0, np.log(WORST), (count, count))
    one, other = numbers.integers(0, count, STEPS), numbers.integers(0, count, STEPS)
    log = truth[one, other] + numbers.normal(0, NOISE, STEPS)
    known, _ = fit_pairs(SharedSteps(one, np.eye(count)[other], log), count, seed)
    return truth, known.log_slowdown


def results() -> list[Row]:
    """One row for each load."""
    folder = Path(os.environ["STEWARD_DATA"]) / "pollux-osdi21"
    applications = read_applications(folder / "traces")
    logs = [read_log(folder / "workloads" / f"{name}.csv") for name in WORKLOADS]
    experience = Experience()
    for log in logs[:2]:
        AdaptiveSimulator(applications, log, soonest, experience=experience).run()
    matches = []
    for seed in range(LOGS):
        truth, known = planted(seed, len(applications))
        log = draw(logs[2:], 1.0, np.random.default_rng(seed))
        means = []
        for believed in (known, None):
            played = AdaptiveSimulator(applications, log, soonest, experience=deepcopy(experience))
            played.log_slowdown, played.believed = truth, believed
            means.append(statistics.mean(played.run().values()))
        matches.append(means)
    return [_row(*np.array(matches).T)]


def _row(reported: Floats, untold: Floats) -> Row:
    ratio = mean_interval(reported / untold)
    bounds = f"ratio {ratio['low']:.3f}–{ratio['high']:.3f}"
    return {
        "name": f"mean completion, neighbours known from samples, {len(reported)} logs ({bounds})",
        "value": float(reported.mean()),
        "unit": "s",
        "peer": "placement that knows nothing of them",
        "peer_value": float(untold.mean()),
        "ratio": ratio["mean"],
        "goal": f"shorter with 95 %: {'met' if ratio['high'] < 1 else 'missed'}",
    }


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("cluster_neighbours", results())
