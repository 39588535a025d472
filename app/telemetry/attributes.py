"""Attributes of OpenTelemetry spans about decisions and runs. ``ATTRIBUTES`` is their documentation, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

Value = str | int | float | bool
ATTRIBUTES: Mapping[str, str] = {
    "steward.tenant": "Tenant of the caller.",
    "steward.workload": "Name of the workload.",
    "steward.run": "Id of the run.",
    "steward.iteration": "Iteration that the decision is for.",
    "steward.decision.source": "What decided: `agent`, `heuristic`, `guard` or `fallback`.",
    "steward.decision.policy": "Name of the policy that decided.",
    "steward.decision.agent": "Version of the promoted agent; absent without one.",
    "steward.decision.reason": "Code of the reason, such as `deadline_at_risk`.",
    "steward.decision.noop": "Whether nothing changes.",
    "steward.decision.stop": "Whether the run is to stop at a cap; absent if it isn't.",
    "steward.decision.allocation.<resource>": "Amount of the resource, in its unit, where a decision has one of each.",
    "steward.outcome": "Outcome of the run that the request has ended, such as `met`; of a job's attempt, its state.",
    "steward.job": "Id of the job, in spans of workers.",
}
"""Meaning by name; ``<…>`` stands for a name."""
MEMBERS = {
    "workload": "steward.workload",
    "run": "steward.run",
    "iteration": "steward.iteration",
    "source": "steward.decision.source",
    "policy": "steward.decision.policy",
    "agent": "steward.decision.agent",
    "noop": "steward.decision.noop",
    "stop": "steward.decision.stop",
}
"""Attribute by member of a decision."""
_noted: ContextVar[dict[str, Value] | None] = ContextVar("steward_span_attributes", default=None)


def of_decision(decision: Mapping[str, Any]) -> dict[str, Value]:
    """The attributes of a span that describe a decision (JSON values); members of other types are left out."""
    result = {name: decision.get(member) for member, name in MEMBERS.items()}
    reason, allocation = decision.get("reason"), decision.get("allocation")
    if isinstance(reason, Mapping):
        result["steward.decision.reason"] = reason.get("code")
    if isinstance(allocation, Mapping):
        amounts = {name: value for name, value in allocation.items() if isinstance(value, int | float)}
        result |= {f"steward.decision.allocation.{name}": value for name, value in amounts.items()}
    return {name: value for name, value in result.items() if isinstance(value, Value)}


def of_answer(answer: bytes) -> dict[str, Value]:
    """The attributes of a span that describe a decision, given as JSON text; empty if it is no decision."""
    try:
        result = msgspec.json.decode(answer)
    except msgspec.MsgspecError:
        return {}
    return of_decision(result) if isinstance(result, dict) else {}


@contextmanager
def noting() -> Iterator[dict[str, Value]]:
    """Context manager: attributes by name that ``note`` receives within the block, also from its threads and tasks."""
    current: dict[str, Value] = {}
    token = _noted.set(current)
    try:
        yield current
    finally:
        _noted.reset(token)


def note(attributes: Mapping[str, Value]) -> None:
    """Add attributes to the span of the request that is answered; no effect outside of one."""
    current = _noted.get()
    if current is not None:
        current.update(attributes)
