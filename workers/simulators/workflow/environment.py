"""Batch jobs as a simulator: B sequences in lock-step, in each of which a learner picks the next of up to K tasks.

A task is paid for when it starts, as it then is settled when it ends: by how much its bounded slowdown lies below that
which a baseline gives the same task, weighted, over the number of tasks. So what the arrivals do to all schedulers
alike cancels out (an input-dependent baseline; Mao et al. 2019), and a return is the gain over the baseline.
"""

from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from app.kinds.workflow.dispatch import Indices, Pool, Tasks
from app.kinds.workflow.observation import WIDTH
from app.kinds.workflow.trace import Seconds, Trace
from workers.simulators.base import Step
from workers.simulators.workflow.agents import Agent, play_agent
from workers.simulators.workflow.compiling import borrowed, kernel
from workers.simulators.workflow.pool import ARRIVING, QUEUED, Play, advance, choose, opened
from workers.simulators.workflow.schedule import SHORTEST
from workers.simulators.workflow.sight import describe_in, look

WAITED_UNIT = 3600.0
FLAT = ("runtime", "begun", "queue", "chosen", "finish", "running", "clock", "counts", "recent")


class Plays(NamedTuple):
    """Plays of the same length, [B, …] each."""

    tasks: Tasks
    pool: Pool
    runtime: Seconds
    begun: Seconds
    queue: Indices
    chosen: Indices
    finish: Seconds
    running: Indices
    clock: Seconds
    counts: Indices
    recent: Seconds


class Lanes(NamedTuple):
    """B plays on their way, and what is kept of each between steps.

    Attributes:
        plays: the B plays.
        which: the sequence that each plays, [B].
        task: the candidates shown, −1 where there is none, [B, K].
    """

    plays: Plays
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
        """Nothing to see."""
        return cls(np.zeros((batch, candidates, WIDTH), np.float32), np.zeros((batch, candidates), np.bool_))


class Bank(NamedTuple):
    """S sequences as they begin, what is paid for a task of each is ``base − slope · wait``, and their mechanism.

    Attributes:
        plays: before their first event.
        base: [S, L].
        slope: per second, [S, L].
        mechanism, fill, processors: [S].
    """

    plays: Plays
    base: Seconds
    slope: Seconds
    mechanism: Indices
    fill: Indices
    processors: Indices


@kernel
def lane(plays: Plays, b: int) -> Play:
    """One play, whose arrays are views, lent by the caller."""
    tasks, pool = plays.tasks, plays.pool
    return Play(
        Tasks(
            borrowed(tasks.submit[b]),
            borrowed(tasks.expected[b]),
            borrowed(tasks.processors[b]),
            borrowed(tasks.user[b]),
            borrowed(tasks.waiting[b]),
        ),
        Pool(
            borrowed(pool.level[b]),
            borrowed(pool.ends[b]),
            borrowed(pool.held[b]),
            borrowed(pool.task[b]),
            borrowed(pool.room_tasks[b]),
            borrowed(pool.room_processors[b]),
        ),
        borrowed(plays.runtime[b]),
        borrowed(plays.begun[b]),
        borrowed(plays.queue[b]),
        borrowed(plays.chosen[b]),
        borrowed(plays.finish[b]),
        borrowed(plays.running[b]),
        borrowed(plays.clock[b]),
        borrowed(plays.counts[b]),
        borrowed(plays.recent[b]),
    )


@kernel
def again(lanes: Lanes, bank: Bank, b: int, which: int) -> None:
    """Begin sequence ``which`` in lane ``b``."""
    lanes.which[b] = which
    here, there = lane(lanes.plays, b), lane(bank.plays, which)
    here.tasks.submit[:], here.tasks.expected[:] = there.tasks.submit, there.tasks.expected
    here.tasks.processors[:], here.tasks.user[:] = there.tasks.processors, there.tasks.user
    here.tasks.waiting[:] = False
    here.pool.level[:], here.runtime[:], here.begun[:] = there.pool.level, there.runtime, np.nan
    here.pool.room_tasks[:], here.pool.room_processors[:] = there.pool.room_tasks, there.pool.room_processors
    here.clock[:], here.counts[:], here.recent[:] = there.clock, there.counts, np.nan
    advance(here, bank.mechanism[which], bank.fill[which])


