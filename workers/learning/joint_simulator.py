"""The contract of a simulator with several agents: B environments stepped at once, in each of which all agents act.

An agent is told its own observation, mask and reward, and nobody else's; what they have in common is the simulator's
own business. Episodes that ended are reset by themselves, as with ``Simulator``.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.simulator import Step


class Role(NamedTuple):
    """What one agent sees and does: an observation [D] of its own, N actions of its own."""

    observation: spaces.Box
    actions: spaces.Discrete


class Seen(NamedTuple):
    """What one agent sees before its first decision: observation [B, D] and mask of legal actions [B, N]."""

    observation: NDArray[np.float32]
    mask: NDArray[np.bool_]


@runtime_checkable
class JointSimulator(Protocol):
    """B environments in lock-step, with the same agents in each."""

    batch: int

    @property
    def roles(self) -> Mapping[str, Role]:
        """The agents by name."""
        ...

    def reset(self) -> Mapping[str, Seen]:
        """Begin B episodes."""
        ...

    def step(self, actions: Mapping[str, NDArray[np.integer]]) -> Mapping[str, Step]:
        """Take one action per agent and environment, [B] each, all at the same time."""
        ...

    def get_state(self) -> dict[str, Any]:
        """Everything that the future depends on, as arrays and plain values."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``get_state`` gave."""
        ...
