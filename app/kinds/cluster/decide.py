"""Decisions of kind ``cluster``: allocations and placements of a run's jobs, and the changes with their reasons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.text import count_text, duration, number
from app.kinds.cluster import jobs as table
from app.kinds.cluster import records, waiting
from app.kinds.cluster import state as counting
from app.kinds.cluster.arrivals import HOUR_SECONDS
from app.kinds.cluster.experience import Expecting, changed_ceilings, notes, update_ceilings
from app.kinds.cluster.jobs import NEVER, Floats, Integers
from app.kinds.cluster.layout import ClusterState, Layout
from app.kinds.cluster.lookahead import Tolerance, with_ceilings
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.outlook import Beliefs, BelievedOutlook
from app.kinds.cluster.placement import Deadlines, Neighbours, Rule, Situation, place, slowdowns
from app.kinds.cluster.policies import AHEAD, WEIGHED, WITH_MODEL
from app.kinds.contract.engine import Member, Snapshot
from app.kinds.engine import deciding_policy
from app.policies.base import Published

# Trades: which job's GPUs went to which other job, matched node by node.


Counts = NDArray[np.signedinteger[Any]]


def trades(before: Counts, after: Counts) -> list[dict[int, int]]:
    """Return for each of C jobs the GPUs that it takes from, or gives to, each other job, by that job's position 0 to
    C−1. A job whose total grows lists the jobs that its GPUs come from; one whose total shrinks lists those they go to.
    GPUs that were or become free are not listed. On a node, givers and takers match in job order.

    Args:
        before, after: GPUs of each job on each of N nodes, [C, N].
    """
    more = after - before
    net = more.sum(axis=1)
    exchanges: list[dict[int, int]] = [defaultdict(int) for _ in range(len(more))]
    for node in np.flatnonzero((more > 0).any(axis=0) & (more < 0).any(axis=0)).tolist():
        column = more[:, node]
        for giver, taker, gpus in _match_gpus(column):
            if net[taker] > 0:
                exchanges[taker][giver] += gpus
            if net[giver] < 0:
                exchanges[giver][taker] += gpus
    return [dict(one) for one in exchanges]


def _match_gpus(column: Counts) -> list[tuple[int, int, int]]:
    """Match givers and takers of GPUs on one node; return triples (position of giver, position of taker, number of
    GPUs). ``column`` is the change of each of C jobs' number of GPUs on the node, [C]."""
    givers, takers = np.flatnonzero(column < 0), np.flatnonzero(column > 0)
    left, wanted = (-column[givers]).tolist(), column[takers].tolist()
    pairs, one, other = [], 0, 0
    while one < len(left) and other < len(wanted):
        gpus = min(left[one], wanted[other])
        pairs.append((int(givers[one]), int(takers[other]), gpus))
        left[one] -= gpus
        wanted[other] -= gpus
        one += left[one] == 0
        other += wanted[other] == 0
    return pairs


# Allocation after a report: a code, a text and expected times for each job whose nodes change.


SHOWN = 3
SLOWER = 1.05
"""Factor on step time from which a reason names the jobs that share the nodes."""


class Change(NamedTuple):
    """Change of one job's allocation by a decision. Times are seconds.

    Attributes:
        job: name of the job.
        before: number of GPUs that it held before.
        nodes: number of GPUs by node name from now on; empty: the job waits.
        code: `started`, `grown`, `shrunk`, `moved` or `preempted`.
        text: the reason, for people.
        trades: number of GPUs by the name of the job that they come from or go to.
        remaining_before, remaining: expected seconds to completion on the previous and the new GPUs; None: unknown, or
            no GPUs.
        until_deadline: seconds until the job's deadline, negative if missed; None: it has no deadline.
        ceiling: new maximum of GPUs, because the job has little left to gain; None: no new maximum.
        between: 90 % prediction interval of the seconds to completion; None: fewer than 19 jobs have finished.
        batch: samples per step, over all GPUs, of the largest goodput; None: the job's batch is fixed or unknown.
    """

    job: str
    before: int
    nodes: dict[str, int]
    code: str
    text: str
    trades: dict[str, int]
    remaining_before: float | None
    remaining: float | None
    until_deadline: float | None = None
    ceiling: int | None = None
    between: tuple[float, float] | None = None
    batch: int | None = None