@kernel
def show(lanes: Lanes, bank: Bank, b: int, table: NDArray[np.float32], mask: NDArray[np.bool_]) -> None:
    """Fill in features [K, F] and mask [K] of lane ``b``; of too many candidates, the most urgent."""
    which, most = lanes.which[b], len(mask)
    found = look(lane(lanes.plays, b), bank.mechanism[which], bank.processors[which])
    count = min(len(found.task), most)
    kept = np.arange(count) if count == len(found.task) else np.sort(np.argsort(-found.seen.urgency)[:most])
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
    bank: Bank,
    actions: Indices,
    following: Indices,
    table: NDArray[np.float32],
    mask: NDArray[np.bool_],
    reward: NDArray[np.float32],
    done: NDArray[np.bool_],
) -> None:
    """Take a pick in each lane; a lane at its end goes on with the sequence ``following`` [B]."""
    for b in range(len(actions)):
        play, which = lane(lanes.plays, b), lanes.which[b]
        mechanism, fill = bank.mechanism[which], bank.fill[which]
        waited, since = play.queue[: play.counts[QUEUED]].copy(), play.counts[ARRIVING]
        choose(play, mechanism, fill, lanes.task[b, actions[b]])
        done[b] = not advance(play, mechanism, fill)
        paid = 0.0
        for task in waited:
            if not np.isnan(play.begun[task]):
                paid += bank.base[which, task] - bank.slope[which, task] * (play.begun[task] - play.tasks.submit[task])
        for task in range(since, play.counts[ARRIVING]):
            if not np.isnan(play.begun[task]):
                paid += bank.base[which, task] - bank.slope[which, task] * (play.begun[task] - play.tasks.submit[task])
        reward[b] = paid
        if done[b]:
            again(lanes, bank, b, following[b])
        show(lanes, bank, b, table[b], mask[b])


@kernel
def show_all(lanes: Lanes, bank: Bank, table: NDArray[np.float32], mask: NDArray[np.bool_]) -> None:
    """Fill in what all lanes see."""
    for b in range(len(table)):
        show(lanes, bank, b, table[b], mask[b])


@kernel
def begin_all(lanes: Lanes, bank: Bank, which: Indices) -> None:
    """Begin a sequence in each lane."""
    for b in range(len(which)):
        again(lanes, bank, b, which[b])


class Episode(NamedTuple):
    """A sequence to play: jobs, machine, and indices of the mechanism and of the rule by which others overtake."""

    trace: Trace
    processors: int
    mechanism: int
    fill: int


