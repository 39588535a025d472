"""The training of an agent, of any kind: stages in chunks with a checkpoint between any two, and a verdict at the end.

A kind fills in what is done (`Trainer`); how it is run, told, resumed and ended stands here once. What is published is
the artifact that was judged, never a learner itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from app.kinds.contract.policy import Policy
from workers.learning.execution import base as blob
from workers.learning.simulator import SimulatorSpec

LEARNING = 0.9  # share of the progress bar that is for the stages; the rest is for the verdict
JUDGING = "judging"
DONE = "done"


@dataclass(frozen=True)
class TrainedAgent:
    """What is published: a policy's artifact, and the report of how it was judged."""

    artifact: bytes
    report: dict[str, Any]


class Stage(NamedTuple):
    """A part of a training.

    Attributes:
        name: what followers are told.
        weight: its part in the training's progress, beside those of the others.
        advance: does a chunk; returns whether the stage is done.
        share: of the stage that is done, 0 to 1.
    """

    name: str
    weight: float
    advance: Callable[[], bool]
    share: Callable[[], float]


class Trainer(Protocol):
    """What a training of one kind does."""

    @property
    def stages(self) -> Sequence[Stage]:
        """In order; the same ones for the same request."""
        ...

    @property
    def eta_seconds(self) -> float | None:
        """Seconds still to go; None where that is not known."""
        ...

    @property
    def live(self) -> Mapping[str, Any]:
        """Figures for followers, plain values."""
        ...

    def conclude(self) -> TrainedAgent:
        """Choose and judge, once all stages are done; raises Untrainable where nothing can be published."""
        ...

    def checkpoint(self) -> bytes:
        """Bytes that `restore` goes on from; empty: whoever resumes begins anew."""
        ...

    def restore(self, data: bytes) -> None:
        """Go on from what `checkpoint` gave for the same request; raises CheckpointError."""
        ...

    def close(self) -> None:
        """Let go of processes and memory; may be called twice."""
        ...


class Training:
    """One training job.

    Args:
        trainer: what is done.
        checkpoint: what `checkpoint` gave for a trainer of the same request, to go on from; or None.
    """

    def __init__(self, trainer: Trainer, checkpoint: bytes | None = None) -> None:
        self.trainer, self.stages = trainer, tuple(trainer.stages)
        self._stage = 0
        self._result: TrainedAgent | None = None
        if checkpoint:
            self._restore(checkpoint)

    @property
    def done(self) -> bool:
        """Whether `result` is there."""
        return self._result is not None

    @property
    def learning(self) -> bool:
        """Whether there is more to do than to judge."""
        return self._stage < len(self.stages)

    @property
    def progress(self) -> float:
        """Share of the whole that is done, 0 to 1."""
        if self.done or not self.learning:
            return 1.0 if self.done else LEARNING if self.stages else 0.0
        behind, now = self.stages[: self._stage], self.stages[self._stage]
        weight = sum(stage.weight for stage in behind) + now.weight * min(1.0, now.share())
        return LEARNING * weight / (sum(stage.weight for stage in self.stages) or 1.0)

    @property
    def eta_seconds(self) -> float | None:
        """Seconds still to go; None before that is known, and while the agent is judged."""
        if self.learning:
            return self.trainer.eta_seconds
        return 0.0 if self.done else None

    @property
    def live(self) -> dict[str, Any]:
        """Figures for a progress bar: the stage's name as `phase`, and what the trainer tells."""
        phase = self.stages[self._stage].name if self.learning else DONE if self.done else JUDGING
        return {"phase": phase, **self.trainer.live}

    def advance(self) -> None:
        """Do one chunk of the present stage, or judge."""
        if self.learning:
            self._stage += self.stages[self._stage].advance()
        elif not self.done:
            self._result = self.trainer.conclude()
            self.close()

    def result(self) -> TrainedAgent:
        """What was judged; raises RuntimeError while there is something left to do."""
        if self._result is None:
            raise RuntimeError("the training is not done: call advance() until `done`")
        return self._result

    def checkpoint(self) -> bytes:
        """Bytes to go on from; empty where that means to begin anew."""
        kept = self.trainer.checkpoint()
        return blob.pack({"trainer": np.frombuffer(kept, np.uint8)}, {"stage": self._stage}) if kept else b""

    def close(self) -> None:
        """Let go of processes and memory."""
        self.trainer.close()

    def _restore(self, data: bytes) -> None:
        arrays, values = blob.unpack(data)
        self.trainer.restore(arrays["trainer"].tobytes())
        self._stage = int(values["stage"])


