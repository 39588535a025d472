"""What becomes of jobs under a policy: when each is finished, and, in one episode, what each has at any time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.contract.policy import Situation
from workers.evaluation.arena import Player, play
from workers.evaluation.levels import Level
from workers.kinds.cluster.world.launcher import Cluster, Truth
from workers.kinds.cluster.world.world import ClusterWorld


class Recorded(NamedTuple):
    """E episodes under one policy; over time, the one with the most jobs: K jobs, T intervals.

    Attributes:
        truth: of that episode.
        completion: seconds from submission to its end of every job of all episodes; not a number: it isn't finished.
        begins: seconds at which each interval does, [T].
        gpus: that each job has in each interval, [T, K].
        waiting: whether a job is there and has none, [T, K].
    """

    truth: Truth
    completion: Floats
    begins: Floats
    gpus: Integers
    waiting: NDArray[np.bool_]


class Recorder:
    """Watches the episodes of one world; see ``workers.evaluation.arena.Watcher``."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._truths: list[Truth] = []
        self._last: list[Cluster] = []
        self._shown: list[Cluster] = []
        self._at = 0

    def watch(self, situation: Situation, action: NDArray[np.integer], going: NDArray[np.bool_]) -> None:  # noqa: ARG002
        """Note what jobs have had until now."""
        if not self._truths:
            self._truths = list(self._world.truths)
            self._at = int(np.argmax([len(truth.coming.time) for truth in self._truths]))
        self._last = list(situation.state.one)
        self._shown.append(self._last[self._at])

    def recorded(self) -> Recorded:
        """What was seen, once the episodes are over; the last interval isn't."""
        truth, shown = self._truths[self._at], self._shown[1:]
        gpus = np.zeros((len(shown), len(truth.coming.time)), np.int64)
        waiting = np.zeros(gpus.shape, np.bool_)
        for row, cluster in enumerate(shown):
            which = np.array([int(name) for name in cluster.state.names], np.int64)
            gpus[row, which] = cluster.state.jobs.gpus
            waiting[row, which] = cluster.state.jobs.gpus == 0
        each = [one.finished - truth.coming.time for one, truth in zip(self._last, self._truths, strict=True)]
        begins = np.array([one.state.now for one in self._shown[:-1]])
        return Recorded(truth, np.concatenate(each), begins, gpus, waiting)


def recorded(world: ClusterWorld, seed: int, player: Player) -> Recorded:
    """Let a player decide all episodes of a fresh world in which seeds alone differ."""
    recorder = Recorder(world)
    play(world, Level.SEEDS, seed, player, recorder.watch)
    return recorder.recorded()
