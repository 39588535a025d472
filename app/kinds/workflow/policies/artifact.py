"""Schedulers as files: a JSON header and arrays in safetensors."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors import numpy as safetensors_numpy

from app.kinds.tensors import read_header, written
from app.kinds.workflow.policies.combined import InspectorPolicy, Member, PortfolioPolicy
from app.kinds.workflow.policies.members import ScorerPolicy, StrategyPolicy
from app.policies.base import IncompatibleArtifact

FORMAT = 1
KIND = "workflow"
SHIPPED = Path(__file__).parent / "pretrained.safetensors"
"""The scheduler that comes with the package; ``python -m workers.kinds.workflow.training.pretrain`` makes it anew."""

Scheduler = Member | PortfolioPolicy | InspectorPolicy
SCHEDULERS: dict[str, type[Scheduler]] = {
    "strategy": StrategyPolicy,
    "scorer": ScorerPolicy,
    "portfolio": PortfolioPolicy,
    "inspector": InspectorPolicy,
}


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
    try:
        metadata = read_header(data)
        header: dict[str, Any] = json.loads(metadata["header"])
        arrays: dict[str, Any] = safetensors_numpy.load(data)
    except (ValueError, KeyError, SafetensorError) as error:
        raise IncompatibleArtifact(f"not a policy artifact: {error}") from error
    if metadata.get("format") != str(FORMAT) or header.get("kind") != KIND or header.get("policy") not in SCHEDULERS:
        raise IncompatibleArtifact(
            f"format {metadata.get('format')}, kind {header.get('kind')!r}, policy {header.get('policy')!r}; read here "
            f"are format {FORMAT}, kind {KIND} and {', '.join(SCHEDULERS)}"
        )
    return SCHEDULERS[header["policy"]].build(header["config"], arrays)
