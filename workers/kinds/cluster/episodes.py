"""Simulated episodes of clusters: jobs drawn from a domain model, rewards, and convergence of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from app.kinds.cluster.arrivals import APPLICATION, DATA, DURATION, GPUS, HOUR_SECONDS, QUEUE, Arrivals
from app.kinds.cluster.jobs import Floats, Integers, Jobs
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.lengths import CurvePoints, LearningCurves, RemainingGain, ahead
from app.kinds.cluster.lookahead import Converging, Progress, Tolerance, none, update_convergence
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.placement import Situation
from app.kinds.cluster.spec import Convergence
from workers.estimators.base import TooLittleData
from workers.kinds.cluster.kernels import CAME, ENDED, THERE, Clusters, Rules, elapse, price_per_hour

TERMS = ("completion", "occupied", "accuracy", "fairness", "changes")


class HiddenJobs(NamedTuple):
    """Hidden variables of the L jobs of each of B episodes, which no policy may read.

    Attributes:
        start: number of iterations (``Clusters.done``) with which each job is submitted, [B, L].
        steps: number of iterations that the job then needs; 0 where there is no job, [B, L].
        ideal: seconds that the job would take alone on the whole cluster, [B, L].
        believed: index of its application in the model that rules assume, [B, L].
        begins: time of day at which the episode begins, seconds since 0:00 UTC, [B].
        data: size of the job's data, in one unit per application; NaN: unknown, [B, L].
        curve: index of its learning curve; −1: none, [B, L].
    """

    start: Floats
    steps: Floats
    ideal: Floats
    believed: Integers
    begins: Floats
    data: Floats
    curve: Integers


class Episodes(NamedTuple):
    """State of B episodes with L jobs each.

    Attributes:
        clusters: the clusters, changed in place.
        beside: copies in which no weight is changed, as learners' baseline.
        drawn: hidden variables of the jobs.
        effect: factor of the seconds of all steps, [B].
        pace: last measured steps per second of each job, NaN before that, [B, L].
        paced_on: GPUs on which ``pace`` was measured, [B, L].
        demoted: seconds at which each job reached the GPU-seconds at which it loses priority, or ``NEVER``, [B, L].
        weighed: seconds at which each job's weight was last decided; negative: never, [B, L].
        asked: job whose weight is to be decided next, or ``NOBODY``, [B].
        converging, converging_beside: state of convergence of the jobs in ``clusters`` and ``beside``, [B, L].
    """

    clusters: Clusters
    beside: Clusters
    drawn: HiddenJobs
    effect: Floats
    pace: Floats
    paced_on: Integers
    demoted: Floats
    weighed: Floats
    asked: Integers
    converging: Converging
    converging_beside: Converging


def jobs_of(episodes: Episodes, b: int, minimum: int, maximum: int | Integers) -> Jobs:
    """Return the J active jobs of cluster ``b`` (index), each limited to ``minimum`` to ``maximum`` GPUs."""
    clusters = episodes.clusters
    there = clusters.there[b, : clusters.counts[b, THERE]]
    ceiling = clusters.ceiling[b, there]
    return Jobs(
        clusters.time[b, there],
        clusters.queue[b, there],
        np.minimum(clusters.asked[b, there], ceiling),
        np.full(len(there), minimum, np.int64),
        np.minimum(maximum, ceiling),
        clusters.held[b, there],
        clusters.running[b, there],
        episodes.demoted[b, there],
        clusters.restarts[b, there],
        clusters.restarting[b, there],
    )


class Source(Protocol):
    """A generator of clusters and their jobs.

    Attributes:
        rules: constants that all clusters share.
        applications: names, indexed by ``HiddenJobs.believed``.
    """

    rules: Rules
    applications: Sequence[str]

    def draw(self, load: Floats, model: Integers, random: np.random.Generator) -> tuple[Clusters, HiddenJobs]:
        """Draw B clusters at time 0.

        Args:
            load: factor of the rate at which jobs come, [B].
            model: index of the domain model that each cluster follows, [B].
            random: random generator.

        Raises:
            TooLittleData: the model has no jobs to draw from.
        """
        ...

    def coming(self, second_of_day: Floats) -> Floats:
        """Return the GPUs expected to be requested within the next hour, [B], at ``second_of_day`` [B] (UTC)."""
        ...

    def moment(self, episodes: Episodes, b: int) -> Situation:
        """Return the state of cluster ``b`` (index) that scheduling rules may read."""
        ...

    def ahead(self, drawn: HiddenJobs, part: Floats) -> RemainingGain | None:
        """Forecast each job's gain in its metric after the fraction ``part`` (0…1) of its iterations, [B, L]; None: the
        spec has no convergence."""
        ...

    def lacking(self, application: Integers, part: Floats) -> Floats:
        """Return the gap of each job's metric to its final value, 1 to 0, [B, L].

        ``application``: index of each job's application, [B, L]; ``part``: fraction of its iterations done, [B, L].
        """
        ...


class IntervalAmounts(NamedTuple):
    """Amounts of one interval in B clusters with L jobs each.

    Attributes:
        present: seconds for which each job was in the cluster, [B, L].
        price: hourly price of the GPUs that each job held, [B, L].
        gpus: GPUs that each job held, [B, L].
        ended: number of jobs that ended, [B].
        lacking: gap of the metrics of unfinished jobs to their final values, 1 to 0, [B, L].
        unfair: increase of (1 − Jain's index of slow-downs) times the share of the episode that has passed, [B].
    """

    present: Floats
    price: Floats
    gpus: Integers
    ended: Integers
    lacking: Floats
    unfair: Floats


def spend(source: Source, clusters: Clusters, drawn: HiddenJobs, price: Floats, intervals: int) -> IntervalAmounts:
    """Let one interval pass, and return its amounts.

    Args:
        source: source of the clusters.
        clusters: changed in place.
        drawn: hidden variables of their jobs.
        price: price of a GPU per hour on each node, [N].
        intervals: number of intervals of an episode.
    """
    before, ended = clusters.now.copy(), clusters.counts[:, ENDED].copy()
    seconds = source.rules.interval
    unfair = unfairness(clusters, drawn, seconds, intervals)
    each, gpus = price_per_hour(clusters, price), clusters.gpus.copy()
    elapse(source.rules, clusters)
    until = np.fmin(clusters.time + clusters.completed, clusters.now[:, None])
    present = np.maximum(until - np.maximum(clusters.time, before[:, None]), 0.0)
    rest = remaining_share(clusters, drawn)
    lacking = np.where(rest > 0, source.lacking(clusters.application, 1.0 - rest), 0.0)
    unfair = unfairness(clusters, drawn, seconds, intervals) - unfair
    return IntervalAmounts(present, each, gpus, clusters.counts[:, ENDED] - ended, lacking, unfair)


def terms(
    layout: Layout, drawn: HiddenJobs, clusters: Clusters, spent: IntervalAmounts, moved: Integers, *, last: bool
) -> Floats:
    """Compute the reward's five terms of one interval, all costs, without unit, [B, 5]: completion (time of jobs
    relative to that alone), occupied GPUs, accuracy (gap), fairness, changes. An episode's last interval adds jobs'
    unfinished work.

    Args:
        layout, drawn, clusters: the workload, hidden variables of jobs, and the clusters after the interval.
        spent: amounts of the interval.
        moved: number of jobs whose nodes changed before it, [B].
        last: whether it is the episode's last interval.
    """
    count = np.maximum((drawn.steps > 0).sum(axis=1), 1)
    slow = spent.present / np.maximum(drawn.ideal, 1.0)
    if last:
        slow = slow + remaining_share(clusters, drawn)
    spec, worth = layout.spec, layout.queue_weights[clusters.queue] * clusters.worth
    hours = spec.episode_intervals * spec.interval_seconds / 3600 * layout.capacity.sum()
    occupied = (spent.price * spent.present).sum(axis=1) / 3600 / hours
    lacks = (worth * spent.lacking).sum(axis=1) / count / spec.episode_intervals
    return np.stack([(worth * slow).sum(axis=1) / count, occupied, lacks, spent.unfair, moved / count], axis=1)


def remaining_share(clusters: Clusters, drawn: HiddenJobs) -> Floats:
    """Return the share of iterations left of each job, 0…1, [B, L]; 0 for finished and future jobs."""
    ends = np.where(drawn.steps > 0, drawn.steps, 1.0)
    there = np.arange(clusters.time.shape[1]) < clusters.counts[:, CAME, None]
    return np.where(there & np.isnan(clusters.completed), 1 - (clusters.done - drawn.start) / ends, 0.0)


def slowdowns(clusters: Clusters, drawn: HiddenJobs) -> Floats:
    """Return the ratio of each job's time so far plus its remaining time alone to its time alone, [B, L]; 0 before it
    comes.

    It is 1 for a job that has always run at full speed, and grows with waiting.
    """
    there = np.arange(clusters.time.shape[1]) < clusters.counts[:, CAME, None]
    until = np.fmin(clusters.time + clusters.completed, clusters.now[:, None])
    since = np.where(there, until - clusters.time, 0.0) / np.maximum(drawn.ideal, 1.0)
    return np.where(there & (drawn.steps > 0), since + remaining_share(clusters, drawn), 0.0)


def unfairness(clusters: Clusters, drawn: HiddenJobs, seconds: float, intervals: int) -> Floats:
    """Compute 1 − Jain's index of the jobs' slow-downs, times the share of the episode that has passed, [B].

    Jain's index is (Σx)²/(n·Σx²) (Jain, Chiu and Hawe, 1984). At an episode's end this is its fairness cost; its
    increases per interval add up to that and are differences of a potential (Ng, Harada and Russell, 1999), so each
    decision is charged at once.

    Args:
        clusters: B clusters.
        drawn: hidden variables of their jobs.
        seconds: length of an interval; the first decision comes after one.
        intervals: number of intervals of an episode after that.
    """
    slow, over = slowdowns(clusters, drawn), (clusters.now / seconds - 1) / intervals
    count, squares = (slow > 0).sum(axis=1), (slow**2).sum(axis=1)
    index = np.where(count > 0, slow.sum(axis=1) ** 2 / np.maximum(count * squares, 1e-300), 1.0)
    return np.asarray(over * (1.0 - index), np.float64)


# The gap of jobs' losses or metrics to their final values, by progress.


PARTS = np.linspace(0.0, 1.0, 33)
ITERATIONS = 100.0


def usual(part: Floats) -> Floats:
    """Return the default gap of a job's loss to its final value, as a fraction of the initial gap: 1/(k + 1) after k of
    100 iterations (the rate of first-order methods), shifted and scaled so that it falls from 1 to exactly 0.

    ``part``: fraction of the job's iterations that are done, 0 to 1, of any shape, which the result has too."""
    last = 1.0 / (ITERATIONS + 1.0)
    return np.asarray((1.0 / (ITERATIONS * part + 1.0) - last) / (1.0 - last), np.float64)


