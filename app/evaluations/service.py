"""Operations on evaluations: request, read, list, delete, and publish results; what they read of the workload."""

from __future__ import annotations

import zlib
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer
from sqlalchemy.orm.interfaces import ORMOption

from app.agents.evidence import JUDGE
from app.agents.repository import AGENTS
from app.audit import service as audit
from app.database.engine import Database
from app.database.tables import DomainModel, Evaluation, Execution, Job, Workload
from app.domain_models import service as domain_models
from app.domain_models.repository import MODELS
from app.errors import Conflict, FieldError, Invalid, NotFound
from app.evaluations.schemas import (
    CHAMPION,
    NEWEST,
    EvaluationRead,
    EvaluationReport,
    EvaluationRequest,
    HeldOut,
    Verdict,
)
from app.http.idempotency import Record, no_record
from app.http.pagination import PageRequest, Slice, json_size, paginate
from app.jobs import repository as listing
from app.jobs import service as jobs
from app.jobs.service import JobRead
from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.contract.inputs import stored
from app.kinds.registry import KINDS
from app.workloads import service as workloads
from app.workloads.search import found_by

NAMES_AT_ONCE = 500


def request_evaluation(
    database: Database, tenant: str, request: EvaluationRequest, record: Record = no_record
) -> JobRead:
    """Queue an evaluation and return its job; agents and model are resolved to versions now.

    Raises:
        NotFound: there is no such workload.
        Conflict: the workload has no agent, or not the requested champion, or no model.
        Invalid: there is no such agent, model or execution.
        TooManyRequests: the tenant's quota of open jobs is reached.
    """
    with database.session() as session:
        workload = workloads.require(session, tenant, request.workload, lock=True)
        answer = jobs.to_response(queue(session, workload, request), workload.name)
        record(session, answer)
        return answer


def queue(session: Session, workload: Workload, request: EvaluationRequest) -> Job:
    """Queue an evaluation in the caller's transaction, which has locked the workload's row. Raises Conflict without the
    agents or a model that it needs, Invalid for an agent, model or execution that doesn't exist, TooManyRequests if the
    tenant's quota of open jobs is reached."""
    checked = _checked(session, workload, request)
    return jobs.create(session, job_type="evaluate", workload_id=workload.id, request=checked, tenant=workload.tenant)


def _checked(session: Session, workload: Workload, request: EvaluationRequest) -> dict[str, Any]:
    """The request as it is stored, with versions of agents and model. Raises Conflict without agents or a model,
    Invalid for an agent, model or execution that doesn't exist."""
    # Versions of the requested agents, without duplicates, in order
    newest = AGENTS.newest(session, workload.id)
    if newest is None:
        raise Conflict(
            f"workload {workload.name!r} has no agent yet: train one with POST /workloads/{workload.name}/agents first",
            errors=[FieldError("/agents", "must name agents that have been trained", list(request.agents))],
        )
    named = {NEWEST: newest, CHAMPION: workload.champion(DEFAULT_ROLE)}
    versions = [_version(session, workload, position, name, named) for position, name in enumerate(request.agents)]
    checked = {
        **request.model_dump(mode="json"),
        "workload": workload.name,
        "agents": list(dict.fromkeys(versions)),
        "model": _model(session, workload, request.model),
    }
    _check_held_out(session, workload, request.held_out)
    return checked


jobs.PREPARED["evaluate"] = EvaluationRequest, _checked


def _version(session: Session, workload: Workload, position: int, name: int | str, named: dict[str, int | None]) -> int:
    version = named[name] if isinstance(name, str) else name
    pointer, newest = f"/agents/{position}", named[NEWEST]
    if version is None:
        raise Conflict(
            f"workload {workload.name!r} has no promoted agent: the current policy is a heuristic; name a version "
            f"(1 to {newest}) or 'newest', or promote one first",
            errors=[FieldError(pointer, f"must be a version (1 to {newest}) or 'newest'", name)],
        )
    if AGENTS.find(session, workload.id, version) is None:
        message = f"must be the version of an agent of {workload.name!r}; the newest is {newest}"
        raise Invalid(f"agent {version} {message}", errors=[FieldError(pointer, message, name)])
    return version


