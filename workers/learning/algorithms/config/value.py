"""The value-based family as data: DQN with its switches, and tabular Q-learning."""

from typing import Annotated

import msgspec

from workers.learning.algorithms.config.shared import (
    Count,
    DeviceConfig,
    Exploration,
    Network,
    NonNegative,
    Optimiser,
    Positive,
    Share,
)


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

NAMED: dict[str, DQN | QTable] = {
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