def courses(model: ClusterModel, applications: Sequence[str]) -> Floats:
    """Return the gap to the final value of A applications at the fractions ``PARTS`` of a run, [A, 33], by an
    application's mean learning curve, or by ``usual`` if it has none that improves."""
    return np.stack([_course(model, name) for name in applications])


def _course(model: ClusterModel, application: str) -> Floats:
    own = known_class(model, application)
    if own < 0:
        return usual(PARTS)
    grid, mean = model.curves.grid[own], model.curves.mean[own]
    lacks = (mean[-1] - np.interp(PARTS * grid[-1], grid, mean)) / (mean[-1] - mean[0])
    return np.asarray(np.clip(lacks, 0.0, 1.0), np.float64)


def known_class(model: ClusterModel, application: str) -> int:
    """Return the index of the class of an application's metric, else loss, whose mean curve improves; −1: none."""
    mean = model.curves.mean
    known = [model.curve_class(application, rises) for rises in (True, False)]
    return next((own for own in known if own >= 0 and mean[own, -1] > mean[own, 0]), -1)


def lacking(table: Floats, application: Integers, part: Floats) -> Floats:
    """Interpolate the gap to the final value, 1 to 0, after the fraction ``part`` of iterations, in ``table`` [A, 33].

    ``application`` (indices) and ``part`` have the result's shape.
    """
    place = np.clip(part, 0.0, 1.0) * (len(PARTS) - 1)
    at = np.minimum(place.astype(np.int64), len(PARTS) - 2)
    before, after = table[application, at], table[application, at + 1]
    return np.asarray(before + (place - at) * (after - before), np.float64)


