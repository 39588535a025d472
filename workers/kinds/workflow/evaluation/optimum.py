"""The optimum of one episode with known run times: branch and bound for few tasks, local search for more.

[N] counts tasks; the six terms, [6], are those of ``spec.TERMS``; a return is their negative weighted sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.queue import HOUR, Nodes
from app.kinds.workflow.spec import TERMS, Limits
from app.kinds.workflow.trace import Trace
from workers.evaluation.problem import LevelOptimum
from workers.kinds.workflow.evaluation.episodes import Episode, Reference, durations, objective_return, reference, terms
from workers.kinds.workflow.evaluation.schedulers import NO_LIMITS as SCHEDULERS_NO_LIMITS
from workers.kinds.workflow.evaluation.schedulers import EpisodeScheduler, ReplayedSchedule
from workers.kinds.workflow.evaluation.world import SchedulerPolicy
from workers.kinds.workflow.simulator.simulate import SHORTEST, Schedule

Floats = NDArray[np.float64]
MOST_TASKS = 12
MOST_BRANCHES = 20_000
SAME = 1e-9
SLOWDOWN, WAIT, MAKESPAN, DEADLINE, IDLE, COST = range(len(TERMS))
NO_LIMITS = Limits()


class Optimum(NamedTuple):
    """The result of a branch and bound.

    Attributes:
        schedule: the best schedule found.
        value: its return.
        exact: whether it is optimal; False: the search stopped at its limit.
        branches: number of partial schedules examined.
    """

    schedule: Schedule
    value: float
    exact: bool
    branches: int


def why_not(trace: Trace, nodes: Nodes, weights: Floats, limits: Limits = NO_LIMITS) -> str | None:
    """Return the reason why the exact optimum can't be computed under ``weights`` [6]; None: it can."""
    if trace.tasks > MOST_TASKS:
        return f"{trace.tasks} tasks are too many for an exact optimum; at most {MOST_TASKS}"
    if len(trace.parents) and (weights[SLOWDOWN] or weights[WAIT]):
        return "waits and slowdowns of tasks with parents get shorter by the parents' ending later"
    if not nodes.permanent.all() and (weights[IDLE] or weights[COST]):
        return "rented time of nodes that come and go may get shorter by waiting"
    if limits != NO_LIMITS:
        return "users have limits"
    return None


def solve(
    trace: Trace, nodes: Nodes, weights: Floats, known: Schedule | None = None, branches: int = MOST_BRANCHES
) -> Optimum:
    """Search for the best schedule of ``trace`` with its true run times, by branch and bound.

    Args:
        trace, nodes: tasks and nodes.
        weights: weights of the terms, [6].
        known: a schedule to start from; None: none.
        branches: most partial schedules to examine.

    Raises:
        ValueError: ``why_not`` has a reason, a task fits no node, or no schedule was found within ``branches``.
    """
    reason = why_not(trace, nodes, weights)
    if reason is not None:
        raise ValueError(reason)
    search = _Search(trace, nodes, weights, branches)
    if known is not None:
        search.offer(known)
    search.branch(search.empty())
    if search.best is None:
        raise ValueError(f"no schedule was found in {branches} branches")
    return Optimum(search.best, search.value, search.branches <= branches, search.branches)


class _Partial(NamedTuple):
    """A partial schedule: start and end in seconds (NaN: not placed) and node (−1: not placed) of N tasks, [N] each,
    and the index ``last`` of the task placed last (−1: none)."""

    start: Floats
    end: Floats
    node: NDArray[np.int64]
    last: int


