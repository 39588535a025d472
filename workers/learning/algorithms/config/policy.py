"""The actor-critic family as data: A2C, A3C, PPO and V-trace are switches of one agent."""

from typing import Annotated, Literal

import msgspec

from workers.learning.algorithms.config.shared import (
    Count,
    DeviceConfig,
    Network,
    NonNegative,
    Optimiser,
    Positive,
    Share,
)


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

NAMED: dict[str, ActorCritic] = {
    "a2c": A2C,
    "a3c": msgspec.structs.replace(A2C, asynchronous=True),
    "ppo": PPO,
    # the critic shares the core: its squared errors, of returns in hundredths, would be all that the core learns from
    "recurrent_ppo": msgspec.structs.replace(PPO, recurrent=32, value_weight=0.005),
    "vtrace": msgspec.structs.replace(A2C, estimator="vtrace", trace=1.0, normalise=False),
}
"""The members of the family by the names that requests use."""
