"""Seconds per step by GPUs, nodes, batch and neighbours, and goodput."""

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
"""Function of GPUs, and samples per GPU and pass, that returns seconds of computing and seconds of a whole step."""


class Batches(NamedTuple):
    """Limits of one job's batch in samples: initial and largest over all GPUs, fewest and most per GPU and pass."""

    initial: int
    largest: int
    least_local: int
    most_local: int


class Limits(NamedTuple):
    """Batch limits of J jobs in samples, [J] each: initial and largest over all GPUs, smallest and largest per GPU and
    pass."""

    initial: Integers
    largest: Integers
    smallest_local: Integers
    largest_local: Integers


class Course(NamedTuple):
    """Goodput of one job and its best batch, by R numbers of GPUs, [R] each.

    Attributes:
        gpus: numbers of GPUs, ascending from 0; goodput is interpolated linearly.
        goodput: samples per second at the efficiency of the initial batch.
        batch: samples per step over all GPUs; 0: no batch is allowed.
    """

    gpus: Integers
    goodput: Floats
    batch: Integers

    def at(self, gpus: Integers) -> Floats:
        """Return the goodput in samples per second on ``gpus``, of the same shape; the last entry's beyond the
        table."""
        return np.interp(gpus, self.gpus, self.goodput)

    def batch_at(self, gpus: int) -> int:
        """Return the best batch in samples at the largest tabulated number of GPUs up to ``gpus``; 0: no batch is
        allowed."""
        return int(self.batch[np.searchsorted(self.gpus, gpus, side="right") - 1])


class Best(NamedTuple):
    """Best batch of each of J jobs on each of R numbers of GPUs, [J, R] each.

    Attributes:
        goodput: samples per second at the efficiency of the initial batch; 0: no batch is allowed.
        atomic: samples per GPU and pass.
        accumulated: further passes whose gradients are accumulated before an update.
    """

    goodput: Floats
    atomic: Integers
    accumulated: Integers


def course(times: Times, batches: Batches, noise_scale: float, total: int) -> Course:
    """Return the best batch and goodput of one job by number of GPUs, up to ``total``.

    Args:
        times: seconds of computing and of the whole step, by R numbers of GPUs [R, 1] and K samples per GPU and pass
            [R, K].
        batches: limits of the job's batch, in samples.
        noise_scale: gradient noise scale, in samples; infinite: unknown, and all samples count the same.
        total: GPUs of the cluster.
    """
    # Numbers of GPUs to tabulate, ascending, [sizes]: all up to 64, then about equal ratios up to ``total``
    beyond = np.rint(np.geomspace(1, max(total, 1), MOST_TRIED)).astype(np.int64)
    gpus = np.unique(np.concatenate([np.arange(1, min(total, MOST_TRIED) + 1), beyond]))
    tried = candidates(Limits(*(np.array([part]) for part in batches)), gpus[None, :, None])
    samples, rate = _rates(times, tried, gpus[None])
    best_of = choose_best(tried, rate * efficiency(float(batches.initial), samples, noise_scale))
    goodput = best_of.goodput[0]
    batch = np.minimum(gpus * best_of.atomic[0] * (best_of.accumulated[0] + 1), batches.largest)
    return Course(*(np.concatenate([[0], part]) for part in (gpus, goodput, np.where(goodput > 0, batch, 0))))


def goodputs(times: Times, limits: Limits, noise_scales: Floats, gpus: Integers) -> Floats:
    """Return the goodput at the best batch of J jobs of one application at S noise scales each, in samples [J, S], on R
    numbers of GPUs, at least 1 [J, R]; 0: no batch is allowed, [J, S, R]. ``times``: seconds of computing and of the
    step."""
    # jobs often share limits and GPUs, and step times cost the most
    each, own = np.unique(np.column_stack([*limits, gpus]), axis=0, return_inverse=True)
    tried = candidates(Limits(*each[:, :4].T), each[:, 4:, None])
    (samples, rate), noise = _rates(times, tried, each[:, 4:]), noise_scales[..., None, None]
    value = np.where(tried.legal, rate, 0.0)[own, None] / (samples[own, None] + noise)
    return np.asarray(value.max(axis=3) * (limits.initial[:, None, None] + noise_scales[..., None]), np.float64)


def _rates(times: Times, tried: Candidates, gpus: Integers) -> tuple[Floats, Floats]:
    """Return samples per step and samples per second of the ``tried`` batches on ``gpus`` [J, R], [J, R, K] each."""
    shape = tried.atomic.shape
    computing, whole = (one.reshape(shape) for one in times(gpus.reshape(-1, 1), tried.atomic.reshape(-1, shape[2])))
    samples = gpus[..., None] * tried.atomic * (tried.accumulated + 1)
    return samples, np.asarray(samples / (tried.accumulated * computing + whole), np.float64)