class _Search:
    """A depth-first branch and bound, earliest end first."""

    def __init__(self, trace: Trace, nodes: Nodes, weights: Floats, most: int) -> None:
        self.trace, self.nodes, self.weights, self.most = trace, nodes, weights, most
        self.measure: Reference = reference(trace, nodes)
        self.seconds = durations(trace, nodes)
        self.shortest = self.seconds.min(axis=1)
        self.memory = np.where(np.isnan(trace.memory), 0.0, trace.memory)
        self.first = float(trace.submit.min())
        self.opens = self.first + np.where(nodes.permanent, 0.0, nodes.startup)
        self.pace = 1.0 / nodes.bandwidth
        data = np.where(np.isnan(trace.data), 0.0, trace.data)
        edges = [range(trace.parent_start[i], trace.parent_start[i + 1]) for i in range(trace.tasks)]
        self.parents = [[(int(trace.parents[e]), float(data[e])) for e in part] for part in edges]
        self.due = np.where(np.isnan(trace.deadline), np.inf, trace.deadline)
        self.best: Schedule | None = None
        self.value, self.branches = -np.inf, 0

    def empty(self) -> _Partial:
        count = self.trace.tasks
        return _Partial(np.full(count, np.nan), np.full(count, np.nan), np.full(count, -1), -1)

    def offer(self, schedule: Schedule) -> None:
        """Keep a complete schedule if its return is the largest so far."""
        value = objective_return(self.weights, terms(self.trace, self.nodes, schedule, self.measure))
        if value > self.value:
            self.best, self.value = schedule, value

    def branch(self, partial: _Partial) -> None:
        """Examine all continuations of a partial schedule, unless the limit of branches is reached."""
        self.branches += 1
        if self.branches > self.most:
            return
        open_tasks = np.flatnonzero(partial.node < 0)
        if not len(open_tasks):
            self.offer(Schedule(partial.start, partial.end, partial.node))
            return
        starts = {
            (int(task), node): self._earliest(partial, int(task), node)
            for task in open_tasks
            for node in self._nodes(partial)
        }
        if self._bound(partial, open_tasks, starts) <= self.value + SAME:
            return
        last = -np.inf if partial.last < 0 else float(partial.start[partial.last])
        possible = [
            (start + self.seconds[task, node], start, task, node)
            for (task, node), start in starts.items()
            if np.isfinite(start) and start >= last and not self._twice(partial, task, start)
        ]
        for end, start, task, node in sorted(possible):
            after = _Partial(partial.start.copy(), partial.end.copy(), partial.node.copy(), task)
            after.start[task], after.end[task], after.node[task] = start, end, node
            self.branch(after)

    def _nodes(self, partial: _Partial) -> list[int]:
        """List the nodes that have tasks, and the first node of each group of equal empty ones."""
        used, alike, nodes = set(partial.node.tolist()), set(), []
        for node in range(len(self.nodes.kind)):
            likeness = (int(self.nodes.kind[node]), bool(self.nodes.permanent[node]))
            if node in used or likeness not in alike:
                nodes.append(node)
            if node not in used:
                alike.add(likeness)
        return nodes

    def _twice(self, partial: _Partial, task: int, start: float) -> bool:
        """Return whether placing ``task`` before the last one gives the same schedule, so that it is redundant."""
        last = partial.last
        if last < 0 or start > partial.start[last] or task > last:
            return False
        return all(parent != last for parent, _ in self.parents[task])

    def _arrival(self, partial: _Partial, task: int, node: int) -> float:
        """Return the second from which a task's data can be on a node; infinite if a parent is not placed yet."""
        at = max(float(self.trace.submit[task]), float(self.opens[node]))
        for parent, data in self.parents[task]:
            there = int(partial.node[parent])
            if there < 0:
                return np.inf
            transfer = 0.0 if there == node else data * max(self.pace[there], self.pace[node])
            at = max(at, float(partial.end[parent]) + transfer)
        return at

    def _earliest(self, partial: _Partial, task: int, node: int) -> float:
        """Return the second of a task's earliest start in the gaps of a node; infinite: it doesn't fit."""
        duration = float(self.seconds[task, node])
        arrival = self._arrival(partial, task, node) if np.isfinite(duration) else np.inf
        if not np.isfinite(arrival):
            return np.inf
        here = np.flatnonzero(partial.node == node)
        starts, ends = partial.start[here], partial.end[here]
        for at in sorted({arrival, *ends[ends > arrival].tolist()}):
            moments = [at, *starts[(starts > at) & (starts < at + duration)].tolist()]
            if all(self._room(task, node, here[(starts <= t) & (ends > t)]) for t in moments):
                return float(at)
        return np.inf

    def _room(self, task: int, node: int, others: NDArray[np.intp]) -> bool:
        processors = self.trace.processors[task] + self.trace.processors[others].sum()
        memory = self.memory[task] + self.memory[others].sum()
        return bool(processors <= self.nodes.processors[node] and memory <= self.nodes.memory[node])

    def _bound(self, partial: _Partial, open_tasks: NDArray[np.intp], starts: dict[tuple[int, int], float]) -> float:
        """Return an upper bound of the return of any continuation of ``partial`` with the tasks ``open_tasks``
        (indices) still to place. ``starts``: earliest start in seconds by (task, node), infinite if impossible."""
        count, last = self.trace.tasks, self.first if partial.last < 0 else float(partial.start[partial.last])
        ends, waits, slow = partial.end.copy(), partial.start - self.trace.submit, np.zeros(count)
        done = partial.node >= 0
        run = ends - partial.start
        slow[done] = np.maximum(1.0, (ends - self.trace.submit)[done] / np.maximum(run[done], SHORTEST))
        for task in open_tasks:
            at = np.array([max(starts[task, node], last) for n, node in enumerate(self._nodes(partial))])
            own = self.seconds[task, self._nodes(partial)]
            if not np.isfinite(at + own).any():  # a parent is not placed
                at, own = np.array([self._after(task, ends, last)]), self.shortest[task : task + 1]
            ends[task] = (at + own).min()
            waits[task] = at.min() - self.trace.submit[task]
            ratio = (at + own - self.trace.submit[task])[np.isfinite(own)] / np.maximum(own[np.isfinite(own)], SHORTEST)
            slow[task] = max(1.0, float(ratio.min()))
        return objective_return(self.weights, self._terms(ends, waits, slow))

    def _after(self, task: int, ends: Floats, last: float) -> float:
        """Return the second from which ``task`` can start by its parents' ``ends`` [N] (NaN: unknown) and ``last``."""
        known = [float(ends[parent]) for parent, _ in self.parents[task] if np.isfinite(ends[parent])]
        return max(last, float(self.trace.submit[task]), *known)

    def _terms(self, ends: Floats, waits: Floats, slow: Floats) -> Floats:
        """Return lower bounds of the terms, [6], from those of ends and waits (seconds) and slowdowns ``slow``, [N]
        each."""
        span = max(float(ends.max()) - self.first, self.measure.makespan)
        due = np.isfinite(self.due)
        most = np.where(np.isfinite(self.seconds), self.seconds, 0.0).max(axis=1) @ self.trace.processors
        billing = self.nodes.billing
        billed = np.ceil(span / billing - SAME) * billing
        cost = float((billed * self.nodes.price).sum()) if self.nodes.permanent.all() else 0.0
        return np.array(
            [
                slow.mean() - 1.0,
                waits.mean() / HOUR,
                span / self.measure.makespan - 1.0,
                (ends > self.due)[due].mean() if due.any() else 0.0,
                max(0.0, 1.0 - most / (span * self.nodes.processors.sum())),
                cost / self.measure.cost if self.measure.cost > 0 else 0.0,
            ]
        )


