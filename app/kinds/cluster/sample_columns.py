"""An execution of kind ``cluster`` as it is kept: measured steps, learning curves, submissions of jobs."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from safetensors import numpy as safetensors_numpy

from app.kinds.cluster.jobs import Floats
from app.kinds.tensors import read_header, written

FORMAT = "cluster-samples-1"
MOST_BESIDE = 4
SHORTEST, LARGEST = 1e-6, 1e9
"""Seconds that a step can take; batches and iterations are as large at most."""
APPLICATION, GPUS, NODES, NODE_CLASS, BATCH, SECONDS, COMPUTING, BESIDE = range(8)
"""Columns of ``Content.steps``; ``BESIDE`` is the first of ``MOST_BESIDE``."""
JOB, OF_APPLICATION, ITERATION, VALUE, RISES, AT_BATCH, NOISE_SCALE = range(7)
"""Columns of ``Content.curves``."""
TIME, QUEUE, BY_APPLICATION, ASKED, DATA, DURATION, SAMPLES = range(7)
"""Columns of ``Content.arrivals``."""
WIDTHS = {"steps": 8 + MOST_BESIDE - 1, "curves": 7, "arrivals": 7}


class Content(NamedTuple):
    """What an execution says; −1 is no application, NaN what is not known.

    Attributes:
        applications: names, [A].
        jobs: names of those whose curves these are, [C].
        steps: position of the application, GPUs, nodes, position of the node class, samples of a step over all GPUs,
            its seconds, those of computing in it, positions of the applications that shared its nodes, [n, 11].
        curves: position of the job and of its application, iteration, value, whether larger is better, samples of a
            step over all GPUs, gradient noise scale in samples, in order of iteration within a job, [m, 7].
        arrivals: seconds since 1970 (UTC) or since a start of its own, position of the queue and of the application,
            GPUs asked for, size of the data, seconds that the job ran, samples that it needed at the efficiency of its
            initial batch, in order of time, [k, 7].
    """

    applications: tuple[str, ...]
    jobs: tuple[str, ...]
    steps: Floats
    curves: Floats
    arrivals: Floats


def packed(content: Content) -> bytes:
    """As it is stored; equal contents give equal bytes."""
    tables = {name: getattr(content, name).astype("<f8", copy=False) for name in WIDTHS}
    names = {"applications": json.dumps(content.applications), "jobs": json.dumps(content.jobs)}
    return written({name: table for name, table in tables.items() if len(table)}, {"format": FORMAT, **names})


def unpacked(data: bytes) -> Content:
    """What stored bytes say."""
    tables, header = safetensors_numpy.load(data), read_header(data)
    applications, jobs = (tuple(json.loads(header[name])) for name in ("applications", "jobs"))
    found = (
        _of_width(np.asarray(tables.get(name, np.zeros((0, width))), np.float64), width)
        for name, width in WIDTHS.items()
    )
    return Content(applications, jobs, *found)


def _of_width(table: Floats, width: int) -> Floats:
    """With columns that those who stored it didn't know."""
    return np.column_stack([table, np.full((len(table), width - table.shape[1]), np.nan)])


# What an execution of kind ``cluster`` comes to.


SHOWN = 100
"""Applications that lists tell of by name."""


def summary(content: Content) -> dict[str, Any]:
    """What lists tell of an execution, JSON: positions of queues are of the layout."""
    steps, arrivals = content.steps, content.arrivals
    seconds, span = float(steps[:, SECONDS].sum()), float(np.ptp(arrivals[:, TIME])) if len(arrivals) else 0.0
    return {
        "seconds": seconds + span,
        "applications": list(content.applications[:SHOWN]),
        "steps": {"count": len(steps), "seconds": seconds} if len(steps) else None,
        "curves": {"jobs": len(content.jobs), "points": len(content.curves)} if len(content.curves) else None,
        "arrivals": _arrivals(arrivals, span) if len(arrivals) else None,
    }


def _arrivals(arrivals: np.ndarray[Any, np.dtype[np.float64]], span: float) -> dict[str, Any]:
    ran = arrivals[:, DURATION]
    ran = ran[~np.isnan(ran)]
    return {
        "count": len(arrivals),
        "of_queues": np.bincount(arrivals[:, QUEUE].astype(np.int64)).tolist(),
        "start": float(arrivals[0, TIME]),
        "span_seconds": span,
        "mean_gpus": float(arrivals[:, ASKED].mean()),
        "mean_duration": float(ran.mean()) if len(ran) else None,
    }
