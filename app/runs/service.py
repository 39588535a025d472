"""Operations on runs: start, read, list, end and delete them; their API schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import CursorResult, update
from sqlalchemy.orm import Session

from app.agents import repository as agents
from app.agents.repository import AGENTS
from app.audit import service as audit
from app.caps.service import add_ended, check_metered, in_force
from app.database.base import new_id, utc_now
from app.database.engine import Database
from app.database.tables import Iteration, Run
from app.decisions.service import by_rule
from app.drift import repository as drifts
from app.errors import Conflict, FieldError, Invalid, NotFound
from app.http.idempotency import Record, no_record
from app.http.pagination import PageRequest, Slice
from app.kinds.contract.caps import Caps, Spending
from app.kinds.contract.engine import DriftNotice
from app.kinds.contract.inputs import stored
from app.kinds.contract.kind import no_savings
from app.kinds.contract.run_outcome import EndedRun, RunOutcome
from app.kinds.contract.savings import Savings
from app.kinds.engine import Compiled
from app.kinds.registry import KINDS, AnyDecision, AnyReport, load_artifact, read_decision, read_or_raw, read_report
from app.policies.base import IncompatibleArtifact
from app.retention import holds
from app.runs import outcomes, repository, savings
from app.runs.deciding import StartedRuns, from_start
from app.runs.outcomes import CompiledOf, Staleness
from app.runs.repository import RUNNING, Filter, LoadedRun, Sort
from app.samples import service as samples
from app.telemetry import attributes
from app.workloads import members

# API schemas of runs.


RunState = Literal["running", "finished", "failed", "cancelled"]
LONGEST_REASON = 500
LONGEST_OUTPUT = 16_384
MOST_TARGETS = 16


class WorkloadOnly(BaseModel):
    """The workload in a request that starts a run; the workload's kind defines the other members of the body."""

    workload: str = Field(min_length=1, max_length=63)


class RunStarted(BaseModel):
    """A started run, with its first decision."""

    id: str
    workload: str
    agent: int | None = Field(description="Version of the agent that serves; null: a heuristic.")
    decision: AnyDecision
    token: str | None = Field(
        default=None,
        description="The run's own token, sent as `Authorization: Bearer …`, if one was requested.",
    )


class RunBase(BaseModel):
    """Fields that a run has both alone and in a list."""

    id: str
    workload: str
    state: RunState
    outcome: RunOutcome = Field(
        description="While it runs: `on_track`, `at_risk` of missing a target, or `stale` (no report for too long). "
        "Once ended: `met` or `missed` its targets, `failed`, `cancelled`, `cap_reached` (stopped at a cap), or "
        "`completed` without a target to judge by."
    )
    outcome_reason: str | None = Field(description="Reason of the outcome; null: none.")
    spec_version: int = Field(description="Version of the workload's spec when the run started.")
    agent: int | None = Field(description="Version of the agent when the run started.")
    shadow: int | None = Field(default=None, description="Version of the agent consulted as a shadow.")
    start: dict[str, Any] = Field(description="Start parameters other than workload and shadow.")
    iterations: int = Field(
        description="Number of the next iteration: those reported, plus those before the run's first."
    )
    decision: AnyDecision = Field(description="The last decision.")
    drift: list[DriftNotice] = Field(description="Detected drift, oldest first.")
    savings: Savings | None = Field(
        description="Once it has finished: what it took and cost beside other allocations, by the domain model; null "
        "before, and where its kind, model or reports can't tell."
    )
    created_at: datetime
    finished_at: datetime | None


class RunRead(RunBase):
    """A run: its outcome so far, its last decision, and detected drift."""

    output: str | None = Field(
        default=None, description="Last lines of its process's output, as sent with its end; null: not sent."
    )


class RunListed(RunBase):
    """A run in a list, even if its decision can't be read, and without its output."""

    decision: AnyDecision | dict[str, Any]
    problem: str | None


