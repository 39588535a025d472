"""Disturbances of evaluation worlds, by level: seeds, parameters, noise, drift, failures, load, capacity.

Shapes: B episodes, C channels (measured quantities), V parameter sets, T reward terms, O outcomes.
"""

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

# Interface of worlds that can be disturbed, and of the wrappers that disturb them.
#
# A *world* is a simulator that also gives the policy's situation and the unscaled reward, and queries its
# *disturbances* before every episode and step. A *wrapper* is a simulator around a simulator: it registers with the
# innermost world as a disturbance, and forwards all calls. So wrappers compose in any order, are independent of the
# kind, and also act when the world restarts episodes itself. ``tests/workers/evaluation/test_wrappers.py`` covers every
# member of ``WRAPPERS``.


Floats = NDArray[np.float64]


class Conditions(NamedTuple):
    """Effect of the environment on one step of B episodes with C channels (measured quantities).

    Attributes:
        slowdown: addend to the natural log of every channel, [B].
        noise: addend to the natural log of each channel in this step only, [B, C].
        repeated: share (0 to 1) of the step's work that has to be repeated, [B].
        capacity: available share (0 to 1) of each resource's range above its minimum, [B].
    """

    slowdown: Floats
    noise: Floats
    repeated: Floats
    capacity: Floats

    def combine(self, other: Conditions) -> Conditions:
        """Return both conditions of one step together: logs and repeated shares add up, the smaller capacity holds."""
        return Conditions(
            self.slowdown + other.slowdown,
            self.noise + other.noise,
            self.repeated + other.repeated,
            np.minimum(self.capacity, other.capacity),
        )


def neutral(batch: int, channels: int) -> Conditions:
    """Return conditions without effect for ``batch`` episodes and ``channels`` measured quantities."""
    return Conditions(np.zeros(batch), np.zeros((batch, channels)), np.zeros(batch), np.ones(batch))


class Disturbance(Protocol):
    """A source of conditions, queried by a world before every episode and every step."""

    def begin(self, world: World) -> None:
        """Draw this source's random values for the next episodes, and set ``world`` up for them."""
        ...

    def conditions(self, world: World) -> Conditions | None:
        """Return the conditions of the next step; None if they have no effect."""
        ...


class World(Simulator, Protocol):
    """A simulator of one kind for evaluations, open to disturbances.

    All B episodes begin together: an episode that has ended waits with reward 0 until all have ended.

    Attributes:
        channels: number C of measured quantities per step.
        steps: maximal number of decisions in an episode.
        parameters: names of the parameters that can be scaled, such as "price.cpu" (group and detail).
        variety: number V of different parameter sets among the episodes.
        held_out: number of models of held-out executions.
        disturbances: sources of conditions, queried in this order.
        terms: reward terms of the last step (after a reset: of the time before the first decision), [B, T].
        paid: unscaled reward of the last step, [B].
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
        """Index of each episode's group of dependent episodes, [B]; None: all are independent."""
        ...

    @property
    def outcome_increments(self) -> NDArray[np.floating]:
        """Increase of each of O outcomes in the last step, in users' units, [B, O]."""
        ...

    @property
    def situation(self) -> Situation:
        """Situation of the B episodes, each at its next decision."""
        ...

    def reseed(self, seed: int) -> None:
        """Let the next episodes differ from each other, with all random numbers from ``seed``."""
        ...

    def scale(self, factors: Mapping[str, Floats]) -> None:
        """Multiply parameters, by name, by ``factors`` [V] in the next episodes; other names keep their factors."""
        ...

    def compose(self, models: NDArray[np.integer]) -> None:
        """Let the next B episodes follow the held-out models of the indices ``models`` [B]."""
        ...


class Wrapper(Simulator, Disturbance):
    """A simulator around ``inner`` that disturbs its world.

    Args:
        inner: the world, or another wrapper around it.
        seed: seed of the wrapper's random numbers.
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
        """Return whether ``world`` has anything for this wrapper to disturb; by default True."""
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
        """Situation of the inner world's B episodes, each at its next decision."""
        return self.world.situation

    @override
    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        return self.inner.reset()

    @override
    def step(self, actions: NDArray[np.integer]) -> Step:
        return self.inner.step(actions)

    def get_state(self) -> dict[str, Any]:
        """Return the states of inner simulator and random generator, and the values drawn for the present episodes."""
        return {"inner": self.inner.get_state(), "random": self.random.bit_generator.state, "own": self.own()}

    @override
    def set_state(self, state: dict[str, Any]) -> None:
        self.inner.set_state(state["inner"])
        self.random.bit_generator.state = state["random"]
        self.recall(state["own"])

    def own(self) -> dict[str, NDArray[Any]]:
        """Return the values drawn for the present episodes, by attribute name; none by default."""
        return {}

    def recall(self, own: dict[str, NDArray[Any]]) -> None:
        """Restore the attributes that ``own`` returned, copying their arrays."""
        vars(self).update({name: values.copy() for name, values in own.items()})

    def begin(self, world: World) -> None:
        """Do nothing; subclasses with values per episode override this."""

    def conditions(self, world: World) -> Conditions | None:
        """Return None, that is neutral conditions; subclasses override this."""


