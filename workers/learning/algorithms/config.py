"""Agents as data: small frozen structs that go to JSON and back, checked for types and ranges."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec

# What the configs of all algorithms share: ranges, network, exploration, optimiser, and where it runs.


Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, msgspec.Meta(gt=0.0)]
NonNegative = Annotated[float, msgspec.Meta(ge=0.0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Scorer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One network for every candidate of a set of any size, and in any order: observations [K, F] → K scores.

    `layers` are gone through by each candidate alone; then it sees the `context` of all legal ones: none, their mean
    (Zaheer et al., 2017) or what it attends to (Vaswani et al., 2017); then come the `joint` layers.
    """

    layers: tuple[Count, ...] = (32, 16)
    context: Literal["none", "mean", "attention"] = "mean"
    joint: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)] = (8,)


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Q = head(trunk(observation)).

    A `scorer` takes the place of `layers` and head where an observation is a set of candidates; it adds to the score
    that the environment gives each of them, where it gives one. Where each entry of an observation lies (`centre`) and
    how far it varies (`scale`) changes how a trunk is learned, not what it can say; without them, they are 0 and 1.
    """

    layers: tuple[Count, ...] = (64, 64)
    activation: Literal["relu", "tanh"] = "relu"
    dueling: bool = False
    scorer: Scorer | None = None
    centre: tuple[float, ...] = ()
    scale: tuple[Positive, ...] = ()


class Exploration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far to stray.

    `linear`: ε from start to end over the first `fraction` of the training. `apex`: ε_i = start^(1 + 7i/(N−1)), fixed.
    `softmax`: actions drawn by their values at temperatures, in the reward's unit, from start to end over environments.
    """

    schedule: Literal["linear", "apex", "softmax"] = "linear"
    start: NonNegative = 1.0
    end: NonNegative = 0.05
    fraction: Share = 0.3


class Optimiser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Adam. The rate rises over the first `ramp` updates, holds for the share `hold` of the training, then falls.

    It falls along half a cosine, from `rate` to `rate · end`.
    """

    rate: Positive = 1e-3
    end: Share = 0.02
    hold: Share = 0.2
    ramp: Annotated[int, msgspec.Meta(ge=0)] = 0
    clip: Positive = 10.0


class DeviceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """On which device of torch an agent learns; `auto` is settled by measurement when it is built.

    `compiled` lets the backend compile the pure functions first, where it can.
    """

    device: Literal["auto", "cpu", "cuda"] = "auto"
    compiled: bool = False


# The actor-critic family as data: A2C, A3C, PPO and V-trace are switches of one agent.


class Entropy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The weight of the policy's entropy in the loss: from start to end over the first `fraction` of the training."""

    start: NonNegative = 0.01
    end: NonNegative = 0.0
    fraction: Share = 1.0


class Cloning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Behaviour cloning before the training (Pomerleau, 1991): what an expert did becomes likely.

    Demonstrations are gone over `epochs` times in minibatches of `batch`, at the learning rate `rate`; `entropy` is the
    weight of the policy's entropy beside −log π, and keeps it from being too sure to explore later.
    """

    epochs: Count = 8
    batch: Count = 1_024
    rate: Positive = 3e-3
    entropy: NonNegative = 0.05


class ActorCritic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="actor_critic"):
    """The actor-critic agent; its switches are the family's members.

    `temperature`, in the reward's unit, is what a logit is worth: exported values are temperature · logits, and the
    logits of a scorer begin from the environment's scores over it. A rollout is `rollout` slabs.
    `estimator`: `gae`, with λ = `trace`; `vtrace`, for data of older policies, whose probability ratios are cut at
    `rho` and `cut`. `surrogate`: the plain policy gradient, or PPO's, clipped at 1 ± `clip`. A rollout is gone over
    `epochs` times in random minibatches of `batch` examples (None: all at once), until the policy has moved by more
    than 1.5 · `stop` nats (None: never). `value_clip` bounds the critic's moves likewise. `asynchronous` says that
    actors may compute gradients and apply them to shared parameters (A3C).
    With `recurrent` units, a gated core remembers what was seen earlier in the episode; gradients go back through a
    rollout, and what was remembered at its start is taken as it was. `average` and `centred` are as in `DQN`.
    """

    network: Network = Network()
    temperature: Positive = 0.3
    rollout: Count = 16
    gamma: Share = 1.0
    estimator: Literal["gae", "vtrace"] = "gae"
    trace: Share = 0.95
    rho: Positive = 1.0
    cut: Positive = 1.0
    surrogate: Literal["gradient", "clipped"] = "gradient"
    clip: Annotated[float, msgspec.Meta(gt=0.0, lt=1.0)] = 0.2
    epochs: Count = 1
    batch: Count | None = None
    stop: Positive | None = None
    value_clip: Positive | None = None
    value_weight: NonNegative = 0.5
    normalise: bool = True
    entropy: Entropy = Entropy()
    optimiser: Optimiser = Optimiser()
    centred: bool = False
    average: Share = 0.0
    average_from: Share = 0.5
    asynchronous: bool = False
    recurrent: Count | None = None
    cloning: Cloning = Cloning()
    place: DeviceConfig = DeviceConfig()


A2C = ActorCritic(entropy=Entropy(start=0.005), optimiser=Optimiser(rate=3e-3, clip=0.5), rollout=8)
PPO = msgspec.structs.replace(A2C, surrogate="clipped", rollout=16, epochs=4, batch=512, average=0.02, average_from=0.5)

POLICY_NAMED: dict[str, ActorCritic] = {
    "a2c": A2C,
    "a3c": msgspec.structs.replace(A2C, asynchronous=True),
    "ppo": PPO,
    # the critic shares the core: its squared errors, of returns in hundredths, would be all that the core learns from
    "recurrent_ppo": msgspec.structs.replace(PPO, recurrent=32, value_weight=0.005),
    "vtrace": msgspec.structs.replace(A2C, estimator="vtrace", trace=1.0, normalise=False),
}
"""The members of the family by the names that requests use."""


# The value-based family as data: DQN with its switches, and tabular Q-learning.


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`warm_up` transitions are gathered before the first update.

    `alpha` and `beta` are those of prioritised replay (Schaul et al., 2016); β grows linearly from `beta` to 1 over the
    training's budget.
    """

    capacity: Count = 65_536
    warm_up: Count = 8_192
    prioritised: bool = False
    alpha: Share = 0.6
    beta: Share = 0.4