class RunPatch(BaseModel):
    """The state in which a run ends, and why; or other targets or caps of a running run."""

    model_config = ConfigDict(extra="forbid")

    state: Literal["finished", "failed", "cancelled"] | None = Field(default=None, description="Final state.")
    reason: str | None = Field(
        default=None,
        max_length=LONGEST_REASON,
        description="Reason of the end, such as an exception or an exit status.",
        examples=["exit status 1"],
    )
    output: str | None = Field(
        default=None,
        max_length=LONGEST_OUTPUT,
        description="Last lines of the output of the run's process. Only the run itself has them, not lists; they are "
        "deleted with it.",
        examples=["Traceback (most recent call last):\n…\nMemoryError"],
    )
    outcome: Literal["cap_reached"] | None = Field(
        default=None,
        description="With state `cancelled` or `failed`: it was stopped at a cap, also if no decision says `stop`.",
    )
    targets: dict[Annotated[str, Field(max_length=63)], float | None] | None = Field(
        default=None,
        max_length=MOST_TARGETS,
        description="New targets of this run alone, by metric, from its next decision on; null: the workload's applies "
        "again. Not together with a state.",
        examples=[{"iteration_seconds": 1500}],
    )
    caps: Caps | None = Field(
        default=None,
        description="Limits of this run from its next decision on, in place of the former ones; null: none. Not "
        "together with a state.",
    )


class IterationRead(BaseModel):
    """A reported iteration and its decision; what can't be read is returned as stored."""

    iteration: int
    report: AnyReport | dict[str, Any]
    decision: AnyDecision | dict[str, Any]
    reported_at: datetime
    problem: str | None = Field(
        default=None, description="Why the report or decision can't be read, e.g. its kind isn't installed."
    )


# Operations on runs; reports are handled by ``app.runs.reporter``.


Clock = Callable[[], datetime]


def start(
    database: Database,
    tenant: str,
    compiled: Compiled,
    body: Mapping[str, Any],
    record: Record = no_record,
    now: Clock = utc_now,
    runs: StartedRuns | None = None,
) -> RunStarted:
    """Start a run; its kind makes the first decision.

    Args:
        compiled: the compiled workload.
        body: the request's body, with the kind's start parameters.
        record: stores the response for the idempotency key, in the same transaction.
        now: clock of the start's time.
        runs: cache to which the run is added for its first report; None: none.

    Raises:
        NotFound: the workload was deleted since ``compiled`` was made.
        ValidationError: the body doesn't match the kind's schema of a start.
        InvalidInput: its values don't fit the workload.
        Conflict: a cap leaves no room for its first iteration.
        Invalid: there is no such rule or shadow agent, the shadow has another layout, or the kind has no mode
            ``advise``.
    """
    kind = KINDS[compiled.snapshot.spec.kind]
    request = kind.start.model_validate(body)
    identifier, moment, snapshot = new_id(), now(), compiled.snapshot
    if request.policy is not None:
        if request.shadow is not None:
            accepted = "must be null where a policy is named: shadows are compared with the default policy"
            raise _unfit("/shadow", accepted, request.shadow)
        compiled = by_rule(compiled, _known_rule(compiled, request.policy))
    if request.mode == savings.ADVISE and kind.savings is no_savings:
        raise _unfit("/mode", f"must be 'control': savings of advice are unknown for kind {kind.name}", request.mode)
    own: Caps | None = getattr(request, "caps", None)
    limits = in_force(database, tenant, {} if own is None else own.model_dump(), snapshot, moment, None)
    begun = kind.engine.begin(compiled, identifier, request, moment, limits)
    if begun.stop:
        raise Conflict(f"no run of {snapshot.name} can start: {begun.stop}")
    decision, spending = msgspec.json.decode(begun.decision), begun.spending or Spending(0.0, 0.0)
    outcome, reason = outcomes.running_outcome(begun.risk or "")
    run = Run(
        id=identifier,
        tenant=tenant,
        workload_id=snapshot.workload_id,
        spec_version=snapshot.spec_version,
        agent_version=snapshot.agent_version,
        shadow_version=request.shadow,
        state=repository.RUNNING,
        outcome=outcome,
        outcome_reason=reason,
        expected_seconds=begun.expected_seconds,
        quiet=begun.quiet,
        start=request.model_dump(mode="json", exclude={"workload", "shadow", "token"}, exclude_defaults=True),
        state_vector=msgspec.json.decode(kind.engine.serialise(begun.state)),
        next_iteration=decision["iteration"],
        kept_from=decision["iteration"] or None,
        decision=decision,
        next_cost=spending.next_cost,
        next_seconds=spending.next_seconds,
        created_at=moment,
    )
    started = RunStarted(id=run.id, workload=snapshot.name, agent=snapshot.agent_version, decision=run.decision)
    with database.session() as session:
        if not members.keep(session, snapshot.workload_id):
            raise NotFound(f"no workload {request.workload!r}: it was just deleted")
        if request.shadow is not None:
            _check_shadow(session, compiled, request.shadow)
        repository.add(session, run)
        record(session, started)
    attributes.note(attributes.of_decision(decision))
    if runs is not None and request.shadow is None:
        runs.put(from_start(run, snapshot))
    return started


