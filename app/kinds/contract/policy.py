"""Interface of policies: situations and choices, the same for agents and heuristics."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Situation(NamedTuple):
    """Input of a policy: B runs, each at its next decision. The types are the kind's own.

    Attributes:
        projector: layout and expectations of the domain model.
        state: of the runs.
        view: encoded state, often a ``View``.
        memory: the policy's memory of each run from its last ``Choice``, [B, H], zeros for new runs; None: all zeros.
    """

    projector: Any
    state: Any
    view: Any
    memory: NDArray[np.float32] | None = None


class View(NamedTuple):
    """Input of the shared policy families: observation [B, D], and mask of legal actions, [B, N]."""

    observation: NDArray[np.float32]
    mask: NDArray[np.bool_]


class Choice(NamedTuple):
    """Output of a policy.

    Attributes:
        action: [B].
        values: expected return of each action, [B, N]; None if the policy has none.
        memory: memory of each run for its next decision, [B, H]; None: the policy has no memory.
    """

    action: NDArray[np.integer]
    values: NDArray[np.floating] | None = None
    memory: NDArray[np.float32] | None = None


class Policy(Protocol):
    """Decides: a heuristic, a table or a network."""

    @property
    def name(self) -> str:
        """Name of the policy in reports and decisions."""
        ...

    def act(self, situation: Situation) -> Choice:
        """Choose one legal action for each of the B runs."""
        ...
