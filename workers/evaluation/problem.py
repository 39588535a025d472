"""Base classes of evaluation worlds, and the interface between the evaluation protocol and a kind of workload."""

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
# ``Disturbed`` stores the settings of disturbances. ``SimulatedWorld`` is a complete ``World`` for kinds whose episodes
# have one common length; subclasses implement `begin`, `advance` and `seen`.


VARIETY = 64  # most different parameter sets among the episodes


class Disturbed:
    """The part of a ``World`` that stores the settings of disturbances, and clears them before every episode.

    Attributes:
        same: whether all B episodes are the single one of the seed.
        random: generator of all random numbers.
        factors: multipliers of parameters by name, [V] each.
        model: index of the held-out model of each episode, [B]; None: the world's own model.
    """

    def __init__(self, batch: int, seed: int, channels: int) -> None:
        self.batch, self.seed, self.channels = batch, seed, channels
        self.variety = min(batch, VARIETY)
        self.disturbances: list[Disturbance] = []
        self.renew()

    @property
    def clusters(self) -> NDArray[np.intp] | None:
        """None: all episodes are independent."""
        return None

    def renew(self) -> None:
        """Clear the seed, factors and models that disturbances have set."""
        self.same, self.random = True, np.random.Generator(np.random.SFC64(self.seed))
        self.factors: dict[str, NDArray[np.floating]] = {}
        self.model: NDArray[np.integer] | None = None

    def reseed(self, seed: int) -> None:
        """Draw the next episodes independently of each other, from ``seed``."""
        self.same, self.random = False, np.random.Generator(np.random.SFC64(seed))

    def scale(self, factors: Mapping[str, NDArray[np.floating]]) -> None:
        """Multiply parameters, by name, by ``factors`` [V] in the next episodes; replaces factors of the same name."""
        self.factors = {**self.factors, **factors}

    def compose(self, models: NDArray[np.integer]) -> None:
        """Let the next episodes follow the held-out models of these indices, [B]."""
        self.model = models

    def conditions(self) -> Conditions:
        """Combined conditions of the next step from all disturbances."""
        total = neutral(self.batch, self.channels)
        for disturbance in self.disturbances:
            conditions = disturbance.conditions(self)  # type: ignore[arg-type]  # whoever inherits is a World
            total = total if conditions is None else total.combined(conditions)
        return total


