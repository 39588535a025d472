"""The contract of simulators: described, joint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from app.kinds.registry import read_spec
from workers import plugins
from workers.inputs import Conditions, Workload


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
