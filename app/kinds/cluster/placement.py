"""Situations in which GPUs are given out, and the placement of jobs on nodes."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol

import numpy as np

from app.kinds.cluster.jobs import NEVER, Floats, Integers, Jobs

# Jobs that share nodes slow one another down: by how much, and who stands beside whom instead.


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


# By when jobs should be finished, and what numbers of GPUs are worth for that.


LEAST_SPREAD = 0.05
LOGISTIC = np.sqrt(3) / np.pi
"""Scale of a logistic distribution over its standard deviation."""
TINY, LONGEST = 1e-9, 1e18


class Deadlines(NamedTuple):
    """J jobs.

    Attributes:
        at: by when each should be finished, ``NEVER``: it has no deadline, [J].
        spread: standard deviation of the log of the time that it takes over what is expected, [J].
        worth: of being in time, against the speed of all jobs, [J].
    """

    at: Floats
    spread: Floats
    worth: Floats

    def chance(self, now: float, seconds: Floats) -> Floats:
        """How probably jobs are in time that take so many seconds from now on, [J, K]; about 0 without a deadline.

        Logarithms of what they take spread as a logistic distribution, which needs no error function.
        """
        left = np.where(self.at < NEVER, self.at - now, 0.0)[:, None]
        scale = np.maximum(self.spread, LEAST_SPREAD)[:, None] * LOGISTIC
        ratio = np.log(np.maximum(left, TINY)) - np.log(np.clip(seconds, TINY, LONGEST))
        return np.asarray(1 / (1 + np.exp(np.clip(-ratio / scale, -50.0, 50.0))), np.float64)


# What rules of allocation see, and what they say.


class Outlook(Protocol):
    """What is expected of the jobs of a situation: J jobs, 0 to G GPUs that are packed on as few nodes as they fill.

    It is asked for what a rule wants to know and computed then.
    """

    def update_seconds(self) -> Floats:
        """Seconds of one update of the parameters, [J, G + 1]; infinite where a job can't use so many."""
        ...

    def updates(self) -> Floats:
        """How many are left, [J]."""
        ...

    def goodput(self, gpus: Integers) -> Floats:
        """Progress a second on so many GPUs, [J, R] for [R]; nothing where a job can't use so many."""
        ...

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """By what part of all that it falls the loss falls in ``seconds`` on so many GPUs, [J, R] for [R].

        Nothing where a job can't use so many.
        """
        ...

    def seconds_left(self, gpus: Integers) -> Floats:
        """Seconds until each job is finished on so many GPUs of its own, [J, K]; infinite where it can't be."""
        ...


def seconds_by_table(outlook: Outlook, gpus: Integers) -> Floats:
    """``Outlook.seconds_left`` by its other answers, at their batch sizes."""
    with np.errstate(invalid="ignore"):
        left = np.take_along_axis(outlook.update_seconds(), gpus, axis=1) * outlook.updates()[:, None]
    return np.where(np.isnan(left), np.inf, left)


class Situation(NamedTuple):
    """A moment at which GPUs are given to J jobs on N nodes.

    Attributes:
        now: seconds since the cluster's start.
        capacity: GPUs of each node, [N].
        jobs: that are there, [J].
        outlook: what is expected of them.
        restart_seconds: what a change of nodes costs a job.
        deadlines: of the jobs; None: none has any.
        neighbours: what the jobs do to one another on shared nodes; None: nothing is known of it.
        factor: of what each job's completion time is worth, [J]; None: 1.
    """

    now: float
    capacity: Integers
    jobs: Jobs
    outlook: Outlook
    restart_seconds: float
    deadlines: Deadlines | None = None
    neighbours: Neighbours | None = None
    factor: Floats | None = None

    @property
    def gpus(self) -> int:
        """G, all there are."""
        return int(self.capacity.sum())


class Wanted(NamedTuple):
    """What a rule says.

    Attributes:
        gpus: of each job, [J].
        order: positions of jobs in the order in which they are placed, [J].
        packed: whether jobs go to as few nodes as they fill, even if others are moved for that.
    """

    gpus: Integers
    order: Integers
    packed: bool = False


Rule = Callable[[Situation], Wanted]


def in_order(gpus: Integers) -> Wanted:
    """Jobs are placed in order of submission."""
    return Wanted(gpus, np.arange(len(gpus)))


def admitted(asked: Integers, order: Integers, free: int) -> Integers:
    """What was asked for, [J], for each job that still fits when its turn comes, else nothing."""
    gpus = np.zeros(len(asked), np.int64)
    wanted = asked.tolist()
    for job in order.tolist():
        if wanted[job] <= free:
            gpus[job] = wanted[job]
            free -= wanted[job]
            if not free:
                break
    return gpus


# Jobs on as few nodes as they fill; smaller ones make room for larger ones.


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


# Where jobs run: GPUs per job become GPUs per job and node.


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
