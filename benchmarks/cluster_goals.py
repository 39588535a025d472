"""What a shared cluster's rule is asked for beside short completion times: priorities, and GPUs by size of data.

``STEWARD_DATA=… python -m benchmarks cluster_goals[:PART]``. 64 GPUs in the published simulator, compiled, where jobs
train at their best batches and what they need is known.

**priorities**: logs drawn hour by hour from workloads 3 and 4, once and twice their load, a tenth or a quarter of the
jobs urgent, in a queue whose weight is the largest of ``WEIGHTS`` by which the others' goal is met on logs of workloads
1 and 2. Mean completion times of the urgent and of the other jobs, over those of the same jobs in one queue, by log.
Beside the urgent jobs stands what they take alone on the cluster: no priority is worth more. Beside the others stands
what they take where that is nearly so: urgent jobs strictly first.
**data**: jobs of one application alone, with a quarter to four times the data that was measured (and iterations); rank
correlation of a job's data with the GPUs that it has on average while it runs. Under the mean completion time (power 0)
short jobs go first, and larger data has fewer GPUs at a time; ``data_power`` 1 weighs jobs by their data.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from app.kinds.cluster.jobs import Floats
from benchmarks.cluster_goodput import WORKLOADS
from tests.pollux.measured import ONE_GPU, Application, read_applications
from tests.pollux.simulator import Settings, Submission, draw, read_log
from tests.pollux.tables import clusters, play, tabled
from workers.evaluation.statistics import mean_interval
from workers.kinds.cluster.kernels import ENDED, Clusters, Rules, allocate_gpus, apply_allocation, pass_interval

PARTS = ("priorities", "data")
DRAWS, HIGH, LOW = 64, 0.6, 1.3
CASES = tuple((load, share) for load in (1.0, 2.0) for share in (0.1, 0.25))
"""Load, and share of urgent jobs."""
WEIGHTS, STRICT = np.round(2.0 ** np.arange(1.0, 6.1, 0.25), 1), 1e6
"""Of the urgent queue; the last one puts its jobs first in everything."""
SIZES, JOBS, LOGS, CORRELATED = 2.0 ** np.linspace(-2, 2, 9), 100, 4, 0.5
SETTINGS = Settings()
Row = dict[str, Any]


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """The rows of each part."""
    known = {"priorities": _priorities, "data": _data}
    return [row for part in parts for row in known[part]()]


@cache
def applications() -> dict[str, Application]:
    """As they were measured."""
    return read_applications(_folder() / "traces")


def _folder() -> Path:
    return Path(os.environ["STEWARD_DATA"]) / "pollux-osdi21"


def _priorities() -> Iterator[Row]:
    for load, share in CASES:
        known, judged = (Priorities(of, load, share) for of in (WORKLOADS[:2], WORKLOADS[2:]))
        weight = known.heaviest()
        high, low = judged.ratios(weight)
        of = f"load {load:g}, {share:.0%} of jobs urgent with weight {weight:g}, {len(high)} logs"
        yield _told(f"{of}: urgent jobs", high, HIGH, ("alone on the cluster", judged.alone()))
        yield _told(f"{of}: other jobs", low, LOW, ("urgent jobs strictly first", judged.ratios(STRICT)[1]))


class Priorities:
    """Logs of workloads at a load, a share of their jobs urgent; ``plain``: their completion times in one queue."""

    def __init__(self, workloads: Sequence[str], load: float, share: float) -> None:
        sources = [read_log(_folder() / "workloads" / f"{name}.csv") for name in workloads]
        self._logs = [draw(sources, load, np.random.default_rng(seed)) for seed in range(DRAWS)]
        self._rules, self.plain = tabled(applications(), SETTINGS), self._begun()
        self.urgent = np.random.default_rng(0).random(self.plain.time.shape) < share
        play(self._rules, self.plain)

    def _begun(self) -> Clusters:
        return clusters(self._logs, [*applications()], SETTINGS)

    def ratios(self, weight: float) -> tuple[Floats, Floats]:
        """Mean completion times with priorities over those without, by log, of urgent and of other jobs."""
        queued = self._begun()._replace(queue=(~self.urgent).astype(np.int64))
        play(self._rules._replace(weight=np.array([weight, 1.0]), ageing=np.full(2, np.inf)), queued)
        high, low = (_means(queued, own) / _means(self.plain, own) for own in (self.urgent, ~self.urgent))
        return high, low

    def alone(self) -> Floats:
        """Of urgent jobs that have the cluster to themselves, over theirs in one queue, by log."""
        each = zip(self._logs, self.urgent, strict=True)
        only = [[job for job, urgent in zip(log, of, strict=False) if urgent] for log, of in each]
        played = clusters(only, [*applications()], SETTINGS)
        play(self._rules, played)
        return np.asarray(np.nanmean(played.completed, axis=1) / _means(self.plain, self.urgent), np.float64)

    def heaviest(self) -> float:
        """The largest weight by which the others' goal is met, by bisection: they only lose by it."""
        low, high = 0, len(WEIGHTS)
        while high - low > 1:
            middle = (low + high) // 2
            met = mean_interval(self.ratios(float(WEIGHTS[middle]))[1])["high"] <= LOW
            low, high = (middle, high) if met else (low, middle)
        return float(WEIGHTS[low])


