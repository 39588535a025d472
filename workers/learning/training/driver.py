"""Driver of a training of any kind: stages in chunks with checkpoints in between, and a verdict at the end.

A kind implements the stages (`Trainer`); running, progress, resuming and ending are common. The judged artifact is
published, never the learner itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol

import numpy as np

from app.kinds.contract.policy import Policy
from workers.learning.execution import base as blob
from workers.learning.simulator import SimulatorSpec
from workers.learning.training.request import PLANNER

LEARNING = 0.9  # share of the progress of the stages; the rest is the verdict's
JUDGING = "judging"
DONE = "done"


@dataclass(frozen=True)
class TrainedAgent:
    """Result of a training: the serialised policy (`artifact`), and the `report` with its verdict (JSON values)."""

    artifact: bytes
    report: dict[str, Any]


class Stage(NamedTuple):
    """A stage of a training.

    Attributes:
        name: name that users see as the training's phase.
        weight: share in the training's progress, relative to the other stages' weights.
        advance: function that runs a chunk, and returns whether the stage is done.
        share: function that returns the share of the stage that is done, 0 to 1.
    """

    name: str
    weight: float
    advance: Callable[[], bool]
    share: Callable[[], float]


class Trainer(Protocol):
    """Interface of one kind's training: its stages and its conclusion."""

    @property
    def stages(self) -> Sequence[Stage]:
        """The stages in the order in which they run; equal for equal requests."""
        ...

    @property
    def eta_seconds(self) -> float | None:
        """Estimated remaining wall-clock seconds; None if unknown."""
        ...

    @property
    def live(self) -> Mapping[str, Any]:
        """Progress figures to show to users, plain JSON values by name."""
        ...

    def conclude(self) -> TrainedAgent:
        """Choose and judge the agent after all stages; return its artifact and report.

        Raises:
            Untrainable: there is nothing to publish.
        """
        ...

    def checkpoint(self) -> bytes:
        """Serialise the trainer for `restore`; empty bytes if a resumed training starts anew."""
        ...

    def restore(self, data: bytes) -> None:
        """Resume from a checkpoint of the same request; raises CheckpointError if ``data`` is no such checkpoint."""
        ...

    def close(self) -> None:
        """Release processes and memory; can be called twice."""
        ...


class Training:
    """One training job, which runs a trainer's stages chunk by chunk; CheckpointError for an unreadable checkpoint.

    Args:
        trainer: the stages and the conclusion.
        checkpoint: bytes from `checkpoint` with a trainer of the same request, to resume from; None: begin anew.
    """

    def __init__(self, trainer: Trainer, checkpoint: bytes | None = None) -> None:
        self.trainer, self.stages = trainer, tuple(trainer.stages)
        self._stage = 0
        self._result: TrainedAgent | None = None
        if checkpoint:
            self._restore(checkpoint)

    @property
    def done(self) -> bool:
        """Whether the training has ended and `result` is available."""
        return self._result is not None

    @property
    def learning(self) -> bool:
        """Whether a stage is left to run before the verdict."""
        return self._stage < len(self.stages)

    @property
    def progress(self) -> float:
        """Share of the training that is done, 0 to 1."""
        if self.done or not self.learning:
            return 1.0 if self.done else LEARNING if self.stages else 0.0
        behind, now = self.stages[: self._stage], self.stages[self._stage]
        weight = sum(stage.weight for stage in behind) + now.weight * min(1.0, now.share())
        return LEARNING * weight / (sum(stage.weight for stage in self.stages) or 1.0)

    @property
    def eta_seconds(self) -> float | None:
        """Estimated remaining wall-clock seconds; None if unknown, and during the verdict."""
        if self.learning:
            return self.trainer.eta_seconds
        return 0.0 if self.done else None

    @property
    def live(self) -> dict[str, Any]:
        """Progress figures: the stage's name (or "judging", "done") as `phase`, and the trainer's figures."""
        phase = self.stages[self._stage].name if self.learning else DONE if self.done else JUDGING
        return {"phase": phase, **self.trainer.live}

    def advance(self) -> None:
        """Run one chunk of the present stage, or the conclusion; raises their errors, such as Untrainable."""
        if self.learning:
            self._stage += self.stages[self._stage].advance()
        elif not self.done:
            self._result = self.trainer.conclude()
            self.close()

    def result(self) -> TrainedAgent:
        """Return the trained agent; raises RuntimeError if the training has not ended."""
        if self._result is None:
            raise RuntimeError("the training is not done: call advance() until `done`")
        return self._result

    def checkpoint(self) -> bytes:
        """Serialise the training for resumption; empty bytes if a resumed training starts anew."""
        state = self.trainer.checkpoint()
        return blob.pack({"trainer": np.frombuffer(state, np.uint8)}, {"stage": self._stage}) if state else b""

    def close(self) -> None:
        """Release the trainer's processes and memory; can be called twice."""
        self.trainer.close()

    def _restore(self, data: bytes) -> None:
        arrays, values = blob.unpack(data)
        self.trainer.restore(arrays["trainer"].tobytes())
        self._stage = int(values["stage"])