class Advice(NamedTuple):
    """Inputs of a decision beside the state, for J jobs.

    Attributes:
        rule: maps a situation to the number of GPUs of each job.
        outlook: expected step times and remaining work of the jobs.
        notes: text to append to the reason of a job's change, by the job's position.
        ceilings: new maximum of GPUs of each job whose maximum changed as it converged, by the job's position.
        deadlines: deadlines of the jobs; None: no job has one.
        factor: factor on the weight of each job's completion time, [J]; None: 1.
    """

    rule: Rule
    outlook: BelievedOutlook
    notes: Mapping[int, str] = {}
    ceilings: Mapping[int, int] = {}
    deadlines: Deadlines | None = None
    factor: Floats | None = None


def decide(layout: Layout, state: ClusterState, advice: Advice) -> tuple[ClusterState, list[Change]]:
    """Allocate GPUs by ``advice.rule`` and place them on nodes.

    Returns:
        The state with the new allocation, and a ``Change`` for each job whose nodes differ; no change if there are no
            jobs.

    Raises:
        ValueError: the rule allocates more GPUs than all nodes have.
    """
    if not state.names:
        return state, []
    situation = Situation(
        state.now,
        state.capacity,
        state.jobs._replace(maximum=advice.outlook.maximum),
        advice.outlook,
        layout.spec.restart_seconds,
        advice.deadlines,
        advice.outlook.neighbours,
        advice.factor,
    )
    placement = place(situation, advice.rule(situation))
    changed = np.flatnonzero((placement != state.jobs.allocation).any(axis=1))
    left = _completion_seconds(situation, advice.outlook, placement, changed)
    left[~advice.outlook.times_known[changed]] = np.inf
    changes = _changes(layout, state, placement, changed, left)
    beside = advice.outlook.neighbours
    notes = [advice.notes, {} if beside is None else _beside(state.names, beside, placement, changed)]
    wanted = None if advice.deadlines is None else advice.deadlines.at - state.now
    has = placement[changed].sum(axis=1)
    uncertain, bounds = np.isfinite(left[:, 1]) & (has > 0), counting.interval(state.off)
    each = zip(changed.tolist(), changes, uncertain.tolist(), left[:, 1].tolist(), strict=True)
    changes = [
        _add_notes(one, at, notes, wanted)._replace(
            ceiling=advice.ceilings.get(at),
            between=(bounds[0] * seconds, bounds[1] * seconds) if bounds is not None and ends else None,
            batch=batch,
        )
        for (at, one, ends, seconds), batch in zip(each, advice.outlook.batches(changed, has), strict=True)
    ]
    jobs = table.move(state.jobs, placement, situation.restart_seconds)
    begun = np.asarray(placement.any(axis=1) & ~state.jobs.allocation.any(axis=1))
    after = waiting.record_starts(
        state._replace(jobs=jobs, records=records.reset_training_time(state.records, begun, jobs)), begun
    )
    return counting.record_predictions(after, changed[uncertain], left[uncertain, 1]), changes


def keep_allocations(layout: Layout, state: ClusterState) -> tuple[ClusterState, list[Change]]:
    """Keep each job's allocation, but preempt all jobs on nodes where more GPUs are held than the node still has.

    Returns:
        The state with these allocations, and the changes of the preempted jobs.
    """
    short = state.jobs.allocation.sum(axis=0) > state.capacity
    lost = np.asarray((state.jobs.allocation[:, short] > 0).any(axis=1))
    allocation = np.where(lost[:, None], 0, state.jobs.allocation)
    at = np.flatnonzero(lost)
    changes = _changes(layout, state, allocation, at, np.full((len(at), 2), np.inf)) if len(at) else []
    return state._replace(jobs=table.move(state.jobs, allocation, layout.spec.restart_seconds)), changes