def _means(played: Clusters, which: np.ndarray[Any, np.dtype[np.bool_]]) -> Floats:
    return np.asarray(np.nanmean(np.where(which, played.completed, np.nan), axis=1), np.float64)


def _told(name: str, values: Floats, most: float, beside: tuple[str, Floats]) -> Row:
    mean, peer = mean_interval(values), mean_interval(beside[1])
    goal = f"≤ {most:g} with 95 %: {'met' if mean['high'] <= most else 'missed'}"
    row = _row(f"{name} ({mean['low']:.3f}–{mean['high']:.3f})", mean["mean"], "× without priorities", goal)
    bounds = f"{beside[0]} ({peer['low']:.3f}–{peer['high']:.3f})"
    return {**row, "peer": bounds, "peer_value": peer["mean"], "ratio": mean["mean"] / peer["mean"]}


def _data() -> Iterator[Row]:
    for name in applications():
        if name not in ONE_GPU:
            for load in (0.7, 1.2):
                yield from _sized(name, load)


def _sized(name: str, load: float) -> Iterator[Row]:
    """Rows of one application: the served rule, and with jobs weighed by their data."""
    result = {power: np.array([_correlated(name, load, seed, power) for seed in range(LOGS)]) for power in (0.0, 1.0)}
    usual = result[0.0][:, 2].mean()
    for power, (at_once, in_all, completion) in ((power, each.T) for power, each in result.items()):
        slower, spread = completion.mean() / usual, f"{at_once.min():.2f}–{at_once.max():.2f}"
        text = f"{name}, load {load:g}, data_power {power:g} ({spread}; GPU-hours {in_all.mean():.2f}"
        goal = f"> {CORRELATED:g}: {'met' if at_once.mean() > CORRELATED else 'missed'}"
        yield _row(f"{text}; completion × {slower:.2f})", float(at_once.mean()), "rank correlation", goal)


def _correlated(name: str, load: float, seed: int, power: float) -> tuple[float, float, float]:
    """Rank correlation of data with GPUs at a time and GPU-hours, and the mean completion time."""
    rules, numbers = _of_sizes(name), np.random.default_rng(seed)
    work = 4 * rules.ends[len(SIZES) // 2, rules.epochs[0] - 1] / rules.rate[0, 4].max()
    times = np.cumsum(numbers.exponential(work * SIZES.mean() / (64 * load), JOBS))
    size = numbers.integers(0, len(SIZES), JOBS)
    log = [Submission(str(at), float(time), str(size[at]), 1, 1) for at, time in enumerate(times)]
    played = clusters([log], [str(one) for one in range(len(SIZES))], SETTINGS)
    played = played._replace(factor=SIZES[size][None] ** power)
    used = np.zeros(JOBS)
    while played.counts[0, ENDED] < JOBS:
        pass_interval(rules, played, 0)
        apply_allocation(rules, played, 0, allocate_gpus(rules, played, 0))
        used += played.gpus[0] * SETTINGS.interval
    at_once = used / np.maximum(played.running[0], SETTINGS.interval)
    by_size = (float(spearmanr(SIZES[size], one).statistic) for one in (at_once, used))
    return (*by_size, float(played.completed.mean()))  # type: ignore[return-value]


def _of_sizes(name: str) -> Rules:
    """One application as many, a size of data each."""
    rules, own = tabled({name: applications()[name]}, SETTINGS), len(SIZES)
    return rules._replace(
        rate=np.repeat(rules.rate, own, axis=0),
        ends=SIZES[:, None] * rules.ends,
        epochs=np.repeat(rules.epochs, own),
        most=np.repeat(rules.most, own),
    )


def _row(name: str, value: float, unit: str, goal: str) -> Row:
    return {"name": name, "value": value, "unit": unit, "peer": None, "peer_value": None, "ratio": None, "goal": goal}


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("cluster_goals", results())
