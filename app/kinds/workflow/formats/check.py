"""What can be wrong with a trace whatever it was read from: cycles, tasks that fit no node, units that look wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import FieldIssue
from app.kinds.workflow.formats.reading import LISTED, Where, counted
from app.kinds.workflow.layout import Nodes
from app.kinds.workflow.trace import Trace

DAY = 86_400.0
LONG_MEDIAN = 2 * DAY
"""Half of a log's tasks seldom run for longer than this, and easily do when seconds are read as milliseconds."""
LONG_SPAN = 30 * 365 * DAY
LATEST_ORIGIN = 1e11
"""Seconds since 1970 in the year 5138; milliseconds since 1970 have been above it since 1973."""
SMALL_MEMORY = 1e6
SHOWN = 3


class Edges(NamedTuple):
    """Parents as compressed rows, as in ``Trace``; N tasks, E edges.

    Attributes:
        start: [N + 1].
        parents: [E].
    """

    start: NDArray[np.int64]
    parents: NDArray[np.int64]


def cycle(edges: Edges) -> list[int]:
    """Tasks of one cycle from its lowest index on, each the parent of the next; empty where there is none."""
    count = len(edges.start) - 1
    if not len(edges.parents):
        return []
    left = set(range(count)) - set(order(edges))
    if not left:
        return []
    start, parents = edges.start.tolist(), edges.parents.tolist()
    seen: dict[int, int] = {}
    path: list[int] = []
    task = min(left)
    while task not in seen:
        seen[task] = len(path)
        path.append(task)
        task = next(parent for parent in parents[start[task] : start[task + 1]] if parent in left)
    found = path[seen[task] :][::-1]
    first = found.index(min(found))
    return found[first:] + found[:first]


def order(edges: Edges) -> list[int]:
    """Tasks after all of their parents; without those that have a cycle among their ancestors.

    Kahn (1962): tasks without parents are taken away until none is left. Time is linear in tasks and edges.
    """
    count = len(edges.start) - 1
    waits = np.diff(edges.start).tolist()
    child = np.repeat(np.arange(count), np.diff(edges.start))
    by_parent = np.argsort(edges.parents, kind="stable")
    children = child[by_parent].tolist()
    first = np.searchsorted(edges.parents[by_parent], np.arange(count + 1)).tolist()
    found = [task for task in range(count) if waits[task] == 0]
    for task in found:  # which grows meanwhile
        for other in children[first[task] : first[task + 1]]:
            waits[other] -= 1
            if waits[other] == 0:
                found.append(other)
    return found


def cycle_issue(names: Sequence[str], edges: Edges, where: Where) -> list[FieldIssue]:
    """A cycle, named task by task; empty where there is none."""
    found = cycle(edges)
    if not found:
        return []
    shown = found if len(found) <= LISTED else [*found[: LISTED - 1], found[-1]]
    words = [names[task] for task in [*shown, found[0]]]
    if len(found) > LISTED:
        words.insert(LISTED - 1, f"… {len(found) - LISTED} more …")
    message = f"the tasks wait for each other in a cycle: {' → '.join(words)}"
    return [FieldIssue(where(found[0], "parents"), message, names[found[-1]])]


def trace_where(trace: Trace) -> Where:
    """Pointers into a trace that has no file any more: ``/tasks/<name>/<field>``."""
    return lambda task, field: f"/tasks/{trace.names[task]}/{field}"


def misfits(trace: Trace, nodes: Nodes, where: Where | None = None) -> list[FieldIssue]:
    """The first tasks that no node can take, for their processors or for their processors and memory together."""
    at = where or trace_where(trace)
    memory = np.where(np.isnan(trace.memory), 0.0, trace.memory)
    shapes = np.unique(np.stack([nodes.processors, nodes.memory]), axis=1)  # equal nodes are looked at once
    fits = np.zeros(trace.tasks, bool)
    for processors, size in shapes.T:
        fits |= (trace.processors <= processors) & (memory <= size)
    largest = int(nodes.processors.max(initial=0))
    issues = []
    for task in np.flatnonzero(~fits)[:LISTED].tolist():
        wanted = int(trace.processors[task])
        if wanted > largest:
            message = f"must be at most {largest:,}, the processors of the largest node"
            issues.append(FieldIssue(at(task, "processors"), message, wanted))
        else:
            room = nodes.memory[nodes.processors >= wanted].max() / 1e9
            message = f"must be at most {room:g} GB, the memory of the largest node with {wanted} processors"
            issues.append(FieldIssue(at(task, "memory"), message, float(memory[task])))
    return issues


