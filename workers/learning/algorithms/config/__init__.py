"""Agents as data: small frozen structs that go to JSON and back, checked for types and ranges."""

from typing import TypeAlias, TypeVar

import msgspec

from workers.learning.algorithms.config import policy
from workers.learning.algorithms.config import policy as value
from workers.learning.algorithms.config.policy import (
    DQN,
    SERVED,
    ActorCritic,
    Cloning,
    DeviceConfig,
    Entropy,
    Exploration,
    Imitation,
    Memory,
    Network,
    Optimiser,
    QTable,
    Scorer,
)

AnyConfig = TypeVar("AnyConfig", bound=msgspec.Struct)
AnyActor = TypeVar("AnyActor", bound=ActorCritic)
BROAD, BROADER = 0.1, 0.3  # the weight of the entropy at first, of clipped policy gradients and of plain ones
NEAR = 0.8  # how much of an advantage is left to later values: what is paid so far is a sum of chances
MINIBATCH, AVERAGE = 512, 0.02  # of plain policy gradients, which would else take too few steps, and each by chance
MEAN = 10.0  # the error from which on the loss is linear, where chance adds about 1
LONG, OFTEN = 1 << 18, 4  # transitions remembered, and updates from them after each slab
SLOW = 0.005  # the rate of a table
Config: TypeAlias = msgspec.Struct
"""Any algorithm's, from outside too."""
BuiltIn = DQN | QTable | ActorCritic
NAMED: dict[str, BuiltIn] = {**value.VALUE_NAMED, **policy.NAMED}
"""The project's own algorithms, by the name that requests use."""


def encode(config: Config) -> bytes:
    """Return the config as JSON."""
    return msgspec.json.encode(config)


def decode(data: bytes | str) -> BuiltIn:
    """Read a config of the project's own from JSON; raises msgspec.ValidationError naming the field."""
    return msgspec.json.decode(data, type=BuiltIn)


def named(name: str) -> BuiltIn:
    """Return the config of an own algorithm by the name that requests use; raises KeyError."""
    return NAMED[name]


def endless(config: AnyConfig) -> AnyConfig:
    """The config for problems that go on and on.

    Rewards are centred. A decision then differs from the next best by a small part of what chance adds: policies stay
    broad for longer (on a small queue with exact values the gradient stops 10 % from the optimum at the usual entropy,
    and below .5 % at .1 after 1,500 steps), and advantages look less far past the critic; losses don't cut errors that
    are only chance, and values average over more: a longer memory, a slower table.
    """
    if isinstance(config, ActorCritic):
        return _endless_actor(config)
    if isinstance(config, DQN):
        memory = msgspec.structs.replace(config.memory, capacity=max(config.memory.capacity, LONG))
        updates = max(config.updates_per_slab, OFTEN)
        return msgspec.structs.replace(config, centred=True, huber=MEAN, memory=memory, updates_per_slab=updates)
    if isinstance(config, QTable):
        return msgspec.structs.replace(config, centred=True, rate=min(config.rate, SLOW))
    return config


def _endless_actor(config: AnyActor) -> AnyActor:
    """See ``endless``; on a small system a plain gradient at the entropy of a clipped one ends 9 % from the optimum."""
    change = msgspec.structs.replace
    config = change(config, centred=True, trace=min(config.trace, NEAR))
    if config.surrogate == "clipped":
        return change(config, entropy=change(config.entropy, start=max(config.entropy.start, BROAD)))
    broad = change(config.entropy, start=max(config.entropy.start, BROADER))
    return change(config, entropy=broad, batch=MINIBATCH, average=AVERAGE, normalise=True)


__all__ = [
    "DQN",
    "NAMED",
    "SERVED",
    "ActorCritic",
    "BuiltIn",
    "Cloning",
    "Config",
    "DeviceConfig",
    "Entropy",
    "Exploration",
    "Imitation",
    "Memory",
    "Network",
    "Optimiser",
    "QTable",
    "Scorer",
    "decode",
    "encode",
    "endless",
    "named",
]
