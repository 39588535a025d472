"""Jobs on nodes, compiled: what ``app.kinds.cluster.allocation`` places and packs, for the jobs of one cluster."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.jobs import Integers
from workers.kinds.cluster.simulator.compiling import kernel


@kernel
def placed(capacity: Integers, before: Integers, wanted: Integers) -> Integers:
    """See ``allocation.placement.place``: GPUs of each job on each node, [J, N], packed."""
    held, missing = np.zeros_like(before), wanted.copy()
    for job in range(len(wanted)):
        if before[job].sum() == wanted[job]:
            held[job], missing[job] = before[job], 0
    crowded = held.sum(axis=0) > capacity
    for job in range(len(wanted)):
        if crowded.any() and ((held[job] > 0) & crowded).any():
            held[job], missing[job] = 0, wanted[job]
    kept = held.copy()
    if not packed(capacity, held, missing):
        held = kept
        for job in np.argsort(-wanted, kind="mergesort"):
            free = capacity - held.sum(axis=0)
            while missing[job] > 0:
                node = free.argmax()
                taken = min(free[node], missing[job])
                held[job, node] += taken
                free[node] -= taken
                missing[job] -= taken
    return held


@kernel
def packed(capacity: Integers, held: Integers, missing: Integers) -> bool:
    """See ``allocation.packing.pack``; ``held`` changes in place, and whether all parts fit is told."""
    largest = max(1, capacity.max())
    parts = np.zeros((len(missing), largest + 1), np.int64)
    for job in range(len(missing)):
        parts[job, largest] = missing[job] // largest
        parts[job, missing[job] % largest] += missing[job] % largest > 0
    free = capacity - held.sum(axis=0)
    for size in range(largest, 0, -1):
        for job in range(len(missing)):
            while parts[job, size]:
                node = _room(free, held, size)
                if node < 0:
                    return False
                for other in range(len(missing)):
                    if free[node] < size and 0 < held[other, node] < size:
                        parts[other, held[other, node]] += 1
                        free[node] += held[other, node]
                        held[other, node] = 0
                held[job, node] += size
                free[node] -= size
                parts[job, size] -= 1
    return True


@kernel
def _room(free: Integers, held: Integers, size: int) -> int:
    """The fullest node with room, or where fewest GPUs are moved for it; −1: none."""
    found, least = -1, 0
    for node in range(len(free)):
        if free[node] >= size and (found < 0 or free[node] < least):
            found, least = node, free[node]
    if found >= 0:
        return found
    most = -1
    for node in range(len(free)):
        movable = 0
        for job in range(len(held)):
            movable += held[job, node] if held[job, node] < size else 0
        if free[node] + movable >= size and free[node] > most:
            found, most = node, free[node]
    return found
