"""Steps of the response to a drift: fit, training, shadow, promotion, rollback; API schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.orm import Session

from app.agents import evidence
from app.agents import service as agents
from app.agents.algorithms import ONLINE, Algorithm
from app.agents.repository import AGENTS
from app.agents.schemas import TrainRequest
from app.agents.service import Change
from app.charts.text import interval, number
from app.database.tables import Adaptation, Job, Run, Workload
from app.domain_models.repository import MODELS
from app.domain_models.service import FitRequest, Seed
from app.drift import repository
from app.drift.detector import Notice, restore_drift
from app.drift.realised import BLOCK, Comparison, compare_blocks, means
from app.evaluations.schemas import EquivalenceMargin
from app.jobs import service as jobs
from app.kinds.contract.engine import Chain, DriftNotice
from app.samples import service as samples
from app.workloads import members

# API schemas of drift.


State = Literal["fitting", "training", "shadow", "watched", "kept", "rolled_back", "rejected", "superseded", "failed"]


class DriftResponse(BaseModel):
    """How a workload responds to drift, which is detected in any case."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"respond": "retrain"}]})

    respond: Literal["off", "retrain"] = Field(
        default="off",
        description="`retrain`: fit a model to what runs have reported since, train an agent on it, run it as a "
        "shadow, promote it if it is as good, and roll it back if it underperforms.",
    )
    algorithm: Algorithm | None = Field(
        default=None, description="Training algorithm; null: the champion's, or `auto`."
    )
    budget: Annotated[int, Field(ge=1_000, le=10_000_000_000)] | None = Field(
        default=None, description="Environment steps of the training; null: the default of trainings."
    )
    seed: Seed = 0
    shadow_decisions: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=200, description="Shadow decisions required, without a failure, before the agent may be promoted."
    )
    window_reports: Annotated[int, Field(ge=4 * BLOCK, le=10 * BLOCK)] = Field(
        default=10 * BLOCK,
        description="Reports after the promotion over which the agent is compared with its predecessor.",
    )
    equivalence_margin: EquivalenceMargin = 0.01
    pause_seconds: Annotated[float, Field(ge=0, le=30 * 86_400)] = Field(
        default=3600.0, description="Time after a response in which further drift is ignored."
    )


class DriftStep(BaseModel):
    """One step of an adaptation: its time, the state that it leads to, the reason and figures."""

    at: datetime
    state: State = Field(description="State that this step leads to.")
    why: str
    figures: dict[str, Any]


class AdaptationRead(BaseModel):
    """The adaptation to one drift: its notice, the jobs, model and agent made for it, and its steps."""

    id: str
    state: State
    run: str = Field(description="The run that detected it.")
    notice: DriftNotice
    job: str | None = Field(description="The most recent fit or training job.")
    model: int | None = Field(description="Version of the fitted domain model.")
    agent: int | None = Field(description="Version of the trained agent.")
    predecessor: int | None = Field(description="Version of the agent that served before; null: a heuristic.")
    steps: list[DriftStep]
    created_at: datetime
    finished_at: datetime | None


class DriftRead(BaseModel):
    """How a workload responds to drift, and its latest adaptations, newest first."""

    workload: str
    response: DriftResponse
    adaptations: list[AdaptationRead]


# Steps of an adaptation: fit, training, shadow, promotion, and rollback if the agent underperforms.
#
# Each step is one transaction that locks the workload's row and starts from the stored state: it is taken once,
# however often it is tried, together with its effects (a sample, a job, a promotion).


FEWEST_BLOCKS = 2
LARGEST = 1e3
"""Largest factor of a drift; its inverse is the smallest, for example of requests that have stopped."""


