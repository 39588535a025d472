"""What a training is asked for, and the trials that come of it."""

from dataclasses import dataclass

import msgspec

from workers.learning.algorithms import registry
from workers.learning.algorithms.config import DQN, ActorCritic, Config, DeviceConfig, Imitation, QTable, endless
from workers.learning.bracket import Entry

PLANNER = "planner"
LARGEST_SEED = 2**31
COMPETING = ("ppo",)
"""The algorithms that `auto` tries with every seed, beside the planner."""
SEEDS = 3  # of `auto`, where their number is not given
STEPS = 2_000_000  # where no budget is given
ONLINE = "ppo"  # what goes on from window to window, where it begins anew
FEWEST_OBSERVATIONS = 64  # by which a table cuts its cells


class Untrainable(ValueError):
    """No agent can be had by what was asked for; the message says why."""


@dataclass(frozen=True)
class Start:
    """An agent to go on from: its version, what trained it, and its artifact."""

    version: int
    algorithm: str
    artifact: bytes


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        algorithm: `auto`, `planner`, or a name of `workers.learning.algorithms.registry`.
        budget: environment steps for each seed, shared by the algorithms that compete; None for `STEPS`.
        seed: of everything that is drawn.
        seeds: how many seeds are tried, from `seed` on; None: `SEEDS` of `auto`, one of a named algorithm.
        executor: a name of `workers.learning.execution.EXECUTORS`.
        device: `auto`, `cpu` or `cuda`: where networks are computed.
        imitate: the expert whose play is imitated before learning: a baseline of the kind, or `planner`.
        start: the agent whose parameters are gone on from.
        equivalence_margin: share of the best baseline's return up to which a difference counts as none in the verdict.
        look: of a training that goes on: how often what answers has been judged by now, this time included.
    """

    algorithm: str = "auto"
    budget: int | None = None
    seed: int = 0
    seeds: int | None = None
    executor: str = "serial"
    device: str = "auto"
    imitate: str | None = None
    start: Start | None = None
    equivalence_margin: float = 0.01
    look: int = 1

    @property
    def plans(self) -> bool:
        """Whether the planner competes."""
        return self.algorithm in {"auto", PLANNER}

    @property
    def competes(self) -> bool:
        """Whether trials are made of it, by the registered algorithms; else it is of a kind's own."""
        return self.plans or self.algorithm in registry.names()

    @property
    def tried(self) -> int:
        """How many seeds are tried."""
        return self.seeds or (SEEDS if self.algorithm == "auto" else 1)


def entries(request: Request) -> tuple[Entry, ...]:
    """The trials to be made: algorithms × seeds; none where nothing is learned.

    Raises:
        Untrainable: the algorithm is unknown.
    """
    if request.algorithm == PLANNER:
        return ()
    algorithms = COMPETING if request.algorithm == "auto" else (request.algorithm,)
    if request.algorithm == "auto" and request.start is not None:
        algorithms = (request.start.algorithm,)
    for algorithm in algorithms:
        _named(algorithm)
    seeds = [(request.seed + i) % LARGEST_SEED for i in range(request.tried)]
    return tuple(Entry(algorithm, seed) for seed in seeds for algorithm in algorithms)


def configured(
    algorithm: str,
    request: Request,
    tabular: tuple[int, ...],
    *,
    continuing: bool = False,
    cloning_entropy: float | None = None,
) -> Config:
    """The config that an algorithm's name stands for, on the device that was asked for.

    `tabular`, `continuing` and `cloning_entropy` are as in `TrainingProblem`.

    Raises:
        Untrainable: the algorithm is unknown.
    """
    config = _named(algorithm)
    if continuing:
        config = endless(config)
    if isinstance(config, ActorCritic) and cloning_entropy is not None:
        cloning = msgspec.structs.replace(config.cloning, entropy=cloning_entropy)
        config = msgspec.structs.replace(config, cloning=cloning)
    if isinstance(config, QTable):
        warm_up = min(config.warm_up, max(FEWEST_OBSERVATIONS, (request.budget or STEPS) // 50))
        return msgspec.structs.replace(config, entries=tabular, warm_up=warm_up)
    if hasattr(config, "place"):
        config = msgspec.structs.replace(config, place=msgspec.convert({"device": request.device}, DeviceConfig))
    if isinstance(config, DQN) and request.imitate is not None:
        return msgspec.structs.replace(config, imitation=Imitation())
    return config


def _named(algorithm: str) -> Config:
    try:
        return registry.algorithm(algorithm).config
    except registry.UnknownAlgorithm:
        raise Untrainable(f"unknown algorithm {algorithm!r}") from None
