"""Serving of kinds whose decisions are numbered actions. Shapes: B runs, S fields of a run's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from app.kinds.contract.engine import Pending, Reason, Snapshot
from app.kinds.contract.inputs import invalid
from app.kinds.contract.kind import RunStart
from app.kinds.contract.policy import Policy, Situation
from app.kinds.engine import Choices, DecidedBy, KindDecision, Serving, deciding_policy
from app.kinds.fields import Part
from app.kinds.simulated.layout import NumberedLayout
from app.policies.artifact import Artifact, Memory

STATE_BYTES = 200
"""Approximate memory of a run, without its numbers, in bytes."""


class RunState(NamedTuple):
    """A run between two reports.

    Attributes:
        action: number of the action in force at the run's last report; −1 before the first.
        values: the S fields of its ``NumberedLayout.state``, in units of the kind.
    """

    action: int
    values: tuple[float, ...]


class CheckedReport(NamedTuple):
    """A report, and the number of the action that it says was in force."""

    report: Any
    action: int


class Compiled:
    """A workload's snapshot, compiled for decisions.

    Attributes:
        snapshot, layout: the workload, and its layout.
        rule: policy used without an agent, whose name is ``heuristic``.
        agent: promoted policy; None: none.
        decided_by: the policy that decides unless it fails.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.layout: NumberedLayout = snapshot.layout
        known = {rule.name: rule for rule in self.layout.baselines}
        self.rule: Policy = known[snapshot.rule] if snapshot.rule else self.layout.baselines[0]
        self.heuristic = self.rule.name
        self.agent: Policy | None = None if snapshot.artifact is None else snapshot.artifact.policy
        name = None if self.agent is None else self.agent.name
        self.decided_by = deciding_policy(snapshot, name, self.heuristic, explained=True)


class Batch(NamedTuple):
    """B runs after their reports.

    Attributes:
        situation: input of policies for the B runs.
        following: iterations that the decisions are for, [B].
        before: numbers of the actions that the reports say were in force, [B].
    """

    situation: Situation
    following: Sequence[int]
    before: Sequence[int]


class NumberedServing(Serving):
    """Serving of numbered actions: the layout advances states by reports, a policy chooses for all runs at once.

    Args:
        report: type of the kind's reports.
    """

    failed_shadow: ClassVar[Mapping[str, Any]] = {"action": None, "agrees": False, "gain": None}

    def __init__(self, report: type[Part]) -> None:
        self.report = report

    def compile(self, snapshot: Snapshot) -> Compiled:
        """Compile a snapshot; raises KeyError if its rule is none of the layout's baselines."""
        return Compiled(snapshot)

    def rules(self, compiled: Compiled) -> Sequence[str]:
        """Return the names of the layout's baselines, each of which a run can name to decide it."""
        return tuple(rule.name for rule in compiled.layout.baselines)

    def begin(self, compiled: Compiled, start: RunStart, now: datetime) -> KindDecision:
        """Return the first decision of a run: the layout's initial action, by policy "initial"."""
        layout = compiled.layout
        state = RunState(-1, tuple(float(column[0]) for column in layout.begin()))
        reason = {"code": "first", "text": "no report yet"}
        first = _written(compiled, 0, state, layout.initial, reason)
        return msgspec.structs.replace(first, source="heuristic", policy="initial")

    def read(self, compiled: Compiled, state: RunState, iteration: int, report: Part) -> CheckedReport:
        """Return the report and the action that it says was in force.

        Raises:
            InvalidInput: the iteration is beyond the last, or the report is impossible in this workload.
        """
        if iteration >= compiled.layout.iterations:
            accepted = f"must be less than {compiled.layout.iterations}, the workload's number of iterations"
            raise invalid("/path/iteration", accepted, iteration)
        return CheckedReport(report, compiled.layout.action_of(report))

    def gather(self, compiled: Compiled, pending: Sequence[Pending]) -> Batch:
        """Return the B pending runs, each with its state advanced by its report."""
        layout = compiled.layout
        before = layout.state(*np.array([one.state.state.values for one in pending], np.float64).T)
        state = layout.advance(before, [one.report.report for one in pending])
        following = [one.iteration + 1 for one in pending]
        return Batch(Situation(layout, state, layout.observe(state)), following, [one.report.action for one in pending])

    def agent(self, compiled: Compiled, artifact: Artifact) -> Policy:
        """Return the policy of an artifact."""
        policy: Policy = artifact.policy
        return policy

    def choose(
        self,
        compiled: Compiled,
        batch: Batch,
        agent: Policy | None,
        memory: Memory | None,
        now: datetime,
    ) -> Choices:
        """Choose an action for each run of the batch by ``agent``, or by the workload's rule if None."""
        choice = (agent or compiled.rule).act(batch.situation._replace(memory=memory))
        return Choices([int(action) for action in choice.action], None, choice.memory)

    def write(self, compiled: Compiled, batch: Batch, choices: Choices, decided_by: DecidedBy) -> list[KindDecision]:
        """Return one decision per run of the batch: the action, its allocation, and the layout's reason for it."""
        layout, preface = compiled.layout, decided_by.preface(compiled.heuristic)
        rows, results = np.stack(batch.situation.state, axis=1).tolist(), []
        columns = zip(rows, choices.each, batch.following, batch.before, strict=True)
        for values, action, following, before in columns:
            own = layout.explain(layout.state(*values), action)
            reason = Reason(code=decided_by.code, text=f"{preface}: {own.text}") if preface else own
            state = RunState(before, tuple(values))
            results.append(_written(compiled, following, state, action, reason.model_dump()))
        return results

    def hold(self, compiled: Compiled, one: Pending, failure: str) -> KindDecision:
        """Return a decision after a failure: the action that the report says is in force, or the initial one if −1."""
        action = one.report.action if one.report.action >= 0 else compiled.layout.initial
        state = RunState(one.report.action, one.state.state.values)
        return _written(
            compiled, one.iteration + 1, state, action, {"code": "fallback", "text": f"{failure}; keep the action"}
        )

    def compare(self, compiled: Compiled, batch: Batch, row: int, done: int, other: Choices) -> dict[str, Any]:
        """Return a shadow's action for run ``row``, and whether it equals ``done``; ``gain`` is None."""
        return {"action": other.each[row], "agrees": other.each[row] == done, "gain": None}

    def pack(self, state: RunState) -> list[Any]:
        """Return a state as the list of its action and its values, for JSON."""
        return [*state]

    def unpack(self, stored: list[Any]) -> RunState:
        """Return the state from a list of ``pack``; None among the values becomes NaN."""
        action, values = stored
        return RunState(action, tuple(float("nan") if one is None else float(one) for one in values))

    def weight(self, state: RunState) -> int:
        """Approximate size of a state in memory, in bytes."""
        return STATE_BYTES + 32 * len(state.values)


def _written(compiled: Compiled, following: int, state: RunState, action: int, reason: dict[str, str]) -> KindDecision:
    return KindDecision(
        {"action": action, **compiled.layout.allocated(action)},
        reason,
        noop=action == state.action,
        state=state,
        valid=int(following < compiled.layout.iterations),
    )
