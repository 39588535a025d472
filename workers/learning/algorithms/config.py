"""Configs of the built-in algorithms as frozen structs: JSON-serialisable, checked for types and ranges."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec

# Parts common to all configs: ranges, network, exploration, optimiser, and device.


Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, msgspec.Meta(gt=0.0)]
NonNegative = Annotated[float, msgspec.Meta(ge=0.0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Scorer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Config of a network that scores each of K candidates of F features in any order: observation [K, F] → scores [K].

    `layers` process each candidate alone; then the `context` of all legal candidates is added: none, their mean
    (Zaheer et al., 2017) or attention to them (Vaswani et al., 2017); then the `joint` layers follow. All are widths.
    """

    layers: tuple[Count, ...] = (32, 16)
    context: Literal["none", "mean", "attention"] = "mean"
    joint: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)] = (8,)


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Config of a network head(trunk(observation)), with trunk widths `layers`.

    A `scorer` (None: none) replaces trunk and head where an observation is a set of candidates; its output is added to
    the environment's own score of each candidate, if there is one. `centre` and `scale` (mean and standard deviation of
    each observation entry; empty: 0 and 1) condition the optimisation only; the network can represent the same.
    """

    layers: tuple[Count, ...] = (64, 64)
    activation: Literal["relu", "tanh"] = "relu"
    dueling: bool = False
    scorer: Scorer | None = None
    centre: tuple[float, ...] = ()
    scale: tuple[Positive, ...] = ()


class Exploration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Schedule of the exploration.

    `linear`: ε from start to end over the first `fraction` (0 to 1) of the training. `apex`: constant
    ε_i = start^(1 + 7i/(B−1)) of environment i of B. `softmax`: actions drawn by their values at constant temperatures,
    in the reward's unit, spaced geometrically from start to end over the environments.
    """

    schedule: Literal["linear", "apex", "softmax"] = "linear"
    start: NonNegative = 1.0
    end: NonNegative = 0.05
    fraction: Share = 0.3


class Optimiser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Adam with a schedule of the learning rate.

    The rate rises linearly over the first `ramp` updates, is `rate` up to the share `hold` (0 to 1) of the training,
    and then falls along half a cosine to `rate · end`. `clip` is the largest Euclidean norm of a gradient.
    """

    rate: Positive = 1e-3
    end: Share = 0.02
    hold: Share = 0.2
    ramp: Annotated[int, msgspec.Meta(ge=0)] = 0
    clip: Positive = 10.0


class DeviceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Torch device to learn on; `auto` is decided by timing when the agent is built.

    `compiled`: whether to compile the pure functions by torch.compile first.
    """

    device: Literal["auto", "cpu", "cuda"] = "auto"
    compiled: bool = False


# The actor-critic family as data: A2C, A3C, PPO and V-trace are switches of one agent.


class Entropy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weight of the policy's entropy (nats) in the loss: linear from start to end over a `fraction` of the training."""

    start: NonNegative = 0.01
    end: NonNegative = 0.0
    fraction: Share = 1.0


class Cloning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Behaviour cloning before the training (Pomerleau, 1991): raises the likelihood of an expert's actions.

    `epochs` passes over the demonstrations in minibatches of `batch` examples, at the learning rate `rate`. `entropy`
    is the weight of the policy's entropy against −log π, so that later exploration remains possible.
    """

    epochs: Count = 8
    batch: Count = 1_024
    rate: Positive = 3e-3
    entropy: NonNegative = 0.05


class ActorCritic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="actor_critic"):
    """Config of the actor-critic agent; its switches give the members of the family.

    `temperature`, in the reward's unit, is the value of one logit: exported values are temperature · logits, and a
    scorer's logits start from the environment's scores divided by it. A rollout has `rollout` steps, `gamma` is the
    discount factor per step.

    `estimator`: `gae`, with λ = `trace`; `vtrace`, for data of older policies, whose probability ratios are truncated
    at `rho` and `cut`. `surrogate`: the plain policy gradient, or PPO's, clipped at 1 ± `clip`. Each rollout is used
    for `epochs` passes in random minibatches of `batch` examples (None: all at once), until the KL divergence exceeds
    1.5 · `stop` nats (None: never). `value_clip` limits changes of the critic's values (None: no limit), `value_weight`
    is the weight of their loss. `normalise`: standardise advantages. `asynchronous`: actors may compute gradients and
    apply them to shared parameters (A3C).

    `recurrent`: number of GRU units (None: no memory); gradients flow back through one rollout, and the memory at its
    start is a constant. `average`: weight per update of the exported running average of the parameters (0: the last),
    from the share `average_from` of the training on; `centred`: subtract the rewards' average; `place`: the device.
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

    @property
    def own_gradients(self) -> bool:
        """Whether all components of its losses have gradients of their own.

        False with a recurrent core or a scorer, and for subclasses, to which other packages may add components.
        """
        return type(self) is ActorCritic and self.recurrent is None and self.network.scorer is None


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
"""Configs of the family's members, by the algorithm name in requests."""


