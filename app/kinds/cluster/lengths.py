"""Training lengths of jobs: the gain that their learning curves still promise, and the distribution of durations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.arrivals import APPLICATION, DATA, DURATION
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.throughput import NORMAL_90

# Remaining gain of jobs by their learning curves so far: current level, expected gain, and its interval.
#
# Values rise: losses are negated. Two families: *alike*, a normal distribution of whole curves of an application,
# learned from samples and conditioned on the job's points; and *parametric*, without learning: weighted least squares
# of c − a·f, where f is 1/(x + b) (Optimus, Peng et al., EuroSys 2018, equation 1), a power or an exponential, averaged
# over a grid of shapes by likelihood. Recent points weigh more.


FAMILIES = ("alike", "parametric")
ALIKE, PARAMETRIC = range(2)
AGES = tuple(tenth / 10 for tenth in range(10))
"""Completed fractions of a job from each of which the interval has its own width factor."""
POINTS = 24
"""Most points kept of a curve; when full, every second is dropped."""
SMALLEST = 1e-12
RECENT = 3.0
"""A point's weight halves for each 1/``RECENT`` of the curve's points that come after it."""
OFFSETS = (0.02, 0.05, 0.1, 0.15, 0.25, 0.4, 0.6, 1.0, 2.0)
POWERS = (0.25, 0.5, 1.0)
SCALES = (0.05, 0.1, 0.25, 0.5, 1.0)
FEWEST = 4
"""Fewest points for the parametric family."""
ASTRAY = 0.5
"""Standard deviation of a job's final value about its parametric prediction, as a fraction of its gain so far, per unit
of ln(last iteration / present iteration): learning rates drop, and curves change shape. With it 90 % intervals hold for
nine tenths of the development curves of ``benchmarks.cluster_convergence``, on average over applications."""


class LearningCurves(NamedTuple):
    """C classes of curves, one per application and direction; E grid points, R directions of variation.

    Attributes:
        application: position of the application, [C].
        rises: whether larger values are better in the original unit, [C].
        grid: iterations, ascending, [C, E].
        mean: mean curve, in rising values (losses negated), [C, E].
        basis: loadings on R independent standard normal factors, [C, E, R].
        noise: residual variance, [C, E].
        family: index into ``FAMILIES`` used for the class, [C].
        factor: calibration factor of the half-width of the 90 % interval, by family and completed fraction (``AGES``),
            from ended jobs; NaN: too few have ended, [C, 2, 10].
    """

    application: Integers
    rises: NDArray[np.bool_]
    grid: Floats
    mean: Floats
    basis: Floats
    noise: Floats
    family: Integers
    factor: Floats


class CurvePoints(NamedTuple):
    """Learning curves of J jobs with up to P points each.

    Attributes:
        iteration: iterations, ascending; NaN after the last point, [J, P].
        value: measured values, larger is better; NaN after the last point, [J, P].
    """

    iteration: Floats
    value: Floats


class RemainingGain(NamedTuple):
    """Predicted remaining gain of J jobs, in the unit of their (rising) values; NaN: unknown.

    Attributes:
        level: current value without noise, [J].
        gain: expected increase until the last iteration, [J].
        half: half-width of the 90 % interval of the measured gain, noise included, [J]; NaN from ``ahead`` if too few
            jobs of the class have ended to calibrate it.
    """

    level: Floats
    gain: Floats
    half: Floats


def ahead(curves: LearningCurves, which: Integers, curve_points: CurvePoints, until: Floats) -> RemainingGain:
    """Predict the remaining gain of J jobs until their last iterations, by the family of each job's class.

    Args:
        curves: classes of learning curves.
        which: position of each job's class, [J]; −1: no class, so the family is parametric.
        curve_points: points of the jobs so far.
        until: last iteration of each job, [J].
    """
    alike = (which >= 0) & (np.append(curves.family, PARAMETRIC)[which] == ALIKE)
    done = np.max(np.where(np.isfinite(curve_points.value), curve_points.iteration, 0.0), axis=1, initial=0.0) / until
    age = np.searchsorted(AGES, done + SMALLEST, side="right") - 1
    left = RemainingGain(*np.full((len(RemainingGain._fields), len(which)), np.nan))
    for own in np.unique(np.where(alike, which, -1)).tolist():
        at = np.flatnonzero(alike & (which == own) if own >= 0 else ~alike)
        part = CurvePoints(curve_points.iteration[at], curve_points.value[at])
        result = like_others(curves, own, part, until[at]) if own >= 0 else parametric(part, until[at])
        # Calibration factors of C classes and, in the last row, NaN for no class, [C + 1, 2, 10]. Factors of another
        # shape, from an older model, are NaN.
        count, shape = len(curves.family), (len(FAMILIES), len(AGES))
        factor = curves.factor if curves.factor.shape[1:] == shape else np.full((count, *shape), np.nan)
        half = (
            result.half
            * np.concatenate([factor, np.full((1, *shape), np.nan)])[
                which[at], ALIKE if own >= 0 else PARAMETRIC, age[at]
            ]
        )
        for column, values in zip(left, (result.level, result.gain, half), strict=True):
            column[at] = values
    return left


def thinned_indices(count: int) -> Integers:
    """Return the indices, ascending, of at most ``POINTS`` points that are kept of a curve of ``count`` points."""
    points = list[int]()
    for point in range(count):
        points = [*(points[::2] if len(points) == POINTS else points), point]
    return np.array(points, np.int64)


def like_others(curves: LearningCurves, own: int, curve_points: CurvePoints, until: Floats) -> RemainingGain:
    """Predict the remaining gain of J jobs by the curves of class ``own``, conditioned on the points ``curve_points``.
    ``until`` has the last iteration of each job, [J]; iterations beyond the class's grid add no gain."""
    grid, parts = curves.grid[own], np.column_stack([curves.mean[own], curves.noise[own], curves.basis[own]])
    there = np.isfinite(curve_points.value)
    mean, noise, basis = _at(grid, parts, np.where(there, curve_points.iteration, grid[0]))
    weight = np.where(there, 1 / noise, 0.0)
    precision = np.eye(basis.shape[-1]) + np.einsum("jp,jpr,jps->jrs", weight, basis, basis)
    pull = np.einsum("jp,jpr->jr", weight * (np.where(there, curve_points.value, 0.0) - mean), basis)
    spread = np.linalg.inv(precision)
    factors = np.einsum("jrs,js->jr", spread, pull)
    last = np.max(np.where(there, curve_points.iteration, grid[0]), axis=1, initial=grid[0])
    now, _, now_basis = (part[:, 0] for part in _at(grid, parts, last[:, None]))
    end, blur, end_basis = (part[:, 0] for part in _at(grid, parts, np.maximum(until, last)[:, None]))
    more = end_basis - now_basis
    variance = np.einsum("jr,jrs,js->j", more, spread, more) + blur
    level = now + np.einsum("jr,jr->j", now_basis, factors)
    return RemainingGain(level, end - now + np.einsum("jr,jr->j", more, factors), NORMAL_90 * np.sqrt(variance))


