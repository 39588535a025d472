"""Wrappers that change a world: noise, drift, failures, load, capacity."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.contract.policy import Situation
from workers.evaluation.statistics import Level
from workers.learning.simulator import Simulator, Step

# The contract of a world that can be disturbed, and of the wrappers that do it.
#
# A *world* is a simulator that also shows what a policy is shown, tells what was paid, and asks its *disturbances*
# before every episode and every step. A *wrapper* is a simulator around a simulator: it registers with the world inside
# as a disturbance and passes everything else through. So wrappers compose in any order, know nothing of the kind, and
# are still asked when the world begins an episode by itself. ``tests/workers/evaluation/test_wrappers.py`` runs over
# every member of ``wrappers.WRAPPERS``.


Floats = NDArray[np.float64]


class Conditions(NamedTuple):
    """What the environment makes of one step. B episodes, C channels (quantities that a step measures).

    Attributes:
        slowdown: added to the log of every channel; it lasts, [B].
        noise: added to the log of each channel in this step alone, [B, C].
        repeated: share of the step's work that has to be done again, [B].
        capacity: share of each resource's range above its minimum that can be had, [B].
    """

    slowdown: Floats
    noise: Floats
    repeated: Floats
    capacity: Floats

    def combined(self, other: Conditions) -> Conditions:
        """Both in one step: logs and shares add up, of capacities the lesser holds."""
        return Conditions(
            self.slowdown + other.slowdown,
            self.noise + other.noise,
            self.repeated + other.repeated,
            np.minimum(self.capacity, other.capacity),
        )


def neutral(batch: int, channels: int) -> Conditions:
    """Conditions without effect, for B episodes and C channels."""
    return Conditions(np.zeros(batch), np.zeros((batch, channels)), np.zeros(batch), np.ones(batch))


class Disturbance(Protocol):
    """A source of conditions, which a world calls before every episode and step."""

    def begin(self, world: World) -> None:
        """New episodes are about to begin: draw what holds for all of each, and set up ``world``."""
        ...

    def conditions(self, world: World) -> Conditions | None:
        """Conditions of the step that is about to be taken; None where they are neutral."""
        ...


class World(Simulator, Protocol):
    """A simulator of one kind, open to disturbances.

    Its episodes begin together: one that has ended waits, paid nothing, until all have.

    Attributes:
        channels: how many quantities a step measures, C.
        steps: the most decisions that an episode takes.
        parameters: names of what can be changed by a factor, ``group.detail``.
        variety: how many different sets of parameters the episodes share among them, V.
        held_out: how many models of held-out executions there are.
        disturbances: asked in this order.
        terms: of the last step (after a reset: of what came before the first decision), [B, T].
        paid: the return of the same, plain and unscaled, [B].
    """

    channels: int
    steps: int
    parameters: Sequence[str]
    variety: int
    held_out: int
    disturbances: list[Disturbance]
    terms: NDArray[np.floating]
    paid: NDArray[np.floating]

    @property
    def clusters(self) -> NDArray[np.intp] | None:
        """Which of the present episodes vary together, [B]; None: each varies by itself."""
        ...

    @property
    def counted(self) -> NDArray[np.floating]:
        """What the last step added to each outcome, in users' units, [B, O]; see ``Problem.outcomes``."""
        ...

    @property
    def situation(self) -> Situation:
        """What a policy is shown now."""
        ...

    def reseed(self, seed: int) -> None:
        """Draw what is to come from ``seed``."""
        ...

    def scale(self, factors: Mapping[str, Floats]) -> None:
        """Multiply parameters by ``factors`` [V] in the episodes that begin next; each call adds to those before it."""
        ...

    def compose(self, models: NDArray[np.integer]) -> None:
        """Let the episodes that begin next follow these of the held-out models, [B]."""
        ...


