"""What all trainings have in common: chunk after chunk with a checkpoint between, then a verdict and an agent."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from sqlalchemy.orm import Session

from app.agents import service as agents
from app.database.tables import Workload
from workers.kinds.iterative.training.verdict import TrainedAgent
from workers.tasks.base import RunningJob
from workers.tasks.verdict import Rival, verdict


class Training(Protocol):
    """A training in chunks, of any kind."""

    @property
    def done(self) -> bool:
        """Whether `result` is there."""
        ...

    @property
    def progress(self) -> float:
        """Share that is done, 0 to 1."""
        ...

    @property
    def eta_seconds(self) -> float | None:
        """Seconds left; none where that is not told."""
        ...

    @property
    def live(self) -> dict[str, Any]:
        """What followers are shown."""
        ...

    def advance(self) -> None:
        """Do one chunk."""
        ...

    def checkpoint(self) -> bytes:
        """Bytes to go on from."""
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...

    def result(self) -> TrainedAgent:
        """What was judged."""
        ...


class Terms(NamedTuple):
    """Whom the agent must beat, and which versions of spec and domain model it was made for."""

    rival: Rival
    spec_version: int
    model_version: int


def run(job: RunningJob, training: Training) -> TrainedAgent:
    """Train to the end; raises what ends the job before."""
    try:
        while not training.done:
            training.advance()
            job.progress(training.progress, training.eta_seconds, training.live, training.checkpoint)
    finally:
        training.close()
    return training.result()


def publish(session: Session, workload_id: str, terms: Terms, trained: TrainedAgent) -> dict[str, Any]:
    """Store the agent, and promote it if it may be; the job's result."""
    workload = session.get_one(Workload, workload_id, with_for_update=True)
    promote, reason = verdict(terms.rival, trained.report, workload.champion)
    version = agents.publish(
        session,
        workload_id,
        agents.Trained(
            spec_version=terms.spec_version,
            model_version=terms.model_version,
            algorithm=str(trained.report["algorithm"]),
            seed=int(trained.report["seed"]),
            report=trained.report,
            artifact=trained.artifact,
            promote=promote,
            reason=reason,
        ),
    )
    return {"agent": version}
