"""Schedulers as files: a JSON header and arrays in safetensors."""

import json
from pathlib import Path

from app.kinds.tensors import written
from app.kinds.workflow.policies.schedulers import PriorityPolicy, StrategyPolicy
from app.policies.artifact import Artifact, parts
from app.policies.base import IncompatibleArtifact

FORMAT = 1
KIND = "workflow"
SHIPPED = Path(__file__).parent / "pretrained.safetensors"
"""Priorities that ship with the package; ``python -m benchmarks.workflow_generalisation --ship FILE`` makes them."""

Scheduler = StrategyPolicy | PriorityPolicy
SCHEDULERS: dict[str, type[Scheduler]] = {"strategy": StrategyPolicy, "priority": PriorityPolicy}


def save(policy: Scheduler) -> bytes:
    """``policy`` as bytes."""
    kind = next(name for name, family in SCHEDULERS.items() if isinstance(policy, family))
    header = {"kind": KIND, "policy": kind, "config": policy.config}
    return written(policy.arrays, {"format": str(FORMAT), "header": json.dumps(header, sort_keys=True)})


def load(data: bytes) -> Scheduler:
    """Read what ``save`` wrote.

    Raises:
        IncompatibleArtifact: bytes that are no artifact, of another kind or format, or whose parts do not fit.
    """
    version, header, arrays = parts(data)
    if version != str(FORMAT) or header.get("kind") != KIND or str(header.get("policy")) not in SCHEDULERS:
        raise IncompatibleArtifact(
            f"format {version}, kind {header.get('kind')!r}, policy {header.get('policy')!r}; read here are format "
            f"{FORMAT}, kind {KIND} and {', '.join(SCHEDULERS)}"
        )
    config = header.get("config")
    if not isinstance(config, dict):
        raise IncompatibleArtifact("its parts don't fit: it has no config")
    return SCHEDULERS[header["policy"]].build(config, arrays)


def artifact(data: bytes) -> Artifact:
    """A scheduler as the service holds it: it reads any number of candidates, and is made for any queue.

    Raises:
        IncompatibleArtifact: see ``load``.
    """
    return Artifact(load(data), (), 0, None, KIND)


def check(made: Artifact, layout: object) -> None:  # noqa: ARG001 - a scheduler reads every layout
    """Make sure that a policy schedules queues.

    Raises:
        IncompatibleArtifact: it was made for another kind.
    """
    made.check(KIND, (), 0)
