"""What runs have reported in a window of time, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.layout import Layout
from app.kinds.inference.samples.run import run_batches
from workers.inputs import LoggedRun

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Batches(NamedTuple):
    """Measured batches, [n] each: positions of server class and variant, requests, seconds."""

    server: Integers
    variant: Integers
    batch: Integers
    seconds: Floats


class Stretch(NamedTuple):
    """What one run met, in seconds since it began.

    Attributes:
        times: of arrivals, ascending, of each user.
        since, until: from when to when it is known.
        batches: that were measured.
    """

    times: Sequence[Floats]
    since: float
    until: float
    batches: Batches


def stretch(layout: Layout, run: LoggedRun) -> Stretch:
    """What a run met, of what it reported in the window."""
    arrived = [event for report in run.reports for event in report.get("arrived") or ()]
    times = [
        np.sort(np.array([event["at"] for event in arrived if event["user"] == user], np.float64))
        for user in layout.users
    ]
    begin = min([float(run.reports[0]["at"]), *(float(own[0]) for own in times if len(own))])
    return Stretch(times, begin, float(run.reports[-1]["at"]), _batches(layout, run))


def _batches(layout: Layout, run: LoggedRun) -> Batches:
    columns = run_batches(layout, run.reports)
    known = [*zip(*(columns[name] for name in Batches._fields), strict=True)]
    return Batches(
        np.array([layout.servers.index(row[0]) for row in known], np.int64),
        np.array([layout.variants.index(row[1]) for row in known], np.int64),
        np.array([row[2] for row in known], np.int64),
        np.array([row[3] for row in known], np.float64),
    )
