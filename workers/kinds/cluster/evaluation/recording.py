"""What becomes of jobs under a policy: when each is finished, and, in one episode, what each has at any time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.beliefs import UNKNOWN
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.contract.policy import Situation
from workers.evaluation.arena import Player, play
from workers.evaluation.levels import Level
from workers.kinds.cluster.simulator.kernels import CAME
from workers.kinds.cluster.world.episodes import Episodes
from workers.kinds.cluster.world.world import ClusterWorld


class Recorded(NamedTuple):
    """E episodes under one policy; over time, the one with the most jobs: K jobs, T intervals.

    Attributes:
        names: of those jobs: what each trains, and its number, [K].
        time: seconds since the episode began at which each comes, [K].
        asked: GPUs, [K].
        hour: of the day at which the episode begins.
        completion: seconds from submission to its end of every job of all episodes; not a number: it isn't finished.
        begins: seconds at which each interval does, [T].
        gpus: that each job has in each interval, [T, K].
        waiting: whether a job is there and has none, [T, K].
    """

    names: list[str]
    time: Floats
    asked: Integers
    hour: int
    completion: Floats
    begins: Floats
    gpus: Integers
    waiting: NDArray[np.bool_]


class Shown(NamedTuple):
    """The episode with the most jobs at the end of an interval: its time, GPUs [L], and which jobs are there [L]."""

    now: float
    gpus: Integers
    there: NDArray[np.bool_]


class Recorder:
    """Watches the episodes of one world; see ``workers.evaluation.arena.Watcher``."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._last: Episodes | None = None
        self._completed: Floats = np.zeros(0)
        self._shown: list[Shown] = []
        self._at = 0

    def watch(self, situation: Situation, action: NDArray[np.integer], going: NDArray[np.bool_]) -> None:  # noqa: ARG002
        """Note what jobs have had until now."""
        last: Episodes = situation.state
        if self._last is None:
            self._at = int((last.drawn.steps > 0).sum(axis=1).argmax())
        clusters, at = last.clusters, self._at
        self._last, self._completed = last, clusters.completed.copy()
        here = (np.arange(clusters.time.shape[1]) < clusters.counts[at, CAME]) & np.isnan(clusters.completed[at])
        self._shown.append(Shown(float(clusters.now[at]), clusters.gpus[at].copy(), here))

    def recorded(self) -> Recorded:
        """What was seen, once the episodes are over; the last interval isn't.

        Raises:
            RuntimeError: nothing was seen.
        """
        if self._last is None:
            raise RuntimeError("an episode is watched before it is told")
        drawn, clusters, at = self._last.drawn, self._last.clusters, self._at
        every = drawn.steps > 0
        real, gpus = every[at], np.array([one.gpus for one in self._shown[1:]])
        there = np.array([one.there for one in self._shown[1:]])[:, real]
        known = self._world.source.applications
        return Recorded(
            names=[
                f"{known[kind] if kind != UNKNOWN else 'job'} {number}"
                for number, kind in enumerate(drawn.believed[at, real].tolist())
            ],
            time=clusters.time[at, real],
            asked=clusters.asked[at, real],
            hour=int(drawn.begins[at] // 3600),
            completion=self._completed[every],
            begins=np.array([one.now for one in self._shown[:-1]]),
            gpus=gpus[:, real],
            waiting=there & (gpus[:, real] == 0),
        )


def recorded(world: ClusterWorld, seed: int, player: Player) -> Recorded:
    """Let a player decide all episodes of a fresh world in which seeds alone differ."""
    recorder = Recorder(world)
    play(world, Level.SEEDS, seed, player, recorder.watch)
    return recorder.recorded()