def efficiency(initial: float, batch: Floats, noise_scale: float) -> Floats:
    """Return the statistical efficiency of ``batch`` samples relative to ``initial`` samples, of the shape of
    ``batch``. It is (M₀ + φ)/(M + φ) with noise scale φ in samples; 1 if φ isn't finite (Pollux, Qiao et al., 2021,
    section 3.1)."""
    if not np.isfinite(noise_scale):
        return np.ones_like(batch)
    return np.asarray((initial + noise_scale) / (batch + noise_scale), np.float64)


class Candidates(NamedTuple):
    """K candidate batches, [J, R, K], of J jobs on R numbers of GPUs: samples per pass, further passes, whether
    allowed."""

    atomic: Floats
    accumulated: Floats
    legal: NDArray[np.bool_]


def candidates(limits: Limits, gpus: Integers) -> Candidates:
    """Return the batches to try on ``gpus`` [1 or J, R, 1], in equal ratios from the smallest to the largest."""
    initial, largest, low, high = (np.asarray(column)[:, None, None] for column in limits)
    first = np.maximum(initial, low * gpus)
    local = first * (largest / first) ** np.linspace(0, 1, TRIED) / gpus  # [J, R, K]
    accumulated = np.maximum(np.ceil(local / high - TOLERANCE) - 1, 0)
    alone = (gpus == 1) & (local > initial + TOLERANCE)
    accumulated = np.where(alone, np.maximum(accumulated, 1), accumulated)
    atomic = np.ceil(local / (accumulated + 1) - TOLERANCE)
    return Candidates(atomic, accumulated, (low <= atomic) & (atomic <= high) & (first <= largest))


def choose_best(tried: Candidates, value: Floats) -> Best:
    """For each of J jobs on each of R numbers of GPUs, return the one of K batches whose ``value`` (goodput, samples
    per second, [J, R, K]) is largest among the allowed ones; if none is allowed, the first, with goodput 0."""
    value = np.where(tried.legal, value, 0.0)
    at = value.argmax(axis=2)[:, :, None]
    every = (value, tried.atomic, tried.accumulated)
    goodput, atomic, accumulated = (np.take_along_axis(part, at, axis=2)[:, :, 0] for part in every)
    return Best(goodput, atomic.astype(np.int64), accumulated.astype(np.int64))


def step_seconds(parameters: Floats, nodes: Integers, gpus: Integers, atomic: Floats) -> Floats:
    """Return seconds of a pass and synchronisation, T = (T_acc^γ + T_net^γ)^{1/γ} (Pollux, section 3.2). ``parameters``
    [..., 7]: α and β of computing, across nodes and within one, and γ; ``atomic``: samples per GPU; all broadcast."""
    p = np.moveaxis(parameters, -1, 0)
    across, shared = nodes > 1, gpus > 1
    constant = np.where(across, p[2], np.where(shared, p[4], SMALL))
    slope = np.where(across, p[3], np.where(shared, p[5], SMALL))
    computing, network = p[0] + p[1] * atomic, constant + slope * np.maximum(gpus - 2, SMALL)
    larger, smaller = np.maximum(computing, network), np.minimum(computing, network)
    return np.asarray(larger * (1 + (smaller / larger) ** p[6]) ** (1 / p[6]), np.float64)


# Seconds of a training step by application, placement and batch, as an ensemble of tables.
#
# The members of the ensemble are models that the measurements don't distinguish. Between points of a table the
# logarithm is linear in the logarithms of GPUs, nodes and samples per GPU; outside, the nearest point holds, except
# that seconds grow in proportion to samples per GPU beyond the most measured, as on busy GPUs.


NORMAL_90 = 1.6448536269514722  # standard normal quantile at 0.95
ONE_NODE, PACKED, SPREAD = range(3)
"""Placements in a table: on one node; on as few as possible but at least two; on one node per GPU."""
LAYOUTS = 3


class Throughput(NamedTuple):
    """Ensemble of M tables of step times for A applications, by G numbers of GPUs and K samples per GPU.

    Attributes:
        log_seconds: natural logarithm of the median seconds per step on GPUs of speed 1, by placement, [M, A, 3, G, K].
        gpus: numbers of GPUs, ascending from 1, [G].
        local: samples per GPU, ascending, [A, K].
        bounds: distances in log seconds of the 90 % interval's bounds from the median, [A, 2].
        node: GPUs per node, and number of nodes, for which the placements were computed, [2].
        largest: most GPUs measured, [A].
    """

    log_seconds: Floats
    gpus: Integers
    local: Floats
    bounds: Floats
    node: Integers
    largest: Integers


