"""Episodes of clusters between two decisions, and what an interval of them costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from app.kinds.cluster.allocation.convergence import Converging
from app.kinds.cluster.allocation.situation import Situation
from app.kinds.cluster.jobs import Floats, Integers, Jobs
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.learning_curves import Ahead
from workers.kinds.cluster.simulator.kernels import CAME, ENDED, THERE, Clusters, Rules
from workers.kinds.cluster.simulator.stepping import elapse, priced

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
    """See ``TERMS``: of one interval, [B, T]; at the last one what is left of jobs counts, too.

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