# The value-based family as data: DQN with its switches, and tabular Q-learning.


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replay memory of `capacity` transitions; updates start after `warm_up` transitions.

    `prioritised`: draw by priority (Schaul et al., 2016) with exponents `alpha` of priorities and β of importance
    weights, which grows linearly from `beta` to 1 over the training; otherwise uniformly.
    """

    capacity: Count = 65_536
    warm_up: Count = 8_192
    prioritised: bool = False
    alpha: Share = 0.6
    beta: Share = 0.4


class Imitation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of learning from demonstrations before and during the training (Hester et al., DQfD, 2018).

    `margin`, in the reward's unit: by how much the value of the expert's action must exceed those of others; `weight`
    of that loss relative to the TD loss; `updates` on demonstrations alone before the training; `share` (0 to 1) of
    every later batch drawn from them. The first `capacity` transitions are stored, and never overwritten.
    """

    margin: NonNegative = 0.05
    weight: NonNegative = 1.0
    updates: Annotated[int, msgspec.Meta(ge=0)] = 500
    share: Share = 0.25
    capacity: Count = 16_384


class DQN(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="dqn"):
    """Config of the value-based agent; its switches give the members of the family.

    `double`: Double DQN's target. Returns are over `n_step` steps with the discount factor `gamma` per step; errors
    above `huber` have a linear loss. `updates_per_slab` updates on `batch` transitions each follow every
    `slabs_per_update` steps. `imitation`: settings of demonstrations (None: no demonstrations); `place`: the device.

    `target_share` of the online network is blended into the target every `target_every` updates (1 is a hard copy).
    `quantiles`: number of quantiles of each action's return to learn instead of its mean, which is exported; 0: the
    mean. `average`: weight per update of the exported running average of the parameters, which starts at the share
    `average_from` of the training; 0 exports the last parameters. `centred` subtracts the average level from the
    rewards, for problems without end (`q_table.centre_rewards`).
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
    """Config of tabular Q-learning on a discretised observation.

    `entries` (indices; empty: the `at_most` ones of largest standard deviation) of the observation are cut into equal
    intervals by the first `warm_up` observations: an entry of more than `bins` distinct values into `bins` between its
    extremes, another by the narrowest gap between its values, into at most 64 (`bins` if the table would exceed 2¹⁹
    cells). The learning rate of a cell falls with its visits, from 1 to `rate`, which itself falls linearly over the
    training, to 1e-4. `gamma` is the discount factor per step; `centred`: subtract the rewards' average level.
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
"""Default hyper-parameters for resource problems; the family's members differ only by switches."""

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
"""Configs of the family's members, by the algorithm name in requests."""


AnyConfig = TypeVar("AnyConfig", bound=msgspec.Struct)
AnyActor = TypeVar("AnyActor", bound=ActorCritic)
BROAD, BROADER = 0.1, 0.3  # initial entropy weight of clipped and of plain policy gradients
NEAR = 0.8  # largest λ of advantages, since observed rewards are mostly noise
MINIBATCH, AVERAGE = 512, 0.02  # of plain policy gradients, for more and less noisy steps
MEAN = 10.0  # error above which the loss is linear, with noise of about 1
LONG, OFTEN = 1 << 18, 4  # capacity of the replay memory, and updates per slab
SLOW = 0.005  # learning rate of a table
Config: TypeAlias = msgspec.Struct
"""Config of any algorithm, built-in or from a plug-in."""
BuiltIn = DQN | QTable | ActorCritic
NAMED: dict[str, BuiltIn] = {**VALUE_NAMED, **POLICY_NAMED}
"""Configs of the built-in algorithms, by the algorithm name in requests."""


def encode(config: Config) -> bytes:
    """Serialise a config to JSON bytes, which `registry.decode` reads."""
    return msgspec.json.encode(config)


def built_in_config(name: str) -> BuiltIn:
    """Return the config of the built-in algorithm of that name in requests; raises KeyError if there is none."""
    return NAMED[name]


def endless(config: AnyConfig) -> AnyConfig:
    """Return a config adapted to problems without end; configs of plug-ins are returned unchanged.

    Rewards are centred. One decision's effect is then small against the noise: policies keep a higher entropy for
    longer (on a small queue gradients end 10 % from the optimum at the usual entropy, below 0.5 % at 0.1), advantages
    use a shorter trace, losses do not clip errors that are noise, and values average over more data.
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
    """Return the config for problems without end: centred rewards, higher entropy, shorter trace.

    Plain gradients need more entropy than PPO: with PPO's they end 9 % from the optimum of a small system.
    """
    change = msgspec.structs.replace
    config = change(config, centred=True, trace=min(config.trace, NEAR))
    if config.surrogate == "clipped":
        return change(config, entropy=change(config.entropy, start=max(config.entropy.start, BROAD)))
    broad = change(config.entropy, start=max(config.entropy.start, BROADER))
    return change(config, entropy=broad, batch=MINIBATCH, average=AVERAGE, normalise=True)