class Context(NamedTuple):
    """Context of one step: the transaction, the locked workload, the adaptation, and the time."""

    session: Session
    workload: Workload
    adaptation: Adaptation
    now: datetime

    @property
    def response(self) -> DriftResponse:
        """The drift settings when the adaptation began."""
        return DriftResponse.model_validate(self.adaptation.request)

    @property
    def answering(self) -> Mapping[str, int | None]:
        """Champion of each role when the training began; None: a heuristic."""
        figures = next(step["figures"] for step in self.adaptation.steps if step["state"] == "training")
        answering: dict[str, int | None] = figures["answering"]
        return answering

    @property
    def since(self) -> Mapping[str, int]:
        """Estimated first drifted iteration of each run, by run id; later runs are missing."""
        since: dict[str, int] = self.adaptation.steps[0]["figures"].get("since", {})
        return since

    def go_on(self, state: str, why: str, **figures: Any) -> None:
        """Enter a state, and record it as a step with the reason ``why`` and figures."""
        step = {"at": self.now.isoformat(), "state": state, "why": why, "figures": figures}
        self.adaptation.state, self.adaptation.steps = state, [*self.adaptation.steps, step]

    def end(self, state: str, why: str, **figures: Any) -> None:
        """Enter a final state, and record it as a step with the reason ``why`` and figures."""
        self.go_on(state, why, **figures)
        self.adaptation.going_on, self.adaptation.finished_at = None, self.now


class RunNotice(NamedTuple):
    """A drift notice, and its run."""

    run: Run
    notice: Notice


def begin(session: Session, workload: Workload, now: datetime) -> Adaptation | None:
    """Start an adaptation if the workload's settings require it and there is a new drift; else return None.

    The workload's row must be locked by the caller's transaction."""
    response = DriftResponse.model_validate(workload.drift or {})
    if response.respond == "off" or repository.trained_on_line(session, workload.id):
        return None
    # The model in use is the champion's, else the newest
    champion = agents.newest(agents.rivals(workload))
    agent = None if champion is None else AGENTS.find(session, workload.id, champion)
    version = MODELS.newest(session, workload.id) if agent is None else agent.model_version
    # Notices count that came under this model, and after the last adaptation with its pause
    last = next(iter(repository.newest(session, workload.id, 1)), None)
    rest = timedelta(seconds=response.pause_seconds)
    after = None if last is None or last.finished_at is None else last.finished_at + rest
    noticed = [
        RunNotice(run, notice)
        for run in repository.runs(session, workload.id, drifted=True)
        for notice in restore_drift(run.drift).notices
        if notice.model == version and (after is None or datetime.fromisoformat(notice.at) > after)
    ]
    if not noticed:
        return None
    first = min(noticed, key=lambda one: one.notice.at)
    adaptation = Adaptation(
        tenant=workload.tenant,
        workload_id=workload.id,
        going_on=True,
        state="fitting",
        request=response.model_dump(mode="json"),
        run_id=first.run.id,
        notice={name: getattr(first.notice, name) for name in first.notice.__struct_fields__},
        predecessor=agents.newest(agents.rivals(workload)),
        marks={},
        steps=[],
        created_at=now,
    )
    session.add(adaptation)
    _fit(Context(session, workload, adaptation, now), noticed)
    session.flush()
    return adaptation


def _fit(on: Context, noticed: list[RunNotice]) -> None:
    """Store the running runs as samples, cut where they drifted, and queue a fit."""
    runs = repository.runs(on.session, on.workload.id)
    here = {run.id: run.next_iteration for run in runs}
    since = {one.run.id: one.notice.since for one in sorted(noticed, key=lambda one: -one.notice.since)}
    factors = {
        one.notice.stream: min(max(one.notice.factor, 1 / LARGEST), LARGEST)
        for one in sorted(noticed, key=lambda one: one.notice.at)
    }
    job = _queue(on, "fit", FitRequest(seed=on.response.seed).model_dump(mode="json"))
    first = Notice(**on.adaptation.notice)
    on.go_on(
        "fitting",
        first.text,
        factors=factors,
        drifts=_drifts(on, first.model, factors),
        since=here | since,
        statistic=first.statistic,
        job=job.id,
    )
    on.session.flush()
    for run in sorted(runs, key=lambda run: run.id):
        on.session.refresh(run, with_for_update=True)  # it may be about to end, which makes a sample of all of it
        if run.state == "running":
            samples.add_run(on.session, run, repository.cuts(on.session, run))


