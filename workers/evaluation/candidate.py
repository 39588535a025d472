"""Candidates and baselines of an evaluation, and the tuner of static settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np

from app.kinds.contract.policy import Choice, Policy, Situation
from workers.evaluation.arena import play
from workers.evaluation.problem import Problem
from workers.evaluation.statistics import CLASSES, MARGIN, Level

OPTIMUM, PLAN, RANDOM, TUNER = "optimum", "plan", "random", "tuner"
FEWEST_SEEDS = 5
REFERENCES = {
    OPTIMUM: "the exact optimum",
    TUNER: "static settings, tuned as a black box",
    RANDOM: "any legal action",
}
"""Titles of the reference policies other than heuristics, by role."""
PLANNED = "the best that planning found under the policies' own model; no optimum of this level"
"""Title of the best plan, shown instead of the optimum at levels where no exact optimum is available."""


@dataclass(frozen=True)
class Candidate:
    """An agent to evaluate, or one algorithm trained under several seeds.

    Attributes:
        name: name in reports.
        contenders: artifacts, behind a guard that may replace actions by a heuristic's, or bare policies; several
            are one algorithm trained under several seeds, and are assigned to the evaluation's seeds in turn.
        curve: learning curve: pairs of environment steps and mean return.
        outdated: why it has to be trained again, in words, for example for a changed spec; it isn't played then.
    """

    name: str
    contenders: Sequence[bytes | Policy]
    curve: Sequence[tuple[int, float]] = ()
    outdated: str = ""


@dataclass(frozen=True)
class Settings:
    """Size and statistics of an evaluation.

    Attributes:
        seeds: number of seeds, at least 5.
        episodes: number of episodes per seed, at least 2.
        seed: seed of all random numbers; also selects the fixed episode of L0.
        confidence: confidence level of all intervals, 0 to 1.
        equivalence_margin: share (0 to 1) of the best heuristic's return by which a candidate may be worse and still
            count as equally good.
        trials: number of the tuner's trials.
        tuning_episodes: number of episodes per trial of the tuner.
        demonstrations: number of episodes per demonstrator in the check for state aliasing.
        level: the highest level of randomness to play, ``L0`` (none) to ``L4``.

    Raises:
        ValueError: too few seeds or episodes, or no such level.
    """

    seeds: int = 5
    episodes: int = 256
    seed: int = 0
    confidence: float = 0.95
    equivalence_margin: float = MARGIN
    trials: int = 40
    tuning_episodes: int = 128
    demonstrations: int = 32
    level: str = "L4"

    def __post_init__(self) -> None:
        if self.seeds < FEWEST_SEEDS:
            raise ValueError(f"seeds must be at least {FEWEST_SEEDS}: {self.seeds}")
        if self.episodes < 2:
            raise ValueError(f"episodes must be at least 2: {self.episodes}")
        if self.level not in {level.label for level in CLASSES}:
            raise ValueError(f"level must be L0 to L4: {self.level!r}")

    def skip_reason(self, level: Level) -> str | None:
        """Return in words that ``level`` is above the highest one to play; None if it is to be played."""
        return f"not requested: evaluated up to {self.level}" if level.label > self.level and level in CLASSES else None

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values by name."""
        return asdict(self)


class PolicyEntry(NamedTuple):
    """A policy's name, its title, and its role: candidate, heuristic, optimum, plan, tuner or random."""

    name: str
    role: str
    title: str


def list_policies(problem: Problem, candidates: Sequence[Candidate]) -> list[PolicyEntry]:
    """List all policies of an evaluation in display order; empty where all candidates have to be trained again.

    Raises:
        ValueError: no candidate, a candidate without contenders, or a name that occurs twice.
    """
    if not candidates:
        raise ValueError("there is no candidate")
    for candidate in candidates:
        if not candidate.contenders:
            raise ValueError(f"{candidate.name!r} has neither an artifact nor a policy")
    playing = [candidate for candidate in candidates if not candidate.outdated]
    everybody = [
        *(PolicyEntry(c.name, "candidate", problem.title(c.contenders[0])) for c in playing),
        *(PolicyEntry(name, "heuristic", name) for name in problem.heuristics),
        *(PolicyEntry(name, name, title) for name, title in REFERENCES.items()),
    ]
    names = [PLAN, *(one.name for one in everybody), *(c.name for c in candidates if c.outdated)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"names must be unique, and none a baseline's: {', '.join(twice)}")
    return everybody if playing else []


