"""Jobs on as few nodes as they fill; smaller ones make room for larger ones."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.jobs import Integers


def pack(capacity: Integers, kept: Integers, missing: Integers) -> Integers | None:
    """GPUs of each job on each node, [J, N], where ``missing`` [J] are added to what is ``kept`` [J, N].

    Whole nodes come first, then smaller and smaller parts, each where it fits most tightly. Where it fits nowhere, jobs
    that have less of a node are moved from the node that loses fewest. None where parts don't fit that way.
    """
    node, held = max(1, int(capacity.max(initial=0))), kept.copy()
    waiting = [[int(count)] for count in missing]
    waiting = [[node] * (count // node) + [count % node] * (count % node > 0) for (count,) in waiting]
    for size in range(node, 0, -1):
        while True:
            job = next((number for number, parts in enumerate(waiting) if size in parts), None)
            if job is None:
                break
            where = _room(capacity, held, size)
            if where is None:
                return None
            for other in np.flatnonzero((held[:, where] > 0) & (held[:, where] < size)).tolist():
                if int(capacity[where] - held[:, where].sum()) >= size:
                    break
                waiting[other].append(int(held[other, where]))
                held[other, where] = 0
            held[job, where] += size
            waiting[job].remove(size)
    return held


def _room(capacity: Integers, held: Integers, size: int) -> int | None:
    """The node that a part goes to: the fullest with room, or else where the fewest GPUs are moved for it."""
    free = capacity - held.sum(axis=0)
    fits = np.flatnonzero(free >= size)
    if fits.size:
        return int(fits[free[fits].argmin()])
    movable = np.where(held < size, held, 0).sum(axis=0)
    cleared = np.flatnonzero(free + movable >= size)
    return int(cleared[(size - free[cleared]).argmin()]) if cleared.size else None