def _drifts(on: Context, version: int | None, factors: dict[str, float]) -> Chain:
    """Successive drifts, ratios of measured over expected values by stream: those in force when model ``version`` was
    fitted, then, in one more element, those noticed since, with ``factors``."""
    model = None if version is None else MODELS.find(on.session, on.workload.id, version)
    history = repository.history(on.session, on.workload.id)
    before = () if model is None else repository.in_force(history, model.created_at)
    together: dict[str, float] = {}
    for one in history:
        if one.model == version:
            together |= one.drifts[-1]
    return [*before, together | factors]


def _queue(on: Context, job_type: Any, request: dict[str, Any]) -> Job:
    job = jobs.create(
        on.session, job_type=job_type, workload_id=on.workload.id, request=request, tenant=on.workload.tenant
    )
    on.adaptation.job_id = job.id
    return job


def _ended_well(on: Context) -> dict[str, Any] | None:
    """Result of the awaited job; None while it runs, and if it failed, which ends the adaptation."""
    job = None if on.adaptation.job_id is None else on.session.get(Job, on.adaptation.job_id)
    if job is None or job.state in ("failed", "cancelled"):
        what = "is gone" if job is None else f"has {job.state}" if job.state == "failed" else "was cancelled"
        detail = "" if job is None else str((job.error or {}).get("detail", ""))
        on.end("failed", f"the {on.adaptation.state} job {what}{': ' if detail else ''}{detail}")
        return None
    return job.result if job.state == "succeeded" else None


def after_fit(on: Context) -> None:
    """After the fit: queue a training on its model; a failed fit ends the adaptation. Raises TooManyRequests if the
    tenant's quota of open jobs is reached."""
    result = _ended_well(on)
    if result is None:
        return
    model, response = int(result["model"]), on.response
    answering = agents.rivals(on.workload)
    champion = agents.newest(answering)
    agent = None if champion is None else AGENTS.find(on.session, on.workload.id, champion)
    request = TrainRequest(
        algorithm=response.algorithm or ("auto" if agent is None or agent.algorithm == ONLINE else agent.algorithm),
        budget=response.budget,
        seed=response.seed,
        model=model,
        promote=False,
        equivalence_margin=response.equivalence_margin,
    )
    on.adaptation.model_version, on.adaptation.predecessor = model, champion
    job = _queue(on, "train", request.model_dump(mode="json"))
    why = f"domain model {model} was fitted"
    on.go_on("training", why, algorithm=request.algorithm, job=job.id, answering=answering)


def after_training(on: Context) -> None:
    """After the training: start the agent's shadow phase, or end the adaptation if no good enough agent came of it."""
    result = _ended_well(on)
    if result is None:
        return
    agent = AGENTS.require(on.session, on.workload, int(result["agent"]))
    on.adaptation.agent_version = agent.version
    judged = {name: agent.report.get(name) for name in ("return", "advantage", "gain", "incumbent")}
    judgement = str(agent.report.get("reason", ""))
    if not agent.report.get("good_enough"):
        on.end("rejected", f"agent {agent.version}, under domain model {agent.model_version}: {judgement}", **judged)
        return
    running = repository.runs(on.session, on.workload.id)
    on.adaptation.marks = {run.id: run.next_iteration for run in running}
    on.go_on("shadow", f"agent {agent.version} is good enough under domain model {agent.model_version}", **judged)
    members.bump(on.session, on.workload.id)


def after_shadow(on: Context) -> None:
    """After enough shadow decisions: promote the agent, or reject it if one failed or they are shown to be worse."""
    version, needed = int(on.adaptation.agent_version or 0), on.response.shadow_decisions
    if agents.rivals(on.workload) != on.answering:
        on.end("superseded", "another agent was promoted meanwhile")
        members.bump(on.session, on.workload.id)
        return
    decisions = [
        repository.shadow_decisions(on.session, run.id, version, int(on.adaptation.marks.get(run.id, 0)), needed)
        for run in repository.runs(on.session, on.workload.id)
        if run.id in on.adaptation.marks or run.created_at >= on.adaptation.created_at
    ]
    past = [one for steps in decisions for one in steps]
    failed = [one for one in past if one["problem"] is not None]
    if len(past) < needed and not failed:
        return
    lost = _why_lost(on, decisions)
    figures = {
        "decisions": len(past),
        "failures": len(failed),
        "agreement": (sum(one["agrees"] for one in past) / len(past) if past else None),
    }
    members.bump(on.session, on.workload.id)
    if failed or lost:
        why = f"as a shadow it failed: {failed[0]['problem']}" if failed else lost
        on.end("rejected", f"agent {version}: {why}", **figures)
        return
    why = f"drift of {on.adaptation.notice['stream']}: agent {version} decided {len(past)} times as a shadow"
    for role, before in on.answering.items():
        agents.install(on.session, on.workload, Change(version, before, why, "drift", figures), role)
    on.go_on("watched", why, **figures)


