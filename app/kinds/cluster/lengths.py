"""How long jobs train: learning curves and the distribution of lengths."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.arrivals import APPLICATION, DATA, DURATION
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.throughput import NORMAL_90

# What jobs have still to gain, by their learning curves so far: a level, the gain that is left, and its interval.
#
# Values rise: losses are taken negative. Two families: *alike*, a normal distribution of whole curves of an application
# that were learned, conditioned on what a job has shown; and *parametric*, for which nothing need be learned: least
# squares of c − a·f, f being 1/(x + b) (Optimus, Peng et al., EuroSys 2018, its equation 1), a power or an exponential,
# recent points weighing more, over a grid of shapes that count by how well they fit.


FAMILIES = ("alike", "parametric")
ALIKE, PARAMETRIC = range(2)
AGES = tuple(tenth / 10 for tenth in range(10))
"""Parts of a job that are done, from each of which on intervals have a width of their own."""
POINTS = 24
"""Of a curve that are kept; of longer ones every second goes, again and again."""
SMALLEST = 1e-12
RECENT = 3.0
"""Points count half, a ``RECENT``-th of what there is further back."""
OFFSETS = (0.02, 0.05, 0.1, 0.15, 0.25, 0.4, 0.6, 1.0, 2.0)
POWERS = (0.25, 0.5, 1.0)
SCALES = (0.05, 0.1, 0.25, 0.5, 1.0)
FEWEST = 4
"""Points before the parametric family says anything."""
ASTRAY = 0.5
"""Standard deviation of ends about what a job's own curve says, in parts of what the job has gained so far, where e
times as many iterations are to come: learning rates drop, and curves leave their shape. Of the curves on which
``benchmarks.cluster_convergence`` develops nine tenths of the ends are then within 90 % intervals, on average over
applications; of one that begins slowly, fewer.
"""


class LearningCurves(NamedTuple):
    """C classes of curves, each of an application and a direction; E points of a grid, R directions of variation.

    Attributes:
        application: position of each, [C].
        rises: whether larger is better in its own unit, [C].
        grid: iterations, ascending, [C, E].
        mean: of curves, rising, [C, E].
        basis: by which they vary, for independent standard normal factors, [C, E, R].
        noise: variance about that, [C, E].
        family: which of ``FAMILIES`` answers, [C].
        factor: by which half the 90 % interval of each family is multiplied such that it holds, by how far the ends of
            ended jobs were from what each family foretold of them from ``AGES`` on; NaN: too few have ended,
            [C, 2, 10].
    """

    application: Integers
    rises: NDArray[np.bool_]
    grid: Floats
    mean: Floats
    basis: Floats
    noise: Floats
    family: Integers
    factor: Floats


class Seen(NamedTuple):
    """What J jobs have shown: iterations and rising values, in order, NaN after the last, [J, P] each."""

    iteration: Floats
    value: Floats


class Ahead(NamedTuple):
    """What is left for J jobs, [J] each; in the unit of their values, NaN where nothing can be said.

    Attributes:
        level: where they are, without noise.
        gain: expected until their end.
        half: of the 90 % interval of the gain that will be measured, noise and all; from ``ahead`` NaN where too few
            jobs of the class have ended to say how far such gains are off.
    """

    level: Floats
    gain: Floats
    half: Floats


def ahead(curves: LearningCurves, which: Integers, seen: Seen, until: Floats) -> Ahead:
    """What is left until iteration ``until`` [J], by the family of each job's class; −1: nothing was learned of it."""
    alike = (which >= 0) & (np.append(curves.family, PARAMETRIC)[which] == ALIKE)
    done = np.max(np.where(np.isfinite(seen.value), seen.iteration, 0.0), axis=1, initial=0.0) / until
    age = np.searchsorted(AGES, done + SMALLEST, side="right") - 1
    left = Ahead(*np.full((len(Ahead._fields), len(which)), np.nan))
    for own in np.unique(np.where(alike, which, -1)).tolist():
        at = np.flatnonzero(alike & (which == own) if own >= 0 else ~alike)
        part = Seen(seen.iteration[at], seen.value[at])
        found = like_others(curves, own, part, until[at]) if own >= 0 else parametric(part, until[at])
        half = found.half * _factors(curves)[which[at], ALIKE if own >= 0 else PARAMETRIC, age[at]]
        for column, values in zip(left, (found.level, found.gain, half), strict=True):
            column[at] = values
    return left


