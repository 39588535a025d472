"""The task `train`, and continual training: one attempt per time window.

Between two windows the job has no lease: it waits for its due time, and occupies no worker or session. Its checkpoint
is its state at the end of the last window, so that a lost worker costs the present window at most. A window's result
(version, report, champion, next checkpoint) is written in one transaction that verifies the lease.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from sqlalchemy.orm import Session

from app.agents import service as agents
from app.agents.algorithms import ONLINE
from app.agents.evidence import TRAINED_FOR, trained_for
from app.agents.schemas import OnlineSettings
from app.charts.text import confidence, decimals
from app.database.leases import database_time
from app.database.tables import Workload
from app.jobs import lease as leases
from app.kinds.contract.engine import DEFAULT_ROLE
from workers.estimators.base import TooLittleData
from workers.inputs import LoggedRun
from workers.kinds.contract import Competing, Online, learned_kind
from workers.learning.training.driver import TrainedAgent, Training
from workers.learning.training.request import Untrainable, entries
from workers.learning.training.trial import NO_PLAN, Trial, WindowResult, learn_window
from workers.tasks import inputs
from workers.tasks.base import RunningJob
from workers.tasks.trained import TrainInput, lead, load, publish

STAYS = "stays"
PUBLISHED = "published"
HEURISTIC = "heuristic"
NOTHING = "nothing_learned"


class ContinualState(msgspec.Struct, frozen=True):
    """State of a continual training between two windows.

    Attributes:
        windows: number of past windows.
        until: end of the last window and start of the next, in seconds since 1970; None before the first.
        learner: serialised learner; empty before the first learning.
        versions: versions of the published agents, in order.
        rival: version of the champion in the last window; None: a heuristic.
        looks: number of consecutive verdicts against that rival.
    """

    windows: int = 0
    until: float | None = None
    learner: bytes = b""
    versions: tuple[int, ...] = ()
    rival: int | None = None
    looks: int = 0

    def look(self, rival: int | None) -> int:
        """Return the number, from 1, of the next verdict in a row against ``rival``, a version (None: a heuristic)."""
        return self.looks + 1 if rival == self.rival else 1


class Verdict(NamedTuple):
    """Result of a window.

    Attributes:
        outcome: ``stays`` (champion or heuristic), ``published`` (the new agent), ``heuristic`` (it takes over from the
            champion), or ``nothing_learned``.
        reason: why, in words.
        report: the verdict's report as JSON values; empty if nothing was judged.
        learned: the new agent; None if nothing was learned.
    """

    outcome: str
    reason: str
    report: dict[str, Any]
    learned: WindowResult | None


def window(job: RunningJob, kind: Online, inputs: TrainInput) -> None:
    """Learn from the past window, judge, publish a better agent, and schedule the next window.

    Raises:
        Untrainable: the agent to start from does not fit.
        LeaseLost, Cancelled, WorkerStopping: the lease was lost, a caller cancelled the job, or the worker stops.
    """
    settings = inputs.train_request.online or OnlineSettings()
    state = (
        msgspec.msgpack.decode(job.lease.checkpoint, type=ContinualState) if job.lease.checkpoint else ContinualState()
    )
    until, runs = _past(job, settings, state)
    verdict = _judge_window(job, kind, inputs, runs, state)

    def write(session: Session) -> None:
        outcome, version = _publish_verdict(session, job.lease.workload_id, inputs, verdict, state)
        learner = state.learner if verdict.learned is None else verdict.learned.learner
        versions = state.versions if version is None else (*state.versions, version)
        rival = inputs.rivals[DEFAULT_ROLE]
        looks = state.look(rival) - (not verdict.report)
        after = ContinualState(state.windows + 1, until.timestamp(), learner, versions, rival, looks)
        _rest(session, job, settings, after, outcome)

    job.commit(write)


def _past(job: RunningJob, settings: OnlineSettings, state: ContinualState) -> tuple[datetime, list[LoggedRun]]:
    """Return the end of the past window, and the runs with their reports in it; missed windows are skipped."""
    length = timedelta(seconds=settings.window_seconds)
    with job.database.reading() as session:
        until = database_time(session)
        if state.until is not None:
            due = datetime.fromtimestamp(state.until, UTC) + length
            until = due if until - due < length else until
        row = session.get_one(Workload, job.lease.workload_id)
        return until, inputs.window(session, row, until - length, until)


def _judge_window(
    job: RunningJob, kind: Online, inputs: TrainInput, runs: list[LoggedRun], past: ContinualState
) -> Verdict:
    settings = inputs.train_request.online or OnlineSettings()
    look = past.look(inputs.rivals[DEFAULT_ROLE])
    request = replace(inputs.request, budget=settings.steps, look=look)
    try:
        problem = kind.online(inputs.workload, request, kind.window(inputs.workload, runs))
    except TooLittleData as error:
        return Verdict(NOTHING, f"nothing was learned from the window: {error}", {}, None)
    result = learn_window(problem, request, past.windows, past.learner, lambda trial: _tell(job, past, settings, trial))
    _tell(job, past, settings, None)
    artifact, margin = problem.calibrate(result.artifact), request.equivalence_margin
    report = problem.judge(artifact, NO_PLAN, inputs.champion_artifact, margin)
    result = replace(result, artifact=artifact)
    if report["promoted"]:
        return Verdict(PUBLISHED, report["reason"], report, result)
    if report["champion_worse"]:
        ahead, rival = report["champion_advantage"], inputs.rivals[DEFAULT_ROLE]
        why = f"agent {rival} is worse on the window than the heuristic, which replaces it: "
        mean, low, high = (decimals(ahead[part], 5, signed=True) for part in ("mean", "low", "high"))
        interval = f"{mean}, {confidence(report['confidence'])} interval {low} to {high}"
        return Verdict(HEURISTIC, f"{why}return {interval}; {report['reason']}", report, result)
    return Verdict(STAYS, report["reason"], report, result)


def _tell(job: RunningJob, state: ContinualState, settings: OnlineSettings, trial: Trial | None) -> None:
    """Report progress within a window, with the last window's checkpoint: an interrupted window starts anew."""
    phase = {"phase": "judging", "algorithm": ONLINE} if trial is None else {"phase": "learning", **trial.live}
    data = {**phase, "windows": state.windows, "versions": list(state.versions)}
    job.progress(_progress(settings, state.windows), None, data, lambda: job.lease.checkpoint or b"")


