"""What an agent sees of a play, compiled: the features that policies are shown, one candidate at a time.

Plain NumPy makes an array for each expression; a simulator that decides hundreds of thousands of times a second can't.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.scheduling import observation
from app.kinds.workflow.scheduling.dispatch import EASY, NONE, Indices
from app.kinds.workflow.scheduling.observation import FAR, PATIENCE, SHORTEST, VISIBLE, WIDTH, Survey, describe, visible
from app.kinds.workflow.trace import Seconds
from workers.kinds.workflow.simulator.compiling import borrowed, compilable, inlined, kernel
from workers.kinds.workflow.simulator.pool import NOW, QUEUED, Play

compilable(observation.visible, observation.describe, observation.state)


class Candidates(NamedTuple):
    """The tasks that may be picked, [Q], and what is seen of them."""

    task: Indices
    seen: Survey


class Room(NamedTuple):
    """Where a survey's numbers go, so that none of its arrays must be made and counted.

    A survey is good as long as its room is alive, and until the next one. In compiled code a local variable ends with
    its last use, so that a kernel that looks once takes its room from its caller.

    Attributes:
        columns: [8, at least Q].
        free_then: processors that are free after each running task, [R + 1].
    """

    columns: Seconds
    free_then: Indices


@kernel
def room_for(running: int) -> Room:
    """Room for surveys of a machine on which so many tasks run at most."""
    return Room(np.empty((8, VISIBLE)), np.empty(running + 1, np.int64))


@inlined
def look(play: Play, mechanism: int, processors: int, room: Room) -> Candidates:
    """The candidates of a play at which a pick is due, as ``observation.survey`` sees them, in one pass."""
    tasks, now = play.tasks, play.clock[NOW]
    task = play.queue[: play.counts[QUEUED]]
    if len(task) > VISIBLE:
        task = task[visible(tasks.expected[task], tasks.processors[task])]
    count, (free, running), ends = len(task), play.pool.level, play.pool.ends
    free_then, columns = borrowed(room.free_then), borrowed(room.columns[:, :count])
    urgency, request, need, length = columns[0], columns[1], columns[2], columns[3]
    size, usual, waited, delay = columns[4], columns[5], columns[6], columns[7]
    free_then[0] = free
    for i in range(running):
        free_then[i + 1] = free_then[i] + play.pool.held[i]
    log_machine, mean_length, mean_size = np.log(float(max(processors, 2))), 0.0, 0.0
    head, gap, spare = -1, FAR, float(processors)
    for i in range(count):
        one = task[i]
        wide, recent = tasks.processors[one], play.recent[tasks.user[one]]
        log_wide, known = np.log(float(wide)), 0.5 * (recent[0] + recent[1])
        waited[i], need[i] = now - tasks.submit[one], wide
        request[i] = max(tasks.expected[one], SHORTEST)
        length[i], size[i] = np.log(request[i]), log_wide / log_machine
        within = not np.isnan(known) and known < request[i]
        usual[i] = np.log(max(known, SHORTEST)) if within else length[i]
        urgency[i] = PATIENCE * waited[i] / (waited[i] + request[i]) - length[i] - 0.5 * log_wide
        mean_length += length[i] / count
        mean_size += size[i] / count
        delay[i] = 0.0
        if wide > free:
            at = min(np.searchsorted(free_then[: running + 1], wide), running)
            delay[i] = max(ends[at - 1] - now, 0.0) if at > 0 else 0.0
            if head < 0 or urgency[i] > urgency[head]:
                head, gap, spare = i, delay[i], float(free_then[at] - wide)
    seen = Survey(
        borrowed(urgency),
        borrowed(request),
        borrowed(need),
        borrowed(length),
        borrowed(size),
        borrowed(usual),
        borrowed(waited),
        borrowed(delay),
        float(free),
        float(processors),
        gap,
        spare,
        max(ends[0] - now, 0.0) if running > 0 else 0.0,
        mean_length,
        mean_size,
        0.0 if mechanism == NONE else 1.0,
        1.0 if mechanism == EASY else 0.0,
    )
    return Candidates(task, seen)


@inlined
def describe_in(row: NDArray[np.floating], seen: Survey, i: int) -> None:
    """Fill in the features of candidate ``i``, [F]."""
    more = (seen.length[i], seen.size[i], seen.usual[i], seen.waited[i], seen.delay[i])
    found = describe(seen, seen.urgency[i], seen.request[i], seen.need[i], more)
    for f in range(WIDTH):
        row[f] = found[f]


@kernel
def described(seen: Survey, start: int, stop: int) -> Seconds:
    """Features of the candidates from ``start`` to ``stop``, [stop − start, F]."""
    table = np.empty((stop - start, WIDTH))
    for i in range(start, stop):
        describe_in(table[i - start], seen, i)
    return table
