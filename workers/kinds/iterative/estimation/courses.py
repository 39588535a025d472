"""How features went over the iterations of past executions."""

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.foreseen import course_places
from workers.estimators.base import Floats, Integers
from workers.kinds.iterative.estimation.executions import Flat

MOST = 32
FINEST = 1_024  # places of a course
STEADY = 1e-9  # relative difference within which a feature counts as unchanged


def courses(flat: Flat, iterations: int, rng: np.random.Generator) -> NDArray[np.float32] | None:
    """``ModelTable.courses`` of what was measured.

    An iteration that an execution lacks is filled from a row of another's at that iteration, else from any: from the
    features' distribution. A feature is taken to stay as it is reported if some execution has more than one row and
    none changes it.
    """
    varies = _varying(flat)
    if not varies.any():
        return None
    resolution = min(iterations, FINEST)
    place = course_places(iterations, resolution)[np.clip(flat.iterations, 0, iterations - 1)].astype(np.intp)
    names = rng.permutation(np.unique(flat.groups))
    complete = len(np.unique(flat.groups * resolution + place)) == len(names) * resolution
    count = min(len(names), MOST) if complete else MOST
    found = np.stack([_course(flat, names[k % len(names)], place, resolution, rng) for k in range(count)])
    return np.where(varies, found, np.nan).astype(np.float32)


def _varying(flat: Flat) -> NDArray[np.bool_]:
    """Which features change within executions, [F]; where each execution is one row, all that differ."""
    features, groups = flat.features, flat.groups
    first = np.searchsorted(groups, groups)  # rows of an execution lie together
    single = len(np.unique(groups)) == len(groups)
    against = features[:1] if single else features[first]
    changed = np.abs(features - against) > STEADY * (1 + np.abs(features))
    return np.asarray(changed.any(axis=0), np.bool_)


def _course(flat: Flat, execution: int, place: Integers, resolution: int, rng: np.random.Generator) -> Floats:
    """One execution's features, [resolution, F]."""
    order = np.argsort(place, kind="stable")
    first, last = (np.searchsorted(place[order], np.arange(resolution), side) for side in ("left", "right"))
    drawn = first + (rng.random(resolution) * (last - first)).astype(np.intp)
    anywhere = rng.integers(0, len(place), resolution)
    rows = np.where(last > first, order[np.minimum(drawn, len(order) - 1)], anywhere)
    own = np.flatnonzero(flat.groups == execution)
    rows[place[own]] = own
    return np.asarray(flat.features[rows], np.float64)
