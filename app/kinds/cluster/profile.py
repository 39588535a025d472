"""What one job has measured of itself, and the throughput that is fitted to that."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from app.kinds.cluster.goodput import step_seconds
from app.kinds.cluster.jobs import Floats, Integers

TINY = 1e-8  # seconds
OVERLAPS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
TOWARDS_ONE = 1e-3
SURPRISE = 0.02
MORE_ACROSS = 1.1  # nodes synchronise at least so much more slowly than GPUs of one do

Place = tuple[int, int, int]
"""Nodes, GPUs, and samples that a GPU does at once."""
Times = tuple[float, float]
"""Seconds of a step, and those of computing in it."""


class Profile:
    """Measurements of one job, and what they come to.

    It is fitted again when a measurement is more than ``SURPRISE`` from what was expected; fits to the same
    measurements are kept in ``fits``, since jobs of one application often repeat one another's.

    Attributes:
        most: GPUs on which it was measured.
        parameters: of the throughput, [7]; None before a measurement.
    """

    def __init__(self, fits: dict[tuple[object, ...], Floats]) -> None:
        self.most = 0
        self.parameters: Floats | None = None
        self._fits = fits
        self._seen: dict[Place, Times] = {}
        self._fitted: dict[Place, Times] = {}

    def measure(self, place: Place, times: Times) -> bool:
        """Take a measurement in; whether that changed the parameters."""
        if place in self._seen:
            return False
        self._seen[place] = times
        self.most = max(self.most, place[1])
        if self.parameters is not None and foreseen(self.parameters, self._fitted, place, times):
            return False
        self._fitted[place] = times
        key = tuple(self._fitted.items())
        if key not in self._fits:
            self._fits[key] = fit(self._fitted)
        self.parameters = self._fits[key]
        return True


def foreseen(parameters: Floats, known: Iterable[Place], place: Place, times: Times) -> bool:
    """Whether a measurement is what was expected, by others that say something of the same parameters."""
    if not any(_like(place) == _like(other) for other in known):
        return False
    computing = parameters[0] + parameters[1] * place[2]
    whole = float(step_seconds(parameters, *(np.array(float(part)) for part in place)))
    return bool(abs(np.log(whole / times[0])) < SURPRISE and abs(np.log(computing / times[1])) < SURPRISE)


def _like(place: Place) -> tuple[bool, bool, bool]:
    """Which of the parameters a measurement says something of."""
    return place[0] > 1, place[1] > 1, place[1] > 2


def fit(measured: dict[Place, Times]) -> Floats:
    """Parameters of the throughput, [7]: what was never seen to cost anything costs nothing, as Pollux has it.

    The model is Pollux's, the search is not: with γ given, T_net = (T^γ − T_acc^γ)^{1/γ} is linear in the GPUs, so each
    of a few γ is tried with the lines of the least relative squares.
    """
    places, times = np.array([*measured], np.float64), np.array([*measured.values()], np.float64)
    nodes, gpus, batch = places.T
    computing = _computing(batch, times[:, 1])
    across, shared = nodes > 1, (nodes == 1) & (gpus > 1)
    found, least = np.zeros(7), np.inf
    for gamma in OVERLAPS:
        network = np.maximum(times[:, 0] ** gamma - times[:, 1] ** gamma, 0.0) ** (1 / gamma)
        lines = [_network(gpus[where] - 2, network[where], times[where, 0]) for where in (across, shared)]
        tried = np.concatenate([computing, *lines, [gamma]])
        errors = np.log(step_seconds(tried, nodes, gpus, batch) / times[:, 0])
        error = float(np.sqrt(np.mean(errors**2))) + TOWARDS_ONE * (gamma - 1) ** 2
        if error < least:
            found, least = tried, error
    if not across.any():
        found[2:4] = np.maximum(found[2:4], MORE_ACROSS * found[4:6])
    return found


def _computing(batch: Floats, seconds: Floats) -> Floats:
    """A constant and a slope: halves of what was measured, at a single batch size."""
    if len(np.unique(batch)) == 1:
        half = float(seconds.mean()) / 2
        return np.array([half, half / float(batch[0])])
    return np.maximum(_line(batch, seconds, seconds), TINY)


def _network(more: Floats, seconds: Floats, scale: Floats) -> Floats:
    """A constant, and a slope over the GPUs beyond two; nothing where nothing was measured."""
    if not len(more):
        return np.array([TINY, TINY])
    if len(np.unique(more)) == 1:
        return np.array([max(float(seconds.mean()), TINY), TINY])
    return np.maximum(_line(more, seconds, scale), TINY)


def _line(x: Floats, y: Floats, scale: Floats) -> Floats:
    """Constant and slope, neither negative, of the least squares of errors over ``scale``."""
    design, wanted = np.stack([1 / scale, x / scale], axis=1), y / scale
    both = np.linalg.lstsq(design, wanted)[0]
    if (both >= 0).all():
        return np.asarray(both, np.float64)
    norms = np.maximum((design**2).sum(axis=0), TINY**2)
    alone = np.diag(np.maximum(design.T @ wanted, 0.0) / norms)
    errors = ((design @ alone.T - wanted[:, None]) ** 2).sum(axis=0)
    return np.asarray(alone[errors.argmin()], np.float64)


def sizes_of(gpus: Integers, node: int) -> Integers:
    """Nodes that so many GPUs fill, at least one."""
    return np.maximum(-(-gpus // max(1, node)), 1)
