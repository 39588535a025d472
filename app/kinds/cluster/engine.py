"""Serving of kind ``cluster``: reads reports, decides allocations, and writes decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from app.kinds.cluster import waiting
from app.kinds.cluster.advance import advance
from app.kinds.cluster.decide import Change, Compiled, decide, keep_allocations
from app.kinds.cluster.layout import ClusterState, begin, pack, unpack, weight
from app.kinds.cluster.outlook import BelievedOutlook
from app.kinds.cluster.report import ClusterDecision, ClusterReport
from app.kinds.cluster.views import risk
from app.kinds.cluster.waiting import ExpectedStart
from app.kinds.contract.engine import Pending, Snapshot
from app.kinds.contract.kind import RunStart
from app.kinds.engine import HOLD, Choices, DecidedBy, Engine, KindDecision, Serving
from app.policies.artifact import Artifact, Memory
from app.policies.base import IncompatibleArtifact, Published

FEW_JOBS = 100  # reading their report and answering takes some 10 ms


class CheckedReport(NamedTuple):
    """A run's state after a report, before the decision.

    Attributes:
        reported: state right after the report.
        state: the same state with ceilings of GPUs for jobs that have little left to gain.
        outlook: expected step times and remaining work of the jobs.
    """

    reported: ClusterState
    state: ClusterState
    outlook: BelievedOutlook


class PlacedJobs(NamedTuple):
    """Result of a decision: the new state, the changes of jobs, and the name of the rule used."""

    state: ClusterState
    changes: Sequence[Change]
    rule: str


class ClusterServing(Serving):
    """Serving of cluster runs: a run's state is the table of its jobs with their allocations; each report advances it.

    Attributes:
        report: schema of reports.
        failed_shadow: fields of a shadow's record if the shadow failed.
    """

    report = ClusterReport
    failed_shadow: ClassVar[Mapping[str, Any]] = {"rule": None, "agrees": False}

    def compile(self, snapshot: Snapshot) -> Compiled:
        """Compile a snapshot: nodes and queues, domain model, members, and the agent or heuristic that decides."""
        return Compiled(snapshot)

    def rules(self, compiled: Compiled) -> Sequence[str]:
        """Return the names of all allocation rules that a workload can choose."""
        return tuple(compiled.layout.rules)

    def begin(self, compiled: Compiled, start: RunStart, now: datetime) -> KindDecision:
        """Return the first decision of a run, before any report: no jobs and no changes."""
        placed = PlacedJobs(begin(compiled.layout), (), compiled.heuristic)
        reason = {"code": "begun", "text": "no report yet: report the jobs and nodes as iteration 0"}
        return KindDecision(_kind_fields(compiled, placed), reason, noop=True, state=placed.state, quiet=True)

    def takes_long(self, compiled: Compiled, state: ClusterState, report: ClusterReport) -> bool:
        """Return whether state and report have over ``FEW_JOBS`` jobs together, whose decision takes over some 10
        ms."""
        return len(state.names) + len(report.submitted) > FEW_JOBS

    def read(self, compiled: Compiled, state: ClusterState, iteration: int, report: ClusterReport) -> ClusterState:
        """Return the state after the report.

        Raises:
            InvalidInput: the report names unknown queues or nodes, has impossible numbers, or exceeds a size limit.
            Contradiction: the report contradicts earlier ones.
        """
        return advance(compiled.layout, state, report)

    def gather(self, compiled: Compiled, pending: Sequence[Pending]) -> list[CheckedReport]:
        """Return for each pending run, in the same order, its state with ceilings of GPUs and its outlook."""
        judged = [(one.report, compiled.update_ceilings(one.report)) for one in pending]
        return [CheckedReport(reported, state, compiled.outlook(state)) for reported, state in judged]

    def agent(self, compiled: Compiled, artifact: Artifact) -> Published:
        """Return the published policy of an artifact. Raises IncompatibleArtifact if neither the workload nor a member
        has a domain model."""
        if not compiled.modelled:
            raise IncompatibleArtifact("agents need a domain model, and there is none")
        policy: Published = artifact.policy
        return policy

    def choose(
        self,
        compiled: Compiled,
        batch: Sequence[CheckedReport],
        agent: Published | None,
        memory: Memory | None,
        now: datetime,
    ) -> Choices:
        """Decide the allocation of each run of ``batch``, by ``agent`` or, if None, the heuristic; ``memory`` is not
        used. Raises ValueError if a rule allocates more GPUs than all nodes have."""
        name, rule = compiled.rule(agent, now)
        each = []
        for reported, state, outlook in batch:
            advice = compiled.advice(rule, outlook, state, reported)
            each.append(PlacedJobs(*decide(compiled.layout, state, advice), name))
        return Choices(each)

    def write(
        self, compiled: Compiled, batch: Sequence[CheckedReport], choices: Choices, decided_by: DecidedBy
    ) -> list[KindDecision]:
        """Return the decisions of a batch, in its order: changes of jobs, expected starts of waiting jobs, and risk of
        lateness. Reasons mention the failure of the agent, if ``decided_by`` has one; times are seconds."""
        results, failure = [], decided_by.preface(compiled.heuristic)
        for (_, _, outlook), placed in zip(batch, choices.each, strict=True):
            state, starts = waiting.predict_starts(placed.state, outlook, compiled.layout.spec.interval_seconds)
            results.append(
                KindDecision(
                    _kind_fields(compiled, placed._replace(state=state), starts),
                    _reason(placed, failure),
                    noop=not placed.changes,
                    state=state,
                    risk=risk(compiled, state, outlook),
                    quiet=not state.names,
                )
            )
        return results

    def hold(self, compiled: Compiled, one: Pending, failure: str) -> KindDecision:
        """Return the decision after a failure: jobs keep their GPUs, but jobs on nodes with too few GPUs left are
        preempted. ``failure`` says what failed, for the reason of the decision."""
        placed = PlacedJobs(*keep_allocations(compiled.layout, one.report), HOLD)
        return KindDecision(
            _kind_fields(compiled, placed),
            _reason(placed, f"{failure}; keep {'the other' if placed.changes else 'all'} allocations"),
            noop=not placed.changes,
            state=placed.state,
            risk=None,
            quiet=not placed.state.names,
        )

    def compare(
        self, compiled: Compiled, batch: Sequence[CheckedReport], row: int, done: PlacedJobs, other: Choices
    ) -> dict[str, Any]:
        """Compare a shadow's decision ``other`` with the decision ``done``, for the run at position ``row`` of the
        batch. Return the name of the shadow's `rule`, and whether it `agrees`: all jobs hold the same GPUs on the same
        nodes."""
        placed = other.each[row]
        agrees = bool((placed.state.jobs.allocation == done.state.jobs.allocation).all())
        return {"rule": placed.rule, "agrees": agrees}

    def pack(self, state: ClusterState) -> list[Any]:
        """Return ``state`` as plain lists, for JSON."""
        return pack(state)

    def unpack(self, stored: list[Any]) -> ClusterState:
        """Return the state from lists that ``pack`` returned, after JSON."""
        return unpack(stored)

    def weight(self, state: ClusterState) -> int:
        """Return the approximate size of a state in memory, in bytes."""
        return weight(state)


ENGINE = Engine("cluster", ClusterDecision, ClusterServing())


def _kind_fields(compiled: Compiled, placed: PlacedJobs, starts: Sequence[ExpectedStart] = ()) -> dict[str, Any]:
    """Return the fields of a ``ClusterDecision`` that only this kind has; times are seconds since the run's start."""
    state = placed.state
    running = int((state.jobs.gpus > 0).sum())
    return {
        "at": state.now,
        "changes": [_change(one) for one in placed.changes],
        "starts": [_start(one) for one in starts],
        "running": running,
        "waiting": len(state.names) - running,
        "free": int(state.capacity.sum() - state.jobs.allocation.sum()),
        "wake_at": state.now + compiled.layout.spec.interval_seconds if state.names else None,
        "rule": placed.rule,
    }


