"""Batch jobs as a simulator: B sequences in lock-step, in each of which a learner picks the next of up to K tasks.

A task is paid for when it starts, as it then is settled when it ends: by how much its bounded slowdown lies below that
which a baseline gives the same task, weighted, over the number of tasks. So what the arrivals do to all schedulers
alike cancels out (an input-dependent baseline; Mao et al. 2019), and a return is the gain over the baseline.
"""

from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from app.kinds.workflow.layout import HOUR
from app.kinds.workflow.scheduling.dispatch import Indices, Pool, Tasks
from app.kinds.workflow.scheduling.observation import WIDTH
from app.kinds.workflow.trace import Seconds, Trace
from workers.kinds.workflow.simulator.agents import Agent, play_agent
from workers.kinds.workflow.simulator.lanes import Lanes, SequenceBatch, View, begin_all, show_all, step_lanes
from workers.kinds.workflow.simulator.observation import room_for
from workers.kinds.workflow.simulator.pool import Play, opened
from workers.kinds.workflow.simulator.schedule import SHORTEST
from workers.learning.simulator import Step

FLAT = ("runtime", "begun", "queue", "chosen", "finish", "running", "clock", "counts", "recent")


class Episode(NamedTuple):
    """A sequence to play: jobs, machine, and indices of the mechanism and of the rule by which others overtake."""

    trace: Trace
    processors: int
    mechanism: int
    fill: int


class WorkflowSimulator:
    """B lanes over a bank of sequences of equal length; see ``workers.learning.simulator.Simulator``.

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
        self.bank = sequence_batch(episodes, baseline, weights, scale)
        first = self.rng.integers(0, len(episodes), batch)
        self.lanes = lanes_of(self.bank.plays, first, candidates)
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
        kept = {**self.lanes._asdict(), **self.shown._asdict()}
        return {**{name: value.copy() for name, value in kept.items()}, "rng": self.rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``get_state`` gave."""
        for name, value in {**self.lanes._asdict(), **self.shown._asdict()}.items():
            value[:] = state[name]
        self.rng.bit_generator.state = state["rng"]


def stacked(plays: list[Play]) -> Play:
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
    return Play(Tasks(**tasks), Pool(**pool, **room), **{n: pile([getattr(p, n) for p in plays]) for n in FLAT})


def lanes_of(plays: Play, which: Indices, candidates: int) -> Lanes:
    """Lanes before their first event."""
    pool, shown = plays.pool, np.full((len(which), candidates), -1)
    own: dict[str, NDArray[Any]] = {**plays.tasks._asdict(), **pool._asdict(), "on": pool.task, **plays._asdict()}
    changing = {name: own[name][which] for name in Lanes._fields if name in own and name != "task"}
    return Lanes(**changing, which=which, task=shown)


def charge(trace: Trace, slowdown: float, wait: float) -> Seconds:
    """What a second of each task's wait costs where a unit of slowdown and an hour of waiting cost so much, [N]."""
    return slowdown / np.maximum(trace.runtime, SHORTEST) + wait / HOUR


def sequence_batch(
    episodes: list[Episode], baseline: Agent, weights: tuple[float, float], scale: float
) -> SequenceBatch:
    """The sequences, played once by the baseline."""
    meant, slopes = [], []
    for episode in episodes:
        trace = episode.trace
        play, member = opened(trace, episode.processors), np.full(trace.tasks, -1, np.int64)
        play_agent(play, baseline, episode.mechanism, episode.fill, episode.processors, 1 << 60, member)
        slopes.append(scale * charge(trace, *weights) / trace.tasks)
        meant.append(play.begun)
    plays = stacked([opened(episode.trace, episode.processors) for episode in episodes])
    each = {n: np.array([getattr(e, n) for e in episodes], np.int64) for n in ("mechanism", "fill", "processors")}
    scratch, room = np.zeros((2, episodes[0].trace.tasks), np.int64), room_for(plays.pool.ends.shape[1])
    return SequenceBatch(plays, np.array(meant), np.array(slopes), **each, scratch=scratch, room=room)
