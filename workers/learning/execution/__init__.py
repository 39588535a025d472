"""Ways to run a training, by name; imported only when asked for."""

from collections.abc import Callable
from importlib import import_module
from time import perf_counter
from typing import cast

from workers.learning.algorithms.config import Config
from workers.learning.execution.base import ExecutionError, Executor, Live, Plan
from workers.learning.simulator import SimulatorSpec

EXECUTORS = {
    "serial": "workers.learning.execution.serial",
    "processes": "workers.learning.execution.processes",
    "ray": "workers.learning.execution.ray",
}
"""The module of each; its `make` takes the arguments of `make_executor` after the name."""


def make_executor(
    name: str,
    config: Config,
    simulator: SimulatorSpec,
    plan: Plan,
    seed: int,
    clock: Callable[[], float] = perf_counter,
) -> Executor:
    """Return what runs a training; nothing runs before its first `advance`. Whoever asked for it closes it.

    Args:
        name: one of `EXECUTORS`.
        config: the agent.
        simulator: what it learns in; processes of their own make theirs from the same description, with other seeds.
        plan: length and pieces.
        seed: of everything that the learner draws.
        clock: seconds from any origin; only differences count.

    Raises:
        ExecutionError: the executor is unknown, can't run this config, or needs a package that is not installed.
        BuildError: the config does not fit the simulator's spaces.
    """
    if name not in EXECUTORS:
        raise ExecutionError(f"unknown executor {name!r}; known are {', '.join(sorted(EXECUTORS))}")
    return cast("Executor", import_module(EXECUTORS[name]).make(config, simulator, plan, seed, clock))


__all__ = ["EXECUTORS", "ExecutionError", "Executor", "Live", "Plan", "make_executor"]
