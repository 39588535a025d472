"""Policies of queues: a rule, and tuned priorities."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from app.kinds.workflow.policies.base import Orders, Waiting
from app.kinds.workflow.run_times import SHORTEST
from app.kinds.workflow.scheduling import priority
from app.kinds.workflow.scheduling.dispatch import CONSERVATIVE, EASY
from app.kinds.workflow.scheduling.priority import NAMES, WEIGHTS
from app.kinds.workflow.scheduling.rules import RULES, scores
from app.kinds.workflow.trace import Seconds
from app.policies.base import Arrays, IncompatibleArtifact


@dataclass(frozen=True)
class StrategyPolicy:
    """The rule that ``config["rule"]`` names."""

    config: dict[str, Any]

    @property
    def name(self) -> str:
        """The rule's."""
        return str(self.config["rule"])

    @property
    def arrays(self) -> Arrays:
        """None."""
        return {}

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Look the rule up.

        Raises:
            IncompatibleArtifact: there is no such rule.
        """
        if config.get("rule") not in RULES or arrays:
            raise IncompatibleArtifact(f"no rule is called {config.get('rule')!r}; known are {', '.join(RULES)}")
        return cls(config)

    def orders(self, waiting: Waiting) -> Orders:
        """By the rule's scores."""
        rule = RULES.index(self.name)
        return Orders(scores(rule, waiting.now, waiting.submit, waiting.expected, waiting.processors), None)


@dataclass(frozen=True, eq=False)
class PriorityPolicy:
    """Priorities of the family of ``scheduling.priority``: weights for none, rls and easy, [3, ``WEIGHTS``].

    Under conservative backfilling it orders as under EASY.
    """

    weights: Seconds

    name = "priority"

    @property
    def config(self) -> dict[str, Any]:
        """Names of the weights."""
        return {"weights": list(NAMES)}

    @property
    def arrays(self) -> Arrays:
        """The weights."""
        return {"weights": self.weights}

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Check names and shapes.

        Raises:
            IncompatibleArtifact: there are other weights.
        """
        weights = np.asarray(arrays.get("weights", np.zeros(0)), np.float64)
        if tuple(config.get("weights", ())) != NAMES or weights.shape != (CONSERVATIVE, WEIGHTS):
            raise IncompatibleArtifact(f"the weights are not those of {', '.join(NAMES)} for each of {CONSERVATIVE}")
        return cls(weights)

    def under(self, mechanism: int) -> Seconds:
        """The weights for a mechanism, [``WEIGHTS``]."""
        found: Seconds = self.weights[min(mechanism, EASY)]
        return found

    def orders(self, waiting: Waiting) -> Orders:
        """By predicted run time, processors and wait."""
        weights = self.under(waiting.mechanism)
        length = np.log(np.maximum(waiting.requested, SHORTEST)) + weights[priority.PREDICTION] * waiting.share
        need = waiting.processors
        first = priority.scores(weights, waiting.now, waiting.submit, length, need, waiting.machine)
        return Orders(first, priority.overtaking(weights, length, need))
