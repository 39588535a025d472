"""What a compiled loop does between two looks of its host: the learner's part, by family.

A loop repeats rounds. A round of the value-based agent is one slab and the updates that are due after it; one of the
actor-critic agent is a rollout and what is learned from it. Rates and exploration of every round are told beforehand,
by the agent's own schedules.
"""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from workers.learning.algorithms.base import Agent
from workers.learning.backends.base import Array, Store
from workers.learning.backends.loop import Tree, on_device
from workers.learning.build import Bound


class Slab(NamedTuple):
    """One step of B environments, [B, …] each."""

    observation: Array
    mask: Array
    action: Array
    reward: Array
    done: Array
    log_prob: Array


class Stats(NamedTuple):
    """Sums over rounds: of the mean loss, of what is told of exploration, and how many rounds learned; updates."""

    loss: Array
    explored: Array
    rounds: Array
    updates: Array


class Told(NamedTuple):
    """What the host tells about each of K rounds: [K, …] each."""

    progress: NDArray[np.float32]
    rate: NDArray[np.float32]
    exploration: NDArray[np.float32]


class Walking(NamedTuple):
    """B environments where they stand, as a loop carries them.

    `episodes`: how many have begun in each since the beginnings were drawn. `paid`, `ended`: sum of the returns of the
    episodes that ended, and how many did.
    """

    world: Tree
    observation: Array
    mask: Array
    returns: Array
    episodes: Array
    paid: Array
    ended: Array
    luck: Array


class Luck(NamedTuple):
    """The memory of those that remember nothing from round to round but the state of their generator."""

    luck: Array


class Choice(NamedTuple):
    """What acting gives: [B] each."""

    action: Array
    log_prob: Array


class Family(Protocol):
    """A family of algorithms in a compiled loop.

    Attributes:
        agent: what is built from the config, on the jax backend; between chunks it holds what was learned.
        slabs: steps of all environments in a round.
    """

    agent: Agent
    slabs: int

    def told(self, progress: NDArray[np.float64], batch: int) -> Told:
        """What is to be told of rounds that begin at these shares of the training, [K]."""
        ...

    def learner(self) -> Tree:
        """What is learned, from the agent."""
        ...

    def settle(self, learner: Tree) -> None:
        """Hand what was learned back to the agent."""
        ...

    def memory(self, observation: Array, mask: Array, luck: Array) -> Tree:
        """Empty storage (with `luck` as an attribute) for what is remembered, of environments that stand here."""
        ...

    def round(
        self, learner: Tree, memory: Tree, walking: Walking, told: Told, walk: "Walk"
    ) -> tuple[Tree, Tree, Walking, Stats]:
        """Do one round; `told` is of this round alone."""
        ...


Walk = Callable[[Walking, Callable[[Array, Array, Array], Choice], int], tuple[Walking, Slab]]
"""One step of all environments: from where they stand, by `choose(observation, mask, noise [B, n])` and n."""


def learned(kind: Any, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> Any:
    """A NamedTuple of what an agent's state holds under the names of its fields."""
    whole = {"updates": np.int32, "averaging": np.bool_}
    plain = {name: dtype(values[name]) for name, dtype in whole.items()}
    return on_device(kind(**{name: arrays[name] for name in kind._fields if name in arrays}, **plain))


def settle(agent: Agent, learner: Any, others: Mapping[str, Any]) -> None:
    """Hand an agent what was learned; `others` are its plain values that the loop does not know."""
    found = {name: np.array(value) for name, value in learner._asdict().items()}
    plain = {"updates": int(found.pop("updates")), "averaging": bool(found.pop("averaging"))}
    agent.restore(found, {**others, **plain})


def over(bound: Bound, flats: Mapping[str, Array]) -> Bound:
    """The same graph over other variables: flat vectors [P] by set."""
    other = copy(bound)
    found = {name: Store(flat, bound.stores[name].cut(flat), bound.stores[name].layout) for name, flat in flats.items()}
    other.stores = {**bound.stores, **found}
    return other


def nothing(xp: Any) -> Stats:
    """Sums over no rounds."""
    return Stats(xp.zeros(()), xp.zeros(()), xp.zeros((), xp.int32), xp.zeros((), xp.int32))
