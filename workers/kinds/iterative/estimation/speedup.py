"""How a metric falls as an allocation grows: laws that samples may not be able to tell apart."""

import itertools
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln

from workers.estimators.base import Floats

STEPS = (20, 10, 6)  # of a share, with one, two and three resources
COARSEST = 4
CONCENTRATIONS = np.array([100.0, 10.0, 3.0, 1.0, 0.3])  # from stages that are alike to some that scale, some that wait
LEAST_SHARE = 0.02  # on average, of stages of an application that does not scale
SMALLEST = 1e-9

Law = Callable[[Floats, Floats], Floats]
"""Log of the metric [n, J] at relative allocations [n, R] with shares [J, R]; 0 at a relative allocation of 1."""


def shares(resources: int) -> Floats:
    """Shares of the work that each resource shortens, none negative, together at most 1: a lattice, [J, R]."""
    steps = STEPS[resources - 1] if resources <= len(STEPS) else COARSEST
    lattice = itertools.product(range(steps + 1), repeat=resources)
    return np.array([point for point in lattice if sum(point) <= steps], np.float64) / steps


def scatter(lattice: Floats, application: int) -> Floats:
    """Log probability of each share of a stage, given the row of the application's, at S ``CONCENTRATIONS``, [S, J].

    It is Dirichlet-multinomial over the steps of the ``lattice`` [J, R] (Mosimann 1962): its mean is the application's
    share at any concentration, at the border of the lattice too, where a truncated normal distribution's is not.
    """
    parts = np.column_stack([lattice, 1 - lattice.sum(axis=1)])
    steps = 1 / lattice[lattice > 0].min()
    counts = np.rint(parts * steps)
    mean = (parts[application] + LEAST_SHARE) / (1 + LEAST_SHARE * parts.shape[1])
    alpha = CONCENTRATIONS[:, None, None] * mean  # [S, 1, R + 1]
    orders = gammaln(steps + 1) - gammaln(counts + 1).sum(axis=1)
    drawn = (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=2)
    total = gammaln(CONCENTRATIONS) - gammaln(steps + CONCENTRATIONS)
    return np.asarray(orders + drawn + total[:, None], np.float64)


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


def retrograde(knee: float, loss: float) -> Law:
    """Amdahl's up to a ``knee``, relative to the allocations that are usual; beyond, more makes slower (Gunther 1993),
    with the elasticity ``loss``.
    """

    def law(relative: Floats, share: Floats) -> Floats:
        beyond = np.log(np.maximum(relative / knee, 1)).mean(axis=1, keepdims=True)
        return np.asarray(amdahl(0.0)(np.minimum(relative, knee), share) + loss * beyond, np.float64)

    return law


OVERHEADS = (0.0, 0.1, 0.2)
KNEES = ((1.0, 0.5), (1.25, 0.25), (1.6, 0.5))
LAWS: tuple[Law, ...] = (
    *(amdahl(overhead) for overhead in OVERHEADS),
    power,
    *(retrograde(knee, loss) for knee, loss in KNEES),
)
