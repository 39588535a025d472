"""The decision engine of kind `cluster`, and its decisions on the wire."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec
from pydantic import BaseModel, Field

from app.kinds.cluster import waiting
from app.kinds.cluster.advance import advance
from app.kinds.cluster.decide import Answerer, Change, Compiled, decide, kept
from app.kinds.cluster.layout import ClusterState, begin, pack, unpack, weight
from app.kinds.cluster.outlook import BelievedOutlook
from app.kinds.cluster.report import EncodedReport, decode
from app.kinds.cluster.views import risk
from app.kinds.cluster.waiting import ExpectedStart
from app.kinds.contract.engine import Answered, DecidedInRuns, DecisionBase, Pending, Shadow, Snapshot
from app.kinds.contract.inputs import timestamp
from app.kinds.contract.kind import RunStart

# The engine of kind ``cluster``; its contract is ``app.kinds.contract.engine``.


logger = logging.getLogger(__name__)
FEW_JOBS = 100  # reading their report and answering takes some 10 ms
HOLD = "hold"
"""What decides where every rule has failed."""


class Told(NamedTuple):
    """What a decision says: of which run and report, what changes, by which rule, who starts next, and what a shadow
    says to it.
    """

    run: str
    reported: int | None
    state: ClusterState
    changes: Sequence[Change]
    rule: str
    answerer: Answerer
    starts: Sequence[ExpectedStart] = ()
    shadow: dict[str, Any] | None = None


class ClusterEngine(DecidedInRuns):
    """A run's state is which jobs are there and what they hold; reading a report is advancing it."""

    def compile(self, snapshot: Snapshot) -> Compiled:
        """Nodes, queues, and the rule that answers."""
        return Compiled(snapshot)

    def rules(self, compiled: Compiled) -> Sequence[str]:
        """All that share GPUs among jobs."""
        return tuple(compiled.layout.rules)

    def begin(self, compiled: Compiled, run: str, start: RunStart, now: datetime) -> Answered:  # noqa: ARG002
        """No job is there before the first report."""
        state = begin(compiled.layout)
        told = Told(run, None, state, (), compiled.heuristic, compiled.answerer)
        return Answered(_encoded(compiled, told, now), state, quiet=True)

    def decode(self, body: bytes) -> EncodedReport:
        """Jobs that came, went on and left, and nodes.

        Raises:
            ValidationError, InvalidInput: it is none.
        """
        return decode(body)

    def takes_long(self, compiled: Compiled, state: ClusterState, report: EncodedReport) -> bool:  # noqa: ARG002
        """Whether there are many jobs, in the run or new."""
        return len(state.names) + len(report.submitted) > FEW_JOBS

    def read(self, compiled: Compiled, state: ClusterState, iteration: int, report: EncodedReport) -> ClusterState:  # noqa: ARG002
        """The state after the report.

        Raises:
            InvalidInput: it names what the workload hasn't, or asks for what can't be.
            Contradiction: it contradicts the reports before.
        """
        return advance(compiled.layout, state, report)

    def answer(self, compiled: Compiled, pending: Sequence[Pending], now: datetime) -> list[Answered]:
        """Each run by itself, in the order of ``pending``."""
        return [_answered(compiled, one, now) for one in pending]

    def serialise(self, state: ClusterState) -> msgspec.Raw:
        """A state as JSON, for ``restore``."""
        return msgspec.Raw(msgspec.json.encode(pack(state)))

    def restore(self, stored: list[Any]) -> ClusterState:
        """The state whose ``serialise`` was stored."""
        return unpack(stored)

    def weight(self, state: ClusterState) -> int:
        """Jobs and the nodes of each, about."""
        return weight(state)


def _answered(compiled: Compiled, one: Pending, now: datetime) -> Answered:
    """By who answers; where that fails, by the heuristic; where that fails too, jobs keep what they have."""
    answerer = compiled.answerer
    try:
        return _decided(compiled, one, answerer, now)
    except Exception as error:
        logger.exception("workload %s: run %s can't be decided by %s", compiled.snapshot.name, one.run, answerer.source)
        failure = f"{compiled.policy_name(answerer)} failed ({type(error).__name__}: {error})"
    if answerer.policy is not None:
        try:
            fallen = Answerer("fallback", None, f"{failure}; {compiled.heuristic} answers")
            return _decided(compiled, one, fallen, now)
        except Exception as error:
            logger.exception("workload %s: %s failed too", compiled.snapshot.name, compiled.heuristic)
            failure += f", and {compiled.heuristic} too ({type(error).__name__}: {error})"
    state, changes = kept(compiled.layout, one.report)
    held = Answerer("fallback", None, f"{failure}; jobs keep what they have")
    told = Told(one.run, one.iteration, state, changes, HOLD, held)
    return Answered(_encoded(compiled, told, now), state, risk=None, quiet=not state.names)


