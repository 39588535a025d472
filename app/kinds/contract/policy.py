"""Interface of policies: situations and choices, the same for agents and heuristics.

Shapes: B runs, N actions, D entries of an observation, H numbers of a recurrent policy's hidden state."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Situation(NamedTuple):
    """Input of a policy: B runs, each at its next decision. The types are the kind's own.

    Attributes:
        projector: layout, and what the domain model expects.
        state: states of the B runs.
        view: encoded state, often a ``View``.
        memory: hidden state (H numbers) of a recurrent policy for each run, from its last ``Choice``, [B, H], zeros
            for new runs; None: all zeros.
    """

    projector: Any
    state: Any
    view: Any
    memory: NDArray[np.float32] | None = None


class View(NamedTuple):
    """Input of the shared policy families for B runs: observations of D numbers, [B, D], and mask of legal actions
    among N, [B, N]."""

    observation: NDArray[np.float32]
    mask: NDArray[np.bool_]


class Choice(NamedTuple):
    """Output of a policy for B runs.

    Attributes:
        action: number of the chosen action, from 0, [B].
        values: expected return of each of N actions, [B, N]; None: the policy doesn't estimate it.
        memory: hidden state (H numbers) for each run's next decision, [B, H]; None: the policy isn't recurrent.
    """

    action: NDArray[np.integer]
    values: NDArray[np.floating] | None = None
    memory: NDArray[np.float32] | None = None


class Policy(Protocol):
    """A rule that chooses actions: a heuristic, a table or a network."""

    @property
    def name(self) -> str:
        """Name of the policy in reports and decisions."""
        ...

    def act(self, situation: Situation) -> Choice:
        """Choose one action for each run of the situation, among the legal ones; may raise anything."""
        ...
