"""What is shown of a schedule, as plain JSON: small however many tasks there are, and enough to draw it again.

A *picture* is what ``picture`` gives:

- ``name``, ``tasks``, ``figures`` (see ``schedule.Figures``);
- ``over_time``: ``time`` (seconds, left edges of equal bins, and the last right edge), ``utilisation`` (mean busy share
  of all processors), ``queue`` (mean number of tasks that are ready and wait) and ``longest`` (the most of them);
- ``slowdown``: ``share`` of the tasks whose bounded slowdown is at most ``value``;
- ``gantt``: ``from`` and ``to`` (seconds), ``whole`` (whether that is all of it), ``nodes`` (``name``, ``first`` lane
  and ``lanes``), and ``bars``: ``task``, ``node``, ``lane``, ``lanes``, ``start``, ``end``, ``slowdown``, ``group``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.layout import Nodes
from app.kinds.workflow.trace import Trace
from workers.kinds.workflow.evaluation.lanes import Window, gantt
from workers.kinds.workflow.simulator.schedule import Schedule, figures, ready, slowdowns

Json = dict[str, Any]
Floats = NDArray[np.float64]
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
    """What is shown of one schedule; see the module.

    Args:
        name: of the strategy.
        labels: of the nodes, [M]; their numbers where there are none.
        stretch: what its Gantt chart shows; see ``lanes.window``.

    Raises:
        ValueError: there is no task, or one was never played to its end.
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
    """Busy share of the processors and waiting tasks between ``edges`` [T + 1]."""
    at = ready(trace, schedule)
    busy = _mean(schedule.start, schedule.end, trace.processors.astype(np.float64), edges)
    ones = np.ones(trace.tasks)
    return {
        "time": edges.tolist(),
        "utilisation": _rounded(busy / nodes.processors.sum(), 5),
        "queue": _rounded(_mean(at, schedule.start, ones, edges), 3),
        "longest": _longest(at, schedule.start, edges).tolist(),
    }


def distribution(values: Floats) -> Json:
    """Quantiles of ``values`` [N]; dense towards the largest, where schedules differ."""
    finest = 1 - 1 / max(len(values), 1)
    shares = np.append(QUANTILES[finest >= QUANTILES], 1.0)
    return {"share": _rounded(shares, 5), "value": _rounded(np.quantile(values, shares), 4)}


def _edges(trace: Trace, schedule: Schedule) -> Floats:
    first, last = float(trace.submit.min()), float(schedule.end.max())
    return np.linspace(first, max(last, first + 1e-6), BINS + 1)


def _mean(begin: Floats, end: Floats, amount: Floats, edges: Floats) -> Floats:
    """Mean over each bin of the sum of ``amount`` over the intervals that are open, [T]."""
    times = np.concatenate([begin, end])
    order = np.argsort(times, kind="stable")
    times, steps = times[order], np.concatenate([amount, -amount])[order]
    level = np.cumsum(steps)
    area = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])  # up to each event
    place = np.searchsorted(times, edges, side="right") - 1
    inside = np.maximum(place, 0)
    held = np.where(place >= 0, area[inside] + level[inside] * (edges - times[inside]), 0.0)
    mean: Floats = np.maximum(np.diff(held) / np.diff(edges), 0.0)
    return mean


def _longest(begin: Floats, end: Floats, edges: Floats) -> NDArray[np.int64]:
    """The most intervals that are open at once in each bin, [T]; one that begins and ends at once never is."""
    some = end > begin
    begins, ends = np.sort(begin[some]), np.sort(end[some])

    def open_at(moments: Floats) -> NDArray[np.int64]:
        return np.searchsorted(begins, moments, side="right") - np.searchsorted(ends, moments, side="right")

    most = open_at(edges[:-1])
    where = np.clip(np.searchsorted(edges, begins, side="right") - 1, 0, len(most) - 1)
    np.maximum.at(most, where, open_at(begins))
    return most


def _rounded(values: Floats, digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]
