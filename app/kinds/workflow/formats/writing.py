"""Writers of traces in Standard Workload Format and WfFormat."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.charts.text import count_text
from app.kinds.workflow.formats.reading import Edges, order
from app.kinds.workflow.formats.swf import KIBI
from app.kinds.workflow.trace import Trace

# Writer of WfFormat 1.5, and what that format can't represent.


Json = dict[str, Any]
VERSION = "1.5"
LATEST = 2.5e11
"""Seconds since 1970 in the year 9891, near the largest date."""


def write_wfformat(trace: Trace, *, name: str = "") -> Iterator[str]:
    """Yield a document in pieces of text; reading it restores the trace except for ``wfformat_omits``. The required
    makespan is the critical path, the duration on unlimited nodes, in seconds."""
    omitted = "; ".join(wfformat_omits(trace))
    text = f'"description": {_json(f"Left out: {omitted}")}, ' if omitted else ""
    yield f'{{"name": {_json(name or "workflow")}, {text}"schemaVersion": "{VERSION}", '
    yield '"workflow": {"specification": {'
    yield from _array("tasks", _specification(trace))
    yield ", "
    yield from _array("files", _files(trace))
    yield "}"
    if not np.isnan(trace.runtime).all():
        when = datetime.fromtimestamp(trace.origin if 0 < trace.origin < LATEST else 0.0, UTC).isoformat()
        yield f', "execution": {{"makespanInSeconds": {_json(_number(critical_path(trace)))}, "executedAt": "{when}", '
        yield from _array("tasks", _execution(trace))
        yield "}"
    yield "}}\n"


def wfformat_omits(trace: Trace) -> tuple[str, ...]:
    """Return a sentence on each part of the trace that WfFormat can't represent."""
    silent = np.isnan(trace.runtime)
    losses = (
        (bool((silent & (trace.processors != 1)).any()), "processors and memory of tasks without a run time"),
        (bool((trace.submit != 0).any()), "submit times: all tasks are submitted at once"),
        (not np.isnan(trace.estimate).all(), "estimates"),
        (not np.isnan(trace.deadline).all(), "deadlines"),
        (bool((trace.user >= 0).any()), "users"),
        (bool((trace.group != 0).any()), "that tasks belong to different workflows, or to none"),
    )
    return tuple(sentence for holds, sentence in losses if holds)


def critical_path(trace: Trace) -> float:
    """Return the seconds from the first submission to the end of the longest path; tasks without a run time take 0."""
    start, parents = trace.parent_start.tolist(), trace.parents.tolist()
    runtime, submit = np.nan_to_num(trace.runtime).tolist(), (trace.submit - trace.submit[:1]).tolist()
    end = [0.0] * trace.tasks
    for task in order(Edges(trace.parent_start, trace.parents)):
        ready = max((end[parent] for parent in parents[start[task] : start[task + 1]]), default=0.0)
        end[task] = max(submit[task], ready) + runtime[task]
    return max(end, default=0.0)


def _array(name: str, members: Iterable[Json]) -> Iterator[str]:
    yield f'"{name}": ['
    for number, member in enumerate(members):
        yield f"{',' if number else ''}\n{_json(member)}"
    yield "]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value


def _specification(trace: Trace) -> Iterator[Json]:
    start, parents = trace.parent_start.tolist(), trace.parents.tolist()
    carries = (trace.data > 0).tolist()
    children: list[list[int]] = [[] for _ in trace.names]
    for task in range(trace.tasks):
        for edge in range(start[task], start[task + 1]):
            children[parents[edge]].append(edge)
    child = np.repeat(np.arange(trace.tasks), np.diff(trace.parent_start)).tolist()
    for task, name in enumerate(trace.names):
        incoming = range(start[task], start[task + 1])
        yield {
            "name": name,
            "id": name,
            "parents": [trace.names[parents[edge]] for edge in incoming],
            "children": [trace.names[child[edge]] for edge in children[task]],
            "inputFiles": [f"edge-{edge}" for edge in incoming if carries[edge]],
            "outputFiles": [f"edge-{edge}" for edge in children[task] if carries[edge]],
        }


def _files(trace: Trace) -> Iterator[Json]:
    """Yield one file per edge with data, as an object of WfFormat with its size in bytes."""
    for edge, size in enumerate(trace.data.tolist()):
        if size > 0:
            yield {"id": f"edge-{edge}", "sizeInBytes": _number(size)}


