"""Base classes of evaluation worlds, and the interface between the evaluation protocol and a kind of workload.

Shapes: B episodes, D or E observation entries, N actions, T reward terms, O outcomes, V parameter sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from app.kinds.contract.kind import Outcome
from app.kinds.contract.policy import Policy, Situation, View
from workers.evaluation.arena import Player
from workers.evaluation.statistics import Level
from workers.evaluation.wrappers import Conditions, Disturbance, World, neutral
from workers.learning.simulator import Step

# Base classes of worlds.
#
# ``DisturbedWorld`` stores disturbances. ``SimulatedWorld`` is a complete ``World`` for kinds whose episodes
# have one common length; subclasses implement `begin`, `advance` and `observe`.


VARIETY = 64  # most different parameter sets among the episodes


class DisturbedWorld:
    """The part of a ``World`` of B episodes that stores the settings of disturbances, and clears them before episodes.

    Attributes:
        same: whether all B episodes are the single one of the seed.
        random: generator of all random numbers.
        factors: multipliers of parameters by name, [V] each, for the V = min(B, 64) parameter sets among the episodes.
        model: index of the held-out model of each episode, [B]; None: the world's own model.
    """

    def __init__(self, batch: int, seed: int, channels: int) -> None:
        self.batch, self.seed, self.channels = batch, seed, channels
        self.variety = min(batch, VARIETY)
        self.disturbances: list[Disturbance] = []
        self.renew()

    @property
    def clusters(self) -> NDArray[np.intp] | None:
        """None, which means that all episodes are independent."""
        return None

    def renew(self) -> None:
        """Reset the seed to the world's own, and clear the factors and models that disturbances have set."""
        self.same, self.random = True, np.random.Generator(np.random.SFC64(self.seed))
        self.factors: dict[str, NDArray[np.floating]] = {}
        self.model: NDArray[np.integer] | None = None

    def reseed(self, seed: int) -> None:
        """Let the next episodes differ from each other, with all random numbers from ``seed``."""
        self.same, self.random = False, np.random.Generator(np.random.SFC64(seed))

    def scale(self, factors: Mapping[str, NDArray[np.floating]]) -> None:
        """Multiply parameters, by name, by ``factors`` [V] in the next episodes; they replace those of the same name.

        V parameter sets alternate among the episodes.
        """
        self.factors = {**self.factors, **factors}

    def compose(self, models: NDArray[np.integer]) -> None:
        """Let the next B episodes follow the held-out models of the indices ``models`` [B]."""
        self.model = models

    def conditions(self) -> Conditions:
        """Return the combined conditions of the next step from all disturbances."""
        total = neutral(self.batch, self.channels)
        for disturbance in self.disturbances:
            conditions = disturbance.conditions(self)  # type: ignore[arg-type]  # whoever inherits is a World
            total = total if conditions is None else total.combine(conditions)
        return total


