"""What running a training costs besides the training, and what a second core gives.

``python -m benchmarks.executor_speed``. The problem is planted, as in `learning_speed`.

Overhead: the share of the serial executor's time, at 1,024 environments, that is none of the simulator's steps and none
of the network's passes (forward, backward, optimiser, target). In the first row what the agent does beside its network
(noise, replay memory, conversions) is counted as overhead too; in the second only what the executor itself does.
Processor time, so that neighbours do not count.

Processes: environment steps a second of wall time on all cores, beside `serial` on one, with the same config; both
settled first (all actors at work), then in turns, medians of the ratios. Neighbours do count there; where there are
any, look at the second ratio: by the processor time of the busiest process, which is what a quiet machine would come
to. The last row is what an actor costs before it delivers anything.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from operator import attrgetter
from typing import Any

import msgspec
import psutil

from benchmarks.problems import planted_one
from workers.kinds.iterative.simulator import TRAINING
from workers.kinds.iterative.simulator import describe_simulator as simulator_of
from workers.learning.algorithms.config import DQN, ActorCritic, Config, DeviceConfig, built_in_config
from workers.learning.execution import Plan, make_executor
from workers.learning.execution.processes import Processes
from workers.learning.execution.serial import Serial
from workers.learning.simulator import SimulatorSpec

OVERHEAD_GOAL, RATIO_GOAL = 0.10, 1.6
ENVIRONMENTS, ROUNDS, SECONDS = 1_024, 5, 1.0
Row = dict[str, Any]
CASES: tuple[tuple[str, str, int, dict[str, int], bool], ...] = (
    ("DQN, 2,048 environments, 1 update a slab", "dqn", 2_048, {"updates_per_slab": 1}, False),
    ("dueling double DQN as served: 512, 2 updates", "dueling_double_dqn", 512, {}, True),
    ("A3C, 512 environments", "a3c", 512, {}, True),
    ("V-trace, 512 environments", "vtrace", 512, {}, True),
    ("PPO, 512 environments", "ppo", 512, {}, True),
)


def results() -> list[Row]:
    """Overhead, ratios, and the cost of a start."""
    return [*overhead(), *(row for case in CASES for row in ratios(*case)), start()]


def simulator(environments: int, *, expected: bool) -> SimulatorSpec:
    """The planted problem's."""
    problem = planted_one()
    return simulator_of(problem.spec, problem.table, environments, 0, TRAINING, expected=expected)


