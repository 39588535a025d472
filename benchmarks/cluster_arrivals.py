"""What a forecast of arrivals would be worth to the rule: restarts charged by when the next jobs are expected.

``STEWARD_DATA=… python -m benchmarks cluster_arrivals``. Days of Helios's Venus (GPU jobs, by ten minutes), thinned to
64 GPUs in the published simulator, compiled; jobs are those of the four shared workloads. A restart is charged as if
the next change of a job's nodes came after 1,000 s (the rule as it is served), or after the time in which so many jobs
come as was best on days of June: at the mean rate of all days, or at the rate of the coming hour, known in truth. No
forecast can know more; what the last gains over the one before is the most that a forecast of the hour is worth so.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.strategies import USUAL
from benchmarks.cluster_goodput import WORKLOADS
from benchmarks.forecasts import venus
from tests.pollux.measured import read_applications
from tests.pollux.simulator import Settings, Submission, read_log
from tests.pollux.tables import clusters, tabled
from workers.evaluation.statistics import mean_interval
from workers.kinds.cluster.kernels import ENDED, THERE, Rules, allocate_gpus, apply_allocation, pass_interval

SECONDS, BINS, HOUR = 600.0, 144, 6
JUNE, JULY, JOBS_AN_HOUR = range(61, 73), range(91, 107), 12.0
TRIED, SHORTEST, LONGEST = (2.0, 5.0, 10.0, 20.0), 60.0, 10_000.0
Row = dict[str, Any]


class Day(NamedTuple):
    """Jobs of a day, and how many come a second in the hour after each ten minutes, [144]."""

    log: list[Submission]
    rate: Floats


def days(which: Sequence[int], pool: Sequence[Submission]) -> list[Day]:
    """Of Venus, thinned."""
    task = venus(SECONDS)
    counts = task.series.counts
    share = JOBS_AN_HOUR / (float(counts[: task.known].mean()) * HOUR)
    return [
        _day(counts[day * BINS : (day + 1) * BINS + HOUR], share, pool, np.random.default_rng(day)) for day in which
    ]


def _day(counts: Floats, share: float, pool: Sequence[Submission], numbers: np.random.Generator) -> Day:
    came = numbers.binomial(counts[:BINS].astype(np.int64), share)
    times = np.sort((np.repeat(np.arange(BINS), came) + numbers.random(came.sum())) * SECONDS)
    drawn = numbers.integers(len(pool), size=len(times))
    jobs = [pool[at]._replace(time=float(time)) for at, time in zip(drawn, times, strict=True)]
    rate = np.array([counts[at : at + HOUR].mean() for at in range(BINS)]) * share / SECONDS
    return Day([job._replace(name=str(at)) for at, job in enumerate(jobs)], rate)


def played(rules: Rules, names: Sequence[str], day: Day, horizon: Floats) -> float:
    """Mean completion time of a day; ``horizon``: seconds, by ten minutes, the last goes on, [144] or [1]."""
    cluster = clusters([day.log], names, Settings())
    while cluster.counts[0, ENDED] < len(day.log):
        at = min(int(cluster.now[0] // SECONDS), len(horizon) - 1)
        now = rules._replace(constants=USUAL._replace(horizon_seconds=float(horizon[at])))
        pass_interval(rules, cluster, 0)
        if cluster.counts[0, THERE]:
            apply_allocation(rules, cluster, 0, allocate_gpus(now, cluster, 0))
    return float(cluster.completed.mean())


def results() -> list[Row]:
    """Two rows for each cost of a restart."""
    folder = Path(os.environ["STEWARD_DATA"]) / "pollux-osdi21"
    applications = read_applications(folder / "traces")
    pool = [job for name in WORKLOADS for job in read_log(folder / "workloads" / f"{name}.csv")]
    june, july = days(JUNE, pool), days(JULY, pool)
    mean = float(np.mean([day.rate.mean() for day in june]))
    rows = list[Row]()
    for restart in (30.0, 300.0):
        rules = tabled(applications, Settings(restart_seconds=restart))

        def forecast_error(some: Sequence[Day], jobs: float, *, known: bool, rules: Rules = rules) -> Floats:
            rates = [day.rate if known else np.array([mean]) for day in some]
            horizons = [np.clip(jobs / np.maximum(rate, 1e-9), SHORTEST, LONGEST) for rate in rates]
            return np.array([played(rules, [*applications], *one) for one in zip(some, horizons, strict=True)])

        best = min(TRIED, key=lambda jobs: forecast_error(june, jobs, known=True).mean())
        known, usual = forecast_error(july, best, known=True), forecast_error(july, best, known=False)
        served = np.array([played(rules, [*applications], day, np.array([USUAL.horizon_seconds])) for day in july])
        for peer, other in (("the mean rate", usual), ("1,000 s, as served", served)):
            rows.append(
                _row(f"restarts of {restart:g} s, until {best:g} jobs come, the coming hour known", known, peer, other)
            )
    return rows


def _row(name: str, own: Floats, peer: str, other: Floats) -> Row:
    ratio = mean_interval(own / other)
    return {
        "name": f"{name}, {len(own)} days of July (ratio {ratio['low']:.4f}–{ratio['high']:.4f})",
        "value": float(own.mean()),
        "unit": "s",
        "peer": peer,
        "peer_value": float(other.mean()),
        "ratio": ratio["mean"],
        "goal": f"better with 95 %: {'met' if ratio['high'] < 1 else 'missed'}",
    }


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("cluster_arrivals", results())
