"""What a policy is shown, and what it answers; the same for agents and heuristics."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Situation(NamedTuple):
    """What a policy is shown: B runs, each at the point of its next decision. The types are the kind's own.

    Attributes:
        memory: what the policy remembers of each run, as its last ``Choice`` had it, [B, H]; a run that it has not
            decided for before has zeros, and None is zeros everywhere.
    """

    projector: Any
    state: Any
    view: Any
    memory: NDArray[np.float32] | None = None


class View(NamedTuple):
    """What the shared families of policies read: observation [B, D], and which actions are legal, [B, N]."""

    observation: NDArray[np.float32]
    mask: NDArray[np.bool_]


class Choice(NamedTuple):
    """What a policy chose.

    Attributes:
        action: [B].
        values: what the policy expects of each action, in return, [B, N]; None when it does not say.
        memory: what it remembers of each run from now on, [B, H]; None where it remembers nothing.
    """

    action: NDArray[np.integer]
    values: NDArray[np.floating] | None = None
    memory: NDArray[np.float32] | None = None


class Policy(Protocol):
    """Whatever answers a decision: a heuristic, a table or a network."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def act(self, situation: Situation) -> Choice:
        """One legal action per run."""
        ...