def _progress(settings: OnlineSettings, windows: int) -> float:
    return 0.0 if settings.windows is None else min(1.0, windows / settings.windows)


def _publish_verdict(
    session: Session, workload_id: str, inputs: TrainInput, verdict: Verdict, state: ContinualState
) -> tuple[dict[str, Any], int | None]:
    """Publish an agent or retire the champion, unless it has changed; return outcome as JSON, and version or None."""
    workload, version = session.get_one(Workload, workload_id, with_for_update=True), None
    outcome, reason, rival = verdict.outcome, verdict.reason, inputs.rivals[DEFAULT_ROLE]
    if outcome in {PUBLISHED, HEURISTIC} and workload.champion(DEFAULT_ROLE) != rival:
        present = workload.champion(DEFAULT_ROLE)
        answers = "a heuristic" if present is None else f"agent {present}"
        outcome, reason = STAYS, f"the champion was changed meanwhile, and {answers} was not the rival: {reason}"
    if outcome == PUBLISHED:
        version = _publish(session, workload_id, inputs, verdict, state)
    elif outcome == HEURISTIC and rival is not None:
        agents.retire(session, workload_id, rival, reason)
    fields = {"verdict": outcome, "reason": reason, "agent": version, "champion": workload.champion(DEFAULT_ROLE)}
    return fields | {name: verdict.report.get(name) for name in ("gain", "advantage")}, version


def _publish(session: Session, workload_id: str, inputs: TrainInput, verdict: Verdict, state: ContinualState) -> int:
    if verdict.learned is None:
        raise ValueError("nothing was learned that could be published")
    result, seed = verdict.learned, inputs.request.seed
    named = {"algorithm": result.algorithm, "requested": ONLINE, "seed": seed}
    window = {"number": state.windows + 1, "rival": inputs.rivals[DEFAULT_ROLE]}
    product = agents.TrainingResult(
        spec_version=inputs.spec_version,
        model_version=inputs.model_version,
        algorithm=result.algorithm,
        seed=seed,
        report={
            **named,
            **verdict.report,
            **result.report,
            "window": window,
            TRAINED_FOR: trained_for(inputs.workload.spec),
        },
        artifact=result.artifact,
        promote=True,
        reason=verdict.reason,
    )
    return agents.publish(session, workload_id, product)


def _rest(
    session: Session, job: RunningJob, settings: OnlineSettings, state: ContinualState, outcome: dict[str, Any]
) -> None:
    """Schedule the next window, or finish the job after the last one; raises LeaseLost if the lease was lost."""
    fields = {"windows": state.windows, "versions": list(state.versions)}
    if settings.windows is not None and state.windows >= settings.windows:
        newest = state.versions[-1] if state.versions else None
        leases.finish(session, job.lease, {"agent": newest, **fields, "last": outcome})
        return
    until = datetime.fromtimestamp(state.until or 0.0, UTC) + timedelta(seconds=settings.window_seconds)
    data = {"phase": "waiting", **fields, "last": outcome}
    checkpoint = msgspec.msgpack.encode(state)
    leases.rest(session, job.lease, until, _progress(settings, state.windows), data, checkpoint)


# The task `train`: a training in resumable chunks, the lead of a sweep, or a window of continual training.


def train(job: RunningJob) -> None:
    """Train from the last checkpoint, judge, and publish; for a sweep or a continual training, run its next step.

    Raises:
        Untrainable: unknown algorithm for this kind, or nothing to publish.
        LeaseLost, Cancelled, WorkerStopping: the lease was lost, a caller cancelled the job, or the worker stops.
    """
    with job.database.reading() as session:
        workload = session.get_one(Workload, job.lease.workload_id)
        kind, inputs = learned_kind(workload.kind), load(session, workload, job.lease.request)
    if inputs.request.algorithm == ONLINE and isinstance(kind, Online):
        window(job, kind, inputs)
        return
    if inputs.request.algorithm not in kind.algorithms:
        raise Untrainable(f"unknown algorithm {inputs.request.algorithm!r}; known are {', '.join(kind.algorithms)}")
    if isinstance(kind, Competing) and inputs.request.competes:
        competing = kind.training(inputs.workload, inputs.request).competing
        if len(entries(inputs.request, competing)) > 1:
            lead(job, kind, inputs)
            return
    training = Training(kind.trainer(inputs.workload, inputs.request, inputs.champion_artifact), job.lease.checkpoint)
    trained = _run(job, training)
    job.publish(lambda session: publish(session, job.lease.workload_id, inputs, trained))


def _run(job: RunningJob, training: Training) -> TrainedAgent:
    """Run a training to its end; raises LeaseLost, Cancelled or WorkerStopping where the attempt ends early."""
    try:
        while not training.done:
            training.advance()
            job.progress(training.progress, training.eta_seconds, training.live, training.checkpoint)
    finally:
        training.close()
    return training.result()
