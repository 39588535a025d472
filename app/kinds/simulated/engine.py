"""Serving of kinds whose decisions are numbered actions."""

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
from app.kinds.engine import Choices, Serving, Voice, Written, voice
from app.kinds.fields import Part
from app.kinds.simulated.layout import NumberedLayout
from app.policies.artifact import Artifact, Memory

STATE_BYTES = 200
"""Of a run's numbers, and of what holds them, about."""


class RunState(NamedTuple):
    """A run between two reports.

    Attributes:
        action: that was in force when it last reported; -1 before.
        values: of its state, [S].
    """

    action: int
    values: tuple[float, ...]


class Read(NamedTuple):
    """A report, and the action that it says was taken."""

    report: Any
    action: int


class Compiled:
    """A snapshot ready to decide with.

    Attributes:
        rule: the policy that answers without an agent, and ``heuristic`` its name.
        agent: the promoted policy; None without one.
        voice: who answers where nothing fails.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.layout: NumberedLayout = snapshot.layout
        known = {rule.name: rule for rule in self.layout.baselines}
        self.rule: Policy = known[snapshot.rule] if snapshot.rule else self.layout.baselines[0]
        self.heuristic = self.rule.name
        self.agent: Policy | None = None if snapshot.artifact is None else snapshot.artifact.policy
        name = None if self.agent is None else self.agent.name
        self.voice = voice(snapshot, name, self.heuristic, explained=True)


class Batch(NamedTuple):
    """B runs after their reports.

    Attributes:
        following: the iterations that decisions are for, [B].
        before: the actions that the reports say were taken, [B].
    """

    situation: Situation
    following: Sequence[int]
    before: Sequence[int]


class NumberedServing(Serving):
    """Reports go into a layout's state, a policy chooses among its actions; many runs at once.

    Args:
        report: what a kind's runs report.
    """

    silent: ClassVar[Mapping[str, Any]] = {"action": None, "agrees": False, "gain": None}

    def __init__(self, report: type[Part]) -> None:
        self.report = report

    def compile(self, snapshot: Snapshot) -> Compiled:
        """The snapshot with the policy that answers."""
        return Compiled(snapshot)

    def rules(self, compiled: Compiled) -> Sequence[str]:
        """Names of the layout's baselines."""
        return tuple(rule.name for rule in compiled.layout.baselines)

    def begin(self, compiled: Compiled, start: RunStart, now: datetime) -> Written:
        """The layout's initial action."""
        layout = compiled.layout
        state = RunState(-1, tuple(float(column[0]) for column in layout.begin()))
        reason = {"code": "first", "text": "the run has reported nothing yet"}
        first = _written(compiled, 0, state, layout.initial, reason)
        return msgspec.structs.replace(first, source="heuristic", policy="initial")

    def read(self, compiled: Compiled, state: RunState, iteration: int, report: Part) -> Read:
        """The report and its action; any state takes it, up to the workload's last iteration.

        Raises:
            InvalidInput: an iteration beyond the workload's, or one that ``NumberedLayout.action_of`` refuses.
        """
        if iteration >= compiled.layout.iterations:
            accepted = f"must be less than {compiled.layout.iterations}, the workload's number of iterations"
            raise invalid("/path/iteration", accepted, iteration)
        return Read(report, compiled.layout.action_of(report))

    def gather(self, compiled: Compiled, pending: Sequence[Pending]) -> Batch:
        """Each run advanced by its report."""
        layout = compiled.layout
        before = layout.state(*np.array([one.state.state.values for one in pending], np.float64).T)
        state = layout.advance(before, [one.report.report for one in pending])
        following = [one.iteration + 1 for one in pending]
        return Batch(Situation(layout, state, layout.seen(state)), following, [one.report.action for one in pending])

    def agent(self, compiled: Compiled, made: Artifact) -> Policy:
        """The policy of an artifact."""
        policy: Policy = made.policy
        return policy

    def choose(
        self,
        compiled: Compiled,
        batch: Batch,
        agent: Policy | None,
        memory: Memory | None,
        now: datetime,
    ) -> Choices:
        """An action for each run."""
        choice = (agent or compiled.rule).act(batch.situation._replace(memory=memory))
        return Choices([int(action) for action in choice.action], None, choice.memory)

    def write(self, compiled: Compiled, batch: Batch, choices: Choices, voice: Voice) -> list[Written]:
        """Actions with what they allocate, each with the layout's reason."""
        layout, preface = compiled.layout, voice.preface(compiled.heuristic)
        rows, found = np.stack(batch.situation.state, axis=1).tolist(), []
        columns = zip(rows, choices.each, batch.following, batch.before, strict=True)
        for values, action, following, before in columns:
            own = layout.explain(layout.state(*values), action)
            reason = Reason(code=voice.code, text=f"{preface}: {own.text}") if preface else own
            state = RunState(before, tuple(values))
            found.append(_written(compiled, following, state, action, reason.model_dump()))
        return found

    def hold(self, compiled: Compiled, one: Pending, failure: str) -> Written:
        """The action that the report says is in force, or else the layout's initial one."""
        action = one.report.action if one.report.action >= 0 else compiled.layout.initial
        state = RunState(one.report.action, one.state.state.values)
        return _written(
            compiled, one.iteration + 1, state, action, {"code": "fallback", "text": f"{failure}; the action stays"}
        )

    def compare(self, compiled: Compiled, batch: Batch, row: int, done: int, other: Choices) -> dict[str, Any]:
        """The action that a shadow chose."""
        return {"action": other.each[row], "agrees": other.each[row] == done, "gain": None}

    def pack(self, state: RunState) -> list[Any]:
        """A state's action and values."""
        return [*state]

    def unpack(self, stored: list[Any]) -> RunState:
        """The state that ``pack`` gave; NaN for null."""
        action, values = stored
        return RunState(action, tuple(float("nan") if one is None else float(one) for one in values))

    def weight(self, state: RunState) -> int:
        """About how many bytes a state takes in memory."""
        return STATE_BYTES + 32 * len(state.values)


def _written(compiled: Compiled, following: int, state: RunState, action: int, reason: dict[str, str]) -> Written:
    return Written(
        {"action": action, **compiled.layout.allocated(action)},
        reason,
        noop=action == state.action,
        state=state,
        valid=int(following < compiled.layout.iterations),
    )
