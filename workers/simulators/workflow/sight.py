"""What an agent sees of a play, compiled: the features of ``app.kinds.workflow.observation``, one candidate at a time.

Plain NumPy makes an array for each expression; a simulator that decides hundreds of thousands of times a second can't.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow import observation
from app.kinds.workflow.dispatch import EASY, NONE, Indices
from app.kinds.workflow.observation import (
    FAR,
    PATIENCE,
    SHORTEST,
    VISIBLE,
    WIDTH,
    Survey,
    Waiting,
    describe,
    survey,
    visible,
)
from app.kinds.workflow.trace import Seconds
from workers.simulators.workflow.compiling import compilable, compiled_as, kernel
from workers.simulators.workflow.pool import NOW, QUEUED, Play

compilable(observation.visible, observation.describe, observation.state)


class Candidates(NamedTuple):
    """The tasks that may be picked, [Q], and what is seen of them."""

    task: Indices
    seen: Survey


@compiled_as(observation.survey)
def _survey(
    mechanism: int, now: float, waiting: Waiting, machine: int, free: int, ends: Seconds, held: Indices
) -> Survey:
    """As the plain function, in one pass."""
    count, running, need = len(waiting.waited), len(ends), waiting.processors
    columns = np.empty((7, count))
    urgency, request, wide, length = columns[0], columns[1], columns[2], columns[3]
    size, usual, delay = columns[4], columns[5], columns[6]
    log_machine, mean_length, mean_size = np.log(float(max(machine, 2))), 0.0, 0.0
    free_then = np.empty(running + 1, np.int64)
    free_then[0] = free
    for i in range(running):
        free_then[i + 1] = free_then[i] + held[i]
    head, gap, spare = -1, FAR, float(machine)
    for i in range(count):
        waited, log_wide = waiting.waited[i], np.log(float(need[i]))
        request[i], wide[i] = max(waiting.expected[i], SHORTEST), need[i]
        length[i], size[i] = np.log(request[i]), log_wide / log_machine
        known = request[i] if np.isnan(waiting.usual[i]) else min(max(waiting.usual[i], SHORTEST), request[i])
        usual[i] = length[i] if known == request[i] else np.log(known)
        urgency[i] = PATIENCE * waited / (waited + request[i]) - length[i] - 0.5 * log_wide
        mean_length += length[i] / count
        mean_size += size[i] / count
        delay[i] = 0.0
        if need[i] > free:
            at = min(np.searchsorted(free_then, need[i]), running)
            delay[i] = max(ends[at - 1] - now, 0.0) if at > 0 else 0.0
            if head < 0 or urgency[i] > urgency[head]:
                head, gap, spare = i, delay[i], float(free_then[at] - need[i])
    return Survey(
        urgency,
        request,
        wide,
        length,
        size,
        usual,
        waiting.waited,
        delay,
        float(free),
        float(machine),
        gap,
        spare,
        max(ends[0] - now, 0.0) if running > 0 else 0.0,
        mean_length,
        mean_size,
        0.0 if mechanism == NONE else 1.0,
        1.0 if mechanism == EASY else 0.0,
    )


@kernel
def look(play: Play, mechanism: int, processors: int) -> Candidates:
    """The candidates of a play at which a pick is due."""
    tasks, pool, now = play.tasks, play.pool, play.clock[NOW]
    task = play.queue[: play.counts[QUEUED]]
    if len(task) > VISIBLE:
        task = task[visible(tasks.expected[task], tasks.processors[task])]
    count = len(task)
    columns, need = np.empty((3, count)), np.empty(count, np.int64)
    for i in range(count):
        one = task[i]
        recent = play.recent[tasks.user[one]]
        columns[0, i], columns[1, i] = now - tasks.submit[one], tasks.expected[one]
        columns[2, i] = 0.5 * (recent[0] + recent[1])
        need[i] = tasks.processors[one]
    free, running = pool.level
    waiting = Waiting(columns[0], columns[1], need, columns[2])
    return Candidates(task, survey(mechanism, now, waiting, processors, free, pool.ends[:running], pool.held[:running]))


@kernel
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
