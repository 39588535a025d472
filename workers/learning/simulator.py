"""The contract of simulators, of one agent and of several; how they are described as data, and what they show first."""

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
    """What a step gives. B environments, D observation entries, N actions.

    Attributes:
        observation: of the next decision (after a reset where an episode ended), [B, D].
        mask: legal actions of the next decision, [B, N].
        reward: what learners are paid, of order 1, [B].
        done: whether the episode ended with this step, [B].
        final_observation: as ``observation``, but before the reset; equal to it where nothing ended, [B, D].
        discount: what is paid from the next decision on counts so much of what is paid now, beside the learner's own
            γ: of decisions that are not equally long, [B]; None: as much.
        truncated: of the episodes that ended, those that only the clock ended, [B]: what is paid goes on with
            ``observation``, the first of the next, and ``final_observation`` is equal to it; None: none of them.
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
        """After which steps nothing is paid any more, [B]."""
        return self.done if self.truncated is None else self.done & ~self.truncated


class Simulator(Protocol):
    """B environments in lock-step."""

    batch: int

    @property
    def observation_space(self) -> spaces.Box:
        """Of one environment, [D]."""
        ...

    @property
    def action_space(self) -> spaces.Discrete:
        """Of one environment, N actions."""
        ...

    @property
    def advice(self) -> slice | None:
        """Of a set of candidates: the feature that scores each in the unit of the reward, if there is one."""
        ...

    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Begin B episodes: observation [B, D] and mask [B, N]."""
        ...

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Take one action per environment, [B]."""
        ...

    def get_state(self) -> dict[str, Any]:
        """Everything that the future depends on, as arrays and plain values."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``get_state`` gave."""
        ...


# The contract of a simulator with several agents: B environments stepped at once, in each of which all agents act.
#
# An agent is told its own observation, mask and reward, and nobody else's; what they have in common is the simulator's
# own business. Episodes that ended are reset by themselves, as with ``Simulator``.


class Role(NamedTuple):
    """What one agent sees and does: an observation [D] of its own, N actions of its own."""

    observation: spaces.Box
    actions: spaces.Discrete


class Seen(NamedTuple):
    """What one agent sees before its first decision: observation [B, D] and mask of legal actions [B, N]."""

    observation: NDArray[np.float32]
    mask: NDArray[np.bool_]


@runtime_checkable
class JointSimulator(Protocol):
    """B environments in lock-step, with the same agents in each."""

    batch: int

    @property
    def roles(self) -> Mapping[str, Role]:
        """The agents by name."""
        ...

    def reset(self) -> Mapping[str, Seen]:
        """Begin B episodes; what each agent sees before its first decision."""
        ...

    def step(self, actions: Mapping[str, NDArray[np.integer]]) -> Mapping[str, Step]:
        """Take one action per agent and environment, [B] each, all at the same time."""
        ...

    def get_state(self) -> dict[str, Any]:
        """Everything that the future depends on, as arrays and plain values."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what ``get_state`` gave."""
        ...


# Simulators as data: what a process needs to make its own. Nothing in it can run code.


class SimulatorSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A simulator for learners that has not been made yet.

    Attributes:
        kind: a name of the entry-point group ``steward.learned_kinds``: whose object makes it.
        spec: the workload's spec, as JSON.
        model: its domain model, as its kind stores it.
        batch: environments in lock-step.
        seed: of everything that the simulator draws.
        options: of the kind's own, plain values.
    """

    kind: str
    spec: bytes
    model: bytes
    batch: int
    seed: int
    options: Mapping[str, Any] = {}

    def make(self) -> Simulator:
        """Make it, for one agent.

        Raises:
            PluginError: no such kind is installed.
            ValueError: the kind makes no simulator for learners, or spec or model can't be read, or it is a joint one.
        """
        made = self.make_any()
        if isinstance(made, JointSimulator):
            raise ValueError(f"{', '.join(made.roles)} learn together: the executor 'serial' has them do so, no other")
        return made

    def make_any(self) -> Simulator | JointSimulator:
        """Make it, for one agent or for several that learn together; raises what ``make`` does before."""
        kind = plugins.load(plugins.LEARNED_KINDS, self.kind)
        workload = Workload(read_spec(json.loads(self.spec)), self.model)
        conditions = Conditions(self.batch, self.seed, "learning", options=self.options)
        made: Simulator | JointSimulator = kind.simulator(workload, conditions)
        return made

    def seeded(self, seed: int) -> SimulatorSpec:
        """Return the same simulator under another seed."""
        return msgspec.structs.replace(self, seed=seed)


# What observations are like before anything is learned: where their entries lie, and how far they vary.


AnyConfig = TypeVar("AnyConfig", bound=Config)
SLABS = 64  # of random play
LEAST = 0.25  # entries are of order 1: what varies by less is stretched as if it varied by so much
DIGITS = 4


def standardised(config: AnyConfig, simulator: Simulator, seed: int) -> AnyConfig:
    """The config with `centre` and `scale` of its network, as legal moves at random find them in a simulator.

    Where there is no plain network that reads observations, the config is returned as it came.

    Args:
        config: of any algorithm.
        simulator: freshly made; it is played in, so whoever learns needs another.
        seed: of the moves.
    """
    if not isinstance(config, DQN | ActorCritic) or config.network.scorer is not None:
        return config
    if isinstance(config, ActorCritic) and config.recurrent:
        return config
    rng, (observation, mask), found = np.random.default_rng(seed), simulator.reset(), []
    for _ in range(SLABS):
        found.append(observation)
        observation, mask, *_ = simulator.step((rng.random(mask.shape) * mask).argmax(axis=1))
    seen = np.concatenate(found).astype(np.float64)
    apart = seen.std(axis=0)
    spread = np.where(apart > 0.0, np.maximum(apart, LEAST), 1.0)
    centre, scale = (tuple(float(f"{number:.{DIGITS}g}") for number in part) for part in (seen.mean(axis=0), spread))
    network = msgspec.structs.replace(config.network, centre=centre, scale=scale)
    changed: AnyConfig = msgspec.structs.replace(config, network=network)
    return changed


# Demonstrations: an expert (a heuristic of the kind, or the planner) plays in the simulator, and learners watch.


class Situated(Simulator, Protocol):
    """A simulator that shows a policy what the service would show it."""

    @property
    def situation(self) -> Any:
        """B runs, each at the point of its next decision: what `Policy.act` takes."""
        ...


def demonstrate(simulator: Situated, policy: Policy, slabs: int) -> Iterator[Experience]:
    """Let an expert decide, from a reset on: `slabs` slabs of what came of it, [B, …] each.

    The expert is as sure as can be of what it does: `log_prob` is 0. An action that the mask forbids would not be an
    example to follow; raises ValueError.
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
