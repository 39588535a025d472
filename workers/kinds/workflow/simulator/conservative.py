"""Batch jobs on one pool with conservative backfilling, event by event.

Beside submissions and ends, reservations that fall due are events.
"""

import numpy as np

from app.kinds.workflow.scheduling import reservations
from app.kinds.workflow.scheduling.dispatch import EASY
from app.kinds.workflow.scheduling.reservations import empty_profile, reserve
from app.kinds.workflow.trace import Seconds
from workers.kinds.workflow.simulator.compiling import compilable, kernel
from workers.kinds.workflow.simulator.pool import (
    ALIVE,
    ARRIVING,
    DECISIONS,
    NOW,
    OVERRUNS,
    QUEUED,
    Play,
    close_up,
    correct,
    enter,
    next_event,
    ordered,
    without_reference_counts,
)

compilable(reservations.empty_profile, reservations.begin, reservations.point, reservations.hold, reservations.place)
compilable(reservations.keep, reservations.reserve)


@kernel
def play_conservative(play: Play, rule: int, promised: Seconds) -> None:
    """Play to the end; ``rule`` orders those that may move forward.

    ``promised`` receives the start that each job was reserved when it was submitted, seconds, [L].
    """
    held = without_reference_counts(play)
    reserved = np.full(len(held.runtime), np.inf)
    profile = empty_profile(len(held.runtime), len(held.pool.ends))
    while True:
        due, arrived, alive = _due(held, reserved), held.counts[ARRIVING], held.counts[ALIVE]
        if due < _next(held):
            held.clock[NOW] = due
        elif not next_event(held, EASY):
            return
        if held.counts[OVERRUNS]:
            correct(held)
        if held.counts[QUEUED] > 0:
            held.counts[DECISIONS] += 1
            order = ordered(held, rule)
            starts = reserve(
                held.clock[NOW],
                order,
                held.counts[ALIVE] < alive,
                held.tasks,
                held.pool,
                reserved,
                profile,
                held.chosen,
            )
            promised[arrived : held.counts[ARRIVING]] = reserved[arrived : held.counts[ARRIVING]]
            enter(held, held.chosen[:starts])
            close_up(held)


@kernel
def _next(play: Play) -> float:
    """When the next submission or end is, seconds."""
    arriving, alive = play.counts[ARRIVING], play.counts[ALIVE]
    arrival = play.tasks.submit[arriving] if arriving < len(play.runtime) else np.inf
    end = play.finish[alive - 1] if alive > 0 else np.inf
    return min(arrival, end)


@kernel
def _due(play: Play, reserved: Seconds) -> float:
    """When the next reservation falls due, seconds."""
    due = np.inf
    for task in play.queue[: play.counts[QUEUED]]:
        due = min(due, reserved[task])
    return due
