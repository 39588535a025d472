"""The contract of a world that can be disturbed, and of the wrappers that do it.

A *world* is a simulator that also shows what a policy is shown, tells what was paid, and asks its *disturbances* before
every episode and every step. A *wrapper* is a simulator around a simulator: it registers with the world inside as a
disturbance and passes everything else through. So wrappers compose in any order, know nothing of the kind, and are
still asked when the world begins an episode by itself. ``tests/workers/evaluation/test_wrappers.py`` runs over every
member of ``wrappers.WRAPPERS``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from app.kinds.contract.policy import Situation
from workers.evaluation.levels import Level
from workers.learning.simulator import Simulator, Step

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

    def combined(self, other: "Conditions") -> "Conditions":
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

    def begin(self, world: "World") -> None:
        """New episodes are about to begin: draw what holds for all of each, and set up ``world``."""
        ...

    def conditions(self, world: "World") -> Conditions | None:
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
        clusters: which of the present episodes vary together, [B]; None: each varies by itself.
        counted: what the same added to each outcome, in users' units, [B, O]; see ``Problem.outcomes``.
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
        """See the class."""
        ...

    @property
    def counted(self) -> NDArray[np.floating]:
        """See the class."""
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


class Wrapper:
    """A simulator around ``inner``.

    Args:
        inner: the world, or another wrapper around it.
        seed: of everything that this wrapper draws.
    """

    level: ClassVar[Level]
    name: ClassVar[str]

    def __init__(self, inner: "World | Wrapper", seed: int) -> None:
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
    def observation_space(self) -> spaces.Box:
        """The world's."""
        return self.world.observation_space

    @property
    def action_space(self) -> spaces.Discrete:
        """The world's."""
        return self.world.action_space

    @property
    def advice(self) -> slice | None:
        """The world's."""
        return self.world.advice

    @property
    def situation(self) -> Situation:
        """The world's."""
        return self.world.situation

    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Begin B episodes."""
        return self.inner.reset()

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Take one action per environment, [B]."""
        return self.inner.step(actions)

    def get_state(self) -> dict[str, Any]:
        """The inner simulator's state, this wrapper's generator, and what it holds."""
        return {"inner": self.inner.get_state(), "random": self.random.bit_generator.state, "own": self.own()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``get_state`` gave, to the bit."""
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
        """See ``Disturbance``; as it is: nothing."""

    def conditions(self, world: World) -> Conditions | None:
        """See ``Disturbance``; as it is: nothing."""
