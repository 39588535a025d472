"""Policies of kind `workflow`, and their artifacts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.tensors import written
from app.kinds.workflow.run_times import SHORTEST
from app.kinds.workflow.scheduling import planning
from app.kinds.workflow.scheduling.dispatch import CONSERVATIVE, EASY
from app.kinds.workflow.scheduling.planning import NAMES, WEIGHTS
from app.kinds.workflow.scheduling.rules import RULES, scores
from app.kinds.workflow.trace import Seconds
from app.policies.artifact import Artifact, parts
from app.policies.base import Arrays, IncompatibleArtifact

# The contract of a policy that orders tasks.


class Waiting(NamedTuple):
    """Q ready tasks at a decision.

    Attributes:
        now: seconds.
        submit: seconds, [Q].
        expected: seconds that a task is planned with, [Q].
        requested: its estimate, or as above where it has none, on the nodes that there are, [Q].
        share: logarithm of the share of its estimate that a task is predicted to take, at most 0, [Q].
        processors: [Q].
        machine: processors of all nodes that take tasks.
        mechanism: index into ``MECHANISMS``.
    """

    now: float
    submit: Seconds
    expected: Seconds
    requested: Seconds
    share: Seconds
    processors: NDArray[np.int64]
    machine: int
    mechanism: int


class Orders(NamedTuple):
    """What a policy says, the smallest scores first.

    Attributes:
        scores: by which tasks start, [Q].
        overtaking: by which tasks overtake one that must wait, [Q]; None: as the workload has it.
    """

    scores: Seconds
    overtaking: Seconds | None


class QueuePolicy(Protocol):
    """A policy that orders tasks."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    @property
    def config(self) -> dict[str, Any]:
        """JSON object that, with ``arrays``, rebuilds it."""
        ...

    @property
    def arrays(self) -> Arrays:
        """Its numbers by name."""
        ...

    def orders(self, waiting: Waiting) -> Orders:
        """The order in which tasks start, and that in which they overtake."""
        ...


# Policies of queues: a rule, and tuned priorities.


@dataclass(frozen=True)
class StrategyPolicy:
    """The rule that ``config["rule"]`` names."""

    config: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the rule."""
        return str(self.config["rule"])

    @property
    def arrays(self) -> Arrays:
        """No arrays: a rule has none."""
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
        """The weights, by name."""
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
        length = np.log(np.maximum(waiting.requested, SHORTEST)) + weights[planning.PREDICTION] * waiting.share
        need = waiting.processors
        first = planning.scores(weights, waiting.now, waiting.submit, length, need, waiting.machine)
        return Orders(first, planning.overtaking(weights, length, need))


# Schedulers as files: a JSON header and arrays in safetensors.


FORMAT = 1
KIND = "workflow"
SHIPPED = Path(__file__).parent / "pretrained.safetensors"
"""Priorities that ship with the package; ``python -m benchmarks.workflow_generalisation --ship FILE`` makes them."""

Scheduler = StrategyPolicy | PriorityPolicy
SCHEDULERS: dict[str, type[Scheduler]] = {"strategy": StrategyPolicy, "priority": PriorityPolicy}


def save(policy: Scheduler) -> bytes:
    """A policy as the bytes of an artifact."""
    kind = next(name for name, family in SCHEDULERS.items() if isinstance(policy, family))
    header = {"kind": KIND, "policy": kind, "config": policy.config}
    return written(policy.arrays, {"format": str(FORMAT), "header": json.dumps(header, sort_keys=True)})


def load(data: bytes) -> Scheduler:
    """Read what ``save`` wrote.

    Raises:
        IncompatibleArtifact: bytes that are no artifact, of another kind or format, or whose parts do not fit.
    """
    version, header, arrays = parts(data)
    if version != str(FORMAT) or header.get("kind") != KIND or str(header.get("policy")) not in SCHEDULERS:
        raise IncompatibleArtifact(
            f"format {version}, kind {header.get('kind')!r}, policy {header.get('policy')!r}; read here are format "
            f"{FORMAT}, kind {KIND} and {', '.join(SCHEDULERS)}"
        )
    config = header.get("config")
    if not isinstance(config, dict):
        raise IncompatibleArtifact("its parts don't fit: it has no config")
    return SCHEDULERS[header["policy"]].build(config, arrays)


def artifact(data: bytes) -> Artifact:
    """A scheduler as the service holds it: it reads any number of candidates, and is made for any queue.

    Raises:
        IncompatibleArtifact: see ``load``.
    """
    return Artifact(load(data), (), 0, None, KIND)


def check(made: Artifact, layout: object) -> None:  # noqa: ARG001 - a scheduler reads every layout
    """Make sure that a policy schedules queues.

    Raises:
        IncompatibleArtifact: it was made for another kind.
    """
    made.check(KIND, (), 0)
