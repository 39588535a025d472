"""Batch jobs on one pool with conservative backfilling, event by event.

Beside submissions and ends, reservations that fall due are events. A job that runs longer than expected is expected to
take twice as long as it has, each time that it does.
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
    QUEUED,
    RUNNING,
    Play,
    close_up,
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


@kernel
def correct(play: Play) -> None:
    """Expect jobs that should have ended to take twice as long as they have taken so far."""
    pool, now, begun = play.pool, play.clock[NOW], play.begun
    ends, held, which, count = pool.ends, pool.held, pool.task, pool.level[RUNNING]
    while count > 0 and ends[0] <= now:
        task, need, at = which[0], held[0], 0
        end = now + max(now - begun[task], 1.0)
        while at + 1 < count and ends[at + 1] <= end:
            ends[at], held[at], which[at] = ends[at + 1], held[at + 1], which[at + 1]
            at += 1
        ends[at], held[at], which[at] = end, need, task
