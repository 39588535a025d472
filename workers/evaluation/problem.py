"""The contract between the evaluation protocol and a kind.

A *problem* is one workload with the model that its policies believe in. It makes worlds, seats policies, and knows the
kind's baselines; the protocol knows nothing else of the kind.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.outcome import Outcome
from app.kinds.contract.policy import Policy, Situation
from workers.evaluation.arena import Player
from workers.evaluation.levels import Level
from workers.evaluation.wrappers.base import World


class LevelOptimum(NamedTuple):
    """The optimum of a problem at one level.

    Attributes:
        policy: earns it; None where it can't be had.
        exact: whether it is the optimum, up to ``error``, or only the best plan that can be had.
        expected: the return that it promises; None where it promises none.
        error: of ``expected``.
        reason: why there is none, or why it is not exact.
    """

    policy: Policy | None = None
    exact: bool = False
    expected: float | None = None
    error: float | None = None
    reason: str | None = None


class Tunable(NamedTuple):
    """A setting that stays the same for the whole episode, an integer from ``low`` to ``high``."""

    name: str
    low: int
    high: int


class Axis(NamedTuple):
    """One axis of a policy's heat map: its name and the edges of its bins, ascending."""

    name: str
    edges: tuple[float, ...]


class HeatMapAxes(NamedTuple):
    """How a policy is drawn: what it does (``value``), by where it is (``x``, ``y``)."""

    x: Axis
    y: Axis
    value: str


class Encoder(NamedTuple):
    """How a policy sees a situation.

    Attributes:
        name: what reports call it.
        encode: a situation's observations, one row each, [B, E]; equal rows are one observation to the policy.
    """

    name: str
    encode: Callable[[Situation], NDArray[np.generic]]


class Problem(Protocol):
    """One workload, as the protocol sees it.

    Attributes:
        kind, name: of the workload.
        terms, weights: of the reward: their names, and what each is worth.
        outcomes: what users count of an episode, in units of their own, in the order in which to tell them.
        heuristics: the kind's, by name.
    """

    kind: str
    name: str
    terms: Sequence[str]
    weights: Sequence[float]
    outcomes: Sequence[Outcome]
    heuristics: Mapping[str, Policy]

    @property
    def heat_map_axes(self) -> HeatMapAxes:
        """The axes of heat maps."""
        ...

    def player(self, contender: bytes | Policy) -> Player:
        """An artifact behind the guard, or a bare policy.

        Raises:
            IncompatibleArtifact: the artifact was made for something else.
        """
        ...

    def title(self, contender: bytes | Policy) -> str:
        """What a contender is, in a word: its algorithm."""
        ...

    def world(self, batch: int, seed: int) -> World:
        """A fresh world of ``batch`` episodes, all of them the one that ``seed`` gives."""
        ...

    def unavailable(self, level: Level) -> str | None:
        """Why ``level`` can't be had, or None when it can."""
        ...

    def optimum(self, level: Level, seed: int) -> LevelOptimum:
        """The optimum at ``level``; ``seed`` is the fixed world's."""
        ...

    def tunables(self) -> Sequence[Tunable]:
        """The settings that a tuner may set; empty where there are none."""
        ...

    def static(self, values: Mapping[str, int]) -> Policy:
        """The policy of fixed settings."""
        ...

    def drawn(self, situation: Situation, action: NDArray[np.integer]) -> tuple[NDArray[np.floating], ...]:
        """x, y and value of ``heat_map_axes``, [B] each; a value is NaN where nothing is to be drawn."""
        ...

    def encoder(self, contender: bytes | Policy) -> Encoder | None:
        """How a contender sees a situation; None where it reads the whole state."""
        ...

    def labels(self) -> tuple[str, Policy] | None:
        """A name and a policy whose ``Choice.values`` are returns, which label the best actions; or None."""
        ...

    def named_observation(self, situation: Situation, row: int) -> Mapping[str, float]:
        """The observation of episode ``row`` by entry name, for reports."""
        ...

    def action_name(self, action: int) -> str:
        """An action's name in reports."""
        ...

    def description(self, level: Level) -> str:
        """What is random at ``level``, in the kind's own words."""
        ...

    def pictures(self, shown: Mapping[str, bytes | Policy], seed: int) -> dict[str, Any] | None:
        """Episodes of ``seed`` as these contenders decide them, for the report; None where nothing is drawn.

        The candidates come first, then the best heuristic. See ``workers.evaluation.report.pictures``.
        """
        ...
