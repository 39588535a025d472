"""Situation at a decision: ready and running tasks, free capacity, expected run times; and ranks of ready tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from app.kinds.workflow.queue import UP, WAITING, Floats, Layout, State
from app.kinds.workflow.run_times import SHORTEST, Predictor, Regression, shares, table
from app.kinds.workflow.scheduling.dispatch import EASY, MECHANISMS, UNLIMITED, Indices, Pool, Tasks
from app.kinds.workflow.scheduling.placement import Graph, critical, downward, graph, levels, upward
from app.kinds.workflow.scheduling.planning import mean_pace, starting_scores
from app.kinds.workflow.scheduling.rules import RULES, scores
from app.kinds.workflow.spec import LOOKAHEAD, PREDICTED

OVERRUN = 0.1  # a task that runs longer than expected is expected to go on for this share of its run so far


class QueueSituation:
    """A state with derived quantities for a decision; the rows of its queue are N tasks.

    Attributes:
        layout, state, queue: nodes of the workload, the state, and its queue.
        now: time of the last report, seconds of the reports' clock.
        expected: seconds at speed 1 that each task is planned with, [N].
        ready: rows of the Q waiting tasks whose parents have ended, in order of their first report, [Q].
        user: index of each task's user; −1: unknown, [N].
    """

    def __init__(self, layout: Layout, state: State, predictor: Predictor | None = None) -> None:
        self.layout, self.state, self.now = layout, state, state.now
        queue = self.queue = state.queue
        self.expected = (predictor or Predictor()).expected(queue.estimate, queue.users, state.history)
        waits = np.flatnonzero(queue.node == WAITING)
        if queue.linked:
            ended = state.ended
            open_ = [i for i in waits.tolist() if not (inputs := queue.inputs[i]) or all(p in ended for p, _ in inputs)]
            waits = np.array(open_, np.int64)
        self.ready: Indices = waits
        self._users = {name: i for i, name in enumerate(dict.fromkeys(filter(None, queue.users)))}
        self.user = np.array([self._users.get(name, -1) for name in queue.users], np.int64)

    @cached_property
    def running(self) -> Indices:
        """Rows of the R running tasks, [R]."""
        return np.flatnonzero(self.queue.node != WAITING)

    @cached_property
    def ends(self) -> Floats:
        """Expected end of each of R ``running`` tasks, transfers included, not before now, seconds of the reports'
        clock, [R]."""
        rows, queue, now = self.running, self.queue, self.now
        due = queue.start[rows] + self.expected[rows] / self.layout.nodes.speed[queue.node[rows]]
        if queue.linked:
            due += [self.travel(row, int(queue.node[row])) for row in rows.tolist()]
        late = now + OVERRUN * (now - queue.start[rows])
        return np.where(due > now, due, late)

    @cached_property
    def up(self) -> list[int]:
        """Indices of the nodes that accept tasks now."""
        return [node for node, (status, _) in self.state.nodes.items() if status == UP]

    def tasks(self) -> Tasks:
        """Return the tasks as input of backfilling mechanisms, with a new ``waiting`` array that these may change."""
        waiting = np.zeros(len(self.queue), np.bool_)
        waiting[self.ready] = True
        return Tasks(self.queue.submit, self.expected, self.queue.processors, self.user, waiting)

    def pool(self) -> Pool:
        """Return running tasks by expected end and free processors of a single node, with room for all ready tasks."""
        by_end, rows = np.argsort(self.ends, kind="stable"), self.running
        size, count = len(rows) + len(self.ready), len(rows)
        ends, need, task = np.zeros(size), np.zeros(size, np.int64), np.zeros(size, np.int64)
        ends[:count], need[:count], task[:count] = (
            self.ends[by_end],
            self.queue.processors[rows][by_end],
            rows[by_end],
        )
        level = np.array([self.layout.nodes.processors[0] - need.sum(), count])
        return Pool(level, ends, need, task, *self.room())

    def room(self) -> tuple[Indices, Indices]:
        """Return the further tasks, and processors, that each of U users may take, [U + 1] each; the last: unknown
        users."""
        limits, count = self.layout.spec.limits_per_user, len(self._users) + 1
        tasks, processors = np.full(count, UNLIMITED), np.full(count, UNLIMITED)
        rows = self.running[self.user[self.running] >= 0]
        user = self.user[rows]
        if limits.running_tasks is not None:
            tasks[:] = limits.running_tasks - np.bincount(user, minlength=count)
        if limits.processors is not None:
            processors[:] = limits.processors - np.bincount(user, self.queue.processors[rows], count).astype(np.int64)
        tasks[-1] = processors[-1] = UNLIMITED
        return tasks, processors

    @cached_property
    def shares(self) -> Floats:
        """Predicted natural logarithm of run time over estimate of each of Q ready tasks, at most 0, [Q]; 0 without
        estimate."""
        rows, queue = self.ready, self.queue
        return self.shares_of([queue.users[row] for row in rows], queue.estimate[rows], queue.processors[rows])

    def shares_of(self, users: Sequence[str], estimate: Floats, processors: Indices) -> Floats:
        """Return the predicted log of run time over estimate, at most 0 (0: no estimate), of N tasks by user (empty:
        unknown), estimate (seconds; NaN: none) and processors, [N]."""
        state, index = self.state, {name: i for i, name in enumerate(dict.fromkeys(filter(None, users)))}
        regression = Regression(state.weight, state.covariance, table([state.history.get(u, ()) for u in index]))
        user = np.array([index.get(name, -1) for name in users], np.int64)
        result = shares(regression, user, np.log(np.fmax(estimate, SHORTEST)), processors)
        return np.where(np.isnan(estimate), 0.0, result)

    @cached_property
    def lengths(self) -> Floats:
        """Natural logarithm of the predicted seconds of each of Q ready tasks, at the mean speed of the nodes that
        accept tasks, [Q]."""
        return np.log(np.maximum(self.requested, SHORTEST)) + self.shares

    @cached_property
    def requested(self) -> Floats:
        """Estimate of each of Q ready tasks, else the seconds that it is planned with, at the mean speed of the nodes
        that accept tasks, [Q]."""
        rows, estimate = self.ready, self.queue.estimate[self.ready]
        speed = float(self.layout.nodes.speed[self.up].mean()) if self.up else 1.0
        return np.where(np.isnan(estimate), self.expected[rows], estimate) / speed

    @cached_property
    def edges(self) -> list[list[int]]:
        """Rows of the parents that have not ended, for each of N tasks."""
        row = self.queue.row
        return [[row[p] for p, _ in inputs if p in row] if inputs else [] for inputs in self.queue.inputs]

    @cached_property
    def graph(self) -> Graph:
        """Graph of the tasks that have not ended."""
        edges = self.edges
        start = np.concatenate([[0], np.cumsum([len(inside) for inside in edges])]).astype(np.int64)
        parents = np.array([p for inside in edges for p in inside], np.int64)
        child_of = np.repeat(np.arange(len(edges)), np.diff(start))
        if (parents >= child_of).any():
            return graph(start, parents)
        edge = np.argsort(parents, kind="stable")  # every task comes after its parents: the order is topological
        child_start = np.concatenate([[0], np.cumsum(np.bincount(parents, minlength=len(edges)))]).astype(np.int64)
        return Graph(start, parents, child_start, child_of[edge], edge, np.arange(len(edges)))

    @cached_property
    def listed(self) -> Graph:
        """Graph of the tasks that have not ended, with plain lists, several times faster in plain loops than arrays."""
        return Graph(*(part.tolist() for part in self.graph))

    @cached_property
    def data(self) -> Floats:
        """Bytes along each of E edges of ``graph``, [E]."""
        row = self.queue.row
        return np.array([size for inputs in self.queue.inputs for p, size in inputs if p in row], np.float64)

    @cached_property
    def pace(self) -> float:
        """Mean seconds per byte between two different nodes, over all pairs."""
        return mean_pace(1.0 / self.layout.nodes.bandwidth)

    def travel(self, row: int, node: int) -> float:
        """Return the seconds to transfer the outputs of a task's ended parents to a node, in parallel."""
        bandwidth, ended = self.layout.nodes.bandwidth, self.state.ended
        longest = 0.0
        for parent, size in self.queue.inputs[row]:
            there = ended[parent][0] if parent in ended else node
            if there != node and size:
                slow = min(bandwidth[there], bandwidth[node])
                longest = max(longest, 0.0 if math.isinf(slow) else size / float(slow))
        return longest