def _model(session: Session, workload: Workload, requested: int | None) -> int | None:
    newest = MODELS.newest(session, workload.id)
    if newest is None:
        domain_models.require_samples(session, workload)
        if not KINDS[workload.kind].simulated:
            return None
        raise Conflict(
            f"workload {workload.name!r} has no domain model yet: fit one with POST /workloads/{workload.name}/models",
            errors=[FieldError("/model", "must have been fitted", requested)],
        )
    if requested is not None and MODELS.find(session, workload.id, requested) is None:
        message = f"must be the version of a domain model of {workload.name!r}; the newest is {newest}"
        raise Invalid(f"model {requested} {message}", errors=[FieldError("/model", message, requested)])
    return newest if requested is None else requested


def _check_held_out(session: Session, workload: Workload, request: HeldOut) -> None:
    names, possible = request.executions, KINDS[workload.kind].training.held_out
    if request.of not in possible:
        message = f"must be one of {', '.join(possible)} for workloads of kind {workload.kind!r}"
        raise Invalid(f"what is held out {message}", errors=[FieldError("/held_out/of", message, request.of)])
    if names is None:
        return
    if request.of != "executions":
        message = f"names executions, and {request.of} are to be held out: give a share"
        raise Invalid(f"held_out.executions {message}", errors=[FieldError("/held_out/executions", message, names[0])])
    known = set[str]()
    for start in range(0, len(names), NAMES_AT_ONCE):
        some = names[start : start + NAMES_AT_ONCE]
        stored_names = select(Execution.name).where(Execution.workload_id == workload.id, Execution.name.in_(some))
        known.update(session.scalars(stored_names))
    message = f"must be the name of an execution of {workload.name!r}"
    unknown = [
        FieldError(f"/held_out/executions/{position}", message, name)
        for position, name in enumerate(names)
        if name not in known
    ]
    if unknown:
        raise Invalid(f"{len(unknown)} of {len(names)} held-out executions are unknown", errors=unknown[:20])


def _fields(evaluation: Evaluation, workload: str) -> dict[str, Any]:
    return {
        "id": evaluation.id,
        "workload": workload,
        "spec_version": evaluation.spec_version,
        "model_version": evaluation.model_version,
        "request": evaluation.request,
        "verdicts": [_verdict(Verdict.model_validate(verdict)) for verdict in evaluation.verdicts],
        "created_at": evaluation.created_at,
    }


def _verdict(stored: Verdict) -> Verdict:
    return stored.model_copy(update={"current": stored.judge >= JUDGE})


def to_response(evaluation: Evaluation, workload: str) -> EvaluationRead:
    """API representation of an evaluation of ``workload``, without figures; raises BrokenRow if its row is invalid."""
    with stored(f"evaluation {evaluation.id}"):
        return EvaluationRead(**_fields(evaluation, workload))


def get(database: Database, tenant: str, evaluation_id: str) -> EvaluationReport:
    """A tenant's evaluation with all its figures; raises NotFound if there is none, BrokenRow if its row is invalid."""
    with database.reading() as session:
        evaluation = _require(session, tenant, evaluation_id, undefer(Evaluation.report))
        name = listing.workload_names(session, [evaluation.workload_id])[evaluation.workload_id]
        with stored(f"evaluation {evaluation_id}"):
            return EvaluationReport(**_fields(evaluation, name), report=evaluation.report)


def page(database: Database, tenant: str, evaluation_id: str) -> bytes:
    """An evaluation's report as a self-contained HTML document (UTF-8); raises NotFound if there is none."""
    with database.reading() as session:
        return zlib.decompress(_require(session, tenant, evaluation_id, undefer(Evaluation.page)).page)


