"""A heuristic as a publishable policy."""

from dataclasses import dataclass
from typing import Any, Self

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.heuristics import HEURISTICS
from app.policies.base import Arrays, IncompatibleArtifact


@dataclass(frozen=True)
class HeuristicPolicy:
    """The heuristic that ``config["heuristic"]`` names."""

    config: dict[str, Any]

    @property
    def name(self) -> str:
        """The heuristic's name."""
        return str(self.config["heuristic"])

    @property
    def arrays(self) -> Arrays:
        """None: a rule has no numbers."""
        return {}

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Look the heuristic up.

        Raises:
            IncompatibleArtifact: there is no heuristic of that name.
        """
        if config.get("heuristic") not in HEURISTICS or arrays:
            raise IncompatibleArtifact(f"no heuristic is called {config.get('heuristic')!r}")
        return cls(config)

    def act(self, situation: Situation) -> Choice:
        """Apply the rule."""
        return HEURISTICS[self.name].act(situation)
