"""Batch jobs in lock-step, compiled: what B lanes change, what they share, and a step of all of them.

A task is paid for when it starts, as it then is settled when it ends: see ``environment.py``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.scheduling.dispatch import Indices, Pool, Tasks
from app.kinds.workflow.scheduling.observation import WIDTH
from app.kinds.workflow.trace import Seconds
from workers.kinds.workflow.simulator.compiling import borrowed, inlined, kernel
from workers.kinds.workflow.simulator.observation import Room, describe_in, look
from workers.kinds.workflow.simulator.pool import ARRIVING, QUEUED, Play, advance, choose


class Lanes(NamedTuple):
    """What B plays on their way change, as in ``Play``; all else they share, so that it stays near the processor.

    Attributes:
        waiting, level, ends, held, on, room_tasks, room_processors, begun, queue, finish, running, clock, counts,
            recent: [B, …]; ``on`` are the tasks on the machine.
        which: the sequence that each plays, [B].
        task: the candidates shown, −1 where there is none, [B, K].
    """

    waiting: NDArray[np.bool_]
    level: Indices
    ends: Seconds
    held: Indices
    on: Indices
    room_tasks: Indices
    room_processors: Indices
    begun: Seconds
    queue: Indices
    finish: Seconds
    running: Indices
    clock: Seconds
    counts: Indices
    recent: Seconds
    which: Indices
    task: Indices


class View(NamedTuple):
    """What B learners see: features of K candidates, zero where there is none, [B, K, F], and which there are, [B, K].

    Kept in pairs, filled in turn: copying it would take longer than filling it in.
    """

    table: NDArray[np.float32]
    mask: NDArray[np.bool_]

    @classmethod
    def of(cls, batch: int, candidates: int) -> "View":
        """A view without candidates."""
        return cls(np.zeros((batch, candidates, WIDTH), np.float32), np.zeros((batch, candidates), np.bool_))


class SequenceBatch(NamedTuple):
    """S sequences as they begin, what is paid for a task of each is ``slope · (meant − begun)``, and their mechanism.

    Attributes:
        plays: before their first event, [S, …] each.
        meant: when the baseline starts each task, seconds, [S, L].
        slope: per second, [S, L].
        mechanism, fill, processors: [S].
        scratch, room: for one play at a time, [2, L].
    """

    plays: Play
    meant: Seconds
    slope: Seconds
    mechanism: Indices
    fill: Indices
    processors: Indices
    scratch: Indices
    room: Room


@inlined
def lane(lanes: Lanes, bank: SequenceBatch, b: int) -> Play:
    """One play, whose arrays are views, lent by the caller."""
    plays, which = bank.plays, lanes.which[b]
    tasks = plays.tasks
    return Play(
        Tasks(
            borrowed(tasks.submit[which]),
            borrowed(tasks.expected[which]),
            borrowed(tasks.processors[which]),
            borrowed(tasks.user[which]),
            borrowed(lanes.waiting[b]),
        ),
        Pool(
            borrowed(lanes.level[b]),
            borrowed(lanes.ends[b]),
            borrowed(lanes.held[b]),
            borrowed(lanes.on[b]),
            borrowed(lanes.room_tasks[b]),
            borrowed(lanes.room_processors[b]),
        ),
        borrowed(plays.runtime[which]),
        borrowed(lanes.begun[b]),
        borrowed(lanes.queue[b]),
        borrowed(bank.scratch[0]),
        borrowed(lanes.finish[b]),
        borrowed(lanes.running[b]),
        borrowed(lanes.clock[b]),
        borrowed(lanes.counts[b]),
        borrowed(lanes.recent[b]),
    )


@kernel
def again(lanes: Lanes, bank: SequenceBatch, b: int, which: int) -> None:
    """Begin sequence ``which`` in lane ``b``."""
    plays = bank.plays
    lanes.which[b], lanes.waiting[b], lanes.begun[b], lanes.recent[b] = which, False, np.nan, np.nan
    lanes.level[b], lanes.clock[b], lanes.counts[b] = plays.pool.level[which], plays.clock[which], plays.counts[which]
    lanes.room_tasks[b], lanes.room_processors[b] = plays.pool.room_tasks[which], plays.pool.room_processors[which]
    advance(lane(lanes, bank, b), bank.mechanism[which], bank.fill[which])


@kernel
def keep(urgency: Seconds, count: int, kept: Indices) -> None:
    """Fill in which candidates are shown: all, or the most urgent of them in their order."""
    if count == len(urgency):
        for i in range(count):
            kept[i] = i
    else:
        kept[:count] = np.sort(np.argsort(-urgency)[:count])


@inlined
def show(lanes: Lanes, bank: SequenceBatch, b: int, table: NDArray[np.float32], mask: NDArray[np.bool_]) -> None:
    """Fill in features [K, F] and mask [K] of lane ``b``; of too many candidates, the most urgent."""
    which, most = lanes.which[b], len(mask)
    found = look(lane(lanes, bank, b), bank.mechanism[which], bank.processors[which], bank.room)
    count = min(len(found.task), most)
    kept = borrowed(bank.scratch[0])
    keep(found.seen.urgency, count, kept)
    for row in range(count):
        lanes.task[b, row] = found.task[kept[row]]
        describe_in(table[row], found.seen, kept[row])
    row = count
    while row < most and mask[row]:
        table[row] = 0.0
        row += 1
    mask[:count] = True
    mask[count:] = False


@kernel
def step_lanes(
    lanes: Lanes,
    bank: SequenceBatch,
    actions: Indices,
    following: Indices,
    table: NDArray[np.float32],
    mask: NDArray[np.bool_],
    reward: NDArray[np.float32],
    done: NDArray[np.bool_],
) -> None:
    """Take a pick in each lane; a lane at its end goes on with the sequence ``following`` [B]."""
    waited = borrowed(bank.scratch[1])
    for b in range(len(actions)):
        play, which = lane(lanes, bank, b), lanes.which[b]
        mechanism, fill = bank.mechanism[which], bank.fill[which]
        queued, since = play.counts[QUEUED], play.counts[ARRIVING]
        for i in range(queued):
            waited[i] = play.queue[i]
        choose(play, mechanism, fill, lanes.task[b, actions[b]])
        done[b] = not advance(play, mechanism, fill)
        paid = 0.0
        for i in range(queued + play.counts[ARRIVING] - since):
            task = waited[i] if i < queued else since + i - queued
            if not np.isnan(play.begun[task]):
                paid += bank.slope[which, task] * (bank.meant[which, task] - play.begun[task])
        reward[b] = paid
        if done[b]:
            again(lanes, bank, b, following[b])
        show(lanes, bank, b, table[b], mask[b])


@kernel
def show_all(lanes: Lanes, bank: SequenceBatch, table: NDArray[np.float32], mask: NDArray[np.bool_]) -> None:
    """Fill in what all lanes see."""
    for b in range(len(table)):
        show(lanes, bank, b, table[b], mask[b])


@kernel
def begin_all(lanes: Lanes, bank: SequenceBatch, which: Indices) -> None:
    """Begin a sequence in each lane."""
    for b in range(len(which)):
        again(lanes, bank, b, which[b])
