"""What agents are compared with, whatever the kind: random legal actions, and a black-box tuner of static settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Self

import numpy as np

from app.kinds.contract.policy import Choice, Policy, Situation
from workers.evaluation.arena import play
from workers.evaluation.levels import Level
from workers.evaluation.problem import Problem

STARTUP = 10  # trials that are drawn at random before the tuner's model has anything to say


@dataclass
class RandomLegal:
    """Any legal action, all alike; drawn from the seed that ``begin`` is told."""

    name: str = "random"
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0), repr=False)

    def begin(self, seed: int) -> None:
        """Draw from ``seed`` from now on."""
        self._random = np.random.default_rng([seed, 7])

    def act(self, situation: Situation) -> Choice:
        """The legal action of the largest random number."""
        drawn = self._random.random(situation.view.mask.shape, np.float32)
        return Choice(np.where(situation.view.mask, drawn, -1).argmax(axis=1))


@dataclass(frozen=True)
class Tuned:
    """What a tuner found.

    Attributes:
        settings: the best, by name; empty where there is nothing to set.
        mean: their return on the training episodes; None where nothing was tried.
        history: trial and the best return so far.
        seconds: that it took.
        reason: why nothing was tried, or None.
    """

    settings: Mapping[str, int]
    mean: float | None
    history: tuple[tuple[int, float], ...]
    seconds: float
    reason: str | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Undo ``as_dict``."""
        history = tuple((int(trial), float(best)) for trial, best in data["history"])
        return cls(data["settings"], data["return"], history, data["seconds"], data["reason"])

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        return {
            "trials": len(self.history),
            "seconds": self.seconds,
            "settings": dict(self.settings),
            "return": self.mean,
            "history": [list(point) for point in self.history],
            "reason": self.reason,
        }


def tune(problem: Problem, trials: int, episodes: int, seed: int) -> Tuned:
    """Look for the static settings with the best return on training episodes: a tree-structured Parzen estimator.

    It knows the problem's tunables alone (Bergstra et al. 2011; Optuna's implementation), and plays the episodes of one
    training seed.
    """
    if not problem.tunables() or trials < 1:
        return Tuned({}, None, (), 0.0, "there is nothing to set" if trials else "no trials were asked for")
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
    return Tuned(dict(zip(names, best, strict=True)), tried[best], tuple(history), perf_counter() - begun)


def _search(problem: Problem, score: Any, trials: int, seed: int) -> list[tuple[int, float]]:
    """Ask and tell; trial and best so far."""
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


def tuner(problem: Problem, tuned: Tuned) -> Policy | None:
    """The policy of what was found; None where nothing was."""
    return problem.static(tuned.settings) if tuned.settings else None
