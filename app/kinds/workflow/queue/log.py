"""What a run was: its tasks as a trace, and where and when each ran, from its reports in order."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.layout import GIGA, Layout
from app.kinds.workflow.trace import Trace

Task = dict[str, Any]


class Log(NamedTuple):
    """The N tasks of a run that have ended, whoever decided their starts.

    Attributes:
        trace: run times at speed 1; times are seconds after the first submission, which is its origin.
        start: seconds after the origin, [N].
        node: index of the node that each ran on, [N].
    """

    trace: Trace
    start: NDArray[np.float64]
    node: NDArray[np.int64]


def from_reports(layout: Layout, reports: Sequence[Mapping[str, Any]]) -> Log | None:
    """The log of a run whose reports were all accepted, in order; None where no task has ended.

    Tasks that have not ended are left out: nothing is known of their run times. Edges to them are left out too. An
    identifier that is used again after its task has ended names another task; a parent is the task that bears its
    identifier when the child is first reported.
    """
    read = _Reading()
    for report in reports:
        read.take(report)
    ended = [task for task in read.tasks if "end" in task]
    ended.sort(key=lambda task: task["submit"])
    return _log(layout, ended) if ended else None


class _Reading:
    """Tasks of reports, in the order in which they were first described."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self._by_id: dict[str, Task] = {}
        """The task that an identifier names now."""

    def take(self, report: Mapping[str, Any]) -> None:
        """Read one more report of the run."""
        known, now = len(self.tasks), report["now"]
        for told in report.get("queued", ()):
            self._described(told, now).pop("begun", None)
        for told in report.get("running", ()):
            _begun(self._described(told, now), told)
        for told in report.get("finished", ()):
            task = self._by_id[told["id"]]
            _begun(task, told)
            task["end"] = told["end"]
        for task in self.tasks[known:]:
            task["edges"] = [(self._by_id[p], size) for p, size in _parents(task) if p in self._by_id]

    def _described(self, told: Mapping[str, Any], now: float) -> Task:
        """The task as it was first described."""
        task = self._by_id.get(told["id"])
        if task is None or "end" in task:
            begun = told.get("start")
            submit = told.get("submit")
            task = {**told, "submit": (now if begun is None else begun) if submit is None else submit}
            self.tasks.append(task)
            self._by_id[told["id"]] = task
        return task


def _begun(task: Task, told: Mapping[str, Any]) -> None:
    if "begun" not in task:
        task["begun"], task["where"] = told["start"], told["node"]


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _log(layout: Layout, tasks: Sequence[Task]) -> Log:
    origin = float(tasks[0]["submit"])
    start = np.array([task["begun"] for task in tasks], np.float64)
    node = np.array([layout.node_index[task["where"]] for task in tasks], np.int64)
    users = list(dict.fromkeys(task["user"] for task in tasks if task.get("user")))
    groups = list(dict.fromkeys(task["workflow"] for task in tasks if task.get("workflow")))
    at = {name: i for i, name in enumerate(users)}
    of = {name: i for i, name in enumerate(groups)}
    row = {id(task): i for i, task in enumerate(tasks)}
    edges = [[(row[id(parent)], size) for parent, size in task["edges"] if id(parent) in row] for task in tasks]
    flat = [edge for inside in edges for edge in inside]
    memory = [task.get("memory_gb") for task in tasks]
    trace = Trace(
        names=_names([task["id"] for task in tasks]),
        submit=np.array([task["submit"] for task in tasks], np.float64) - origin,
        runtime=(np.array([task["end"] for task in tasks], np.float64) - start) * layout.nodes.speed[node],
        estimate=np.array([_number(task.get("estimate")) for task in tasks]),
        processors=np.array([task["processors"] for task in tasks], np.int64),
        memory=np.array([_number(value) for value in memory]) * GIGA,
        user=np.array([at.get(task.get("user") or "", -1) for task in tasks], np.int64),
        deadline=np.array([_number(task.get("deadline")) for task in tasks]) - origin,
        group=np.array([of.get(task.get("workflow") or "", -1) for task in tasks], np.int64),
        parent_start=np.concatenate([[0], np.cumsum([len(inside) for inside in edges])]).astype(np.int64),
        parents=np.array([parent for parent, _ in flat], np.int64),
        data=np.array([size for _, size in flat], np.float64),
        users=tuple(users),
        origin=origin,
    )
    return Log(trace, start - origin, node)


def _names(identifiers: Sequence[str]) -> tuple[str, ...]:
    """Identifiers; of those that tasks share, the later ones with a number that makes them unique."""
    used, times, names = set(identifiers), Counter[str](), []
    for identifier in identifiers:
        times[identifier] += 1
        name = identifier
        while times[identifier] > 1 and name in used:
            name = f"{identifier}~{times[identifier]}"
            times[identifier] += name in used
        used.add(name)
        names.append(name)
    return tuple(names)


def _parents(task: Task) -> list[tuple[str, float]]:
    parents = task.get("parents") or ()
    return [(one, 0.0) if isinstance(one, str) else (one["task"], one.get("bytes", 0.0)) for one in parents]
