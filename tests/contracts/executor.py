"""The contract test kit of executors: a class per executor inherits from it, and says how its actors are killed.

The problem is planted: six iterations on 33 allocations against a deadline. A random policy's return on it is near −11,
the best near −0.08.
"""

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.simulator import TRAINING, describe_simulator
from workers.learning.agent import Agent
from workers.learning.algorithms.config import (
    DQN,
    ActorCritic,
    Config,
    DeviceConfig,
    Exploration,
    Memory,
    Network,
    Optimiser,
)
from workers.learning.execution import Executor, Plan, make_executor
from workers.learning.execution.base import CheckpointError
from workers.learning.simulator import SimulatorSpec

DEADLINE = {"name": "iteration_seconds", "unit": "s", "target": 50.0, "scope": "run"}
SPEC = planted_spec(iterations=6, metrics=[DEADLINE])
TABLE = planted_table(SPEC)
BATCH, EPISODES = 64, 1024
RANDOM_RETURN = -11.0
CPU = DeviceConfig(device="cpu")
NETWORK = Network(layers=(32,))
VALUES = DQN(
    network=NETWORK,
    exploration=Exploration(schedule="apex", start=0.5),
    memory=Memory(capacity=8192, warm_up=256),
    optimiser=Optimiser(rate=3e-3),
    batch=128,
    target_share=0.05,
    double=True,
    place=CPU,
)
ROLLOUTS = ActorCritic(network=NETWORK, rollout=5, optimiser=Optimiser(rate=5e-3, clip=0.5), place=CPU)
CONFIGS: dict[str, Config] = {
    "double": VALUES,
    "n_step_prioritised": msgspec.structs.replace(
        VALUES, n_step=2, batch=32, memory=Memory(capacity=8192, warm_up=256, prioritised=True)
    ),
    "a3c": msgspec.structs.replace(ROLLOUTS, asynchronous=True),
    "vtrace": msgspec.structs.replace(ROLLOUTS, estimator="vtrace", trace=1.0, normalise=False),
    "ppo": msgspec.structs.replace(ROLLOUTS, surrogate="clipped", epochs=3, batch=160),
}
SLABS = {"double": 300, "n_step_prioritised": 400, "a3c": 400, "vtrace": 400, "ppo": 200}
PATIENCE = 60.0  # seconds for what takes one


def simulator(seed: int = 0) -> SimulatorSpec:
    """The planted problem."""
    return describe_simulator(SPEC, TABLE, BATCH, seed, TRAINING, expected=True)


def greedy_return(agent: Agent) -> float:
    """Mean return of the greedy policy over fresh episodes, the same for everybody."""
    environment = describe_simulator(SPEC, TABLE, EPISODES, 99, expected=True).make()
    observation, mask = environment.reset()
    total = np.zeros(EPISODES)
    for _ in range(SPEC.iterations - 1):
        step = environment.step(agent.greedy(observation, mask))
        total += step.reward
        observation, mask = step.observation, step.mask
    assert step.done.all()
    return float(total.mean())


def finish(executor: Executor) -> float:
    """Train to the end; the greedy return."""
    while not executor.done:
        executor.advance()
    return greedy_return(executor.agent)


@cache
def serial_return(name: str) -> float:
    """What the serial executor learns by a config."""
    plan = Plan(BATCH * SLABS[name], BATCH * 100)
    return finish(make_executor("serial", CONFIGS[name], simulator(), plan, 0))


def assert_as_good(value: float, name: str) -> None:
    """Within 1 % of what serial training gains over chance: 0.11, where a standard error of the returns is 0.004."""
    wanted = serial_return(name)
    assert value >= wanted - 0.01 * (wanted - RANDOM_RETURN)


