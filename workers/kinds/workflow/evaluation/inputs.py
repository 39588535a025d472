"""Evaluations of workloads of kind ``workflow``: the traces themselves, of which some are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session

from app.agents.service import NO_MODEL
from app.database.tables import Workload
from app.evaluations import repository
from app.evaluations.schemas import HeldOut
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.trace import Trace
from app.samples import service as samples
from workers.evaluation.candidate import Candidate
from workers.evaluation.problem import Problem, problem_of
from workers.kinds.iterative.evaluation.held_out import HOLDING_OUT, NAMES_TOLD, NOT_ASKED, Chosen, drawn, not_asked

if TYPE_CHECKING:
    from workers.tasks.benches import Asked

ONE_TRACE = "there is one trace only, and agents may have learned from it: upload another for L3"
LOGGED = "tasks that really ran are in the traces, which all strategies play"


@dataclass(frozen=True)
class WorkflowBench:
    """See ``Bench``.

    Attributes:
        traces: what all levels but L3 and L4 are played on.
        held_out: what these are.
        chosen: names of the held-out traces; None where the evaluation ends before L3.
    """

    spec: Spec
    traces: Sequence[Trace]
    held_out: Sequence[Trace]
    chosen: Chosen | None
    model_version: int = NO_MODEL
    fits: bool = False

    def problem(self) -> tuple[Problem, dict[str, Any]]:
        """See ``Bench``."""
        if self.chosen is None:
            return problem_of(self.spec, self.traces, without=NOT_ASKED), not_asked()
        names, unseen = self.chosen
        told: dict[str, Any] = {"executions": len(names), "unseen": unseen, "names": list(names[:NAMES_TOLD])}
        reason = None if self.held_out else ONE_TRACE
        note = (
            f"L3 and L4 play what was held out: {len(names)} of the traces, of which {unseen} came after the agents "
            "were trained."
        )
        told |= {"reason": reason, "note": None if reason else note}
        return problem_of(self.spec, self.traces, self.held_out, reason), told

    def off_policy(self, candidates: Sequence[Candidate]) -> dict[str, Any]:
        """See ``Bench``."""
        return {candidate.name: {"reason": LOGGED} for candidate in candidates}


def load(session: Session, workload: Workload, asked: Asked) -> WorkflowBench:
    """Read the traces; some are kept for L3, those that came after the agents first."""
    traces = dict(samples.executions(session, workload))
    stored = [one for one in repository.stored(session, workload.id) if one.created_at <= asked.at]
    seen_until = max(asked.trained, default=None)
    unseen = {one.name for one in stored if seen_until is None or one.created_at > seen_until}
    names, chosen = [one.name for one in stored], None
    if asked.request.level in HOLDING_OUT:
        chosen = choose(names, unseen, asked.request.held_out, asked.request.seed)
    kept = () if chosen is None else chosen.names
    return WorkflowBench(
        spec=Spec.model_validate(workload.spec),
        traces=[traces[name] for name in names if name not in kept],
        held_out=[traces[name] for name in kept],
        chosen=chosen,
    )


def choose(names: Sequence[str], unseen: set[str], asked: HeldOut, seed: int) -> Chosen:
    """The traces to hold out: those named, else a share, but never all."""
    if asked.executions is not None:
        found = [name for name in asked.executions if name in names]
    else:
        found = drawn(names, unseen, seed)[: max(1, round(asked.share * len(names)))]
    found = found[: len(names) - 1]
    return Chosen(tuple(found), sum(name in unseen for name in found))
