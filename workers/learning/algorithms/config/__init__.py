"""Agents as data: small frozen structs that go to JSON and back, checked for types and ranges."""

import msgspec

from workers.learning.algorithms.config import policy, value
from workers.learning.algorithms.config.policy import ActorCritic, Cloning, Entropy
from workers.learning.algorithms.config.shared import Exploration, Network, Optimiser, Place, Scorer
from workers.learning.algorithms.config.value import DQN, SERVED, Foresight, Imitation, Memory, QTable

Config = DQN | QTable | ActorCritic
NAMED: dict[str, Config] = {**value.NAMED, **policy.NAMED}
"""Every algorithm that learns, by the name that requests use."""


def encode(config: Config) -> bytes:
    """Return the config as JSON."""
    return msgspec.json.encode(config)


def decode(data: bytes | str) -> Config:
    """Read a config from JSON; raises msgspec.ValidationError naming the field."""
    return msgspec.json.decode(data, type=Config)


def named(name: str) -> Config:
    """Return the config of an algorithm by the name that requests use; raises KeyError."""
    return NAMED[name]


__all__ = [
    "DQN",
    "NAMED",
    "SERVED",
    "ActorCritic",
    "Cloning",
    "Config",
    "Entropy",
    "Exploration",
    "Foresight",
    "Imitation",
    "Memory",
    "Network",
    "Optimiser",
    "Place",
    "QTable",
    "Scorer",
    "decode",
    "encode",
    "named",
]