def _why_lost(on: Context, result: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """Why the shadow's decisions would have been worse than those served, in words; empty if that isn't shown."""
    gains = [
        sum(one["gain"] for one in steps) for steps in result if steps and all(s["gain"] is not None for s in steps)
    ]
    if len(gains) < evidence.FEWEST_RUNS:
        return ""
    gain = evidence.interval(gains)
    if gain.low is not None and gain.high is not None and gain.high < -on.response.equivalence_margin:
        shown = interval(gain.mean, gain.low, gain.high, signed=True)
        return f"expected gain in return per run {shown} (95 % interval)"
    return ""


def after_watch(on: Context) -> None:
    """After the comparison window: keep the agent, or roll it back."""
    version, before = on.adaptation.agent_version, on.adaptation.predecessor
    if set(agents.rivals(on.workload).values()) != {version}:
        on.end("superseded", "another agent was promoted, or this one rolled back, by request")
        return
    runs = [
        (run.id, restore_drift(run.drift).blocks)
        for run in reversed(repository.runs(on.session, on.workload.id, ruled=False))
    ]
    after, wanted = [mean for _, own in runs for mean in means(own, version)], on.response.window_reports // BLOCK
    if len(after) < wanted:
        return
    earlier = [mean for run, own in runs for mean in means(own, before, on.since.get(run, 0))][-wanted:]
    outcome = next(block.outcome for _, own in runs for block in own if block.agent == version)
    figures: dict[str, Any] = {"reports": len(after) * BLOCK, "outcome": outcome}
    bounds = evidence.interval(after)
    figures |= {"realised": bounds.model_dump(), "promised": _reported_outcome(on, figures["outcome"])}
    comparison = compare_blocks(earlier, after) if len(earlier) >= FEWEST_BLOCKS else None
    if comparison is not None:
        figures |= {"before": comparison.before, "difference": comparison.difference.model_dump()}
    why = _disappoints(figures, comparison, on.response.equivalence_margin)
    if not why:
        on.end("kept", f"agent {version} meets the expectation", **figures)
        return
    why = f"agent {version} is rolled back: {why}"
    for role, previous in on.answering.items():
        rollback_to = None if previous is None else agents.before(on.session, on.workload, role, previous)
        agents.install(on.session, on.workload, Change(previous, rollback_to, why, "drift", figures), role)
    on.end("rolled_back", why, **figures)


def _reported_outcome(on: Context, outcome: str) -> dict[str, Any] | None:
    """Mean and interval of an outcome in the agent's training report; None if the report lacks it."""
    agent = AGENTS.require(on.session, on.workload, on.adaptation.agent_version or 0)
    rows = [row for row in agent.report.get("outcomes") or () if row["name"] == outcome]
    return rows[0]["policies"]["agent"] if rows else None


def _disappoints(figures: dict[str, Any], comparison: Comparison | None, margin: float) -> str:
    """Why the agent's outcome is worse by more than ``margin``, in the outcome's unit, in words; empty if it isn't."""
    outcome, realised, promised = figures["outcome"], figures["realised"], figures["promised"]
    high = None if comparison is None else comparison.difference.high
    if comparison is not None and high is not None and high < -margin:
        return f"{outcome} {number(comparison.after)} (was {number(comparison.before)})"
    if promised is not None and realised["high"] is not None and realised["high"] < promised["low"] - margin:
        return f"{outcome} {number(realised['mean'])}, expected at least {number(promised['low'])}"
    return ""


STEPS: dict[str, Callable[[Context], None]] = {
    "fitting": after_fit,
    "training": after_training,
    "shadow": after_shadow,
    "watched": after_watch,
}