class Imitation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Learning from demonstrations first, and beside one's own experience later (Hester et al., DQfD, 2018).

    `margin`, in the unit of the reward: by how much the expert's action has to be ahead; `weight` of that loss beside
    the usual one; `updates` on demonstrations alone before the learner acts; later, `share` of every batch is drawn
    from them, and they are never overwritten (the first `capacity` transitions are kept).
    """

    margin: NonNegative = 0.05
    weight: NonNegative = 1.0
    updates: Annotated[int, msgspec.Meta(ge=0)] = 500
    share: Share = 0.25
    capacity: Count = 16_384


class DQN(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="dqn"):
    """The value-based agent; its switches are the family's members.

    `target_share` of the online network enters the target every `target_every` updates (1 is a hard copy).
    `quantiles`, if not 0, of the return of each action are learned in place of its mean, which is what is exported.
    `average` is the per-update weight of the running average of the parameters that is exported, kept over the last
    `average_from` share of the training; 0 exports the last parameters.
    `centred` takes the level that all values share out of the rewards: for problems that never end (see `centring`).
    """

    network: Network = Network()
    exploration: Exploration = Exploration()
    memory: Memory = Memory()
    optimiser: Optimiser = Optimiser()
    double: bool = False
    quantiles: Annotated[int, msgspec.Meta(ge=0, le=200)] = 0
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
    centred: bool = False
    imitation: Imitation | None = None
    place: DeviceConfig = DeviceConfig()


class QTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="q_table"):
    """Tabular Q-learning on a discretised observation.

    `entries` of the observation are cut into at most `bins` equal parts each, between the extremes of the first
    `warm_up` observations; without `entries`, those `at_most` that vary most. The rate of a cell falls with its visits,
    from 1 down to `rate`. `centred` is as in `DQN`.
    """

    entries: tuple[Annotated[int, msgspec.Meta(ge=0)], ...] = ()
    at_most: Count = 4
    bins: Count = 9
    warm_up: Count = 8_192
    rate: Positive = 0.02
    gamma: Share = 1.0
    centred: bool = False
    exploration: Exploration = Exploration()


SERVED = DQN(
    exploration=Exploration(schedule="softmax", start=0.1, end=0.005),
    optimiser=Optimiser(rate=3e-3, ramp=300),
    updates_per_slab=2,
    target_share=0.05,
)
"""The hyper-parameters that resource problems are learned with; the family's members differ by switches only."""

DUELING = Network(dueling=True)

VALUE_NAMED: dict[str, DQN | QTable] = {
    "tabular_q": QTable(exploration=Exploration(start=0.3, end=0.02, fraction=0.7)),
    "dqn": SERVED,
    "double_dqn": msgspec.structs.replace(SERVED, double=True),
    "dueling_dqn": msgspec.structs.replace(SERVED, network=DUELING),
    "dueling_double_dqn": msgspec.structs.replace(SERVED, double=True, network=DUELING),
    "n_step_dqn": msgspec.structs.replace(SERVED, double=True, network=DUELING, n_step=2),
    "prioritised_dqn": msgspec.structs.replace(
        SERVED, double=True, network=DUELING, memory=msgspec.structs.replace(SERVED.memory, prioritised=True)
    ),
    "quantile_dqn": msgspec.structs.replace(SERVED, double=True, network=DUELING, quantiles=16),
    "apex_dqn": msgspec.structs.replace(
        SERVED,
        double=True,
        network=DUELING,
        n_step=3,
        memory=msgspec.structs.replace(SERVED.memory, prioritised=True),
        exploration=Exploration(schedule="apex", start=0.4),
    ),
}
"""The members of the family by the names that requests use."""


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
NAMED: dict[str, BuiltIn] = {**VALUE_NAMED, **POLICY_NAMED}
"""The project's own algorithms, by the name that requests use."""


def encode(config: Config) -> bytes:
    """Return the config as JSON."""
    return msgspec.json.encode(config)


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
    """On a small system a plain gradient at the entropy of a clipped one ends 9 % from the optimum."""
    change = msgspec.structs.replace
    config = change(config, centred=True, trace=min(config.trace, NEAR))
    if config.surrogate == "clipped":
        return change(config, entropy=change(config.entropy, start=max(config.entropy.start, BROAD)))
    broad = change(config.entropy, start=max(config.entropy.start, BROADER))
    return change(config, entropy=broad, batch=MINIBATCH, average=AVERAGE, normalise=True)
