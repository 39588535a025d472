"""Pages of kind `workflow`, hindsight, and risk and outcome of runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from operator import eq
from typing import Any

import msgspec
import numpy as np
from typing_extensions import override

from app.charts.figures import DECIDED, Figure, beside_decided
from app.charts.text import NOTHING, clock, count_text, duration, number, percent
from app.charts.timeline import Bar, courses, gantt
from app.kinds.contract.run_outcome import EndedRun, Judgement, in_time
from app.kinds.contract.views import (
    ASKED_THEN,
    MOST_ROWS,
    NOTHING_YET,
    Alternative,
    Fact,
    Hindsight,
    RunHistory,
    Step,
    Table,
    Views,
    evenly,
    job_table,
    too_long,
)
from app.kinds.workflow.advance import advance
from app.kinds.workflow.decide import Compiled
from app.kinds.workflow.queue import FAILED, GIGA, STARTING, UP, WAITING, Layout, QueueReport, State, begin
from app.kinds.workflow.scheduling.decide import by_strategy, decide

# Hindsight: what other strategies would have started at the reports of a run.


POINTS = 30
"""Most decisions that are compared."""
MOST_TASKS = 300
"""Most tasks of a queue for which hindsight is computed, as a page waits for it."""
ASKED = ("fcfs", "sjf", "saf", "wfp3", "unicep", "f1", "heft", "cpop")
KNOWN = ("easy", "conservative", "uncommitted")
"""Mechanisms that need the queue only; others depend on earlier commitments, which are not stored."""
PROMISED = (
    "Not available with backfilling {}: the reservations at each decision are not stored. "
    f"Available with {' and '.join(KNOWN)}."
)
TOO_MANY = f"Available for queues of up to {MOST_TASKS} tasks."


def hindsight(compiled: Compiled, history: RunHistory) -> Hindsight:
    """Replay the queue from the reports, and compare every strategy at up to ``POINTS`` decisions with a waiting task.
    Without a figure, the result has the reason as text: no report, unsuitable backfilling, too many reports or
    tasks."""
    spec = compiled.layout.spec
    if not history.steps:
        return Hindsight([], NOTHING_YET)
    if spec.backfilling not in KNOWN:
        return Hindsight([], PROMISED.format(spec.backfilling))
    if len(history.steps) < history.iterations:
        return Hindsight([], too_long(len(history.steps)))
    stood = [(step.decision, state) for step, state in zip(history.steps, _replay(compiled, history), strict=False)]
    if len(stood) < len(history.steps):
        return Hindsight([], TOO_MANY)
    stood = [(decision, state) for decision, state in stood if (state.queue.node == WAITING).any()]
    if not stood:
        return Hindsight([], "No task has been pending yet.")
    points = evenly(stood, POINTS)
    decided = [{(one["task"], one["node"]) for one in decision.get("placements", ())} for decision, _ in points]
    others = {name: [_starts(compiled, state, name) for _, state in points] for name in ASKED}
    same = {name: sum(map(eq, decided, every)) / len(points) for name, every in others.items()}
    starts = {name: sum(map(len, every)) / len(points) for name, every in {DECIDED: decided, **others}.items()}
    text = f"{len(points):,} of {history.iterations:,} decisions, with pending tasks."
    figures = [
        beside_decided("Identical decisions by policy", "share of decisions", same, text),
        beside_decided("Started tasks by policy", "tasks per decision", starts, text),
    ]
    return Hindsight(figures, ASKED_THEN)


def _starts(compiled: Compiled, state: State, strategy: str) -> set[tuple[str, str]]:
    """Return (task, node) names of the tasks that start under a strategy."""
    spec, situation = compiled.layout.spec, compiled.situation(state)
    decided = decide(situation, by_strategy(strategy, spec.backfilling, spec.backfill_order))
    return {(situation.queue.names[row], compiled.layout.names[node]) for row, node in decided.started.starts}


def _replay(compiled: Compiled, history: RunHistory) -> Iterator[State]:
    """Yield the state after each report, until the queue exceeds ``MOST_TASKS``."""
    state = begin(compiled.layout)
    for step in history.steps:
        state = advance(compiled.layout, state, msgspec.convert(step.report, QueueReport))
        if len(state.queue) > MOST_TASKS:
            return
        yield state


# Run page: schedule, busy processors, waiting tasks.


Json = Mapping[str, Any]
Course = list[tuple[float, float]]
MOST_ASKED = 300
"""Most tasks for which other strategies are run, as a page waits for it."""


class _Queue:
    """A queue reconstructed from reports and decisions; if some of these are skipped, so are some tasks.

    Attributes:
        waiting: names of the waiting tasks.
        running: node and start in seconds of each running task, by name.
        bars: finished tasks.
        processors: processors of each task, by name.
    """

    def __init__(self) -> None:
        self.waiting: set[str] = set()
        self.running: dict[str, tuple[str, float]] = {}
        self.bars: list[Bar] = []
        self.processors: dict[str, int] = {}

    def take(self, step: Step) -> None:
        """Apply one more report and its decision."""
        report = step.report
        if not report.get("delta"):
            self.waiting = set()
        for task in [*report.get("queued", ()), *report.get("running", ())]:
            self.processors.setdefault(task["id"], task.get("processors") or 1)
        self.waiting |= {task["id"] for task in report.get("queued", ())}
        for task in report.get("running", ()):
            self._start(task["id"], task.get("node"), task.get("start"), report["now"])
        for task in report.get("finished", ()):
            if task.get("start") is not None or task["id"] in self.running:
                self._start(task["id"], task.get("node"), task.get("start"), report["now"])
                self._end(task["id"], task["end"])
            self.waiting.discard(task["id"])
        self.waiting -= set(report.get("withdrawn", ()))
        for placed in step.decision.get("placements", ()):
            self._start(placed["task"], placed["node"], placed["start"], report["now"])

    def _start(self, task: str, node: str | None, start: float | None, now: float) -> None:
        known = self.running.get(task, ("somewhere", now))
        self.running[task] = (node or known[0], known[1] if start is None else start)
        self.waiting.discard(task)

    def _end(self, task: str, end: float) -> None:
        node, start = self.running.pop(task)
        self.bars.append(Bar(task, node, start, max(end, start)))

    def all_bars(self, now: float, there: Collection[str] | None) -> list[Bar]:
        """Return bars of all tasks known to have run, and of running ones, ordered by node and start. ``now`` is the
        time of the last report in seconds; ``there`` has the tasks of the present state, None: unknown."""
        open_ones = {task: at for task, at in self.running.items() if there is None or task in there}
        running = [Bar(task, *at, max(now, at[1]), open=True) for task, at in open_ones.items()]
        return sorted([*self.bars, *running], key=lambda bar: (bar.lane, bar.start))

    def busy(self) -> int:
        """Return the number of processors that running tasks use."""
        return sum(self.processors.get(task, 1) for task in self.running)


# Table of the present tasks.


COLUMNS = ("Task", "State", "User", "Processors", "Progress", "ETA", "Why pending")


def tasks_table(compiled: Compiled, state: State) -> Table:
    """Return the table of a state's tasks: running ones by node, pending ones by submission."""
    queue, layout, predictor = state.queue, compiled.layout, compiled.predictor
    known = queue.estimate if predictor is None else predictor.expected(queue.estimate, queue.users, state.history)
    speed = np.where(queue.node == WAITING, layout.nodes.speed.max(), layout.nodes.speed[queue.node])
    lasts = known / speed

    def row(at: int, why: str) -> list[str]:
        user = queue.users[at] or queue.groups[at] or NOTHING
        if queue.node[at] == WAITING:
            start = _reserved_start(state, queue.names[at])
            eta = NOTHING if start is None else f"starts in {duration(start - state.now)}"
            return [queue.names[at], "pending", user, f"requests {queue.processors[at]:,}", NOTHING, eta, why]
        ran = state.now - queue.start[at]
        share = ran / lasts[at] if lasts[at] > 0 else np.nan
        done = f"for {duration(ran)}" + (f" ({percent(min(share, 0.99), 0)})" if np.isfinite(share) else "")
        eta = duration(max(lasts[at] - ran, 0)) if np.isfinite(share) else NOTHING
        text = f"{queue.processors[at]:,} on {layout.names[queue.node[at]]}"
        return [queue.names[at], "running", user, text, done if np.isfinite(ran) else NOTHING, eta, ""]

    runs = np.flatnonzero(queue.node != WAITING)
    runs = runs[np.argsort(queue.node[runs], kind="stable")]
    waits = np.flatnonzero(queue.node == WAITING)
    waits = waits[np.argsort(queue.submit[waits], kind="stable")]
    why = reasons_pending(compiled.layout, state, waits.tolist())
    return job_table(
        "Tasks",
        COLUMNS,
        [partial(row, at, "") for at in runs.tolist()],
        [partial(row, at, one) for at, one in zip(waits.tolist(), why, strict=True)],
    )