class ComingJobs(NamedTuple):
    """K jobs of an episode in order of time, [K] each.

    Attributes:
        time: seconds since the episode began.
        queue, application: indices of the job's queue and application.
        requested_gpus: requested GPUs.
        data: size of the job's data, in one unit per application; NaN: unknown.
        seconds: training time on the requested GPUs.
    """

    time: Floats
    queue: Integers
    application: Integers
    requested_gpus: Integers
    data: Floats
    seconds: Floats


def playable(arrivals: Arrivals) -> bool:
    """Return whether jobs can be drawn from ``arrivals``: it has a rate above 0 and a job of known training time."""
    return bool(arrivals.rate.sum() > 0 and (~np.isnan(arrivals.jobs[:, DURATION])).any())


def _check(arrivals: Arrivals) -> None:
    """Check that jobs can be drawn from ``arrivals``.

    Raises:
        TooLittleData: no rate of jobs or no training time is known; the message says what samples need.
    """
    if playable(arrivals):
        return
    needs = "a job that came (a row with `time`) with the seconds that it trained (`duration`)"
    if not arrivals.rate.sum() > 0:
        raise TooLittleData(needs, "no job that came, in the samples of the domain model")
    raise TooLittleData(needs, f"{len(arrivals.jobs):,} jobs that came, none of them with its duration")


