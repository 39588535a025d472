"""Artifacts of agents of kind `inference`, and compiled workloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.engine import DEFAULT_ROLE, Snapshot
from app.kinds.contract.policy import Policy
from app.kinds.engine import deciding_policy
from app.kinds.inference.awarding import Together, layouts
from app.kinds.inference.choices import Chooser
from app.kinds.inference.drift import Watch
from app.kinds.inference.dynamics import Projector
from app.kinds.inference.heuristics import BASELINES, OFFERING, WITHOUT_MODEL, AdaptivePlanner
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.queue import Fleet, RunState
from app.kinds.inference.report import Durations, Ledger
from app.policies import artifact
from app.policies.artifact import SHARED, Artifact, Families
from app.policies.base import IncompatibleArtifact

KIND = "inference"
FAMILIES: Families = {**SHARED, "adaptive_planner": AdaptivePlanner}


def load(data: bytes) -> Artifact:
    """Load a published agent from its bytes; raises IncompatibleArtifact if ``data`` isn't one."""
    return artifact.load(data, FAMILIES)


def check(artifact: Artifact, layout: Layout) -> None:
    """Check that a policy fits a layout, or the representation of one of its users.

    Raises:
        IncompatibleArtifact: the policy was made for another layout, or for an unknown role.
    """
    known = layouts(layout)
    for role, own in artifact.roles.items():
        if role not in known:
            raise IncompatibleArtifact(f"it has a policy of role {role!r}; this workload has {', '.join(known)}")
        own.check(KIND, known[role].entries, known[role].actions)
    if not artifact.roles:
        fitting = next(
            (one for one in known.values() if tuple(one.entries) == artifact.observation), next(iter(known.values()))
        )
        artifact.check(KIND, fitting.entries, fitting.actions)


def part(artifact: Artifact, role: str) -> Artifact:
    """Return the part of an agent for one role, or the agent itself if it has no roles.

    Raises:
        IncompatibleArtifact: it has policies by role but none of this role.
    """
    if artifact.roles and role not in artifact.roles:
        raise IncompatibleArtifact(f"it has no policy of role {role!r}; it has {', '.join(artifact.roles)}")
    return artifact.roles.get(role, artifact)


# Compiled snapshot: servers, expected seconds, and the deciding policy.


class Compiled:
    """A workload's snapshot, compiled for decisions.

    Attributes:
        projector: the domain model's expectations.
        watch: computes evidence of drift; None without a domain model.
        spare: chooser of the heuristic, whose name is ``heuristic``.
        agent: chooser of the promoted policies; None: the heuristic decides.
        decided_by: the policy that decides unless it fails.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.layout: Layout = snapshot.layout
        model: ServiceModel | None = snapshot.model
        self.fleet = Fleet(self.layout)
        self.watch = None if model is None else Watch(self.layout, model)
        self._rule: Policy = self.rules[snapshot.rule or next(iter(self.rules))]
        self._offering: Policy = WITHOUT_MODEL if model is None else OFFERING
        self.projector = Projector.of(self.layout, model)
        self._durations: Durations | None = None if self.seconds is None else self.seconds.tolist()
        self.spare = Chooser(self.projector, self.fleet, self._rule)
        self.heuristic = self.spare.name
        self.agent, problem = self._choose_promoted()
        name = None if self.agent is None else self.agent.name
        self.decided_by = deciding_policy(
            snapshot if not problem else replace(snapshot, problem=problem), name, self.heuristic
        )

    @property
    def rules(self) -> Mapping[str, Policy]:
        """Heuristics by name, the default first; without a domain model only the one that needs none."""
        if self.snapshot.model is None:
            return {WITHOUT_MODEL.name: WITHOUT_MODEL}
        return {rule.name: rule for rule in BASELINES}

    def _choose_promoted(self) -> tuple[Chooser | None, str]:
        """Return a chooser of the promoted policies, and ""; or None, and why they can't be used ("": there are
        none)."""
        snapshot, roles = self.snapshot, layouts(self.layout)
        problems = {one.problem for one in snapshot.policies.values() if one.problem} or {snapshot.problem} - {""}
        if problems:
            return None, "; ".join(sorted(problems))
        artifacts = {role: policy.artifact for role, policy in snapshot.policies.items() if role in roles}
        if snapshot.artifact is not None:
            artifacts.setdefault(DEFAULT_ROLE, snapshot.artifact)
        chosen = {role: artifact for role, artifact in artifacts.items() if artifact is not None and role in roles}
        return self.chooser(chosen) if chosen else None, ""

    def chooser(self, artifacts: dict[str, Artifact]) -> Chooser:
        """Return a chooser that decides by ``artifacts``, by role; a heuristic decides for users without one.

        Raises:
            IncompatibleArtifact: an artifact has policies by role, but none of the role it is given for.
        """
        policies = {role: part(artifact, role).policy for role, artifact in artifacts.items()}
        one = self.layout.spec.policies == "one"
        policy = policies[DEFAULT_ROLE] if one else Together(self.layout, policies, self._offering)
        return Chooser(self.projector, self.fleet, policy)

    def chooser_of(self, artifact: Artifact) -> Chooser:
        """Return a chooser that uses one agent in every role it was made for, as for shadows.

        Raises KeyError if one policy decides for all users and the agent has none for that role."""
        return self.chooser(
            {role: artifact for role in layouts(self.layout) if not artifact.roles or role in artifact.roles}
        )

    @property
    def seconds(self) -> NDArray[np.float64] | None:
        """Mean seconds per batch by class, variant and size, [C, V, K]; None without a domain model."""
        return self.projector.seconds

    def expected(self) -> dict[str, dict[str, list[float]]] | None:
        """Return the mean seconds per batch by names of class and variant, and size; None without a domain model."""
        if self.seconds is None:
            return None
        variants, table = self.layout.variants, self.seconds.tolist()
        rows = [dict(zip(variants, of_class, strict=True)) for of_class in table]
        return dict(zip(self.layout.servers, rows, strict=True))

    def ledger(self, state: RunState) -> Ledger:
        """Return the mutable queues and servers of a run's state."""
        return Ledger(self.layout, self.fleet, self._durations, state)
