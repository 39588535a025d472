"""Artifacts of kind ``iterative``: which policies there are, what each reads, and what it was made for."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from app.kinds.contract.terms import Term, Terms, around, left
from app.kinds.iterative.heuristics import MODEL_PREDICTIVE
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies.heuristic import HeuristicPolicy
from app.kinds.iterative.policies.planner import PlannerPolicy
from app.kinds.iterative.spec import Spec
from app.policies import artifact
from app.policies.artifact import SHARED, Artifact, Families
from app.policies.base import Published

KIND = "iterative"
FAMILIES: Families = {**SHARED, "planner": PlannerPolicy, "heuristic": HeuristicPolicy}
UNTRAINABLE = f"{MODEL_PREDICTIVE} answers while a probability is required; set it to null to have agents"


@dataclass(frozen=True)
class Experience:
    """What a policy was made for; a state outside of it is answered by a heuristic.

    Attributes:
        target_ratio: lowest and highest target, as a ratio to the spec's when it was made.
        weight_ratio: the same of the reward's weights and of the prices.
        hysteresis: a change must promise at least this much more return than staying.
    """

    targets: dict[str, float] = field(default_factory=dict, hash=False)
    weights: tuple[float, ...] = ()
    prices: tuple[float, ...] = ()
    target_ratio: tuple[float, float] = (0.5, 2.0)
    weight_ratio: tuple[float, float] = (0.9, 1.1)
    hysteresis: float = 0.0


def experience_of(layout: Layout, hysteresis: float = 0.0) -> Experience:
    """What a policy that is made for ``layout`` as it stands has seen."""
    return replace(_of_spec(layout.spec), hysteresis=hysteresis)


def _of_spec(spec: Spec) -> Experience:
    targets = {m.name: m.target for m in spec.metrics if m.target is not None}
    weights = tuple(float(weight) for _, weight in spec.weights)
    return Experience(targets, weights, tuple(float(r.price_per_hour) for r in spec.resources))


def _read(made_for: Mapping[str, Any]) -> Experience:
    """What ``save`` wrote of an experience."""
    parts: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in made_for.items()
    }
    return Experience(**parts)


def terms(spec: Spec, made_for: Mapping[str, Any] | None = None) -> Terms:
    """Targets, weights and prices of a spec, with the bounds outside of which the guard answers (``guard.beyond``).

    Args:
        spec: names the weights and resources.
        made_for: what ``save`` wrote of an experience, whose terms are meant then.
    """
    made = _of_spec(spec) if made_for is None else _read(made_for)
    weights = {f"weight of {name}": value for (name, _), value in zip(spec.weights, made.weights, strict=False)}
    prices = {f"price of {r.name}": value for r, value in zip(spec.resources, made.prices, strict=False)}
    sure = {m.name: m.probability for m in spec.metrics if m.probability is not None and made_for is None}
    return {
        **{f"target of {name}": around(value, made.target_ratio) for name, value in made.targets.items()},
        **{name: around(value, made.weight_ratio) for name, value in (weights | prices).items()},
        **{f"required probability of {name}": Term(value, value, value, UNTRAINABLE) for name, value in sure.items()},
    }


def in_force(table: ModelTable, spec: Spec) -> ModelTable:
    """A domain model, without the heuristic that it names where the spec has left the terms of that choice."""
    if table.rule is None or not left(table.terms, terms(spec)):
        return table
    return replace(table, rule=None, evidence="")


def save(policy: Published, layout: Layout, experience: Experience | None = None) -> bytes:
    """``policy``, made for ``layout``, as bytes."""
    made_for = asdict(experience or experience_of(layout))
    return artifact.save(policy, KIND, layout.observation_names, len(layout.deltas), made_for, FAMILIES)


def load(data: bytes) -> Artifact:
    """Read what ``save`` wrote; its ``experience`` is an ``Experience``.

    Raises:
        IncompatibleArtifact: another format, an unknown family of policies, or bytes that are no artifact.
    """
    found = artifact.load(data, FAMILIES)
    return replace(found, experience=_read(found.experience))


def check(made: Artifact, layout: Layout) -> None:
    """Make sure that a policy reads ``layout``.

    Raises:
        IncompatibleArtifact: it was made for another kind or layout.
    """
    made.check(KIND, layout.observation_names, len(layout.deltas))
