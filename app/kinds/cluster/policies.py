"""Policies of kind ``cluster``: they choose, at each decision, which of the rules answers."""

from __future__ import annotations

from app.kinds.cluster.layout import Layout
from app.policies import artifact
from app.policies.artifact import Artifact

KIND = "cluster"


def load(data: bytes) -> Artifact:
    """An agent as it was published; raises IncompatibleArtifact."""
    return artifact.load(data)


def check(made: Artifact, layout: Layout) -> None:
    """Make sure that a policy reads a layout.

    Raises:
        IncompatibleArtifact: it was made for another one.
    """
    made.check(KIND, layout.entries, layout.actions)
