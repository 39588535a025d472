"""Charts of schedules as JSON values: Gantt charts, courses over time, distributions and metrics; and outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.charts.text import MONEY, SHARE
from app.kinds.contract.kind import Outcome
from app.kinds.workflow.queue import HOUR, Nodes
from app.kinds.workflow.trace import Seconds, Trace
from workers.kinds.workflow.simulator.simulate import Schedule, figures, list_rentals, ready, slowdowns

# Gantt charts: the assignment of tasks to a node's processors.
#
# Processors of a node are alike: a task is drawn on the lowest free ones, in several bars if they are not adjacent.


Json = dict[str, Any]
Floats = NDArray[np.float64]
MOST_TASKS = 400  # in one chart, for legibility
MOST_NODES = 48
MOST_BARS = 2_000  # in one chart; the rest of the time window is left out
ROOM = 1e-9  # tolerance in seconds between equal times


Window = tuple[float, float]
"""Beginning and end of a charted time window, seconds."""


def window(trace: Trace, schedules: Sequence[Schedule]) -> Window:
    """Return a common time window (seconds) for charts of several schedules: the whole time or, if there are more than
    ``MOST_TASKS`` tasks, that in which the first schedule's tasks wait longest."""
    first, last = _window(trace, schedules[0])
    if trace.tasks > MOST_TASKS:
        return first, last
    return first, max(float(schedule.end.max()) for schedule in schedules)


def gantt(
    trace: Trace, nodes: Nodes, schedule: Schedule, labels: Sequence[str] = (), stretch: Window | None = None
) -> Json:
    """Make a Gantt chart: the bars of a schedule in the time window ``stretch`` in seconds; None: by ``window``."""
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
    bars, last = _shorten_bars(bars, last)
    names = [labels[node] if len(labels) else f"node {node}" for node in shown]
    rows = zip(names, offsets, nodes.processors[shown], strict=False)
    return {
        "from": first,
        "to": last,
        "whole": len({bar["task"] for bar in bars}) == trace.tasks,
        "nodes": [{"name": name, "first": int(offset), "lanes": int(lanes)} for name, offset, lanes in rows],
        "bars": bars,
    }


def _shorten_bars(bars: list[Json], last: float) -> tuple[list[Json], float]:
    """Keep at most ``MOST_BARS`` bars by start; return them and the end, in seconds, of the window that they cover."""
    if len(bars) <= MOST_BARS:
        return bars, last
    until = bars[MOST_BARS]["start"]
    return [{**bar, "end": min(bar["end"], until)} for bar in bars[:MOST_BARS] if bar["start"] < until], until


def _window(trace: Trace, schedule: Schedule) -> Window:
    """Return the window of the whole schedule, or that in which as many tasks as a chart has wait longest in all."""
    first, last = float(trace.submit.min()), float(schedule.end.max())
    if trace.tasks <= MOST_TASKS:
        return first, last
    order = np.argsort(schedule.start, kind="stable")
    starts = schedule.start[order]
    waits = np.cumsum(np.append(0.0, (schedule.start - ready(trace, schedule))[order]))
    many = MOST_TASKS * 3 // 4  # leaves a quarter for tasks that run already
    at = int((waits[many:] - waits[:-many]).argmax())
    return float(starts[at]), float(starts[at + many]) if at + many < trace.tasks else last


def _busiest(schedule: Schedule, nodes: Nodes, inside: NDArray[np.intp]) -> NDArray[np.intp]:
    work = np.zeros(len(nodes.kind))
    np.add.at(work, schedule.node[inside], (schedule.end - schedule.start)[inside] + ROOM)
    most = np.argsort(-work, kind="stable")[:MOST_NODES]
    return np.sort(most[work[most] > 0])


def _laid(trace: Trace, nodes: Nodes, schedule: Schedule, inside: NDArray[np.intp]) -> Iterator[tuple[int, int, int]]:
    """Yield (task, lowest processor within the node, number of processors) of each bar of the tasks ``inside``
    (indices), by start of the task."""
    until = {int(node): np.full(int(nodes.processors[node]), -np.inf) for node in np.unique(schedule.node[inside])}
    for task in inside[np.lexsort((schedule.end[inside], schedule.start[inside]))]:
        lanes = until[int(schedule.node[task])]
        free = np.flatnonzero(lanes <= schedule.start[task] + ROOM)[: trace.processors[task]]
        lanes[free] = schedule.end[task]
        for part in np.split(free, np.flatnonzero(np.diff(free) > 1) + 1):
            if len(part):
                yield int(task), int(part[0]), len(part)


# Charts of a schedule as JSON values, small for any number of tasks. A *picture*, the result of ``picture``, has:
#
# ``name``, ``tasks``, and ``figures`` (``simulate.Figures``);
#
# ``over_time``: ``time`` (seconds, left edges of equal bins, and the last right edge), ``utilisation`` (mean busy share
# of all processors), ``queue`` (mean number of ready, waiting tasks) and ``longest`` (the largest number of them);
#
# ``slowdown``: ``share`` of the tasks whose bounded slowdown is at most ``value``;
#
# ``gantt``: ``from`` and ``to`` (seconds), ``whole`` (whether all tasks are in it), ``nodes`` (``name``, ``first`` lane
# and ``lanes``), and ``bars`` (``task``, ``node``, ``lane``, ``lanes``, ``start``, ``end``, ``slowdown``, ``group``).


BINS = 240
QUANTILES = np.concatenate([np.linspace(0, 0.98, 50), 1 - np.geomspace(0.015, 1e-4, 12)])


