"""Inputs and results of allocation rules, and the placement of jobs on nodes."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol

import numpy as np

from app.kinds.cluster.jobs import NEVER, Floats, Integers, Jobs

# Interference: the slowdown of jobs that share nodes, and placements that reduce it.


MOST_PARTS = 32
"""Most parts of jobs that are moved to other neighbours in one decision; the parts slowed most come first."""
LEAST_GAIN = 1e-3


class Neighbours(NamedTuple):
    """Mutual slowdown of J jobs on shared nodes, by K kinds of jobs.

    Attributes:
        kind: row of ``log_slowdown`` for each job, [J].
        log_slowdown: natural logarithm of the factor on the step time of a job of the row's kind beside one of the
            column's kind; factors of several neighbours multiply, [K, K].
    """

    kind: Integers
    log_slowdown: Floats


class Parts(NamedTuple):
    """P parts of jobs, each on one node: position of the job, position of the node, and number of GPUs, [P] each."""

    job: Integers
    node: Integers
    gpus: Integers


def slowdowns(neighbours: Neighbours, allocation: Integers) -> Floats:
    """Return the factor, [J], by which other jobs on its nodes lengthen the steps of each of J jobs; 1 if it is alone.
    ``allocation`` has the GPUs on each of N nodes, [J, N]."""
    slowdowns = np.ones(len(allocation))
    on = allocation > 0
    shared = np.flatnonzero(on.sum(axis=0) > 1)
    rows = np.flatnonzero(on[:, shared].any(axis=1))
    beside = on[np.ix_(rows, shared)].astype(np.float64)
    together = beside @ beside.T > 0
    np.fill_diagonal(together, val=False)
    kind = neighbours.kind[rows]
    slowdowns[rows] = np.exp((together * neighbours.log_slowdown[np.ix_(kind, kind)]).sum(axis=1))
    return slowdowns


def beside_others(neighbours: Neighbours, capacity: Integers, allocation: Integers, before: Integers) -> Integers:
    """Rearrange the jobs whose nodes change anyway to reduce interference; return GPUs of J jobs on N nodes, [J, N].
    Parts of jobs are taken worst first. Each is exchanged with an equal part of another such job, or moved to free
    GPUs, whichever reduces the sum of all log slowdowns most. Jobs that keep their nodes are not moved.

    Args:
        neighbours: slowdowns of the jobs.
        capacity: GPUs of each node, [N].
        allocation, before: new and present allocation, [J, N].
    """
    job, node = np.nonzero(allocation)
    parts = Parts(job, node, allocation[job, node])
    pair = neighbours.log_slowdown + neighbours.log_slowdown.T
    kinds, free = neighbours.kind[job], capacity - allocation.sum(axis=0)
    may = (allocation != before).any(axis=1)[job] & (parts.gpus < capacity[node])
    own = _costs(pair, kinds, parts)
    worst = np.flatnonzero(may & (own > LEAST_GAIN))
    for one in worst[np.argsort(-own[worst], kind="stable")][:MOST_PARTS].tolist():
        _improve(one, may, pair[kinds[one]][kinds], _Board(pair, kinds, parts, free))
    result = np.zeros_like(allocation)
    np.add.at(result, (parts.job, parts.node), parts.gpus)
    return result


class _Board(NamedTuple):
    """Current placement of P parts on N nodes.

    Attributes:
        pair: sum of the log slowdowns of both jobs beside each other, by their kinds, [K, K].
        kinds: kind of each part's job, [P].
        parts: the parts; ``parts.node`` is updated in place.
        free: free GPUs of each node, updated in place, [N].
    """

    pair: Floats
    kinds: Integers
    parts: Parts
    free: Integers


def _costs(pair: Floats, kinds: Integers, parts: Parts) -> Floats:
    """Return the sum of log slowdowns ``pair`` [A, A] of P parts, of ``kinds`` [P], by others on their nodes, [P]."""
    number = np.zeros((int(parts.node.max(initial=-1)) + 1, len(pair)))
    np.add.at(number, (parts.node, kinds), 1.0)
    own = pair[kinds, kinds]
    return np.asarray((number[parts.node] * pair[kinds]).sum(axis=1) - own, np.float64)


def _improve(one: int, may: np.ndarray[tuple[int], np.dtype[np.bool_]], cost: Floats, board: _Board) -> None:
    """Move or exchange part ``one`` on ``board`` if that reduces log slowdowns. ``may`` [P]: which parts may be
    exchanged; ``cost`` [P]: log slowdown of ``one`` beside each part, both directions."""
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


# Deadlines of jobs, and the probability to meet them.


LEAST_SPREAD = 0.05
LOGISTIC = np.sqrt(3) / np.pi
"""Scale of a logistic distribution divided by its standard deviation."""
TINY, LONGEST = 1e-9, 1e18


class Deadlines(NamedTuple):
    """Deadlines of J jobs.

    Attributes:
        at: time, seconds since the cluster's start; ``NEVER``: no deadline, [J].
        spread: standard deviation of the natural logarithm of actual over expected duration, [J].
        worth: value of meeting a deadline, relative to the speed of all jobs, [J].
    """

    at: Floats
    spread: Floats
    worth: Floats

    def chance(self, now: float, seconds: Floats) -> Floats:
        """Return the probability, [J, K], that J jobs which take ``seconds`` [J, K] from ``now`` meet their deadlines.
        It is about 0 for jobs without a deadline. The natural logarithm of the duration has a logistic distribution."""
        left = np.where(self.at < NEVER, self.at - now, 0.0)[:, None]
        scale = np.maximum(self.spread, LEAST_SPREAD)[:, None] * LOGISTIC
        ratio = np.log(np.maximum(left, TINY)) - np.log(np.clip(seconds, TINY, LONGEST))
        return np.asarray(1 / (1 + np.exp(np.clip(-ratio / scale, -50.0, 50.0))), np.float64)


# Inputs and outputs of allocation rules.


class Outlook(Protocol):
    """Expected speed and remaining work of J jobs, on 0 to G GPUs packed on as few nodes as possible. A job's unit of
    work is a sample, a step or a GPU-second. Values are computed when a rule calls for them."""

    def update_seconds(self) -> Floats:
        """Return seconds per unit of work of J jobs on 0 to G GPUs, [J, G + 1]; infinite where a job can't use them."""
        ...

    def updates(self) -> Floats:
        """Return the remaining units of work of each of J jobs, [J]."""
        ...

    def goodput(self, gpus: Integers) -> Floats:
        """Return units of work per second, [J, R], of J jobs on each of R numbers of GPUs, ``gpus`` [R]; 0 for numbers
        that a job can't use."""
        ...

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """Return the fall, [J, R], of J jobs' loss within ``seconds``, as a fraction of its whole fall, on each of R
        numbers of GPUs, ``gpus`` [R]. It is 0 for numbers that a job can't use."""
        ...

    def seconds_left(self, gpus: Integers) -> Floats:
        """Return seconds to completion, [J, K], of J jobs on their K numbers of GPUs, ``gpus`` [J, K]; infinite for
        numbers that a job can't use."""
        ...