def draw(
    arrivals: Arrivals, first: int, seconds: float, load: float, most: int, random: np.random.Generator
) -> ComingJobs:
    """Draw the jobs of an episode that begins at an hour of the day.

    The jobs of each queue come as a Poisson process at the hour's rate, times a gamma variable per hour with the
    queue's variation. Each copies a random job of its queue in the log, or of any queue if that has none.

    Args:
        arrivals: rates, variation and logged jobs.
        first: hour of the day, 0 to 23.
        seconds: length of the episode.
        load: factor of all rates.
        most: largest number of GPUs of a job; larger requests are reduced to it.
        random: random generator.

    Raises:
        TooLittleData: the log has no jobs to draw from.
    """
    hours = int(np.ceil(seconds / HOUR_SECONDS))
    _check(arrivals)
    jobs = arrivals.jobs[~np.isnan(arrivals.jobs[:, DURATION])]
    times, rows = list[Floats](), list[Integers]()
    for queue, (rate, variation) in enumerate(zip(arrivals.rate, arrivals.variation.tolist(), strict=True)):
        own = np.flatnonzero(jobs[:, QUEUE] == queue)
        own = own if len(own) else np.arange(len(jobs))
        mean = load * rate[(first + np.arange(hours)) % len(rate)]
        factor = random.gamma(1 / variation, variation, hours) if variation > 0 else np.ones(hours)
        count = random.poisson(mean * factor)
        hour = np.repeat(np.arange(hours), count)
        times.append((hour + random.random(len(hour))) * HOUR_SECONDS)
        rows.append(own[random.integers(len(own), size=len(hour))])
    time, chosen = np.concatenate(times), jobs[np.concatenate(rows)]
    order = np.argsort(time, kind="stable")
    order = order[time[order] < seconds]
    time, chosen, whole = time[order], chosen[order], np.nan_to_num(chosen[order]).astype(np.int64)
    gpus = np.clip(whole[:, GPUS], 1, most)
    queues = np.concatenate([np.full(len(part), at) for at, part in enumerate(rows)])[order]
    return ComingJobs(time, queues, whole[:, APPLICATION], gpus, chosen[:, DATA], chosen[:, DURATION])


# Learning curves of simulated jobs, and convergence as the service judges it.


DRAWN, STEPS = 64, 40
"""Number of curves drawn per class, and of points per curve."""


class DrawnCurves(NamedTuple):
    """Drawn learning curves of one class: values, larger is better, [DRAWN, STEPS], at iterations [STEPS]."""

    value: Floats
    iteration: Floats


