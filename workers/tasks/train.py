"""Train an agent in resumable chunks; several learners are a matter of `sweep`, what goes on is one of `online`."""

from __future__ import annotations

from app.agents.algorithms import ONLINE
from app.database.tables import Workload
from workers.kinds.contract import Competing, Online
from workers.kinds.registry import learned_kind
from workers.learning.training.driver import TrainedAgent, Training
from workers.learning.training.request import Untrainable, entries
from workers.tasks import online, sweep
from workers.tasks.base import RunningJob
from workers.tasks.trained import load, publish


def train(job: RunningJob) -> None:
    """Train from the last checkpoint, judge, and publish; of a sweep, or a training that goes on, its next step.

    Raises:
        Untrainable: the workload's kind doesn't know the algorithm.
    """
    with job.database.reading() as session:
        workload = session.get_one(Workload, job.lease.workload_id)
        kind, given = learned_kind(workload.kind), load(session, workload, job.lease.request)
    if given.request.algorithm == ONLINE and isinstance(kind, Online):
        online.window(job, kind, given)
        return
    if given.request.algorithm not in kind.algorithms:
        raise Untrainable(f"unknown algorithm {given.request.algorithm!r}; known are {', '.join(kind.algorithms)}")
    if isinstance(kind, Competing) and given.request.competes and len(entries(given.request)) > 1:
        sweep.lead(job, kind, given)
        return
    training = Training(kind.trainer(given.workload, given.request, given.champion_artifact), job.lease.checkpoint)
    trained = _run(job, training)
    job.publish(lambda session: publish(session, job.lease.workload_id, given, trained))


def _run(job: RunningJob, training: Training) -> TrainedAgent:
    """Train to the end; raises what ends the job before."""
    try:
        while not training.done:
            training.advance()
            job.progress(training.progress, training.eta_seconds, training.live, training.checkpoint)
    finally:
        training.close()
    return training.result()
