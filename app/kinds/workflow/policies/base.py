"""The contract of a policy that orders tasks."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.trace import Seconds
from app.policies.base import Arrays


class Waiting(NamedTuple):
    """Q ready tasks at a decision.

    Attributes:
        now: seconds.
        submit: seconds, [Q].
        expected: seconds that a task is planned with, [Q].
        requested: its estimate, or as above where it has none, on the nodes that there are, [Q].
        share: logarithm of the share of its estimate that a task is predicted to take, at most 0, [Q].
        processors: [Q].
        machine: processors of all nodes that take tasks.
        mechanism: index into ``MECHANISMS``.
    """

    now: float
    submit: Seconds
    expected: Seconds
    requested: Seconds
    share: Seconds
    processors: NDArray[np.int64]
    machine: int
    mechanism: int


class Orders(NamedTuple):
    """What a policy says, the smallest scores first.

    Attributes:
        scores: by which tasks start, [Q].
        overtaking: by which tasks overtake one that must wait, [Q]; None: as the workload has it.
    """

    scores: Seconds
    overtaking: Seconds | None


class QueuePolicy(Protocol):
    """Whatever orders tasks."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    @property
    def config(self) -> dict[str, Any]:
        """JSON object that, with ``arrays``, rebuilds it."""
        ...

    @property
    def arrays(self) -> Arrays:
        """Its numbers by name."""
        ...

    def orders(self, waiting: Waiting) -> Orders:
        """The order in which tasks start, and that in which they overtake."""
        ...