def draw_curves(curves: LearningCurves, own: int) -> DrawnCurves:
    """Draw curves of the class of index ``own`` from the fitted normal distribution, with a fixed seed."""
    grid, random = curves.grid[own], np.random.default_rng(0)
    iterations = np.linspace(0, grid[-1], STEPS + 1)[1:]
    factors = random.standard_normal((DRAWN, curves.basis.shape[2]))
    whole = curves.mean[own] + factors @ curves.basis[own].T
    noise = np.sqrt(np.maximum(np.interp(iterations, grid, curves.noise[own]), 0.0))
    smooth = np.stack([np.interp(iterations, grid, one) for one in whole])
    return DrawnCurves(smooth + noise * random.standard_normal(smooth.shape), iterations)


def foreseen(curves: LearningCurves, own: int, of: DrawnCurves) -> RemainingGain:
    """Forecast level, gain and half-width of each drawn curve of class ``own`` (index) after its first 0 to ``STEPS``
    points, [DRAWN, STEPS + 1] each; NaN after none."""
    which, until = np.full(DRAWN, own), np.full(DRAWN, of.iteration[-1])
    results = [np.full((len(RemainingGain._fields), DRAWN), np.nan)]
    for step in range(1, STEPS + 1):
        there = np.arange(STEPS) < step
        curve_points = CurvePoints(
            *(np.where(there, column, np.nan) for column in (np.tile(of.iteration, (DRAWN, 1)), of.value))
        )
        results.append(np.stack(ahead(curves, which, curve_points, until)))
    return RemainingGain(*np.stack(results, axis=-1))


class CurveForecasts(NamedTuple):
    """Forecasts on the drawn curves of A applications.

    Attributes:
        first: index of each application's first curve; −1: it has no curves, [A].
        forecasts: forecast level, gain and half-width of all K curves after 0 to ``STEPS`` points, [K, STEPS + 1] each.
    """

    first: Integers
    forecasts: RemainingGain


def foreseen_of(known: Sequence[tuple[ClusterModel, Sequence[str]]]) -> CurveForecasts | None:
    """Forecast the drawn curves of the applications of several models, in order; None: no application has curves."""
    first, tables = list[int](), list[RemainingGain]()
    for model, names in known:
        for own in (known_class(model, name) for name in names):
            first.append(DRAWN * len(tables) if own >= 0 else -1)
            if own >= 0:
                tables.append(foreseen(model.curves, own, draw_curves(model.curves, own)))
    if not tables:
        return None
    return CurveForecasts(
        np.array(first), RemainingGain(*(np.concatenate(columns) for columns in zip(*tables, strict=True)))
    )


def initial_convergence(shape: tuple[int, int]) -> Converging:
    """Make the initial limits on GPUs of jobs that gain little, of ``shape`` (B, L): no job is limited."""
    return Converging._make(column.reshape(shape) for column in none(shape[0] * shape[1]))


def seen_at(table: RemainingGain, curve: Integers, part: Floats) -> RemainingGain:
    """Read the forecasts of curves ``curve`` (indices; −1: NaN) after the share ``part`` of iterations, any shape."""
    at = np.clip((part * STEPS + 1e-9).astype(np.int64), 0, STEPS)
    return RemainingGain(*(np.where(curve >= 0, column[curve, at], np.nan) for column in table))


def update_ceilings(
    layout: Layout, convergence: Convergence, clusters: Clusters, left: RemainingGain, before: Converging
) -> Converging:
    """Update the limits on GPUs of jobs that gain little (convergence), [B, L]; ``clusters.ceiling`` changes in place.

    Args:
        layout: the workload's layout.
        convergence: tolerance, doubt and window of the spec.
        left: forecasts of the jobs, [B, L] each; NaN: none.
        before: the previous state, [B, L].
    """
    tolerance = Tolerance(convergence.tolerance, convergence.doubt, convergence.window_seconds)
    runs = clusters.gpus > 0
    level, gain, half = (np.where(runs, column, np.nan) for column in left)
    floor = np.full_like(clusters.gpus, layout.spec.minimum)
    progress = Progress(level, gain, half, clusters.gpus, floor, layout.sizes)
    after = update_convergence(before, progress, clusters.now[:, None], tolerance)
    clusters.ceiling[:] = after.ceiling
    return after
