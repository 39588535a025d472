"""The algorithms that there are, by the entry-point group `steward.algorithms`: the project's own, and others'.

An algorithm from outside is a package with an entry point in this group: its name is what requests say, its value an
`Algorithm`. Names are read from the metadata of what is installed; modules are imported when algorithms are asked for.
Its config is a frozen msgspec Struct with a tag of its own, so that it goes to JSON and back; a field `place` of type
`DeviceConfig` lets it be learned on a GPU. `examples/munchausen` is one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

import msgspec
from gymnasium import spaces

from workers.learning.algorithms.base import Learner
from workers.learning.algorithms.config import Config
from workers.learning.backends import Backend

GROUP = "steward.algorithms"
EVERYWHERE = frozenset({"serial", "processes", "ray"})
ALONE = frozenset({"serial"})


class UnknownAlgorithm(KeyError):
    """No installed package gives an algorithm of this name, or for this config."""


class AgentSpaces(NamedTuple):
    """What an agent sees and does.

    Attributes:
        observation: Box of shape [D], or [K, F] for a set of candidates.
        actions: Discrete(N).
        advice: of a set of candidates, the feature that scores each in the unit of the reward, to begin from; or None.
    """

    observation: spaces.Box
    actions: spaces.Discrete
    advice: slice | None = None


@dataclass(frozen=True)
class Algorithm:
    """One algorithm.

    Attributes:
        name: what requests say; the entry point's.
        config: its defaults. All algorithms with configs of one type are built alike.
        build: from config, spaces and backend to a learner. Raises BuildError or ValueError where they don't fit.
        ranks: how many dimensions an observation may have: 1, a vector; 2, a set of candidates.
        executors: which can run it; those with actors need a learner that is `Differentiable`, or a buffer whose
            entries have fixed shapes.
    """

    name: str
    config: Config
    build: Callable[[Any, AgentSpaces, Backend], Learner]
    ranks: frozenset[int] = frozenset({1, 2})
    executors: frozenset[str] = EVERYWHERE

    def learner(self, config: Config, spaces: AgentSpaces, backend: Backend) -> Learner:
        """Build a learner by a config of this algorithm's type."""
        rank = len(spaces.observation.shape)
        if rank not in self.ranks:
            raise ValueError(f"{self.name} can't see observations of {rank} dimensions")
        return self.build(config, spaces, backend)


def names() -> tuple[str, ...]:
    """Return the names of all that are installed; nothing is imported."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def algorithm(name: str) -> Algorithm:
    """Return the algorithm of a name. Raises UnknownAlgorithm."""
    found = entry_points(group=GROUP, name=name)
    if not found:
        raise UnknownAlgorithm(f"no algorithm is called {name!r}; there are {', '.join(names())}")
    return _loaded(next(iter(found)))


def algorithm_of(config: Config) -> Algorithm:
    """Return an algorithm with configs of this type. Raises UnknownAlgorithm."""
    return _of_type(type(config))


@cache
def _of_type(wanted: type[Config]) -> Algorithm:
    for found in _all():
        if type(found.config) is wanted:
            return found
    raise UnknownAlgorithm(f"no algorithm that is installed has a config of type {wanted.__name__}")


def decode(data: bytes | str) -> Config:
    """Read a config of any algorithm from JSON; raises msgspec.ValidationError naming the field."""
    types = tuple(dict.fromkeys(type(found.config) for found in _all()))
    union: Any = types[0]
    for one in types[1:]:
        union |= one
    found: Config = msgspec.json.decode(data, type=union)
    return found


def _all() -> Iterator[Algorithm]:
    points = entry_points(group=GROUP)
    own = sorted(points, key=lambda point: (not point.value.startswith("workers."), point.name))
    return (_loaded(point) for point in own)


@cache
def _loaded(point: EntryPoint) -> Algorithm:
    found = point.load()
    if not isinstance(found, Algorithm) or found.name != point.name:
        raise UnknownAlgorithm(f"the entry point {point.name!r} of {GROUP} is no Algorithm of that name")
    return found