class ExecutorContract:
    """What every executor keeps."""

    name: ClassVar[str]
    exact: ClassVar[bool] = False  # resumed with its memory is bit-equal

    @pytest.fixture
    def make(self) -> Iterator[Callable[..., Any]]:
        executors: list[Executor] = []

        def make(
            name: str = "n_step_prioritised", slabs: int | None = None, chunk: int = 50, seed: int = 0, **more: Any
        ) -> Any:
            plan = Plan(BATCH * (slabs or SLABS[name]), BATCH * chunk, **more)
            executors.append(make_executor(self.name, CONFIGS[name], simulator(seed), plan, seed))
            return executors[-1]

        yield make
        for executor in executors:
            executor.close()

    def ready(self, executor: Any) -> None:
        """Have all that works beside the learner at work."""

    def test_progress_eta_and_figures_are_sane(self, make: Callable[..., Any]) -> None:
        executor, last = make(slabs=100, chunk=20), 0.0
        assert (executor.progress, executor.eta_seconds, executor.done) == (0.0, None, False)
        while not executor.done:
            before, live = executor.steps, executor.advance()
            assert live == executor.live
            assert live.steps == executor.steps > before
            assert live.steps % BATCH == 0
            assert last < executor.progress <= 1.0
            assert live.steps_per_second > 0
            assert executor.eta_seconds >= 0
            last = executor.progress
        assert executor.eta_seconds == 0.0
        assert executor.updates == live.updates > 0
        assert np.isfinite(live.loss)
        assert 0.0 < live.exploration < 1.0
        assert RANDOM_RETURN * 3 < live.episode_return < 1.0

    def test_a_chunk_ends_early_at_a_pause(self, make: Callable[..., Any]) -> None:
        executor = make(slabs=100, chunk=80, pauses=(0.3,))
        executor.advance()
        assert 0.3 <= executor.progress < 0.4
        executor.advance()
        assert executor.done

    def resumes(self, make: Callable[..., Any], keep_memory: bool) -> None:
        """Paused and resumed is as good as not paused, or, with its memory, the same."""
        straight = make("n_step_prioritised", chunk=100, keep_memory=keep_memory)
        straight.advance()
        saved, steps, updates = straight.checkpoint(), straight.steps, straight.updates
        before = straight.agent.export()[2]
        if not (self.exact and keep_memory):
            straight.close()
        resumed = make("n_step_prioritised", chunk=100, seed=7, keep_memory=keep_memory)
        resumed.restore(saved)
        assert (resumed.steps, resumed.updates) == (steps, updates)
        for name, value in resumed.agent.export()[2].items():
            np.testing.assert_array_equal(value, before[name])
        assert_as_good(finish(resumed), "n_step_prioritised")
        assert resumed.updates > updates
        if self.exact and keep_memory:
            finish(straight)
            for name, value in resumed.agent.export()[2].items():
                np.testing.assert_array_equal(value, straight.agent.export()[2][name])

    def test_what_is_no_checkpoint_is_refused(self, make: Callable[..., Any]) -> None:
        with pytest.raises(CheckpointError):
            make().restore(b"no checkpoint at all")

    def test_closing_twice_is_fine(self, make: Callable[..., Any]) -> None:
        executor = make()
        executor.advance()
        executor.close()
        executor.close()


class DistributedContract(ExecutorContract):
    """What those with actors keep besides."""

    def kill(self, executor: Any) -> None:
        """Kill an actor, without any warning to it."""
        raise AssertionError("says the executor's own class")

    def ready(self, executor: Any) -> None:
        """Take a few slabs until an actor has delivered; they are a small part of the training."""
        begun, before = time.monotonic(), executor.deliveries
        while executor.deliveries == before:
            executor.advance()
            time.sleep(0.02)  # leave the cores to those who start
            assert time.monotonic() < begun + PATIENCE, "no actor has delivered"

    def learns_as_well_as_in_series(self, make: Callable[..., Any], config: str) -> None:
        """To be run for all kinds of delivery, with actors at work from the first step on."""
        early = make(config, slabs=10**6, chunk=1)
        self.ready(early)
        early.plan = Plan(early.steps + BATCH * SLABS[config], BATCH * 50)
        before = early.deliveries
        result = finish(early)
        assert_as_good(result, config)
        assert early.deliveries > before  # how many depends on who else uses the machine

    def replaces_the_killed(self, make: Callable[..., Any]) -> None:
        """A killed actor is replaced, and the training ends as well as one in series."""
        executor = make(slabs=10**6, chunk=1)
        self.ready(executor)
        self.kill(executor)
        begun = time.monotonic()
        while not executor.fleet.replaced:
            executor.advance()
            time.sleep(0.02)
            assert time.monotonic() < begun + PATIENCE, "the killed actor was not missed"
        self.ready(executor)
        executor.plan = Plan(executor.steps + BATCH * SLABS["n_step_prioritised"], BATCH * 50)
        assert_as_good(finish(executor), "n_step_prioritised")
        assert executor.fleet.replaced == 1

    def test_a_full_queue_makes_actors_wait_and_never_locks(self, make: Callable[..., Any]) -> None:
        executor = make(slabs=10**6, chunk=1)
        self.ready(executor)
        time.sleep(0.5)  # nobody takes anything
        waiting = 0
        while executor.fleet.poll() is not None and waiting <= executor.product.slots:
            waiting += 1  # and is not released: the ring stays full
        assert 1 <= waiting <= executor.product.slots
        time.sleep(0.1)
        assert executor.fleet.poll() is None
        executor.plan = Plan(executor.steps + BATCH * 50, BATCH * 10)
        finish(executor)
        assert executor.done  # by the learner's own steps: no slot was given back


__all__ = [
    "BATCH",
    "CONFIGS",
    "DistributedContract",
    "Executor",
    "ExecutorContract",
    "Plan",
    "make_executor",
    "simulator",
]
