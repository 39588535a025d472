"""Forecasts of arrivals and of GPUs in use: what answers beside ARIMA, a GRU, both together, naive ones and boosting.

Series: GPU jobs of Helios's Venus (April to June fitted, July told), jobs of Microsoft's Philly (24 September to
October, November told), a week of Twitter's requests (five days, two told), requests of NASA's web server (July 1995,
August told): counts by ten minutes, an hour ahead, and Venus by the hour. Each family is fitted once, and then told of
every interval from what came up to an hour before it. Families were designed on Venus's fitted months (two halves of
June); what is told of was read once for them, once more since several families may answer together, and once more since
one rule chooses the family (``choose``), whose numbers were set without it.

GPUs in use, an hour and a day ahead: Venus's of the same months are those started less those ended, above the least of
the fitted months; Philly's (October fitted, November told) are made of its jobs as a fit does (``gpus_in_use``), each
from when it came, since its wait isn't known. No family was designed on them, and what is told of was read once.

Errors are means over seeds of networks and trees. What answers, and its interval, come of the back-test on what is
fitted, with the first seed.
"""

import csv
import gzip
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from app.kinds.cluster.samples import ASKED, DURATION, TIME, WIDTHS
from app.kinds.forecasting.answer import Forecaster, Forward
from app.kinds.forecasting.series import DAY, Floats, Series, unscale
from benchmarks.problems import data
from workers.estimators.forecasting.back_test import DAILY, back_test, build_forecaster, daily_course, replay_family
from workers.estimators.forecasting.families import (
    ALL,
    ARIMA,
    BOOSTING,
    DAY_BEFORE,
    GRU,
    HYBRID,
    LAST,
    WEEK_BEFORE,
    FitTask,
    fit_families,
)
from workers.kinds.cluster.estimation import gpus_in_use

Row = dict[str, Any]
HOUR, TEN_MINUTES = 3600.0, 600.0
SEEDS = 2


class Task(NamedTuple):
    """A series, how many of its intervals are fitted, the seconds from its end that are forecast, and its unit; empty:
    events in an interval."""

    series: Series
    known: int
    ahead: float = HOUR
    unit: str = ""

    @property
    def course(self) -> float:
        """Share of the variance of scaled counts that the time of day explains, of what is fitted."""
        return daily_course(self.series.until(self.known))

    @property
    def horizon(self) -> int:
        """Intervals that are forecast ahead."""
        return round(self.ahead / self.series.seconds)

    @property
    def words(self) -> str:
        """How far ahead, in words."""
        return "an hour ahead" if self.ahead == HOUR else "a day ahead"


def results(parts: list[str]) -> list[Row]:
    """Rows for the common table."""
    with threadpool_limits(1):
        return [row for part in parts for row in _rows(part, TASKS[part]())]


def venus(seconds: float) -> Task:
    """GPU jobs; July begins after 91 days."""
    with gzip.open(data() / "helios-venus-lucid/cluster_throughput_to_july.csv.gz", "rt") as file:
        jobs = np.array([float(row["submit_gpu_job"]) for row in csv.DictReader(file)])
    return _task(jobs, TEN_MINUTES, datetime(2020, 4, 1, tzinfo=UTC), seconds, 91)


def philly() -> Task:
    """Jobs from 24 September, from which on there are many, to November; November begins after 38 days."""
    start = datetime(2017, 9, 24, tzinfo=UTC)
    with gzip.open(data() / "philly/philly.csv.gz", "rt") as file:
        times = [datetime.fromisoformat(f"{row['timestamp']}+00:00") for row in csv.DictReader(file)]
    since = np.array([(time - start).total_seconds() for time in times])
    return _task(np.histogram(since, np.arange(0, 68 * DAY + 1, TEN_MINUTES))[0], TEN_MINUTES, start, TEN_MINUTES, 38)


def venus_gpus(ahead: float) -> Task:
    """GPUs in use at the end of each ten minutes, above the least of the fitted months."""
    with gzip.open(data() / "helios-venus-lucid/cluster_throughput_to_july.csv.gz", "rt") as file:
        change = [float(row["start_gpu_num"]) - float(row["end_gpu_num"]) for row in csv.DictReader(file)]
    level, known = np.cumsum(change), round(91 * DAY / TEN_MINUTES)
    start = datetime(2020, 4, 1, tzinfo=UTC)
    return _level(Series(np.maximum(level - level[:known].min(), 0.0), start.timestamp(), TEN_MINUTES), known, ahead)


def philly_gpus(ahead: float) -> Task:
    """GPUs of jobs from when they came, as long as they ran: October, and November, which is told of."""
    begin, november, december = (datetime(2017, month, 1, tzinfo=UTC).timestamp() for month in (10, 11, 12))
    with gzip.open(data() / "philly/philly.csv.gz", "rt") as file:
        rows = [
            (datetime.fromisoformat(f"{row['timestamp']}+00:00").timestamp(), row["num_gpus"], row["duration"])
            for row in csv.DictReader(file)
        ]
    log = np.full((len(rows), WIDTHS["arrivals"]), np.nan)
    log[:, [TIME, ASKED, DURATION]] = sorted((at, float(gpus), float(ran)) for at, gpus, ran in rows)
    series, reported = gpus_in_use([log])
    if series is None:
        raise ValueError(reported)
    start = max(begin, series.start)
    first, known, last = (round((at - series.start) / TEN_MINUTES) for at in (start, november, december))
    return _level(series.until(last).since(first), known - first, ahead)


