"""Episodes that are drawn from a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from app.kinds.cluster.arrivals import APPLICATION, DATA, DURATION, GPUS, HOUR_SECONDS, QUEUE, Arrivals
from app.kinds.cluster.jobs import Floats, Integers, Jobs
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.lengths import Ahead, LearningCurves, Seen, ahead
from app.kinds.cluster.lookahead import Converging, Progress, Tolerance, judged, none
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.placement import Situation
from app.kinds.cluster.spec import Convergence
from workers.estimators.base import TooLittleData
from workers.kinds.cluster.kernels import CAME, ENDED, THERE, Clusters, Rules, elapse, priced

TERMS = ("completion", "occupied", "accuracy", "fairness", "changes")


class Drawn(NamedTuple):
    """What is true of the jobs of B episodes beside their clusters.

    Attributes:
        start: steps that each had made before it came, as ``Clusters`` count them, [B, L].
        steps: of each until it is finished; 0 where there is none, [B, L].
        ideal: seconds that it would take alone on the cluster, [B, L].
        believed: its application in the model that rules believe in, [B, L].
        begins: seconds since 0:00 UTC at which an episode does, [B].
        data: size of each one's data; not a number where it isn't known, [B, L].
        curve: the number of its learning curve; −1: it tells of none, [B, L].
    """

    start: Floats
    steps: Floats
    ideal: Floats
    believed: Integers
    begins: Floats
    data: Floats
    curve: Integers


class Episodes(NamedTuple):
    """B episodes.

    Attributes:
        clusters: of them; they change in place.
        beside: the same with nobody's weights changed, to tell learners what these are worth.
        drawn: what is true of their jobs.
        effect: factor of the seconds of all steps, [B].
        pace, paced_on: steps a second of each job as it was measured last, and on how many GPUs, [B, L].
        demoted: when each had its share of service, or ``NEVER``, [B, L].
        weighed: when the weight of each was settled, before 0: never, [B, L].
        asked: the job whose weight is asked for, [B].
        converging, converging_beside: what convergence has made of jobs in each, [B, L].
    """

    clusters: Clusters
    beside: Clusters
    drawn: Drawn
    effect: Floats
    pace: Floats
    paced_on: Integers
    demoted: Floats
    weighed: Floats
    asked: Integers
    converging: Converging
    converging_beside: Converging


def jobs_of(episodes: Episodes, b: int, minimum: int, maximum: int | Integers) -> Jobs:
    """The jobs that are there in one of the clusters, [J]; ``minimum`` and ``maximum`` are GPUs that each can use."""
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
    """Where clusters come from.

    Attributes:
        rules: see ``Rules``.
        applications: names, by position in ``Drawn.believed``.
    """

    rules: Rules
    applications: Sequence[str]

    def draw(self, load: Floats, model: Integers, random: np.random.Generator) -> tuple[Clusters, Drawn]:
        """B clusters before anything has happened.

        Args:
            load: factor of how many jobs come, [B].
            model: the number of the domain model that each follows, [B].
            random: draws.
        """
        ...

    def coming(self, second_of_day: Floats) -> Floats:
        """GPUs that are expected to be asked for within an hour, from times of day on, [B]."""
        ...

    def moment(self, episodes: Episodes, b: int) -> Situation:
        """What rules see of one of the clusters."""
        ...

    def ahead(self, drawn: Drawn, part: Floats) -> Ahead | None:
        """What is left to gain of jobs at a part of their iterations, [B, L]; None: nothing converges."""
        ...

    def lacking(self, application: Integers, part: Floats) -> Floats:
        """What jobs' metrics lack of their last ones, 1 to 0, at a part of their iterations, [B, L]."""
        ...


class Spent(NamedTuple):
    """What an interval took.

    Attributes:
        present: seconds for which each job was there, [B, L].
        price: of the GPUs that it had then, by the hour, [B, L].
        gpus: how many these were, [B, L].
        ended: jobs that did, [B].
        lacking: what the metrics of those that go on lack of their last ones, [B, L].
        unfair: by how much ``unfairness`` rose in it, [B].
    """

    present: Floats
    price: Floats
    gpus: Integers
    ended: Integers
    lacking: Floats
    unfair: Floats


