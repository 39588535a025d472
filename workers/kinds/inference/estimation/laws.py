"""How the time of a batch grows with its size and falls with cores: laws that samples may not be able to tell apart.

Each gives the log of a factor that is 1 where its argument, relative to a usual one, is 1; it has one free number, the
logit of a share, and is monotone whatever that is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from workers.estimators.base import Floats

SMALLEST = 0.02  # of a usual capacity
SUPERLINEAR = 1.25  # largest share of the capacity at the usual cores that the cores give; the rest is an overhead

Law = Callable[[Floats, Floats], Floats]
"""Logs of a factor at relative sizes or cores [n], with logits of shares [n]."""


def share(logit: Floats) -> Floats:
    """The share of a logit."""
    return 1 / (1 + np.exp(-np.clip(logit, -30.0, 30.0)))


def affine(size: Floats, logit: Floats) -> Floats:
    """A fixed part, and a part for each request of the batch."""
    part = share(logit)
    return np.log(1 - part + part * size)


def elastic(size: Floats, logit: Floats) -> Floats:
    """A power of the size, between 0 and 1."""
    return share(logit) * np.log(size)


def amdahl(cores: Floats, logit: Floats) -> Floats:
    """A part that no cores shorten (Amdahl 1967)."""
    part = share(logit)
    return np.log(1 - part + part / cores)


def power(cores: Floats, logit: Floats) -> Floats:
    """A power of the cores, between −1 and 0."""
    return -share(logit) * np.log(cores)


def capacity(exponent: float) -> Law:
    """Capacity affine in cores, as InfAdapter has it (Salmani et al., EuroMLSys 2023), to the power of an ``exponent``;
    the intercept may be negative.
    """

    def law(cores: Floats, logit: Floats) -> Floats:
        part = SUPERLINEAR * share(logit)
        return -exponent * np.log(np.maximum(1 - part + part * cores, SMALLEST))

    return law


BATCH_LAWS: dict[str, Law] = {"affine": affine, "elastic": elastic}
CORE_LAWS: dict[str, Law] = {
    "Amdahl": amdahl,
    "power": power,
    **{f"capacity^{exponent:g}": capacity(exponent) for exponent in (1.0, 0.95, 0.9, 0.8)},
}
LAWS = {
    f"{batch} in batch, {cores} in cores": (BATCH_LAWS[batch], CORE_LAWS[cores])
    for batch in BATCH_LAWS
    for cores in CORE_LAWS
}
"""Every pair of them, by name."""