def _known_rule(compiled: Compiled, name: str) -> str:
    """Check the name of a rule against those that can decide for the workload; raises Invalid for another."""
    known = KINDS[compiled.snapshot.spec.kind].engine.rules(compiled)
    if name not in known:
        accepted = f"must be one of {', '.join(known)}" if known else "this kind has no rules to choose from"
        raise _unfit("/policy", accepted, name)
    return name


def _check_shadow(session: Session, compiled: Compiled, version: int) -> None:
    """Check that the shadow agent exists and fits the workload's present layout; raises Invalid if it doesn't."""
    artifact = agents.artifact(session, compiled.snapshot.workload_id, version)
    if artifact is None:
        newest = AGENTS.newest(session, compiled.snapshot.workload_id)
        accepted = f"1 to {newest}" if newest else "none: no agent is trained yet"
        raise _unfit("/shadow", f"no agent {version}; accepted: {accepted}", version)
    try:
        kind = KINDS[compiled.snapshot.spec.kind]
        kind.check(load_artifact(artifact.artifact), compiled.snapshot.layout)
    except IncompatibleArtifact as error:
        raise _unfit("/shadow", str(error), version) from error


def _unfit(pointer: str, accepted: str, value: object) -> Invalid:
    """An error that says what is accepted in place of ``value``."""
    return Invalid(f"{pointer}: {accepted}", errors=[FieldError(pointer, accepted, value)])


def get(database: Database, tenant: str, run: str, rule: Staleness) -> RunRead:
    """A run with its last decision; ``rule``: when a live run is stale.

    Raises:
        NotFound: there is no such run.
        BrokenRow, MissingKind: its decision can't be parsed here.
    """
    with database.reading() as session:
        return _to_response(load(session, tenant, run, rule), repository.output(session, run))


def list_runs(
    database: Database,
    tenant: str,
    request: PageRequest,
    rule: Staleness,
    workload: str | None = None,
    state: str | None = None,
    outcome: Sequence[RunOutcome] = (),
    search: str | None = None,
    sort: Sort = "-started",
) -> Slice[LoadedRun]:
    """One page of runs, filtered by workload, state, outcomes and first characters (None or empty: any).

    ``rule``: when a live run is stale; ``search``: first characters of the run's id or of its workload's name. Raises
    NotFound if there is no such workload, Invalid for a foreign cursor.
    """
    with database.reading() as session:
        result = None if workload is None else members.find(session, tenant, workload)
        if workload is not None and result is None:
            raise NotFound(f"no workload {workload!r}")
        chosen = Filter(None if result is None else result.id, state, outcome, search or None)
        return repository.list_runs(session, tenant, request, rule, chosen, sort)


def _to_response(loaded: LoadedRun, output: str | None = None) -> RunRead:
    with stored(f"run {loaded.run.id}"):
        return RunRead(decision=read_decision(_last(loaded)), output=output, **_beside_decision(loaded))


def read_listed(loaded: LoadedRun) -> RunListed:
    """API representation of a run in a list; an unreadable decision is returned as stored, with the problem."""
    decision, problem = read_or_raw(read_decision, _last(loaded))
    return RunListed(decision=decision, problem=problem, **_beside_decision(loaded))


def load(session: Session, tenant: str, run: str, rule: Staleness) -> LoadedRun:
    """A run with its last iteration and present outcome (stale by ``rule``); raises NotFound without such a run."""
    loaded = repository.load(session, tenant, run, rule)
    if loaded is None:
        raise _no_such_run(run)
    return loaded


def _no_such_run(run: str) -> NotFound:
    return NotFound(f"no run {run!r}; start one with POST /runs")


def _last(loaded: LoadedRun) -> dict[str, Any]:
    return loaded.last.decision if loaded.last else loaded.run.decision


