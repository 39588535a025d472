"""Seconds of a step by GPUs, nodes, batch and neighbours, and goodput."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.jobs import Floats, Integers

# Goodput of data-parallel training, and the batch size at which it is largest.
#
# Source: Qiao et al., “Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning”, OSDI 2021: goodput
# is throughput times statistical efficiency. J jobs, R numbers of GPUs, K batch sizes that are tried.


TRIED = 32
MOST_TRIED = 64
TOLERANCE = 1e-8
SMALL = 1e-8
Times = Callable[[Integers, Floats], tuple[Floats, Floats]]
"""Seconds of computing and of a whole step, by GPUs and samples that a GPU does at once."""


class Batches(NamedTuple):
    """Samples of a step that one job may have over all its GPUs, and on each at once."""

    initial: int
    largest: int
    least_local: int
    most_local: int


class Limits(NamedTuple):
    """Of the batches of J jobs, [J] each: over all GPUs, and what a GPU can do at once."""

    initial: Integers
    largest: Integers
    smallest_local: Integers
    largest_local: Integers


class Known(NamedTuple):
    """What is known of J jobs.

    Attributes:
        seconds: α and β of computing, of synchronising across nodes and within one, and γ (section 3.2), [J, 7].
        squared, variance: of the gradient at the initial batch, [J].
        initial, largest: batch sizes over all GPUs, [J].
        smallest_local, largest_local: batch sizes that a GPU can do at once, [J].
    """

    seconds: Floats
    squared: Floats
    variance: Floats
    initial: Integers
    largest: Integers
    smallest_local: Integers
    largest_local: Integers

    @property
    def limits(self) -> Limits:
        """The limits of their batches."""
        return Limits(*self[3:])


class Course(NamedTuple):
    """Goodput of one job by its number of GPUs, and the batch over all of them that it is at, [R] each.

    Attributes:
        gpus: numbers for which that was found, ascending, from 0; in between it is linear.
        goodput: samples a second.
        batch: samples of a step; 0 where no batch is legal.
    """

    gpus: Integers
    goodput: Floats
    batch: Integers

    def at(self, gpus: Integers) -> Floats:
        """Goodput on so many GPUs, of any shape."""
        return np.interp(gpus, self.gpus, self.goodput)

    def batch_at(self, gpus: int) -> int:
        """That on the largest known number that is no more; 0: none is legal there."""
        return int(self.batch[np.searchsorted(self.gpus, gpus, side="right") - 1])


class Best(NamedTuple):
    """The best batch of each job on each number of GPUs, [J, R] each.

    Attributes:
        goodput: samples a second, as many as at the initial batch would have done the same; 0 where no batch is legal.
        atomic: samples that a GPU does at once.
        accumulated: further such parts whose gradients are added before an update.
    """

    goodput: Floats
    atomic: Integers
    accumulated: Integers


def tried_gpus(total: int) -> Integers:
    """Numbers of GPUs for which the best batch is looked for: all up to 64, and beyond in about equal ratios, [R]."""
    beyond = np.rint(np.geomspace(1, max(total, 1), MOST_TRIED)).astype(np.int64)
    return np.unique(np.concatenate([np.arange(1, min(total, MOST_TRIED) + 1), beyond]))


def best(known: Known, nodes: Integers, gpus: Integers) -> Best:
    """The best batch on ``gpus`` [R] or [J, R], on so many ``nodes``, of batch sizes in equal ratios."""
    nodes, gpus = np.broadcast_arrays(np.atleast_2d(nodes), np.atleast_2d(gpus))
    nodes, gpus = nodes[:, :, None], gpus[:, :, None]  # [1 or J, R, 1]
    tried = _tried(known.limits, gpus)
    return _chosen(tried, goodput_at(known, nodes, gpus, tried.atomic, tried.accumulated))


def course(times: Times, batches: Batches, noise_scale: float, total: int) -> Course:
    """The best batch of one job on each number of GPUs, by what its steps take.

    Args:
        times: seconds of computing and of the whole step, by GPUs [R, 1] and samples that a GPU does at once [R, K].
        batches: that it may have.
        noise_scale: of its gradient, in samples; infinite where it isn't known: all samples are worth the same.
        total: GPUs that there are.
    """
    gpus = tried_gpus(total)
    tried = _tried(Limits(*(np.array([part]) for part in batches)), gpus[None, :, None])
    computing, whole = times(gpus[:, None], tried.atomic[0])
    samples = gpus[:, None] * tried.atomic[0] * (tried.accumulated[0] + 1)
    worth = efficiency(float(batches.initial), samples, noise_scale)
    best_of = _chosen(tried, (samples / (tried.accumulated[0] * computing + whole) * worth)[None])
    found = best_of.goodput[0]
    batch = np.minimum(gpus * best_of.atomic[0] * (best_of.accumulated[0] + 1), batches.largest)
    return Course(*(np.concatenate([[0], part]) for part in (gpus, found, np.where(found > 0, batch, 0))))


def efficiency(initial: float, batch: Floats, noise_scale: float) -> Floats:
    """What a sample of a batch is worth against one of the initial batch: (M₀ + φ)/(M + φ) (section 3.1)."""
    if not np.isfinite(noise_scale):
        return np.ones_like(batch)
    return np.asarray((initial + noise_scale) / (batch + noise_scale), np.float64)


class _Tried(NamedTuple):
    """Batches that are tried, and whether a job may have them, [J, R, K] each."""

    atomic: Floats
    accumulated: Floats
    legal: NDArray[np.bool_]


def _tried(limits: Limits, gpus: Integers) -> _Tried:
    initial, largest, low, high = (np.asarray(column)[:, None, None] for column in limits)
    first = np.maximum(initial, low * gpus)
    local = first * (largest / first) ** np.linspace(0, 1, TRIED) / gpus  # [J, R, K]
    accumulated = np.maximum(np.ceil(local / high - TOLERANCE) - 1, 0)
    alone = (gpus == 1) & (local > initial + TOLERANCE)
    accumulated = np.where(alone, np.maximum(accumulated, 1), accumulated)
    atomic = np.ceil(local / (accumulated + 1) - TOLERANCE)
    return _Tried(atomic, accumulated, (low <= atomic) & (atomic <= high) & (first <= largest))


def _chosen(tried: _Tried, value: Floats) -> Best:
    value = np.where(tried.legal, value, 0.0)
    at = value.argmax(axis=2)[:, :, None]
    every = (value, tried.atomic, tried.accumulated)
    goodput, atomic, accumulated = (np.take_along_axis(part, at, axis=2)[:, :, 0] for part in every)
    return Best(goodput, atomic.astype(np.int64), accumulated.astype(np.int64))


def goodput_at(known: Known, nodes: Integers, gpus: Integers, atomic: Floats, accumulated: Floats) -> Floats:
    """Goodput at given batches; all arrays broadcast to [J, R, K]."""
    seconds = step_seconds(known.seconds[:, None, None, :], nodes, gpus, atomic)
    computing = known.seconds[:, 0, None, None] + known.seconds[:, 1, None, None] * atomic
    total = gpus * atomic * (accumulated + 1)
    scale = total / np.asarray(known.initial)[:, None, None]
    squared, variance = known.squared[:, None, None], known.variance[:, None, None]
    useful = (variance + squared) / (variance / scale + squared) / scale
    return np.asarray(total / (accumulated * computing + seconds) * useful, np.float64)


def step_seconds(parameters: Floats, nodes: Integers, gpus: Integers, atomic: Floats) -> Floats:
    """Seconds of one optimiser step, T = (T_acc^γ + T_net^γ)^{1/γ}; ``parameters`` [..., 7], the rest broadcasts."""
    p = np.moveaxis(parameters, -1, 0)
    across, shared = nodes > 1, gpus > 1
    constant = np.where(across, p[2], np.where(shared, p[4], SMALL))
    slope = np.where(across, p[3], np.where(shared, p[5], SMALL))
    computing, network = p[0] + p[1] * atomic, constant + slope * np.maximum(gpus - 2, SMALL)
    larger, smaller = np.maximum(computing, network), np.minimum(computing, network)
    return np.asarray(larger * (1 + (smaller / larger) ** p[6]) ** (1 / p[6]), np.float64)


# Seconds of a training step by application, placement and batch: a belief, as tables of what members expect.
#
# An application's members are models that its measurements can't tell apart. Between the points of a table the
# logarithm is linear in the logarithms of GPUs, nodes and samples of a GPU; beyond it the nearest point answers. Of
# more samples of a GPU than were measured that would be too little: there seconds grow in proportion to them, as on
# GPUs that are busy.


NORMAL_90 = 1.6448536269514722  # standard normal quantile at 0.95
ONE_NODE, PACKED, SPREAD = range(3)
"""How GPUs are laid out in a table: on one node, on as few as they fill but two at least, on one node each."""
LAYOUTS = 3


class Throughput(NamedTuple):
    """M members, A applications, G numbers of GPUs, K samples of a GPU.

    Attributes:
        log_seconds: natural log of the median seconds of a step on GPUs of speed 1, [M, A, 3, G, K].
        gpus: ascending, from 1, [G].
        local: samples of a GPU, ascending, [A, K].
        bounds: of the log of one step about its median, 90 %, [A, 2].
        node: GPUs of a node, and nodes, for which the layouts were made, [2].
        largest: most GPUs on which each was measured, [A].
    """

    log_seconds: Floats
    gpus: Integers
    local: Floats
    bounds: Floats
    node: Integers
    largest: Integers


class Place(NamedTuple):
    """Where steps run, [n] each, or broadcast: GPUs, the nodes over which they are spread, samples of a GPU."""

    gpus: NDArray[np.number]
    nodes: NDArray[np.number]
    local: NDArray[np.number]


def layout_nodes(gpus: Integers, node: Integers) -> Integers:
    """Nodes of each layout, [3, G]; ``node``: GPUs of one, and how many there are."""
    packed = -(-gpus // node[0])
    several = np.minimum(2, gpus)
    spread = np.maximum(np.minimum(gpus, node[1]), several)
    return np.stack([np.ones_like(gpus), np.maximum(packed, several), np.maximum(spread, packed)])


def log_seconds(table: Throughput, application: Integers | int, place: Place) -> Floats:
    """What each member expects, [M, …]; ``application`` broadcasts with the parts of ``place``."""
    which, gpus, nodes, local = np.broadcast_arrays(np.asarray(application), *map(np.asarray, place))
    sizes = np.log(table.gpus)
    column, across = _between(np.log(np.maximum(gpus, 1)), sizes)
    row, along = _rows_between(np.log(np.maximum(local, 1e-9)), np.log(table.local), which)

    def at(layout: int) -> Floats:
        cells = table.log_seconds[:, :, layout]
        one, other = (
            (1 - along) * cells[:, which, more, row] + along * cells[:, which, more, row + 1]
            for more in (column, column + 1)
        )
        return np.asarray((1 - across) * one + across * other)

    packed, spread = layout_nodes(np.asarray(gpus, np.int64), table.node)[1:]
    more = np.log(np.maximum(nodes, 1) / packed) / np.log(np.maximum(spread / packed, 1 + 1e-9))
    share = np.clip(more, 0.0, 1.0)
    logs = np.where(nodes <= 1, at(ONE_NODE), (1 - share) * at(PACKED) + share * at(SPREAD))
    return logs + beyond(table, which, local)


def beyond(table: Throughput, application: Integers | int, local: NDArray[np.number]) -> Floats:
    """Log of samples of a GPU over the most that were measured; 0 up to these."""
    most = table.local[np.asarray(application), -1]
    return np.asarray(np.log(np.maximum(local, most)) - np.log(most), np.float64)


def interval(table: Throughput, application: Integers | int, place: Place) -> tuple[Floats, Floats, Floats]:
    """Median seconds of one step, and the bounds of its 90 % interval: members and measurements together.

    Beyond what was measured they are as far apart as what is expected there is from the nearest point.
    """
    logs = log_seconds(table, application, place)
    centre, further = logs.mean(axis=0), beyond(table, application, np.asarray(place.local))
    apart = np.hypot(NORMAL_90 * logs.std(axis=0), further)
    below, above = table.bounds[np.asarray(application)].T
    return np.exp(centre), np.exp(centre - np.hypot(below, apart)), np.exp(centre + np.hypot(above, apart))


def seconds(table: Throughput, application: Integers | int, place: Place) -> Floats:
    """Median seconds of one step, of all members together."""
    return np.exp(log_seconds(table, application, place).mean(axis=0))


def _between(values: Floats, points: Floats) -> tuple[Integers, Floats]:
    """The point at or below each value, and what share of the way to the next one it is; never beyond the points."""
    below = np.clip(np.searchsorted(points, values, side="right") - 1, 0, max(len(points) - 2, 0))
    return below, _share(values, points[below], points[np.minimum(below + 1, len(points) - 1)])


def _rows_between(values: Floats, points: Floats, which: Integers) -> tuple[Integers, Floats]:
    """As ``_between``, of points that differ by application, [A, K]."""
    own = points[which]  # […, K]
    below = np.clip((own <= values[..., None]).sum(axis=-1) - 1, 0, points.shape[1] - 2)
    low = np.take_along_axis(own, below[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(own, below[..., None] + 1, axis=-1)[..., 0]
    return below, _share(values, low, high)


def _share(values: Floats, low: Floats, high: Floats) -> Floats:
    return np.clip((values - low) / np.maximum(high - low, 1e-12), 0.0, 1.0)


# What jobs do to one another on shared nodes: how much longer steps of one application take beside each other one.


class Interference(NamedTuple):
    """B applications, the first of the model's; those of whom nothing is known are as others are.

    Attributes:
        log_slowdown: natural log of what the seconds of a step of the one (row) are multiplied by beside a job of the
            other (column), [B, B]; factors of several neighbours multiply.
        sd: of that, [B, B].
        usual: of a pair of which neither is known: the log and its standard deviation, [2]; zeros: nothing is known.
    """

    log_slowdown: Floats
    sd: Floats
    usual: Floats


def unknown() -> Interference:
    """Nothing is known of any: no slow-down."""
    return Interference(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(2))


def slowdown(known: Interference, application: int, beside: Sequence[int]) -> tuple[float, float, float]:
    """What seconds are multiplied by beside jobs of other applications, and the bounds of its 90 % interval."""
    count = len(known.log_slowdown)
    pairs = [
        (known.log_slowdown[application, other], known.sd[application, other])
        if max(application, other) < count
        else (known.usual[0], known.usual[1])
        for other in beside
    ]
    log, variance = sum(log for log, _ in pairs), sum(sd**2 for _, sd in pairs)
    half = NORMAL_90 * float(np.sqrt(variance))
    middle, low, high = np.exp([log, log - half, log + half]).tolist()
    return middle, low, high


# What one job has measured of itself, and the throughput that is fitted to that.


TINY = 1e-8  # seconds
OVERLAPS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
TOWARDS_ONE = 1e-3
SURPRISE = 0.02
MORE_ACROSS = 1.1  # nodes synchronise at least so much more slowly than GPUs of one do

ProfilePlace = tuple[int, int, int]
"""Nodes, GPUs, and samples that a GPU does at once."""
ProfileTimes = tuple[float, float]
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
        self._seen: dict[ProfilePlace, ProfileTimes] = {}
        self._fitted: dict[ProfilePlace, ProfileTimes] = {}

    def measure(self, place: ProfilePlace, times: ProfileTimes) -> bool:
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


def foreseen(parameters: Floats, known: Iterable[ProfilePlace], place: ProfilePlace, times: ProfileTimes) -> bool:
    """Whether a measurement is what was expected, by others that say something of the same parameters."""
    if not any(_like(place) == _like(other) for other in known):
        return False
    computing = parameters[0] + parameters[1] * place[2]
    whole = float(step_seconds(parameters, *(np.array(float(part)) for part in place)))
    return bool(abs(np.log(whole / times[0])) < SURPRISE and abs(np.log(computing / times[1])) < SURPRISE)


def _like(place: ProfilePlace) -> tuple[bool, bool, bool]:
    """Which of the parameters a measurement says something of."""
    return place[0] > 1, place[1] > 1, place[1] > 2


def fit(measured: dict[ProfilePlace, ProfileTimes]) -> Floats:
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