def picture(
    name: str,
    trace: Trace,
    nodes: Nodes,
    schedule: Schedule,
    labels: Sequence[str] = (),
    stretch: Window | None = None,
) -> Json:
    """Make all charts of one schedule: ``name``, ``tasks``, ``figures``, ``over_time``, ``slowdown`` and ``gantt``.

    Args:
        name: name of the strategy.
        labels: names of the nodes, [M]; empty: their numbers.
        stretch: time window of the Gantt chart; None: chosen by ``window``.

    Raises:
        ValueError: there is no task, or a task has no end.
    """
    result = figures(trace, nodes, schedule)._asdict()
    edges = _edges(trace, schedule)
    return {
        "name": name,
        "tasks": trace.tasks,
        "figures": {key: float(value) for key, value in result.items()},
        "over_time": over_time(trace, nodes, schedule, edges),
        "slowdown": distribution(slowdowns(trace, schedule)),
        "gantt": gantt(trace, nodes, schedule, labels, stretch),
    }


def over_time(trace: Trace, nodes: Nodes, schedule: Schedule, edges: Floats) -> Json:
    """Compute the busy share of processors, and the mean and largest number of waiting tasks, between the T + 1
    ``edges`` (seconds), as JSON lists."""
    at = ready(trace, schedule)
    busy = _mean(schedule.start, schedule.end, trace.processors.astype(np.float64), edges)
    ones = np.ones(trace.tasks)
    return {
        "time": edges.tolist(),
        "utilisation": _round_values(busy / nodes.processors.sum(), 5),
        "queue": _round_values(_mean(at, schedule.start, ones, edges), 3),
        "longest": _longest(at, schedule.start, edges).tolist(),
    }


def distribution(values: Floats) -> Json:
    """Compute quantiles of ``values`` [N] as JSON, denser towards the largest, where schedules differ."""
    finest = 1 - 1 / max(len(values), 1)
    shares = np.append(QUANTILES[finest >= QUANTILES], 1.0)
    return {"share": _round_values(shares, 5), "value": _round_values(np.quantile(values, shares), 4)}


def _edges(trace: Trace, schedule: Schedule) -> Floats:
    first, last = float(trace.submit.min()), float(schedule.end.max())
    return np.linspace(first, max(last, first + 1e-6), BINS + 1)


def _mean(begin: Floats, end: Floats, amount: Floats, edges: Floats) -> Floats:
    """Return the time average [T], between ``edges`` [T + 1], of the sum of ``amount`` [k] over the k intervals from
    ``begin`` to ``end`` (seconds) that are open."""
    times = np.concatenate([begin, end])
    order = np.argsort(times, kind="stable")
    times, steps = times[order], np.concatenate([amount, -amount])[order]
    level = np.cumsum(steps)
    area = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])  # cumulative, up to each event
    place = np.searchsorted(times, edges, side="right") - 1
    inside = np.maximum(place, 0)
    area_before = np.where(place >= 0, area[inside] + level[inside] * (edges - times[inside]), 0.0)
    mean: Floats = np.maximum(np.diff(area_before) / np.diff(edges), 0.0)
    return mean


def _longest(begin: Floats, end: Floats, edges: Floats) -> NDArray[np.int64]:
    """Return the largest number, in each bin between ``edges``, of open intervals from ``begin`` to ``end`` (seconds),
    [T]; empty intervals don't count."""
    some = end > begin
    begins, ends = np.sort(begin[some]), np.sort(end[some])

    def open_at(moments: Floats) -> NDArray[np.int64]:
        return np.searchsorted(begins, moments, side="right") - np.searchsorted(ends, moments, side="right")

    most = open_at(edges[:-1])
    where = np.clip(np.searchsorted(edges, begins, side="right") - 1, 0, len(most) - 1)
    np.maximum.at(most, where, open_at(begins))
    return most


def _round_values(values: Floats, digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]


# Outcomes of a schedule in users' units: bounded slowdown, waits and makespan, missed deadlines, node-hours and money.


QUEUED = (Outcome("bounded slowdown"), Outcome("wait", "s"), Outcome("makespan", "s"))
"""Outcomes of jobs on one machine that is always on."""
OUTCOMES = (
    *QUEUED,
    Outcome("deadlines missed", SHARE, binding=True),
    Outcome("rented", "node-hours"),
    Outcome("cost", MONEY),
)
"""Outcomes of any tasks on any nodes."""


def queue_outcomes(trace: Trace, begun: Seconds) -> Floats:
    """Compute mean bounded slowdown, mean wait and makespan (seconds), [3], of jobs begun at ``begun`` seconds [N]."""
    schedule = Schedule(begun, begun + trace.runtime, np.zeros(trace.tasks, np.int64))
    span = schedule.end.max() - trace.submit.min()
    return np.array([slowdowns(trace, schedule).mean(), (begun - trace.submit).mean(), span])


def schedule_outcomes(trace: Trace, nodes: Nodes, schedule: Schedule) -> Floats:
    """Compute a schedule's mean bounded slowdown, mean wait (s), makespan (s), share of missed deadlines, rented
    node-hours and cost (money), [6].

    Raises:
        ValueError: there is no task, or a task has no end.
    """
    worth, rentals = figures(trace, nodes, schedule), list_rentals(trace, nodes, schedule)
    hours = (rentals.released - rentals.ordered).sum() / HOUR
    return np.array([worth.slowdown, worth.wait, worth.makespan, worth.misses, hours, worth.cost])
