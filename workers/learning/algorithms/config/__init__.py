"""Agents as data: small frozen structs that go to JSON and back, checked for types and ranges."""

from typing import TypeAlias, TypeVar

import msgspec

from workers.learning.algorithms.config import policy, value
from workers.learning.algorithms.config.policy import ActorCritic, Cloning, Entropy
from workers.learning.algorithms.config.shared import DeviceConfig, Exploration, Network, Optimiser, Scorer
from workers.learning.algorithms.config.value import DQN, SERVED, Imitation, Memory, QTable

AnyConfig = TypeVar("AnyConfig", bound=msgspec.Struct)
BROAD = 0.1  # the weight of the entropy at first, where advantages are of order 1
MEAN = 10.0  # the error from which on the loss is linear, where chance adds about 1
LONG, OFTEN = 1 << 18, 4  # transitions remembered, and updates from them after each slab
SLOW = 0.005  # the rate of a table
Config: TypeAlias = msgspec.Struct
"""Any algorithm's, from outside too."""
BuiltIn = DQN | QTable | ActorCritic
NAMED: dict[str, BuiltIn] = {**value.NAMED, **policy.NAMED}
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
    and below .5 % at .1 after 1,500 steps), losses don't cut errors that are only chance, and values average over more:
    a longer memory, a slower table.
    """
    if isinstance(config, ActorCritic):
        broad = msgspec.structs.replace(config.entropy, start=max(config.entropy.start, BROAD))
        return msgspec.structs.replace(config, centred=True, entropy=broad)
    if isinstance(config, DQN):
        memory = msgspec.structs.replace(config.memory, capacity=max(config.memory.capacity, LONG))
        updates = max(config.updates_per_slab, OFTEN)
        return msgspec.structs.replace(config, centred=True, huber=MEAN, memory=memory, updates_per_slab=updates)
    if isinstance(config, QTable):
        return msgspec.structs.replace(config, centred=True, rate=min(config.rate, SLOW))
    return config


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