class WorkflowSimulator:
    """B lanes over a bank of sequences of equal length; see ``workers.simulators.base.Simulator``.

    Args:
        episodes: sequences to play, drawn anew for each lane as one ends.
        batch: lanes.
        candidates: shown at most, K.
        baseline: whose slowdowns are subtracted.
        seed: of the sequences drawn.
        weights: what a unit of slowdown and an hour of waiting are worth.
        scale: a return is the mean gain per task times this.
    """

    def __init__(
        self,
        episodes: list[Episode],
        batch: int,
        baseline: Agent,
        seed: int,
        candidates: int = 64,
        weights: tuple[float, float] = (1.0, 0.0),
        scale: float = 1.0,
    ) -> None:
        if len({episode.trace.tasks for episode in episodes}) != 1:
            raise ValueError("all sequences of a simulator must have the same number of tasks")
        self.batch, self.candidates, self.rng = batch, candidates, np.random.default_rng(seed)
        self.bank = banked(episodes, baseline, weights, scale)
        first = self.rng.integers(0, len(episodes), batch)
        self.lanes = Lanes(picked(self.bank.plays, first), first, np.full((batch, candidates), -1))
        self.shown, self.before = (View.of(batch, candidates) for _ in range(2))

    @property
    def observation_space(self) -> spaces.Box:
        """Features of K candidates, [K, F]."""
        return spaces.Box(-np.inf, np.inf, (self.candidates, WIDTH), np.float32)

    @property
    def action_space(self) -> spaces.Discrete:
        """K candidates."""
        return spaces.Discrete(self.candidates)

    @property
    def advice(self) -> slice | None:
        """The base strategy's score of each candidate."""
        return slice(0, 1)

    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Begin a sequence in each lane."""
        begin_all(self.lanes, self.bank, self.rng.integers(0, len(self.bank.mechanism), self.batch))
        show_all(self.lanes, self.bank, *self.shown)
        return self.shown

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Take the candidate of each lane. What it shows is overwritten by the step after the next."""
        reward, done = np.zeros(self.batch, np.float32), np.zeros(self.batch, np.bool_)
        following = self.rng.integers(0, len(self.bank.mechanism), self.batch)
        self.shown, self.before = self.before, self.shown
        step_lanes(self.lanes, self.bank, np.asarray(actions, np.int64), following, *self.shown, reward, done)
        return Step(*self.shown, reward, done, self.shown.table)

    def get_state(self) -> dict[str, Any]:
        """The lanes, what they show, and the generator."""
        return {
            **{name: value.copy() for name, value in columns(self.lanes.plays).items()},
            **{name: getattr(self.lanes, name).copy() for name in ("which", "task")},
            **{name: value.copy() for name, value in self.shown._asdict().items()},
            "rng": self.rng.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``get_state`` gave."""
        for name, value in columns(self.lanes.plays).items():
            value[:] = state[name]
        for name in ("which", "task"):
            getattr(self.lanes, name)[:] = state[name]
        self.shown.table[:], self.shown.mask[:] = state["table"], state["mask"]
        self.rng.bit_generator.state = state["rng"]


def columns(plays: Plays) -> dict[str, NDArray[Any]]:
    """All arrays of plays by name."""
    found = {f"tasks.{name}": value for name, value in plays.tasks._asdict().items()}
    found |= {f"pool.{name}": value for name, value in plays.pool._asdict().items()}
    return found | {name: getattr(plays, name) for name in FLAT}


def stacked(plays: list[Play]) -> Plays:
    """Plays side by side, machines and users padded to the most."""

    def pile(arrays: list[NDArray[Any]]) -> NDArray[Any]:
        longest = max(len(array) for array in arrays)
        out = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), arrays[0].dtype)
        for row, array in zip(out, arrays, strict=True):
            row[: len(array)] = array
        return out

    def rooms(arrays: list[NDArray[Any]]) -> NDArray[Any]:
        longest = max(len(array) for array in arrays)
        return np.stack([np.concatenate((a[:-1], np.full(longest - len(a), a[-1]), a[-1:])) for a in arrays])

    pools = [play.pool for play in plays]
    pool = {n: pile([getattr(p, n) for p in pools]) for n in ("level", "ends", "held", "task")}
    room = {n: rooms([getattr(p, n) for p in pools]) for n in ("room_tasks", "room_processors")}
    tasks = {n: pile([getattr(p.tasks, n) for p in plays]) for n in Tasks._fields}
    return Plays(Tasks(**tasks), Pool(**pool, **room), **{n: pile([getattr(p, n) for p in plays]) for n in FLAT})


def picked(plays: Plays, which: Indices) -> Plays:
    """Copies of some plays."""
    tasks = Tasks(**{name: getattr(plays.tasks, name)[which] for name in Tasks._fields})
    pool = Pool(**{name: getattr(plays.pool, name)[which] for name in Pool._fields})
    return Plays(tasks, pool, *(getattr(plays, name)[which] for name in FLAT))


def banked(episodes: list[Episode], baseline: Agent, weights: tuple[float, float], scale: float) -> Bank:
    """The sequences, played once by the baseline."""
    bases, slopes = [], []
    for episode in episodes:
        trace = episode.trace
        play, member = opened(trace, episode.processors), np.full(trace.tasks, -1, np.int64)
        play_agent(play, baseline, episode.mechanism, episode.fill, episode.processors, 1 << 60, member)
        slope = weights[0] / np.maximum(trace.runtime, SHORTEST) + weights[1] / WAITED_UNIT
        slopes.append(scale * slope / trace.tasks)
        bases.append(slopes[-1] * (play.begun - trace.submit))
    plays = stacked([opened(episode.trace, episode.processors) for episode in episodes])
    settings = [np.array([getattr(e, n) for e in episodes], np.int64) for n in ("mechanism", "fill", "processors")]
    return Bank(plays, np.array(bases), np.array(slopes), *settings)
