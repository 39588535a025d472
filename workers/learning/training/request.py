"""What a training is asked for, the trials that come of it, and which of them go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import msgspec

from workers.learning.algorithms import registry
from workers.learning.algorithms.config import DQN, ActorCritic, Config, DeviceConfig, Imitation, QTable, endless

# Successive halving (Jamieson & Talwalkar, 2016): many trials begin, the worst stop early, the best is published.
#
# Pure rules, whoever runs the trials. A trial's budget is cut by rungs; at each rung all trials that are still there
# are compared by the return of the best policy that each has had so far, on the same validation episodes, and one in
# `REDUCTION` goes on. So what is stopped has never been better than what goes on, and what is published is the best of
# all that was ever compared.


REDUCTION = 3
FIRST = 0.1  # share of a trial's budget after which trials are first compared


@dataclass(frozen=True)
class Entry:
    """A trial that is to be made."""

    algorithm: str
    seed: int


@dataclass(frozen=True)
class TrialRecord:
    """The state of a trial.

    Attributes:
        rungs: how many comparisons it has reached.
        score: return of its best policy so far on the validation episodes; None before its first comparison.
        ended: why it goes no further; None while it does.
    """

    entry: Entry
    rungs: int = 0
    score: float | None = None
    ended: str | None = None


@dataclass(frozen=True)
class Decision:
    """What follows from a comparison: positions of the trials that go on, and why others are stopped.

    With nobody to go on, it is over.
    """

    survivors: tuple[int, ...]
    stopped: Mapping[int, str]


class Bracket:
    """The rungs of a number of trials.

    Attributes:
        shares: of a trial's budget at which trials are compared, ascending; the last is 1.
        field: how many trials go up to each of them.
        work: trial budgets that it takes in all.
    """

    def __init__(self, trials: int) -> None:
        if trials < 1:
            raise ValueError("a bracket needs a trial at least")
        field = [trials]
        while field[-1] > 1:
            field.append(ceil(field[-1] / REDUCTION))
        rungs = len(field) - 1
        self.field = tuple(field)
        self.shares = (*(FIRST ** (1 - rung / rungs) for rung in range(rungs)), 1.0)
        before = (0.0, *self.shares)
        self.work = sum(n * (share - last) for n, share, last in zip(self.field, self.shares, before, strict=False))

    def budget(self, whole: float) -> float:
        """What each trial may use at most, of a budget that all of them share but that none exceeds.

        `whole`: in trial budgets.
        """
        return min(1.0, whole / self.work)

    def decide(self, records: Sequence[TrialRecord]) -> Decision:
        """Compare the trials that go on, all of which have reached the same rung."""
        present = [i for i, record in enumerate(records) if record.ended is None]
        if not present:
            return Decision((), {})
        rung = records[present[0]].rungs
        ranked = sorted(present, key=lambda i: -_score(records[i]))
        if rung >= len(self.field):
            return Decision((), dict.fromkeys(present, ""))
        kept = self.field[rung]
        after = f"of {len(present)} after {self.shares[rung - 1]:.0%} of its budget, where {kept} went on"
        stopped = {i: f"number {place + 1} {after}" for place, i in enumerate(ranked) if place >= kept}
        return Decision(tuple(sorted(ranked[:kept])), stopped)


def best(records: Sequence[TrialRecord], reference: float | None = None) -> int | None:
    """The position of the trial to publish; None: what scored ``reference``, or nobody where there is none."""
    scored = [i for i, record in enumerate(records) if record.score is not None]
    found = max(scored, key=lambda i: _score(records[i]), default=None)
    if found is None or (reference is not None and reference >= _score(records[found])):
        return None
    return found


def _score(record: TrialRecord) -> float:
    return float("-inf") if record.score is None else record.score


# What a training is asked for, and the trials that come of it.


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
