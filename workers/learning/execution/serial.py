"""Execution in one process: the collector of transitions, the learner base, and the serial executor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict
from time import perf_counter

import numpy as np

from workers.learning.agent import Agent, make_agent
from workers.learning.algorithms.base import Experience
from workers.learning.algorithms.config import Config
from workers.learning.execution import base as blob
from workers.learning.execution.base import ChunkTotals, Executor, Live, PacedTraining, Plan
from workers.learning.execution.joint import Joint
from workers.learning.simulator import JointSimulator, Simulator, SimulatorSpec

# Collection of transitions: one simulator stepped by an agent, and the returns of ended episodes.


class Collector:
    """Collector of transitions: it steps B environments by an agent, and counts ended episodes.

    Attributes:
        observation: present observations [B, D] of D entries, and `mask` of legal actions [B, N].
        returns: rewards of the present episodes so far, [B].
        paid: sum of the returns of the episodes that ended since the last `take_counts`, exploration included.
        episodes: number of these episodes.
    """

    def __init__(self, environment: Simulator) -> None:
        self.environment = environment
        self.observation, self.mask = environment.reset()
        self.returns = np.zeros(environment.batch, np.float64)
        self.paid, self.episodes = 0.0, 0

    def step(self, agent: Agent, progress: float, rng: np.random.Generator) -> Experience:
        """Take one step in each environment; return the B transitions. ``progress`` (0 to 1) sets the exploration."""
        observation, mask = self.observation, self.mask
        action, log_prob, _ = agent.act(observation, mask, progress, rng)
        step = self.environment.step(action)
        self.observation, self.mask = step.observation, step.mask
        self.returns += step.reward
        if step.done.any():
            self.paid += float(self.returns[step.done].sum())
            self.episodes += int(step.done.sum())
            self.returns[step.done] = 0.0
        return Experience(
            observation,
            mask,
            action,
            step.reward,
            step.terminated,
            step.final_observation,
            step.mask,
            log_prob,
            step.discount,
        )

    def take_counts(self) -> tuple[float, int]:
        """Return the sum of returns, and number, of episodes that ended since the last call."""
        counts = self.paid, self.episodes
        self.paid, self.episodes = 0.0, 0
        return counts


# Base of all executors: the agent, its collector, and the loop of chunks.


class Learner(PacedTraining):
    """Executor base: one agent on one simulator in this process.

    Args:
        config: settings of the agent.
        environment: a fresh simulator.
        plan: length of the training and its chunks.
        seed: seed of all random numbers of the learner.
        clock: function that returns monotonic seconds.

    Raises:
        BuildError, ValueError: the config does not fit the simulator's spaces.
        BackendError: the config's device is unavailable.
    """

    def __init__(
        self, config: Config, environment: Simulator, plan: Plan, seed: int, clock: Callable[[], float] = perf_counter
    ) -> None:
        self.config, self.environment, self.plan, self.clock = config, environment, plan, clock
        self.rng = np.random.default_rng(seed)
        self.agent = make_agent(
            config, environment.observation_space, environment.action_space, environment.advice, self.rng
        )
        self.steps, self.updates, self.elapsed = 0, 0, 0.0
        self.live = Live()
        self.collector = Collector(environment)
        self.remembered = 0  # transitions to collect again after `restore`

    def advance(self) -> Live:
        """Run one chunk: steps up to `plan.chunk_steps` or the next pause; return its statistics."""
        while self.agent.buffer.size < self.remembered:
            self.agent.remember(self.collector.step(self.agent, self.progress, self.rng))
        self.remembered = 0
        self._begin()
        begun, before, pause = self.elapsed, self.steps, self.pause
        started = self.clock() - self.elapsed
        self.collector.take_counts()
        tally = ChunkTotals()
        while self.steps - before < self.plan.chunk_steps and self.progress < pause:
            self._turn(tally)
            self.elapsed = self.clock() - started
        tally.end(*self.collector.take_counts())
        self.updates += tally.updates
        self.live = tally.live(self.steps, self.updates, (self.steps - before) / max(self.elapsed - begun, 1e-9))
        return self.live

    def _begin(self) -> None:
        """Prepare for a chunk; do nothing by default."""

    @abstractmethod
    def _turn(self, tally: ChunkTotals) -> None:
        """Step all environments once or more, run the updates due then, and add both to ``tally`` and `steps`."""

    def checkpoint(self) -> bytes:
        """Serialise agent, simulator, random generator and counts to bytes that `restore` reads."""
        arrays, agent = self.agent.state(memory=self.plan.keep_memory)
        arrays = {f"agent.{name}": value for name, value in arrays.items()}
        simulated, plain = blob.split(self.environment.get_state(), "environment.")
        arrays.update(simulated)
        arrays.update(observation=self.collector.observation, mask=self.collector.mask, returns=self.collector.returns)
        return blob.pack(
            arrays,
            {
                "agent": agent,
                "environment": plain,
                "rng": self.rng.bit_generator.state,
                "steps": self.steps,
                "updates": self.updates,
                "elapsed": self.elapsed,
                "live": asdict(self.live),
                "remembered": max(self.agent.buffer.size, self.remembered),
            },
        )

    def restore(self, data: bytes) -> None:
        """Resume from a checkpoint of the same config, simulator and plan; CheckpointError if it is none."""
        arrays, values = blob.unpack(data)
        self.agent.restore(blob.part(arrays, "agent."), values["agent"])
        self.environment.set_state(blob.join(blob.part(arrays, "environment."), values["environment"]))
        collector = self.collector
        collector.observation, collector.mask, collector.returns = (
            arrays[name] for name in ("observation", "mask", "returns")
        )
        self.rng.bit_generator.state = values["rng"]
        self.steps, self.updates, self.elapsed = values["steps"], values["updates"], values["elapsed"]
        self.live = Live(**values["live"])
        self.remembered = values.get("remembered", 0)

    def close(self) -> None:
        """Do nothing: this executor has no processes or shared memory to release."""


# The serial executor: one process, thousands of simulated environments in lock-step.
#
# For every slab: act in all environments, step the simulator, store, run the updates that are due. Chunks have a fixed
# number of slabs, with a checkpoint after each; `Plan.keep_memory` decides whether a resumed run is bit-equal.


class Serial(Learner):
    """Executor without actors: thousands of environments in lock-step in this process."""

    def _turn(self, tally: ChunkTotals) -> None:
        progress = self.progress
        self.agent.remember(self.collector.step(self.agent, progress, self.rng))
        self.steps += self.environment.batch
        tally.learn(self.agent.learn(progress, self.rng))


def make(
    config: Config, simulator: SimulatorSpec, plan: Plan, seed: int, clock: Callable[[], float] = perf_counter
) -> Executor:
    """Make the simulator and a `Serial` executor, or a `Joint` one for a simulator of several agents.

    Raises:
        BuildError, ValueError: the config does not fit the simulator's spaces, or the simulator cannot be made.
        PluginError: the simulator's kind is not installed.
    """
    result = simulator.make_any()
    if isinstance(result, JointSimulator):
        return Joint(config, result, plan, seed, clock)
    return Serial(config, result, plan, seed, clock)


__all__ = ["Live", "Plan", "Serial", "make"]
