"""A played launcher: it runs the jobs of one cluster as decided, and reports what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.cluster.beliefs import Beliefs
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.live.advance import advance
from app.kinds.cluster.live.report import EncodedEnded, EncodedNode, EncodedProgressed, EncodedReport, EncodedSubmitted
from app.kinds.cluster.live.state import ClusterState
from workers.kinds.cluster.world.drawing import Coming


class Truth(NamedTuple):
    """What is true of an episode, and nobody is told.

    Attributes:
        beliefs: the domain model that it follows.
        coming: its jobs, K.
        steps: of each until it is finished, [K].
        ideal: seconds that each would take alone on the cluster, [K].
        effect: factor of the seconds of all steps.
        begins: seconds since 0:00 UTC at which the episode does.
    """

    beliefs: Beliefs
    coming: Coming
    steps: Floats
    ideal: Floats
    effect: float
    begins: float


class Cluster(NamedTuple):
    """One episode between two decisions; never changed in place.

    Attributes:
        state: as the service keeps it; jobs are named by their number.
        came: how many of the jobs have.
        done: steps that each has made, [K].
        finished: when each was, not a number before, [K].
    """

    state: ClusterState
    came: int
    done: Floats
    finished: Floats


class Spent(NamedTuple):
    """What an interval cost.

    Attributes:
        present: seconds for which each job was there, [K].
        occupied: GPU-seconds of each node, [N].
    """

    present: Floats
    occupied: Floats


class Trouble(NamedTuple):
    """What the environment makes of an interval: factor of seconds, share of work lost, GPUs of each node, [N]."""

    slower: float
    lost: float
    capacity: Integers


def truth_of(layout: Layout, beliefs: Beliefs, coming: Coming, effect: float, begins: float) -> Truth:
    """What follows from the jobs that come."""
    total = int(layout.capacity.sum())
    sizes = np.unique(np.minimum(2 ** np.arange(total.bit_length() + 1), total))
    batch = np.full(len(coming.time), np.nan)
    every = np.broadcast_to(sizes, (len(batch), len(sizes)))
    asked = beliefs.step_seconds(coming.application, batch, coming.asked[:, None])[:, 0]
    steps = np.maximum(coming.seconds / asked, 1.0)
    best = beliefs.step_seconds(coming.application, batch, every).min(axis=1)
    return Truth(beliefs, coming, steps, steps * np.minimum(best, asked), effect, begins)


def pass_interval(
    layout: Layout, truth: Truth, cluster: Cluster, seconds: float, trouble: Trouble
) -> tuple[Cluster, Spent]:
    """The cluster an interval later, with all that its launcher reports then; its jobs ran as was decided."""
    state, now = cluster.state, cluster.state.now + seconds
    which = np.array([int(name) for name in state.names], np.int64)
    gpus, jobs = state.jobs.gpus, state.jobs
    trained = np.where(gpus > 0, np.maximum(seconds - jobs.restarting, 0.0), 0.0)
    batch = np.full(len(which), np.nan)
    step = truth.beliefs.step_seconds(truth.coming.application[which], batch, np.maximum(gpus, 1)[:, None])[:, 0]
    step = step * truth.effect * trouble.slower
    made, left = trained / step * (1 - trouble.lost), truth.steps[which] - cluster.done[which]
    ends = (made >= left) & (gpus > 0)
    stayed = np.where(ends, seconds - trained + left * step / (1 - min(trouble.lost, 0.99)), seconds)
    done, finished, present = cluster.done.copy(), cluster.finished.copy(), np.zeros(len(cluster.done))
    done[which] += np.minimum(made, left)
    finished[which[ends]] = (state.now + np.minimum(stayed, seconds))[ends]
    present[which] = np.minimum(stayed, seconds)
    came = int(np.searchsorted(truth.coming.time, now, side="right"))
    present[cluster.came : came] = now - truth.coming.time[cluster.came : came]
    occupied = (jobs.held * np.minimum(stayed, seconds)[:, None]).sum(axis=0)
    report = _report(layout, truth, cluster, (which, ends, done, came), now, trouble)
    return Cluster(advance(layout, state, report), came, done, finished), Spent(present, occupied)


def _named(names: Sequence[str], position: int) -> str | None:
    return names[position] if position >= 0 else None


def _report(
    layout: Layout,
    truth: Truth,
    cluster: Cluster,
    what: tuple[Integers, np.ndarray[tuple[int], np.dtype[np.bool_]], Floats, int],
    now: float,
    trouble: Trouble,
) -> EncodedReport:
    which, ends, done, came = what
    coming = truth.coming
    new = [
        EncodedSubmitted(
            str(number),
            int(coming.asked[number]),
            queue=layout.queues[int(coming.queue[number])],
            at=float(coming.time[number]),
            application=_named(truth.beliefs.applications, int(coming.application[number])),
            data=float(coming.data[number]) if coming.data[number] > 0 else None,
            iterations=float(truth.steps[number]),
        )
        for number in range(cluster.came, came)
    ]
    on = [EncodedProgressed(str(number), float(done[number])) for number in which[~ends].tolist()]
    changed = np.flatnonzero(cluster.state.capacity != trouble.capacity)
    return EncodedReport(
        now,
        submitted=tuple(new),
        progressed=tuple(on),
        ended=tuple(EncodedEnded(str(number)) for number in which[ends].tolist()),
        nodes=tuple(EncodedNode(layout.nodes[at], int(trouble.capacity[at])) for at in changed.tolist()),
    )