class SimulatedWorld(DisturbedWorld):
    """Base class of a ``World`` of B episodes of ``steps`` decisions each.

    A subclass sets the class attributes, calls ``__init__``, and implements `begin`, `advance` and `observe`. It draws
    random numbers by ``self.normal`` and ``self.uniform``; ``self.by_episode(name)`` is a parameter's factor.

    Attributes:
        terms_of: names of the reward's T terms; smaller is better.
        outcomes_of: outcomes in users' units; the terms by default, else the subclass overrides ``outcome_increments``.
        weights: weights of the terms, [T]; the reward is −(terms · weights).
        pay_scale: factor that brings the learners' reward to order 1.
        layout: layout of the workload, which each situation carries to policies.
    """

    terms_of: ClassVar[Sequence[str]]
    outcomes_of: ClassVar[Sequence[Outcome]] = ()
    pay_scale: ClassVar[float] = 1.0
    advice: slice | None = None
    parameters: Sequence[str] = ()

    def __init__(
        self,
        layout: Any,
        observation: int,
        actions: int,
        weights: Sequence[float],
        *,
        steps: int,
        batch: int,
        seed: int,
        held_out: int = 0,
        channels: int = 1,
    ) -> None:
        super().__init__(batch, seed, channels)
        self.layout, self.weights, self.steps, self.held_out = layout, np.asarray(weights, float), steps, held_out
        self.observation_space = spaces.Box(-np.inf, np.inf, (observation,), np.float32)
        self.action_space = spaces.Discrete(actions)
        self.terms: NDArray[np.floating] = np.zeros((batch, len(self.weights)))
        self.paid: NDArray[np.floating] = np.zeros(batch)
        self._state: Any = None
        self._taken = 0

    def begin(self) -> Any:
        """Draw and return the initial state of B episodes, a NamedTuple of arrays [B, …]; subclasses implement it."""
        raise NotImplementedError

    def advance(self, state: Any, actions: NDArray[np.integer], conditions: Conditions) -> tuple[Any, Any]:
        """Take ``actions`` [B] under ``conditions``; return the next state and the reward's terms [B, T]; abstract."""
        raise NotImplementedError

    def observe(self, state: Any) -> View:
        """Return the observation [B, D] (D entries) and the mask of legal actions [B, N] in a state; abstract."""
        raise NotImplementedError

    def normal(self, columns: int) -> NDArray[np.float64]:
        """Draw standard normal numbers [B, columns] for B episodes; equal rows while all episodes are the same."""
        drawn = self.random.standard_normal((1 if self.same else self.batch, columns))
        return np.tile(drawn, (self.batch, 1)) if self.same else drawn

    def uniform(self, columns: int) -> NDArray[np.float64]:
        """Draw uniform numbers [B, columns] in [0, 1) for B episodes; equal rows while all episodes are the same."""
        drawn = self.random.random((1 if self.same else self.batch, columns))
        return np.tile(drawn, (self.batch, 1)) if self.same else drawn

    def by_episode(self, name: str) -> NDArray[np.floating]:
        """Return the factor of the parameter ``name`` in each of B episodes, [B]; 1 where none is set."""
        factors = self.factors.get(name, np.ones(self.variety))
        return factors[np.arange(self.batch) % self.variety]

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """The outcomes in users' units: ``outcomes_of``, or else one for each term."""
        return self.outcomes_of or tuple(Outcome(name) for name in self.terms_of)

    @property
    def outcome_increments(self) -> NDArray[np.floating]:
        """Increase of each of O outcomes in the last step, in users' units, [B, O]; by default the terms."""
        return self.terms

    @property
    def situation(self) -> Situation:
        """Layout, state and view of the present decision of B episodes.

        Raises:
            RuntimeError: ``reset`` was not called yet.
        """
        if self._state is None:
            raise RuntimeError("reset() comes before the first step")
        return Situation(self.layout, self._state, self.observe(self._state))

    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Begin B episodes after all disturbances; return observations [B, D] and masks of legal actions [B, N]."""
        self.renew()
        for disturbance in self.disturbances:
            disturbance.begin(self)
        self._state, self._taken = self.begin(), 0
        self.terms, self.paid = np.zeros_like(self.terms), np.zeros_like(self.paid)
        return self.observe(self._state)

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Take the actions [B], one index per episode; all episodes restart together after the last step.

        ``reset`` must have been called before.
        """
        self._state, terms = self.advance(self._state, actions, self.conditions())
        self._taken += 1
        last = terms, -(terms @ self.weights)
        ended, final = self._taken >= self.steps, self.observe(self._state)
        now = View(*self.reset()) if ended else final
        self.terms, self.paid = last
        pay, done = (self.pay_scale * self.paid).astype(np.float32), np.full(self.batch, ended)
        return Step(now.observation, now.mask, pay, done, final.observation)

    def get_state(self) -> dict[str, Any]:
        """Return a copy of state, step count, factors and random generator, for ``set_state`` to resume bit-equal."""
        rows = {name: np.array(value) for name, value in self._state._asdict().items()}
        settings = {"same": self.same, "random": self.random.bit_generator.state, "model": self.model}
        return {"rows": rows, "taken": self._taken, "factors": dict(self.factors), **settings}

    def set_state(self, state: dict[str, Any]) -> None:
        """Resume from a state that ``get_state`` returned; KeyError if an entry is missing."""
        kind = type(self.begin())
        self._state, self._taken = kind(**{n: np.array(value) for n, value in state["rows"].items()}), state["taken"]
        self.same, self.model, self.factors = state["same"], state["model"], dict(state["factors"])
        self.random = np.random.Generator(np.random.SFC64())
        self.random.bit_generator.state = state["random"]


# Interface between the evaluation protocol and a kind.
#
# A *problem* is one workload with the model that its policies use. It makes worlds and players, and knows the kind's
# baselines; the protocol uses nothing else of the kind.


