"""The learner interface between algorithms and executors.

Shapes: B environments or examples, D observation entries, N actions, H recurrent units, P parameters.

A learner is three pure functions, `init`, `act` and `update(state, batch) → (state, statistics)`: what it has learned
is in the `State` passed in and returned, and random numbers come from the generator passed in. It also provides the
`Buffer` for its batches, and the export of its policy. `workers.learning.agent.Agent` combines them for executors,
which contain the loop. `workers.learning.algorithms.registry` tells how to add an algorithm.
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
"""NumPy arrays by name."""
Exported = tuple[str, dict[str, Any], dict[str, NDArray[Any]]]
"""A policy's type ("network", "table"), config and arrays, for the artifact."""


class ActResult(NamedTuple):
    """Result of `act` for B environments.

    Attributes:
        action: index of the action, [B].
        log_prob: natural log of the behaviour policy's probability of the action, [B]; zeros for value-based learners.
        carry: recurrent memory for the next step, [B, H]; None for policies without memory.
    """

    action: Actions
    log_prob: NDArray[np.float32]
    carry: NDArray[np.float32] | None = None


class Experience(NamedTuple):
    """One slab: a transition from each of B environments, every array [B, …].

    Observations have D entries, masks are true for the legal ones of N actions, `done` is true where no rewards follow.
    `next_observation` is the true successor, not the first observation of a new episode. `log_prob` is the natural log
    of the action's probability. `discount` is a factor (0 to 1) on later rewards besides γ; None: 1.
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
    """A learner's immutable state: arrays of its backend by name, and plain values (such as `updates`) by name."""

    arrays: Mapping[str, Array]
    values: Mapping[str, Any]
    cuts: dict[str, Mapping[str, Array]] = field(default_factory=dict, compare=False, repr=False)
    """Cache of the flat vectors cut into variables: vector's name → variable's name → array."""

    def but(self, arrays: Mapping[str, Array], **values: Any) -> "State":
        """Return a copy with the given arrays and values replaced or added."""
        return State({**self.arrays, **arrays}, {**self.values, **values})


class Batch(NamedTuple):
    """The data of one update.

    Attributes:
        arrays: examples [n, …] by the names of the learner's inputs.
        progress: share of the training that is done, 0 to 1, for schedules.
        places: indices [n] of the examples in the replay memory; None for examples from elsewhere.
    """

    arrays: Host
    progress: float
    places: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class LearnStats:
    """Statistics of one or more updates.

    Attributes:
        updates: number of parameter updates.
        loss: mean loss over the updates.
        rate: learning rate of the last update.
        exploration: mean ε, temperature or policy entropy (nats); None where the learner has none.
        errors: absolute error of each example, [n], for its priority; None without priorities.
    """

    updates: int
    loss: float
    rate: float
    exploration: float | None = None
    errors: NDArray[np.float32] | None = field(default=None, compare=False)


