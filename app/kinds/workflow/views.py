"""What pages show of queues: when each task ran where, how busy the nodes were, what waited, and for what."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from app.charts.figure import Figure
from app.charts.spans import Bar, courses, gantt
from app.charts.text import number
from app.kinds.contract.views import Alternative, Fact, Hindsight, Shown, Step, Views
from app.kinds.workflow import hindsight as replay
from app.kinds.workflow.decisions.compiled import Compiled
from app.kinds.workflow.hindsight import ASKED
from app.kinds.workflow.queue.state import WAITING, State
from app.kinds.workflow.scheduling.decide import by_strategy, decide

Json = Mapping[str, Any]
Course = list[tuple[float, float]]
MOST_ASKED = 300
"""Tasks up to which other strategies are asked: a page waits for them."""


class _Queue:
    """A queue as reports and decisions tell it: all of them, or some, which tell of some of the tasks."""

    def __init__(self) -> None:
        self.waiting: set[str] = set()
        self.running: dict[str, tuple[str, float]] = {}
        self.bars: list[Bar] = []
        self.processors: dict[str, int] = {}

    def take(self, step: Step) -> None:
        """One more report with its decision."""
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

    def drawn(self, now: float, there: Collection[str] | None) -> list[Bar]:
        """Every task that is known to have run, in the order of its node's name, and those that still run.

        Args:
            there: tasks of the run as it stands; None where that isn't known.
        """
        open_ones = {task: at for task, at in self.running.items() if there is None or task in there}
        running = [Bar(task, *at, max(now, at[1]), open=True) for task, at in open_ones.items()]
        return sorted([*self.bars, *running], key=lambda bar: (bar.lane, bar.start))

    def busy(self) -> int:
        """Processors of the tasks that run."""
        return sum(self.processors.get(task, 1) for task in self.running)


class WorkflowViews(Views):
    """See ``app.kinds.contract.views.Views``."""

    most = 1_000

    def facts(self, compiled: Any, shown: Shown) -> Sequence[Fact]:  # noqa: ARG002
        """See ``Views``."""
        decision: Json = shown.steps[-1].decision if shown.steps else shown.first
        reason = decision.get("reason", {})
        found = [Fact("reports", f"{shown.iterations:,}")]
        if decision.get("now") is not None:
            found.append(Fact("time", f"{number(decision['now'])} s"))
        if decision.get("waiting") is not None:
            found.append(Fact("tasks", f"{decision['running']:,} run, {decision['waiting']:,} wait"))
        found.append(Fact("order", str(reason.get("strategy", "")), f"backfilling: {reason.get('backfilling', '')}"))
        window = reason.get("window")
        if window:
            until = "not known when" if window.get("until") is None else f"until {number(window['until'])} s"
            found.append(Fact("gate", f"{window['task']} waits {until}", window.get("node") or ""))
        plan = reason.get("plan")
        if plan:
            found.append(Fact("plan", f"{number(plan['seconds'])} s", f"by HEFT {number(plan['heft_seconds'])} s"))
        return found

    def run(self, compiled: Compiled, shown: Shown) -> Sequence[Figure]:
        """See ``Views``."""
        if not shown.steps:
            return []
        queue, used, waits = _played(shown.steps)
        counted = [step for step in shown.steps if step.decision.get("waiting") is not None]
        if counted:
            used = [(step.report["now"], step.decision["busy_processors"]) for step in counted]
            waits = [(step.report["now"], step.decision["waiting"]) for step in counted]
        some = "" if shown.every == 1 else f" Of the whole run, the tasks that every {shown.every:,}th report tells of."
        part = "" if shown.every == 1 else f" Over the whole run: every {shown.every:,}th report."
        most = sum(node.maximum * node.processors for node in compiled.layout.spec.nodes)
        told = f"Each bar is a task on its node; pale ones still run.{some}"
        there = None if shown.state is None else shown.state.queue.row
        bars = queue.drawn(shown.steps[-1].report["now"], there)
        return [
            *([gantt("When each task ran, and where", bars, told)] if bars else []),
            courses("Busy processors", "processors", {"busy": used}, f"Of {most:,} at most.{part}", steps=True),
            courses("Tasks that wait", "tasks", {"waiting": waits}, f"After decisions.{part}", steps=True),
        ]

    def alternatives(self, compiled: Compiled, shown: Shown) -> Sequence[Alternative]:
        """See ``Views``: by each strategy, of the tasks that waited at the last report."""
        state: State | None = shown.state
        if state is None or not shown.steps or len(state.queue) > MOST_ASKED or not (state.queue.node == WAITING).any():
            return []
        spec, situation = compiled.layout.spec, compiled.situation(state)
        taken = {(one["task"], one["node"]) for one in shown.steps[-1].decision.get("placements", ())}
        found = []
        for name in ASKED:
            decided = decide(situation, by_strategy(name, spec.backfilling, spec.backfill_order))
            names = [(situation.queue.names[row], compiled.layout.names[node]) for row, node in decided.started.starts]
            words = ", ".join(f"{task} on {node}" for task, node in names) or "nothing starts"
            found.append(Alternative(name, words, set(names) == taken))
        return found

    def hindsight(self, compiled: Compiled, shown: Shown) -> Hindsight:
        """See ``Views``."""
        return replay.hindsight(compiled, shown)

    def details(self, decision: Json) -> Sequence[str]:
        """See ``Views``: each task that starts, and each node."""
        nodes = decision["nodes"]
        starts = [f"{one['task']} starts on {one['node']}" for one in decision["placements"]]
        return [
            *starts,
            *(f"{one} ordered" for one in nodes["start"]),
            *(f"{one} given back" for one in nodes["release"]),
        ]


def _played(steps: Sequence[Step]) -> tuple[_Queue, Course, Course]:
    """The queue that reports tell, the processors that were busy after each, and how many tasks waited."""
    queue, used, waits = _Queue(), Course(), Course()
    for step in steps:
        queue.take(step)
        used.append((step.report["now"], queue.busy()))
        waits.append((step.report["now"], len(queue.waiting)))
    return queue, used, waits
