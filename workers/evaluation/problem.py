"""Worlds and problems of evaluations."""

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

# Worlds, written once: what is asked of a world of any kind, and one that a kind fills in.
#
# ``Disturbed`` keeps what disturbances ask for (see ``wrappers.base``). ``SimulatedWorld`` is a whole ``World`` for
# kinds whose episodes are all of one length: it wants `begin`, `advance` and `seen`.


VARIETY = 64  # sets of parameters among the episodes


class Disturbed:
    """The part of a ``World`` that takes in what disturbances set, and forgets it at ``renew`` before every episode.

    Attributes:
        same: whether all B episodes are the one of the seed.
        random: of everything that is drawn.
        factors: of parameters, [V] each.
        model: which held-out model each episode follows, [B]; None: the world's own.
    """

    def __init__(self, batch: int, seed: int, channels: int) -> None:
        self.batch, self.seed, self.channels = batch, seed, channels
        self.variety = min(batch, VARIETY)
        self.disturbances: list[Disturbance] = []
        self.renew()

    @property
    def clusters(self) -> NDArray[np.intp] | None:
        """None: each episode varies by itself."""
        return None

    def renew(self) -> None:
        """Forget seed, factors and models that disturbances have set."""
        self.same, self.random = True, np.random.Generator(np.random.SFC64(self.seed))
        self.factors: dict[str, NDArray[np.floating]] = {}
        self.model: NDArray[np.integer] | None = None

    def reseed(self, seed: int) -> None:
        """Draw the episodes that begin next from ``seed``, each by itself."""
        self.same, self.random = False, np.random.Generator(np.random.SFC64(seed))

    def scale(self, factors: Mapping[str, NDArray[np.floating]]) -> None:
        """Multiply parameters by ``factors`` [V] in the episodes that begin next."""
        self.factors = {**self.factors, **factors}

    def compose(self, models: NDArray[np.integer]) -> None:
        """Let the episodes that begin next follow these of the held-out models, [B]."""
        self.model = models

    def conditions(self) -> Conditions:
        """What the disturbances make of the next step, all at once."""
        total = neutral(self.batch, self.channels)
        for disturbance in self.disturbances:
            conditions = disturbance.conditions(self)  # type: ignore[arg-type]  # whoever inherits is a World
            total = total if conditions is None else total.combined(conditions)
        return total


class SimulatedWorld(Disturbed):
    """B episodes of ``steps`` decisions each; see ``World``. A kind inherits it, and says how it goes on.

    A subclass sets the class attributes, calls ``__init__``, and writes `begin`, `advance` and `seen`. What it draws it
    draws by ``self.normal`` and ``self.uniform``; ``self.by_episode(name)`` is the factor of one of its parameters.

    Attributes:
        terms_of: names of the reward's terms, T; less of each is better.
        outcomes_of: what users count of an episode; the terms, unless a kind says otherwise and writes ``counted``.
        weights: what each is worth, [T]: what is paid is −(terms · weights).
        pay_scale: of what learners are paid, to be of order 1.
        layout: of the workload: what policies are shown as the situation's projector.
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
        """Draw B episodes: a NamedTuple of arrays [B, …]."""
        raise NotImplementedError

    def advance(self, state: Any, actions: NDArray[np.integer], conditions: Conditions) -> tuple[Any, Any]:
        """Take a step under conditions: the state after it, and its terms [B, T]."""
        raise NotImplementedError

    def seen(self, state: Any) -> View:
        """Observation [B, D] and legal actions [B, N] in a state."""
        raise NotImplementedError

    def normal(self, columns: int) -> NDArray[np.float64]:
        """Standard normal numbers, [B, columns]; where all episodes are one, the same for all."""
        drawn = self.random.standard_normal((1 if self.same else self.batch, columns))
        return np.tile(drawn, (self.batch, 1)) if self.same else drawn

    def uniform(self, columns: int) -> NDArray[np.float64]:
        """Numbers from 0 to 1, as ``normal`` draws them."""
        drawn = self.random.random((1 if self.same else self.batch, columns))
        return np.tile(drawn, (self.batch, 1)) if self.same else drawn

    def by_episode(self, name: str) -> NDArray[np.floating]:
        """The factor of a parameter in each episode, [B]."""
        factors = self.factors.get(name, np.ones(self.variety))
        return factors[np.arange(self.batch) % self.variety]

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """``outcomes_of``; one outcome for each term where there are none."""
        return self.outcomes_of or tuple(Outcome(name) for name in self.terms_of)

    @property
    def counted(self) -> NDArray[np.floating]:
        """What the last step added to each outcome, [B, O]: its terms."""
        return self.terms

    @property
    def situation(self) -> Situation:
        """Layout, state and view of the present decision; raises RuntimeError before the first ``reset``."""
        if self._state is None:
            raise RuntimeError("reset() comes before the first step")
        return Situation(self.layout, self._state, self.seen(self._state))

    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Begin B episodes, disturbances first: observation [B, D] and mask [B, N]."""
        self.renew()
        for disturbance in self.disturbances:
            disturbance.begin(self)
        self._state, self._taken = self.begin(), 0
        self.terms, self.paid = np.zeros_like(self.terms), np.zeros_like(self.paid)
        return self.seen(self._state)

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Take one action per environment, [B]; episodes that end begin anew."""
        self._state, terms = self.advance(self._state, actions, self.conditions())
        self._taken += 1
        last = terms, -(terms @ self.weights)
        ended, final = self._taken >= self.steps, self.seen(self._state)
        now = View(*self.reset()) if ended else final
        self.terms, self.paid = last
        pay, done = (self.pay_scale * self.paid).astype(np.float32), np.full(self.batch, ended)
        return Step(now.observation, now.mask, pay, done, final.observation)

    def get_state(self) -> dict[str, Any]:
        """Everything that the future depends on."""
        rows = {name: np.array(value) for name, value in self._state._asdict().items()}
        settings = {"same": self.same, "random": self.random.bit_generator.state, "model": self.model}
        return {"rows": rows, "taken": self._taken, "factors": dict(self.factors), **settings}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``get_state`` gave."""
        kind = type(self.begin())
        self._state, self._taken = kind(**{n: np.array(value) for n, value in state["rows"].items()}), state["taken"]
        self.same, self.model, self.factors = state["same"], state["model"], dict(state["factors"])
        self.random = np.random.Generator(np.random.SFC64())
        self.random.bit_generator.state = state["random"]


# The contract between the evaluation protocol and a kind.
#
# A *problem* is one workload with the model that its policies believe in. It makes worlds, seats policies, and knows
# the kind's baselines; the protocol knows nothing else of the kind.


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

        The candidates come first, then the best heuristic. See ``workers.evaluation.report.page``.
        """
        ...