def _add_notes(change: Change, at: int, notes: Sequence[Mapping[int, str]], wanted: Floats | None) -> Change:
    """Return ``change`` of the job at position ``at`` with its ``notes``, and the seconds to its deadline. ``wanted``
    has the seconds to the deadline of each of J jobs, [J]; None: no job has one."""
    texts, due = [each[at] for each in notes if at in each], None if wanted is None else _finite(float(wanted[at]))
    texts += [] if due is None else [f"deadline in {duration(due)}" if due > 0 else "deadline passed"]
    return change._replace(text="; ".join([change.text, *texts]), until_deadline=due)


def _completion_seconds(situation: Situation, outlook: BelievedOutlook, new: Integers, changed: Integers) -> Floats:
    """Return seconds to completion of C ``changed`` jobs on their old and new GPUs, [C, 2]; infinite without GPUs.
    ``new`` is the new allocation of J jobs on N nodes, [J, N]; ``changed`` has positions of jobs, [C]."""
    gpus = np.zeros((len(new), 2), np.int64)
    gpus[changed] = np.stack([situation.jobs.gpus, new.sum(axis=1)], axis=1)[changed]
    seconds = outlook.expected_seconds(gpus)
    if situation.neighbours is not None:
        each = (situation.jobs.allocation, new)
        seconds = seconds * np.stack([slowdowns(situation.neighbours, one) for one in each], axis=1)
    seconds[:, 1] += situation.restart_seconds
    return np.where(gpus > 0, seconds, np.inf)[changed]


def _beside(names: Sequence[str], neighbours: Neighbours, allocation: Integers, changed: Integers) -> dict[int, str]:
    """Return, by index of the job, a note on each changed job whose steps take ``SLOWER`` times as long or more beside
    other jobs. ``allocation`` [J, N]: new GPUs of J jobs on N nodes; ``changed`` [C]: indices of the changed jobs."""
    slower = slowdowns(neighbours, allocation)
    beside = {}
    for at in changed[slower[changed] >= SLOWER].tolist():
        shared = np.asarray((allocation[:, allocation[at] > 0] > 0).any(axis=1))
        shared[at] = False
        others = [names[other] for other in np.flatnonzero(shared).tolist()]
        more = f" and {len(others) - SHOWN:,} others" if len(others) > SHOWN else ""
        shared_with = f"shares nodes with {', '.join(others[:SHOWN])}{more}"
        beside[at] = f"{shared_with}: steps take {number(float(slower[at]))} times as long"
    return beside


def _changes(
    layout: Layout, state: ClusterState, allocation: Integers, changed: Integers, left: Floats
) -> list[Change]:
    counts = allocation[changed].astype(np.int16)
    had_before = state.jobs.allocation[changed].astype(np.int16)
    gone = np.any(had_before > state.capacity, axis=1).tolist()
    moves = trades(had_before, counts)
    before, after = state.jobs.gpus[changed].tolist(), counts.sum(axis=1).tolist()
    waited = (state.now - state.jobs.submitted - state.jobs.running)[changed].tolist()
    rows, columns = np.nonzero(counts)
    nodes: list[dict[str, int]] = [{} for _ in before]
    for row, column, gpus in zip(rows.tolist(), columns.tolist(), counts[rows, columns].tolist(), strict=True):
        nodes[row][layout.nodes[column]] = gpus
    names = [state.names[at] for at in changed.tolist()]
    times = [(_finite(old), _finite(new)) for old, new in left.tolist()]
    changes = []
    for at, (name, had, has) in enumerate(zip(names, before, after, strict=True)):
        traded = {names[other]: gpus for other, gpus in moves[at].items()}
        reason = words(Subject(had, has, traded, waited[at], *times[at], gone[at]))
        changes.append(Change(name, had, nodes[at], code_of(had, has), reason, traded, *times[at]))
    return changes


def _finite(seconds: float) -> float | None:
    return round(seconds, 1) if np.isfinite(seconds) else None


class Subject(NamedTuple):
    """Inputs of the reason for one job's change.

    Attributes:
        had, has: number of GPUs before and from now on.
        trades: number of GPUs by the name of the job that they come from or go to.
        waited: seconds that the job has spent without GPUs in all.
        remaining_before, remaining: expected seconds to completion before and from now on; None: unknown, or no GPUs.
        lost: whether a node that the job held has lost GPUs.
    """

    had: int
    has: int
    trades: dict[str, int]
    waited: float
    remaining_before: float | None
    remaining: float | None
    lost: bool


