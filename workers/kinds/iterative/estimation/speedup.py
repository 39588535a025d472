"""How a metric falls as an allocation grows: laws that samples may not be able to tell apart."""

import itertools
from collections.abc import Callable

import numpy as np

from workers.estimators.base import Floats

STEPS = (20, 10, 6)  # of a share, with one, two and three resources
COARSEST = 4
SMALLEST = 1e-9
KNEE, LOSS = 1.25, 0.25  # where a retrograde law turns, and its elasticity from there

Law = Callable[[Floats, Floats], Floats]
"""Log of the metric [n, J] at relative allocations [n, R] with shares [J, R]; 0 at a relative allocation of 1."""


def shares(resources: int) -> Floats:
    """Shares of the work that each resource shortens, none negative, together at most 1: a lattice, [J, R]."""
    steps = STEPS[resources - 1] if resources <= len(STEPS) else COARSEST
    lattice = itertools.product(range(steps + 1), repeat=resources)
    return np.array([point for point in lattice if sum(point) <= steps], np.float64) / steps


def amdahl(overhead: float) -> Law:
    """A part that nothing shortens, one per resource that shrinks in proportion (Amdahl 1967), and an ``overhead`` that
    grows with the allocation, per relative unit (Venkataraman et al. 2016).
    """

    def law(relative: Floats, share: Floats) -> Floats:
        left = 1 - share.sum(axis=1) + (1 / np.maximum(relative, SMALLEST)) @ share.T
        grown = overhead * relative.mean(axis=1, keepdims=True)
        return np.asarray(np.log(np.maximum(left + grown, SMALLEST)) - np.log1p(overhead), np.float64)

    return law


def power(relative: Floats, share: Floats) -> Floats:
    """Elasticities between −1 and 0: more of a resource never helps more than in proportion."""
    return np.asarray(-np.log(np.maximum(relative, SMALLEST)) @ share.T, np.float64)


def retrograde(relative: Floats, share: Floats) -> Floats:
    """Amdahl's up to a knee a little above the allocations that are usual; beyond, more makes slower (Gunther 1993)."""
    beyond = np.log(np.maximum(relative / KNEE, 1)).mean(axis=1, keepdims=True)
    return np.asarray(amdahl(0.0)(np.minimum(relative, KNEE), share) + LOSS * beyond, np.float64)


LAWS: tuple[Law, ...] = (amdahl(0.0), power, amdahl(0.1), amdahl(0.2), retrograde)
