"""Jobs of an episode, drawn as the domain model has seen jobs come."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.cluster.arrivals import APPLICATION, DATA, DURATION, GPUS, HOUR_SECONDS, QUEUE, Arrivals
from app.kinds.cluster.jobs import Floats, Integers
from workers.estimators.base import TooLittleData


class Coming(NamedTuple):
    """K jobs of an episode in order of their time, [K] each.

    Attributes:
        time: seconds since the episode began.
        queue, application: positions.
        asked: GPUs.
        data: size of its data; not a number where it isn't known.
        seconds: that it would train on the GPUs that it asked for.
    """

    time: Floats
    queue: Integers
    application: Integers
    asked: Integers
    data: Floats
    seconds: Floats


def playable(arrivals: Arrivals) -> bool:
    """Whether it is known of any job how long it trained, and how many come."""
    return bool(arrivals.rate.sum() > 0 and (~np.isnan(arrivals.jobs[:, DURATION])).any())


def _check(arrivals: Arrivals) -> None:
    """Make sure that it is known how many jobs come, and of some how long they trained.

    Raises:
        TooLittleData: it isn't; it says what samples have to tell.
    """
    if playable(arrivals):
        return
    needs = "a job that came (a row with `time`) with the seconds that it trained (`duration`)"
    if not arrivals.rate.sum() > 0:
        raise TooLittleData(needs, "no job that came, in the samples of the domain model")
    raise TooLittleData(needs, f"{len(arrivals.jobs):,} jobs that came, none of them with its duration")


def draw(arrivals: Arrivals, first: int, seconds: float, load: float, most: int, random: np.random.Generator) -> Coming:
    """The jobs of ``seconds`` from an hour of the day on.

    Each queue's come as a Poisson process of its hour's rate, times a gamma variable of its variation for each hour;
    what they ask for is that of one of its jobs in the log, or of any where it has none.

    Args:
        arrivals: as they were seen.
        first: the hour.
        seconds: of an episode.
        load: factor of all rates.
        most: GPUs of a job; those that asked for more ask for these.
        random: draws.

    Raises:
        TooLittleData: no jobs were seen that could be drawn from.
    """
    hours = int(np.ceil(seconds / HOUR_SECONDS))
    _check(arrivals)
    jobs = arrivals.jobs[~np.isnan(arrivals.jobs[:, DURATION])]
    times, rows = list[Floats](), list[Integers]()
    for queue, (rate, variation) in enumerate(zip(arrivals.rate, arrivals.variation.tolist(), strict=True)):
        own = np.flatnonzero(jobs[:, QUEUE] == queue)
        own = own if len(own) else np.arange(len(jobs))
        mean = load * rate[(first + np.arange(hours)) % len(rate)]
        factor = random.gamma(1 / variation, variation, hours) if variation > 0 else np.ones(hours)
        count = random.poisson(mean * factor)
        hour = np.repeat(np.arange(hours), count)
        times.append((hour + random.random(len(hour))) * HOUR_SECONDS)
        rows.append(own[random.integers(len(own), size=len(hour))])
    time, chosen = np.concatenate(times), jobs[np.concatenate(rows)]
    order = np.argsort(time, kind="stable")
    order = order[time[order] < seconds]
    time, chosen, whole = time[order], chosen[order], np.nan_to_num(chosen[order]).astype(np.int64)
    asked = np.clip(whole[:, GPUS], 1, most)
    queues = np.concatenate([np.full(len(part), at) for at, part in enumerate(rows)])[order]
    return Coming(time, queues, whole[:, APPLICATION], asked, chosen[:, DATA], chosen[:, DURATION])
