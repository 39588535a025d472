"""Evaluations of workloads of kind ``iterative``: simulators of domain models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy.orm import Session

from app.database.tables import Workload
from app.domain_models import repository as domain_models
from app.evaluations.schemas import EvaluationRequest
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.log import Log
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies.artifact import load as load_artifact
from app.kinds.iterative.spec import Spec
from app.runs.logs import logged
from app.samples.service import layout_of
from workers.evaluation.candidate import Candidate
from workers.evaluation.problem import Problem, problem_of
from workers.kinds.iterative.evaluation.held_out import HOLDING_OUT, NOT_ASKED, Split, model_of, not_asked, split
from workers.kinds.iterative.evaluation.off_policy import TooFewRuns, score

if TYPE_CHECKING:
    from workers.tasks.benches import Asked


@dataclass(frozen=True)
class IterativeBench:
    """See ``Bench``.

    Attributes:
        held_out: executions for L3; None where the evaluation ends before it.
        logs: the workload's last ended runs.
    """

    request: EvaluationRequest
    spec: Spec
    table: ModelTable
    model_version: int
    held_out: Split | None
    logs: Sequence[Log]

    @property
    def fits(self) -> bool:
        """See ``Bench``."""
        return self.held_out is not None

    def problem(self) -> tuple[Problem, dict[str, Any]]:
        """See ``Bench``."""
        if self.held_out is None:
            return problem_of(self.spec, self.table, without=NOT_ASKED), not_asked()
        held_out = model_of(self.spec, self.held_out, self.request.seed)
        tables = () if held_out.table is None else (held_out.table,)
        return problem_of(self.spec, self.table, tables, held_out.told["reason"]), held_out.told

    def off_policy(self, candidates: Sequence[Candidate]) -> dict[str, Any]:
        """See ``Bench``."""
        layout = Layout(self.spec)
        found: dict[str, Any] = {}
        for candidate in candidates:
            artifact = load_artifact(cast("bytes", candidate.contenders[0]))
            try:
                scored = score(layout, self.table, artifact, self.logs, seed=self.request.seed)
            except TooFewRuns as error:
                scored = {"reason": str(error)}
            found[candidate.name] = scored
        return found


def load(session: Session, workload: Workload, asked: Asked) -> IterativeBench:
    """Read spec, model and held-out executions into arrays.

    Raises:
        LookupError: the model is not there any more.
    """
    request = asked.request
    stored = domain_models.table(session, workload.id, request.model)
    if stored is None:
        raise LookupError(f"domain model {request.model} is not there any more")
    held_out = None
    if request.level in HOLDING_OUT:
        held_out = split(session, workload, request.held_out, asked.models, asked.at, request.seed)
    return IterativeBench(
        request=request,
        spec=Spec.model_validate(workload.spec),
        table=ModelTable.from_bytes(stored.table),
        model_version=stored.version,
        held_out=held_out,
        logs=logged(session, workload.id, layout_of(workload)),
    )
