"""Every executor keeps the executor contract; what only one of them promises stands below."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import psutil
import pytest

from tests.contracts.executor import BATCH, CONFIGS, DistributedContract, ExecutorContract, simulator
from workers.learning.algorithms.config import DQN, QTable
from workers.learning.execution import ExecutionError, Plan, distributed, make_executor
from workers.learning.execution.distributed import NAME, Field, ParameterBuffer, SharedArrays
from workers.plugins import PluginError

PARENT = """
import multiprocessing, os, sys
multiprocessing.current_process()._config["daemon"] = True  # as a prefork worker's: may have no children of its kind
from tests.contracts.executor import CONFIGS, Plan, make_executor, simulator
executor = make_executor("processes", CONFIGS["n_step_prioritised"], simulator(), Plan(10**9, 64), 0)
while not executor.deliveries:
    executor.advance()
print(*executor.fleet.pids, flush=True)
while True:
    executor.advance()
"""


def open_files() -> set[Path]:
    return set(Path("/proc/self/fd").iterdir())


def segments(*pids: int) -> list[Path]:
    """The named pieces of shared memory that these processes have mapped; other programs have some of their own."""
    maps = [Path(f"/proc/{pid}/maps").read_text() for pid in pids]
    return [Path(line[line.index("/dev/shm/") :]) for text in maps for line in text.splitlines() if "/dev/shm/" in line]


class TestSerial(ExecutorContract):
    name: ClassVar[str] = "serial"
    exact: ClassVar[bool] = True

    @pytest.mark.parametrize("keep_memory", [True, False])
    def test_paused_and_resumed_is_as_good_as_not_paused(self, make: Callable[..., Any], keep_memory: bool) -> None:
        self.resumes(make, keep_memory)


class TestProcesses(DistributedContract):
    name: ClassVar[str] = "processes"

    @pytest.mark.parametrize(
        "config",
        [
            name if name in {"n_step_prioritised", "vtrace"} else pytest.param(name, marks=pytest.mark.slow)
            for name in CONFIGS
        ],
    )
    def test_the_same_config_learns_as_well_as_in_series(self, make: Callable[..., Any], config: str) -> None:
        self.learns_as_well_as_in_series(make, config)

    @pytest.mark.slow
    def test_paused_and_resumed_is_as_good_as_not_paused(self, make: Callable[..., Any]) -> None:
        self.resumes(make, keep_memory=False)

    @pytest.mark.slow
    def test_a_killed_actor_is_replaced_and_training_goes_on(self, make: Callable[..., Any]) -> None:
        self.replaces_the_killed(make)

    def kill(self, executor: Any) -> None:
        os.kill(executor.fleet.pids[0], signal.SIGKILL)

    def test_closing_leaves_no_process_and_no_memory_behind(self, make: Callable[..., Any]) -> None:
        files = open_files()
        executor = make(slabs=10**6, chunk=1)
        self.ready(executor)
        actors = [psutil.Process(pid) for pid in executor.fleet.pids]
        assert actors
        assert NAME in Path("/proc/self/maps").read_text()
        shared = segments(os.getpid(), *executor.fleet.pids)
        executor.close()
        assert not any(actor.is_running() for actor in actors)
        assert NAME not in Path("/proc/self/maps").read_text()
        assert open_files() <= files
        assert not any(segment.exists() for segment in shared)

    @pytest.mark.slow
    def test_actors_end_with_a_killed_learner_even_one_that_may_have_no_children(self) -> None:
        with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdout is not None
            actors = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
            shared = segments(parent.pid, *(actor.pid for actor in actors))
            parent.kill()
        assert actors
        _, alive = psutil.wait_procs(actors, timeout=10)
        assert alive == []
        assert not any(segment.exists() for segment in shared)

    def test_actors_that_wait_take_no_time(self, make: Callable[..., Any]) -> None:
        executor = make(slabs=10**6, chunk=1)
        self.ready(executor)
        time.sleep(0.3)  # the rings fill
        actor = psutil.Process(executor.fleet.pids[0])
        before = sum(actor.cpu_times()[:2])
        time.sleep(0.3)
        assert sum(actor.cpu_times()[:2]) - before <= 0.02  # two ticks of the clock

    def test_actors_that_can_not_live_are_given_up(
        self, make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "executable", "/bin/false")
        executor = make(slabs=10**6, chunk=10**6)
        with pytest.raises(ExecutionError, match="ended before they delivered anything: 1"):
            executor.advance()


def test_an_unknown_executor_is_refused() -> None:
    with pytest.raises(ExecutionError, match=r"known are .*processes.*serial"):
        make_executor("threads", CONFIGS["double"], simulator(), Plan(1), 0)


def test_a_table_is_learned_in_series() -> None:
    with pytest.raises(ExecutionError, match="QTable"):
        make_executor("processes", QTable(), simulator(), Plan(BATCH), 0)


def test_an_actors_rungs_are_its_share_of_the_ladder() -> None:
    from workers.learning.components.exploration import ApeX
    from workers.learning.execution.distributed import Rungs

    ladder = ApeX(0.4)
    shares = [Rungs(ladder, lane, 3).epsilon(0.5, 8) for lane in range(3)]
    assert sorted(np.concatenate(shares), reverse=True) == ladder.epsilon(0.5, 24).tolist()


def test_another_process_sees_shared_arrays() -> None:
    fields = {"a": Field("<f4", (3, 2)), "b": Field("|b1", (5,))}
    one = SharedArrays(fields)
    other = SharedArrays(fields, os.dup(one.file))
    one.arrays["a"][1, 1] = 2.5
    other.arrays["b"][4] = True
    assert other.arrays["a"].sum() == 2.5
    assert one.arrays["b"].tolist() == [False] * 4 + [True]
    one.close()
    assert other.arrays["a"][1, 1] == 2.5
    other.close()


def test_the_board_shows_whole_versions_only() -> None:
    buffer = ParameterBuffer(1000)
    assert buffer.read(0) is None
    buffer.write(np.full(1000, 1.5, np.float32), 0.25)
    version, shown = buffer.read(0) or (0, np.zeros(0))
    assert shown.tolist() == [1.5] * 1000
    assert buffer.progress == 0.25
    assert buffer.read(version) is None
    buffer.close()


def test_a_simulator_made_from_its_description_is_the_same() -> None:
    described = simulator(3)
    answer = msgspec.msgpack.decode(msgspec.msgpack.encode(described), type=type(described))
    assert answer == described
    one, other = described.make(), answer.make()
    one.reset()
    other.reset()
    for _ in range(10):
        step, same = one.step(np.full(BATCH, 4)), other.step(np.full(BATCH, 4))
        np.testing.assert_array_equal(step.observation, same.observation)
        np.testing.assert_array_equal(step.reward, same.reward)
    moved = described.with_seed(4).make()
    moved.reset()
    assert (moved.step(np.full(BATCH, 4)).reward != described.make().reset()[0][:, 0]).any()


def test_a_kind_without_simulator_is_refused() -> None:
    with pytest.raises(PluginError, match="installed are cluster, inference, iterative"):
        msgspec.structs.replace(simulator(), kind="weather").make()


def test_what_is_delivered_follows_from_the_balance_of_acting_and_learning() -> None:
    acting = CONFIGS["n_step_prioritised"]  # one update of 32 examples for 64 environments
    learning = CONFIGS["double"]  # of 128
    assert distributed.shared_out(acting, BATCH, 2) == acting
    shared = distributed.shared_out(learning, BATCH, 2)
    assert isinstance(shared, DQN)
    assert (shared.memory.capacity, shared.memory.warm_up) == (4096, 128)
    assert isinstance(acting, DQN)
    assert distributed.learns_more_than_it_acts(acting, BATCH, 3)  # its learner can't keep up with two actors