def failed_tasks(history: RunHistory) -> Table | None:
    """Return the table of the tasks that the shown reports call failed, newest first; None if there are none."""
    rows, nodes = list[list[str]](), dict[str, str]()
    for step in history.steps:
        nodes |= {one["task"]: one["node"] for one in step.decision.get("placements", ())}
        for task in [*step.report.get("running", ()), *step.report.get("finished", ())]:
            if task.get("node"):
                nodes[task["id"]] = task["node"]
            if task.get("state") == "failed":
                ended = nodes.get(task["id"], NOTHING), clock(task["end"])
                rows.append([task["id"], *ended, task.get("reason") or "not reported"])
    if not rows:
        return None
    part = "" if history.every == 1 else f", of every {history.every:,}th report"
    heads = ("Task", "Node", "Ended", "Reason")
    shown = rows[: -MOST_ROWS - 1 : -1]
    return Table("Failed tasks", f"As reported{part}; newest first.", heads, shown, len(rows) - len(shown))


def after_decision(layout: Layout, state: State, decision: Json) -> State:
    """Return the state after a report with the tasks that the decision on it starts on their nodes."""
    queue = copy(state.queue)
    queue.node, queue.start = queue.node.copy(), queue.start.copy()
    for placed in decision.get("placements", ()):
        at = queue.row.get(placed["task"])
        if at is not None and queue.node[at] == WAITING:
            queue.node[at], queue.start[at] = layout.node_index[placed["node"]], placed["start"]
    return state._replace(queue=queue)


