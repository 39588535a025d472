"""Policies of kind `workflow`, and their artifacts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.tensors import write_tensors
from app.kinds.workflow.run_times import SHORTEST
from app.kinds.workflow.scheduling import planning
from app.kinds.workflow.scheduling.dispatch import CONSERVATIVE, EASY, NONE, UNCOMMITTED
from app.kinds.workflow.scheduling.planning import NAMES, WEIGHTS
from app.kinds.workflow.scheduling.rules import RULES, scores
from app.kinds.workflow.trace import Seconds
from app.policies.artifact import Artifact, parts
from app.policies.base import Arrays, IncompatibleArtifact

# Interface of policies that order tasks.


class Waiting(NamedTuple):
    """Q ready tasks at a decision.

    Attributes:
        now: seconds of the reports' clock.
        submit: submission, seconds of that clock, [Q].
        expected: seconds at speed 1 that a task is planned with, [Q].
        requested: estimate of a task, else ``expected``, in seconds at the mean speed of the nodes, [Q].
        share: natural logarithm of the predicted share of its estimate that a task takes, at most 0, [Q].
        processors: processors of each task, [Q].
        machine: processors of all nodes that accept tasks.
        mechanism: backfilling mechanism, an index into ``MECHANISMS``.
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
    """Scores of Q ready tasks by a policy; the smallest comes first.

    Attributes:
        scores: scores in the order of starting, [Q].
        overtaking: scores in the order of backfilling, [Q]; None: the workload's order.
    """

    scores: Seconds
    overtaking: Seconds | None


class QueuePolicy(Protocol):
    """Policy that orders tasks."""

    @property
    def name(self) -> str:
        """Name of the policy in reports and decisions."""
        ...

    @property
    def config(self) -> dict[str, Any]:
        """JSON object that, with ``arrays``, rebuilds the policy."""
        ...

    @property
    def arrays(self) -> Arrays:
        """Arrays of parameters by name; empty: none."""
        ...

    def orders(self, waiting: Waiting) -> Orders:
        """Return the scores of the tasks for the orders of starting and of backfilling."""
        ...


# Policies: a rule, and tuned priorities.


@dataclass(frozen=True)
class StrategyPolicy:
    """Policy of the rule named by ``config["rule"]``."""

    config: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the rule."""
        return str(self.config["rule"])

    @property
    def arrays(self) -> Arrays:
        """Empty: a rule has no parameters."""
        return {}

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Return the policy of the rule that ``config`` names. Raises IncompatibleArtifact if there is no rule of that
        name, or ``arrays`` isn't empty."""
        if config.get("rule") not in RULES or arrays:
            raise IncompatibleArtifact(f"no rule is called {config.get('rule')!r}; known are {', '.join(RULES)}")
        return cls(config)

    def orders(self, waiting: Waiting) -> Orders:
        """Return the rule's scores of the tasks for the order of starting; ``overtaking`` is None, so that tasks are
        backfilled in the workload's order."""
        rule = RULES.index(self.name)
        return Orders(scores(rule, waiting.now, waiting.submit, waiting.expected, waiting.processors), None)


@dataclass(frozen=True, eq=False)
class PriorityPolicy:
    """Tuned priorities: log run time plus weighted processors and waiting time (``scheduling.planning.scores``).

    Attributes:
        weights: weights under the mechanisms none, rls and easy, [3, ``WEIGHTS``]; conservative uses those of easy,
            uncommitted those of none.
    """

    weights: Seconds

    name = "priority"

    @property
    def config(self) -> dict[str, Any]:
        """JSON object with the names of the weights."""
        return {"weights": list(NAMES)}

    @property
    def arrays(self) -> Arrays:
        """The weights [3, ``WEIGHTS``] under the name ``weights``."""
        return {"weights": self.weights}

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Construct from a published config and arrays. Raises IncompatibleArtifact if the weights have other names or
        another shape."""
        weights = np.asarray(arrays.get("weights", np.zeros(0)), np.float64)
        if tuple(config.get("weights", ())) != NAMES or weights.shape != (CONSERVATIVE, WEIGHTS):
            raise IncompatibleArtifact(f"the weights are not those of {', '.join(NAMES)} for each of {CONSERVATIVE}")
        return cls(weights)

    def under(self, mechanism: int) -> Seconds:
        """Return the weights for a backfilling mechanism, an index into ``MECHANISMS``, in the order of ``NAMES``,
        [``WEIGHTS``]."""
        seconds: Seconds = self.weights[NONE if mechanism == UNCOMMITTED else min(mechanism, EASY)]
        return seconds

    def orders(self, waiting: Waiting) -> Orders:
        """Return scores by predicted run time, processors and waiting time, and for backfilling by run time and
        processors."""
        weights = self.under(waiting.mechanism)
        length = np.log(np.maximum(waiting.requested, SHORTEST)) + weights[planning.PREDICTION] * waiting.share
        need = waiting.processors
        first = planning.scores(weights, waiting.now, waiting.submit, length, need, waiting.machine)
        return Orders(first, planning.overtaking(weights, length, need))


# Artifacts of schedulers: a JSON header and arrays in safetensors.


FORMAT = 1
KIND = "workflow"
SHIPPED = Path(__file__).parent / "pretrained.safetensors"
"""Priorities shipped with the package, made by ``python -m benchmarks.workflow_generalisation --ship FILE``."""

Scheduler = StrategyPolicy | PriorityPolicy
SCHEDULERS: dict[str, type[Scheduler]] = {"strategy": StrategyPolicy, "priority": PriorityPolicy}


def save(policy: Scheduler) -> bytes:
    """Serialise a policy as the artifact of an agent, in safetensors."""
    kind = next(name for name, family in SCHEDULERS.items() if isinstance(policy, family))
    header = {"kind": KIND, "policy": kind, "config": policy.config}
    return write_tensors(policy.arrays, {"format": str(FORMAT), "header": json.dumps(header, sort_keys=True)})


def load(data: bytes) -> Scheduler:
    """Deserialise bytes that ``save`` returned.

    Raises:
        IncompatibleArtifact: ``data`` is no artifact, or has another kind, format, or parts that don't fit.
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
    """Load a scheduler for the service from its stored bytes; it accepts any number of tasks, and any queue. Raises
    IncompatibleArtifact if ``data`` is no artifact of a scheduler that this version reads."""
    return Artifact(load(data), (), 0, None, KIND)


def check(artifact: Artifact, layout: object) -> None:  # noqa: ARG001 - a scheduler reads every layout
    """Check that a policy schedules queues. Raises IncompatibleArtifact if it was made for another kind."""
    artifact.check(KIND, (), 0)