def _at(grid: Floats, parts: Floats, where: Floats) -> tuple[Floats, Floats, Floats]:
    """Interpolate a class's mean and noise, [J, P] each, and basis, [J, P, R], linearly at the iterations ``where``
    [J, P]. ``parts`` has mean, noise and the R columns of the basis at the E grid points, [E, 2 + R]."""
    columns = [np.interp(where, grid, column) for column in parts.T]
    return columns[0], columns[1], np.stack(columns[2:], axis=-1)


def parametric(curve_points: CurvePoints, until: Floats) -> RemainingGain:
    """Predict the remaining gain of J jobs until iteration ``until`` [J] from each job's own curve; NaN below 4 points.
    ``half`` includes ``ASTRAY``, the usual deviation of curves from their own forecast; ``ahead`` multiplies it by the
    class's calibration factor."""
    there = np.isfinite(curve_points.value)
    number = there.sum(axis=1)
    extent = np.maximum(np.max(np.where(there, curve_points.iteration, 0.0), axis=1, initial=0.0), SMALLEST)
    place = np.maximum(np.where(there, curve_points.iteration, 1.0) / extent[:, None], 1e-3)  # [J, P], 1 at the last
    weight = np.where(
        there, 2.0 ** (-RECENT * (number[:, None] - np.cumsum(there, axis=1)) / number[:, None].clip(1)), 0
    )
    shapes, last, end = _shapes(place), _shapes(np.ones((len(number), 1)))[:, :, 0], _shapes((until / extent)[:, None])
    offset, slope, error = _lines(shapes, np.where(there, curve_points.value, 0.0)[:, None, :], weight[:, None, :])
    effective = weight.sum(axis=1)
    likely = -number[:, None] / 2 * np.log(error + SMALLEST * (error.max(axis=1, keepdims=True) + SMALLEST))
    share = np.exp(likely - likely.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    more = slope * (end[:, :, 0] - last)
    gain = (share * more).sum(axis=1)
    noise = (share * error).sum(axis=1) * (1 + 1 / np.maximum(effective, 1.0))  # of the end, and of the level
    lowest = np.min(curve_points.value, axis=1, where=there, initial=np.inf)
    gained = np.maximum(np.max(curve_points.value, axis=1, where=there, initial=-np.inf) - lowest, 0.0)
    astray = ASTRAY * gained * np.log(np.maximum(until / extent, 1.0))
    apart = (share * (more - gain[:, None]) ** 2).sum(axis=1) + noise + astray**2
    level = (share * (offset + slope * last)).sum(axis=1)
    enough = number >= FEWEST
    return RemainingGain(*(np.where(enough, part, np.nan) for part in (level, gain, NORMAL_90 * np.sqrt(apart))))


def _shapes(place: Floats) -> Floats:
    """Return the values of S decreasing shapes, [J, S, P], at ``place`` [J, P], fractions of the range of iterations
    seen."""
    where = np.maximum(place, 1e-3)
    results = [1 / (where + offset) for offset in OFFSETS] + [where**-power for power in POWERS]
    return np.stack([*results, *(np.exp(-where / scale) for scale in SCALES)], axis=1)


def _lines(shapes: Floats, values: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Fit P ``values`` of each of J jobs as offset + slope · shape for each of S shapes, by weighted least squares.
    Return offset, slope (at most 0) and weighted mean square error, [J, S] each. ``shapes`` has the shapes' values at
    the points, [J, S, P]; ``values`` and ``weight`` broadcast to it."""
    total = np.maximum(weight.sum(axis=-1), SMALLEST)
    middle, centre = (weight * shapes).sum(axis=-1) / total, (weight * values).sum(axis=-1) / total
    across, above = shapes - middle[..., None], values - centre[..., None]
    spread = np.maximum((weight * across**2).sum(axis=-1), SMALLEST)
    slope = np.minimum((weight * across * above).sum(axis=-1) / spread, 0.0)
    error = (weight * (above - slope[..., None] * across) ** 2).sum(axis=-1) / total
    return centre - slope * middle, slope, error


# Durations of jobs by application, on the GPUs they request, from a job log.


USUAL_SECONDS = 3600.0
"""Duration of a job in seconds, when no log has any."""
LARGEST_POWER = 2.0


class Lengths:
    """Durations and data sizes of past jobs of A applications; index A, and −1, stands for all of them together.

    Args:
        jobs: n past jobs with the columns of ``Arrivals.jobs``, [n, 6] or more.
        applications: number of applications, A.

    Attributes:
        usual: median duration, seconds, [A + 1].
        data: median data size in the application's unit, NaN: unknown, [A + 1].
        power: exponent of duration over data size; 1 without data sizes, [A + 1].
    """

    def __init__(self, jobs: Floats, applications: int) -> None:
        known = jobs[~np.isnan(jobs[:, DURATION])]
        own = [known[known[:, APPLICATION] == one] for one in range(applications)]
        each = [some if len(some) else known for some in own] + [known]
        self._seconds = [np.sort(some[:, DURATION]) for some in each]
        self.usual = np.array([float(np.median(one)) if len(one) else USUAL_SECONDS for one in self._seconds])
        sized = [some[some[:, DATA] > 0] for some in (*own, known[:0])]  # sizes are in a unit for each application
        self.data = np.array([float(np.median(some[:, DATA])) if len(some) else np.nan for some in sized])
        self.power = np.array([_power(some) for some in sized])

    def scale(self, application: Integers, data: Floats) -> Floats:
        """Return the factor by which the data size of each of J jobs changes its usual duration, [J]; 1 if unknown.
        ``application`` has positions, and ``data`` sizes in the application's unit, [J] each."""
        return np.asarray(self.relative_size(application, data) ** self.power[application], np.float64)

    def relative_size(self, application: Integers, data: Floats) -> Floats:
        """Return the data size of each of J jobs over its application's median, [J]; 1 if either is unknown."""
        more = data / self.data[application]
        return np.where(more > 0, more, 1.0)

    def remaining_seconds(self, application: Integers, ran: Floats) -> Floats:
        """Return the expected remaining seconds, [J], of J jobs that have run for ``ran`` seconds [J]. It is the mean
        over past jobs of the application that ran longer. If none did, it is ``ran`` again; without any past jobs, at
        least ``USUAL_SECONDS``."""
        result = np.empty(len(ran))
        for one in np.unique(application).tolist():
            at, seconds = np.flatnonzero(application == one), self._seconds[one]
            rest = np.maximum(ran[at], 0.0 if len(seconds) else USUAL_SECONDS)
            result[at] = mean_left(seconds, ran[at], rest)
        return result


def mean_left(known: Floats, done: Floats, otherwise: Floats) -> Floats:
    """Return the mean of ``known`` minus ``done`` over the values larger than ``done``, for each of J values ``done``,
    [J]. ``known`` ascends; where no value is larger, the result is ``otherwise`` [J]."""
    more = len(known) - np.searchsorted(known, done, side="right")
    sums = np.append(np.cumsum(known[::-1])[::-1], 0.0)[len(known) - more]
    return np.asarray(np.where(more > 0, sums / np.maximum(more, 1) - done, otherwise), np.float64)


def _power(jobs: Floats) -> float:
    """Return the least squares slope of ln(seconds) over ln(data size), shrunk towards 1, from 0 to ``LARGEST_POWER``.
    ``jobs`` has the columns of ``Arrivals.jobs``; without a row the slope is 1."""
    if not len(jobs):
        return 1.0
    data, seconds = np.log(jobs[:, DATA]), np.log(np.maximum(jobs[:, DURATION], 1.0))
    data, seconds = data - data.mean(), seconds - seconds.mean()
    return float(np.clip((data @ seconds + 1.0) / (data @ data + 1.0), 0.0, LARGEST_POWER))