def _reserved_start(state: State, task: str) -> float | None:
    """Return the time for which a task's start is reserved, in seconds of the reports' clock; None: it isn't."""
    committed = state.head[1] if state.head and state.head[0] == task else math.inf
    start = state.reserved.starts.get(task, committed)
    return start if math.isfinite(start) else None


def reasons_pending(layout: Layout, state: State, waits: Sequence[int]) -> list[str]:
    """Return why each of the tasks at rows ``waits`` of the queue, in the order of submission, does not run."""
    queue, nodes = state.queue, layout.nodes
    runs = queue.node != WAITING
    used, filled = (
        np.bincount(queue.node[runs], taken[runs], len(layout.names)) for taken in (queue.processors, queue.memory)
    )
    up = np.array([state.nodes.get(at, (UP, 0.0))[0] == UP for at in range(len(layout.names))])
    on = up & (nodes.permanent | np.isin(np.arange(len(up)), [*state.nodes]))
    free, spare = np.where(on, nodes.processors - used, 0), nodes.memory - filled
    usable = np.array([state.nodes.get(at, (UP, 0.0))[0] != FAILED for at in range(len(layout.names))])
    starting = [at for at, (status, _) in sorted(state.nodes.items()) if status == STARTING]
    pending, first = list[str](), ""
    for at in waits:
        name, least = queue.names[at], int(queue.processors[at])
        needs = f"needs {count_text(least, 'processor')}"
        parents = [parent for parent, _ in queue.inputs[at] if parent in queue.row]
        if parents:
            more = f" and {len(parents) - 1:,} more" if len(parents) > 1 else ""
            pending.append(f"depends on {parents[0]}{more}")
            continue
        fits = (nodes.processors >= least) & (nodes.memory >= queue.memory[at])
        if not (fits & usable).any():
            failed = "" if not fits.any() else ": every node that it fits has failed"
            most = int(nodes.processors[usable].max(initial=0))
            pending.append(f"can't start{failed}" if failed else f"can never start: {needs}, a node has {most:,}")
            continue
        start, parts = _reserved_start(state, name), list[str]()
        roomy = fits & on & (free >= least)
        if not roomy.any():
            most = int(free[fits].max())
            parts.append(f"{needs}, " + (f"at most {most:,} free on a node" if most else "none free on nodes it fits"))
        elif (spare[roomy] < queue.memory[at]).all():
            wanted, left = (number(size / GIGA) for size in (queue.memory[at], spare[roomy].max()))
            spared = "none" if left == "0" else f"at most {left}"
            parts.append(f"needs {wanted} GB, {spared} free on a node with enough processors")
        soon = [layout.names[node] for node in starting if fits[node]] if parts else []
        parts += [f"reserved for {clock(start)}"] if start is not None else []
        parts += [f"{soon[0]} is starting"] if soon else []
        parts += [f"behind {first}"] if first and start is None else []
        pending.append("; ".join(parts) or "waits for the next decision")
        first = first or name
    return pending