def _factors(curves: LearningCurves) -> Floats:
    """Those of all classes, and of none in the last row; of a model that knew other ages nothing is known."""
    count, shape = len(curves.family), (len(FAMILIES), len(AGES))
    told = curves.factor if curves.factor.shape[1:] == shape else np.full((count, *shape), np.nan)
    return np.concatenate([told, np.full((1, *shape), np.nan)])


def kept(count: int) -> Integers:
    """Which of the first ``count`` points of a curve are kept, in order."""
    points = list[int]()
    for point in range(count):
        points = [*(points[::2] if len(points) == POINTS else points), point]
    return np.array(points, np.int64)


def like_others(curves: LearningCurves, own: int, seen: Seen, until: Floats) -> Ahead:
    """By the curves of class ``own``: beyond its grid nothing is gained."""
    grid, parts = curves.grid[own], np.column_stack([curves.mean[own], curves.noise[own], curves.basis[own]])
    there = np.isfinite(seen.value)
    mean, noise, basis = _at(grid, parts, np.where(there, seen.iteration, grid[0]))
    weight = np.where(there, 1 / noise, 0.0)
    precision = np.eye(basis.shape[-1]) + np.einsum("jp,jpr,jps->jrs", weight, basis, basis)
    pull = np.einsum("jp,jpr->jr", weight * (np.where(there, seen.value, 0.0) - mean), basis)
    spread = np.linalg.inv(precision)
    factors = np.einsum("jrs,js->jr", spread, pull)
    last = np.max(np.where(there, seen.iteration, grid[0]), axis=1, initial=grid[0])
    now, _, now_basis = (part[:, 0] for part in _at(grid, parts, last[:, None]))
    end, blur, end_basis = (part[:, 0] for part in _at(grid, parts, np.maximum(until, last)[:, None]))
    more = end_basis - now_basis
    variance = np.einsum("jr,jrs,js->j", more, spread, more) + blur
    level = now + np.einsum("jr,jr->j", now_basis, factors)
    return Ahead(level, end - now + np.einsum("jr,jr->j", more, factors), NORMAL_90 * np.sqrt(variance))