# Baselines common to all kinds: random legal actions, and a black-box tuner of static settings.


STARTUP = 10  # random trials before the tuner's model is used


@dataclass
class RandomLegal:
    """Baseline that draws uniformly among the legal actions, from the seed given to ``begin``."""

    name: str = "random"
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), repr=False)

    def begin(self, seed: int) -> None:
        """Seed the random generator with ``seed``."""
        self._random = np.random.default_rng([seed, 7])

    def act(self, situation: Situation) -> Choice:
        """Draw the index of a legal action for each of the situation's B episodes."""
        drawn = self._random.random(situation.view.mask.shape, np.float32)
        return Choice(np.where(situation.view.mask, drawn, -1).argmax(axis=1))


@dataclass(frozen=True)
class TuningResult:
    """Result of the tuner of static settings.

    Attributes:
        settings: the best values by setting's name; empty where there are none to tune.
        mean: mean return of the best values on the training episodes; None without a trial.
        history: pairs of trial number (from 0) and best return so far.
        seconds: wall-clock duration of the search in seconds.
        reason: why there was no trial, in words; None if there was one.
    """

    settings: Mapping[str, int]
    mean: float | None
    history: tuple[tuple[int, float], ...]
    seconds: float
    reason: str | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Restore a result from the values that ``as_dict`` returned; raises KeyError if a field is missing."""
        history = tuple((int(trial), float(best)) for trial, best in data["history"])
        return cls(data["settings"], data["return"], history, data["seconds"], data["reason"])

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and the number of ``trials`` as plain JSON values by name; ``mean`` is ``return``."""
        return {
            "trials": len(self.history),
            "seconds": self.seconds,
            "settings": dict(self.settings),
            "return": self.mean,
            "history": [list(point) for point in self.history],
            "reason": self.reason,
        }


def tune(problem: Problem, trials: int, episodes: int, seed: int) -> TuningResult:
    """Search for the static settings of the best mean return on training episodes of one seed.

    Black-box search over the problem's tunables by a tree-structured Parzen estimator (Bergstra et al. 2011; Optuna).
    Without tunables or trials the result holds no settings, and the reason.

    Args:
        problem: the workload.
        trials: number of trials; repeated settings are not played again.
        episodes: number of episodes per trial.
        seed: seed of episodes and search.
    """
    if not problem.tunables() or trials < 1:
        return TuningResult({}, None, (), 0.0, "there is nothing to set" if trials else "no trials were requested")
    begun, tried = perf_counter(), dict[tuple[int, ...], float]()

    def score(values: Mapping[str, int]) -> float:
        key = tuple(values.values())
        if key not in tried:
            player = problem.player(problem.static(values))
            tried[key] = float(play(problem.world(episodes, seed), Level.TRAIN, seed, player).returns.mean())
        return tried[key]

    history = _search(problem, score, trials, seed)
    best = max(tried, key=lambda key: tried[key])
    names = [tunable.name for tunable in problem.tunables()]
    return TuningResult(dict(zip(names, best, strict=True)), tried[best], tuple(history), perf_counter() - begun)


def _search(problem: Problem, score: Any, trials: int, seed: int) -> list[tuple[int, float]]:
    """Maximise ``score`` (settings by name → return) by Optuna; return pairs of trial number and best return so far."""
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        sampler = optuna.samplers.TPESampler(seed=seed % (1 << 32), n_startup_trials=STARTUP)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        history: list[tuple[int, float]] = []
        for number in range(trials):
            trial = study.ask()
            value = score({one.name: trial.suggest_int(one.name, one.low, one.high) for one in problem.tunables()})
            study.tell(trial, value)
            history.append((number, max([value, *(best for _, best in history[-1:])])))
        return history
    finally:
        optuna.logging.set_verbosity(verbosity)


def tuner(problem: Problem, tuned: TuningResult) -> Policy | None:
    """Return the static policy of the tuner's best settings; None if it found none."""
    return problem.static(tuned.settings) if tuned.settings else None