# Order of ready tasks: priority rules, and ranks in workflows.


THRIFTY = ("cheapest", "deadline")  # these give a task the node on which it costs least


def _average(situation: QueueSituation) -> Floats:
    """Return the run time in seconds of each of N tasks, averaged over the node types that it fits, [N]."""
    cost = _cost(situation)
    fits = np.isfinite(cost)
    average: Floats = np.where(fits, cost, 0.0).sum(axis=1) / np.maximum(fits.sum(axis=1), 1)
    return average


def _cost(situation: QueueSituation) -> Floats:
    """Return the cost, expected run seconds, of N tasks on T node types, [N, T]; infinite if a task doesn't fit."""
    nodes, first = situation.layout.nodes, situation.layout.first[:-1]
    fits = (situation.queue.processors[:, None] <= nodes.processors[first]) & (
        situation.queue.memory[:, None] <= nodes.memory[first]
    )
    cost: Floats = np.where(fits, situation.expected[:, None] / nodes.speed[first], np.inf)
    return cost


def _upward(situation: QueueSituation) -> Floats:
    """Return the seconds of the longest path from each of N tasks' start to the end of its workflow, [N]."""
    average, along = _average(situation).tolist(), (situation.data * situation.pace).tolist()
    return np.array(upward(situation.listed, average, along))


