"""Artifacts of kind ``inference``: policies of the shared families and its own, for all users or several by role."""

from __future__ import annotations

from app.kinds.inference.adaptive import AdaptivePlanner
from app.kinds.inference.layout import Layout
from app.kinds.inference.per_user import layouts
from app.policies import artifact
from app.policies.artifact import SHARED, Artifact, Families
from app.policies.base import IncompatibleArtifact

KIND = "inference"
FAMILIES: Families = {**SHARED, "adaptive_planner": AdaptivePlanner}


def load(data: bytes) -> Artifact:
    """An agent as it was published; raises IncompatibleArtifact."""
    return artifact.load(data, FAMILIES)


def check(made: Artifact, layout: Layout) -> None:
    """Make sure that a policy reads a layout: all of it, or what the agent of one of its users sees.

    Raises:
        IncompatibleArtifact: it was made for another one.
    """
    known = layouts(layout)
    for role, own in made.roles.items():
        if role not in known:
            raise IncompatibleArtifact(f"it has a policy of role {role!r}; this workload has {', '.join(known)}")
        own.check(KIND, known[role].entries, known[role].actions)
    if not made.roles:
        fitting = next(
            (one for one in known.values() if tuple(one.entries) == made.observation), next(iter(known.values()))
        )
        made.check(KIND, fitting.entries, fitting.actions)


def part(made: Artifact, role: str) -> Artifact:
    """What of an agent answers in a role.

    Raises:
        IncompatibleArtifact: it has several policies and none of this role.
    """
    if made.roles and role not in made.roles:
        raise IncompatibleArtifact(f"it has no policy of role {role!r}; it has {', '.join(made.roles)}")
    return made.roles.get(role, made)
