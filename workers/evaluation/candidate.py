"""Candidates and baselines of an evaluation, and its settings."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from app.kinds.contract.policy import Policy
from workers.evaluation.equivalence import MARGIN
from workers.evaluation.levels import CLASSES, Level
from workers.evaluation.problem import Problem

OPTIMUM, PLAN, RANDOM, TUNER = "optimum", "plan", "random", "tuner"
FEWEST_SEEDS = 5
REFERENCES = {
    OPTIMUM: "the best that can be had",
    TUNER: "static settings, tuned as a black box",
    RANDOM: "any legal action",
}
"""What stands beside heuristics, and what each is."""
PLANNED = "the best that planning found under the policies' own model; no optimum of this level"
"""What stands in the optimum's place at levels where that can't be had."""


@dataclass(frozen=True)
class Candidate:
    """An agent, or one algorithm under several seeds, that is evaluated.

    Attributes:
        name: what reports call it.
        contenders: artifacts, which decide behind the guard, or bare policies; several are one algorithm trained under
            several seeds, and take turns over the evaluation's seeds.
        curve: of its training: environment steps and return.
        outdated: that it is outdated, what to do and why, which is its verdict: nothing of it is played; empty: it is
            evaluated.
    """

    name: str
    contenders: Sequence[bytes | Policy]
    curve: Sequence[tuple[int, float]] = ()
    outdated: str = ""


@dataclass(frozen=True)
class Settings:
    """Size and statistics of an evaluation.

    Attributes:
        seeds: at least 5.
        episodes: of each seed.
        seed: of everything that is drawn; also names the fixed episode of L0.
        confidence: of all intervals.
        equivalence_margin: by how large a share of the best heuristic's return a candidate may be worse and still be
            as good (see ``equivalence``).
        trials: of the tuner.
        tuning_episodes: that each of them plays.
        demonstrations: episodes of each demonstrator in the check for state aliasing.
        level: the highest that is played, ``L0`` to ``L4``.
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

    def skipped(self, level: Level) -> str | None:
        """Why ``level`` is not played though it could be, or None when it is."""
        return f"not asked for: judged up to {self.level}" if level.label > self.level and level in CLASSES else None

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        return asdict(self)


class Listed(NamedTuple):
    """A policy of the evaluation: its name, what it is for, and what it is."""

    name: str
    role: str
    title: str


def listed(problem: Problem, candidates: Sequence[Candidate]) -> list[Listed]:
    """Everybody who plays, in the order in which to show them; nobody where all candidates are outdated.

    Raises:
        ValueError: two of one name, a candidate without contenders, or none at all.
    """
    if not candidates:
        raise ValueError("there is no candidate")
    for candidate in candidates:
        if not candidate.contenders:
            raise ValueError(f"{candidate.name!r} has neither an artifact nor a policy")
    playing = [candidate for candidate in candidates if not candidate.outdated]
    everybody = [
        *(Listed(c.name, "candidate", problem.title(c.contenders[0])) for c in playing),
        *(Listed(name, "heuristic", name) for name in problem.heuristics),
        *(Listed(name, name, title) for name, title in REFERENCES.items()),
    ]
    names = [PLAN, *(one.name for one in everybody), *(c.name for c in candidates if c.outdated)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"names must be unique, and none a baseline's: {', '.join(twice)}")
    return everybody if playing else []
