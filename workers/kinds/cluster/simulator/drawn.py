"""Logs drawn from other logs: what came in an hour of a day came in that hour of one of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workers.kinds.cluster.simulator.log import Submission

HOUR = 3600.0


def draw(logs: Sequence[Sequence[Submission]], load: float, generator: np.random.Generator) -> list[Submission]:
    """Jobs in order of submission, about ``load`` times as many as a log has.

    Each hour is that of a log that is drawn; whole numbers of ``load`` draw so many logs for it, and of one more each
    job comes with the chance that is left. Jobs that come together stay together, and the hours keep their course.
    """
    hours = 1 + int(max(job.time for log in logs for job in log) // HOUR)
    whole, rest = divmod(load, 1.0)
    found = list[Submission]()
    for hour in range(hours):
        for chance in (*[1.0] * int(whole), *([rest] if rest else [])):
            log = logs[int(generator.integers(len(logs)))]
            jobs = [job for job in log if job.time // HOUR == hour]
            found += [job for job in jobs if generator.random() < chance]
    found.sort(key=lambda job: job.time)
    return [job._replace(name=f"{job.application}-{number}") for number, job in enumerate(found)]
