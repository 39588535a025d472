"""The planner's part in a training: what it planned, or why it could not, and how good that is on validation."""

from dataclasses import dataclass

import numpy as np

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies.artifact import load, save
from app.kinds.iterative.policies.planner import PlannerPolicy
from workers.kinds.iterative.evaluation.judge import Court
from workers.kinds.iterative.evaluation.optimum import Grid, NoOptimum, Optimum, plan
from workers.kinds.iterative.training.request import PLANNER
from workers.learning.bracket import Rival
from workers.learning.execution import checkpoint as blob

LARGEST_ERROR = 0.01  # of the return, for an exact optimum to count as such


@dataclass(frozen=True)
class Planned:
    """A plan, as a policy's artifact; without one, why there is none.

    Attributes:
        score: its mean return on the validation episodes.
    """

    optimum: Optimum | None
    artifact: bytes
    score: float
    why_not: str = ""

    @property
    def rival(self) -> Rival | None:
        """The plan as what learners have to beat."""
        if self.optimum is None:
            return None
        fine = self.optimum.error <= LARGEST_ERROR * abs(self.optimum.expected)
        return Rival(PLANNER, self.score, self.optimum.exact and fine)

    def pack(self) -> bytes:
        """As bytes, for a checkpoint."""
        found = self.optimum
        told = None if found is None else [found.expected, found.error, list(found.grid)]
        artifact = {"artifact": np.frombuffer(self.artifact, np.uint8)}
        return blob.pack(artifact, {"optimum": told, "score": self.score, "why_not": self.why_not})

    @classmethod
    def unpack(cls, data: bytes) -> "Planned":
        """Undo `pack`; raises CheckpointError."""
        arrays, values = blob.unpack(data)
        artifact, told = arrays["artifact"].tobytes(), values["optimum"]
        if told is None:
            return cls(None, b"", values["score"], values["why_not"])
        policy = load(artifact).policy
        if not isinstance(policy, PlannerPolicy):
            raise blob.CheckpointError("the checkpoint's plan is no plan")
        return cls(Optimum(policy, told[0], told[1], Grid(*told[2])), artifact, values["score"])


def make_plan(layout: Layout, table: ModelTable, court: Court) -> Planned:
    """Plan, and score the plan."""
    try:
        optimum = plan(layout, table)
    except NoOptimum as error:
        return Planned(None, b"", 0.0, str(error))
    artifact = save(optimum.policy, layout)
    return Planned(optimum, artifact, float(court.score_artifact(load(artifact)).returns.mean()))
