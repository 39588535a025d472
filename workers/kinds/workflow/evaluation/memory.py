"""Cache of drawn episodes: all policies of an evaluation play the same ones."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.kinds.workflow.evaluation.episodes import Episode, TaskDisturbance, disturbed_episode

Floats = NDArray[np.float64]
MOST_TASKS = 1_500_000  # that are kept in all; some 160 bytes each


class Turned:
    """Episodes under one set of disturbances.

    Attributes:
        truth: the episodes, [B].
        earned: terms [6] and outcomes [6] of the numbered ways, by identity of the episode and number.
    """

    def __init__(self, known: Sequence[Episode], disturbance: Sequence[TaskDisturbance]) -> None:
        self.truth = [disturbed_episode(one, what) for one, what in zip(known, disturbance, strict=True)]
        self.earned: dict[tuple[int, int], tuple[Floats, Floats]] = {}


class Drawn:
    """Episodes as they are known beforehand.

    Attributes:
        known: [B].
        observation: see ``episodes.described``, [B, 4].
        after: the generator's state when they were drawn.
    """

    def __init__(self, known: Sequence[Episode], observation: NDArray[np.float32], after: Mapping[str, Any]) -> None:
        self.known, self.observation, self.after = known, observation, after
        self._turned: dict[bytes, Turned] = {}

    def turned(self, disturbance: Sequence[TaskDisturbance]) -> Turned:
        """How they turn out."""
        key = b"".join(one.factor.tobytes() + np.float64(one.capacity).tobytes() for one in disturbance)
        if key not in self._turned:
            self._turned = {key: Turned(self.known, disturbance)}  # in one evaluation there is one luck for each
        return self._turned[key]


class Memory:
    """The episodes that were asked for last, by what they are drawn from."""

    def __init__(self, most: int = MOST_TASKS) -> None:
        self.most = most
        self._kept: OrderedDict[bytes, Drawn] = OrderedDict()

    def get(self, key: bytes) -> Drawn | None:
        """Those of ``key``, if they are kept still."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: bytes, drawn: Drawn) -> None:
        """Keep these, and of the others as many as there is room for."""
        self._kept[key] = drawn
        while len(self._kept) > 1 and sum(map(_size, self._kept.values())) > self.most:
            self._kept.popitem(last=False)


def _size(drawn: Drawn) -> int:
    return sum(one.trace.tasks for one in {id(one): one for one in drawn.known}.values())