class Watch:
    """Processor time spent within some functions, those that they call included once."""

    def __init__(self) -> None:
        self.seconds, self.inside = 0.0, False

    def over(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, watched."""

        def watched(*args: Any, **kwargs: Any) -> Any:
            if self.inside:
                return function(*args, **kwargs)
            self.inside, start = True, time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += time.process_time() - start
                self.inside = False

        return watched


def overhead() -> list[Row]:
    """Shares of the serial executor's processor time."""
    rows = []
    for name in ("dqn", "a2c"):
        whole = statistics.median(share(name, ("run", "gradient"), "learner.bound") for _ in range(ROUNDS))
        own = statistics.median(share(name, ("act", "remember", "learn"), "") for _ in range(ROUNDS))
        row = named_row(f"{name}: time in neither simulator nor network", whole, "of the time", None, None)
        rows += [row | {"goal": verdict(whole <= OVERHEAD_GOAL, f"≤ {OVERHEAD_GOAL:g}")}]
        row = named_row(f"{name}: time in neither simulator nor agent", own, "of the time", None, None)
        rows += [row | {"goal": verdict(own <= OVERHEAD_GOAL, f"≤ {OVERHEAD_GOAL:g}")}]
    return rows


def share(name: str, watched: tuple[str, ...], part: str) -> float:
    """The share of a chunk that is spent outside of the simulator and of these functions of the agent."""
    config, watch = config_of(name, {"updates_per_slab": 1}), Watch()
    result = simulator(ENVIRONMENTS, expected=False).make()
    executor = Serial(config, result, Plan(10**9, ENVIRONMENTS * 64), 0, time.process_time)
    executor.advance()
    owner: Any = attrgetter(part)(executor.agent) if part else executor.agent
    for function in watched:
        setattr(owner, function, watch.over(getattr(owner, function)))
    result.step = watch.over(result.step)  # type: ignore[method-assign]
    before = executor.elapsed
    executor.advance()
    return 1.0 - watch.seconds / (executor.elapsed - before)


def config_of(name: str, changes: dict[str, int]) -> Config:
    """A named config on the CPU, with changes where it is a DQN."""
    config, place = built_in_config(name), DeviceConfig(device="cpu")
    if isinstance(config, DQN):
        return msgspec.structs.replace(config, place=place, **changes)
    return msgspec.structs.replace(config, place=place) if isinstance(config, ActorCritic) else config


def ratios(title: str, name: str, environments: int, changes: dict[str, int], expected: bool) -> list[Row]:
    """Steps a second of `processes` on all cores beside those of `serial` on one, by two clocks."""
    config, described = config_of(name, changes), simulator(environments, expected=expected)
    plan = Plan(10**9, environments * 32)
    with ExitStack() as stack:
        serial, spread = (
            stack.enter_context(closing(make_executor(executor, config, described, plan, 0)))
            for executor in ("serial", "processes")
        )
        settle(serial)
        settle(spread)
        speeds = [(paced(serial, one_core=True), paced(spread, one_core=False)) for _ in range(ROUNDS)]
    rows = []
    for clock, how in enumerate(("", ", by the busiest process's processor time")):
        median = statistics.median(both[clock] / one[clock] for one, both in speeds)
        alone, together = (statistics.median(pair[i][clock] for pair in speeds) for i in range(2))
        row = named_row(f"processes, {title}{how}", together, "steps/s", "serial on one core", alone)
        rows.append(row | {"ratio": median, "goal": verdict(median >= RATIO_GOAL, f"≥ {RATIO_GOAL:g} ×")})
    return rows


def settle(executor: Any) -> None:
    """Fill memories; have all actors at work."""
    executor.advance()
    while isinstance(executor, Processes) and not executor.fleet.settled:
        executor.advance()
    for _ in range(3):
        executor.advance()


def paced(executor: Any, *, one_core: bool) -> tuple[float, float]:
    """Steps a second of wall time over `SECONDS`, and of the busiest process; the other executor's actors wait."""
    cores = os.sched_getaffinity(0)
    try:
        if one_core:
            os.sched_setaffinity(0, {min(cores)})
        executor.advance()
        start, before, spent = time.perf_counter(), executor.steps, busy(executor)
        while time.perf_counter() < start + SECONDS:
            executor.advance()
        steps, wall = executor.steps - before, time.perf_counter() - start
        return steps / wall, steps / max(now - then for then, now in zip(spent, busy(executor), strict=True))
    finally:
        os.sched_setaffinity(0, cores)


def busy(executor: Any) -> list[float]:
    """Seconds of processor time so far, of this process and of each actor."""
    pids = [os.getpid(), *(executor.fleet.pids if isinstance(executor, Processes) else [])]
    return [sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids]


def start() -> Row:
    """Processor seconds of an actor until it delivers."""
    config, described = config_of("dqn", {}), simulator(ENVIRONMENTS, expected=False)
    with closing(make_executor("processes", config, described, Plan(10**9, ENVIRONMENTS), 0)) as executor:
        assert isinstance(executor, Processes)  # noqa: S101  (narrows the type)
        executor.advance()
        while not executor.fleet.settled:
            time.sleep(0.01)
            executor.advance()
        times = psutil.Process(executor.fleet.pids[0]).cpu_times()
    return named_row("start of an actor", times.user + times.system, "s", None, None)


def named_row(name: str, value: float, unit: str, peer: str | None, peer_value: float | None) -> Row:
    """A row without ratio and goal."""
    row: Row = {"name": name, "value": value, "unit": unit, "peer": peer, "peer_value": peer_value}
    return row | {"ratio": None, "goal": None}


def verdict(met: bool, goal: str) -> str:
    """The goal, and whether it was met."""
    return f"{goal}: {'met' if met else 'missed'}"


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("executor_speed", results())
