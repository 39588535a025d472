"""The engine of kinds whose decisions are numbered actions; its contract is ``app.kinds.contract.engine``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np
from pydantic import BaseModel

from app.kinds.contract.engine import ADDED, Answered, DecidedInRuns, Pending, Reason, Snapshot
from app.kinds.contract.inputs import TOO_DEEP, deep_place, invalid, timestamp
from app.kinds.contract.kind import RunStart
from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.simulated.layout import NumberedLayout, ShadowAction
from app.policies import artifact

logger = logging.getLogger(__name__)
KEPT_BYTES = 200
"""Of a run's numbers, and of what holds them, about."""


class Kept(NamedTuple):
    """The state of a run between two reports.

    Attributes:
        iteration: that the next decision is for.
        action: that was in force when it last reported; -1 before.
        values: of its state, [S].
        memories: what recurrent agents remember of it.
    """

    iteration: int
    action: int
    values: tuple[float, ...]
    memories: artifact.Memories = artifact.NOTHING


class Read(NamedTuple):
    """A report, and the action that it says was taken."""

    report: Any
    action: int


class Responder(NamedTuple):
    """The policy that answers, its source in decisions, and without an agent the reason: a code and a text."""

    policy: Policy
    source: str
    code: str = ""
    preface: str = ""


class Compiled:
    """A snapshot ready to decide with: its layout, fallback heuristic and responder."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.layout: NumberedLayout = snapshot.layout
        known = {rule.name: rule for rule in self.layout.baselines}
        self.heuristic = known[snapshot.rule] if snapshot.rule else self.layout.baselines[0]
        self.responder = self._responder()

    def _responder(self) -> Responder:
        snapshot, answers = self.snapshot, f"{self.heuristic.name} answers"
        if snapshot.artifact is not None:
            return Responder(snapshot.artifact.policy, "agent")
        if snapshot.rule:
            return Responder(self.heuristic, "heuristic")
        if snapshot.problem:
            return Responder(self.heuristic, "fallback", "fallback", f"{snapshot.problem}; {answers}")
        if snapshot.model is None:
            return Responder(self.heuristic, "heuristic", "no_model", f"no domain model yet, {answers}")
        return Responder(self.heuristic, "heuristic", "no_agent", f"no agent is promoted, {answers}")


class NumberedEngine(DecidedInRuns):
    """Reports go into a layout's state, a policy chooses among its actions; many runs at once.

    Args:
        kind: its name.
        report, decision: its models.
    """

    def __init__(self, kind: str, report: type[BaseModel], decision: type[BaseModel]) -> None:
        self._kind, self._report, self._fields = (
            kind,
            report,
            tuple(name for name in decision.model_fields if name not in ADDED),
        )

    def compile(self, snapshot: Snapshot) -> Compiled:
        """The snapshot with the policy that answers."""
        return Compiled(snapshot)

    def rules(self, compiled: Compiled) -> Sequence[str]:
        """Names of the layout's baselines."""
        return tuple(rule.name for rule in compiled.layout.baselines)

    def begin(self, compiled: Compiled, run: str, start: RunStart, now: datetime) -> Answered:  # noqa: ARG002
        """The layout's initial action."""
        layout = compiled.layout
        kept = Kept(0, -1, tuple(float(column[0]) for column in layout.begin()))
        responder = Responder(compiled.heuristic, "heuristic")
        reason = Reason(code="first", text="the run has reported nothing yet")
        return Answered(self._encoded(compiled, run, kept, layout.initial, responder, reason, now), kept)

    def decode(self, body: bytes) -> dict[str, Any]:
        """A report's fields, less the kind.

        Raises:
            ValidationError, InvalidInput: it is none.
        """
        place = deep_place(body)
        if place is not None:
            raise invalid(place, TOO_DEEP, None)
        return self._report.model_validate_json(body, strict=True).model_dump(exclude={"kind"})

    def takes_long(self, compiled: Compiled, state: Kept, report: dict[str, Any]) -> bool:  # noqa: ARG002
        """No: a handful of numbers."""
        return False

    def read(self, compiled: Compiled, state: Kept, iteration: int, report: dict[str, Any]) -> Read:  # noqa: ARG002
        """The report and its action; any state takes it, up to the workload's last iteration.

        Raises:
            InvalidInput: an iteration beyond the workload's, or see ``NumberedLayout.action_of``.
        """
        if iteration >= compiled.layout.iterations:
            accepted = f"must be less than {compiled.layout.iterations}, the workload's number of iterations"
            raise invalid("/path/iteration", accepted, iteration)
        read = self._report.model_construct(**report)
        return Read(read, compiled.layout.action_of(read))

    def answer(self, compiled: Compiled, pending: Sequence[Pending], now: datetime) -> list[Answered]:
        """Advance each run by its report and decide, all at once."""
        layout = compiled.layout
        before = layout.state(*np.array([one.state.values for one in pending], np.float64).T)
        state = layout.advance(before, [one.report.report for one in pending])
        rows = np.stack(state, axis=1).tolist()
        version = compiled.snapshot.agent_version
        remembered = artifact.recalled([one.state.memories for one in pending], version)
        situation = Situation(layout, state, layout.seen(state), remembered)
        responder, choice = self._chosen(compiled, situation)
        out = []
        for i, one in enumerate(pending):
            action = int(choice.action[i])
            shadow, memories = _consulted(compiled, situation, i, action, one)
            if version is not None and choice.memory is not None:
                memories = {**memories, version: choice.memory[i].copy()}
            kept = Kept(one.iteration + 1, one.report.action, tuple(rows[i]), memories)
            reason = _reason(layout.explain(layout.state(*rows[i]), action), responder)
            decision = self._encoded(compiled, one.run, kept, action, responder, reason, now, shadow)
            out.append(Answered(decision, kept))
        return out

    def _chosen(self, compiled: Compiled, situation: Situation) -> tuple[Responder, Choice]:
        """Who answers, and what; the heuristic where an agent's policy fails."""
        try:
            return compiled.responder, compiled.responder.policy.act(situation)
        except Exception as error:
            logger.exception("workload %s: the policy failed", compiled.snapshot.name)
            words = f"the policy failed ({type(error).__name__}: {error}); {compiled.heuristic.name} answers"
            responder = Responder(compiled.heuristic, "fallback", "fallback", words)
            return responder, compiled.heuristic.act(situation)

    def _encoded(
        self,
        compiled: Compiled,
        run: str,
        kept: Kept,
        action: int,
        responder: Responder,
        reason: Reason,
        now: datetime,
        shadow: ShadowAction | None = None,
    ) -> bytes:
        fields = {
            "run": run,
            "workload": compiled.snapshot.name,
            "kind": self._kind,
            "reported": kept.iteration - 1 if kept.iteration else None,
            "iteration": kept.iteration,
            "noop": action == kept.action,
            "source": responder.source,
            "agent": compiled.snapshot.agent_version,
            "policy": responder.policy.name if kept.iteration else "initial",
            "reason": reason.model_dump(),
            "valid_for_iterations": int(kept.iteration < compiled.layout.iterations),
            "decided_at": timestamp(now),
            "action": action,
            "shadow": None if shadow is None else shadow.model_dump(),
            **compiled.layout.allocated(action),
        }
        return msgspec.json.encode({name: fields[name] for name in self._fields})

    def serialise(self, state: Kept) -> msgspec.Raw:
        """A JSON array ``[iteration, action, values]``, null for NaN, and what is remembered, if anything is."""
        remembered = [artifact.stored(state.memories)] if state.memories else []
        return msgspec.Raw(msgspec.json.encode([state.iteration, state.action, state.values, *remembered]))

    def restore(self, stored: list[Any]) -> Kept:
        """The state of an array that ``serialise`` gave; NaN for null."""
        iteration, action, values, *rest = stored
        numbers = tuple(float("nan") if value is None else float(value) for value in values)
        return Kept(iteration, action, numbers, artifact.restored(rest[0]) if rest else artifact.NOTHING)

    def weight(self, state: Kept) -> int:
        """About how many bytes a state takes in memory."""
        return KEPT_BYTES + 32 * len(state.values) + artifact.weight(state.memories)


