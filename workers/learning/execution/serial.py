"""The serial executor: one process, thousands of simulated environments in lock-step.

Every slab: act on all environments, step the simulator, remember, learn once with a big batch. Work is done in chunks
of a fixed number of slabs, with a checkpoint between any two; whether a run that is resumed from one is bit-equal to
one that was not depends on `Plan.keep_memory`.
"""

from collections.abc import Callable
from time import perf_counter

from workers.learning.algorithms.config import Config
from workers.learning.described_simulator import SimulatorSpec
from workers.learning.execution.base import ChunkTotals, Executor, Live, Plan
from workers.learning.execution.joint import Joint
from workers.learning.execution.learner import Learner
from workers.learning.joint_simulator import JointSimulator


class Serial(Learner):
    """The agent, and nobody beside it; see `Learner` for the arguments."""

    def _turn(self, tally: ChunkTotals) -> None:
        progress = self.progress
        self.agent.remember(self.collector.step(self.agent, progress, self.rng))
        self.steps += self.environment.batch
        tally.learn(self.agent.learn(progress, self.rng))


def make(
    config: Config, simulator: SimulatorSpec, plan: Plan, seed: int, clock: Callable[[], float] = perf_counter
) -> Executor:
    """Make the simulator and the executor; see `make_executor`. In a joint simulator several agents learn together."""
    made = simulator.make_any()
    if isinstance(made, JointSimulator):
        return Joint(config, made, plan, seed, clock)
    return Serial(config, made, plan, seed, clock)


__all__ = ["Live", "Plan", "Serial", "make"]
