"""Agents as data: small frozen structs that go to JSON and back, checked for types and ranges."""

from typing import TypeAlias

import msgspec

from workers.learning.algorithms.config import policy, value
from workers.learning.algorithms.config.policy import ActorCritic, Cloning, Entropy
from workers.learning.algorithms.config.shared import DeviceConfig, Exploration, Network, Optimiser, Scorer
from workers.learning.algorithms.config.value import DQN, SERVED, Imitation, Memory, QTable

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
    "named",
]