def _beside_decision(loaded: LoadedRun) -> dict[str, Any]:
    run = loaded.run
    return {
        "id": run.id,
        "workload": loaded.workload,
        "state": run.state,
        "outcome": loaded.outcome,
        "outcome_reason": outcomes.reason(run, loaded.outcome, loaded.silent_seconds, loaded.expected),
        "spec_version": run.spec_version,
        "agent": run.agent_version,
        "shadow": run.shadow_version,
        "start": run.start,
        "iterations": run.next_iteration,
        "drift": (run.drift or {}).get("notices", []),
        "savings": run.savings,
        "created_at": run.created_at,
        "finished_at": run.finished_at,
    }


def iterations(database: Database, tenant: str, run: str, request: PageRequest) -> tuple[Slice[Iteration], str]:
    """One page of a run's reported iterations, in order, and its workload's kind; raises NotFound without the run."""
    with database.reading() as session:
        kind = repository.kind(session, tenant, run)
        if kind is None:
            raise _no_such_run(run)
        return repository.iterations(session, run, request), kind


def read_iteration(row: Iteration, kind: str) -> IterationRead:
    """API representation of an iteration; parts that can't be parsed are returned as stored, with the problem."""
    report, unread = read_or_raw(read_report, {"kind": kind, **row.report})
    decision, undecided = read_or_raw(read_decision, row.decision)
    return IterationRead(
        iteration=row.iteration,
        report=report,
        decision=decision,
        reported_at=row.reported_at,
        problem=unread or undecided,
    )


def change(
    database: Database, tenant: str, run: str, patch: RunPatch, compiled_of: CompiledOf, rule: Staleness
) -> RunRead:
    """End a run, or change the targets or caps of a running one.

    A changed run counts its changes: no decision by the former targets and caps is stored any more, whichever process
    made it. A request for what is in force already, such as empty ``targets``, changes and records nothing. ``patch``:
    the final state and reason, or targets or caps; ``compiled_of``: returns the compiled workload; ``rule``: when a
    live run is stale.

    Raises:
        NotFound: there is no such run.
        Conflict: it has ended (in another state), or another request changed it meanwhile.
        TooManyRequests: the tenant's quota of executions is reached; the run stays running.
        Invalid, InvalidInput: not exactly one kind of change is requested, a target is not one of the workload, or the
            kind's runs have no such targets or caps.
    """
    capped = "caps" in patch.model_fields_set
    going_on = patch.targets is not None or capped
    if patch.state is None and not going_on:
        raise _unfit("/state", "must be finished, failed or cancelled, or targets or caps be given", None)
    if not going_on:
        if patch.outcome is not None and patch.state == "finished":
            raise _unfit("/outcome", "needs state failed or cancelled", patch.outcome)
        return end(database, tenant, run, patch, compiled_of, rule)
    for name in ("state", "reason", "output", "outcome"):
        if (value := getattr(patch, name)) is not None:
            raise _unfit(f"/{name}", "must be left out where targets or caps are given", value)
    with database.reading() as session:
        before = load(session, tenant, run, rule)
    start = dict(before.run.start)
    former: dict[str, Any] = {}
    if patch.targets is not None:
        former["targets"] = start.get("targets", {})
        start["targets"] = _changed_targets(before, patch.targets, compiled_of, rule)
    if capped:
        former["caps"] = start.pop("caps", {})
        check_metered(before.kind, patch.caps)
        limits = {} if patch.caps is None else patch.caps.model_dump(exclude_none=True)
        start |= {"caps": limits} if limits else {}
    value = {name: start.get(name, {}) for name in former}
    changed = value != former
    with database.session() as session:
        query = (
            update(Run)
            .where(Run.id == run, Run.tenant == tenant, Run.state == RUNNING, Run.changes == before.run.changes)
            .values(start=start, changes=before.run.changes + changed)
            .execution_options(synchronize_session=False)
        )
        result = session.execute(query)
        outcome = load(session, tenant, run, rule)
        if isinstance(result, CursorResult) and result.rowcount != 1:
            why = outcomes.ENDED.get(outcome.run.state, "was changed by another request; repeat the request")
            raise Conflict(f"run {run} {why}; its {' and '.join(former)} were not changed")
        if changed:
            audit.add(session, tenant, "run.change", f"run {run}", {**value, "before": former})
        return _to_response(outcome)


