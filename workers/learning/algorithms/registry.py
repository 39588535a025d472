"""Registry of algorithms by the entry-point group `steward.algorithms`: built-in ones and plug-ins.

A plug-in is a package with an entry point in this group, whose name is the algorithm's name in requests and whose value
is an `Algorithm`. Names are read from the metadata of installed packages; modules are imported on first use. An
algorithm's config is a frozen msgspec Struct with a unique tag, so that it can be stored as JSON; a field `place` of
type `DeviceConfig` allows learning on a GPU. `examples/munchausen` is an example.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple

import msgspec
from gymnasium import spaces

from app.installed import points
from workers.learning.algorithms.base import Learner
from workers.learning.algorithms.config import Config
from workers.learning.backends import Backend

GROUP = "steward.algorithms"
EVERYWHERE = frozenset({"serial", "processes", "ray"})
ALONE = frozenset({"serial"})


class UnknownAlgorithm(KeyError):
    """Raised if no installed package provides an algorithm of this name or config type."""


class AgentSpaces(NamedTuple):
    """Observation and action space of an agent, with D observation entries (or K candidates of F features), N actions.

    Attributes:
        observation: Box of shape [D], or [K, F] for a set of candidates.
        actions: Discrete(N).
        advice: slice of the features that score each candidate in the reward's unit; None without such scores.
    """

    observation: spaces.Box
    actions: spaces.Discrete
    advice: slice | None = None


@dataclass(frozen=True)
class Algorithm:
    """One algorithm: its name, its default config, and how to build its learner.

    Attributes:
        name: name in requests, equal to the entry point's.
        config: config with default values. Algorithms with configs of one type must be built alike.
        build: function from config, spaces and backend to a learner; BuildError or ValueError where they do not fit.
        ranks: supported numbers of an observation's dimensions: 1, a vector; 2, a set of candidates.
        executors: names of executors that can run it; those with actors need a `Differentiable` learner, or a buffer
            whose entries have fixed shapes.
    """

    name: str
    config: Config
    build: Callable[[Any, AgentSpaces, Backend], Learner]
    ranks: frozenset[int] = frozenset({1, 2})
    executors: frozenset[str] = EVERYWHERE

    def learner(self, config: Config, spaces: AgentSpaces, backend: Backend) -> Learner:
        """Build a learner from a config of this algorithm's type.

        Raises:
            ValueError: observations of unsupported dimension, or a config that does not fit.
            BuildError: the config does not fit the spaces.
        """
        rank = len(spaces.observation.shape)
        if rank not in self.ranks:
            raise ValueError(f"{self.name} can't see observations of {rank} dimensions")
        return self.build(config, spaces, backend)


def names() -> tuple[str, ...]:
    """Return the names of all installed algorithms, sorted, without importing them."""
    return tuple(sorted({point.name for point in points(GROUP)}))


def algorithm(name: str) -> Algorithm:
    """Return the algorithm of this name, importing its module.

    Raises:
        UnknownAlgorithm: no installed package provides it, or its entry point is no Algorithm of that name.
    """
    installed = points(GROUP).select(name=name)
    if not installed:
        raise UnknownAlgorithm(f"no algorithm is called {name!r}; there are {', '.join(names())}")
    return _load_entry(next(iter(installed)))


def algorithm_of(config: Config) -> Algorithm:
    """Return the first algorithm whose default config has the type of ``config``.

    Raises:
        UnknownAlgorithm: no installed algorithm has a config of that type.
    """
    return _of_type(type(config))


@cache
def _of_type(wanted: type[Config]) -> Algorithm:
    for algorithm in _all():
        if type(algorithm.config) is wanted:
            return algorithm
    raise UnknownAlgorithm(f"no algorithm that is installed has a config of type {wanted.__name__}")


def decode(data: bytes | str) -> Config:
    """Read a config of any installed algorithm from JSON.

    Raises:
        msgspec.DecodeError: the bytes are no JSON.
        msgspec.ValidationError: they are no config; the message names the field.
    """
    types = tuple(dict.fromkeys(type(algorithm.config) for algorithm in _all()))
    union: Any = types[0]
    for one in types[1:]:
        union |= one
    config: Config = msgspec.json.decode(data, type=union)
    return config


def _all() -> Iterator[Algorithm]:
    own = sorted(points(GROUP), key=lambda point: (not point.value.startswith("workers."), point.name))
    return (_load_entry(point) for point in own)


@cache
def _load_entry(point: EntryPoint) -> Algorithm:
    entry = point.load()
    if not isinstance(entry, Algorithm) or entry.name != point.name:
        raise UnknownAlgorithm(f"the entry point {point.name!r} of {GROUP} is no Algorithm of that name")
    return entry