def _level(series: Series, known: int, ahead: float) -> Task:
    return Task(series._replace(unit=series.until(known).sized().unit), known, ahead, "GPUs")


def twitter() -> Task:
    """Requests in each second of a week, whose first second has no date."""
    with gzip.open(data() / "infadapter/twitter_rps_first7days.txt.gz", "rt") as file:
        requests = np.array(file.read().split(), np.float64)
    return _task(requests, 1.0, datetime(1970, 1, 1, tzinfo=UTC), TEN_MINUTES, 5)


def nasa() -> Task:
    """Requests in each minute from July 1995 on, by the clock there; August begins after 31 days."""
    with gzip.open(data() / "web-arrivals/nasa_http_per_minute.csv.gz", "rt") as file:
        requests = np.array([float(row["requests"]) for row in csv.DictReader(file)])
    return _task(requests, 60.0, datetime(1995, 7, 1, tzinfo=UTC), TEN_MINUTES, 31)


def _task(counts: Floats, of: float, start: datetime, seconds: float, days: int) -> Task:
    each = round(seconds / of)
    whole = np.asarray(counts[: len(counts) // each * each], np.float64).reshape(-1, each).sum(axis=1)
    series, known = Series(whole, start.timestamp(), seconds), round(days * DAY / seconds)
    return Task(series._replace(unit=series.until(known).sized().unit), known)


TASKS: dict[str, Callable[[], Task]] = {
    "venus": lambda: venus(TEN_MINUTES),
    "venus-hourly": lambda: venus(HOUR),
    "philly": philly,
    "twitter": twitter,
    "nasa": nasa,
    "venus-gpus": lambda: venus_gpus(HOUR),
    "venus-gpus-day": lambda: venus_gpus(DAY),
    "philly-gpus": lambda: philly_gpus(HOUR),
    "philly-gpus-day": lambda: philly_gpus(DAY),
}
PARTS = tuple(TASKS)


def _rows(name: str, task: Task) -> Iterator[Row]:
    request = FitTask(task.series.until(task.known), (task.horizon,), 0, ALL)
    seeds = [request._replace(seed=seed) for seed in range(SEEDS)]
    families = [fit_families(one, task.known) for one in seeds]
    each, reported = [errors(task, one) for one in families], back_test(request)
    mae = {family: float(np.mean([one[family] for one in each])) for family in each[0]}
    spread = {family: float(np.std([one[family] for one in each], ddof=1)) for family in mae}
    answers = [
        answered(task, *build_forecaster(name, one, reported, own)) for one, own in zip(seeds, families, strict=True)
    ]
    for peer in (LAST, ARIMA, GRU, HYBRID, DAY_BEFORE, WEEK_BEFORE, BOOSTING):
        if peer in mae:
            yield _compared(name, task, peer, answers, mae) | {"all": mae, "spread": spread}
    yield _inside(f"{name}, {task.words}", answers[0])


def errors(task: Task, families: dict[str, Forward]) -> dict[str, float]:
    """Mean absolute errors in counts, of what was not fitted."""
    request = FitTask(task.series, (task.horizon,), 0, ALL)
    errors = {}
    for name, family in families.items():
        ((medians, came),) = replay_family(family, request, task.known, len(task.series.counts))
        errors[name] = float(np.abs(unscale(medians, task.series.unit) - unscale(came, task.series.unit)).mean())
    return errors


class Answered(NamedTuple):
    """What answers, its mean absolute error, how much of what came was inside, and the back-test that chose it."""

    family: str
    mae: float
    inside: float
    mean_over_came: float
    back_test: dict[str, Any]


def answered(task: Task, forecaster: Forecaster, report: dict[str, Any]) -> Answered:
    """Of what was not fitted."""
    last, (ahead,) = len(task.series.counts), forecaster.horizons
    reported = forecaster.expected(task.series, np.arange(task.known - ahead, last - ahead))
    came = task.series.counts[task.known :]
    return Answered(
        forecaster.names[0],
        float(np.abs(reported.median[:, 0] - came).mean()),
        float(((reported.low[:, 0] <= came) & (came <= reported.high[:, 0])).mean()),
        float(reported.mean.mean() / came.mean()),
        report["horizons"][0],
    )


def _compared(name: str, task: Task, peer: str, answers: list[Answered], mae: dict[str, float]) -> Row:
    value = float(np.mean([one.mae for one in answers]))
    goal = 0.8 if peer == LAST and task.course >= DAILY and not task.unit else 1.0
    met = f"ratio ≤ {goal:g}: {'met' if value / mae[peer] <= goal else 'missed'}"
    return {
        "name": f"{name}, {task.words}: MAE of what answers, {answers[0].family.replace('_', ' ')}",
        "value": value,
        "unit": task.unit or f"per {task.series.seconds / 60:g} min",
        "peer": peer.replace("_", " "),
        "peer_value": mae[peer],
        "ratio": value / mae[peer],
        "goal": met if peer not in (BOOSTING, HYBRID) else "",
        "course": task.course,
    }


def _inside(name: str, one: Answered) -> Row:
    return {
        "name": f"{name}: its 90 % interval",
        "value": 100 * one.inside,
        "unit": "% inside",
        "goal": f"90 ± 4 %: {'met' if abs(one.inside - 0.9) <= 0.04 else 'missed'}",
        "mean_over_came": one.mean_over_came,
        "back_test": one.back_test,
    }