class SimulatedWorld(Disturbed):
    """Base class of a ``World`` of B episodes of ``steps`` decisions each.

    A subclass sets the class attributes, calls ``__init__``, and implements `begin`, `advance` and `seen`. It draws
    random numbers by ``self.normal`` and ``self.uniform``; ``self.by_episode(name)`` is a parameter's factor.

    Attributes:
        terms_of: names of the reward's T terms; smaller is better.
        outcomes_of: outcomes in users' units; the terms by default, else the subclass overrides ``counted``.
        weights: of the terms, [T]; the reward is −(terms · weights).
        pay_scale: factor that brings the learners' reward to order 1.
        layout: of the workload; the projector of each situation.
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
        """Draw the initial state of B episodes: a NamedTuple of arrays [B, …]."""
        raise NotImplementedError

    def advance(self, state: Any, actions: NDArray[np.integer], conditions: Conditions) -> tuple[Any, Any]:
        """Take one step with ``actions`` [B] under conditions: the next state, and the reward's terms [B, T]."""
        raise NotImplementedError

    def seen(self, state: Any) -> View:
        """Observation [B, D] and mask of legal actions [B, N] in a state."""
        raise NotImplementedError

    def normal(self, columns: int) -> NDArray[np.float64]:
        """Draw standard normal numbers, [B, columns]; equal rows while all episodes are the same."""
        drawn = self.random.standard_normal((1 if self.same else self.batch, columns))
        return np.tile(drawn, (self.batch, 1)) if self.same else drawn

    def uniform(self, columns: int) -> NDArray[np.float64]:
        """Draw uniform numbers in [0, 1), [B, columns]; equal rows while all episodes are the same."""
        drawn = self.random.random((1 if self.same else self.batch, columns))
        return np.tile(drawn, (self.batch, 1)) if self.same else drawn

    def by_episode(self, name: str) -> NDArray[np.floating]:
        """Factor of a parameter in each episode, [B]; 1 where none is set."""
        factors = self.factors.get(name, np.ones(self.variety))
        return factors[np.arange(self.batch) % self.variety]

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """The outcomes in users' units: ``outcomes_of``, or else one for each term."""
        return self.outcomes_of or tuple(Outcome(name) for name in self.terms_of)

    @property
    def counted(self) -> NDArray[np.floating]:
        """Increase of each outcome in the last step, [B, O]; by default the terms."""
        return self.terms

    @property
    def situation(self) -> Situation:
        """Layout, state and view of the present decision.

        Raises:
            RuntimeError: before the first ``reset``.
        """
        if self._state is None:
            raise RuntimeError("reset() comes before the first step")
        return Situation(self.layout, self._state, self.seen(self._state))

    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Begin B episodes, after all disturbances have set them up: observation [B, D] and mask [B, N]."""
        self.renew()
        for disturbance in self.disturbances:
            disturbance.begin(self)
        self._state, self._taken = self.begin(), 0
        self.terms, self.paid = np.zeros_like(self.terms), np.zeros_like(self.paid)
        return self.seen(self._state)

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Take one action per episode, [B]; all episodes restart together after the last step."""
        self._state, terms = self.advance(self._state, actions, self.conditions())
        self._taken += 1
        last = terms, -(terms @ self.weights)
        ended, final = self._taken >= self.steps, self.seen(self._state)
        now = View(*self.reset()) if ended else final
        self.terms, self.paid = last
        pay, done = (self.pay_scale * self.paid).astype(np.float32), np.full(self.batch, ended)
        return Step(now.observation, now.mask, pay, done, final.observation)

    def get_state(self) -> dict[str, Any]:
        """Copy of state, step count, factors and random generator, from which ``set_state`` resumes bit-equal."""
        rows = {name: np.array(value) for name, value in self._state._asdict().items()}
        settings = {"same": self.same, "random": self.random.bit_generator.state, "model": self.model}
        return {"rows": rows, "taken": self._taken, "factors": dict(self.factors), **settings}

    def set_state(self, state: dict[str, Any]) -> None:
        """Resume from a state returned by ``get_state``."""
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
        policy: that attains it; None if not available.
        exact: whether it is the optimum up to ``error``, rather than the best plan available.
        expected: its expected return; None if unknown.
        error: bound on the error of ``expected``, in return; None if unknown.
        reason: why there is none, or why it is not exact.
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
        name: in reports.
        encode: observations of a situation's B episodes, [B, E]; the policy cannot tell equal rows apart.
    """

    name: str
    encode: Callable[[Situation], NDArray[np.generic]]


class Problem(Protocol):
    """One workload as the evaluation protocol uses it.

    Attributes:
        kind, name: of the workload.
        terms, weights: names and weights of the reward's T terms.
        outcomes: names and units of the outcomes for users, in display order.
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
        """Axes of the policies' heat maps."""
        ...

    def player(self, contender: bytes | Policy) -> Player:
        """Player of an artifact (behind the guard) or of a bare policy.

        Raises:
            IncompatibleArtifact: the artifact is unreadable, or of another layout.
        """
        ...

    def title(self, contender: bytes | Policy) -> str:
        """Short title of a contender: its algorithm's name."""
        ...

    def world(self, batch: int, seed: int) -> World:
        """Make a fresh world of ``batch`` equal episodes, the one given by ``seed``."""
        ...

    def unavailable(self, level: Level) -> str | None:
        """Reason in words why ``level`` cannot be played; None if it can."""
        ...

    def optimum(self, level: Level, seed: int) -> LevelOptimum:
        """The optimum at ``level``; ``seed`` is that of the fixed episode."""
        ...

    def tunables(self) -> Sequence[Tunable]:
        """Static settings that the tuner may set; empty if there are none."""
        ...

    def static(self, values: Mapping[str, int]) -> Policy:
        """Policy with the given static settings, by name."""
        ...

    def drawn(self, situation: Situation, action: NDArray[np.integer]) -> tuple[NDArray[np.floating], ...]:
        """Values of the axes ``x``, ``y`` and ``value`` for B situations and actions, [B] each; NaN is not drawn."""
        ...

    def encoder(self, contender: bytes | Policy) -> Encoder | None:
        """A contender's observation; None where it reads the whole state."""
        ...

    def labels(self) -> tuple[str, Policy] | None:
        """Name and policy of a teacher whose ``Choice.values`` are returns of every action; None if there is none."""
        ...

    def named_observation(self, situation: Situation, row: int) -> Mapping[str, float]:
        """Observation of episode ``row`` by entry name."""
        ...

    def action_name(self, action: int) -> str:
        """Display name of the action with this index."""
        ...

    def description(self, level: Level) -> str:
        """Description of the randomness at ``level``, for users of this kind."""
        ...

    def pictures(self, shown: Mapping[str, bytes | Policy], seed: int) -> dict[str, Any] | None:
        """Plots of the episode of ``seed`` as played by the given contenders, for the
        report; None if the kind draws none.

        ``shown`` lists contenders by name: candidates first, then the best heuristic.
        """
        ...
