"""Agents as data: small frozen structs that go to JSON and back, checked for types and ranges."""

from typing import Annotated, Literal

import msgspec

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, msgspec.Meta(gt=0.0)]
NonNegative = Annotated[float, msgspec.Meta(ge=0.0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Q = advice + head(trunk(observation)). `advice` uses the environment's per-action advice where it gives one."""

    layers: tuple[Count, ...] = (64, 64)
    activation: Literal["relu", "tanh"] = "relu"
    dueling: bool = False
    advice: bool = True


class Exploration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far to stray.

    `linear`: ε from start to end over the first `fraction` of the training. `apex`: ε_i = start^(1 + 7i/(N−1)), fixed.
    `softmax`: actions drawn by their values at temperatures, in the reward's unit, from start to end over environments.
    """

    schedule: Literal["linear", "apex", "softmax"] = "linear"
    start: NonNegative = 1.0
    end: NonNegative = 0.05
    fraction: Share = 0.3


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`warm_up` transitions are gathered before the first update; α and β are those of prioritised replay."""

    capacity: Count = 65_536
    warm_up: Count = 8_192
    prioritised: bool = False
    alpha: Share = 0.6
    beta: Share = 0.4


class Optimiser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Adam. The rate rises over the first `ramp` updates, holds for the share `hold` of the training, then falls.

    It falls along half a cosine, from `rate` to `rate · end`.
    """

    rate: Positive = 1e-3
    end: Share = 0.02
    hold: Share = 0.2
    ramp: Annotated[int, msgspec.Meta(ge=0)] = 0
    clip: Positive = 10.0


class DQN(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="dqn"):
    """The value-based agent; its switches are the family's members.

    `target_share` of the online network enters the target every `target_every` updates (1 is a hard copy).
    `average` is the per-update weight of the running average of the parameters that is exported, kept over the last
    `average_from` share of the training; 0 exports the last parameters.
    """

    network: Network = Network()
    exploration: Exploration = Exploration()
    memory: Memory = Memory()
    optimiser: Optimiser = Optimiser()
    double: bool = False
    n_step: Count = 1
    gamma: Share = 1.0
    huber: Positive = 1.0
    batch: Count = 1_024
    updates_per_slab: Count = 1
    slabs_per_update: Count = 1
    target_share: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] = 0.01
    target_every: Count = 1
    average: Share = 0.005
    average_from: Share = 0.5
    backend: Literal["torch"] = "torch"


class QTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="q_table"):
    """Tabular Q-learning on a discretised observation.

    `entries` of the observation are cut into at most `bins` equal parts each, between the extremes of the first
    `warm_up` observations; without `entries`, those `at_most` that vary most. The rate of a cell falls with its visits,
    from 1 down to `rate`.
    """

    entries: tuple[Annotated[int, msgspec.Meta(ge=0)], ...] = ()
    at_most: Count = 4
    bins: Count = 9
    warm_up: Count = 8_192
    rate: Positive = 0.02
    gamma: Share = 1.0
    advice: bool = True
    exploration: Exploration = Exploration()


Config = DQN | QTable


def encode(config: Config) -> bytes:
    """Return the config as JSON."""
    return msgspec.json.encode(config)


def decode(data: bytes | str) -> Config:
    """Read a config from JSON; raises msgspec.ValidationError naming the field."""
    return msgspec.json.decode(data, type=Config)


SERVED = DQN(
    exploration=Exploration(schedule="softmax", start=0.1, end=0.005),
    optimiser=Optimiser(rate=3e-3, ramp=300),
    updates_per_slab=2,
    target_share=0.05,
)
"""The hyper-parameters that resource problems are learned with; the family's members differ by switches only."""


def named(name: str) -> Config:
    """Return the config of an algorithm by the name that requests use; raises KeyError."""
    dueling = Network(dueling=True)
    replay = msgspec.structs.replace(SERVED.memory, prioritised=True)
    known: dict[str, Config] = {
        "tabular_q": QTable(exploration=Exploration(start=0.3, end=0.02, fraction=0.7)),
        "dqn": SERVED,
        "double_dqn": msgspec.structs.replace(SERVED, double=True),
        "dueling_dqn": msgspec.structs.replace(SERVED, network=dueling),
        "dueling_double_dqn": msgspec.structs.replace(SERVED, double=True, network=dueling),
        "n_step_dqn": msgspec.structs.replace(SERVED, double=True, network=dueling, n_step=2),
        "prioritised_dqn": msgspec.structs.replace(SERVED, double=True, network=dueling, memory=replay),
    }
    return known[name]
