"""What a run was: its tasks as a trace, and where and when each ran, from its reports in order."""

import math
from collections.abc import Iterable, Mapping, Sequence
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

    Tasks that have not ended are left out: nothing is known of their run times. Edges to them are left out too.
    """
    tasks_by_id: dict[str, Task] = {}
    for report in reports:
        _queued(tasks_by_id, report.get("queued", ()), report["now"])
        _running(tasks_by_id, report.get("running", ()), report["now"])
        _finished(tasks_by_id, report.get("finished", ()))
    ended = [task for task in tasks_by_id.values() if "end" in task]
    ended.sort(key=lambda task: task["submit"])
    return _log(layout, ended) if ended else None


def _described(tasks_by_id: dict[str, Task], task: Mapping[str, Any], now: float) -> Task:
    """A task as it was first described; one that ended under an identifier that is used again is told apart."""
    if "end" in tasks_by_id.get(task["id"], ()):
        before = tasks_by_id.pop(task["id"])
        before["id"] = f"{before['id']}~{len(tasks_by_id)}"
        tasks_by_id[before["id"]] = before
    if task["id"] not in tasks_by_id:
        begun = task.get("start")
        submit = task.get("submit")
        tasks_by_id[task["id"]] = {**task, "submit": (now if begun is None else begun) if submit is None else submit}
    return tasks_by_id[task["id"]]


def _queued(tasks_by_id: dict[str, Task], tasks: Iterable[Mapping[str, Any]], now: float) -> None:
    for task in tasks:
        known = _described(tasks_by_id, task, now)
        known.pop("begun", None)


def _running(tasks_by_id: dict[str, Task], tasks: Iterable[Mapping[str, Any]], now: float) -> None:
    for task in tasks:
        known = _described(tasks_by_id, task, now)
        if "begun" not in known:
            known["begun"], known["where"] = task["start"], task["node"]


def _finished(tasks_by_id: dict[str, Task], tasks: Iterable[Mapping[str, Any]]) -> None:
    for task in tasks:
        known = tasks_by_id[task["id"]]
        if "begun" not in known:
            known["begun"], known["where"] = task["start"], task["node"]
        known["end"] = task["end"]


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
    row = {task["id"]: i for i, task in enumerate(tasks)}
    edges = [[(row[p], size) for p, size in _parents(task) if p in row] for task in tasks]
    flat = [edge for inside in edges for edge in inside]
    memory = [task.get("memory_gb") for task in tasks]
    trace = Trace(
        names=tuple(task["id"] for task in tasks),
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


def _parents(task: Task) -> list[tuple[str, float]]:
    parents = task.get("parents") or ()
    return [(one, 0.0) if isinstance(one, str) else (one["task"], one.get("bytes", 0.0)) for one in parents]
