"""The serial executor: one process, thousands of simulated environments in lock-step.

Every slab: act on all environments, step the simulator, remember, learn once with a big batch. Work is done in chunks
of a fixed number of slabs; between chunks everything goes into a checkpoint, and a run that was resumed from it is
bit-equal to one that was not.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from workers.learning.agent import make_agent
from workers.learning.algorithms.base import Experience, LearnStats
from workers.learning.algorithms.config import Config
from workers.learning.execution import checkpoint as blob
from workers.simulators.base import Simulator


@dataclass(frozen=True)
class Plan:
    """How long, and in which pieces.

    Args:
        steps: environment steps of the whole training.
        chunk_steps: environment steps between checkpoints.
        seconds: a ceiling on working time; schedules then follow whichever of steps and seconds is further on.
        keep_memory: put the replay memory into checkpoints. Without it they are small, and every chunk begins by
            filling the memory anew: the simulator does that in a fraction of the chunk.
    """

    steps: int
    chunk_steps: int = 1 << 18
    seconds: float | None = None
    keep_memory: bool = True


@dataclass(frozen=True)
class Live:
    """Figures of the last chunk.

    `episode_return`: mean of the episodes that ended in it, exploration included. `exploration`: see `LearnStats`.
    """

    steps: int = 0
    episode_return: float | None = None
    loss: float | None = None
    updates: int = 0
    steps_per_second: float = 0.0
    exploration: float | None = None


class Serial:
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
        self._observation, self._mask = environment.reset()
        self._returns = np.zeros(environment.batch, np.float64)

    @property
    def progress(self) -> float:
        """Share of the training that is done, 0 to 1."""
        share = self.steps / self.plan.steps
        if self.plan.seconds is not None:
            share = max(share, self.elapsed / self.plan.seconds)
        return min(1.0, share)

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.progress >= 1.0

    @property
    def eta_seconds(self) -> float | None:
        """Seconds still to work at the pace so far; None before the first chunk."""
        return self.elapsed * (1.0 - self.progress) / self.progress if self.progress > 0 else None

    def advance(self) -> Live:
        """Do one chunk; return its figures."""
        if not self.plan.keep_memory:
            self.agent.forget()
        begun, before = self.elapsed, self.steps
        self._started = self.clock() - self.elapsed
        ended: list[NDArray[np.float64]] = []
        learned: list[LearnStats] = []
        while self.steps - before < self.plan.chunk_steps and not self.done:
            stats = self._slab(ended)
            if stats is not None:
                learned.append(stats)
            self.elapsed = self.clock() - self._started
        self.updates += sum(stats.updates for stats in learned)
        returns = np.concatenate(ended) if ended else np.zeros(0)
        self.live = Live(
            self.steps,
            float(returns.mean()) if len(returns) else None,
            float(np.mean([stats.loss for stats in learned])) if learned else None,
            self.updates,
            (self.steps - before) / max(self.elapsed - begun, 1e-9),
            float(np.mean([stats.exploration for stats in learned])) if learned else None,
        )
        return self.live

    def _slab(self, ended: list[NDArray[np.float64]]) -> LearnStats | None:
        progress, observation, mask = self.progress, self._observation, self._mask
        action, log_prob = self.agent.act(observation, mask, progress, self.rng)
        step = self.environment.step(action)
        self.agent.remember(
            Experience(observation, mask, action, step.reward, step.done, step.final_observation, step.mask, log_prob)
        )
        self._observation, self._mask = step.observation, step.mask
        self._returns += step.reward
        if step.done.any():
            ended.append(self._returns[step.done])
            self._returns[step.done] = 0.0
        self.steps += self.environment.batch
        return self.agent.learn(progress, self.rng)

    def checkpoint(self) -> bytes:
        """Return everything from which `restore` goes on bit-equal."""
        arrays, agent = self.agent.state(memory=self.plan.keep_memory)
        arrays = {f"agent.{name}": value for name, value in arrays.items()}
        simulated, plain = blob.split(self.environment.get_state(), "environment.")
        arrays.update(simulated)
        arrays.update(observation=self._observation, mask=self._mask, returns=self._returns)
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
        self._observation, self._mask, self._returns = (arrays[name] for name in ("observation", "mask", "returns"))
        self.rng.bit_generator.state = values["rng"]
        self.steps, self.updates, self.elapsed = values["steps"], values["updates"], values["elapsed"]
        self.live = Live(**values["live"])
