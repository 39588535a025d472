"""Serving of kind ``workflow``: tasks to start, and their nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

import msgspec

from app.kinds.contract.engine import Pending, Snapshot
from app.kinds.contract.inputs import FieldIssue
from app.kinds.contract.kind import RunStart
from app.kinds.engine import Choices, DecidedBy, Engine, KindDecision, Serving
from app.kinds.workflow.advance import advance, implausible
from app.kinds.workflow.decide import PLAN, Answer, Case, Compiled, choose
from app.kinds.workflow.plan_search import PlanSearch
from app.kinds.workflow.policies import check
from app.kinds.workflow.queue import WAITING, QueueReport, State, begin, pack, unpack
from app.kinds.workflow.report import QueueDecision, reason
from app.kinds.workflow.scheduling.decide import DispatchDecision
from app.kinds.workflow.scheduling.situation import QueueSituation
from app.kinds.workflow.spec import AGENT, STRATEGIES
from app.kinds.workflow.views import risk
from app.policies.artifact import Artifact, Memory

TASK_BYTES, INPUT_BYTES, REMEMBERED_BYTES, TURN_BYTES = 500, 150, 1_000, 250
"""Measured memory in bytes of a task, an input or submission, a remembered task, user or node, and a turn of a plan."""


class CheckedReport(NamedTuple):
    """State after a report, and warnings on the report."""

    state: State
    warnings: tuple[FieldIssue, ...]


class WorkflowServing(Serving):
    """Serving of workflow runs: a run's state is its queue of tasks; each report advances it.

    Attributes:
        report: schema of reports.
        failed_shadow: fields of a shadow's record if the shadow failed.
        search: search for plans, in a child process.
    """

    report = QueueReport
    failed_shadow: ClassVar[Mapping[str, Any]] = {"strategy": None, "placements": [], "agrees": False, "gain": None}

    def __init__(self) -> None:
        self.search = PlanSearch()

    def compile(self, snapshot: Snapshot) -> Compiled:
        """Compile a snapshot: nodes, run-time predictor, and the deciding policy."""
        return Compiled(snapshot, self.search)

    def rules(self, compiled: Compiled) -> Sequence[str]:
        """Return the names of all strategies and of the package's scheduler."""
        return (*STRATEGIES, AGENT)

    def begin(self, compiled: Compiled, start: RunStart, now: datetime) -> KindDecision:
        """Return the first decision of a run, before any report: nothing starts."""
        text = "no report yet: report the queue as iteration 0"
        first = _nothing(compiled, begin(compiled.layout), "begun", text, count=0)
        return msgspec.structs.replace(first, source="heuristic", policy=compiled.heuristic)

    def takes_long(self, compiled: Compiled, state: State, report: QueueReport) -> bool:
        """Whether there is any task; even plans of few tasks take long."""
        return bool(len(state.queue) or report.queued or report.running)

    def read(self, compiled: Compiled, state: State, iteration: int, report: Any) -> CheckedReport:
        """Return the state after the report, and warnings on it.

        Raises:
            InvalidInput: the report is impossible in any run.
            Contradiction: it contradicts earlier reports.
        """
        after = advance(compiled.layout, state, report)
        return CheckedReport(after, tuple(implausible(after, report)))

    def gather(self, compiled: Compiled, pending: Sequence[Pending]) -> list[Case]:
        """Return the situation of each run after its report, with warnings, in the order of ``pending``."""
        return [Case(compiled.situation(one.report.state), one.report.warnings, []) for one in pending]

    def agent(self, compiled: Compiled, artifact: Artifact) -> Artifact:
        """Return the artifact; raises IncompatibleArtifact if it doesn't schedule queues."""
        check(artifact, compiled.layout)
        return artifact

    def choose(
        self,
        compiled: Compiled,
        batch: Sequence[Case],
        agent: Artifact | None,
        memory: Memory | None,
        now: datetime,
    ) -> Choices:
        """Decide each run of the batch, by ``agent`` or, if None, the strategy; ``memory`` is not used. Raises
        ValueError if a score of a ready task isn't finite."""
        return Choices([choose(compiled, case, agent) for case in batch])

    def write(
        self, compiled: Compiled, batch: Sequence[Case], choices: Choices, decided_by: DecidedBy
    ) -> list[KindDecision]:
        """Return the decisions of a batch, in its order: placements, nodes to order and release, and reasons."""
        rows = zip(batch, choices.each, strict=True)
        return [_written(compiled, case, answer, decided_by) for case, answer in rows]

    def hold(self, compiled: Compiled, one: Pending, failure: str) -> KindDecision:
        """Return the decision after a failure, which ``failure`` describes: nothing starts, and nodes stay."""
        state, warnings = one.report
        return _nothing(compiled, state, "fallback", f"{failure}; nothing starts", state.now, warnings)

    def compare(
        self, compiled: Compiled, batch: Sequence[Case], row: int, done: Answer, other: Choices
    ) -> dict[str, Any]:
        """Return a shadow's placements, and whether they equal those ``done``, for the run at position ``row``. A
        workflow's plan also decides for the shadow, so that placements then agree."""
        decided = other.each[row].decided
        return {
            "strategy": decided.choice.strategy,
            "placements": _placements(batch[row].situation, decided),
            "agrees": set(decided.started.starts) == set(done.decided.started.starts),
            "gain": None,
        }

    def pack(self, state: State) -> list[Any]:
        """Return the state as plain lists, numbers and texts, for JSON."""
        return pack(state)

    def unpack(self, stored: list[Any]) -> State:
        """Return the state from lists that ``pack`` returned, after JSON."""
        return unpack(stored)

    def weight(self, state: State) -> int:
        """Return the approximate size of a state in memory, in bytes."""
        queue = state.queue
        inputs = sum(map(len, queue.inputs)) if queue.linked else 0
        reads = inputs + len(state.submitted)
        remembered = len(state.ended) + len(state.history) + len(state.nodes)
        turns = len(state.plan.turns) if state.plan else 0
        return len(queue) * TASK_BYTES + reads * INPUT_BYTES + remembered * REMEMBERED_BYTES + turns * TURN_BYTES