TRIALS = 400
PLACEMENTS = 200_000  # most placements of tasks in all trials


class ValuedPlan(NamedTuple):
    """A plan: its tasks in order [N], node of each task [N] (−1: any), and its return ``value``."""

    order: NDArray[np.integer]
    node: NDArray[np.integer]
    value: float


def level_optimum(episode: Episode, limits: Limits, start: Schedule, seed: int) -> LevelOptimum:
    """Find the exact optimum of an episode with known run times, or a good plan and the reason why it isn't exact.

    Args:
        episode: the episode with its disturbances.
        limits: limits of each user; with any, ``start`` itself is the plan.
        start: the best schedule known so far.
        seed: seed of the search.
    """
    reason = why_not(episode.trace, episode.nodes, episode.weights, limits)
    if reason is None:
        best = solve(episode.trace, episode.nodes, episode.weights, start)
        if best.exact:
            policy = SchedulerPolicy(FixedScheduler(best.schedule, replay_scheduler(best.schedule)))
            return LevelOptimum(policy, exact=True, expected=best.value, error=0.0)
        start, reason = best.schedule, f"given up after {best.branches} branches"
    value = objective_return(episode.weights, terms(episode.trace, episode.nodes, start, episode.measure))
    schedule = start if limits != SCHEDULERS_NO_LIMITS else _climb(episode, start, value, seed)
    expected = objective_return(episode.weights, terms(episode.trace, episode.nodes, schedule, episode.measure))
    reason_text = f"the best plan that was found; {-expected:.5f} more can't be ruled out: {reason}"
    return LevelOptimum(
        SchedulerPolicy(FixedScheduler(schedule, replay_scheduler(schedule))),
        expected=expected,
        error=-expected,
        reason=reason_text,
    )