class Wrapper(Simulator, Disturbance):
    """A simulator around ``inner``.

    Args:
        inner: the world, or another wrapper around it.
        seed: of everything that this wrapper draws.
    """

    level: ClassVar[Level]
    name: ClassVar[str]

    def __init__(self, inner: World | Wrapper, seed: int) -> None:
        self.inner, self.seed = inner, seed
        self.world: World = inner.world if isinstance(inner, Wrapper) else inner
        self.batch = self.world.batch
        own = int.from_bytes(self.name.encode(), "little") % (1 << 63)
        self.random = np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, own])))
        self.world.disturbances.append(self)

    @classmethod
    def applies(cls, world: World) -> bool:  # noqa: ARG003 (most do not look)
        """Whether there is anything in ``world`` for it to disturb."""
        return True

    @property
    @override
    def observation_space(self) -> spaces.Box:
        return self.world.observation_space

    @property
    @override
    def action_space(self) -> spaces.Discrete:
        return self.world.action_space

    @property
    @override
    def advice(self) -> slice | None:
        return self.world.advice

    @property
    def situation(self) -> Situation:
        """What a policy is shown now, by the world inside."""
        return self.world.situation

    @override
    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        return self.inner.reset()

    @override
    def step(self, actions: NDArray[np.integer]) -> Step:
        return self.inner.step(actions)

    def get_state(self) -> dict[str, Any]:
        """The inner simulator's state, this wrapper's generator, and what it has drawn."""
        return {"inner": self.inner.get_state(), "random": self.random.bit_generator.state, "own": self.own()}

    @override
    def set_state(self, state: dict[str, Any]) -> None:
        self.inner.set_state(state["inner"])
        self.random.bit_generator.state = state["random"]
        self.recall(state["own"])

    def own(self) -> dict[str, NDArray[Any]]:
        """What was drawn for the present episodes, by name."""
        return {}

    def recall(self, own: dict[str, NDArray[Any]]) -> None:
        """Restore what ``own`` gave."""
        vars(self).update({name: values.copy() for name, values in own.items()})

    def begin(self, world: World) -> None:
        """Do nothing; wrappers that draw something for whole episodes override it."""

    def conditions(self, world: World) -> Conditions | None:
        """None: the conditions are neutral."""


# L4: a part of the resources is unavailable for a stretch of an episode.


class Capacity(Wrapper):
    """In a share of the episodes, others take a part of the resources during a stretch of the episode.

    Attributes:
        affected: share of episodes in which that happens.
        left: lowest and highest share of the range that stays.
        lasting: longest stretch, as a share of the episode.
    """

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "capacity"
    affected: float = 0.5
    left: tuple[float, float] = (0.4, 0.9)
    lasting: float = 0.4

    def begin(self, world: World) -> None:
        """Draw when it happens in each episode, for how long, and what stays."""
        affected = self.random.random(world.batch) < self.affected
        self.stays = np.where(affected, self.random.uniform(*self.left, world.batch), 1.0)
        self.first = self.random.integers(0, world.steps + 1, world.batch)
        self.last = self.first + self.random.uniform(0, self.lasting * world.steps, world.batch)
        self.now = np.array(0)

    def conditions(self, world: World) -> Conditions:
        """The share of each range that can be had in this step, [B]."""
        self.now = self.now + 1
        short = (self.now > self.first) & (self.now <= self.last + 1)
        return neutral(world.batch, world.channels)._replace(capacity=np.where(short, self.stays, 1.0))

    def own(self) -> dict[str, NDArray[Any]]:
        """When capacity is short, and how far."""
        return {"stays": self.stays, "first": self.first, "last": self.last, "now": self.now}


# L4: the environment's speed changes while an episode goes on, by little steps and at once.


class Drift(Wrapper):
    """Everything measured drifts by a random walk of the log, and in a share of the episodes it shifts once for good.

    Attributes:
        per_episode: standard deviation of the walk at an episode's end.
        shifted: share of episodes with a shift.
        shift: lowest and highest factor of a shift, drawn log-uniformly.
    """

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "drift"
    per_episode: float = 0.1
    shifted: float = 0.25
    shift: tuple[float, float] = (0.8, 1.5)

    def begin(self, world: World) -> None:
        """Draw where each episode shifts and by how much."""
        low, high = np.log(self.shift)
        shifted = self.random.random(world.batch) < self.shifted
        self.when = np.where(shifted, self.random.integers(0, world.steps + 1, world.batch), world.steps + 2)
        self.size = self.random.uniform(low, high, world.batch)
        self.walk = np.zeros(world.batch)
        self.now = np.array(0)

    def conditions(self, world: World) -> Conditions:
        """Advance the random walk by one step; its log, and that of the shift, slow every channel down."""
        self.now = self.now + 1
        deviation = self.per_episode / max(world.steps, 1) ** 0.5
        self.walk = self.walk + self.random.normal(0, deviation, world.batch)
        factor = self.walk + self.size * (self.now > self.when)
        return neutral(world.batch, world.channels)._replace(slowdown=factor)

    def own(self) -> dict[str, NDArray[Any]]:
        """Where each episode is in its walk."""
        return {"when": self.when, "size": self.size, "walk": self.walk, "now": self.now}


# L4: steps fail at random, and the lost share of each is repeated.


class Failures(Wrapper):
    """Each step fails with chance ``rate``, anywhere on its way."""

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "failures"
    rate: float = 0.02

    def conditions(self, world: World) -> Conditions:
        """Draw which steps fail, by the chance ``rate``, and which share of each has to be repeated, [B]."""
        fails = self.random.random(world.batch) < self.rate
        lost = self.random.random(world.batch)
        return neutral(world.batch, world.channels)._replace(repeated=np.where(fails, lost, 0.0))


