"""What a workload's decisions rest on: its nodes, what is expected of tasks, and who chooses their order."""

from __future__ import annotations

from app.kinds.contract.engine import Snapshot
from app.kinds.workflow.decisions.choose import ask
from app.kinds.workflow.layout import Layout
from app.kinds.workflow.predictor import Predictor
from app.kinds.workflow.scheduling.decide import Choice, Chooser, by_strategy
from app.kinds.workflow.scheduling.situation import Scene
from app.policies.artifact import Artifact


class Compiled:
    """A snapshot ready to decide with.

    Attributes:
        standing: name of the spec's strategy and mechanism, which answer without a champion, or when it fails.
        source: 'agent', 'heuristic', or 'fallback' when there is a champion that can't be loaded.
        preface: code and words of why no agent answers; empty when one does.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.layout: Layout = snapshot.layout
        self.predictor: Predictor | None = snapshot.model
        spec = self.layout.spec
        self.standing = f"{spec.strategy}+{spec.backfilling}"
        self._own = by_strategy(spec.strategy, spec.backfilling, spec.backfill_order)
        self.source, self.preface = self._standing()

    def _standing(self) -> tuple[str, tuple[str, str]]:
        if self.snapshot.artifact is not None:
            return "agent", ("", "")
        if self.snapshot.problem:
            return "fallback", ("fallback", f"{self.snapshot.problem}; {self.standing} answers")
        return "heuristic", ("", "")

    def scene(self, state: object) -> Scene:
        """What there is to decide."""
        return Scene(self.layout, state, self.predictor)  # type: ignore[arg-type]

    def chooser(self, artifact: Artifact | None) -> Chooser:
        """Who chooses: the artifact's policy, without one the spec's strategy."""
        if artifact is None:
            return self._own
        spec, policy = self.layout.spec, artifact.policy

        def choose(scene: Scene) -> Choice:
            return ask(policy, scene, spec)

        return choose