class WorkflowViews(Views):
    """Pages of runs and workloads of kind ``workflow``."""

    most = 1_000

    @override
    def facts(self, compiled: Any, history: RunHistory) -> Sequence[Fact]:
        decision: Json = history.steps[-1].decision if history.steps else history.first
        reason = decision.get("reason", {})
        facts = [Fact("reports", f"{history.iterations:,}")]
        if decision.get("now") is not None:
            facts.append(Fact("time", clock(decision["now"])))
        if decision.get("waiting") is not None:
            facts.append(Fact("tasks", f"{decision['running']:,} running, {decision['waiting']:,} pending"))
        facts.append(Fact("order", str(reason.get("strategy", "")), f"backfilling: {reason.get('backfilling', '')}"))
        window = reason.get("window")
        if window:
            until = "start unknown" if window.get("until") is None else f"until {clock(window['until'])}"
            facts.append(Fact("reservation", f"{window['task']}, {until}", window.get("node") or ""))
        plan = reason.get("plan")
        if plan:
            facts.append(Fact("plan", duration(plan["seconds"]), f"HEFT: {duration(plan['heft_seconds'])}"))
        return facts

    @override
    def run(self, compiled: Compiled, history: RunHistory) -> Sequence[Figure]:
        if not history.steps:
            return []
        queue, used, waits = _reconstruct(history.steps)
        counted = [step for step in history.steps if step.decision.get("waiting") is not None]
        if counted:
            used = [(step.report["now"], step.decision["busy_processors"]) for step in counted]
            waits = [(step.report["now"], step.decision["waiting"]) for step in counted]
        some = "" if history.every == 1 else f" Tasks in every {history.every:,}th report."
        part = "" if history.every == 1 else f" Every {history.every:,}th report."
        most = sum(node.maximum * node.processors for node in compiled.layout.spec.nodes)
        text = f"Tasks by node; pale bars: still running.{some}"
        there = None if history.state is None else history.state.queue.row
        bars = queue.all_bars(history.steps[-1].report["now"], there)
        return [
            *([gantt("Gantt chart", bars, text)] if bars else []),
            courses("Busy processors", "processors", {"busy": used}, f"Of at most {most:,}.{part}", steps=True),
            courses("Pending tasks", "tasks", {"pending": waits}, f"After each decision.{part}", steps=True),
        ]

    @override
    def tables(self, compiled: Compiled, history: RunHistory) -> Sequence[Table]:
        """Return the table of the tasks after the last decision, unless the run has ended, and that of failed tasks;
        none that is empty."""
        tables = list[Table]()
        if history.live and history.state is not None and len(history.state.queue):
            decision = history.steps[-1].decision if history.steps else history.first
            tables.append(tasks_table(compiled, after_decision(compiled.layout, history.state, decision)))
        failed = failed_tasks(history)
        return tables if failed is None else [*tables, failed]

    @override
    def alternatives(self, compiled: Compiled, history: RunHistory) -> Sequence[Alternative]:
        """Return each strategy's starts for the queue at the last report; none if nothing waits or the queue is
        large."""
        state: State | None = history.state
        if (
            state is None
            or not history.steps
            or len(state.queue) > MOST_ASKED
            or not (state.queue.node == WAITING).any()
        ):
            return []
        spec, situation = compiled.layout.spec, compiled.situation(state)
        taken = {(one["task"], one["node"]) for one in history.steps[-1].decision.get("placements", ())}
        alternatives = []
        for name in ASKED:
            decided = decide(situation, by_strategy(name, spec.backfilling, spec.backfill_order))
            names = [(situation.queue.names[row], compiled.layout.names[node]) for row, node in decided.started.starts]
            words = ", ".join(f"{task} on {node}" for task, node in names) or "none"
            alternatives.append(Alternative(name, words, set(names) == taken))
        return alternatives

    @override
    def hindsight(self, compiled: Compiled, history: RunHistory) -> Hindsight:
        return hindsight(compiled, history)

    @override
    def details(self, decision: Json) -> Sequence[str]:
        """Return one line for each task that starts, and for each node requested or released."""
        nodes = decision["nodes"]
        starts = [f"{one['task']} starts on {one['node']}" for one in decision["placements"]]
        return [
            *starts,
            *(f"{one} requested" for one in nodes["start"]),
            *(f"{one} released" for one in nodes["release"]),
        ]


