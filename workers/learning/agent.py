"""The agent: a learner together with its state, replay buffer and exploration schedule.

Shapes: B environments, D observation entries, N actions, P parameters.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.algorithms import registry
from workers.learning.algorithms.base import (
    Actions,
    ActResult,
    Differentiable,
    Experience,
    Exported,
    Host,
    Imitating,
    Learner,
    LearnStats,
    Masks,
    Observations,
    State,
    WarmStartable,
    combine_stats,
)
from workers.learning.algorithms.config import Config, DeviceConfig
from workers.learning.backends import Backend, backend_of, resolve
from workers.learning.components.base import sample

AnyConfig = TypeVar("AnyConfig", bound=Config)
CPU = DeviceConfig(device="cpu")
CARRY = "carry"
LADDER = 64  # environments over which the reported exploration is averaged


class Agent:
    """Mutable holder of a learner's state and buffer; contains no training loop and no logging.

    Its whole state can be saved as named arrays plus plain values, so that any executor can pause and resume it
    bit-equal (the random generator belongs to the executor and is passed in).

    Attributes:
        learner: pure functions to act and learn.
        learned: the learner's state, with the parameters.
        buffer: store of transitions: replay memory, rollout, or the last step only.
        schedule: ε or temperature by environment; executors with their own exploration replace it.
    """

    def __init__(self, learner: Learner, rng: np.random.Generator) -> None:
        self.learner, self.schedule = learner, learner.schedule
        self.learned: State = learner.init(rng)
        self.buffer = learner.buffer(rng)
        self._carry: NDArray[np.float32] | None = None
        self._acted: NDArray[np.float32] | None = None

    @property
    def updates(self) -> int:
        """Number of parameter updates so far."""
        return int(self.learned.values.get("updates", 0))

    @property
    def report(self) -> Any:
        """Sizes of the learner's graph, and seconds that its build took; None for a learner without a graph."""
        return getattr(self.learner, "report", None)

    def act(self, observation: Observations, mask: Masks, progress: float, rng: np.random.Generator) -> ActResult:
        """Choose an action [B] for each ``observation`` [B, D], legal by ``mask`` [B, N], with exploration.

        ``progress`` (0 to 1) sets ε or temperature; ``rng`` draws the exploration.
        """
        strayed = self.schedule.epsilon(progress, len(observation))
        acted = self.learner.act(self.learned, observation, mask, strayed, rng, self._carry)
        self._acted = acted.carry
        return acted

    def greedy(self, observation: Observations, mask: Masks) -> Actions:
        """Return the index [B] of the legal action (``mask`` [B, N]) of highest value for ``observation`` [B, D]."""
        return np.where(mask, self.values(observation, mask), -np.inf).argmax(axis=1)

    def values(self, observation: Observations, mask: Masks) -> NDArray[np.float32]:
        """Return the exported policy's values [B, N] for ``observation`` [B, D]; ``mask`` [B, N]: legal actions."""
        return self.learner.values(self.learned, observation, mask)

    def collect(self, experience: Experience) -> Host | None:
        """Add the B transitions that follow `act`; return arrays [n, …] that are ready to be stored, or None."""
        batch, before = len(experience.reward), self._carry
        if self._acted is not None and (before is None or len(before) != batch):
            before = np.zeros((batch, self._acted.shape[1]), np.float32)
        entry = self.buffer.collect(experience, before)
        self._carry = None if self._acted is None else self._acted * ~experience.done[:, None]
        return entry

    def remember(self, experience: Experience) -> None:
        """Add the B transitions that follow `act`; store what is complete now (n-step transitions, a rollout)."""
        entry = self.collect(experience)
        if entry is not None:
            self.buffer.insert(entry)

    def learn(self, progress: float, rng: np.random.Generator) -> LearnStats | None:
        """Run the updates due at ``progress`` (0 to 1); return their joint statistics, or None without updates."""
        results = []
        for batch in self.buffer.batches(progress):
            self.learned, stats = self.learner.update(self.learned, batch, rng)
            self.buffer.correct(batch, stats)
            results.append(stats)
        return self._sum_stats(results, progress)

    def differentiate(self, progress: float) -> tuple[list[NDArray[np.float32]], LearnStats | None]:
        """Run the updates due at ``progress`` (0 to 1); return their gradients [P], and joint statistics or None.

        Raises:
            TypeError: the learner has no gradients.
        """
        gradients, results, learner = [], [], self.learner
        if not isinstance(learner, Differentiable):
            raise TypeError(f"{type(learner).__name__} has no gradients")
        for batch in self.buffer.batches(progress):
            gradient, stats = learner.gradient(self.learned, batch)
            self.learned = learner.apply(self.learned, gradient, progress)
            self.buffer.correct(batch, stats)
            gradients.append(learner.backend.to_numpy(gradient))
            results.append(stats)
        return gradients, self._sum_stats(results, progress)

    def apply(self, gradient: NDArray[np.float32], progress: float) -> None:
        """Take one optimiser step along a gradient [P] of another process, at the learning rate of ``progress``.

        Raises:
            TypeError: the learner has no gradients.
        """
        learner = self.learner
        if not isinstance(learner, Differentiable):
            raise TypeError(f"{type(learner).__name__} has no gradients")
        self.learned = learner.apply(self.learned, learner.backend.asarray(gradient), progress)

    def _sum_stats(self, learn_stats: list[LearnStats], progress: float) -> LearnStats | None:
        stats = combine_stats(learn_stats)
        if stats is None or stats.exploration is not None:
            return stats
        explored = float(self.schedule.epsilon(progress, LADDER).mean())
        return LearnStats(stats.updates, stats.loss, stats.rate, explored)

    def imitate(self, slabs: Iterable[Experience], rng: np.random.Generator) -> LearnStats:
        """Learn from an expert's transitions before the training; return the updates' statistics.

        Raises:
            ValueError: the learner cannot imitate, or there are too few transitions.
        """
        if not isinstance(self.learner, Imitating):
            raise ValueError(f"{type(self.learner).__name__} can't imitate an expert")
        self.learned, stats = self.learner.imitate(self.learned, self.buffer, slabs, rng)
        return stats

    def start_from(self, arrays: Host, config: Mapping[str, Any] | None = None) -> None:
        """Warm-start from a published policy's arrays; its ``config`` is checked unless None.

        Raises:
            ValueError: the arrays are of another network, or the learner cannot warm-start.
        """
        if not isinstance(self.learner, WarmStartable):
            raise ValueError(f"{type(self.learner).__name__} can't go on from what was published")
        self.learned = self.learner.start(self.learned, arrays, config)

    def state(self, *, memory: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays and plain values, by name, for `restore`; ``memory``: with the buffer's transitions."""
        host = self.learner.backend.to_numpy
        buffered, values = self.buffer.state(memory=memory)
        arrays = {name: host(value).copy() for name, value in self.learned.arrays.items()}
        carried = {} if self._carry is None else {CARRY: self._carry.copy()}
        return {**arrays, **buffered, **carried}, {**values, **self.learned.values}

    def restore(self, arrays: Host, values: Mapping[str, Any]) -> None:
        """Restore arrays and plain values that `state` returned; KeyError if a value is missing."""
        give = self.learner.backend.asarray
        result = {name: give(arrays[name].copy()) for name in self.learned.arrays if name in arrays}
        self.learned = self.learned.but(result, **{name: values[name] for name in self.learned.values})
        self.buffer.restore(arrays, values)
        self._carry = np.array(arrays[CARRY]) if CARRY in arrays else None

    def parameters(self, names: tuple[str, ...] | None = None) -> NDArray[np.float32]:
        """Return a copy of the state's arrays ``names`` (None: those that `act` needs), concatenated to [P]."""
        host, wanted = self.learner.backend.to_numpy, self.learner.acting if names is None else names
        return np.concatenate([host(self.learned.arrays[name]).reshape(-1) for name in wanted])

    def load(self, parameters: NDArray[np.float32], names: tuple[str, ...] | None = None) -> None:
        """Replace the state's arrays ``names`` (None: those that `act` needs) by a vector [P] from `parameters`."""
        wanted = self.learner.acting if names is None else names
        shapes = [self.learned.arrays[name].shape for name in wanted]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        parts = np.split(np.array(parameters, np.float32), ends[:-1])
        values = {
            name: self.learner.backend.asarray(value.reshape(tuple(shape)))
            for name, value, shape in zip(wanted, parts, shapes, strict=True)
        }
        self.learned = self.learned.but(values)

    def export(self) -> Exported:
        """Return type ("network", "table", "scorer" of candidates), config and arrays; ValueError without a policy."""
        return self.learner.export(self.learned)


def make_agent(
    config: Config,
    observation: spaces.Box,
    actions: spaces.Discrete,
    advice: slice | None,
    rng: np.random.Generator,
    backend: Backend | None = None,
) -> Agent:
    """Build the agent of a config for an environment's spaces.

    Args:
        config: settings, whose type determines the algorithm.
        observation: Box of shape [D], or [K, F] for a set of K candidates.
        actions: Discrete(N).
        advice: slice of the features that score each candidate in the reward's unit; None without such scores.
        rng: draws initial parameters, and later batches; owned by the executor.
        backend: replaces the config's, for example a backend without gradients for an actor; None: the config's.

    Raises:
        BuildError, ValueError: the config does not fit the spaces.
        BackendError: the config's device is unavailable.
    """
    agent_spaces = registry.AgentSpaces(observation, actions, advice)
    if backend is None:
        place = getattr(choose_device(config, observation, actions, advice), "place", CPU)
        backend = _learning_backend(config, place)
    return _built(config, agent_spaces, backend, rng)


def choose_device(
    config: AnyConfig, observation: spaces.Box, actions: spaces.Discrete, advice: slice | None, slab: int = 2_048
) -> AnyConfig:
    """Return the config with its device chosen; ``auto`` is decided by timing the config's own updates.

    A training that must resume bit-equal elsewhere stores the device chosen at its start.

    Args:
        config: settings; returned unchanged without a field `place`.
        observation: Box of shape [D], or [K, F] for a set of K candidates.
        actions: Discrete(N).
        advice: slice of the features that score each candidate in the reward's unit; None without such scores.
        slab: number of environments in lock-step while timing.

    Raises:
        BackendError: the config's device is unavailable.
    """
    place = getattr(config, "place", None)
    if place is None:
        return config

    def trial(place: DeviceConfig) -> Callable[[], None]:
        rng, spaces = np.random.default_rng(0), registry.AgentSpaces(observation, actions, advice)
        agent = _built(config, spaces, _learning_backend(config, place), rng)
        return _until_learned(agent, sample(observation, slab, rng), int(actions.n), rng)

    return msgspec.structs.replace(config, place=resolve(place, trial))


def _learning_backend(config: Config, place: DeviceConfig) -> Backend:
    return backend_of(place, own_gradients=getattr(config, "own_gradients", False))


def _built(config: Config, spaces: registry.AgentSpaces, backend: Backend, rng: np.random.Generator) -> Agent:
    return Agent(registry.algorithm_of(config).learner(config, spaces, backend), rng)


def _until_learned(agent: Agent, view: Observations, actions: int, rng: np.random.Generator) -> Callable[[], None]:
    """Return the function to time: it adds random transitions until the agent has run its updates once."""
    slab, mask = len(view), np.ones((len(view), actions), np.bool_)
    reward, done = rng.standard_normal(slab, np.float32), rng.random(slab) < 1 / 32

    def work() -> None:
        stats = None
        while stats is None:
            acted = agent.act(view, mask, 0.5, rng)
            agent.remember(Experience(view, mask, acted.action, reward, done, view, mask, acted.log_prob))
            stats = agent.learn(0.5, rng)

    return work