def spend(source: Source, clusters: Clusters, drawn: Drawn, price: Floats, intervals: int) -> Spent:
    """Let an interval pass.

    Args:
        source: of the clusters.
        clusters: they change in place.
        drawn: what is true of their jobs.
        price: of a GPU and hour on each node, [N].
        intervals: of an episode.
    """
    before, ended = clusters.now.copy(), clusters.counts[:, ENDED].copy()
    seconds = source.rules.interval
    unfair = unfairness(clusters, drawn, seconds, intervals)
    each, gpus = priced(clusters, price), clusters.gpus.copy()
    elapse(source.rules, clusters)
    until = np.fmin(clusters.time + clusters.completed, clusters.now[:, None])
    present = np.maximum(until - np.maximum(clusters.time, before[:, None]), 0.0)
    rest = left(clusters, drawn)
    lacking = np.where(rest > 0, source.lacking(clusters.application, 1.0 - rest), 0.0)
    unfair = unfairness(clusters, drawn, seconds, intervals) - unfair
    return Spent(present, each, gpus, clusters.counts[:, ENDED] - ended, lacking, unfair)


def terms(layout: Layout, drawn: Drawn, clusters: Clusters, spent: Spent, moved: Integers, *, last: bool) -> Floats:
    """``TERMS`` of one interval, [B, T]; those of the last interval count what is left of jobs, too.

    Args:
        layout, drawn, clusters: after the interval.
        spent: in it.
        moved: jobs whose nodes were changed before it, [B].
        last: whether it is the last one.
    """
    count = np.maximum((drawn.steps > 0).sum(axis=1), 1)
    slow = spent.present / np.maximum(drawn.ideal, 1.0)
    if last:
        slow = slow + left(clusters, drawn)
    spec, worth = layout.spec, layout.queue_weights[clusters.queue] * clusters.worth
    hours = spec.episode_intervals * spec.interval_seconds / 3600 * layout.capacity.sum()
    occupied = (spent.price * spent.present).sum(axis=1) / 3600 / hours
    lacks = (worth * spent.lacking).sum(axis=1) / count / spec.episode_intervals
    return np.stack([(worth * slow).sum(axis=1) / count, occupied, lacks, spent.unfair, moved / count], axis=1)


def left(clusters: Clusters, drawn: Drawn) -> Floats:
    """The share that is left of each job that has come, [B, L]."""
    ends = np.where(drawn.steps > 0, drawn.steps, 1.0)
    there = np.arange(clusters.time.shape[1]) < clusters.counts[:, CAME, None]
    return np.where(there & np.isnan(clusters.completed), 1 - (clusters.done - drawn.start) / ends, 0.0)


def slowdowns(clusters: Clusters, drawn: Drawn) -> Floats:
    """How many times as long each job that has come takes as it would alone on the cluster, [B, L]; 0 of others.

    What is left of a job counts as if it were alone from now on. So a job that is served at full speed stays at 1, and
    that of one which waits rises with the time for which it has waited.
    """
    there = np.arange(clusters.time.shape[1]) < clusters.counts[:, CAME, None]
    until = np.fmin(clusters.time + clusters.completed, clusters.now[:, None])
    since = np.where(there, until - clusters.time, 0.0) / np.maximum(drawn.ideal, 1.0)
    return np.where(there & (drawn.steps > 0), since + left(clusters, drawn), 0.0)


def unfairness(clusters: Clusters, drawn: Drawn, seconds: float, intervals: int) -> Floats:
    """What Jain's index of the jobs' slow-downs lacks of 1, times the share of the episode that is over, [B].

    Jain's index is (Σx)²/(n·Σx²) (Jain, Chiu and Hawe, 1984). At the end of an episode this is what the episode costs;
    its rises from one interval to the next, which add up to that, are a potential's differences (Ng, Harada and
    Russell, 1999), so that what one decision does is paid with it.

    Args:
        clusters: B.
        drawn: what is true of their jobs.
        seconds: of an interval; the first decision comes after one.
        intervals: of an episode, from there on.
    """
    slow, over = slowdowns(clusters, drawn), (clusters.now / seconds - 1) / intervals
    count, squares = (slow > 0).sum(axis=1), (slow**2).sum(axis=1)
    index = np.where(count > 0, slow.sum(axis=1) ** 2 / np.maximum(count * squares, 1e-300), 1.0)
    return np.asarray(over * (1.0 - index), np.float64)


