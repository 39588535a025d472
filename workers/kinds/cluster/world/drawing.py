"""Jobs of an episode: a stretch of the jobs that the domain model has seen coming."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.model import JobLog


class Coming(NamedTuple):
    """K jobs of an episode in order of their time, [K] each.

    Attributes:
        time: seconds since the episode began.
        queue, application: positions.
        asked: GPUs.
        data: size of its data.
        seconds: that it would train on the GPUs that it asked for.
    """

    time: Floats
    queue: Integers
    application: Integers
    asked: Integers
    data: Floats
    seconds: Floats


def draw(log: JobLog, seconds: float, load: float, most: int, random: np.random.Generator) -> Coming:
    """The jobs of ``seconds`` from a moment of the log on that is drawn; after its end it begins anew.

    Args:
        log: of the jobs that came.
        seconds: of an episode.
        load: about how many times as many jobs; each of the log comes so often, the rest by chance.
        most: GPUs of a job; those that asked for more ask for these.
        random: draws.
    """
    span = max(float(log.time[-1] - log.time[0]) * (1 + 1 / max(len(log.time) - 1, 1)), 1.0)
    after = (log.time - log.time[0] - random.uniform(0, span)) % span
    rounds = int(np.ceil(seconds / span))
    moments = (after[None] + span * np.arange(rounds)[:, None]).ravel()
    often = np.floor(load) + (random.random(len(moments)) < load % 1)
    times = np.repeat(moments, often.astype(np.int64))
    which = np.repeat(np.tile(np.arange(len(log.time)), rounds), often.astype(np.int64))
    kept = times < seconds
    order = np.argsort(times[kept], kind="stable")
    rows = which[kept][order]
    asked = np.clip(log.asked[rows], 1, most)
    return Coming(times[kept][order], log.queue[rows], log.application[rows], asked, log.data[rows], log.seconds[rows])