def _decided(compiled: Compiled, one: Pending, answerer: Answerer, now: datetime) -> Answered:
    before: ClusterState = compiled.judged(one.report)
    outlook = compiled.outlook(before)
    name, rule = compiled.rule(answerer.policy, now)
    advice = compiled.advice(rule, outlook, before, one.report)
    state, changes = decide(compiled.layout, before, advice)
    shadow = None if one.shadow is None else _shadow(compiled, one.shadow, (before, state), outlook, now)
    state, starts = waiting.told(state, outlook, compiled.layout.spec.interval_seconds)
    told = Told(one.run, one.iteration, state, changes, name, answerer, starts, shadow)
    at_risk = risk(compiled, state, outlook)
    return Answered(_encoded(compiled, told, now), state, risk=at_risk, quiet=not state.names)


def _shadow(
    compiled: Compiled,
    shadow: Shadow,
    states: tuple[ClusterState, ClusterState],
    outlook: BelievedOutlook,
    now: datetime,
) -> dict[str, Any]:
    """What another agent would have given; see ``ShadowRule``. ``states``: before and after what is answered."""
    before, state = states
    told: dict[str, Any] = {"agent": shadow.version, "rule": None, "agrees": False, "problem": None}
    if shadow.artifact is None or not compiled.modelled:
        return told | {"problem": shadow.problem or "there is no domain model, which agents answer by"}
    try:
        name, rule = compiled.rule(shadow.artifact.policy, now)
        other, _ = decide(compiled.layout, before, compiled.advice(rule, outlook, before, before))
    except Exception as error:
        logger.exception("run of %s: shadow %d failed", compiled.snapshot.name, shadow.version)
        return told | {"problem": f"{type(error).__name__}: {error}"}
    return told | {"rule": name, "agrees": bool((other.jobs.held == state.jobs.held).all())}


def _encoded(compiled: Compiled, told: Told, now: datetime) -> bytes:
    state, spec = told.state, compiled.layout.spec
    running = int((state.jobs.gpus > 0).sum())
    decision = {
        "run": told.run,
        "workload": compiled.snapshot.name,
        "reported": told.reported,
        "iteration": 0 if told.reported is None else told.reported + 1,
        "noop": not told.changes,
        "source": told.answerer.source,
        "agent": compiled.snapshot.agent_version,
        "policy": HOLD if told.rule == HOLD else compiled.policy_name(told.answerer),
        "reason": _reason(told, running),
        "valid_for_iterations": 1,
        "decided_at": timestamp(now),
        "kind": "cluster",
        "at": state.now,
        "changes": [_change(one) for one in told.changes],
        "starts": [_start(one) for one in told.starts],
        "running": running,
        "waiting": len(state.names) - running,
        "free": int(state.capacity.sum() - state.jobs.held.sum()),
        "wake_at": state.now + spec.interval_seconds if state.names else None,
        "rule": told.rule,
        "shadow": told.shadow,
    }
    return msgspec.json.encode(decision)


def _change(one: Change) -> dict[str, Any]:
    gpus = sum(one.nodes.values())
    fields = {"job": one.job, "before": one.before, "gpus": gpus, "nodes": one.nodes, "code": one.code}
    times = {"seconds_left_before": one.left_before, "seconds_left": one.left}
    low, high = (None, None) if one.between is None else (round(part, 1) for part in one.between)
    times |= {"seconds_left_low": low, "seconds_left_high": high}
    limits = {"seconds_wanted": one.wanted, "ceiling": one.ceiling, "batch": one.batch}
    return {**fields, "text": one.text, "trades": one.trades, **times, **limits}


def _start(one: ExpectedStart) -> dict[str, Any]:
    low, high = (None, None) if one.between is None else (round(part, 1) for part in one.between)
    return {"job": one.job, "seconds": round(one.seconds, 1), "seconds_low": low, "seconds_high": high}


