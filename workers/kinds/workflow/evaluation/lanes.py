"""Gantt charts: on which of a node's processors each task is drawn.

Processors of a node are alike: a task is drawn on the lowest that are free, in several bars where those lie apart.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.layout import Nodes
from app.kinds.workflow.trace import Trace
from workers.kinds.workflow.simulator.schedule import Schedule, ready, slowdowns

Json = dict[str, Any]
Floats = NDArray[np.float64]
MOST_TASKS = 400  # of one chart: more can't be told apart
MOST_NODES = 48
MOST_BARS = 2_000  # where many tasks lie in many pieces; the rest of the stretch is left out
ROOM = 1e-9  # seconds by which times that should be equal may differ


Window = tuple[float, float]
"""Seconds: from, to."""


def window(trace: Trace, schedules: Sequence[Schedule]) -> Window:
    """One stretch for the charts of several schedules of a trace: all of it, or where the first one waits longest."""
    first, last = _window(trace, schedules[0])
    if trace.tasks > MOST_TASKS:
        return first, last
    return first, max(float(schedule.end.max()) for schedule in schedules)


def gantt(
    trace: Trace, nodes: Nodes, schedule: Schedule, labels: Sequence[str] = (), stretch: Window | None = None
) -> Json:
    """The bars of a schedule in a stretch, by itself that of ``window``; see ``pictures``."""
    first, last = stretch or window(trace, [schedule])
    inside = np.flatnonzero((schedule.end > first) & (schedule.start < last))
    shown = _busiest(schedule, nodes, inside)
    inside = inside[np.isin(schedule.node[inside], shown)]
    offsets = np.cumsum([0, *nodes.processors[shown]])
    place = {int(node): int(offset) for node, offset in zip(shown, offsets, strict=False)}
    slow = slowdowns(trace, schedule)
    bars = []
    for task, lane, count in _laid(trace, nodes, schedule, inside):
        node = int(schedule.node[task])
        bars.append(
            {
                "task": trace.names[task],
                "node": node,
                "lane": place[node] + lane,
                "lanes": count,
                "start": round(max(float(schedule.start[task]), first), 3),
                "end": round(min(float(schedule.end[task]), last), 3),
                "slowdown": round(float(slow[task]), 3),
                "group": int(trace.group[task]),
            }
        )
    bars, last = _shortened(bars, last)
    names = [labels[node] if len(labels) else f"node {node}" for node in shown]
    rows = zip(names, offsets, nodes.processors[shown], strict=False)
    return {
        "from": first,
        "to": last,
        "whole": len({bar["task"] for bar in bars}) == trace.tasks,
        "nodes": [{"name": name, "first": int(offset), "lanes": int(lanes)} for name, offset, lanes in rows],
        "bars": bars,
    }


def _shortened(bars: list[Json], last: float) -> tuple[list[Json], float]:
    """As many bars as may be, in order of their start, and when the stretch that they show ends."""
    if len(bars) <= MOST_BARS:
        return bars, last
    until = bars[MOST_BARS]["start"]
    return [{**bar, "end": min(bar["end"], until)} for bar in bars[:MOST_BARS] if bar["start"] < until], until


def _window(trace: Trace, schedule: Schedule) -> Window:
    """All of it, or a stretch of as many tasks as can be shown: the one that waited longest together."""
    first, last = float(trace.submit.min()), float(schedule.end.max())
    if trace.tasks <= MOST_TASKS:
        return first, last
    order = np.argsort(schedule.start, kind="stable")
    starts = schedule.start[order]
    waits = np.cumsum(np.append(0.0, (schedule.start - ready(trace, schedule))[order]))
    many = MOST_TASKS * 3 // 4  # the rest is for tasks that run already
    at = int((waits[many:] - waits[:-many]).argmax())
    return float(starts[at]), float(starts[at + many]) if at + many < trace.tasks else last


def _busiest(schedule: Schedule, nodes: Nodes, inside: NDArray[np.intp]) -> NDArray[np.intp]:
    """The nodes with the most work, in their order."""
    work = np.zeros(len(nodes.kind))
    np.add.at(work, schedule.node[inside], (schedule.end - schedule.start)[inside] + ROOM)
    most = np.argsort(-work, kind="stable")[:MOST_NODES]
    return np.sort(most[work[most] > 0])


def _laid(trace: Trace, nodes: Nodes, schedule: Schedule, inside: NDArray[np.intp]) -> Iterator[tuple[int, int, int]]:
    """Of every bar its task, its lowest lane within the node, and how many lanes; in order of start."""
    until = {int(node): np.full(int(nodes.processors[node]), -np.inf) for node in np.unique(schedule.node[inside])}
    for task in inside[np.lexsort((schedule.end[inside], schedule.start[inside]))]:
        lanes = until[int(schedule.node[task])]
        free = np.flatnonzero(lanes <= schedule.start[task] + ROOM)[: trace.processors[task]]
        lanes[free] = schedule.end[task]
        for part in np.split(free, np.flatnonzero(np.diff(free) > 1) + 1):
            if len(part):
                yield int(task), int(part[0]), len(part)
