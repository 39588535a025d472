"""Execution of several agents that learn together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from workers.learning.agent import Agent, make_agent
from workers.learning.algorithms.base import Acted, Experience, Exported, LearnStats
from workers.learning.algorithms.buffers import part
from workers.learning.algorithms.config import Config
from workers.learning.execution import base as blob
from workers.learning.execution.base import ChunkTotals, Executor, Live, Paced, Plan
from workers.learning.simulator import JointSimulator, Role, Seen

# Independent learners: each agent learns as if the others were a part of its environment (Tan, 1993).
#
# Every agent has its own config, of either family, its own parameters and memory, and its own random generator. It is
# handed its own observations and rewards, and nothing of the others': what it exports can act alone.


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


# Training several agents at once, in one process: all act, the simulator steps, each learns from its own slab.


class Joint(Paced, Executor):
    """Runs independent agents on one simulator; chunks and checkpoints are as with `Serial`. See `Executor`.

    Attributes:
        agent: all of them.
        lives: figures of the last chunk of each; `live` is what they come to together: the mean of their returns.

    Args:
        configs: one for all agents, or one for each name.
        environment: the simulator, freshly made.
        plan: length and pieces; a step of an environment counts once, however many agents act in it.
        seed: of everything that the learners draw.
        clock: seconds from any origin; only differences count.
    """

    def __init__(
        self,
        configs: Config | Mapping[str, Config],
        environment: JointSimulator,
        plan: Plan,
        seed: int,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.environment, self.plan, self.clock = environment, plan, clock
        self.agent = IndependentAgents(configs, environment.roles, seed)
        self.steps, self.elapsed = 0, 0.0
        self.lives = {name: Live() for name in environment.roles}
        self.seen = dict(environment.reset())
        self.returns = {name: np.zeros(environment.batch) for name in environment.roles}
        self.remembered = 0  # transitions that `restore` left to be gathered anew

    @property
    def updates(self) -> int:
        """Of the parameters of all agents."""
        return sum(own.updates for own in self.lives.values())

    @property
    @override
    def live(self) -> Live:
        return together(self.lives.values())

    @override
    def close(self) -> None: ...

    @override
    def advance(self) -> Live:
        while self.agent.remembered < self.remembered:
            self._gather(self.progress)
        self.remembered = 0
        begun, before, pause = self.elapsed, self.steps, self.pause
        started = self.clock() - self.elapsed
        tallies = {name: ChunkTotals() for name in self.lives}
        while self.steps - before < self.plan.chunk_steps and self.progress < pause:
            self._turn(tallies)
            self.elapsed = self.clock() - started
        pace = (self.steps - before) / max(self.elapsed - begun, 1e-9)
        for name, tally in tallies.items():
            self.lives[name] = tally.live(self.steps, self.lives[name].updates + tally.updates, pace)
        return self.live

    def _turn(self, tallies: Mapping[str, ChunkTotals]) -> None:
        progress = self.progress
        for name, (paid, episodes) in self._gather(progress).items():
            tallies[name].end(paid, episodes)
        self.steps += self.environment.batch
        for name, stats in self.agent.learn(progress).items():
            tallies[name].learn(stats)

    def _gather(self, progress: float) -> dict[str, tuple[float, int]]:
        """Take a step in each environment, and remember it; returns and number of episodes that ended, by name."""
        seen = self.seen
        acted = self.agent.act(seen, progress)
        steps = self.environment.step({name: own.action for name, own in acted.items()})
        self.agent.remember(
            {
                name: Experience(
                    *seen[name],
                    acted[name].action,
                    step.reward,
                    step.terminated,
                    step.final_observation,
                    step.mask,
                    acted[name].log_prob,
                    step.discount,
                )
                for name, step in steps.items()
            }
        )
        self.seen = {name: Seen(step.observation, step.mask) for name, step in steps.items()}
        ended = {}
        for name, step in steps.items():
            self.returns[name] += step.reward
            ended[name] = float(self.returns[name][step.done].sum()), int(step.done.sum())
            self.returns[name][step.done] = 0.0
        return ended

    def checkpoint(self) -> bytes:
        """Return everything from which `restore` goes on."""
        arrays, agents = self.agent.state(memory=self.plan.keep_memory)
        arrays = {f"agents.{name}": value for name, value in arrays.items()}
        simulated, plain = blob.split(self.environment.get_state(), "environment.")
        arrays.update(simulated)
        for name, seen in self.seen.items():
            stored = {"observation": seen.observation, "mask": seen.mask, "returns": self.returns[name]}
            arrays.update({f"seen.{name}/{key}": value for key, value in stored.items()})
        values = {
            "agents": agents,
            "environment": plain,
            "steps": self.steps,
            "elapsed": self.elapsed,
            "live": {name: asdict(own) for name, own in self.lives.items()},
            "remembered": max(self.agent.remembered, self.remembered),
        }
        return blob.pack(arrays, values)

    def restore(self, data: bytes) -> None:
        """Go on from a checkpoint of the same configs, simulator and plan; raises CheckpointError."""
        arrays, values = blob.unpack(data)
        self.agent.restore(blob.part(arrays, "agents."), values["agents"])
        self.environment.set_state(blob.join(blob.part(arrays, "environment."), values["environment"]))
        for name in self.seen:
            stored = blob.part(arrays, f"seen.{name}/")
            self.seen[name] = Seen(stored["observation"], stored["mask"])
            self.returns[name] = stored["returns"]
        self.steps, self.elapsed = values["steps"], values["elapsed"]
        self.lives = {name: Live(**own) for name, own in values["live"].items()}
        self.remembered = values.get("remembered", 0)


def together(lives: Iterable[Live]) -> Live:
    """Means of what agents that learn together have each; they do the same steps, and their updates add up."""
    each = list(lives)
    return Live(
        each[0].steps,
        _mean([own.episode_return for own in each]),
        _mean([own.loss for own in each]),
        sum(own.updates for own in each),
        each[0].steps_per_second,
        _mean([own.exploration for own in each]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
