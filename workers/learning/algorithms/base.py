"""The learner contract: what an algorithm is to an executor.

A learner is three pure functions, `init`, `act` and `update(state, batch) → (state, statistics)`: what it knows is in
the `State` that is handed in and returned, and luck comes from the generator that is handed in. It says which `Buffer`
gathers its batches, and what it exports. `workers.learning.agent.Agent` joins the three for executors, which loop.

To add an algorithm: see `workers.learning.algorithms.registry`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from workers.learning.backends import Array, Backend
from workers.learning.components.exploration import Schedule

Observations = NDArray[np.float32]  # [B, D]
Masks = NDArray[np.bool_]  # [B, N]
Actions = NDArray[np.int64]  # [B]
Host = Mapping[str, NDArray[Any]]
"""Arrays of this process, by name."""
Exported = tuple[str, dict[str, Any], dict[str, NDArray[Any]]]
"""A policy's type ("network", "table"), its config and its arrays, for the artifact."""


class Acted(NamedTuple):
    """What `act` returns for B environments.

    Attributes:
        action: [B].
        log_prob: logarithm of the probability with which the behaviour drew the action, [B]; zeros where nobody asks.
        carry: what a recurrent network hands to its next step, [B, H]; None where nothing is carried.
    """

    action: Actions
    log_prob: NDArray[np.float32]
    carry: NDArray[np.float32] | None = None


class Experience(NamedTuple):
    """One slab of transitions, [B, …] each.

    `next_observation` is the true successor, not the first of a new episode. `discount` is as in `Step`.
    """

    observation: Observations
    mask: Masks
    action: Actions
    reward: NDArray[np.float32]
    done: NDArray[np.bool_]
    next_observation: Observations
    next_mask: Masks
    log_prob: NDArray[np.float32]
    discount: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class State:
    """All that a learner has learned: arrays of its backend, and plain values. Neither is ever written to."""

    arrays: Mapping[str, Array]
    values: Mapping[str, Any]
    cuts: dict[str, Mapping[str, Array]] = field(default_factory=dict, compare=False, repr=False)
    """Flat vectors that were cut into variables, so that this is done once."""

    def but(self, arrays: Mapping[str, Array], **values: Any) -> "State":
        """Return the state with other arrays and values in place of these."""
        return State({**self.arrays, **arrays}, {**self.values, **values})


class Batch(NamedTuple):
    """What one update learns from.

    Attributes:
        arrays: by the names of the learner's inputs.
        progress: share of the training that is done, 0 to 1, for schedules.
        places: where the examples stand in their replay memory; None where they stand in none.
    """

    arrays: Host
    progress: float
    places: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class LearnStats:
    """Figures of some updates.

    `exploration`: the mean ε, temperature or policy entropy at that time; None where the learner does not know it.
    `errors`: how wrong the examples were [n], for their priorities.
    """

    updates: int
    loss: float
    rate: float
    exploration: float | None = None
    errors: NDArray[np.float32] | None = field(default=None, compare=False)


class Buffer(Protocol):
    """What gathers experience until it makes batches.

    Attributes:
        slabs: of environment steps behind one entry.
        updates: at most, after one entry.
    """

    slabs: int
    updates: int

    @property
    def size(self) -> int:
        """Transitions that batches are drawn from; 0 where each is learned from when it comes."""

    def collect(self, experience: Experience, carry: NDArray[np.float32] | None = None) -> Host | None:
        """Take in one slab; return the entry that is then complete, or None. The entry is read before the next slab.

        `carry`: what the network carried into the slab's step, [B, H].
        """

    def insert(self, entry: Host) -> None:
        """Take in an entry, one's own or an actor's."""

    def batches(self, progress: float) -> Iterator[Batch]:
        """Yield what is due to be learned from; each is drawn after what `correct` told of the one before."""

    def correct(self, batch: Batch, stats: LearnStats) -> None:
        """Take in the outcome of an update on a batch."""

    def entry(self, batch: int) -> Host:
        """Return an empty entry of `batch` environments."""

    def state(self, *, memory: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and plain values from which `restore` goes on; `memory` with what was gathered."""

    def restore(self, arrays: Host, values: Mapping[str, Any]) -> None:
        """Go on from a state."""


class Learner(Protocol):
    """Acts and learns as pure functions of a ``State``.

    Attributes:
        backend: where its arrays are.
        schedule: how far it strays, by environment; zeros where that is a matter of its parameters.
        acting: names of the state's arrays that `act` depends on.
        shared: names of those that `gradient` depends on.
    """

    backend: Backend
    schedule: Schedule
    acting: tuple[str, ...]
    shared: tuple[str, ...]

    def init(self, rng: np.random.Generator) -> State:
        """Return the state before the first update."""

    def buffer(self, rng: np.random.Generator) -> Buffer:
        """Return a new buffer, which draws from the generator."""

    def act(
        self,
        state: State,
        observation: Observations,
        mask: Masks,
        exploration: NDArray[np.float32],
        rng: np.random.Generator,
        carry: NDArray[np.float32] | None = None,
    ) -> Acted:
        """Choose an action for each environment, straying as far as `exploration` [B] says."""

    def update(self, state: State, batch: Batch, rng: np.random.Generator) -> tuple[State, LearnStats]:
        """Learn from a batch."""

    def values(self, state: State, observation: Observations, mask: Masks) -> NDArray[np.float32]:
        """Values of every action [B, N], as the exported policy has them."""

    def export(self, state: State) -> Exported:
        """Return the policy. Raises ValueError where there is none that could be served."""


@runtime_checkable
class Differentiable(Protocol):
    """A learner whose update is a gradient, computed beside the data, and a step along it (Mnih et al., 2016)."""

    def gradient(self, state: State, batch: Batch) -> tuple[Array, LearnStats]:
        """Return the gradient [P] of a batch."""

    def apply(self, state: State, gradient: Array, progress: float) -> State:
        """Take one step of the optimiser along a gradient [P]."""


@runtime_checkable
class WarmStartable(Protocol):
    """A learner that can go on from what an earlier one exported."""

    def start(self, state: State, arrays: Host, config: Mapping[str, Any] | None = None) -> State:
        """Take over a published policy's arrays. Raises ValueError where they are of another network, saying which."""


@runtime_checkable
class Imitating(Protocol):
    """A learner that can learn from an expert's transitions."""

    def imitate(
        self, state: State, buffer: Buffer, slabs: Iterable[Experience], rng: np.random.Generator
    ) -> tuple[State, LearnStats]:
        """Learn from what an expert did. Raises ValueError where nothing was shown, or it has no place."""


def summed(found: list[LearnStats]) -> LearnStats | None:
    """Join the figures of several updates; None where nothing was learned."""
    learned = [stats for stats in found if stats.updates]
    if not learned:
        return None
    loss = sum(stats.loss for stats in learned) / len(learned)
    return LearnStats(sum(stats.updates for stats in learned), loss, learned[-1].rate, learned[-1].exploration)
