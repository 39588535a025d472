"""The serial executor: one process, thousands of simulated environments in lock-step.

Every slab: act on all environments, step the simulator, remember, learn once with a big batch. Work is done in chunks
of a fixed number of slabs; between chunks everything goes into a checkpoint, and a run that was resumed from it is
bit-equal to one that was not.
"""

from collections.abc import Callable
from dataclasses import asdict
from time import perf_counter

import numpy as np

from workers.learning.agent import make_agent
from workers.learning.algorithms.base import LearnStats
from workers.learning.algorithms.config import Config
from workers.learning.execution import checkpoint as blob
from workers.learning.execution.base import Live, Paced, Plan, Tally
from workers.learning.execution.walk import Walk
from workers.simulators.base import Simulator
from workers.simulators.described import SimulatorSpec


class Serial(Paced):
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
        self.environment, self.plan, self.clock = environment, plan, clock
        self.rng = np.random.default_rng(seed)
        self.agent = make_agent(
            config, environment.observation_space, environment.action_space, environment.advice, self.rng
        )
        self.steps, self.updates, self.elapsed = 0, 0, 0.0
        self.live = Live()
        self._started = clock()
        self._walk = Walk(environment)

    def advance(self) -> Live:
        """Do one chunk; return its figures."""
        if not self.plan.keep_memory:
            self.agent.forget()
        begun, before, pause = self.elapsed, self.steps, self.pause
        self._started = self.clock() - self.elapsed
        self._walk.tell()
        tally = Tally()
        while self.steps - before < self.plan.chunk_steps and self.progress < pause:
            tally.learn(self._slab())
            self.elapsed = self.clock() - self._started
        tally.end(*self._walk.tell())
        self.updates += tally.updates
        self.live = tally.live(self.steps, self.updates, (self.steps - before) / max(self.elapsed - begun, 1e-9))
        return self.live

    def _slab(self) -> LearnStats | None:
        progress = self.progress
        self.agent.remember(self._walk.slab(self.agent, progress, self.rng))
        self.steps += self.environment.batch
        return self.agent.learn(progress, self.rng)

    def checkpoint(self) -> bytes:
        """Return everything from which `restore` goes on bit-equal."""
        arrays, agent = self.agent.state(memory=self.plan.keep_memory)
        arrays = {f"agent.{name}": value for name, value in arrays.items()}
        simulated, plain = blob.split(self.environment.get_state(), "environment.")
        arrays.update(simulated)
        walk = self._walk
        arrays.update(observation=walk.observation, mask=walk.mask, returns=walk.returns)
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
            },
        )

    def restore(self, data: bytes) -> None:
        """Go on from a checkpoint of the same config, simulator and plan; raises CheckpointError."""
        arrays, values = blob.unpack(data)
        self.agent.restore(blob.part(arrays, "agent."), values["agent"])
        self.environment.set_state(blob.join(blob.part(arrays, "environment."), values["environment"]))
        walk = self._walk
        walk.observation, walk.mask, walk.returns = (arrays[name] for name in ("observation", "mask", "returns"))
        self.rng.bit_generator.state = values["rng"]
        self.steps, self.updates, self.elapsed = values["steps"], values["updates"], values["elapsed"]
        self.live = Live(**values["live"])

    def close(self) -> None:
        """There is nothing to let go of."""


def make(
    config: Config, simulator: SimulatorSpec, plan: Plan, seed: int, clock: Callable[[], float] = perf_counter
) -> Serial:
    """Make the simulator and the executor; see `make_executor`."""
    return Serial(config, simulator.make(), plan, seed, clock)


__all__ = ["Live", "Plan", "Serial", "make"]
