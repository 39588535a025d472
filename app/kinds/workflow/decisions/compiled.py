"""What a workload's decisions rest on: its nodes, what is expected of tasks, and who chooses their order."""

from __future__ import annotations

from functools import cache

from app.kinds.contract.engine import Snapshot
from app.kinds.workflow.decisions.choose import choose_by
from app.kinds.workflow.layout import Layout
from app.kinds.workflow.plans.planner import Planned, Search, planned
from app.kinds.workflow.policies.artifact import SHIPPED, artifact
from app.kinds.workflow.predictor import Predictor
from app.kinds.workflow.scheduling.decide import Choice, Chooser, by_strategy
from app.kinds.workflow.scheduling.situation import QueueSituation
from app.kinds.workflow.spec import AGENT, DEFAULT_STRATEGY
from app.policies.artifact import Artifact


@cache
def shipped() -> Artifact:
    """The scheduler that comes with the package, read once."""
    return artifact(SHIPPED.read_bytes())


class Compiled:
    """A snapshot ready to decide with.

    Attributes:
        heuristic: name of the strategy and mechanism that answer without a champion, or when it fails.
        shipped: the scheduler that comes with the package, where the spec wants an agent from the beginning.
        heft: who answers for workflows where an agent is wanted, and no plan can be had.
        source: 'agent', 'heuristic', or 'fallback' when there is a champion that can't be loaded.
        preface: code and words of why no agent answers; empty when one does.
    """

    def __init__(self, snapshot: Snapshot, search: Search) -> None:
        self.snapshot, self._search = snapshot, search
        self.layout: Layout = snapshot.layout
        self.predictor: Predictor | None = snapshot.model
        spec = self.layout.spec
        wanted = snapshot.rule or spec.strategy
        strategy = self.strategy = DEFAULT_STRATEGY if wanted == AGENT else wanted
        self.shipped = shipped() if wanted == AGENT else None
        self.heuristic = f"{strategy}+{spec.backfilling}"
        self._own = by_strategy(strategy, spec.backfilling, spec.backfill_order)
        self.heft = by_strategy("heft", spec.backfilling, spec.backfill_order)
        self.source, self.preface = self._responder()

    def _responder(self) -> tuple[str, tuple[str, str]]:
        if self.snapshot.artifact is not None:
            return "agent", ("", "")
        if self.snapshot.problem:
            return "fallback", ("fallback", f"{self.snapshot.problem}; {self.heuristic} answers")
        if self.shipped is not None:
            return "agent", ("", "")
        return "heuristic", ("", "")

    def situation(self, state: object) -> QueueSituation:
        """What there is to decide."""
        return QueueSituation(self.layout, state, self.predictor)  # type: ignore[arg-type]

    def planned(self, situation: QueueSituation) -> Planned | None:
        """The plan of a workflow; None where no agent is wanted, or no task depends on another."""
        return planned(situation, self._search) if self.agent and situation.queue.linked else None

    @property
    def agent(self) -> Artifact | None:
        """Whose policy answers: the champion's, else the shipped one's where the spec wants that."""
        if self.snapshot.artifact is not None or self.snapshot.problem:
            return self.snapshot.artifact
        return self.shipped

    def chooser(self, given: Artifact | None) -> Chooser:
        """Who chooses: the policy of the one given, without one the strategy."""
        if given is None:
            return self._own
        spec, policy = self.layout.spec, given.policy

        def choose(situation: QueueSituation) -> Choice:
            return choose_by(policy, situation, spec)

        return choose