def _reconstruct(steps: Sequence[Step]) -> tuple[_Queue, Course, Course]:
    """Return the queue, and times in seconds with busy processors, and with waiting tasks, after each report."""
    queue, used, waits = _Queue(), Course(), Course()
    for step in steps:
        queue.take(step)
        used.append((step.report["now"], queue.busy()))
        waits.append((step.report["now"], len(queue.waiting)))
    return queue, used, waits


# Risk and outcome of a run by the deadlines of its tasks.


def risk(compiled: Compiled, state: State) -> str:
    """Return a text that names a task past its deadline, or that may miss it; empty: no risk. A task may miss its
    deadline if it is still waiting and would end later on the fastest node, started now. Run times are the domain
    model's predictions, else estimates."""
    queue, predictor = state.queue, compiled.predictor
    if np.isnan(queue.deadline).all():
        return ""
    known = queue.estimate if predictor is None else predictor.expected(queue.estimate, queue.users, state.history)
    expected = np.nan_to_num(known) / compiled.layout.nodes.speed.max()
    rest = np.where(queue.node == WAITING, expected, 0.0)
    late = np.flatnonzero(state.now + rest > queue.deadline).tolist()  # comparisons with NaN are False
    if not late:
        return ""
    task, due = queue.names[late[0]], float(queue.deadline[late[0]])
    more = f", and {len(late) - 1:,} more" if len(late) > 1 else ""
    moment = f"its deadline, {clock(due)} (now {clock(state.now)})"
    if due < state.now:
        return f"{task} is past {moment}{more}"
    source = "its estimate" if predictor is None else "its predicted run time"
    return f"{task} may miss {moment}, by {source}{more}"


def judge(run: EndedRun) -> Judgement:
    """Count the tasks that finished by their deadline, and those late: also those that failed, or are overdue."""
    due: dict[str, float] = {}
    late, met, now = 0, 0, -math.inf
    for report in run.reports:
        now = report["now"]
        for task in (*report.get("queued", ()), *report.get("running", ())):
            if task.get("deadline") is not None:
                due[task["id"]] = task["deadline"]
        for task in report.get("finished", ()):
            deadline = due.pop(task["id"], None)
            if deadline is not None:
                in_due_time = task["end"] <= deadline and task.get("state") != "failed"
                late, met = late + (not in_due_time), met + in_due_time
        for name in report.get("withdrawn", ()):
            due.pop(name, None)
        if not report.get("delta"):  # whole report: tasks left out were withdrawn
            listed = {task["id"] for task in (*report.get("queued", ()), *report.get("running", ()))}
            due = {name: deadline for name, deadline in due.items() if name in listed}
    late += sum(deadline < now for deadline in due.values())
    return in_time(late, late + met, "task")
