"""The contract of a simulator: B environments stepped at once on arrays.

Every simulator resets an episode that ended by itself. ``tests/workers/simulators`` holds what each must keep.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray


class Step(NamedTuple):
    """What a step gives. B environments, D observation entries, N actions.

    Attributes:
        observation: of the next decision (after a reset where an episode ended), [B, D].
        mask: legal actions of the next decision, [B, N].
        reward: what learners are paid, of order 1, [B].
        done: whether the episode ended with this step, [B].
        final_observation: as ``observation``, but before the reset; equal to it where nothing ended, [B, D].
        discount: what is paid from the next decision on counts so much of what is paid now, beside the learner's own
            γ: of decisions that are not equally long, [B]; None: as much.
        truncated: of the episodes that ended, those that only the clock ended, [B]: what is paid goes on with
            ``observation``, the first of the next, and ``final_observation`` is equal to it; None: none of them.
    """

    observation: NDArray[np.float32]
    mask: NDArray[np.bool_]
    reward: NDArray[np.float32]
    done: NDArray[np.bool_]
    final_observation: NDArray[np.float32]
    discount: NDArray[np.float32] | None = None
    truncated: NDArray[np.bool_] | None = None

    @property
    def terminated(self) -> NDArray[np.bool_]:
        """After which steps nothing is paid any more, [B]."""
        return self.done if self.truncated is None else self.done & ~self.truncated


class Simulator(Protocol):
    """B environments in lock-step."""

    batch: int

    @property
    def observation_space(self) -> spaces.Box:
        """Of one environment, [D]."""
        ...

    @property
    def action_space(self) -> spaces.Discrete:
        """Of one environment, N actions."""
        ...

    @property
    def advice(self) -> slice | None:
        """Of a set of candidates: the feature that scores each in the unit of the reward, if there is one."""
        ...

    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Begin B episodes: observation [B, D] and mask [B, N]."""
        ...

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Take one action per environment, [B]."""
        ...

    def get_state(self) -> dict[str, Any]:
        """Everything that the future depends on, as arrays and plain values."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``get_state`` gave."""
        ...