def delete(database: Database, tenant: str, evaluation_id: str) -> None:
    """Delete a tenant's evaluation; raises NotFound if there is none."""
    with database.session() as session:
        session.delete(_require(session, tenant, evaluation_id))
        audit.add(session, tenant, "evaluation.delete", f"evaluation {evaluation_id}")


def _require(session: Session, tenant: str, evaluation_id: str, *deferred: ORMOption) -> Evaluation:
    statement = select(Evaluation).where(Evaluation.tenant == tenant, Evaluation.id == evaluation_id)
    row = session.scalar(statement.options(*deferred))
    if row is None:
        raise NotFound(f"no evaluation {evaluation_id!r}; the `result` of an evaluation's job names it once it is done")
    return row


def list_evaluations(
    database: Database,
    tenant: str,
    request: PageRequest,
    workload: str | None,
    search: str | None = None,
    *,
    descending: bool = True,
) -> tuple[Slice[Evaluation], dict[str, str]]:
    """One page of evaluations, newest first or, not ``descending``, oldest first; and the names of their workloads.

    ``workload`` and ``search``, the first characters of the evaluation's id or of its workload's name, filter the list;
    None or empty: any.

    Raises:
        NotFound: there is no such workload.
        Invalid: the cursor is of another list.
    """
    with database.reading() as session:
        statement = select(Evaluation).where(Evaluation.tenant == tenant)
        if workload is not None:
            statement = statement.where(Evaluation.workload_id == workloads.require(session, tenant, workload).id)
        if search:
            statement = statement.where(found_by(tenant, Evaluation, search))
        page = paginate(
            session,
            statement,
            [Evaluation.created_at, Evaluation.id],
            request,
            descending=descending,
            weigh=lambda row: json_size([row.request, row.verdicts]),
        )
        return page, listing.workload_names(session, [evaluation.workload_id for evaluation in page.rows])


class EvaluationResult(NamedTuple):
    """Result of an evaluation that ``publish`` stores: versions of spec and model, request, verdicts, report with all
    figures, and `page`, an HTML document."""

    spec_version: int
    model_version: int
    request: dict[str, Any]
    verdicts: list[Verdict]
    report: dict[str, Any]
    page: bytes


def publish(session: Session, workload_id: str, evaluated: EvaluationResult) -> str:
    """Store an evaluation in the caller's transaction; returns its id. Raises NoResultFound without such a workload."""
    workload = session.get_one(Workload, workload_id)
    evaluation = Evaluation(
        tenant=workload.tenant,
        workload_id=workload_id,
        spec_version=evaluated.spec_version,
        model_version=evaluated.model_version,
        request=evaluated.request,
        verdicts=[{**one.model_dump(mode="json", exclude={"current"}), "judge": JUDGE} for one in evaluated.verdicts],
        report=evaluated.report,
        page=zlib.compress(evaluated.page, 6),
    )
    session.add(evaluation)
    session.flush()
    return evaluation.id


# What an evaluation reads of executions and models.


class StoredName(NamedTuple):
    """Name and time of storage of an execution that can be held out."""

    name: str
    created_at: datetime


def stored_executions(session: Session, workload_id: str) -> list[StoredName]:
    """Names and times of a workload's executions, oldest first."""
    statement = select(Execution.name, Execution.created_at).where(Execution.workload_id == workload_id)
    rows = session.execute(statement.order_by(Execution.created_at, Execution.id))
    return [StoredName(row.name, row.created_at) for row in rows]


def model_time(session: Session, workload_id: str, version: int) -> datetime | None:
    """Creation time of a version of the domain model; None if there is no such version."""
    statement = select(DomainModel.created_at)
    return session.scalar(statement.where(DomainModel.workload_id == workload_id, DomainModel.version == version))