class Situation(NamedTuple):
    """A moment to allocate GPUs to J jobs on N nodes.

    Attributes:
        now: seconds since the cluster's start.
        capacity: GPUs of each node, [N].
        jobs: table of the jobs present, [J].
        outlook: expected speed and remaining work of the jobs.
        restart_seconds: seconds lost by a job whose nodes change.
        deadlines: deadlines of the jobs; None: no job has one.
        neighbours: slowdowns between the jobs on shared nodes; None: unknown.
        factor: factor on the weight of each job's completion time, [J]; None: 1.
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
        """Number of GPUs of all nodes, G."""
        return int(self.capacity.sum())


class TargetAllocation(NamedTuple):
    """Allocation that a rule returns.

    Attributes:
        gpus: GPUs of each job, [J].
        order: positions of jobs in the order of placement, [J].
        packed: whether to place jobs on as few nodes as possible, even if other jobs must move.
    """

    gpus: Integers
    order: Integers
    packed: bool = False


Rule = Callable[[Situation], TargetAllocation]


def in_order(gpus: Integers) -> TargetAllocation:
    """Return an allocation of ``gpus``, numbers of GPUs of J jobs [J], that places the jobs in order of submission."""
    return TargetAllocation(gpus, np.arange(len(gpus)))


def admit_fitting(requests: Integers, order: Integers, free: int) -> Integers:
    """Return the GPUs given to each of J jobs, [J]: those requested if they still fit into ``free``, else 0.
    ``requests`` has the GPUs requested, ``order`` the positions of jobs in the order of admission, [J] each."""
    gpus = np.zeros(len(requests), np.int64)
    wanted = requests.tolist()
    for job in order.tolist():
        if wanted[job] <= free:
            gpus[job] = wanted[job]
            free -= wanted[job]
            if not free:
                break
    return gpus


# Packing: jobs on as few nodes as possible; smaller ones make room for larger ones.


class FreeGpus:
    """Free GPUs of each node, with lookup of nodes by number of free GPUs.

    Attributes:
        of: number of free GPUs of each node, by position.
    """

    def __init__(self, free: Integers) -> None:
        self.of: list[int] = free.tolist()
        self._nodes: list[list[int]] = [[] for _ in range(max(self.of, default=0) + 1)]
        for node, count in enumerate(self.of):
            self.set(node, count)

    def set(self, node: int, count: int) -> None:
        """Set the number of free GPUs of a node."""
        self.of[node] = count
        while len(self._nodes) <= count:
            self._nodes.append([])
        if count > 0:
            heappush(self._nodes[count], node)

    def tightest(self, size: int) -> int | None:
        """Return the position of the first node with the fewest free GPUs that are at least ``size``; None: there is
        none."""
        for count in range(size, len(self._nodes)):
            nodes = self._nodes[count]
            while nodes and self.of[nodes[0]] != count:  # an outdated entry
                heappop(nodes)
            if nodes:
                return nodes[0]
        return None


def pack(capacity: Integers, allocation: Integers, missing: Integers) -> Integers | None:
    """Add ``missing`` [J] GPUs to ``allocation``, of J jobs on N nodes, [J, N]; None if they can't be packed.
    Whole nodes come first, then parts by descending size, each by best fit. If a part fits nowhere, smaller parts are
    moved away from the node where that moves the fewest GPUs. ``capacity`` has the GPUs of each node, [N]."""
    node, packed = max(1, int(capacity.max(initial=0))), allocation.copy()
    parts, free = _parts(missing, node), FreeGpus(capacity - packed.sum(axis=0))
    for size in range(node, 0, -1):
        waiting = parts[size]
        heapify(waiting)
        while waiting:
            job, where = heappop(waiting), free.tightest(size)
            if where is None:
                where = _clear_node(packed, free, size, parts)
            if where is None:
                return None
            packed[job, where] += size
            free.set(where, free.of[where] - size)
    return packed


def _parts(missing: Integers, node: int) -> list[list[int]]:
    """Return, by size 0 to ``node`` (GPUs of the largest node), the indices of the jobs with a part of that size to
    place; ``missing`` are each job's GPUs to place, [J]."""
    parts: list[list[int]] = [[] for _ in range(node + 1)]
    for job in np.flatnonzero(missing).tolist():
        whole, rest = divmod(int(missing[job]), node)
        parts[node] += [job] * whole
        if rest:
            parts[rest].append(job)
    return parts