def _execution(trace: Trace) -> Iterator[Json]:
    for name, runtime, processors, memory in zip(
        trace.names, trace.runtime.tolist(), trace.processors.tolist(), trace.memory.tolist(), strict=True
    ):
        if not math.isnan(runtime):
            known = {} if math.isnan(memory) else {"memoryInBytes": _number(memory)}
            yield {"id": name, "runtimeInSeconds": _number(runtime), "coreCount": processors, **known}


# Writer of Standard Workload Format, and what that format can't represent.


UNKNOWN = "-1"
COMPLETED = "1"


def write_swf(
    trace: Trace, *, name: str = "", machine: int | None = None, wait: NDArray[np.float64] | None = None
) -> Iterator[str]:
    """Yield the lines of a batch log; reading them restores the trace except for ``swf_omits``.

    Args:
        trace: trace of N tasks to write.
        name: name of the machine, for the header.
        machine: processors of the machine, for the header; None: unknown.
        wait: seconds that each job waited under some schedule, [N]; None: unknown.
    """
    yield from _header(trace, name, machine)
    memory = trace.memory / KIBI / trace.processors
    names = _numbers(trace.users) or [str(user + 1) for user in range(len(trace.users))]
    columns = (
        _numbers(trace.names) or [str(task + 1) for task in range(trace.tasks)],
        _texts(trace.submit),
        _texts(wait) if wait is not None else [UNKNOWN] * trace.tasks,
        _texts(trace.runtime),
        list(map(str, trace.processors.tolist())),
        _texts(memory),
        _texts(trace.estimate),
        [names[user] if user >= 0 else UNKNOWN for user in trace.user.tolist()],
        _preceding(trace) or [UNKNOWN] * trace.tasks,
    )
    for job, submit, waited, runtime, processors, kibibytes, estimate, user, preceding in zip(*columns, strict=True):
        measured = f"{job} {submit} {waited} {runtime} {processors} {UNKNOWN} {kibibytes}"
        requested = f"{processors} {estimate} {kibibytes} {COMPLETED} {user}"
        yield f"{measured} {requested} {UNKNOWN} {UNKNOWN} {UNKNOWN} {UNKNOWN} {preceding} {UNKNOWN}\n"


def swf_omits(trace: Trace) -> tuple[str, ...]:
    """Return a sentence on each part of the trace that Standard Workload Format can't represent."""
    silent = int(np.isnan(trace.runtime).sum())
    edges = len(trace.parents)
    losses = (
        (_numbers(trace.names) is None, "names of tasks: jobs are numbered from 1"),
        (_numbers(trace.users) is None, "names of users: they are numbered from 1"),
        (silent > 0, f"{count_text(silent, 'task')} without a run time: readers leave them out"),
        (edges > 0 and _preceding(trace) is None, f"{count_text(edges, 'edge')}: a job has at most one preceding job"),
        (bool((trace.data > 0).any()), "the bytes that go along edges"),
        (not np.isnan(trace.deadline).all(), "deadlines"),
        (bool((trace.group >= 0).any()), "which workflow a task belongs to"),
    )
    return tuple(sentence for holds, sentence in losses if holds)


def _header(trace: Trace, name: str, machine: int | None) -> Iterator[str]:
    yield "; Version: 2.2\n"
    for sentence in swf_omits(trace):
        yield f"; Note: left out: {sentence}\n"
    if name:
        yield f"; Computer: {' '.join(name.split())}\n"
    yield f"; MaxJobs: {trace.tasks}\n; MaxRecords: {trace.tasks}\n"
    if trace.origin:
        yield f"; UnixStartTime: {_text(trace.origin)}\n"
    if machine:
        yield f"; MaxProcs: {machine}\n"


def _texts(values: NDArray[np.float64]) -> list[str]:
    return [_text(value) for value in values.tolist()]


def _text(value: float) -> str:
    """Return the shortest text that parses to the same number; −1 for NaN."""
    return UNKNOWN if math.isnan(value) else repr(value).removesuffix(".0")


def _numbers(names: Sequence[str]) -> list[str] | None:
    """Return the names if all are whole numbers from 0, else None."""
    good = all(
        name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") and len(name) < 16 for name in names
    )
    return list(names) if good else None


def _preceding(trace: Trace) -> list[str] | None:
    """Return the number of each task's only parent, −1 without; None if a task has several, or there are no parents."""
    degree = np.diff(trace.parent_start)
    if not len(trace.parents) or degree.max() > 1:
        return None
    names = _numbers(trace.names) or [str(task + 1) for task in range(trace.tasks)]
    parents = iter(trace.parents.tolist())
    results = [names[next(parents)] if has else UNKNOWN for has in degree.tolist()]
    return None if "0" in results else results  # 0 means no job in this column