def code_of(had: int, has: int) -> str:
    """Return `started` if ``had`` is 0, `preempted` if ``has`` is 0, else `grown`, `shrunk` or `moved` by the numbers
    of GPUs."""
    if not had:
        return "started"
    if not has:
        return "preempted"
    return "grown" if has > had else "shrunk" if has < had else "moved"


def words(one: Subject) -> str:
    """Return the reason for one job's change: GPUs, seconds to completion, trades, and whether a node was lost."""
    had, has = one.had, one.has
    reasons = {
        "started": f"start on {count_text(has, 'GPU')}{_after(one.waited)}",
        "preempted": f"release {count_text(had, 'GPU')}",
        "grown": f"{count_text(has, 'GPU')} (was {had:,})",
        "shrunk": f"{count_text(has, 'GPU')} (was {had:,})",
        "moved": f"{count_text(has, 'GPU')} on other nodes",
    }[code_of(had, has)]
    return reasons + _completion_text(one) + _trades_text(one) + ("; a node was lost" if one.lost else "")


def _after(waited: float) -> str:
    return f" after {duration(waited)} pending" if waited >= 1 else " immediately"


def _completion_text(one: Subject) -> str:
    if one.remaining is None:
        return "" if one.remaining_before is None else f", {duration(one.remaining_before)} before its expected end"
    if one.remaining_before is None:
        return f": finish in {duration(one.remaining)}"
    now, before = duration(one.remaining), duration(one.remaining_before)
    return f": finish in {now}{f' (was {before})' if before != now else ''}"