class Place(NamedTuple):
    """Placement of n steps: numbers of GPUs, numbers of nodes, and samples per GPU, [n] each or broadcast."""

    gpus: NDArray[np.number]
    nodes: NDArray[np.number]
    local: NDArray[np.number]


def layout_nodes(gpus: Integers, node: Integers) -> Integers:
    """Return the number of nodes of each of the three placements of G numbers of GPUs, [3, G]. ``node``: GPUs per node,
    and number of nodes."""
    packed = -(-gpus // node[0])
    several = np.minimum(2, gpus)
    spread = np.maximum(np.minimum(gpus, node[1]), several)
    return np.stack([np.ones_like(gpus), np.maximum(packed, several), np.maximum(spread, packed)])


def log_seconds(table: Throughput, application: Integers | int, place: Place) -> Floats:
    """Return the natural logarithm of seconds per step by each of M members, [M, …], where … is the shape to which
    ``application`` (positions) and ``place`` broadcast."""
    which, gpus, nodes, local = np.broadcast_arrays(np.asarray(application), *map(np.asarray, place))
    sizes = np.log(table.gpus)
    # Index of the point at or below each value, and the fraction 0 to 1 of the way to the next, shaped as ``values``
    values = np.log(np.maximum(gpus, 1))
    below = np.clip(np.searchsorted(sizes, values, side="right") - 1, 0, max(len(sizes) - 2, 0))
    column, across = (below, _share(values, sizes[below], sizes[np.minimum(below + 1, len(sizes) - 1)]))
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
    return logs + log_extrapolation(table, which, local)


def log_extrapolation(table: Throughput, application: Integers | int, local: NDArray[np.number]) -> Floats:
    """Return the natural logarithm of the ratio of ``local`` to the most samples per GPU measured, of the shape of
    ``local``; 0 up to the most."""
    most = table.local[np.asarray(application), -1]
    return np.asarray(np.log(np.maximum(local, most)) - np.log(most), np.float64)


def interval(table: Throughput, application: Integers | int, place: Place) -> tuple[Floats, Floats, Floats]:
    """Return the median seconds per step and both bounds of its 90 % interval, each of the arguments' broadcast shape.
    The interval combines disagreement of members and measurement noise; beyond the measured samples per GPU also the
    extrapolation."""
    logs = log_seconds(table, application, place)
    centre, further = logs.mean(axis=0), log_extrapolation(table, application, np.asarray(place.local))
    apart = np.hypot(NORMAL_90 * logs.std(axis=0), further)
    below, above = table.bounds[np.asarray(application)].T
    return np.exp(centre), np.exp(centre - np.hypot(below, apart)), np.exp(centre + np.hypot(above, apart))


def seconds(table: Throughput, application: Integers | int, place: Place) -> Floats:
    """Return the median seconds per step, by the mean of the members' logarithms, of the arguments' broadcast shape."""
    return np.exp(log_seconds(table, application, place).mean(axis=0))


def _rows_between(values: Floats, points: Floats, which: Integers) -> tuple[Integers, Floats]:
    """Return, of the shape of ``values``, the index of the point at or below each value, and the fraction 0 to 1 of the
    way to the next. ``points`` has K points of each application, [A, K]; ``which`` is the application of each value."""
    own = points[which]  # […, K]
    below = np.clip((own <= values[..., None]).sum(axis=-1) - 1, 0, points.shape[1] - 2)
    low = np.take_along_axis(own, below[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(own, below[..., None] + 1, axis=-1)[..., 0]
    return below, _share(values, low, high)


def _share(values: Floats, low: Floats, high: Floats) -> Floats:
    return np.clip((values - low) / np.maximum(high - low, 1e-12), 0.0, 1.0)


# Interference: factors on step time for pairs of applications on shared nodes.


class Interference(NamedTuple):
    """Slowdowns between B applications, the first ones of the model.

    Attributes:
        log_slowdown: natural logarithm of the factor on the row application's step time beside a job of the column
            application; factors multiply, [B, B].
        sd: standard deviation of ``log_slowdown``, [B, B].
        usual: mean and standard deviation of the logarithm for other pairs, [2]; zeros: unknown.
    """

    log_slowdown: Floats
    sd: Floats
    usual: Floats


def no_interference() -> Interference:
    """Return the interference before any measurement: no applications, no slowdown."""
    return Interference(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(2))


def slowdown(known: Interference, application: int, beside: Sequence[int]) -> tuple[float, float, float]:
    """Return the factor on an application's step time beside jobs of the applications ``beside``, and its 90 % bounds.
    Applications are positions in the model."""
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


# Measurements of one job, and the throughput model fitted to them.


TINY = 1e-8  # seconds
OVERLAPS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
TOWARDS_ONE = 1e-3
SURPRISE = 0.02
MORE_ACROSS = 1.1  # nodes synchronise at least so much more slowly than GPUs of one do

ProfilePlace = tuple[int, int, int]
"""Nodes, GPUs, and samples per GPU and pass."""
ProfileTimes = tuple[float, float]
"""Seconds of a step, and seconds of computing in it."""


def matches_prediction(
    parameters: Floats, known: Iterable[ProfilePlace], place: ProfilePlace, times: ProfileTimes
) -> bool:
    """Whether a measurement is within the share ``SURPRISE`` of its prediction, and ``known`` has one that informs the
    same parameters. ``parameters`` are those of the throughput model, [7]; ``times`` seconds of the step, and of
    computing."""
    if not any(_informed_parameters(place) == _informed_parameters(other) for other in known):
        return False
    computing = parameters[0] + parameters[1] * place[2]
    whole = float(step_seconds(parameters, *(np.array(float(part)) for part in place)))
    return bool(abs(np.log(whole / times[0])) < SURPRISE and abs(np.log(computing / times[1])) < SURPRISE)


def _informed_parameters(place: ProfilePlace) -> tuple[bool, bool, bool]:
    """Return which parameters a measurement informs: whether it is across nodes, on several GPUs, on more than two
    GPUs."""
    return place[0] > 1, place[1] > 1, place[1] > 2


def fit(measured: dict[ProfilePlace, ProfileTimes]) -> Floats:
    """Fit the throughput parameters, [7], to at least one measured step; costs never observed are almost 0, as in
    Pollux. The model is Pollux's, the search is not: for given γ, the seconds of synchronisation T_net = (T^γ −
    T_acc^γ)^{1/γ}, with T of the step and T_acc of computing, are linear in the GPUs, so each of several γ is tried
    with lines of least squared relative error."""
    places, times = np.array([*measured], np.float64), np.array([*measured.values()], np.float64)
    nodes, gpus, batch = places.T
    computing = _computing(batch, times[:, 1])
    across, shared = nodes > 1, (nodes == 1) & (gpus > 1)
    fit, least = np.zeros(7), np.inf
    for gamma in OVERLAPS:
        network = np.maximum(times[:, 0] ** gamma - times[:, 1] ** gamma, 0.0) ** (1 / gamma)
        lines = [_network(gpus[where] - 2, network[where], times[where, 0]) for where in (across, shared)]
        tried = np.concatenate([computing, *lines, [gamma]])
        errors = np.log(step_seconds(tried, nodes, gpus, batch) / times[:, 0])
        error = float(np.sqrt(np.mean(errors**2))) + TOWARDS_ONE * (gamma - 1) ** 2
        if error < least:
            fit, least = tried, error
    if not across.any():
        fit[2:4] = np.maximum(fit[2:4], MORE_ACROSS * fit[4:6])
    return fit


def _computing(batch: Floats, seconds: Floats) -> Floats:
    """Return the constant and slope, [2], of ``seconds`` [n] of computing over ``batch`` [n], samples per GPU; for a
    single batch size, each makes up half of the seconds."""
    if len(np.unique(batch)) == 1:
        half = float(seconds.mean()) / 2
        return np.array([half, half / float(batch[0])])
    return np.maximum(_line(batch, seconds, seconds), TINY)


def _network(more: Floats, seconds: Floats, scale: Floats) -> Floats:
    """Return constant and slope, [2], of synchronisation ``seconds`` [n] over ``more`` [n], GPUs beyond two, by least
    squared errors over ``scale`` [n]; ``TINY`` if n is 0."""
    if not len(more):
        return np.array([TINY, TINY])
    if len(np.unique(more)) == 1:
        return np.array([max(float(seconds.mean()), TINY), TINY])
    return np.maximum(_line(more, seconds, scale), TINY)


def _line(x: Floats, y: Floats, scale: Floats) -> Floats:
    """Return [constant, slope], at least 0, of least squared errors of ``y`` [n] by ``x`` [n], over ``scale`` [n]."""
    design, wanted = np.stack([1 / scale, x / scale], axis=1), y / scale
    both = np.linalg.lstsq(design, wanted)[0]
    if (both >= 0).all():
        return np.asarray(both, np.float64)
    norms = np.maximum((design**2).sum(axis=0), TINY**2)
    alone = np.diag(np.maximum(design.T @ wanted, 0.0) / norms)
    errors = ((design @ alone.T - wanted[:, None]) ** 2).sum(axis=0)
    return np.asarray(alone[errors.argmin()], np.float64)


def sizes_of(gpus: Integers, node: int) -> Integers:
    """Return the number of nodes that ``gpus`` fill, at least 1, of the same shape; ``node``: GPUs per node."""
    return np.maximum(-(-gpus // max(1, node)), 1)