def _at(grid: Floats, parts: Floats, where: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, noise and basis at iterations [J, P], linear between those of the grid."""
    columns = [np.interp(where, grid, column) for column in parts.T]
    return columns[0], columns[1], np.stack(columns[2:], axis=-1)


def parametric(seen: Seen, until: Floats) -> Ahead:
    """By the curve of the job alone: shapes count by their likelihood, and all are fitted to what is recent.

    ``half`` is that of other applications' jobs (``ASTRAY``): where jobs of its own have ended, they say by how much it
    is to be multiplied.
    """
    there = np.isfinite(seen.value)
    number = there.sum(axis=1)
    extent = np.maximum(np.max(np.where(there, seen.iteration, 0.0), axis=1, initial=0.0), SMALLEST)
    place = np.maximum(np.where(there, seen.iteration, 1.0) / extent[:, None], 1e-3)  # [J, P], 1 at the last
    weight = np.where(
        there, 2.0 ** (-RECENT * (number[:, None] - np.cumsum(there, axis=1)) / number[:, None].clip(1)), 0
    )
    shapes, last, end = _shapes(place), _shapes(np.ones((len(number), 1)))[:, :, 0], _shapes((until / extent)[:, None])
    offset, slope, error = _lines(shapes, np.where(there, seen.value, 0.0)[:, None, :], weight[:, None, :])
    effective = weight.sum(axis=1)
    likely = -number[:, None] / 2 * np.log(error + SMALLEST * (error.max(axis=1, keepdims=True) + SMALLEST))
    share = np.exp(likely - likely.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    more = slope * (end[:, :, 0] - last)
    gain = (share * more).sum(axis=1)
    noise = (share * error).sum(axis=1) * (1 + 1 / np.maximum(effective, 1.0))  # of the end, and of the level
    lowest = np.min(seen.value, axis=1, where=there, initial=np.inf)
    gained = np.maximum(np.max(seen.value, axis=1, where=there, initial=-np.inf) - lowest, 0.0)
    astray = ASTRAY * gained * np.log(np.maximum(until / extent, 1.0))
    apart = (share * (more - gain[:, None]) ** 2).sum(axis=1) + noise + astray**2
    level = (share * (offset + slope * last)).sum(axis=1)
    told = number >= FEWEST
    return Ahead(*(np.where(told, part, np.nan) for part in (level, gain, NORMAL_90 * np.sqrt(apart))))


def _shapes(place: Floats) -> Floats:
    """Each shape at parts of the extent, [J, S, P]; all fall."""
    where = np.maximum(place, 1e-3)
    found = [1 / (where + offset) for offset in OFFSETS] + [where**-power for power in POWERS]
    return np.stack([*found, *(np.exp(-where / scale) for scale in SCALES)], axis=1)


def _lines(shapes: Floats, values: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Offset, slope (at most 0: curves rise), and mean square error of weighted lines over shapes, [J, S] each."""
    total = np.maximum(weight.sum(axis=-1), SMALLEST)
    middle, centre = (weight * shapes).sum(axis=-1) / total, (weight * values).sum(axis=-1) / total
    across, above = shapes - middle[..., None], values - centre[..., None]
    spread = np.maximum((weight * across**2).sum(axis=-1), SMALLEST)
    slope = np.minimum((weight * across * above).sum(axis=-1) / spread, 0.0)
    error = (weight * (above - slope[..., None] * across) ** 2).sum(axis=-1) / total
    return centre - slope * middle, slope, error


# How long jobs of each application train on the GPUs that they ask for, as a log of them tells.


USUAL_SECONDS = 3600.0
"""Of a job, where no log says how long any trained."""
LARGEST_POWER = 2.0


class Lengths:
    """A applications; the last entry, of any other number, is of all of them together.

    Args:
        jobs: see ``Arrivals.jobs``.
        applications: A.

    Attributes:
        usual: median seconds, [A + 1].
        data: median size of the data, not a number where none is known, [A + 1].
        power: of the data over that, by which seconds grow; 1 unless the log says otherwise, [A + 1].
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
        """By what the seconds of jobs with so much data differ from the usual ones, [J]."""
        return np.asarray(self.sized(application, data) ** self.power[application], np.float64)

    def sized(self, application: Integers, data: Floats) -> Floats:
        """Sizes of data over the usual one of each application; 1 where either isn't known, [J]."""
        more = data / self.data[application]
        return np.where(more > 0, more, 1.0)

    def left(self, application: Integers, ran: Floats) -> Floats:
        """Seconds that are left after ``ran`` [J], on average of those jobs that trained for longer, [J].

        As much as it ran where no job did: of long jobs those that have lasted long last longest. Where nothing is
        known, it begins with the usual seconds.
        """
        found = np.empty(len(ran))
        for one in np.unique(application).tolist():
            at, seconds = np.flatnonzero(application == one), self._seconds[one]
            rest = np.maximum(ran[at], 0.0 if len(seconds) else USUAL_SECONDS)
            found[at] = mean_left(seconds, ran[at], rest)
        return found


def mean_left(known: Floats, done: Floats, otherwise: Floats) -> Floats:
    """What is left after ``done`` [J] on average of those ``known``, ascending, that are more; else ``otherwise``."""
    more = len(known) - np.searchsorted(known, done, side="right")
    sums = np.append(np.cumsum(known[::-1])[::-1], 0.0)[len(known) - more]
    return np.asarray(np.where(more > 0, sums / np.maximum(more, 1) - done, otherwise), np.float64)


def _power(jobs: Floats) -> float:
    """Slope of the logs of seconds over those of data, by least squares, towards 1 as of one job e times as large."""
    if not len(jobs):
        return 1.0
    data, seconds = np.log(jobs[:, DATA]), np.log(np.maximum(jobs[:, DURATION], 1.0))
    data, seconds = data - data.mean(), seconds - seconds.mean()
    return float(np.clip((data @ seconds + 1.0) / (data @ data + 1.0), 0.0, LARGEST_POWER))
