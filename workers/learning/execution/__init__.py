"""Executors of a training by name; their modules are imported on first use."""

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
"""Module of each executor by name; its function `make` takes the arguments of `make_executor` after the name."""


def make_executor(
    name: str,
    config: Config,
    simulator: SimulatorSpec,
    plan: Plan,
    seed: int,
    clock: Callable[[], float] = perf_counter,
) -> Executor:
    """Make the executor of a training; it starts with its first `advance`, and the caller has to close it.

    Args:
        name: ``serial``, ``processes`` or ``ray``.
        config: settings of the agent.
        simulator: description of the environment; further processes make theirs from it, with other seeds.
        plan: length of the training and its chunks, in environment steps.
        seed: seed of all random numbers of the learner.
        clock: function that returns monotonic seconds.

    Raises:
        ExecutionError: the executor is unknown, can't run this config, or needs a package that is not installed.
        BuildError: the config does not fit the simulator's spaces.
    """
    if name not in EXECUTORS:
        raise ExecutionError(f"unknown executor {name!r}; known are {', '.join(sorted(EXECUTORS))}")
    return cast("Executor", import_module(EXECUTORS[name]).make(config, simulator, plan, seed, clock))


__all__ = ["EXECUTORS", "ExecutionError", "Executor", "Live", "Plan", "make_executor"]