# What a kind gives so that the shared learners train for one of its workloads, and are judged on it.


@dataclass(frozen=True)
class Planned:
    """A policy that was planned, not learned, as an artifact; without one, why there is none.

    Attributes:
        score: its mean return on the validation episodes.
        exact: whether it is the optimum.
        details: what the kind's judge has to know of it, plain values.
    """

    artifact: bytes = b""
    score: float = 0.0
    exact: bool = False
    why_not: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reference(self) -> float | None:
        """The score that learners have to beat to be published in its place; None: there is no plan."""
        return self.score if self.artifact else None

    def pack(self) -> bytes:
        """As bytes, for a checkpoint."""
        values = {"score": self.score, "exact": self.exact, "why_not": self.why_not, "told": dict(self.details)}
        return blob.pack({"artifact": np.frombuffer(self.artifact, np.uint8)}, values)

    @classmethod
    def unpack(cls, data: bytes) -> Planned:
        """Undo `pack`; raises CheckpointError."""
        arrays, values = blob.unpack(data)
        return cls(arrays["artifact"].tobytes(), values["score"], values["exact"], values["why_not"], values["told"])


class TrainingProblem(Protocol):
    """One workload, as the learners of one training see it: what they learn in, and how their policies are scored.

    All is drawn from the training's seed: the same request, the same problem.

    Attributes:
        length: decisions of an episode, about.
        tabular: the entries of an observation that a table is cut by.
        continuing: whether what learners learn in goes on and on, so that rewards are to be centred.
        cloning_entropy: weight of the policy's entropy while an expert is imitated; None: as the algorithm has it.
    """

    length: int
    tabular: tuple[int, ...]
    continuing: bool
    cloning_entropy: float | None

    def simulator(self, batch: int, seed: int) -> SimulatorSpec:
        """What learners learn in; what it makes also shows its ``situation``, for experts to play."""
        ...

    def experts(self) -> Mapping[str, Policy]:
        """The kind's baselines by name, whose play may be imitated."""
        ...

    def plan(self) -> Planned:
        """The best plan that can be had without learning."""
        ...

    def save(self, policy: Any) -> bytes:
        """A policy, or one for each role by its name, as the artifact that would answer."""
        ...

    def load(self, artifact: bytes) -> Any:
        """The policy of an artifact; raises IncompatibleArtifact where it was made for something else."""
        ...

    def score(self, artifact: bytes) -> float:
        """Mean return on the validation episodes, as the service would let it decide."""
        ...

    def calibrate(self, artifact: bytes) -> bytes:
        """The artifact as it would be published: with what the kind settles after learning, such as a hysteresis."""
        ...

    def alone(self, artifact: bytes, planned: Planned) -> dict[str, Any]:
        """What a learned policy reaches by itself, nothing guarding it: ``return``, ``optimum``, ``gap_to_optimum``.

        On fresh episodes; the last two are None where the optimum can't be had.
        """
        ...

    def judge(self, artifact: bytes, planned: Planned, champion: bytes | None, margin: float) -> dict[str, Any]:
        """Score it on fresh episodes beside baselines, plan and champion; the agent report's ``return`` to ``reason``.

        ``margin``: of practical equivalence, see ``Request``.
        ``promoted`` and ``reason`` are among it: see ``workers.evaluation.judge``.
        """
        ...
