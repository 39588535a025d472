"""What users count of a schedule: bounded slowdown, waits and makespan, deadlines missed, node-hours and money."""

import numpy as np
from numpy.typing import NDArray

from app.charts.text import MONEY, SHARE
from app.kinds.contract.outcome import Outcome
from app.kinds.workflow.layout import HOUR, Nodes
from app.kinds.workflow.trace import Seconds, Trace
from workers.kinds.workflow.simulator.schedule import Schedule, figures, rented, slowdowns

Floats = NDArray[np.float64]
QUEUED = (Outcome("bounded slowdown"), Outcome("wait", "s"), Outcome("makespan", "s"))
"""Of jobs on one machine that always runs."""
OUTCOMES = (*QUEUED, Outcome("deadlines missed", SHARE), Outcome("rented", "node-hours"), Outcome("cost", MONEY))
"""Of any tasks on any nodes."""


def queued(trace: Trace, begun: Seconds) -> Floats:
    """``QUEUED`` of jobs that begin at these seconds [N], [3]."""
    schedule = Schedule(begun, begun + trace.runtime, np.zeros(trace.tasks, np.int64))
    span = schedule.end.max() - trace.submit.min()
    return np.array([slowdowns(trace, schedule).mean(), (begun - trace.submit).mean(), span])


def counted(trace: Trace, nodes: Nodes, schedule: Schedule) -> Floats:
    """``OUTCOMES`` of a schedule, [6]."""
    worth, rentals = figures(trace, nodes, schedule), rented(trace, nodes, schedule)
    hours = (rentals.released - rentals.ordered).sum() / HOUR
    return np.array([worth.slowdown, worth.wait, worth.makespan, worth.misses, hours, worth.cost])