def _reason(told: Told, running: int) -> dict[str, str]:
    """What changes, counted; each job has a reason of its own."""
    if told.reported is None:
        return {"code": "begun", "text": "nothing is reported yet: report what is there as iteration 0"}
    waiting = len(told.state.names) - running
    run, wait = "job runs" if running == 1 else "jobs run", "waits" if waiting == 1 else "wait"
    there = f"{running:,} {run}, {waiting:,} {wait}, by {told.rule}" + (
        f"; {told.answerer.failure}" if told.answerer.failure else ""
    )
    codes = [one.code for one in told.changes]
    counts = ", ".join(f"{codes.count(code):,} {code}" for code in dict.fromkeys(codes))
    return {"code": "changed", "text": f"{counts}; {there}"} if codes else {"code": "unchanged", "text": there}


# A decision as it is answered.


class JobChange(BaseModel):
    """Change of one job, and why."""

    job: str
    before: int = Field(description="GPUs before this decision.")
    gpus: int = Field(description="GPUs from now on; 0: it waits.")
    nodes: dict[str, int] = Field(description="Its GPUs from now on, by node.")
    code: str = Field(description="`started`, `grown`, `shrunk`, `moved` or `preempted`.")
    text: str
    trades: dict[str, int] = Field(description="GPUs by the other job: gained from it, or lost to it.")
    seconds_left_before: float | None = Field(
        description="Expected time to completion on its previous GPUs; null without GPUs, or before its application "
        "was measured."
    )
    seconds_left: float | None = Field(description="The same on its GPUs from now on, including a restart.")
    seconds_left_low: float | None = Field(
        default=None,
        description="Lower bound of the time to completion, whatever it has meanwhile: with `seconds_left_high` a 90 % "
        "interval, by how far off predictions for other jobs of this run were; null until 19 have finished.",
    )
    seconds_left_high: float | None = Field(default=None, description="Upper bound.")
    seconds_wanted: float | None = Field(
        default=None, description="Time until it should be finished, by the targets of its member workload, if any."
    )
    ceiling: int | None = Field(
        default=None, description="New maximum of GPUs, since it has little left to gain; null: no new limit."
    )
    batch: int | None = Field(
        default=None,
        description="Samples per step, over all its GPUs, of the largest goodput; null unless it has `batch_maximum`.",
    )


class JobStart(BaseModel):
    """Expected start of a job that waits."""

    job: str
    seconds: float = Field(
        description="Expected time to its start: when running jobs, as they are expected to end, have left its minimum "
        "of GPUs after what the jobs before it take."
    )
    seconds_low: float | None = Field(
        default=None,
        description="Lower bound: with `seconds_high` a 90 % interval, by how far off predictions for other jobs of "
        "this run were; null until 19 that waited have started.",
    )
    seconds_high: float | None = Field(default=None, description="Upper bound.")


class ShadowRule(BaseModel):
    """What another agent would have done; recorded, without effect."""

    agent: int = Field(description="Version of the shadow.")
    rule: str | None = Field(description="Rule by which it would have assigned GPUs; null if it failed.")
    agrees: bool = Field(description="Whether every job would have had the same GPUs.")
    problem: str | None = Field(description="What failed, if anything.")


class ClusterDecision(DecisionBase):
    """GPUs and nodes of each job from now on; jobs not listed keep what they have."""

    kind: Literal["cluster"]
    at: float = Field(description="Time of the report, in seconds since the run's start.")
    changes: list[JobChange]
    starts: list[JobStart] = Field(
        default=[], description="Waiting jobs that start next, in order; at most 100, as far as their starts are known."
    )
    running: int = Field(description="Jobs that have GPUs.")
    waiting: int = Field(description="Jobs that have no GPUs.")
    free: int = Field(description="Unassigned GPUs.")
    wake_at: float | None = Field(description="Latest time for the next report; null if there are no jobs.")
    rule: str = Field(description="Rule that assigned the GPUs: the heuristic's, or `weighed`, by an agent.")
    shadow: ShadowRule | None = Field(default=None, description="Decision of the run's shadow, if any.")


class ClusterStart(RunStart):
    """Start a live run of a workload of kind ``cluster``."""
