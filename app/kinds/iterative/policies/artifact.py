"""Artifacts of kind ``iterative``: which policies there are, what each reads, and what it was made for."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.policies.heuristic import HeuristicPolicy
from app.kinds.iterative.policies.planner import PlannerPolicy
from app.policies import artifact
from app.policies.artifact import SHARED, Artifact, Families
from app.policies.base import Published

KIND = "iterative"
FAMILIES: Families = {**SHARED, "planner": PlannerPolicy, "heuristic": HeuristicPolicy}


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
    targets = {m.name: m.target for m in layout.spec.metrics if m.target is not None}
    return Experience(
        targets, tuple(map(float, layout.weights)), tuple(map(float, layout.prices)), hysteresis=hysteresis
    )


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
    parts: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.experience.items()
    }
    return replace(found, experience=Experience(**parts))


def check(made: Artifact, layout: Layout) -> None:
    """Make sure that a policy reads ``layout``.

    Raises:
        IncompatibleArtifact: it was made for another kind or layout.
    """
    made.check(KIND, layout.observation_names, len(layout.deltas))
