"""Where jobs run: GPUs per job become GPUs per job and node."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.allocation.neighbours import beside_others
from app.kinds.cluster.allocation.packing import pack
from app.kinds.cluster.allocation.situation import Situation, Wanted
from app.kinds.cluster.jobs import Integers


def place(situation: Situation, wanted: Wanted) -> Integers:
    """GPUs of each job on each node, [J, N]; who moves is set beside whom that costs least, as far as that is known.

    Raises:
        ValueError: more is wanted than there is.
    """
    held = _placed(situation, wanted)
    if situation.neighbours is None:
        return held
    return beside_others(situation.neighbours, situation.capacity, held, situation.jobs.held)


def _placed(situation: Situation, wanted: Wanted) -> Integers:
    """GPUs of each job on each node, [J, N].

    Jobs that keep their number keep their nodes, as long as these are there; the others take from the node with most
    free GPUs first, in the order that is wanted, or are packed. Never is more given than a node has.

    Raises:
        ValueError: more is wanted than there is.
    """
    held, total = situation.jobs.held, int(wanted.gpus.sum())
    if total > situation.gpus:
        raise ValueError(f"{total} GPUs are wanted of {situation.gpus}")
    kept = np.where((held.sum(axis=1) == wanted.gpus)[:, None], held, 0)
    if (kept.sum(axis=0) > situation.capacity).any():
        kept[(kept[:, kept.sum(axis=0) > situation.capacity] > 0).any(axis=1)] = 0
    missing = wanted.gpus - kept.sum(axis=1)
    if not missing.any():
        return kept
    packed = pack(situation.capacity, kept, missing) if wanted.packed else None
    if packed is not None:
        return packed
    free: list[int] = (situation.capacity - kept.sum(axis=0)).tolist()
    for job in wanted.order[missing[wanted.order] > 0].tolist():
        _most_free_first(kept[job], int(missing[job]), free)
    return kept


def _most_free_first(row: Integers, missing: int, free: list[int]) -> None:
    """Fill one job's row, [N]; the first of equal nodes goes first."""
    while missing:
        most = max(free)
        node = free.index(most)
        taken = min(most, missing)
        row[node] += taken
        free[node] -= taken
        missing -= taken
