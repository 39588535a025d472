"""Specs and decisions of every kind in a few words, for a row of the dashboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from app.decisions.schemas import Decision
from app.kinds.iterative.spec import Spec as IterativeSpec
from app.kinds.registry import Spec
from app.kinds.workflow.decisions.schemas import QueueDecision
from app.kinds.workflow.spec import Spec as WorkflowSpec


class Told(NamedTuple):
    """What is allocated, over how long, and what is wanted."""

    resources: str
    length: str
    targets: str


def _iterative(spec: IterativeSpec) -> Told:
    targets = [f"{m.name} {m.target:g} {m.unit} per {m.scope}" for m in spec.metrics if m.target is not None]
    resources = ", ".join(f"{r.name} {r.minimum:g}–{r.maximum:g} {r.unit}" for r in spec.resources)
    return Told(resources, f"{spec.iterations:,}", "; ".join(targets))


def _workflow(spec: WorkflowSpec) -> Told:
    nodes = ", ".join(f"{n.name} {n.minimum}–{n.maximum} × {n.processors} processors" for n in spec.nodes)
    wanted = [f"{name} {weight:g}" for name, weight in spec.weights.model_dump().items() if weight]
    return Told(nodes, "any", "; ".join(wanted))


KINDS: dict[str, Callable[[Any], Told]] = {"iterative": _iterative, "workflow": _workflow}


def told(spec: Spec) -> Told:
    """A spec of whatever kind."""
    return KINDS[spec.kind](spec)


def decided(decision: Decision | QueueDecision) -> str:
    """What a decision allocates."""
    if isinstance(decision, Decision):
        return ", ".join(f"{name} {value:g}" for name, value in decision.allocation.items())
    started = len(decision.placements)
    return "1 task starts" if started == 1 else f"{started} tasks start" if started else "nothing starts"