def doubtful_units(trace: Trace, where: Where) -> list[FieldIssue]:
    """Values that look like another unit than seconds or bytes: a warning each, with the values that look so."""
    return [
        *_long_run_times(trace, where),
        *_against_estimates(trace, where),
        *_short_run_times(trace, where),
        *_long_span(trace, where),
        *_small_memory(trace, where),
    ]


def _long_run_times(trace: Trace, where: Where) -> list[FieldIssue]:
    known = np.flatnonzero(trace.runtime > 0)
    if not len(known) or (median := float(np.median(trace.runtime[known]))) <= LONG_MEDIAN:
        return []
    worst = known[np.argsort(-trace.runtime[known], kind="stable")[:SHOWN]]
    message = (
        f"half of the {counted(len(known), 'run time')} are above {median:,.0f} s ({median / DAY:,.1f} days): are they "
        "in milliseconds? The longest are given"
    )
    return [FieldIssue(where(int(worst[0]), "runtime"), message, trace.runtime[worst].tolist())]


def _against_estimates(trace: Trace, where: Where) -> list[FieldIssue]:
    """Estimates are upper limits in most systems: run times far above them are told in another unit."""
    both = np.flatnonzero((trace.runtime > 0) & (trace.estimate > 0))
    if len(both) < SHOWN:
        return []
    with np.errstate(over="ignore"):
        ratio = trace.runtime[both] / trace.estimate[both]
    median = float(np.median(ratio))
    if 1e-4 <= median <= 10:
        return []
    shown = both[np.argsort(ratio, kind="stable")[:: -1 if median > 1 else 1][:SHOWN]]
    unit = "run times in milliseconds, or estimates in minutes or hours" if median > 1 else "estimates in milliseconds"
    message = f"run times are {median:,.4g} times their estimates (median): are these {unit}?"
    return [FieldIssue(where(int(shown[0]), "runtime"), message, trace.runtime[shown].tolist())]


def _short_run_times(trace: Trace, where: Where) -> list[FieldIssue]:
    known = np.flatnonzero(trace.runtime > 0)
    if len(known) < 10 or (longest := float(trace.runtime[known].max())) >= 1:
        return []
    shown = known[:SHOWN]
    message = f"all run times are below a second, the longest is {longest:.3g}: are they in hours or days?"
    return [FieldIssue(where(int(shown[0]), "runtime"), message, trace.runtime[shown].tolist())]


def _long_span(trace: Trace, where: Where) -> list[FieldIssue]:
    if not trace.tasks:
        return []
    span = float(trace.submit[-1] - trace.submit[0])
    latest = trace.origin + float(trace.submit[-1])
    if span <= LONG_SPAN and latest <= LATEST_ORIGIN:
        return []
    said = f"span {span / DAY / 365:,.0f} years" if span > LONG_SPAN else "lie far in the future"
    message = f"submit times {said}: are they in milliseconds? First and last are given"
    return [FieldIssue(where(trace.tasks - 1, "submit"), message, [float(trace.submit[0]), float(trace.submit[-1])])]


def _small_memory(trace: Trace, where: Where) -> list[FieldIssue]:
    known = np.flatnonzero(trace.memory > 0)
    if not len(known) or (median := float(np.median(trace.memory[known]))) >= SMALL_MEMORY:
        return []
    shown = known[np.argsort(trace.memory[known], kind="stable")[:SHOWN]]
    message = f"half of the tasks use less than {median:,.0f} bytes of memory: is it told in kilobytes?"
    return [FieldIssue(where(int(shown[0]), "memory"), message, trace.memory[shown].tolist())]
