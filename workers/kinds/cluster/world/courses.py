"""What jobs' losses or metrics lack of their last ones, by how far the jobs are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.model import ClusterModel

PARTS = np.linspace(0.0, 1.0, 33)
ITERATIONS = 100.0


def usual(part: Floats) -> Floats:
    """As 1/(k + 1) after k of ``ITERATIONS``, which is how first-order methods converge; of any shape.

    Args:
        part: of a job's iterations that it has made, 0 to 1.
    """
    last = 1.0 / (ITERATIONS + 1.0)
    return np.asarray((1.0 / (ITERATIONS * part + 1.0) - last) / (1.0 - last), np.float64)


def courses(model: ClusterModel, applications: Sequence[str]) -> Floats:
    """Of applications, by name, at ``PARTS`` of a job: by their mean curve, else ``usual``, [A, 33]."""
    return np.stack([_course(model, name) for name in applications])


def _course(model: ClusterModel, application: str) -> Floats:
    own = known_class(model, application)
    if own < 0:
        return usual(PARTS)
    grid, mean = model.curves.grid[own], model.curves.mean[own]
    lacks = (mean[-1] - np.interp(PARTS * grid[-1], grid, mean)) / (mean[-1] - mean[0])
    return np.asarray(np.clip(lacks, 0.0, 1.0), np.float64)


def known_class(model: ClusterModel, application: str) -> int:
    """The class of an application's curves, its metric's first; −1: none was learned that gains anything."""
    mean = model.curves.mean
    known = [model.curve_class(application, rises) for rises in (True, False)]
    return next((own for own in known if own >= 0 and mean[own, -1] > mean[own, 0]), -1)


def lacking(table: Floats, application: Integers, part: Floats) -> Floats:
    """What jobs lack at a part of their iterations, linear between ``PARTS`` of a table of courses; any shape."""
    place = np.clip(part, 0.0, 1.0) * (len(PARTS) - 1)
    at = np.minimum(place.astype(np.int64), len(PARTS) - 2)
    before, after = table[application, at], table[application, at + 1]
    return np.asarray(before + (place - at) * (after - before), np.float64)
