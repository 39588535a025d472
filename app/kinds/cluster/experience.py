"""Measurements of a run's own jobs: step times, noise scales, total samples by application; learning curves by job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster import lookahead
from app.kinds.cluster.jobs import NEVER, Floats, Integers, Jobs
from app.kinds.cluster.lengths import POINTS, CurvePoints, LearningCurves, ahead
from app.kinds.cluster.lookahead import UNLIMITED, Converging, Progress, Tolerance, update_convergence
from app.kinds.cluster.records import Records
from app.kinds.cluster.throughput import (
    SURPRISE,
    Batches,
    Course,
    course,
    efficiency,
    fit,
    matches_prediction,
    sizes_of,
    step_seconds,
)

MOST_APPLICATIONS, MOST_PLACES, MOST_TOTALS = 256, 48, 64
REMEMBERED = 8
"""Number of measurements over which the running geometric mean of step times at one place extends."""
SHOWN_BYTES, PLACE_BYTES = 600, 200
OCTAVES = 8
"""Steps per doubling to which noise scales are rounded."""


class MeasuredStep(NamedTuple):
    """A measured step.

    Attributes:
        nodes, gpus: numbers of nodes and GPUs.
        local: samples per GPU and pass.
        seconds: seconds of the whole step.
        computing: seconds of computing among them.
        measurements: number of measurements averaged, at most ``REMEMBERED``.
    """

    nodes: int
    gpus: int
    local: int
    seconds: float
    computing: float
    measurements: int


class ApplicationMeasurements(NamedTuple):
    """Measurements of the jobs of one application in a run.

    Attributes:
        initial: batch, in samples, at whose statistical efficiency samples are counted.
        noise_scale: gradient noise scale first reported, in samples; infinite: unknown.
        places: measured steps, at most ``MOST_PLACES``.
        needed: for each finished job, samples it needed and its data size (0: unknown); at most ``MOST_TOTALS``.
    """

    initial: int
    noise_scale: float = np.inf
    places: tuple[MeasuredStep, ...] = ()
    needed: tuple[tuple[float, float], ...] = ()

    @property
    def most(self) -> int:
        """Largest number of GPUs with a measured step; 0 without any."""
        return max((one.gpus for one in self.places), default=0)

    @property
    def parameters(self) -> Floats | None:
        """Parameters of the throughput model fitted to the measured steps, [7] (see ``step_seconds``); None without a
        measured step."""
        if not self.places:
            return None
        return _fit_parameters(tuple((*one[:3], _step(one.seconds), _step(one.computing)) for one in self.places))


Experience = Mapping[str, ApplicationMeasurements]
"""Measurements of each application, by its name."""


def add_step(shown: ApplicationMeasurements, step: MeasuredStep) -> ApplicationMeasurements:
    """Return ``shown`` with one more step averaged in or appended; unchanged if the fitted model already predicts the
    step. Steps on the same nodes and GPUs at about the same samples per GPU (half a doubling) share one place."""
    key = _key(step)
    at = next((place for place, one in enumerate(shown.places) if _key(one) == key), None)
    if at is None:
        if _predicts_step(shown, step):
            return shown
        return shown._replace(places=(*shown.places, step)[-MOST_PLACES:])
    known = shown.places[at]
    if known.local != step.local and _predicts_step(shown, step):
        return shown
    if known.local == step.local:
        least = min(known.measurements + 1, REMEMBERED)
        each = ((known.seconds, step.seconds), (known.computing, step.computing))
        seconds, computing = (old * (new / old) ** (1 / least) for old, new in each)
        step = known._replace(seconds=seconds, computing=min(computing, seconds), measurements=least)
    return shown._replace(places=(*shown.places[:at], step, *shown.places[at + 1 :]))


def _key(one: MeasuredStep) -> tuple[int, int, int]:
    """Return the place of a step: nodes, GPUs, and twice the base 2 logarithm of samples per GPU, rounded."""
    return one.nodes, one.gpus, round(2 * np.log2(max(one.local, 1)))


def _predicts_step(shown: ApplicationMeasurements, step: MeasuredStep) -> bool:
    """Whether a model fitted to earlier steps predicts the seconds of ``step`` within 2 %; False without such steps."""
    if shown.parameters is None:
        return False
    return matches_prediction(shown.parameters, [one[:3] for one in shown.places], step[:3], step[3:5])


def times(shown: ApplicationMeasurements, step: MeasuredStep) -> tuple[float, float]:
    """Predict seconds of computing, and of the whole step, on the nodes, GPUs and samples per GPU of ``step``. Raises
    AssertionError if ``shown`` has no measured step."""
    parameters = shown.parameters
    assert parameters is not None  # noqa: S101 - callers have measured a step
    place = (np.array(float(part)) for part in (step.nodes, step.gpus, step.local))
    return float(parameters[0] + parameters[1] * step.local), float(step_seconds(parameters, *place))


def _step(seconds: float) -> int:
    """Return the natural logarithm of ``seconds`` in whole multiples of ``SURPRISE``, so that cached fits are
    reused."""
    return round(float(np.log(seconds)) / SURPRISE)


@lru_cache(maxsize=1_024)
def _fit_parameters(places: tuple[tuple[int, int, int, int, int], ...]) -> Floats:
    """Fit the throughput parameters, [7]; ``places``: nodes, GPUs, samples per GPU, and logs of both times
    (``_step``)."""
    times = np.exp(SURPRISE * np.array([place[3:] for place in places]))
    each = zip(places, times.tolist(), strict=True)
    return fit({place[:3]: (whole, min(computing, whole)) for place, (whole, computing) in each})


def add_finished_job(shown: ApplicationMeasurements, needed: float, data: float) -> ApplicationMeasurements:
    """Return ``shown`` with one more finished job: the samples that it needed, and its data size (0: unknown)."""
    return shown._replace(needed=(*shown.needed, (needed, data))[-MOST_TOTALS:])


def goodput(shown: ApplicationMeasurements, batches: Batches, noise_scale: float, cluster: tuple[int, int]) -> Course:
    """Return goodput in samples per second and best batch in samples, by number of GPUs, from a run's measured steps.

    Args:
        shown: measurements of the job's application.
        batches: limits of its batch, in samples.
        noise_scale: gradient noise scale, in samples; infinite: unknown.
        cluster: GPUs per node, and GPUs in all.

    Raises:
        AssertionError: ``shown`` has no measured step.
    """
    parameters = shown.parameters
    assert parameters is not None  # noqa: S101 - callers have measured a step
    return _goodput(parameters.tobytes(), batches, round_noise_scale(noise_scale), cluster)


@lru_cache(maxsize=1_024)
def _goodput(parameters: bytes, batches: Batches, noise_scale: float, cluster: tuple[int, int]) -> Course:
    node, total = cluster
    throughput = np.frombuffer(parameters)

    def times(gpus: Integers, local: Floats) -> tuple[Floats, Floats]:
        whole = step_seconds(throughput, sizes_of(gpus, node), gpus, local)
        return throughput[0] + throughput[1] * local, whole

    return course(times, batches, noise_scale, total)


def round_noise_scale(noise_scale: float) -> float:
    """Round a noise scale in samples to 1/``OCTAVES`` of a doubling; infinite if it is not finite (unknown)."""
    if not np.isfinite(noise_scale):
        return np.inf
    return float(2.0 ** (round(OCTAVES * np.log2(max(noise_scale, 1e-3))) / OCTAVES))


def rate(initial: float, batch: float, seconds: float, noise_scale: float) -> float:
    """Return the goodput of measured steps: samples per second, weighted by efficiency relative to the batch
    ``initial``. ``batch`` is in samples, ``seconds`` the duration of a step, ``noise_scale`` in samples (infinite:
    unknown)."""
    return float(batch / seconds * efficiency(initial, np.array(batch), noise_scale))


def limit_experience(experience: dict[str, ApplicationMeasurements], there: Iterable[str]) -> Experience:
    """Cut ``experience`` in place to ``MOST_APPLICATIONS``, and return it. Applications whose names are not in
    ``there``, those of the present jobs, are removed first, and older before newer ones."""
    spare = len(experience) - MOST_APPLICATIONS
    if spare <= 0:
        return experience
    present = set(there)
    oldest = [name for name in experience if name not in present] + [name for name in experience if name in present]
    for name in oldest[:spare]:
        del experience[name]
    return experience


def weight(experience: Experience) -> int:
    """Return the approximate size of ``experience``, measurements by application, in memory, in bytes."""
    return sum(SHOWN_BYTES + PLACE_BYTES * (len(one.places) + len(one.needed)) for one in experience.values())


def pack(experience: Experience) -> list[Any]:
    """Return the experience (measurements by application) as plain lists for JSON; an unknown noise scale becomes
    null."""
    return [
        [
            name,
            one.initial,
            one.noise_scale if np.isfinite(one.noise_scale) else None,
            list(one.places),
            list(one.needed),
        ]
        for name, one in experience.items()
    ]


def unpack(stored: list[Any]) -> Experience:
    """Return the experience (measurements by application) from lists that ``pack`` returned, after JSON."""
    return {
        name: ApplicationMeasurements(
            initial,
            np.inf if noise is None else noise,
            tuple(MeasuredStep(*place) for place in places),
            tuple((samples, data) for samples, data in needed),
        )
        for name, initial, noise, places, needed in stored
    }


# Learning curves of the jobs of a live cluster, thinned, and their convergence state; J jobs.


class Learning(NamedTuple):
    """Learning curves of J jobs, and their convergence state.

    Attributes:
        iteration, value: points of each curve in order of iteration, [J, 24] each, NaN after the last; losses are
            negated so that larger values are better.
        converging: ceilings of GPUs of jobs that have little left to gain.
    """

    iteration: Floats
    value: Floats
    converging: Converging


def none(jobs: int = 0) -> Learning:
    """Return learning curves without points, and no ceilings of GPUs, of ``jobs`` jobs."""
    return Learning(np.full((jobs, POINTS), np.nan), np.full((jobs, POINTS), np.nan), lookahead.none(jobs))


def keep(learning: Learning, which: Sequence[bool] | NDArray[np.bool_]) -> Learning:
    """Return the learning of the jobs selected by the mask ``which`` [J], in their order."""
    chosen = np.asarray(which, np.bool_)
    choice = lookahead.keep(learning.converging, chosen)
    return Learning(learning.iteration[chosen], learning.value[chosen], choice)


def join(learning: Learning, jobs: int) -> Learning:
    """Return ``learning`` with ``jobs`` more jobs, without points, at the end."""
    new = none(jobs)
    iteration = np.concatenate([learning.iteration, new.iteration])
    value = np.concatenate([learning.value, new.value])
    return Learning(iteration, value, lookahead.join(learning.converging, jobs))


def extend_curves(learning: Learning, at: Sequence[int], records: Records) -> Learning:
    """Return ``learning`` with the last reported value in ``records`` of each job at positions ``at`` added to its
    curve. Points at the same or a later iteration are dropped: the job resumed from a checkpoint. A full curve first
    drops every second point. Jobs without a reported value keep their curve."""
    iteration, value = learning.iteration.copy(), learning.value.copy()
    for job in at:
        now, shown = float(records.iteration[job]), float(records.value[job])
        if np.isnan(shown):
            continue
        shown = shown if records.rises[job] else -shown
        own = np.flatnonzero(iteration[job] < now)
        own = own[::2] if len(own) == POINTS else own
        points = [[*column[job, own].tolist(), last] for column, last in ((iteration, now), (value, shown))]
        iteration[job], value[job] = np.nan, np.nan
        iteration[job, : len(own) + 1], value[job, : len(own) + 1] = points
    return learning._replace(iteration=iteration, value=value)


class Expecting(NamedTuple):
    """Inputs to predict how J jobs converge.

    Attributes:
        curves: learning curves of the domain model.
        classes: position of each job's curve class in ``curves``, [J]; −1: none.
        until: iteration at which each job is finished, [J]; NaN: unknown.
        sizes: numbers of GPUs that jobs can be given, ascending from 0, [sizes].
    """

    curves: LearningCurves
    classes: Integers
    until: Floats
    sizes: Integers


def update_ceilings(learning: Learning, expecting: Expecting, jobs: Jobs, now: float, tolerance: Tolerance) -> Learning:
    """Return ``learning`` with updated ceilings of the jobs that hold GPUs, have points, and whose last iteration is
    known.

    Args:
        learning: curves and ceilings of J jobs.
        expecting: inputs of the prediction, for the same jobs.
        jobs: table of the same jobs.
        now: seconds since the run's start.
        tolerance: criterion of convergence.
    """
    at = np.flatnonzero(np.isfinite(expecting.until) & np.isfinite(learning.value[:, 0]) & (jobs.gpus > 0))
    if not at.size:
        return learning
    curve_points = CurvePoints(learning.iteration[at], learning.value[at])
    left = ahead(expecting.curves, expecting.classes[at], curve_points, expecting.until[at])
    own = Converging._make(column[at] for column in learning.converging)
    after = update_convergence(own, Progress(*left, jobs.gpus[at], jobs.minimum[at], expecting.sizes), now, tolerance)
    columns = [column.copy() for column in learning.converging]
    for column, values in zip(columns, after, strict=True):
        column[at] = values
    return learning._replace(converging=Converging._make(columns))


def changed_ceilings(before: Learning, after: Learning) -> dict[int, int]:
    """Return, by position of the job, each ceiling in GPUs that was set or changed between ``before`` and ``after``."""
    old, new = before.converging.ceiling, after.converging.ceiling
    return {at: int(new[at]) for at in np.flatnonzero((old != new) & (new != UNLIMITED)).tolist()}


def notes(before: Learning, after: Learning) -> dict[int, str]:
    """Return, by position, a text on each job whose ceiling of GPUs ``after`` has set, changed or lifted."""
    old, new = before.converging.ceiling, after.converging.ceiling
    free = np.flatnonzero((old != new) & (new == UNLIMITED)).tolist()
    words = {
        at: f"little remaining gain: at most {most:,} GPUs" for at, most in changed_ceilings(before, after).items()
    }
    return words | dict.fromkeys(free, "gaining again: GPU limit removed")


def pack_learning(learning: Learning) -> list[Any] | None:
    """Return ``learning`` as plain lists for JSON; None if no job has a point. Null stands for no ceiling, no change of
    the ceiling yet, and unknown values."""
    there = np.isfinite(learning.value)
    if not there.any():
        return None
    points = [[column[job, own].tolist() for column in learning[:2]] for job, own in enumerate(there)]
    ceiling, since, expected, restored = learning.converging
    limits = [None if value == UNLIMITED else value for value in ceiling.tolist()]
    others = [[value if np.isfinite(value) else None for value in column.tolist()] for column in (since, expected)]
    return [points, limits, *others, restored.tolist()]


def unpack_learning(stored: list[Any] | None, jobs: int) -> Learning:
    """Return the learning from ``pack_learning``'s result after JSON; None gives ``jobs`` jobs without points."""
    if stored is None:
        return none(jobs)
    points, ceiling, since, expected, restored = stored
    result = none(len(points))
    for job, (iteration, value) in enumerate(points):
        result.iteration[job, : len(iteration)], result.value[job, : len(value)] = iteration, value
    return result._replace(
        converging=Converging(
            np.array([UNLIMITED if value is None else value for value in ceiling], np.int64),
            np.array([-NEVER if value is None else value for value in since], np.float64),
            np.array([np.nan if value is None else value for value in expected], np.float64),
            np.array(restored, np.bool_),
        )
    )
