"""What is derived from a spec where decisions are numbered actions: the representation that a kind fills in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from app.kinds.contract.decision import Reason
from app.kinds.contract.policy import Policy, View

if TYPE_CHECKING:
    from gymnasium import spaces


class NumberedLayout:
    """States, observations and actions of one spec; the simulator trains on them, the service answers with them.

    A *state* is a named tuple of numbers, [B] each, for B runs. A kind sets the attributes and writes the methods, none
    of which changes its arguments.

    Attributes:
        spec: what it is derived from.
        entries: what each entry of an observation is, [D].
        actions: how many there are, N.
        initial: the action of a run that has reported nothing.
        iterations: of a run.
        iteration_seconds: how long one lasts.
        state: type of the states.
        baselines: the classic policies; the first answers where no agent does. They need no domain model.
    """

    spec: Any
    entries: Sequence[str]
    actions: int
    initial: int = 0
    iterations: int
    iteration_seconds: float
    state: type[Any]
    baselines: Sequence[Policy]

    def action_of(self, report: Any) -> int:
        """The action that a report says was taken.

        Raises:
            InvalidInput: it says what can't be in this workload.
        """
        raise NotImplementedError

    def begin(self) -> Any:
        """The state of one run that has reported nothing, [1] each: as it is, nothing is known."""
        return self.state(*np.full((len(self.state._fields), 1), np.nan))

    def advance(self, state: Any, reports: Sequence[Any]) -> Any:
        """The state of B runs after one more report each."""
        raise NotImplementedError

    def seen(self, state: Any) -> View:
        """What a policy sees of it: observation [B, D], and which actions are legal, [B, N]; at least one is."""
        raise NotImplementedError

    def allocated(self, action: int) -> Mapping[str, Any]:
        """An action as the decision's own fields."""
        raise NotImplementedError

    def explain(self, state: Any, action: int) -> Reason:
        """Why an action suits one run's state, its fields being numbers; whoever answered."""
        raise NotImplementedError

    @cached_property
    def observation_space(self) -> spaces.Box:
        """Observations: D numbers of order 1."""
        from gymnasium import spaces  # of the extra `worker`: what serves has no use for it

        return spaces.Box(-np.inf, np.inf, (len(self.entries),), np.float32)

    @cached_property
    def action_space(self) -> spaces.Discrete:
        """Actions by their number."""
        from gymnasium import spaces

        return spaces.Discrete(self.actions)
