"""Jobs on as few nodes as they fill; smaller ones make room for larger ones."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from app.kinds.cluster.jobs import Integers


class FreeGpus:
    """GPUs that are free on each node; nodes are found by how many those are."""

    def __init__(self, free: Integers) -> None:
        self.of: list[int] = free.tolist()
        self._nodes: list[list[int]] = [[] for _ in range(max(self.of, default=0) + 1)]
        for node, count in enumerate(self.of):
            self.set(node, count)

    def set(self, node: int, count: int) -> None:
        """So many are free on a node now."""
        self.of[node] = count
        while len(self._nodes) <= count:
            self._nodes.append([])
        if count > 0:
            heappush(self._nodes[count], node)

    def tightest(self, size: int) -> int | None:
        """The first of the nodes with the fewest free GPUs that are as many as ``size``; None: there is none."""
        for count in range(size, len(self._nodes)):
            nodes = self._nodes[count]
            while nodes and self.of[nodes[0]] != count:  # it has had so many, and has others now
                heappop(nodes)
            if nodes:
                return nodes[0]
        return None


def pack(capacity: Integers, kept: Integers, missing: Integers) -> Integers | None:
    """GPUs of each job on each node, [J, N], where ``missing`` [J] are added to what is ``kept`` [J, N].

    Whole nodes come first, then smaller and smaller parts, each where it fits most tightly. Where it fits nowhere, jobs
    that have less of a node are moved from the node that loses fewest. None where parts don't fit that way.
    """
    node, held = max(1, int(capacity.max(initial=0))), kept.copy()
    parts, free = _parts(missing, node), FreeGpus(capacity - held.sum(axis=0))
    for size in range(node, 0, -1):
        waiting = parts[size]
        heapify(waiting)
        while waiting:
            job, where = heappop(waiting), free.tightest(size)
            if where is None:
                where = _cleared(held, free, size, parts)
            if where is None:
                return None
            held[job, where] += size
            free.set(where, free.of[where] - size)
    return held


def _parts(missing: Integers, node: int) -> list[list[int]]:
    """Jobs that miss a part of a node, by its size; whole nodes are parts, too."""
    parts: list[list[int]] = [[] for _ in range(node + 1)]
    for job in np.flatnonzero(missing).tolist():
        whole, rest = divmod(int(missing[job]), node)
        parts[node] += [job] * whole
        if rest:
            parts[rest].append(job)
    return parts


def _cleared(held: Integers, free: FreeGpus, size: int, parts: list[list[int]]) -> int | None:
    """A node where the fewest GPUs are moved for a part; who is moved waits in ``parts``. None: there is none."""
    room = np.array(free.of)
    possible = np.flatnonzero(room + np.where(held < size, held, 0).sum(axis=0) >= size)
    if not possible.size:
        return None
    where = int(possible[(size - room[possible]).argmin()])
    for other in np.flatnonzero((held[:, where] > 0) & (held[:, where] < size)).tolist():
        if free.of[where] >= size:
            break
        moved = int(held[other, where])
        parts[moved].append(other)
        held[other, where] = 0
        free.set(where, free.of[where] + moved)
    return where
