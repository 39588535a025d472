"""The best return of an episode that foreknowledge of its requests could allow: a linear relaxation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel

Floats = NDArray[np.float64]

# What nobody can beat on recorded requests, who knows them all beforehand: a linear program that relaxes the system.
#
# Time is cut into slices. Each request is split at will among variants, classes and slices from its own on; a part
# takes its share of the least server seconds that a request takes in any batch, and servers give as many seconds in a
# slice as are on. Its quality is that of the least delay: the quickest batch of any size, or to the slice before the
# one in which the part is worked on. What is ignored (whole batches, whole servers, orders of events, time to start
# after the first servers' and to switch, drops, fairness, changes) can only lose. So no policy's return is higher,
# where batches take as long as the domain model says.


class Bound(NamedTuple):
    """The bound, in terms of the reward that are relaxed: all are at least what they are here together.

    Attributes:
        best: return that no policy exceeds.
        quality: weighted loss of quality per request, in the relaxed plan.
        cost: as a share of that of all servers all the time, in the same.
    """

    best: float
    quality: float
    cost: float


class _Parts(NamedTuple):
    """Parts of requests that came alike: P of them.

    Attributes:
        group: requests of one user that came in one slice, [P].
        slice: in which the part is worked on, [P].
        klass: of the server, [P].
        work: server seconds of a request, [P].
        worth: weighted quality of a request, [P].
    """

    group: NDArray[np.int64]
    slice: NDArray[np.int64]
    klass: NDArray[np.int64]
    work: Floats
    worth: Floats


def bounded(layout: Layout, model: ServiceModel, requests: Sequence[Floats], slice_seconds: float) -> Bound:
    """The bound of an episode.

    Args:
        layout: of the workload.
        model: its domain model, whose batches take as long as its quickest member says.
        requests: seconds since the episode's begin at which each user's come, ascending.
        slice_seconds: the shorter, the tighter.
    """
    spec = layout.spec
    ahead = int(np.ceil(layout.quality.zero_at.max() / slice_seconds)) + 1
    slices = int(np.ceil(spec.episode_seconds / slice_seconds)) + ahead
    counts = np.stack([np.bincount((own // slice_seconds).astype(int), minlength=slices)[:slices] for own in requests])
    parts = _parts(layout, np.exp(model.log_seconds.min(axis=0)), counts, slice_seconds, ahead)
    total = max(int(counts.sum()), 1)
    gain = spec.weights.quality * parts.worth / total
    classes = len(layout.servers)
    whole = float(layout.price @ layout.maximum) * spec.episode_seconds
    price = spec.weights.cost * np.tile(layout.price, slices) * slice_seconds / (whole or 1.0)
    low, high = _servers(layout, slices, slice_seconds)
    groups, count = int(parts.group.max(initial=-1)) + 1, len(parts.group)
    place = np.arange(count)
    rows = np.concatenate([parts.group, groups + parts.slice * classes + parts.klass, groups + np.arange(len(price))])
    columns = np.concatenate([place, place, count + np.arange(len(price))])
    values = np.concatenate([np.ones(count), parts.work, np.full(len(price), -slice_seconds)])
    limits = np.concatenate([counts.T.reshape(-1)[counts.T.reshape(-1) > 0], np.zeros(len(price))])
    solution = linprog(
        np.concatenate([-gain, price]),
        A_ub=coo_matrix((values, (rows, columns)), shape=(len(limits), count + len(price))).tocsr(),
        b_ub=limits,
        bounds=np.stack(
            [np.concatenate([np.zeros(count), low]), np.concatenate([np.full(count, np.inf), high])], axis=1
        ),
        method="highs",
    )
    if solution.status != 0:
        raise RuntimeError(f"the relaxation was not solved: {solution.message}")
    request = float((counts * layout.quality.weight[:, None]).sum()) / total
    quality, cost = (
        request - float(gain @ solution.x[:count]) / max(spec.weights.quality, 1e-300),
        float(price @ solution.x[count:]),
    )
    best = -spec.weights.quality * quality - cost if spec.weights.quality > 0 else -cost
    return Bound(best, quality, cost / spec.weights.cost if spec.weights.cost > 0 else 0.0)


def _servers(layout: Layout, slices: int, slice_seconds: float) -> tuple[Floats, Floats]:
    """Least and most servers of each class in each slice, [slices · C]: the first that start need their time.

    After the episode's end none has to be on: when the last request is answered, it is over.
    """
    begin = np.arange(slices)[:, None] * slice_seconds
    most = np.where(begin + slice_seconds <= layout.startup, layout.minimum, layout.maximum)
    least = np.where(begin + slice_seconds <= layout.spec.episode_seconds, layout.minimum, 0)
    return least.reshape(-1).astype(np.float64), most.reshape(-1).astype(np.float64)


def _parts(layout: Layout, seconds: Floats, counts: NDArray[np.int64], slice_seconds: float, ahead: int) -> _Parts:
    """Every part that is worth anything; ``seconds`` [C, V, K], ``counts`` [U, slices]."""
    users, variants, _ = layout.shape
    slices, classes = counts.shape[1], len(layout.servers)
    work, quickest = (seconds / layout.batches).min(axis=2), seconds.min(axis=2)  # [C, V]
    later, klass, variant = (axis.reshape(-1) for axis in np.indices((ahead + 1, classes, variants)))
    delay = np.maximum(quickest[klass, variant], (later - 1) * slice_seconds)
    results, group = [], 0
    worth = [layout.quality.weight[u] * layout.quality.quality(u, variant, delay) for u in range(users)]
    for begin in range(slices):
        for user in range(users):
            if counts[user, begin]:
                mask = (worth[user] > 0) & (begin + later < slices)
                same = np.full(int(mask.sum()), group)
                results.append((same, begin + later[mask], klass[mask], work[klass, variant][mask], worth[user][mask]))
                group += 1
    if not results:
        return _Parts(*(np.zeros(0, np.int64),) * 3, np.zeros(0), np.zeros(0))
    return _Parts(*(np.concatenate(column) for column in zip(*results, strict=True)))
