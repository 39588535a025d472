"""Jobs that share nodes slow one another down: by how much, and who stands beside whom instead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats, Integers

MOST_PARTS = 32
"""Parts of jobs for which a better neighbour is looked for at once, those with the worst first."""
LEAST_GAIN = 1e-3


class Neighbours(NamedTuple):
    """What J jobs do to one another.

    Attributes:
        kind: of each job, a row of ``log_slowdown``, [J].
        log_slowdown: natural log of what the seconds of a step of the one kind (row) are multiplied by beside a job of
            the other (column); several neighbours multiply, [K, K].
    """

    kind: Integers
    log_slowdown: Floats


class Parts(NamedTuple):
    """GPUs of jobs on nodes, a part each: job, node and GPUs, [P] each."""

    job: Integers
    node: Integers
    gpus: Integers


def slowdowns(neighbours: Neighbours, held: Integers) -> Floats:
    """What the seconds of each job's steps are multiplied by on these nodes, [J]; a neighbour counts once."""
    found = np.ones(len(held))
    on = held > 0
    shared = np.flatnonzero(on.sum(axis=0) > 1)
    rows = np.flatnonzero(on[:, shared].any(axis=1))
    beside = on[np.ix_(rows, shared)].astype(np.float64)
    together = beside @ beside.T > 0
    np.fill_diagonal(together, val=False)
    kind = neighbours.kind[rows]
    found[rows] = np.exp((together * neighbours.log_slowdown[np.ix_(kind, kind)]).sum(axis=1))
    return found


def beside_others(neighbours: Neighbours, capacity: Integers, held: Integers, before: Integers) -> Integers:
    """``held`` with those jobs that change their nodes anyway beside whom they, and who is there, suffer least, [J, N].

    Part by part, the worst first: it changes places with an equal part of another such job, or goes where as many GPUs
    are free, where that takes most from the sum of logs of all slow-downs. Nobody else is moved.
    """
    job, node = np.nonzero(held)
    parts = Parts(job, node, held[job, node])
    pair = neighbours.log_slowdown + neighbours.log_slowdown.T
    kinds, free = neighbours.kind[job], capacity - held.sum(axis=0)
    may = (held != before).any(axis=1)[job] & (parts.gpus < capacity[node])
    own = _costs(pair, kinds, parts)
    worst = np.flatnonzero(may & (own > LEAST_GAIN))
    for one in worst[np.argsort(-own[worst], kind="stable")][:MOST_PARTS].tolist():
        _improve(one, may, pair[kinds[one]][kinds], _Board(pair, kinds, parts, free))
    found = np.zeros_like(held)
    np.add.at(found, (parts.job, parts.node), parts.gpus)
    return found


class _Board(NamedTuple):
    """Parts on nodes as they are now; ``parts.node`` and ``free`` [N] change in place."""

    pair: Floats
    kinds: Integers
    parts: Parts
    free: Integers


def _costs(pair: Floats, kinds: Integers, parts: Parts) -> Floats:
    """Of each part beside all others of its node, [P]."""
    number = np.zeros((int(parts.node.max(initial=-1)) + 1, len(pair)))
    np.add.at(number, (parts.node, kinds), 1.0)
    own = pair[kinds, kinds]
    return np.asarray((number[parts.node] * pair[kinds]).sum(axis=1) - own, np.float64)


def _improve(one: int, may: np.ndarray[tuple[int], np.dtype[np.bool_]], cost: Floats, board: _Board) -> None:
    """Move one part, or exchange it with another, if that gains; ``cost``: of it beside each part, [P]."""
    pair, kinds, parts, free = board
    here, number = int(parts.node[one]), len(free)
    others = parts.job != parts.job[one]
    on_node = np.bincount(parts.node, cost * others, number)  # of this part on each node
    own_nodes = parts.node[~others]
    now = on_node[here]
    room = free >= parts.gpus[one]
    room[own_nodes] = False
    moved = np.where(room, now - on_node, -np.inf)
    there = np.flatnonzero(parts.node == here)
    away = pair[np.ix_(kinds, kinds[there[there != one]])].sum(axis=1)  # of each part, in its stead
    able = may & others & (parts.gpus == parts.gpus[one]) & (parts.node != here)
    able &= ~np.isin(parts.node, own_nodes) & ~np.isin(parts.job, parts.job[there])
    swapped = now + _costs(pair, kinds, parts) - (on_node[parts.node] - cost) - away
    swapped = np.where(able, swapped, -np.inf)
    best, other = int(moved.argmax()), int(swapped.argmax())
    if max(moved[best], swapped[other]) <= LEAST_GAIN:
        return
    if moved[best] >= swapped[other]:
        free[here] += parts.gpus[one]
        free[best] -= parts.gpus[one]
        parts.node[one] = best
    else:
        parts.node[one], parts.node[other] = parts.node[other], here
