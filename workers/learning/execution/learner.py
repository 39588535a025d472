"""What every executor has in its own process: the agent, a collector of its own, and one chunk after the other."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict
from time import perf_counter

import numpy as np

from workers.learning.agent import make_agent
from workers.learning.algorithms.config import Config
from workers.learning.execution import checkpoint as blob
from workers.learning.execution.base import ChunkTotals, Live, Paced, Plan
from workers.learning.execution.collector import Collector
from workers.learning.simulator import Simulator


class Learner(Paced):
    """Runs one agent on one simulator.

    Args:
        config: the agent.
        environment: the simulator, freshly made.
        plan: length and pieces.
        seed: of everything that the learner draws.
        clock: seconds from any origin; only differences count.
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
        self.remembered = 0  # transitions that `restore` left to be gathered anew

    def advance(self) -> Live:
        """Do one chunk; return its figures."""
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
        """Make ready for a chunk."""

    @abstractmethod
    def _turn(self, tally: ChunkTotals) -> None:
        """Take some steps, learn from them, and count both."""

    def checkpoint(self) -> bytes:
        """Return everything that this process knows, from which `restore` goes on."""
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
        """Go on from a checkpoint of the same config, simulator and plan; raises CheckpointError."""
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
        """Release processes and memory; nothing where there is one process."""
