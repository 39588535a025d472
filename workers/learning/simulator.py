"""Interface of simulators for one agent and for several, their description as data, and demonstrations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy
from app.kinds.registry import read_spec
from workers import plugins
from workers.inputs import Conditions, Workload
from workers.learning.algorithms.base import Experience
from workers.learning.algorithms.config import DQN, ActorCritic, Config


class Step(NamedTuple):
    """Result of a step in B environments with D observation entries and N actions.

    Attributes:
        observation: observation for the next decision (after a reset where an episode ended), [B, D].
        mask: whether each action is legal in the next decision, [B, N].
        reward: reward for learners, scaled to order 1, [B].
        done: whether the episode ended with this step, [B].
        final_observation: observation before that reset; equal to ``observation`` where no episode ended, [B, D].
        discount: factor (0 to 1) on later rewards besides the learner's γ, for decisions of unequal duration, [B];
            None: 1.
        truncated: whether the episode was only cut off by a time limit, [B]; rewards then continue with
            ``observation``, the first of the next episode, which equals ``final_observation``. None: no episode was.
    """

    observation: NDArray[np.float32]
    mask: NDArray[np.bool_]
    reward: NDArray[np.float32]
    done: NDArray[np.bool_]
    final_observation: NDArray[np.float32]
    discount: NDArray[np.float32] | None = None
    truncated: NDArray[np.bool_] | None = None

    @property
    def terminated(self) -> NDArray[np.bool_]:
        """Whether no rewards follow after the step, [B]: the episode ended and was not truncated."""
        return self.done if self.truncated is None else self.done & ~self.truncated


class Simulator(Protocol):
    """B environments in lock-step, with D observation entries and N actions each.

    Attributes:
        batch: number B of environments.
    """

    batch: int

    @property
    def observation_space(self) -> spaces.Box:
        """Observation space of one environment, a Box of shape [D], or [K, F] for K candidates."""
        ...

    @property
    def action_space(self) -> spaces.Discrete:
        """Action space of one environment, N actions."""
        ...

    @property
    def advice(self) -> slice | None:
        """Slice of the features that score each action or candidate in the reward's unit; None without such scores."""
        ...

    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Begin B episodes; return observations [B, D] and masks of legal actions [B, N]."""
        ...

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Take the actions [B], one index per environment; restart ended episodes."""
        ...

    def get_state(self) -> dict[str, Any]:
        """Return the state, arrays and plain values by name, from which ``set_state`` resumes bit-equal."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Resume from a state that ``get_state`` returned."""
        ...


# Interface of simulators with several agents: B environments in lock-step, in each of which all agents act.
#
# An agent gets only its own observation, mask and reward. Ended episodes restart by themselves, as with ``Simulator``.


class Role(NamedTuple):
    """One agent's observation space [D] and action space (N actions)."""

    observation: spaces.Box
    actions: spaces.Discrete


class MaskedObservation(NamedTuple):
    """One agent's observation [B, D] and mask of legal actions [B, N] before a decision."""

    observation: NDArray[np.float32]
    mask: NDArray[np.bool_]


@runtime_checkable
class JointSimulator(Protocol):
    """B environments in lock-step, each with the same set of agents.

    Attributes:
        batch: number B of environments.
    """

    batch: int

    @property
    def roles(self) -> Mapping[str, Role]:
        """Observation and action space of every agent, by name."""
        ...

    def reset(self) -> Mapping[str, MaskedObservation]:
        """Begin B episodes; return first observations [B, D] and masks [B, N] by agent."""
        ...

    def step(self, actions: Mapping[str, NDArray[np.integer]]) -> Mapping[str, Step]:
        """Take all agents' actions, [B] by agent, simultaneously; return each agent's view of the step."""
        ...

    def get_state(self) -> dict[str, Any]:
        """Return the state, arrays and plain values by name, from which ``set_state`` resumes bit-equal."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Resume from a state that ``get_state`` returned."""
        ...


# Simulators as data, for other processes to make; contains no executable code.


class SimulatorSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Description of a simulator for learners, as data.

    Attributes:
        kind: name in the entry-point group ``steward.learned_kinds``, whose object makes the simulator.
        spec: the workload's spec as JSON.
        model: the workload's domain model, serialised by its kind.
        batch: number of environments in lock-step.
        seed: seed of all random numbers.
        options: plain values that the kind interprets.
    """

    kind: str
    spec: bytes
    model: bytes
    batch: int
    seed: int
    options: Mapping[str, Any] = {}

    def make(self) -> Simulator:
        """Make the simulator for one agent.

        Raises:
            PluginError: no such kind is installed.
            ValueError: the kind has no simulator, spec or model is invalid, or the simulator is for several agents.
        """
        world = self.make_any()
        if isinstance(world, JointSimulator):
            raise ValueError(f"{', '.join(world.roles)} learn together: the executor 'serial' has them do so, no other")
        return world

    def make_any(self) -> Simulator | JointSimulator:
        """Make the simulator for one or several agents.

        Raises:
            PluginError: no such kind is installed.
            ValueError: the kind has no simulator, or spec or model is invalid.
        """
        kind = plugins.load(plugins.LEARNED_KINDS, self.kind)
        workload = Workload(read_spec(json.loads(self.spec)), self.model)
        conditions = Conditions(self.batch, self.seed, "learning", options=self.options)
        simulator: Simulator | JointSimulator = kind.simulator(workload, conditions)
        return simulator

    def with_seed(self, seed: int) -> SimulatorSpec:
        """Return a copy with another seed."""
        return msgspec.structs.replace(self, seed=seed)


# Mean and deviation of the observations' entries before any learning.


AnyConfig = TypeVar("AnyConfig", bound=Config)
SLABS = 64  # slabs of random play
LEAST = 0.25  # least deviation to scale by, as entries are of order 1
DIGITS = 4


def with_standardisation(config: AnyConfig, simulator: Simulator, seed: int) -> AnyConfig:
    """Return the config with its network's `centre` and `scale`: mean and deviation of observations in random play.

    Configs with a scorer, a recurrent core or no network are returned unchanged.

    Args:
        config: settings of any algorithm.
        simulator: a fresh simulator, which is unusable for training afterwards.
        seed: seed of the random legal actions.
    """
    if not isinstance(config, DQN | ActorCritic) or config.network.scorer is not None:
        return config
    if isinstance(config, ActorCritic) and config.recurrent:
        return config
    rng, (observation, mask), results = np.random.default_rng(seed), simulator.reset(), []
    for _ in range(SLABS):
        results.append(observation)
        observation, mask, *_ = simulator.step((rng.random(mask.shape) * mask).argmax(axis=1))
    history = np.concatenate(results).astype(np.float64)
    apart = history.std(axis=0)
    spread = np.where(apart > 0.0, np.maximum(apart, LEAST), 1.0)
    centre, scale = (tuple(float(f"{number:.{DIGITS}g}") for number in part) for part in (history.mean(axis=0), spread))
    network = msgspec.structs.replace(config.network, centre=centre, scale=scale)
    changed: AnyConfig = msgspec.structs.replace(config, network=network)
    return changed


# Demonstrations: transitions of an expert (a heuristic of the kind, or the planner) in the simulator.


class Situated(Simulator, Protocol):
    """A simulator that also gives the situations that the service's policies (heuristics, planner) decide on."""

    @property
    def situation(self) -> Any:
        """Situation of the B environments, each at its next decision, as an argument of `Policy.act`."""
        ...


def demonstrate(simulator: Situated, policy: Policy, slabs: int) -> Iterator[Experience]:
    """Let an expert policy act from a reset on, ``slabs`` times; yield B transitions each time, with `log_prob` 0.

    Raises:
        ValueError: the expert chose an illegal action.
    """
    observation, mask = simulator.reset()
    for _ in range(slabs):
        action = np.asarray(policy.act(simulator.situation).action, np.int64)
        if not mask[np.arange(len(action)), action].all():
            raise ValueError(f"the expert {policy.name!r} chose an action that is not legal")
        step = simulator.step(action)
        sure = np.zeros(len(action), np.float32)
        reward, done, after = step.reward, step.terminated, step.final_observation
        yield Experience(observation, mask, action, reward, done, after, step.mask, sure, step.discount)
        observation, mask = step.observation, step.mask