def _change(one: Change) -> dict[str, Any]:
    low, high = _round_bounds(one.between)
    return {
        "job": one.job,
        "before": one.before,
        "gpus": sum(one.nodes.values()),
        "nodes": one.nodes,
        "code": one.code,
        "text": one.text,
        "trades": one.trades,
        "seconds_left_before": one.remaining_before,
        "seconds_left": one.remaining,
        "seconds_left_low": low,
        "seconds_left_high": high,
        "seconds_wanted": one.until_deadline,
        "ceiling": one.ceiling,
        "batch": one.batch,
    }


def _start(one: ExpectedStart) -> dict[str, Any]:
    low, high = _round_bounds(one.between)
    return {"job": one.job, "seconds": round(one.seconds, 1), "seconds_low": low, "seconds_high": high}


def _round_bounds(between: tuple[float, float] | None) -> tuple[float | None, float | None]:
    """Return both bounds in seconds, rounded to 0.1; (None, None) without an interval."""
    return (None, None) if between is None else (round(between[0], 1), round(between[1], 1))


def _reason(placed: PlacedJobs, failure: str) -> dict[str, str]:
    """Return code and text of the whole decision's reason: numbers of changes by code, rule, and ``failure``."""
    codes = [one.code for one in placed.changes]
    counts = ", ".join(f"{codes.count(code):,} {code}" for code in dict.fromkeys(codes))
    text = "; ".join(filter(None, (counts, f"rule {placed.rule}", failure)))
    return {"code": "changed" if codes else "unchanged", "text": text}