# What jobs' losses or metrics lack of their last ones, by how far the jobs are.


PARTS = np.linspace(0.0, 1.0, 33)
ITERATIONS = 100.0


def usual(part: Floats) -> Floats:
    """As 1/(k + 1) after k of ``ITERATIONS``, which is how first-order methods converge; of any shape.

    Args:
        part: of a job's iterations that it has made, 0 to 1.
    """
    last = 1.0 / (ITERATIONS + 1.0)
    return np.asarray((1.0 / (ITERATIONS * part + 1.0) - last) / (1.0 - last), np.float64)


def courses(model: ClusterModel, applications: Sequence[str]) -> Floats:
    """Of applications, by name, at ``PARTS`` of a job: by their mean curve, else ``usual``, [A, 33]."""
    return np.stack([_course(model, name) for name in applications])


def _course(model: ClusterModel, application: str) -> Floats:
    own = known_class(model, application)
    if own < 0:
        return usual(PARTS)
    grid, mean = model.curves.grid[own], model.curves.mean[own]
    lacks = (mean[-1] - np.interp(PARTS * grid[-1], grid, mean)) / (mean[-1] - mean[0])
    return np.asarray(np.clip(lacks, 0.0, 1.0), np.float64)


def known_class(model: ClusterModel, application: str) -> int:
    """The class of an application's curves, its metric's first; −1: none was learned that gains anything."""
    mean = model.curves.mean
    known = [model.curve_class(application, rises) for rises in (True, False)]
    return next((own for own in known if own >= 0 and mean[own, -1] > mean[own, 0]), -1)


def lacking(table: Floats, application: Integers, part: Floats) -> Floats:
    """What jobs lack at a part of their iterations, linear between ``PARTS`` of a table of courses; any shape."""
    place = np.clip(part, 0.0, 1.0) * (len(PARTS) - 1)
    at = np.minimum(place.astype(np.int64), len(PARTS) - 2)
    before, after = table[application, at], table[application, at + 1]
    return np.asarray(before + (place - at) * (after - before), np.float64)


# Jobs of an episode, drawn as the domain model has seen jobs come.


class Coming(NamedTuple):
    """K jobs of an episode in order of their time, [K] each.

    Attributes:
        time: seconds since the episode began.
        queue, application: positions.
        asked: GPUs.
        data: size of its data; not a number where it isn't known.
        seconds: that it would train on the GPUs that it asked for.
    """

    time: Floats
    queue: Integers
    application: Integers
    asked: Integers
    data: Floats
    seconds: Floats


def playable(arrivals: Arrivals) -> bool:
    """Whether it is known of any job how long it trained, and how many come."""
    return bool(arrivals.rate.sum() > 0 and (~np.isnan(arrivals.jobs[:, DURATION])).any())


def _check(arrivals: Arrivals) -> None:
    """Make sure that it is known how many jobs come, and of some how long they trained.

    Raises:
        TooLittleData: it isn't; it says what samples have to tell.
    """
    if playable(arrivals):
        return
    needs = "a job that came (a row with `time`) with the seconds that it trained (`duration`)"
    if not arrivals.rate.sum() > 0:
        raise TooLittleData(needs, "no job that came, in the samples of the domain model")
    raise TooLittleData(needs, f"{len(arrivals.jobs):,} jobs that came, none of them with its duration")