class LevelOptimum(NamedTuple):
    """The optimum of a problem at one level.

    Attributes:
        policy: policy that attains the optimum; None if not available.
        exact: whether the policy is the optimum up to ``error``, rather than the best plan available.
        expected: expected return of the policy; None if unknown.
        error: bound on the error of ``expected``, in units of return; None if unknown.
        reason: why there is no optimum, or why it is not exact, in words; None for an exact one.
    """

    policy: Policy | None = None
    exact: bool = False
    expected: float | None = None
    error: float | None = None
    reason: str | None = None


class Tunable(NamedTuple):
    """A static integer setting from ``low`` to ``high`` (inclusive), constant over an episode."""

    name: str
    low: int
    high: int


class Axis(NamedTuple):
    """One axis of a policy's heat map: its name and the edges of its bins, ascending."""

    name: str
    edges: tuple[float, ...]


class HeatMapAxes(NamedTuple):
    """Axes of a policy's heat map: two quantities of the situation (``x``, ``y``), and the name of the ``value``."""

    x: Axis
    y: Axis
    value: str


class Encoder(NamedTuple):
    """A policy's observation of a situation.

    Attributes:
        name: name in reports.
        encode: function to the observations [B, E] of a situation's B episodes; equal rows look equal to the policy.
    """

    name: str
    encode: Callable[[Situation], NDArray[np.generic]]


class Problem(Protocol):
    """One workload as the evaluation protocol uses it.

    Attributes:
        kind, name: the workload's kind and name.
        terms, weights: names and weights of the reward's T terms.
        outcomes: names and units of the outcomes for users, in display order.
        heuristics: the kind's heuristics by name.
    """

    kind: str
    name: str
    terms: Sequence[str]
    weights: Sequence[float]
    outcomes: Sequence[Outcome]
    heuristics: Mapping[str, Policy]

    @property
    def heat_map_axes(self) -> HeatMapAxes:
        """The two axes of policies' heat maps, with their bins, and the name of the mapped value."""
        ...

    def player(self, contender: bytes | Policy) -> Player:
        """Return the player of a bare policy, or of an artifact with a guard that may replace actions by a heuristic's.

        Raises:
            IncompatibleArtifact: the artifact is unreadable, or of another layout.
        """
        ...

    def title(self, contender: bytes | Policy) -> str:
        """Return a short title of a contender, the name of its algorithm."""
        ...

    def world(self, batch: int, seed: int) -> World:
        """Make a fresh world of ``batch`` episodes, all equal to the episode that ``seed`` gives."""
        ...

    def unavailable(self, level: Level) -> str | None:
        """Return the reason in words why ``level`` cannot be played; None if it can."""
        ...

    def optimum(self, level: Level, seed: int) -> LevelOptimum:
        """Return the optimum at ``level``, or the reason why there is none; ``seed`` is the fixed episode's."""
        ...

    def tunables(self) -> Sequence[Tunable]:
        """Return the static settings that the tuner may set; empty if there are none."""
        ...

    def static(self, values: Mapping[str, int]) -> Policy:
        """Return the policy with the given values of the static settings, by name."""
        ...

    def heat_map_points(self, situation: Situation, action: NDArray[np.integer]) -> tuple[NDArray[np.floating], ...]:
        """Return the heat map's x, y and value, [B] each, for each episode's ``action`` [B]; NaN is not drawn."""
        ...

    def encoder(self, contender: bytes | Policy) -> Encoder | None:
        """Return the encoder by which a contender observes situations; None where it reads the whole state."""
        ...

    def labels(self) -> tuple[str, Policy] | None:
        """Return name and policy of a teacher whose ``Choice.values`` are every action's return; None without one."""
        ...

    def named_observation(self, situation: Situation, row: int) -> Mapping[str, float]:
        """Return the observation of the episode with index ``row`` in a situation, by entry's name."""
        ...

    def action_name(self, action: int) -> str:
        """Return the name that users see for the action with this index."""
        ...

    def description(self, level: Level) -> str:
        """Return a description of the randomness at ``level`` for users of this kind."""
        ...

    def pictures(self, shown: Mapping[str, bytes | Policy], seed: int) -> dict[str, Any] | None:
        """Return plots of the episode of ``seed``, played by each contender, for the report; None if the kind has none.

        ``shown`` has the contenders by name: candidates first, then the best heuristic.
        """
        ...
