"""What a kind gives so that the shared learners train for one of its workloads, and are judged on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from app.kinds.contract.policy import Policy
from workers.learning.execution import base as blob
from workers.learning.simulator import SimulatorSpec


@dataclass(frozen=True)
class Planned:
    """A policy that was planned, not learned, as an artifact; without one, why there is none.

    Attributes:
        score: its mean return on the validation episodes.
        exact: whether it is the optimum.
        details: what the kind's judge has to know of it, plain values.
    """

    artifact: bytes = b""
    score: float = 0.0
    exact: bool = False
    why_not: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reference(self) -> float | None:
        """The score that learners have to beat to be published in its place; None: there is no plan."""
        return self.score if self.artifact else None

    def pack(self) -> bytes:
        """As bytes, for a checkpoint."""
        values = {"score": self.score, "exact": self.exact, "why_not": self.why_not, "told": dict(self.details)}
        return blob.pack({"artifact": np.frombuffer(self.artifact, np.uint8)}, values)

    @classmethod
    def unpack(cls, data: bytes) -> "Planned":
        """Undo `pack`; raises CheckpointError."""
        arrays, values = blob.unpack(data)
        return cls(arrays["artifact"].tobytes(), values["score"], values["exact"], values["why_not"], values["told"])


class TrainingProblem(Protocol):
    """One workload, as the learners of one training see it: what they learn in, and how their policies are scored.

    All is drawn from the training's seed: the same request, the same problem.

    Attributes:
        length: decisions of an episode, about.
        tabular: the entries of an observation that a table is cut by.
        continuing: whether what learners learn in goes on and on, so that rewards are to be centred.
        cloning_entropy: weight of the policy's entropy while an expert is imitated; None: as the algorithm has it.
    """

    length: int
    tabular: tuple[int, ...]
    continuing: bool
    cloning_entropy: float | None

    def simulator(self, batch: int, seed: int) -> SimulatorSpec:
        """What learners learn in; what it makes also shows its ``situation``, for experts to play."""
        ...

    def experts(self) -> Mapping[str, Policy]:
        """The kind's baselines by name, whose play may be imitated."""
        ...

    def plan(self) -> Planned:
        """The best plan that can be had without learning."""
        ...

    def save(self, policy: Any) -> bytes:
        """A policy, or one for each role by its name, as the artifact that would answer."""
        ...

    def load(self, artifact: bytes) -> Any:
        """The policy of an artifact; raises IncompatibleArtifact where it was made for something else."""
        ...

    def score(self, artifact: bytes) -> float:
        """Mean return on the validation episodes, as the service would let it decide."""
        ...

    def calibrate(self, artifact: bytes) -> bytes:
        """The artifact as it would be published: with what the kind settles after learning, such as a hysteresis."""
        ...

    def alone(self, artifact: bytes, planned: Planned) -> dict[str, Any]:
        """What a learned policy reaches by itself, nothing guarding it: ``return``, ``optimum``, ``gap_to_optimum``.

        On fresh episodes; the last two are None where the optimum can't be had.
        """
        ...

    def judge(self, artifact: bytes, planned: Planned, champion: bytes | None, margin: float) -> dict[str, Any]:
        """Score it on fresh episodes beside baselines, plan and champion; the agent report's ``return`` to ``reason``.

        ``margin``: of practical equivalence, see ``Request``.
        ``promoted`` and ``reason`` are among it: see ``workers.evaluation.judge``.
        """
        ...
