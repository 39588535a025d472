"""Independent learners: each agent learns as if the others were a part of its environment (Tan, 1993).

Every agent has its own config, of either family, its own parameters and memory, and its own random generator. It is
handed its own observations and rewards, and nothing of the others': what it exports can act alone.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.learning.agent import Agent, make_agent
from workers.learning.algorithms.base import Acted, Experience, Exported, LearnStats
from workers.learning.algorithms.config import Config
from workers.learning.joint_simulator import Role, Seen
from workers.learning.parts import part


class IndependentAgents:
    """Agents by name, in the order of the simulator's roles.

    Args:
        configs: one for all, or one for each name.
        roles: what each sees and does.
        seed: of everything that they draw; each has a generator of its own.

    Raises:
        ValueError: there is not one config for each role.
        BuildError: a config does not fit its role's spaces.
    """

    def __init__(self, configs: Config | Mapping[str, Config], roles: Mapping[str, Role], seed: int) -> None:
        given = configs if isinstance(configs, Mapping) else dict.fromkeys(roles, configs)
        if given.keys() != roles.keys():
            raise ValueError(f"there are configs for {', '.join(given)}, but the agents are {', '.join(roles)}")
        seeds = np.random.SeedSequence(seed).spawn(len(roles))
        self.rngs = {name: np.random.default_rng(own) for name, own in zip(roles, seeds, strict=True)}
        self.agents: dict[str, Agent] = {
            name: make_agent(given[name], role.observation, role.actions, None, self.rngs[name])
            for name, role in roles.items()
        }

    @property
    def remembered(self) -> int:
        """Transitions that the agents draw their batches from, together."""
        return sum(agent.buffer.size for agent in self.agents.values())

    def act(self, seen: Mapping[str, Seen], progress: float) -> dict[str, Acted]:
        """Each chooses by its own observation."""
        return {
            name: agent.act(seen[name].observation, seen[name].mask, progress, self.rngs[name])
            for name, agent in self.agents.items()
        }

    def remember(self, experiences: Mapping[str, Experience]) -> None:
        """Each takes in its own slab."""
        for name, agent in self.agents.items():
            agent.remember(experiences[name])

    def learn(self, progress: float) -> dict[str, LearnStats]:
        """Each learns from what it remembers; the figures of those who did."""
        found = {name: agent.learn(progress, self.rngs[name]) for name, agent in self.agents.items()}
        return {name: stats for name, stats in found.items() if stats is not None}

    def state(self, *, memory: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays, by name and theirs; plain values by name, generators included."""
        arrays: dict[str, NDArray[Any]] = {}
        values: dict[str, Any] = {}
        for name, agent in self.agents.items():
            own, plain = agent.state(memory=memory)
            arrays.update({f"{name}/{key}": value for key, value in own.items()})
            values[name] = {"agent": plain, "rng": self.rngs[name].bit_generator.state}
        return arrays, values

    def restore(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Go on from a state."""
        for name, agent in self.agents.items():
            agent.restore(part(arrays, f"{name}/"), values[name]["agent"])
            self.rngs[name].bit_generator.state = values[name]["rng"]

    def export(self) -> dict[str, Exported]:
        """Everybody's own policy, as `Agent.export` gives it."""
        return {name: agent.export() for name, agent in self.agents.items()}
