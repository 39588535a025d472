"""Joint training of several independent agents in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from workers.learning.agent import Agent, make_agent
from workers.learning.algorithms.base import ActResult, Experience, Exported, LearnStats
from workers.learning.algorithms.buffers import part
from workers.learning.algorithms.config import Config
from workers.learning.execution import base as blob
from workers.learning.execution.base import ChunkTotals, Executor, Live, PacedTraining, Plan
from workers.learning.simulator import JointSimulator, MaskedObservation, Role

# Independent learners: each treats the others as part of its environment (Tan, 1993).
#
# Every agent has its own config, parameters, memory and random generator, and gets only its own observations and
# rewards, so that its exported policy can act alone.


class IndependentAgents:
    """Agents by name, in the order of the simulator's roles.

    Args:
        configs: one config for all agents, or a config for each by name.
        roles: observation and action space by agent's name.
        seed: seed from which each agent's own random generator is derived.

    Raises:
        ValueError: the names of configs and roles differ.
        BuildError: a config does not fit its role's spaces.
    """

    def __init__(self, configs: Config | Mapping[str, Config], roles: Mapping[str, Role], seed: int) -> None:
        by_role = configs if isinstance(configs, Mapping) else dict.fromkeys(roles, configs)
        if by_role.keys() != roles.keys():
            raise ValueError(f"there are configs for {', '.join(by_role)}, but the agents are {', '.join(roles)}")
        seeds = np.random.SeedSequence(seed).spawn(len(roles))
        self.rngs = {name: np.random.default_rng(own) for name, own in zip(roles, seeds, strict=True)}
        self.agents: dict[str, Agent] = {
            name: make_agent(by_role[name], role.observation, role.actions, None, self.rngs[name])
            for name, role in roles.items()
        }

    @property
    def remembered(self) -> int:
        """Total number of transitions in the agents' replay memories."""
        return sum(agent.buffer.size for agent in self.agents.values())

    def act(self, observations: Mapping[str, MaskedObservation], progress: float) -> dict[str, ActResult]:
        """Return every agent's actions [B] by its own observations; ``progress`` (0 to 1) sets the exploration."""
        return {
            name: agent.act(observations[name].observation, observations[name].mask, progress, self.rngs[name])
            for name, agent in self.agents.items()
        }

    def remember(self, experiences: Mapping[str, Experience]) -> None:
        """Store each agent's own B transitions in its buffer."""
        for name, agent in self.agents.items():
            agent.remember(experiences[name])

    def learn(self, progress: float) -> dict[str, LearnStats]:
        """Run every agent's due updates at ``progress`` (0 to 1); return statistics of agents with updates."""
        results = {name: agent.learn(progress, self.rngs[name]) for name, agent in self.agents.items()}
        return {name: stats for name, stats in results.items() if stats is not None}

    def state(self, *, memory: bool) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays, by "agent/array", and plain values by agent, for `restore`; ``memory``: with transitions."""
        arrays: dict[str, NDArray[Any]] = {}
        values: dict[str, Any] = {}
        for name, agent in self.agents.items():
            own, plain = agent.state(memory=memory)
            arrays.update({f"{name}/{key}": value for key, value in own.items()})
            values[name] = {"agent": plain, "rng": self.rngs[name].bit_generator.state}
        return arrays, values

    def restore(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Restore arrays and plain values that `state` returned; KeyError if an agent is missing."""
        for name, agent in self.agents.items():
            agent.restore(part(arrays, f"{name}/"), values[name]["agent"])
            self.rngs[name].bit_generator.state = values[name]["rng"]

    def export(self) -> dict[str, Exported]:
        """Return every agent's policy (type, config, arrays) by name; ValueError if one has no policy yet."""
        return {name: agent.export() for name, agent in self.agents.items()}


# Training of several agents in one process: all act, the simulator steps, each learns from its own slab.


class Joint(PacedTraining, Executor):
    """Executor of independent agents on one simulator, with chunks and checkpoints like `Serial`.

    Attributes:
        agent: all agents.
        lives: statistics of the last chunk by agent; `live` combines them, with the mean of their returns.

    Args:
        configs: one config for all agents, or a config for each by name.
        environment: a fresh simulator.
        plan: length of the training and its chunks; an environment step counts once for all agents.
        seed: seed of all random numbers of the learners.
        clock: function that returns monotonic seconds.
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
        self.observations = dict(environment.reset())
        self.returns = {name: np.zeros(environment.batch) for name in environment.roles}
        self.remembered = 0  # transitions to collect again after `restore`

    @property
    def updates(self) -> int:
        """Number of parameter updates of all agents so far."""
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
        """Take and store a step in each environment; return (sum of returns, number) of ended episodes by agent."""
        observation = self.observations
        acted = self.agent.act(observation, progress)
        steps = self.environment.step({name: own.action for name, own in acted.items()})
        self.agent.remember(
            {
                name: Experience(
                    *observation[name],
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
        self.observations = {name: MaskedObservation(step.observation, step.mask) for name, step in steps.items()}
        ended = {}
        for name, step in steps.items():
            self.returns[name] += step.reward
            ended[name] = float(self.returns[name][step.done].sum()), int(step.done.sum())
            self.returns[name][step.done] = 0.0
        return ended

    def checkpoint(self) -> bytes:
        """Serialise agents, simulator and counts to bytes that `restore` reads."""
        arrays, agents = self.agent.state(memory=self.plan.keep_memory)
        arrays = {f"agents.{name}": value for name, value in arrays.items()}
        simulated, plain = blob.split(self.environment.get_state(), "environment.")
        arrays.update(simulated)
        for name, observation in self.observations.items():
            stored = {"observation": observation.observation, "mask": observation.mask, "returns": self.returns[name]}
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
        """Resume from a checkpoint of the same configs, simulator and plan.

        Raises:
            CheckpointError: the bytes are no checkpoint of this format.
        """
        arrays, values = blob.unpack(data)
        self.agent.restore(blob.part(arrays, "agents."), values["agents"])
        self.environment.set_state(blob.join(blob.part(arrays, "environment."), values["environment"]))
        for name in self.observations:
            stored = blob.part(arrays, f"seen.{name}/")
            self.observations[name] = MaskedObservation(stored["observation"], stored["mask"])
            self.returns[name] = stored["returns"]
        self.steps, self.elapsed = values["steps"], values["elapsed"]
        self.lives = {name: Live(**own) for name, own in values["live"].items()}
        self.remembered = values.get("remembered", 0)


def together(lives: Iterable[Live]) -> Live:
    """Combine the agents' statistics: means of return, loss and exploration (of those not None), sum of updates."""
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
