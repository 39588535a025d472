"""Many clusters for ``kernels``: what was measured as tables, and logs as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from app.kinds.cluster.allocation.convergence import UNLIMITED
from app.kinds.cluster.allocation.fairness import fitting
from app.kinds.cluster.goodput import TRIED
from app.kinds.cluster.jobs import Floats, Integers
from workers.kinds.cluster.simulator.kernels import Clusters, Rules
from workers.kinds.cluster.simulator.log import Submission
from workers.kinds.cluster.simulator.measured import NCF_BATCH, ONE_GPU, Application, Batch
from workers.kinds.cluster.simulator.simulator import Settings


def tabled(applications: Mapping[str, Application], settings: Settings, growth: int = 0) -> Rules:
    """Applications whose jobs train, in each epoch, at the batch that is best by what was measured of them."""
    capacity = np.full(settings.nodes, settings.gpus)
    ones, sizes = list(applications.values()), fitting(capacity)
    epochs = max(one.epochs for one in ones)
    rate, ends = np.zeros((len(ones), capacity.sum() + 1, epochs)), np.full((len(ones), epochs), np.inf)
    for kind, one in enumerate(ones):
        ends[kind, : one.epochs] = one.ends
        for gpus in sizes.tolist():
            rate[kind, gpus, : one.epochs] = _fastest(one, gpus, settings.gpus)
    most = [np.flatnonzero(row.any(axis=1))[-1] for row in rate]
    lengths, alone = np.array([one.epochs for one in ones]), (np.ones(1), np.full(1, np.inf), np.inf)
    return Rules(
        sizes, rate, ends, lengths, np.array(most), settings.interval, settings.restart_seconds, growth, *alone
    )


def _fastest(one: Application, gpus: int, node: int) -> Floats:
    """Iterations a second on so many GPUs, packed, at the best batch of each epoch, [epochs]; 0 where none is legal."""
    found = np.zeros(one.epochs)
    if gpus:
        placement = [node] * (gpus // node) + ([gpus % node] if gpus % node else [])
        for batch in _batches(one, gpus):
            total = gpus * batch.atomic * (batch.accumulated + 1)
            found = np.maximum(found, one.gain(one.initial, total) / one.update_seconds(placement, batch))
    return found


def _batches(one: Application, gpus: int) -> set[Batch]:
    """Legal ones, of sizes in equal ratios."""
    if one.name in ONE_GPU:
        return {one.batch_of(NCF_BATCH, 1)} if gpus == 1 else set()
    first = max(one.initial, one.smallest_local * gpus)
    if first > one.largest:
        return set()
    totals = first * (one.largest / first) ** np.linspace(0, 1, TRIED)
    found = {one.batch_of(int(total), gpus) for total in totals}
    return {batch for batch in found if one.smallest_local <= batch.atomic <= one.largest_local}


def clusters(
    logs: Sequence[Sequence[Submission]],
    names: Sequence[str],
    settings: Settings,
    changes: Sequence[Sequence[tuple[float, int, int]]] = (),
    speed: Floats | None = None,
) -> Clusters:
    """Clusters before anything has happened, one for each log; ``names`` of applications in the order of the rules.

    Args:
        logs: jobs in order of submission, [B].
        names: of applications.
        settings: of each cluster.
        changes: of nodes: seconds, node and its GPUs from then on, by cluster in their order; none where empty.
        speed: of a GPU of each node against those that were measured, [N]; None: as fast.
    """
    batch, length = len(logs), max(map(len, logs))
    most = max(map(len, changes), default=0)
    time, change = np.full((batch, length), np.inf), np.full((batch, most, 3), np.inf)
    application, queue = np.zeros((batch, length), np.int64), np.zeros((batch, length), np.int64)
    asked = np.ones((batch, length), np.int64)
    for row, log in enumerate(logs):
        time[row, : len(log)] = [job.time for job in log]
        application[row, : len(log)] = [names.index(job.application) for job in log]
        asked[row, : len(log)] = [job.gpus for job in log]
        queue[row, : len(log)] = [job.queue for job in log]
    for row, made in enumerate(changes):
        change[row, : len(made)] = np.array(made, np.float64).reshape(-1, 3)
    capacity = np.full(settings.nodes, settings.gpus)
    found = empty(time, capacity)._replace(application=application, queue=queue, asked=asked, change=change)
    return found if speed is None else found._replace(speed=np.tile(speed, (batch, 1)))


def empty(time: Floats, capacity: Integers) -> Clusters:
    """Clusters of nodes [N] to which jobs of the first application come, alone in their queue, at times [B, L]."""
    (batch, length), nodes = time.shape, len(capacity)
    real, whole = np.zeros((batch, length)), np.zeros((batch, length), np.int64)
    return Clusters(
        time,
        application=whole.copy(),
        queue=whole.copy(),
        asked=np.ones((batch, length), np.int64),
        expected=real.copy(),
        change=np.zeros((batch, 0, 3)),
        speed=np.ones((batch, nodes)),
        now=np.zeros(batch),
        counts=np.zeros((batch, 4), np.int64),
        there=whole.copy(),
        done=real.copy(),
        epoch=whole.copy(),
        gpus=whole.copy(),
        held=np.zeros((batch, length, nodes), np.int64),
        running=real.copy(),
        restarting=real.copy(),
        restarts=whole.copy(),
        been=whole.copy(),
        completed=np.full((batch, length), np.nan),
        factor=np.ones((batch, length)),
        worth=np.ones((batch, length)),
        ceiling=np.full((batch, length), UNLIMITED),
        capacity=np.tile(capacity, (batch, 1)),
    )