def heft(situation: QueueSituation) -> Floats:
    """Return scores of N tasks by upward rank, largest rank first, [N] (Topcuoglu, Hariri and Wu 2002)."""
    return -_upward(situation)


def cpop(situation: QueueSituation) -> Floats:
    """Return scores of N tasks by the longest path through each, critical path first, [N] (Topcuoglu, Hariri and Wu
    2002)."""
    average, along = _average(situation), situation.data * situation.pace
    through = _upward(situation) + downward(situation.listed, average.tolist(), along.tolist())
    on = critical(situation.listed, through.tolist())
    most = through.max(initial=0.0)
    return np.where(on, -through - most, -through)


def peft(situation: QueueSituation) -> Floats:
    """Return scores of N tasks by the optimistic cost table, [N] (Arabnejad and Barbosa 2014)."""
    cost, along = _cost(situation), situation.data * situation.pace
    table = np.array(following(situation.listed, cost.T.tolist(), along.tolist()))
    finite = np.where(np.isfinite(table), table, 0.0)
    return -finite.mean(axis=0)


def following(graph: Graph, cost: list[list[float]], along: list[float]) -> list[list[float]]:
    """Return the least seconds after each of N tasks if it runs on each of T node types, as plain lists [T, N].
    ``cost``: run times in seconds, [T, N]; ``along``: transfer seconds by edge, [E]. Lists are faster for few types."""
    table, onward = [[0.0] * len(column) for column in cost], [column.copy() for column in cost]
    both, least = list(zip(table, onward, strict=True)), list(map(min, zip(*cost, strict=True)))
    for task in reversed(graph.sequence):
        first, last = graph.child_start[task], graph.child_start[task + 1]
        for k in range(first, last):
            child = graph.children[k]
            limit = least[child] + along[graph.edge[k]]
            for rest, after in both:
                there = after[child]
                if there > limit:
                    there = limit
                if there > rest[task]:
                    rest[task] = there
        if first < last:
            for rest, after in both:
                after[task] += rest[task]
            least[task] = min([after[task] for _, after in both])
    return table


def level(situation: QueueSituation) -> Floats:
    """Return scores of N tasks by level, in each level the longest task first, [N]."""
    average = _average(situation)
    return levels(situation.listed) - average / (average.max(initial=0.0) + 1.0)


def deadline(situation: QueueSituation) -> Floats:
    """Return the score of each of N tasks, [N]: the seconds left until it must start for its own and its descendants'
    deadlines; without any, 10¹² minus its upward rank in seconds."""
    rest, graph = _upward(situation), situation.listed
    due = np.where(np.isnan(situation.queue.deadline), np.inf, situation.queue.deadline)
    for task in reversed(graph.sequence):
        for k in range(graph.child_start[task], graph.child_start[task + 1]):
            due[task] = min(due[task], due[graph.children[k]])
    left = due - situation.now - rest
    return np.where(np.isfinite(left), left, 1e12 - rest)


RANKS: dict[str, Callable[[QueueSituation], Floats]] = {
    "heft": heft,
    "cpop": cpop,
    "peft": peft,
    "level": level,
    "cheapest": heft,
    "deadline": deadline,
}


def ranking(strategy: str, situation: QueueSituation) -> Floats:
    """Return the score of each of Q ready tasks by a strategy, smallest first, [Q]; raise ValueError for an unknown
    one."""
    ready, queue = situation.ready, situation.queue
    if strategy == LOOKAHEAD:
        length, estimated = np.log(np.maximum(situation.requested, SHORTEST)), ~np.isnan(queue.estimate[ready])
        easy = situation.layout.spec.backfilling == MECHANISMS[EASY]
        return np.exp(starting_scores(length, situation.shares, estimated, queue.processors[ready], easy))
    if strategy in PREDICTED:
        return np.exp(situation.lengths) * queue.processors[ready]
    if strategy in RANKS:
        return RANKS[strategy](situation)[ready]
    return scores(
        RULES.index(strategy), situation.now, queue.submit[ready], situation.expected[ready], queue.processors[ready]
    )