def draw(arrivals: Arrivals, first: int, seconds: float, load: float, most: int, random: np.random.Generator) -> Coming:
    """The jobs of ``seconds`` from an hour of the day on.

    Each queue's come as a Poisson process of its hour's rate, times a gamma variable of its variation for each hour;
    what they ask for is that of one of its jobs in the log, or of any where it has none.

    Args:
        arrivals: as they were seen.
        first: the hour.
        seconds: of an episode.
        load: factor of all rates.
        most: GPUs of a job; those that asked for more ask for these.
        random: draws.

    Raises:
        TooLittleData: no jobs were seen that could be drawn from.
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
    asked = np.clip(whole[:, GPUS], 1, most)
    queues = np.concatenate([np.full(len(part), at) for at, part in enumerate(rows)])[order]
    return Coming(time, queues, whole[:, APPLICATION], asked, chosen[:, DATA], chosen[:, DURATION])


# How jobs of played clusters learn, and what convergence makes of them, as the service judges it.


DRAWN, STEPS = 64, 40
"""Curves that are drawn of each class, and points of each."""


class DrawnCurves(NamedTuple):
    """Curves of one class: rising values [DRAWN, STEPS] at iterations [STEPS]."""

    value: Floats
    iteration: Floats


def drawn(curves: LearningCurves, own: int) -> DrawnCurves:
    """Of class ``own``, from the normal distribution of whole curves."""
    grid, random = curves.grid[own], np.random.default_rng(0)
    iterations = np.linspace(0, grid[-1], STEPS + 1)[1:]
    factors = random.standard_normal((DRAWN, curves.basis.shape[2]))
    whole = curves.mean[own] + factors @ curves.basis[own].T
    noise = np.sqrt(np.maximum(np.interp(iterations, grid, curves.noise[own]), 0.0))
    smooth = np.stack([np.interp(iterations, grid, one) for one in whole])
    return DrawnCurves(smooth + noise * random.standard_normal(smooth.shape), iterations)


def foreseen(curves: LearningCurves, own: int, of: DrawnCurves) -> Ahead:
    """What is left of drawn curves after each of their points, and before the first, [DRAWN, STEPS + 1] each."""
    which, until = np.full(DRAWN, own), np.full(DRAWN, of.iteration[-1])
    found = [np.full((len(Ahead._fields), DRAWN), np.nan)]
    for told in range(1, STEPS + 1):
        there = np.arange(STEPS) < told
        seen = Seen(*(np.where(there, column, np.nan) for column in (np.tile(of.iteration, (DRAWN, 1)), of.value)))
        found.append(np.stack(ahead(curves, which, seen, until)))
    return Ahead(*np.stack(found, axis=-1))


class Foreseen(NamedTuple):
    """What is left of curves that were drawn of some of A applications.

    Attributes:
        first: the number of the first of each one's curves; −1: nothing is known of them, [A].
        left: of all, [K, STEPS + 1] each.
    """

    first: Integers
    left: Ahead


def foreseen_of(known: Sequence[tuple[ClusterModel, Sequence[str]]]) -> Foreseen | None:
    """Of the applications of some models, one model after the other; None where no curves are known of any."""
    first, tables = list[int](), list[Ahead]()
    for model, names in known:
        for own in (known_class(model, name) for name in names):
            first.append(DRAWN * len(tables) if own >= 0 else -1)
            if own >= 0:
                tables.append(foreseen(model.curves, own, drawn(model.curves, own)))
    if not tables:
        return None
    return Foreseen(np.array(first), Ahead(*(np.concatenate(columns) for columns in zip(*tables, strict=True))))


def unlimited(shape: tuple[int, int]) -> Converging:
    """Of the jobs of B logs, before any has come, [B, L]."""
    return Converging._make(column.reshape(shape) for column in none(shape[0] * shape[1]))


def seen_at(table: Ahead, curve: Integers, part: Floats) -> Ahead:
    """What can be said of jobs that follow curves of a table, −1: none, at a part of their iterations; any shape."""
    at = np.clip((part * STEPS + 1e-9).astype(np.int64), 0, STEPS)
    return Ahead(*(np.where(curve >= 0, column[curve, at], np.nan) for column in table))


def limited(
    layout: Layout, convergence: Convergence, clusters: Clusters, left: Ahead, before: Converging
) -> Converging:
    """What convergence makes of the jobs that hold GPUs, [B, L]; ``ceiling`` of ``clusters`` changes in place."""
    tolerance = Tolerance(convergence.tolerance, convergence.doubt, convergence.window_seconds)
    runs = clusters.gpus > 0
    level, gain, half = (np.where(runs, column, np.nan) for column in left)
    floor = np.full_like(clusters.gpus, layout.spec.minimum)
    progress = Progress(level, gain, half, clusters.gpus, floor, layout.sizes)
    after = judged(before, progress, clusters.now[:, None], tolerance)
    clusters.ceiling[:] = after.ceiling
    return after
