"""What the configs of all algorithms share: ranges, network, exploration, optimiser, and where it runs."""

from typing import Annotated, Literal

import msgspec

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