ENGINE = Engine("workflow", QueueDecision, WorkflowServing())


def _written(compiled: Compiled, case: Case, answer: Answer, decided_by: DecidedBy) -> KindDecision:
    """Return the decision of one run in the form of the API, with its reason and risk; times are seconds."""
    situation, (decided, planned) = case.situation, answer
    names, (start, release) = situation.layout.names, decided.renting
    placements, source, policy = _placements(situation, decided), None, None
    if planned is not None and decided.choice.strategy == PLAN:
        source, policy = "agent", PLAN
    elif planned is not None:
        source, policy = "heuristic", f"{decided.choice.strategy}+{compiled.layout.spec.backfilling}"
    # Numbers of waiting and running tasks after the starts, and of busy processors
    queue = situation.queue
    runs = queue.node != WAITING
    runs[[row for row, _ in decided.started.starts]] = True
    running = int(runs.sum())
    own = {
        "now": situation.now,
        "placements": placements,
        "nodes": {"start": [names[j] for j in start], "release": [names[j] for j in release]},
        "warnings": [warning._asdict() for warning in case.warnings],
        "waiting": len(queue) - running,
        "running": running,
        "busy_processors": int(queue.processors[runs].sum()),
        "wake_at": min(decided.started.reserved.starts.values(), default=None),
    }
    return KindDecision(
        own,
        reason(
            situation, decided, decided_by.code, decided_by.preface(compiled.heuristic), planned.text if planned else ""
        ),
        noop=not (placements or start or release),
        state=decided.state,
        source=source,
        policy=policy,
        risk=risk(compiled, decided.state),
        quiet=not len(decided.state.queue),
    )


def _placements(situation: QueueSituation, decided: DispatchDecision) -> list[dict[str, Any]]:
    """Return the tasks that start now, with their nodes and the time in seconds, as fields of a decision."""
    names, nodes, now = situation.queue.names, situation.layout.names, situation.now
    return [{"task": names[row], "node": nodes[node], "start": now} for row, node in decided.started.starts]


def _nothing(
    compiled: Compiled,
    state: State,
    code: str,
    text: str,
    now: float | None = None,
    warnings: Sequence[FieldIssue] = (),
    count: int | None = None,
) -> KindDecision:
    """Return a decision that starts nothing: before the first report, or after a failure. ``now``: seconds of the
    reports' clock; ``count``: number of waiting and running tasks; None: no report, not counted."""
    return KindDecision(
        {
            "now": now,
            "placements": [],
            "nodes": {"start": [], "release": []},
            "warnings": [warning._asdict() for warning in warnings],
            "waiting": count,
            "running": count,
            "busy_processors": count,
            "wake_at": None,
        },
        {
            "code": code,
            "text": text,
            "strategy": compiled.strategy,
            "backfilling": compiled.layout.spec.backfilling,
            **dict.fromkeys(("first", "runner_up", "window", "plan")),
        },
        noop=True,
        state=state,
        risk=None if now is not None else "",
        quiet=not len(state.queue),
    )