class Buffer(Protocol):
    """A store of transitions that turns them into the batches of updates.

    Attributes:
        slabs: number of slabs (a step in each environment) per entry.
        updates: largest number of updates after one entry.
    """

    slabs: int
    updates: int

    @property
    def size(self) -> int:
        """Number of stored transitions; 0 for a buffer that uses each transition only once."""

    def collect(self, experience: Experience, carry: NDArray[np.float32] | None = None) -> Host | None:
        """Add a transition of each environment, [B, …]; return the entry for `insert` that is complete now, or None.

        An entry is valid until the next call. ``carry``: recurrent memory [B, H] before the step; None: no memory.
        """

    def insert(self, entry: Host) -> None:
        """Store an entry that `collect` returned here or in another process."""

    def batches(self, progress: float) -> Iterator[Batch]:
        """Yield the batches of the updates due at ``progress`` (0 to 1), each drawn after `correct` of the previous."""

    def correct(self, batch: Batch, stats: LearnStats) -> None:
        """Update the priorities of a batch's examples by the errors in an update's statistics, if both exist."""

    def entry(self, batch: int) -> Host:
        """Return a zero-filled entry of ``batch`` environments, to receive data; ValueError for unknown shapes."""

    def state(self, *, memory: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and plain values for `restore`, by name; with ``memory`` including the transitions."""

    def restore(self, arrays: Host, values: Mapping[str, Any]) -> None:
        """Restore arrays and plain values that `state` returned; KeyError if one is missing."""


class Learner(Protocol):
    """Interface of algorithms, which act and learn by pure functions of a ``State``.

    Attributes:
        backend: the numeric library of the state's arrays.
        schedule: ε or temperature by environment; zeros for a stochastic policy.
        acting: names of the state's arrays that `act` depends on.
        shared: names of the state's arrays that `gradient` depends on.
    """

    backend: Backend
    schedule: Schedule
    acting: tuple[str, ...]
    shared: tuple[str, ...]

    def init(self, rng: np.random.Generator) -> State:
        """Return the state before the first update, with initial parameters drawn by ``rng``."""

    def buffer(self, rng: np.random.Generator) -> Buffer:
        """Return a new empty buffer that draws its batches with ``rng``."""

    def act(
        self,
        state: State,
        observation: Observations,
        mask: Masks,
        exploration: NDArray[np.float32],
        rng: np.random.Generator,
        carry: NDArray[np.float32] | None = None,
    ) -> ActResult:
        """Choose an action for each of B environments.

        Args:
            state: the learner's present state.
            observation: [B, D].
            mask: true for the legal ones of N actions, [B, N].
            exploration: ε or temperature by environment, [B].
            rng: draws the exploration.
            carry: recurrent memory before the step, [B, H]; None: an episode's start, or no memory.
        """

    def update(self, state: State, batch: Batch, rng: np.random.Generator) -> tuple[State, LearnStats]:
        """Learn from a batch; return the new state, and statistics. ``rng`` draws minibatches."""

    def values(self, state: State, observation: Observations, mask: Masks) -> NDArray[np.float32]:
        """Return the exported policy's values [B, N] for ``observation`` [B, D]; ``mask`` [B, N]: legal actions."""

    def export(self, state: State) -> Exported:
        """Return the policy's type ("network", "table", "scorer" of candidates), config, and NumPy arrays by name.

        Raises:
            ValueError: there is no usable policy yet.
        """


@runtime_checkable
class Differentiable(Protocol):
    """A learner whose update is a gradient, computable in another process, and a step along it (Mnih et al., 2016)."""

    def gradient(self, state: State, batch: Batch) -> tuple[Array, LearnStats]:
        """Return the gradient [P] of the mean loss on a batch by P parameters, and statistics."""

    def apply(self, state: State, gradient: Array, progress: float) -> State:
        """Return the state after a step along a gradient [P], at the learning rate of ``progress`` (0 to 1)."""


@runtime_checkable
class WarmStartable(Protocol):
    """A learner that can start from the arrays of an exported policy."""

    def start(self, state: State, arrays: Host, config: Mapping[str, Any] | None = None) -> State:
        """Return ``state`` with the parameters of a published policy.

        Args:
            state: state of this learner.
            arrays: the policy's arrays by name.
            config: the policy's config, which must describe the same network as this learner's; None: not compared.

        Raises:
            ValueError: the arrays or the config are of another network, as the message describes; or the config is
                None, and the policy is a table.
        """


@runtime_checkable
class Imitating(Protocol):
    """A learner that can learn from an expert's transitions."""

    def imitate(
        self, state: State, buffer: Buffer, slabs: Iterable[Experience], rng: np.random.Generator
    ) -> tuple[State, LearnStats]:
        """Learn from the transitions of an expert before the training; return the new state, and statistics.

        Raises:
            ValueError: too few transitions, or the config has no imitation.
        """


def combine_stats(learn_stats: list[LearnStats]) -> LearnStats | None:
    """Combine statistics: sum of updates, mean loss, last rate and exploration; None if there were no updates."""
    learned = [stats for stats in learn_stats if stats.updates]
    if not learned:
        return None
    loss = sum(stats.loss for stats in learned) / len(learned)
    return LearnStats(sum(stats.updates for stats in learned), loss, learned[-1].rate, learned[-1].exploration)
