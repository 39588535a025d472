"""Artifacts as ways of scheduling."""

from app.kinds.workflow.layout import Layout
from app.policies.artifact import load
from app.policies.base import IncompatibleArtifact
from workers.evaluation.workflow.ways import Way


def way_of(data: bytes, layout: Layout, *, pool: bool) -> Way:  # noqa: ARG001
    """What an artifact does with a whole episode.

    Args:
        data: the artifact.
        layout: of the workload.
        pool: whether its tasks are batch jobs on one pool.

    Raises:
        IncompatibleArtifact: it was made for something else.
    """
    artifact = load(data)
    raise IncompatibleArtifact(f"{artifact.policy.name} schedules no tasks")