# Interface by which a kind's workloads are trained on and judged with the common learners.


@dataclass(frozen=True)
class PlannedPolicy:
    """Artifact of a policy that is planned or tuned, not learned; or the reason why there is none.

    Attributes:
        artifact: serialised policy; empty without one.
        score: the policy's mean return on the validation episodes.
        exact: whether the policy is the optimum.
        why_not: why there is no policy, in words; empty if there is one.
        details: plain values that the kind's verdict uses.
        nothing_to_win: why learning is in vain, in words; empty if it may gain something, or if that is unknown.
        name: name in reports.
    """

    artifact: bytes = b""
    score: float = 0.0
    exact: bool = False
    why_not: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    nothing_to_win: str = ""
    name: str = PLANNER

    @property
    def reference(self) -> float | None:
        """Score that a learned policy has to exceed to be published instead; None without a plan."""
        return self.score if self.artifact else None

    def pack(self) -> bytes:
        """Serialise all fields to bytes that `unpack` reads."""
        values = {field.name: getattr(self, field.name) for field in fields(self)[1:]}
        return blob.pack({"artifact": np.frombuffer(self.artifact, np.uint8)}, values | {"details": dict(self.details)})

    @classmethod
    def unpack(cls, data: bytes) -> PlannedPolicy:
        """Read the fields from bytes that `pack` returned; raises CheckpointError if they are no checkpoint."""
        arrays, values = blob.unpack(data)
        return cls(arrays["artifact"].tobytes(), **values)


class TrainingProblem(Protocol):
    """One workload as a training problem: simulator, experts, and scoring of policies.

    Everything is derived from the training's seed: equal requests give equal problems.

    Attributes:
        length: approximate number of decisions in an episode.
        tabular: indices of the observation entries that a Q-table uses.
        continuing: whether the problem has no end, so that rewards are centred.
        cloning_entropy: entropy weight during imitation; None: the algorithm's own.
        competing: algorithms that `auto` tries with every seed.
    """

    length: int
    tabular: tuple[int, ...]
    continuing: bool
    cloning_entropy: float | None
    competing: tuple[str, ...]

    def simulator(self, batch: int, seed: int) -> SimulatorSpec:
        """Return the description of a simulator of ``batch`` environments, whose ``situation`` experts can act on."""
        ...

    def experts(self) -> Mapping[str, Policy]:
        """Return the kind's baselines, which can be imitated, by name."""
        ...

    def plan(self, budget: int = 0, margin: float = 0.01) -> PlannedPolicy:
        """Return the best policy available without learning, or the reason why there is none.

        Args:
            budget: environment steps for the tuning of a rule; 0: none is tuned.
            margin: equivalence margin, a share of the best baseline's return, for the headroom.
        """
        ...

    def save(self, policy: Any) -> bytes:
        """Serialise a policy, or a mapping of policies by role, to an artifact."""
        ...

    def load(self, artifact: bytes) -> Any:
        """Return the policy (or policies by role) of an artifact. Raises IncompatibleArtifact if the artifact is
        unreadable, or of another layout."""
        ...

    def score(self, artifact: bytes) -> float:
        """Return an artifact's mean return on validation episodes, with the guard; raises IncompatibleArtifact if it
        can't be read, or is of another layout."""
        ...

    def calibrate(self, artifact: bytes) -> bytes:
        """Return the artifact with the settings that are fixed after learning, such as a hysteresis."""
        ...

    def evaluate_unguarded(self, artifact: bytes, planned: PlannedPolicy) -> dict[str, Any]:
        """Return a policy's results on fresh episodes without the guard.

        They are mean and 95 % interval of the ``return`` and of the ``optimum``'s return, and ``gap_to_optimum`` (a
        share: 0.1 is 10 %); the last two are None if unknown.
        """
        ...

    def judge(self, artifact: bytes, planned: PlannedPolicy, champion: bytes | None, margin: float) -> dict[str, Any]:
        """Judge an artifact on fresh episodes against baselines, plan, and champion (None: there is none).

        ``margin``: share of the best baseline's return up to which a difference counts as none. Returns JSON values by
        name: ``promoted``, ``reason``, and mean and interval of returns, gains and outcomes.
        """
        ...
