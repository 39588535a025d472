"""Traces written in WfFormat 1.5, and what of them the format has no place for."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np

from app.kinds.workflow.formats.check import Edges, order
from app.kinds.workflow.trace import Trace

Json = dict[str, Any]
VERSION = "1.5"
LATEST = 2.5e11
"""Seconds since 1970 near the end of the year 9891: dates end in 9999."""


def write_wfformat(trace: Trace, *, name: str = "") -> Iterator[str]:
    """Pieces of a document; reading it gives the trace again, but for what ``wfformat_omits`` tells.

    The makespan, which the format asks for, is the critical path: what the run would take on any number of nodes.
    """
    omitted = "; ".join(wfformat_omits(trace))
    said = f'"description": {_json(f"Left out: {omitted}")}, ' if omitted else ""
    yield f'{{"name": {_json(name or "workflow")}, {said}"schemaVersion": "{VERSION}", '
    yield '"workflow": {"specification": {'
    yield from _array("tasks", _specified(trace))
    yield ", "
    yield from _array("files", _files(trace))
    yield "}"
    if not np.isnan(trace.runtime).all():
        when = datetime.fromtimestamp(trace.origin if 0 < trace.origin < LATEST else 0.0, UTC).isoformat()
        yield f', "execution": {{"makespanInSeconds": {_json(_number(critical_path(trace)))}, "executedAt": "{when}", '
        yield from _array("tasks", _executed(trace))
        yield "}"
    yield "}}\n"


def wfformat_omits(trace: Trace) -> tuple[str, ...]:
    """Sentences on what WfFormat can't hold of a trace."""
    silent = np.isnan(trace.runtime)
    said = (
        (bool((silent & (trace.processors != 1)).any()), "processors and memory of tasks without a run time"),
        (bool((trace.submit != 0).any()), "submit times: all tasks are submitted at once"),
        (not np.isnan(trace.estimate).all(), "estimates"),
        (not np.isnan(trace.deadline).all(), "deadlines"),
        (bool((trace.user >= 0).any()), "users"),
        (bool((trace.group != 0).any()), "that tasks belong to different workflows, or to none"),
    )
    return tuple(sentence for holds, sentence in said if holds)


def critical_path(trace: Trace) -> float:
    """Seconds from the first submission to the end of the longest way; tasks without a run time take none."""
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


def _specified(trace: Trace) -> Iterator[Json]:
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
    """One file per edge that carries data."""
    for edge, size in enumerate(trace.data.tolist()):
        if size > 0:
            yield {"id": f"edge-{edge}", "sizeInBytes": _number(size)}


def _executed(trace: Trace) -> Iterator[Json]:
    for name, runtime, processors, memory in zip(
        trace.names, trace.runtime.tolist(), trace.processors.tolist(), trace.memory.tolist(), strict=True
    ):
        if not math.isnan(runtime):
            known = {} if math.isnan(memory) else {"memoryInBytes": _number(memory)}
            yield {"id": name, "runtimeInSeconds": _number(runtime), "coreCount": processors, **known}