def _reason(own: Reason, responder: Responder) -> Reason:
    return Reason(code=responder.code, text=f"{responder.preface}: {own.text}") if responder.preface else own


def _consulted(
    compiled: Compiled, situation: Situation, row: int, done: int, pending: Pending
) -> tuple[ShadowAction | None, artifact.Memories]:
    """What a run's shadow would have done, or why it can't tell, and what is then remembered of the run by who is still
    asked; who fails remembers what it did before."""
    shadow, champion = pending.shadow, compiled.snapshot.agent_version
    if shadow is None:
        return None, artifact.kept(pending.state.memories, (champion,))
    memories = artifact.kept(pending.state.memories, (champion, shadow.version))
    one = slice(row, row + 1)
    state, seen = (type(part)(*(column[one] for column in part)) for part in (situation.state, situation.view))
    problem, action = shadow.problem, None
    try:
        if shadow.artifact is not None:
            known = artifact.recalled([memories], shadow.version)
            choice = shadow.artifact.policy.act(Situation(situation.projector, state, seen, known))
            action = int(choice.action[0])
            if choice.memory is not None:
                memories[shadow.version] = choice.memory[0]
    except Exception as error:
        logger.exception("workload %s: shadow %d failed", compiled.snapshot.name, shadow.version)
        problem = f"{type(error).__name__}: {error}"
    said = ShadowAction(agent=shadow.version, action=action, agrees=action == done, gain=None, problem=problem or None)
    return said, memories
