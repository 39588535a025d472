"""What pages show of queues: when each task ran where, how busy the nodes were, what waited, and for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.charts.figure import Figure
from app.charts.spans import Bar, courses, gantt
from app.kinds.contract.text import number
from app.kinds.contract.views import Fact, Shown, Step, Views

Json = Mapping[str, Any]


class _Queue:
    """A queue as its reports and decisions tell it."""

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
            self._start(task["id"], task.get("node"), task.get("start"), report["now"])
            self._end(task["id"], task["end"])
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
        self.waiting.discard(task)

    def busy(self) -> int:
        """Processors of the tasks that run."""
        return sum(self.processors.get(task, 1) for task in self.running)


class WorkflowViews(Views):
    """See ``app.kinds.contract.views.Views``."""

    def facts(self, compiled: Any, shown: Shown) -> Sequence[Fact]:  # noqa: ARG002
        """See ``Views``."""
        decision: Json = shown.steps[-1].decision if shown.steps else shown.first
        reason = decision.get("reason", {})
        found = [Fact("reports", f"{shown.iterations:,}")]
        if decision.get("now") is not None:
            found.append(Fact("time", f"{number(decision['now'])} s"))
        found.append(Fact("order", str(reason.get("strategy", "")), str(reason.get("backfilling", ""))))
        window = reason.get("window")
        if window:
            until = "not known when" if window.get("until") is None else f"until {number(window['until'])} s"
            found.append(Fact("gate", f"{window['task']} waits {until}", window.get("node") or ""))
        return found

    def run(self, compiled: Any, shown: Shown) -> Sequence[Figure]:
        """See ``Views``."""
        if not shown.steps:
            return []
        queue, used, waits = _Queue(), list[tuple[float, float]](), list[tuple[float, float]]()
        for step in shown.steps:
            queue.take(step)
            used.append((step.report["now"], queue.busy()))
            waits.append((step.report["now"], len(queue.waiting)))
        now = shown.steps[-1].report["now"]
        bars = [*queue.bars, *(Bar(task, *at, max(now, at[1]), open=True) for task, at in queue.running.items())]
        most = sum(node.maximum * node.processors for node in compiled.layout.spec.nodes)
        told = "Each bar is a task on its node; pale ones still run."
        return [
            *([gantt("When each task ran, and where", bars, told)] if bars else []),
            courses("Busy processors", "processors", {"busy": used}, f"Of {most:,} at most.", steps=True),
            courses("Tasks that wait", "tasks", {"waiting": waits}, "After each decision.", steps=True),
        ]
