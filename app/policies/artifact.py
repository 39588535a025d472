"""Policies as files: a JSON header and arrays in safetensors. What is evaluated is what answers."""

import json
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from safetensors import SafetensorError
from safetensors import numpy as safetensors_numpy

from app.kinds.iterative.layout import Layout as IterativeLayout
from app.kinds.iterative.policies.heuristic import HeuristicPolicy
from app.kinds.iterative.policies.network import NetworkPolicy
from app.kinds.iterative.policies.planner import PlannerPolicy
from app.kinds.iterative.policies.table import TablePolicy
from app.kinds.registry import KINDS
from app.kinds.tensors import read_header, written
from app.kinds.workflow.policies import artifact as schedulers
from app.policies.base import IncompatibleArtifact, Published

FORMAT = 1
POLICIES: dict[str, type[Published]] = {
    "network": NetworkPolicy,
    "table": TablePolicy,
    "planner": PlannerPolicy,
    "heuristic": HeuristicPolicy,
}

OTHER_KINDS: dict[str, ModuleType] = {"workflow": schedulers}
"""What writes and reads the artifacts of kinds whose policies are not of the families above."""


@dataclass(frozen=True)
class Experience:
    """What a policy was made for; a state outside of it is answered by a heuristic.

    Attributes:
        target_ratio: lowest and highest target, as a ratio to the spec's when it was made.
        weight_ratio: the same of the reward's weights and of the prices.
        hysteresis: a change must promise at least this much more return than staying.
    """

    targets: dict[str, float] = field(default_factory=dict)
    weights: tuple[float, ...] = ()
    prices: tuple[float, ...] = ()
    target_ratio: tuple[float, float] = (0.5, 2.0)
    weight_ratio: tuple[float, float] = (0.9, 1.1)
    hysteresis: float = 0.0


@dataclass(frozen=True, eq=False)
class Artifact:
    """A policy with the kind and the layout that it reads, and what it was made for; its contract is its kind's."""

    policy: Any
    observation: tuple[str, ...]
    actions: int
    experience: Experience
    kind: str = "iterative"

    def check(self, layout: Any) -> None:
        """Make sure that the policy reads ``layout``.

        Raises:
            IncompatibleArtifact: the workload is of another kind, or what it has to show isn't what the policy reads.
        """
        kind = layout.spec.kind
        if kind != self.kind:
            raise IncompatibleArtifact(f"the policy was made for kind {self.kind}; this workload is of kind {kind}")
        shown, actions = KINDS[kind].reads(layout)
        if shown != self.observation or actions != self.actions:
            raise IncompatibleArtifact(
                f"the policy reads {len(self.observation)} observation entries and {self.actions} actions of another "
                f"spec; this workload has {len(shown)} and {actions}"
            )


def experience_of(layout: IterativeLayout, hysteresis: float = 0.0) -> Experience:
    """What a policy that is made for ``layout`` as it stands has seen."""
    targets = {m.name: m.target for m in layout.spec.metrics if m.target is not None}
    return Experience(
        targets, tuple(map(float, layout.weights)), tuple(map(float, layout.prices)), hysteresis=hysteresis
    )


def save(policy: Published, layout: Any, experience: Experience | None = None) -> bytes:
    """``policy``, made for ``layout``, as bytes."""
    made_for = experience or experience_of(layout)
    shown, actions = KINDS[layout.spec.kind].reads(layout)
    header = {
        "kind": layout.spec.kind,
        "policy": next(name for name, cls in POLICIES.items() if isinstance(policy, cls)),
        "config": policy.config,
        "observation": shown,
        "actions": actions,
        "experience": made_for.__dict__,
    }
    return written(policy.arrays, {"format": str(FORMAT), "header": json.dumps(header, sort_keys=True)})


def load(data: bytes) -> Artifact:
    """Read what ``save`` wrote.

    Raises:
        IncompatibleArtifact: another format, an unknown kind of policy, or bytes that are no artifact.
    """
    try:
        metadata = read_header(data)
        header: dict[str, Any] = json.loads(metadata["header"])
        arrays: dict[str, Any] = safetensors_numpy.load(data)
    except (ValueError, KeyError, SafetensorError) as error:
        raise IncompatibleArtifact(f"not a policy artifact: {error}") from error
    other = OTHER_KINDS.get(header.get("kind", ""))
    if other is not None:
        return Artifact(other.load(data), (), 0, Experience(), header["kind"])
    if metadata.get("format") != str(FORMAT) or header["policy"] not in POLICIES:
        raise IncompatibleArtifact(
            f"format {metadata.get('format')}, policy {header['policy']!r}; this version reads format {FORMAT} and "
            f"{', '.join(POLICIES)}"
        )
    experience: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in header["experience"].items()}
    return Artifact(
        POLICIES[header["policy"]].build(header["config"], arrays),
        tuple(header["observation"]),
        header["actions"],
        Experience(**experience),
        header["kind"],
    )