# L3: episodes follow models that were fitted to executions which the policies' own model has never seen.


class HeldOut(Wrapper):
    """Every episode follows one of the held-out models; policies go on believing in their own."""

    level: ClassVar[Level] = Level.COMPOSITION
    name: ClassVar[str] = "held_out"

    @classmethod
    def applies(cls, world: World) -> bool:
        """Whether the world has models of held-out executions."""
        return world.held_out > 0

    def begin(self, world: World) -> None:
        """Draw the model of each episode."""
        if not world.held_out:
            raise ValueError("there is no model of held-out executions to draw from")
        world.compose(self.random.integers(world.held_out, size=world.batch))


# L4: heavy-tailed measurement noise.


FREEDOM = 3  # degrees of freedom of Student's t: finite variance, heavy tails
LARGEST = 10.0  # in units of the scale


class Noise(Wrapper):
    """Every measurement is multiplied by exp(``scale`` · t), t from Student's distribution, cut at ``LARGEST``."""

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "noise"
    scale: float = 0.05

    def conditions(self, world: World) -> Conditions:
        """Draw the noise of each episode and channel for this step, [B, C]."""
        drawn = self.random.standard_t(FREEDOM, (world.batch, world.channels))
        return neutral(world.batch, world.channels)._replace(noise=self.scale * np.clip(drawn, -LARGEST, LARGEST))


# L2: the parameters of an episode change: targets, weights, prices, how far runs differ, and how far estimates err.


RANGES: Mapping[str, tuple[float, float]] = {
    "target": (0.6, 1.6),
    "weight": (0.9, 1.1),
    "price": (0.9, 1.1),
    "effect": (0.5, 1.5),
    "estimate": (0.5, 1.5),
}


def of_groups(parameters: Sequence[str], groups: Collection[str]) -> list[str]:
    """Those of the parameters that belong to one of the groups."""
    return [name for name in parameters if name.partition(".")[0] in groups]


class Parameters(Wrapper):
    """Each is multiplied by a factor that is drawn log-uniformly from the range of its group."""

    level: ClassVar[Level] = Level.PARAMETERS
    name: ClassVar[str] = "parameters"
    ranges: Mapping[str, tuple[float, float]] = RANGES

    def begin(self, world: World) -> None:
        """Draw the factors of these episodes."""
        factors = {}
        for name in of_groups(world.parameters, self.ranges):
            low, high = self.ranges[name.partition(".")[0]]
            factors[name] = np.exp(self.random.uniform(np.log(low), np.log(high), world.variety))
        world.scale(factors)


# L1: episodes are drawn from a seed of their own.


class Seeds(Wrapper):
    """Without it every episode is the one that the world was made with."""

    level: ClassVar[Level] = Level.SEEDS
    name: ClassVar[str] = "seeds"

    def begin(self, world: World) -> None:
        """Give the world a seed of its own for these episodes."""
        world.reseed(int(self.random.integers(1 << 62)))


# L4: a load above that of the samples, and in bursts.


class Load(Wrapper):
    """Parameters of the groups in ``loads`` are multiplied by a fixed factor."""

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "load"
    loads: Mapping[str, float] = {"load": 1.2, "rate": 1.5, "burst": 1.5}

    @classmethod
    def applies(cls, world: World) -> bool:
        """Whether the world has a parameter in a group of ``loads``."""
        return bool(of_groups(world.parameters, cls.loads))

    def begin(self, world: World) -> None:
        """Raise the load of these episodes."""
        names = of_groups(world.parameters, self.loads)
        world.scale({name: np.full(world.variety, self.loads[name.partition(".")[0]]) for name in names})


# What makes a world less certain, one source each: see ``base`` for the contract.


WRAPPERS: tuple[type[Wrapper], ...] = (Seeds, Parameters, HeldOut, Noise, Drift, Capacity, Failures, Load)


def switched_on(level: Level, *, held_out: bool) -> tuple[type[Wrapper], ...]:
    """The wrappers of ``level``, innermost first; without held-out models the rest of what comes later still holds."""
    reached = Level.SEEDS if level is Level.TRAIN else level
    return tuple(w for w in WRAPPERS if w.level <= reached and (held_out or w is not HeldOut))


def applied(level: Level, world: World) -> tuple[type[Wrapper], ...]:
    """Those of them that have something to disturb in ``world``."""
    return tuple(w for w in switched_on(level, held_out=True) if w.applies(world))


def wrapped(world: World, level: Level, seed: int) -> World | Wrapper:
    """``world`` with everything switched on that ``level`` randomises, drawn from ``seed``."""
    outermost: World | Wrapper = world
    for wrapper in applied(level, world):
        outermost = wrapper(outermost, seed)
    return outermost
