"""The agent contract: what an executor needs of an algorithm.

An agent acts on slabs of environments in lock-step, takes in what came of it, and learns. It loops nothing and logs
nothing: `learn` returns frozen figures. Its whole state goes to named arrays plus plain values, so that any executor
can pause and resume it bit-equal (the random generator belongs to the executor and is passed in).

To add an algorithm: a config in `config.py`, an agent here beside the others, one line in `workers.learning.agent`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from workers.learning.simulator import Foresight

Observations = NDArray[np.float32]  # [B, D]
Masks = NDArray[np.bool_]  # [B, N]
Actions = NDArray[np.int64]  # [B]


class Acted(NamedTuple):
    """What `act` returns for B environments.

    Attributes:
        action: [B].
        log_prob: logarithm of the probability with which the behaviour drew the action, [B]; zeros where nobody asks.
    """

    action: Actions
    log_prob: NDArray[np.float32]


class Experience(NamedTuple):
    """One slab of transitions, [B, …] each.

    `next_observation` is the true successor, not the first of a new episode.
    """

    observation: Observations
    mask: Masks
    action: Actions
    reward: NDArray[np.float32]
    done: NDArray[np.bool_]
    next_observation: Observations
    next_mask: Masks
    log_prob: NDArray[np.float32]


@dataclass(frozen=True)
class LearnStats:
    """Figures of one call of `learn`. `exploration`: the mean ε, temperature or policy entropy at that time."""

    updates: int
    loss: float
    rate: float
    exploration: float


class Agent(Protocol):
    """What acts and learns."""

    def act(self, observation: Observations, mask: Masks, progress: float, rng: np.random.Generator) -> Acted:
        """Choose an action for each environment, exploring."""

    def greedy(self, observation: Observations, mask: Masks) -> Actions:
        """Choose the best action known, as the exported policy would."""

    def remember(self, experience: Experience) -> None:
        """Take in one slab."""

    def learn(self, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """Learn from what is remembered; None while there is too little."""

    def forget(self) -> None:
        """Drop remembered transitions (not what was learned from them)."""

    def state(self, *, memory: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and plain values from which `restore` goes on; `memory` with the remembered transitions."""

    def restore(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Go on from a state."""

    def parameters(self) -> NDArray[np.float32]:
        """Return a copy of what `act` depends on, [P]."""

    def load(self, parameters: NDArray[np.float32]) -> None:
        """Act on these parameters [P] from now on: an actor takes its learner's."""

    def export(self) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the policy's type ("network", "table"), its config and its arrays, for the artifact."""


class Asynchronous(Agent, Protocol):
    """An agent whose gradients can be computed beside the data and applied to shared parameters (Mnih et al., 2016)."""

    def gradient(self, progress: float, rng: np.random.Generator) -> tuple[NDArray[np.float32], LearnStats] | None:
        """Return the gradient [P] of what is remembered, which is then forgotten; None while there is too little."""

    def apply(self, gradient: NDArray[np.float32], progress: float) -> None:
        """Take one step of the optimiser along a gradient [P]."""


@runtime_checkable
class Foreseer(Protocol):
    """An agent that learns from what every action would lead to, where simulator and executor can tell."""

    foresight: int
    """Outcomes of each action that it asks for; 0 for none at all."""

    def foresee(self, observation: Observations, mask: Masks, ahead: Foresight) -> None:
        """Take in what would follow from [B, D], [B, N], before the step that then is taken."""