# L4: part of the resources is unavailable during some period of an episode.


class Capacity(Wrapper):
    """Wrapper that reduces the capacity during a random period in a share of the episodes.

    Attributes:
        affected: share (0 to 1) of episodes with such a period.
        left: lowest and highest remaining share (0 to 1) of the resources' range.
        lasting: longest period, as a share of the episode's steps.
    """

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "capacity"
    affected: float = 0.5
    left: tuple[float, float] = (0.4, 0.9)
    lasting: float = 0.4

    def begin(self, world: World) -> None:
        """Draw the period and the remaining share of each episode."""
        affected = self.random.random(world.batch) < self.affected
        self.stays = np.where(affected, self.random.uniform(*self.left, world.batch), 1.0)
        self.first = self.random.integers(0, world.steps + 1, world.batch)
        self.last = self.first + self.random.uniform(0, self.lasting * world.steps, world.batch)
        self.now = np.array(0)

    def conditions(self, world: World) -> Conditions:
        """Return this step's conditions: capacity [B] is the share of the resources' range, 1 outside the period."""
        self.now = self.now + 1
        short = (self.now > self.first) & (self.now <= self.last + 1)
        return neutral(world.batch, world.channels)._replace(capacity=np.where(short, self.stays, 1.0))

    def own(self) -> dict[str, NDArray[Any]]:
        """Return period (steps) and remaining share of each episode, [B] each, and the present step."""
        return {"stays": self.stays, "first": self.first, "last": self.last, "now": self.now}


# L4: the environment's speed drifts and shifts during an episode.


class Drift(Wrapper):
    """Wrapper that adds a random walk to the natural log of all measurements, and to some episodes one permanent shift.

    Attributes:
        per_episode: standard deviation of the walk at the episode's end, in natural log units.
        shifted: share (0 to 1) of episodes with a shift.
        shift: lowest and highest factor of a shift, drawn log-uniformly.
    """

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "drift"
    per_episode: float = 0.1
    shifted: float = 0.25
    shift: tuple[float, float] = (0.8, 1.5)

    def begin(self, world: World) -> None:
        """Draw step and size of each episode's shift."""
        low, high = np.log(self.shift)
        shifted = self.random.random(world.batch) < self.shifted
        self.when = np.where(shifted, self.random.integers(0, world.steps + 1, world.batch), world.steps + 2)
        self.size = self.random.uniform(low, high, world.batch)
        self.walk = np.zeros(world.batch)
        self.now = np.array(0)

    def conditions(self, world: World) -> Conditions:
        """Advance the walk by a step; return conditions whose slowdown [B] is walk plus shift, in natural log units."""
        self.now = self.now + 1
        deviation = self.per_episode / max(world.steps, 1) ** 0.5
        self.walk = self.walk + self.random.normal(0, deviation, world.batch)
        factor = self.walk + self.size * (self.now > self.when)
        return neutral(world.batch, world.channels)._replace(slowdown=factor)

    def own(self) -> dict[str, NDArray[Any]]:
        """Return step and size of each episode's shift, the walk's present value, [B] each, and the present step."""
        return {"when": self.when, "size": self.size, "walk": self.walk, "now": self.now}


# L4: steps fail at random, and the lost share of each is repeated.


class Failures(Wrapper):
    """Wrapper that makes each step fail with probability ``rate``; a random share (0 to 1) of its work is repeated."""

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "failures"
    rate: float = 0.02

    def conditions(self, world: World) -> Conditions:
        """Return conditions whose repeated share [B] is drawn uniformly where the step fails, and 0 elsewhere."""
        fails = self.random.random(world.batch) < self.rate
        lost = self.random.random(world.batch)
        return neutral(world.batch, world.channels)._replace(repeated=np.where(fails, lost, 0.0))


# L3: episodes follow models fitted to executions that the policies' own model has not seen.


class HeldOut(Wrapper):
    """Wrapper that lets every episode follow one of the held-out models, while policies keep using their own model."""

    level: ClassVar[Level] = Level.COMPOSITION
    name: ClassVar[str] = "held_out"

    @classmethod
    def applies(cls, world: World) -> bool:
        """Return whether ``world`` has models of held-out executions."""
        return world.held_out > 0

    def begin(self, world: World) -> None:
        """Draw the held-out model of each episode.

        Raises:
            ValueError: the world has no held-out model.
        """
        if not world.held_out:
            raise ValueError("there is no model of held-out executions to draw from")
        world.compose(self.random.integers(world.held_out, size=world.batch))