def _trades_text(one: Subject) -> str:
    if not one.trades:
        return ""
    largest = sorted(one.trades.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{gpus:,} {'from' if one.has > one.had else 'to'} {name}" for name, gpus in largest[:SHOWN])
    return f"; {shown}" + (f" and {len(largest) - SHOWN:,} others" if len(largest) > SHOWN else "")


# Deadlines of jobs that are runs of member workloads.


def deadlines(members: Mapping[str, Member], state: ClusterState, worth: float) -> Deadlines | None:
    """Return the deadlines of a state's jobs that are runs of member workloads; None if no job has a deadline. The
    earlier of two counts: the target in seconds for the whole run, from submission; and the target in seconds per
    iteration times the iterations left (at least one), from now.

    Args:
        members: member workloads by application name.
        state: state of the run.
        worth: value of a met deadline of a member of weight 1, relative to the speed of all jobs.
    """
    records, names = state.records, state.records.application.tolist()
    deadlines = Deadlines(np.full(len(names), NEVER), np.zeros(len(names)), np.zeros(len(names)))
    for at, one in ((at, members[name]) for at, name in enumerate(names) if name in members):
        whole = records.iterations[at] if np.isfinite(records.iterations[at]) else one.iterations
        left = max(whole - records.iteration[at], 1.0)
        deadlines.at[at] = min(state.jobs.submitted[at] + one.run_seconds, state.now + left * one.iteration_seconds)
        deadlines.spread[at], deadlines.worth[at] = one.spread, worth * one.weight
    return deadlines if (deadlines.at < NEVER).any() else None


# Compiled snapshot: layout, model, members, and the agent or heuristic that answers.


DAY_SECONDS = 86_400.0


class Compiled:
    """A workload's snapshot, compiled for decisions.

    Attributes:
        snapshot: the workload's spec, domain model, members and promoted agent.
        layout: nodes and queues of the spec.
        agent: the promoted policy, which weighs jobs; None: no usable policy, so the heuristic decides.
        heuristic: name of the rule that decides without an agent.
        decided_by: name and kind of the agent or heuristic that decides, for the decision's text.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.layout: Layout = snapshot.layout
        self._members = {name: one for name, one in snapshot.members.items() if one.seconds_known}
        model = snapshot.model or ClusterModel.unfitted(self.layout)
        self._beliefs = Beliefs(model, self._members)
        self.heuristic = snapshot.rule or WITH_MODEL
        usable = snapshot.artifact is not None and not snapshot.problem and self.modelled
        self.agent: Published | None = snapshot.artifact.policy if snapshot.artifact and usable else None
        self.decided_by = deciding_policy(snapshot, None if self.agent is None else self.agent.name, self.heuristic)

    @property
    def modelled(self) -> bool:
        """Whether the workload or a member workload has a domain model; agents are used only then."""
        return self.snapshot.model is not None or bool(self._members)

    def outlook(self, state: ClusterState) -> BelievedOutlook:
        """Return the expected step times and remaining work of the jobs of ``state``."""
        return BelievedOutlook(
            self._beliefs,
            state.jobs,
            state.records,
            int(state.capacity.sum()),
            shown=state.experience,
        )

    def rule(self, policy: Published | None, now: datetime) -> tuple[str, Rule]:
        """Return the name and the rule by which ``policy``, or the heuristic if None, decides at ``now``. The heuristic
        is ``AHEAD`` if no arrivals are expected within an hour and the snapshot sets no rule."""
        if policy is None:
            name = AHEAD if self._expects_no_arrivals(now) and not self.snapshot.rule else self.heuristic
            return name, self.layout.rules[name]
        return WEIGHED, self.layout.weighing(policy, self.coming(self._beliefs, now.timestamp()))

    def _expects_no_arrivals(self, now: datetime) -> bool:
        """Whether new jobs are expected to request no GPU within an hour; False without a model, or with members."""
        if self.snapshot.model is None or self._members:
            return False
        return self.coming(self._beliefs, now.timestamp()) <= 0

    def coming(self, beliefs: Beliefs, now: float) -> float:
        """Return the number of GPUs that new jobs are expected to request within an hour after ``now`` (seconds since
        1970 UTC). Forecasts count if each queue has one whose last observation is within an hour of ``now``; else the
        mean rate of that hour of the day."""
        declared = [self.snapshot.coming.get(queue) for queue in self.layout.queues]
        means = [one.mean for one in declared if one is not None and abs(now - one.known_until) <= HOUR_SECONDS]
        if len(means) < len(declared):
            return beliefs.coming(now % DAY_SECONDS)
        return float(beliefs.mean_asked @ np.array(means))

    def update_ceilings(self, state: ClusterState) -> ClusterState:
        """Return ``state`` with updated ceilings of GPUs for jobs that have little left to gain. It is unchanged if the
        spec has no ``convergence`` or the workload no domain model."""
        convergence = self.layout.spec.convergence
        if convergence is None or self.snapshot.model is None:
            return state
        model, records = self._beliefs.model, state.records
        classes = [
            model.curve_class(*key) for key in zip(records.application.tolist(), records.rises.tolist(), strict=True)
        ]
        expecting = Expecting(model.curves, np.array(classes, np.int64), records.iterations, self.layout.sizes)
        tolerance = Tolerance(convergence.tolerance, convergence.doubt, convergence.window_seconds)
        return state._replace(learning=update_ceilings(state.learning, expecting, state.jobs, state.now, tolerance))

    def advice(self, rule: Rule, outlook: BelievedOutlook, state: ClusterState, before: ClusterState) -> Advice:
        """Return the inputs of a decision: ``rule`` limited to the ceilings of ``state``, deadlines, weights and notes.

        Args:
            rule: allocation rule.
            outlook: expected step times and remaining work of the jobs.
            state: state after the report, with ceilings.
            before: the state before ``update_ceilings``, to find ceilings that are new.
        """
        wanted = deadlines(self._members, state, self.layout.spec.weights.deadlines) if self._members else None
        power = self.layout.spec.data_power
        factor = outlook.worth(power) if power else None
        advice = Advice(rule, outlook, deadlines=wanted, factor=factor)
        if self.layout.spec.convergence is None:
            return advice
        texts, most = notes(before.learning, state.learning), changed_ceilings(before.learning, state.learning)
        return advice._replace(rule=with_ceilings(rule, state.learning.converging), notes=texts, ceilings=most)