def _clear_node(allocation: Integers, free: FreeGpus, size: int, parts: list[list[int]]) -> int | None:
    """Free ``size`` GPUs on the node where the fewest GPUs must be moved; return its position, None if there is no such
    node. The jobs moved away are removed from ``allocation`` and added to ``parts``, both in place."""
    room = np.array(free.of)
    possible = np.flatnonzero(room + np.where(allocation < size, allocation, 0).sum(axis=0) >= size)
    if not possible.size:
        return None
    where = int(possible[(size - room[possible]).argmin()])
    for other in np.flatnonzero((allocation[:, where] > 0) & (allocation[:, where] < size)).tolist():
        if free.of[where] >= size:
            break
        moved = int(allocation[other, where])
        parts[moved].append(other)
        allocation[other, where] = 0
        free.set(where, free.of[where] + moved)
    return where


# Placement: from GPUs per job to GPUs per job and node.


def place(situation: Situation, wanted: TargetAllocation) -> Integers:
    """Return the GPUs of each of J jobs on each of N nodes, [J, N], for the numbers of GPUs ``wanted``. Jobs whose
    nodes change are placed to reduce interference, where it is known.

    Raises:
        ValueError: the allocation exceeds the GPUs of all nodes.
    """
    allocation = _place_jobs(situation, wanted)
    if situation.neighbours is None:
        return allocation
    return beside_others(situation.neighbours, situation.capacity, allocation, situation.jobs.allocation)


def _place_jobs(situation: Situation, wanted: TargetAllocation) -> Integers:
    """Return the GPUs of each of J jobs on each of N nodes, [J, N], regardless of interference. Jobs whose number of
    GPUs is unchanged keep their nodes while these have capacity. Others are packed if ``wanted.packed``; if not, or if
    they can't be, they take GPUs from the nodes with most free GPUs first, in ``wanted.order``.

    Raises:
        ValueError: the allocation exceeds the GPUs of all nodes.
    """
    allocation, total = situation.jobs.allocation, int(wanted.gpus.sum())
    if total > situation.gpus:
        raise ValueError(f"{total} GPUs are wanted of {situation.gpus}")
    selection = np.where((allocation.sum(axis=1) == wanted.gpus)[:, None], allocation, 0)
    if (selection.sum(axis=0) > situation.capacity).any():
        selection[(selection[:, selection.sum(axis=0) > situation.capacity] > 0).any(axis=1)] = 0
    missing = wanted.gpus - selection.sum(axis=1)
    if not missing.any():
        return selection
    packed = pack(situation.capacity, selection, missing) if wanted.packed else None
    if packed is not None:
        return packed
    free: list[int] = (situation.capacity - selection.sum(axis=0)).tolist()
    for job in wanted.order[missing[wanted.order] > 0].tolist():
        _most_free_first(selection[job], int(missing[job]), free)
    return selection


def _most_free_first(row: Integers, missing: int, free: list[int]) -> None:
    """Add ``missing`` GPUs to one job's ``row`` [N] from the nodes with most GPUs ``free`` first, and take them from
    ``free``, both in place. Never returns if fewer than ``missing`` are free."""
    while missing:
        most = max(free)
        node = free.index(most)
        taken = min(most, missing)
        row[node] += taken
        free[node] -= taken
        missing -= taken