def replay_scheduler(schedule: Schedule) -> ReplayedSchedule:
    """Make a scheduler that replays the order, nodes and earliest starts of ``schedule``."""
    return ReplayedSchedule(np.lexsort((schedule.end, schedule.start)), schedule.node, schedule.start)


class FixedScheduler(EpisodeScheduler):
    """A scheduler that replays a schedule to the second in the schedule's own episode, and uses another one elsewhere.

    Args:
        schedule: the schedule.
        otherwise: scheduler of other episodes.
    """

    name = "plan"

    def __init__(self, schedule: Schedule, otherwise: EpisodeScheduler) -> None:
        self.schedule, self.otherwise = schedule, otherwise

    def play(self, episode: Episode) -> Schedule:
        """Return the stored schedule if the episode's run times and submissions fit it, else that of ``otherwise``."""
        trace, schedule = episode.trace, self.schedule
        if trace.tasks == len(schedule.start) and len(episode.nodes.speed) > schedule.node.max():
            lengths = trace.runtime / episode.nodes.speed[schedule.node]
            same = np.allclose(schedule.end - schedule.start, lengths, rtol=1e-9, atol=1e-6)
            if same and (schedule.start >= trace.submit - 1e-6).all():
                return schedule
        return self.otherwise.play(episode)


def _climb(episode: Episode, start: Schedule, value: float, seed: int) -> Schedule:
    """Improve ``start``, whose return is ``value``, by hill climbing: each trial moves one task to another place in the
    order, half of them let it run on any node, and a trial that raises the return replaces the plan."""
    random = np.random.default_rng([seed, 11])
    count, nodes = episode.trace.tasks, len(episode.nodes.kind)
    known = replay_scheduler(start)
    valued_plan, best = ValuedPlan(known.order, known.node, value), start
    for _ in range(min(TRIALS, PLACEMENTS // max(count * nodes, 1))):
        order, node = _move_task(valued_plan, random, nodes)
        schedule = ReplayedSchedule(order, node).play(episode)
        worthy = objective_return(episode.weights, terms(episode.trace, episode.nodes, schedule, episode.measure))
        if worthy > valued_plan.value:
            valued_plan, best = ValuedPlan(order, node, worthy), schedule
    return best


def _move_task(
    valued_plan: ValuedPlan, random: np.random.Generator, nodes: int
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    count = len(valued_plan.order)
    there, place = random.integers(count, size=2)
    order = np.insert(np.delete(valued_plan.order, there), place, valued_plan.order[there])
    node = valued_plan.node.copy()
    if nodes > 1 and random.random() < 0.5:
        node[valued_plan.order[there]] = -1
    return order, node
