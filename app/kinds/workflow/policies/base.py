"""The contract of a policy that picks tasks."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.scheduling.observation import Survey
from app.kinds.workflow.trace import Seconds
from app.policies.base import Arrays


class View(NamedTuple):
    """Q candidates at a decision.

    Attributes:
        now: seconds.
        submit: seconds, [Q].
        expected: seconds that a task is planned with, [Q].
        processors: [Q].
        seen: the queue and the machine.
    """

    now: float
    submit: Seconds
    expected: Seconds
    processors: NDArray[np.int64]
    seen: Survey


class Pick(NamedTuple):
    """What a policy says.

    Attributes:
        candidate: its place among the candidates; −1 puts the decision off to the next event.
        scores: of all candidates, the highest is picked, [Q].
        member: who said it, of a portfolio.
        losses: expected loss of each member against the first, margin included, [M]; empty where none is expected.
    """

    candidate: int
    scores: Seconds
    member: str
    losses: Seconds


class Picker(Protocol):
    """Whatever picks the next task."""

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

    def pick(self, view: View) -> Pick:
        """The next task."""
        ...
