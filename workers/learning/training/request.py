"""Training requests, the trials derived from them, and successive halving among these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import msgspec

from workers.learning.algorithms import registry
from workers.learning.algorithms.config import DQN, ActorCritic, Config, DeviceConfig, Imitation, QTable, endless

# Successive halving (Jamieson & Talwalkar, 2016): many trials start, the worst stop early, the best is published.
#
# Pure rules, independent of how trials are run. Rungs divide a trial's budget; at each rung all remaining trials are
# compared by the validation return of the best policy that each has had so far, and one in `REDUCTION` continues. So a
# stopped trial was never better than a continuing one, and the published policy is the best of all compared ones.


REDUCTION = 3
FIRST = 0.1  # share of a trial's budget after which trials are first compared


@dataclass(frozen=True)
class Entry:
    """A trial's algorithm, by its name in requests, and seed."""

    algorithm: str
    seed: int


@dataclass(frozen=True)
class TrialRecord:
    """State of a trial in the competition.

    Attributes:
        entry: algorithm and seed.
        rungs: number of comparisons reached.
        score: validation return of its best policy so far; None before the first comparison.
        ended: why it was stopped; None while it runs, empty if it used its whole budget.
    """

    entry: Entry
    rungs: int = 0
    score: float | None = None
    ended: str | None = None


@dataclass(frozen=True)
class Decision:
    """Result of a comparison: indices of the trials to continue (none: the end), and why others stop, by index."""

    survivors: tuple[int, ...]
    stopped: Mapping[int, str]


class Bracket:
    """Schedule of successive halving of a number of trials (ValueError below 1); at each rung the worst ones stop.

    Attributes:
        shares: shares (0 to 1) of a trial's budget at which trials are compared, ascending; the last is 1.
        field: number of trials that run up to each rung.
        work: total work in units of trial budgets.
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
        """Return each trial's share (0 to 1) of a full budget, so that all together use at most ``whole`` budgets."""
        return min(1.0, whole / self.work)

    def decide(self, records: Sequence[TrialRecord]) -> Decision:
        """Choose by score which of the running trials continue; all must have been compared equally often."""
        present = [i for i, record in enumerate(records) if record.ended is None]
        if not present:
            return Decision((), {})
        rung = records[present[0]].rungs
        ranked = sorted(present, key=lambda i: -_score(records[i]))
        if rung >= len(self.field):
            return Decision((), dict.fromkeys(present, ""))
        survivors = self.field[rung]
        after = f"of {len(present)} after {self.shares[rung - 1]:.0%} of its budget, where {survivors} went on"
        stopped = {i: f"number {place + 1} {after}" for place, i in enumerate(ranked) if place >= survivors}
        return Decision(tuple(sorted(ranked[:survivors])), stopped)


def best(records: Sequence[TrialRecord], reference: float | None = None) -> int | None:
    """Return the index of the highest score; None if no trial has a score, or none above ``reference`` (a return)."""
    scored = [i for i, record in enumerate(records) if record.score is not None]
    most = max(scored, key=lambda i: _score(records[i]), default=None)
    if most is None or (reference is not None and reference >= _score(records[most])):
        return None
    return most


def _score(record: TrialRecord) -> float:
    return float("-inf") if record.score is None else record.score


# Training requests, and the trials derived from them.


PLANNER = "planner"
LARGEST_SEED = 2**31
COMPETING = ("ppo",)
"""Algorithms tried by `auto` with every seed, in addition to the planner, unless the kind names others."""
SEEDS = 3  # default of `auto`
STEPS = 2_000_000  # default budget in environment steps
ONLINE = "ppo"  # algorithm of a continual training that starts anew
FEWEST_OBSERVATIONS = 64  # fewest observations to choose a table's bins


class Untrainable(ValueError):
    """Raised if a request cannot give an agent; the message gives the reason."""


@dataclass(frozen=True)
class Start:
    """A published agent to start from: its version number, algorithm's name, and artifact."""

    version: int
    algorithm: str
    artifact: bytes


@dataclass(frozen=True)
class Request:
    """A training request.

    Attributes:
        algorithm: `auto`, `planner`, or a name of `workers.learning.algorithms.registry`.
        budget: environment steps per seed, shared by the competing algorithms; None: 2,000,000 (`STEPS`).
        seed: seed of all random numbers.
        seeds: number of seeds, from `seed` on; None: 3 (`SEEDS`) for `auto`, else 1.
        executor: a name of `workers.learning.execution.EXECUTORS`.
        device: `auto`, `cpu` or `cuda`, for networks.
        imitate: expert to imitate first: a baseline of the kind, or `planner`; None: no expert.
        start: published agent to start from; None: random parameters.
        equivalence_margin: share of the best baseline's return up to which a difference counts as none in the verdict.
        look: in a continual training, the number of verdicts against the same rival, this one included.
        force: whether to learn even where there is nothing to win.
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
    force: bool = False

    @property
    def tuning_budget(self) -> int:
        """Environment steps for the tuning of a rule before learning; 0 where nothing is learned."""
        return 0 if self.algorithm == PLANNER else self.budget or STEPS

    @property
    def plans(self) -> bool:
        """Whether the planner competes."""
        return self.algorithm in {"auto", PLANNER}

    @property
    def competes(self) -> bool:
        """Whether trials of registered algorithms run the request, rather than an algorithm of the kind's own."""
        return self.plans or self.algorithm in registry.names()

    @property
    def tried(self) -> int:
        """Number of seeds to train with."""
        return self.seeds or (SEEDS if self.algorithm == "auto" else 1)


def entries(request: Request, competing: tuple[str, ...]) -> tuple[Entry, ...]:
    """Return the trials of a request, one for each algorithm and seed; none for the planner.

    ``competing``: algorithms that `auto` tries.

    Raises:
        Untrainable: the algorithm is unknown.
    """
    if request.algorithm == PLANNER:
        return ()
    algorithms = competing if request.algorithm == "auto" else (request.algorithm,)
    if request.algorithm == "auto" and request.start is not None:
        algorithms = (request.start.algorithm,)
    for algorithm in algorithms:
        _built_in_config(algorithm)
    seeds = [(request.seed + i) % LARGEST_SEED for i in range(request.tried)]
    return tuple(Entry(algorithm, seed) for seed in seeds for algorithm in algorithms)


def config_for(
    algorithm: str,
    request: Request,
    tabular: tuple[int, ...],
    *,
    continuing: bool = False,
    cloning_entropy: float | None = None,
) -> Config:
    """Return the config of the algorithm of that name, on the request's device.

    ``tabular``, ``continuing`` and ``cloning_entropy`` are attributes of `TrainingProblem`.

    Raises:
        Untrainable: the algorithm is unknown.
    """
    config = _built_in_config(algorithm)
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


def _built_in_config(algorithm: str) -> Config:
    try:
        return registry.algorithm(algorithm).config
    except registry.UnknownAlgorithm:
        raise Untrainable(f"unknown algorithm {algorithm!r}") from None