def _changed_targets(
    before: LoadedRun, values: Mapping[str, float | None], compiled_of: CompiledOf, rule: Staleness
) -> dict[str, float]:
    """A run's own targets after a change, without those that are its workload's again. Raises Invalid if the kind has
    no targets of runs, and InvalidInput for an unknown metric or a value that isn't accepted."""
    kind = KINDS[before.kind]
    if "targets" not in kind.start.model_fields:
        raise _unfit("/targets", f"runs of kind {kind.name} have no targets of their own", values)
    own = before.run.start.get("targets", {})
    targets = {name: value for name, value in {**own, **values}.items() if value is not None}
    for name in values.keys() - targets.keys():
        targets[name] = own.get(name, 1.0)  # checked below like the others: is it a metric with a target?
    begun = kind.start.model_validate({"workload": before.workload, **before.run.start, "targets": targets})
    kind.engine.begin(compiled_of(before.run.workload_id), None, begun, rule.now())
    return {name: value for name, value in targets.items() if values.get(name, value) is not None}


def end(
    database: Database,
    tenant: str,
    run: str,
    patch: RunPatch,
    compiled_of: CompiledOf,
    rule: Staleness,
) -> RunRead:
    """End a run with its outcome, and store its iterations as a sample of its workload, in one transaction.

    What a finished run saved is stored afterwards. Repeating it changes nothing, as the first reason stays, but adds
    savings that are not stored yet. ``patch``: final state and reason; ``compiled_of``: returns the compiled workload
    that judges the run; ``rule``: when a live run is stale.

    Raises:
        NotFound: there is no such run.
        Conflict: it has ended in another state.
        TooManyRequests: the tenant's quota of executions is reached; the run stays running.
    """
    if patch.state == "finished":
        with database.reading() as session:  # compiled before the database is locked
            workload = load(session, tenant, run, rule).run.workload_id
        compiled = outcomes.compiled_or_reason(compiled_of, workload)
    with database.session() as session:
        # Of several requests, the first ends the run
        query = (
            update(Run)
            .where(Run.id == run, Run.tenant == tenant, Run.state == RUNNING)
            .values(state=patch.state, finished_at=rule.now(), next_cost=0.0, next_seconds=0.0)
            .execution_options(synchronize_session=False)
        )
        result = session.execute(query)
        if isinstance(result, CursorResult) and result.rowcount == 1:
            loaded = load(session, tenant, run, rule)
            ended = loaded.run
            reports = samples.add_run(session, ended, drifts.cuts(session, ended), rule.now)
            ended.outcome, ended.outcome_reason = str(patch.state), patch.reason or None
            ended.output = patch.output.encode() if patch.output else None
            decision = _last(loaded)
            stopped = decision.get("stop") and ended.start.get("mode") != savings.ADVISE  # there it has gone on
            if patch.state != "finished" and stopped:
                why = decision["reason"]["text"], patch.reason if patch.state == "failed" else None
                ended.outcome, ended.outcome_reason = "cap_reached", "; ".join(filter(None, why))[: outcomes.LONGEST]
            elif patch.outcome is not None:
                ended.outcome = patch.outcome
            elif patch.state == "finished":
                judged = EndedRun(ended.start, decision, ended.state_vector, reports)
                ended.outcome, reason = outcomes.judge_run(judged, compiled)
                ended.outcome_reason = f"{reason}; {patch.reason}" if patch.reason else reason
            audit.add(session, tenant, "run.end", f"run {run}", {"state": patch.state})
            session.flush()
            add_ended(session, ended, ended.finished_at or rule.now())
        body = _to_response(load(session, tenant, run, rule), repository.output(session, run))
        attributes.note({"steward.outcome": body.outcome, "steward.workload": body.workload, "steward.run": run})
        if body.state != patch.state:
            raise Conflict(f"run {run} {outcomes.ENDED.get(body.state)} already; it can't become {patch.state}")
    if patch.state != "finished" or body.savings is not None:
        return body
    return body.model_copy(update={"savings": savings.settle(database, run, compiled, rule.now())})


def delete(database: Database, tenant: str, run: str) -> None:
    """Delete a run that has ended, with its iterations; the sample made from it is kept.

    Raises:
        NotFound: there is no such run.
        Conflict: it is running, or something active depends on it.
    """
    with database.session() as session:
        if not repository.present(session, tenant, run):
            raise _no_such_run(run)
        holds.refuse(f"run {run}", holds.run(session, session.get_one(Run, run, populate_existing=True)))
        repository.remove(session, run)
        audit.add(session, tenant, "run.delete", f"run {run}")
