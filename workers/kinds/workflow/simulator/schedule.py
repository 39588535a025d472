"""What a simulator answers: when and where each task ran, and what that was worth."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.layout import Nodes
from app.kinds.workflow.trace import Seconds, Trace

SHORTEST = 10.0  # seconds: what runs shorter counts as that long in a bounded slowdown


class Rentals(NamedTuple):
    """R times that a node was rented; a node may be rented again after its release.

    Attributes:
        node: index into the nodes, [R].
        ordered: when billing began, seconds, [R]; the node was ready its start-up time later.
        released: when billing ended, seconds, [R].
    """

    node: NDArray[np.int64]
    ordered: Seconds
    released: Seconds


class Schedule(NamedTuple):
    """Where each of N tasks ran, and when.

    Attributes:
        start: seconds after the trace's origin, [N].
        end: seconds after the trace's origin, [N].
        node: index into the nodes, [N].
        rentals: of nodes that are not kept; none: each node once, from its start-up before its first task to the end
            of its last.
    """

    start: Seconds
    end: Seconds
    node: NDArray[np.int64]
    rentals: Rentals | None = None


class Figures(NamedTuple):
    """What a schedule was worth.

    Attributes:
        slowdown: mean bounded slowdown.
        wait: mean seconds between being ready and starting.
        makespan: seconds between the first submission and the last end.
        misses: share of the tasks with a deadline that ended after it; 0 where none has one.
        utilisation: share of the rented processor time in which a task ran.
        cost: rented node time, in whole multiples of the billing time, times price.
    """

    slowdown: float
    wait: float
    makespan: float
    misses: float
    utilisation: float
    cost: float


def ready(trace: Trace, schedule: Schedule) -> Seconds:
    """When each task could have started: submitted, and its parents ended; seconds, [N]."""
    at = trace.submit.astype(np.float64)
    children = np.repeat(np.arange(trace.tasks), np.diff(trace.parent_start))
    np.maximum.at(at, children, schedule.end[trace.parents])
    return at


def slowdowns(trace: Trace, schedule: Schedule) -> Seconds:
    """Bounded slowdown of each task, [N]: max(1, (wait + run) / max(run, 10 s)) (Feitelson 1997)."""
    run = schedule.end - schedule.start
    return np.maximum(1.0, (schedule.end - ready(trace, schedule)) / np.maximum(run, SHORTEST))


def rented(trace: Trace, nodes: Nodes, schedule: Schedule) -> Rentals:
    """All rentals of a schedule: kept nodes from the first submission to the last end, the others as they were."""
    first, last = trace.submit.min(), schedule.end.max()
    kept = np.flatnonzero(nodes.kept)
    others = schedule.rentals or _once(nodes, schedule)
    return Rentals(
        np.concatenate((kept, others.node)),
        np.concatenate((np.full(len(kept), first), others.ordered)),
        np.concatenate((np.full(len(kept), last), others.released)),
    )


def _once(nodes: Nodes, schedule: Schedule) -> Rentals:
    """Each used node that is not kept, from its start-up before its first task to the end of its last."""
    begun = np.full(len(nodes.kind), np.inf)
    ended = np.full(len(nodes.kind), -np.inf)
    np.minimum.at(begun, schedule.node, schedule.start)
    np.maximum.at(ended, schedule.node, schedule.end)
    used = np.flatnonzero(np.isfinite(begun) & ~nodes.kept)
    return Rentals(used, begun[used] - nodes.startup[used], ended[used])


def figures(trace: Trace, nodes: Nodes, schedule: Schedule) -> Figures:
    """What ``schedule`` was worth.

    Raises:
        ValueError: there is no task, or one was never played to its end.
    """
    if trace.tasks == 0:
        raise ValueError("a schedule of no tasks has no figures")
    if not np.isfinite(schedule.end).all():
        missing = int(np.flatnonzero(~np.isfinite(schedule.end))[0])
        raise ValueError(f"task {trace.names[missing]} has not ended: only whole schedules have figures")
    rentals = rented(trace, nodes, schedule)
    held = rentals.released - rentals.ordered
    billed = np.ceil(held / nodes.billing[rentals.node] - 1e-9) * nodes.billing[rentals.node]
    work = ((schedule.end - schedule.start) * trace.processors).sum()
    due = np.isfinite(trace.deadline)
    return Figures(
        slowdown=float(slowdowns(trace, schedule).mean()),
        wait=float((schedule.start - ready(trace, schedule)).mean()),
        makespan=float(schedule.end.max() - trace.submit.min()),
        misses=float((schedule.end > trace.deadline)[due].mean()) if due.any() else 0.0,
        utilisation=float(work / max((held * nodes.processors[rentals.node]).sum(), 1e-9)),
        cost=float((billed * nodes.price[rentals.node]).sum()),
    )
