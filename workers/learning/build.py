"""Building of agents: parts, spaces and standard graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy
from workers.learning.algorithms.base import Experience
from workers.learning.algorithms.config import DQN, ActorCritic, Config
from workers.learning.components.base import Node
from workers.learning.simulator import Simulator
from workers.learning.stages import (
    BindError,
    Bound,
    BuildError,
    BuildReport,
    Completed,
    CompleteError,
    ComposeError,
    DeadLockError,
    Graph,
    IncompleteInputError,
    SpaceMismatchError,
    bind,
    complete,
    compose,
)

# What observations are like before anything is learned: where their entries lie, and how far they vary.


AnyConfig = TypeVar("AnyConfig", bound=Config)
SLABS = 64  # of random play
LEAST = 0.25  # entries are of order 1: what varies by less is stretched as if it varied by so much
DIGITS = 4


def standardised(config: AnyConfig, simulator: Simulator, seed: int) -> AnyConfig:
    """The config with `centre` and `scale` of its network, as legal moves at random find them in a simulator.

    Where there is no plain network that reads observations, the config is returned as it came.

    Args:
        config: of any algorithm.
        simulator: freshly made; it is played in, so whoever learns needs another.
        seed: of the moves.
    """
    if not isinstance(config, DQN | ActorCritic) or config.network.scorer is not None:
        return config
    if isinstance(config, ActorCritic) and config.recurrent:
        return config
    seen = _played(simulator, np.random.default_rng(seed))
    apart = seen.std(axis=0)
    scale = np.where(apart > 0.0, np.maximum(apart, LEAST), 1.0)
    given = {"centre": _plain(seen.mean(axis=0)), "scale": _plain(scale)}
    network = msgspec.structs.replace(config.network, **given)
    changed: AnyConfig = msgspec.structs.replace(config, network=network)
    return changed


def _played(simulator: Simulator, rng: np.random.Generator) -> NDArray[np.float64]:
    """Observations [n, D] of ``SLABS`` steps of uniformly drawn legal actions."""
    (observation, mask), found = simulator.reset(), []
    for _ in range(SLABS):
        found.append(observation)
        observation, mask, *_ = simulator.step((rng.random(mask.shape) * mask).argmax(axis=1))
    return np.concatenate(found).astype(np.float64)


def _plain(numbers: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{number:.{DIGITS}g}") for number in numbers)


# Named arrays within named arrays: parts are told apart by a prefix of their names.


Arrays = Mapping[str, NDArray[Any]]


def part(arrays: Arrays, prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names start with the prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def prefixed(arrays: Arrays, prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays with the prefix before each name; the inverse of `part`."""
    return {f"{prefix}{name}": value for name, value in arrays.items()}


# The three stages from a description to something that runs: compose → complete → bind.
#
# * `compose` joins components by wires, and opens composites up into their inner calls; no spaces, no arrays. Errors:
# ComposeError (a call to or a wire from something that is not in the graph, two nodes of one name). * `complete` lets
# spaces flow from the root inputs. A component is input-complete when the spaces of all its inputs are   known; only
# then it gets its variables. Errors: IncompleteInputError (a port that nothing is wired to, or a source   without a
# space), DeadLockError (components that wait for each other), SpaceMismatchError. * `bind` draws the variables'
# starting values, puts them on a backend and allocates memories. Error: BindError.
#
# Every error names component and input, those inside composites by their path ('q.trunk'). Each stage is timed;
# `Bound.report` says how long each took. (After Schaarschmidt, Mika, Fricke & Yoneki, RLgraph, SysML 2019.)


__all__ = [
    "BindError",
    "Bound",
    "BuildError",
    "BuildReport",
    "CompleteError",
    "Completed",
    "ComposeError",
    "DeadLockError",
    "Graph",
    "IncompleteInputError",
    "Node",
    "SpaceMismatchError",
    "bind",
    "complete",
    "compose",
]


# Demonstrations: an expert (a heuristic of the kind, or the planner) plays in the simulator, and learners watch.


class Situated(Simulator, Protocol):
    """A simulator that shows a policy what the service would show it."""

    @property
    def situation(self) -> Any:
        """B runs, each at the point of its next decision: what `Policy.act` takes."""
        ...


def demonstrate(simulator: Situated, policy: Policy, slabs: int) -> Iterator[Experience]:
    """Let an expert decide, from a reset on: `slabs` slabs of what came of it, [B, …] each.

    The expert is as sure as can be of what it does: `log_prob` is 0. An action that the mask forbids would not be an
    example to follow; raises ValueError.
    """
    observation, mask = simulator.reset()
    for _ in range(slabs):
        action = np.asarray(policy.act(simulator.situation).action, np.int64)
        if not mask[np.arange(len(action)), action].all():
            raise ValueError(f"the expert {policy.name!r} chose an action that is not legal")
        step = simulator.step(action)
        sure = np.zeros(len(action), np.float32)
        reward, done, after = step.reward, step.terminated, step.final_observation
        yield Experience(observation, mask, action, reward, done, after, step.mask, sure, step.discount)
        observation, mask = step.observation, step.mask
