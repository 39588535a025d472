"""What an evaluation is played on, by kind: a simulator of a domain model, or the samples themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from sqlalchemy.orm import Session

from app.database.tables import Workload
from app.evaluations.schemas import EvaluationRequest
from workers.evaluation.candidate import Candidate
from workers.evaluation.problem import Problem
from workers.kinds.iterative.evaluation import inputs as iterative_bench
from workers.kinds.workflow.evaluation import inputs as workflow_bench


class Asked(NamedTuple):
    """What is known of an evaluation when its bench is loaded.

    Attributes:
        request: with agents and model as versions.
        at: when it was asked for: what came later is left out, so that whoever resumes it finds the same.
        models: versions of the domain models that its agents were trained on.
        trained: when its agents were.
    """

    request: EvaluationRequest
    at: datetime
    models: Sequence[int]
    trained: Sequence[datetime]


class Bench(Protocol):
    """Everything that an evaluation reads from the database, beside its agents; no session is open any more."""

    @property
    def model_version(self) -> int:
        """Of the domain model that is judged under."""
        ...

    @property
    def fits(self) -> bool:
        """Whether making the problem takes a while, as something is fitted."""
        ...

    def problem(self) -> tuple[Problem, dict[str, Any]]:
        """What is played, and what to say of what was held out."""
        ...

    def off_policy(self, candidates: Sequence[Candidate]) -> dict[str, Any]:
        """Of each candidate, by name: its score on the runs that really happened, or the reason why there is none."""
        ...


BENCHES: dict[str, Callable[[Session, Workload, Asked], Bench]] = {
    "iterative": iterative_bench.load,
    "workflow": workflow_bench.load,
}