# L4: heavy-tailed measurement noise.


FREEDOM = 3  # degrees of freedom of Student's t: finite variance, heavy tails
LARGEST = 10.0  # largest |t| of the noise


class Noise(Wrapper):
    """Wrapper that multiplies measurements by exp(``scale`` · t), with Student's t (3 degrees of freedom) in ± 10."""

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "noise"
    scale: float = 0.05

    def conditions(self, world: World) -> Conditions:
        """Return conditions with the noise [B, C] of this step drawn for each episode and channel."""
        drawn = self.random.standard_t(FREEDOM, (world.batch, world.channels))
        return neutral(world.batch, world.channels)._replace(noise=self.scale * np.clip(drawn, -LARGEST, LARGEST))


# L2: the parameters of an episode change: targets, weights, prices, spread of run effects, and errors of estimates.


RANGES: Mapping[str, tuple[float, float]] = {
    "target": (0.6, 1.6),
    "weight": (0.9, 1.1),
    "price": (0.9, 1.1),
    "effect": (0.5, 1.5),
    "estimate": (0.5, 1.5),
}


def of_groups(parameters: Sequence[str], groups: Collection[str]) -> list[str]:
    """Return the parameters (named "group.detail") that belong to one of the groups."""
    return [name for name in parameters if name.partition(".")[0] in groups]


class Parameters(Wrapper):
    """Wrapper that multiplies each parameter by a factor drawn log-uniformly from its group's range of factors."""

    level: ClassVar[Level] = Level.PARAMETERS
    name: ClassVar[str] = "parameters"
    ranges: Mapping[str, tuple[float, float]] = RANGES

    def begin(self, world: World) -> None:
        """Draw the parameters' factors [V] for the next episodes."""
        factors = {}
        for name in of_groups(world.parameters, self.ranges):
            low, high = self.ranges[name.partition(".")[0]]
            factors[name] = np.exp(self.random.uniform(np.log(low), np.log(high), world.variety))
        world.scale(factors)


# L1: episodes are drawn from a seed of their own.


class Seeds(Wrapper):
    """Wrapper that draws every episode anew; without it all episodes are the single one of the world's seed."""

    level: ClassVar[Level] = Level.SEEDS
    name: ClassVar[str] = "seeds"

    def begin(self, world: World) -> None:
        """Draw a new seed for the world's next episodes."""
        world.reseed(int(self.random.integers(1 << 62)))


# L4: more load than in the samples, and in bursts.


class Load(Wrapper):
    """Wrapper that multiplies the parameters of the groups in ``loads`` by the group's fixed factor."""

    level: ClassVar[Level] = Level.ENVIRONMENT
    name: ClassVar[str] = "load"
    loads: Mapping[str, float] = {"load": 1.2, "rate": 1.5, "burst": 1.5}

    @classmethod
    def applies(cls, world: World) -> bool:
        """Return whether ``world`` has a parameter in a group of ``loads``."""
        return bool(of_groups(world.parameters, cls.loads))

    def begin(self, world: World) -> None:
        """Multiply the load parameters of the next episodes by the factors in ``loads``."""
        names = of_groups(world.parameters, self.loads)
        world.scale({name: np.full(world.variety, self.loads[name.partition(".")[0]]) for name in names})


# All wrappers, one per source of randomness.


WRAPPERS: tuple[type[Wrapper], ...] = (Seeds, Parameters, HeldOut, Noise, Drift, Capacity, Failures, Load)


def switched_on(level: Level, *, held_out: bool) -> tuple[type[Wrapper], ...]:
    """Return the wrapper classes of ``level``, innermost first; ``HeldOut`` only with ``held_out``."""
    reached = Level.SEEDS if level is Level.TRAIN else level
    return tuple(w for w in WRAPPERS if w.level <= reached and (held_out or w is not HeldOut))


def applicable_wrappers(level: Level, world: World) -> tuple[type[Wrapper], ...]:
    """Return the wrapper classes of ``level`` that have something to disturb in ``world``, innermost first."""
    return tuple(w for w in switched_on(level, held_out=True) if w.applies(world))


def wrap_world(world: World, level: Level, seed: int) -> World | Wrapper:
    """Wrap ``world`` with all wrappers of ``level``, each seeded with ``seed``; return the outermost simulator."""
    outermost: World | Wrapper = world
    for wrapper in applicable_wrappers(level, world):
        outermost = wrapper(outermost, seed)
    return outermost
