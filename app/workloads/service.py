"""Operations on workloads: register, read, list, change, delete; their API schemas."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.charts import text
from app.database.engine import Database
from app.database.tables import Workload
from app.errors import Conflict, FieldError, NotFound
from app.http.idempotency import Record, no_record
from app.http.pagination import PageRequest, Slice
from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.registry import KINDS, AnySpec, read_or_raw, read_spec
from app.retention import holds
from app.workloads import members, priors

# API schemas of workloads.


class WorkloadRead(BaseModel):
    """A registered workload: its spec, and the agents that serve it."""

    id: str = Field(examples=["0f6ed0f0b7c14f1db3ad3a4f0b0a5f10"])
    name: str = Field(examples=["resnet18"])
    kind: str
    spec: AnySpec = Field(description="The current spec, with defaults filled in.")
    spec_version: int = Field(description="Starts at 1; incremented by every PATCH that changes something.")
    champion: int | None = Field(description="Version of the agent that serves the default role; null: a heuristic.")
    champions: dict[str, int] = Field(
        description="Versions of the serving agents, by role; a role not listed is served by a heuristic."
    )
    revision: int = Field(description="Grows with every change that affects the workload's decisions.")
    similar_workloads: list[str] = Field(
        default_factory=list,
        description="Names of the tenant's similar workloads from whose domain models its first decisions are "
        "predicted, until it has one of its own.",
    )
    currency: str = Field(
        default_factory=text.currency, description="Currency of all prices: a sign, a code, or `cost units`."
    )
    created_at: datetime


class WorkloadListed(WorkloadRead):
    """A registered workload in a list, even if it can't be read."""

    spec: AnySpec | dict[str, Any] = Field(description="The current spec; if it can't be read, as stored.")
    problem: str | None = Field(
        default=None, description="Why the spec can't be read, e.g. its kind isn't installed; null if it can."
    )


# Operations on workloads.


CREATED, PRESENT = 201, 200


def register(database: Database, tenant: str, spec: Any, record: Record = no_record) -> WorkloadRead:
    """Register a spec; repeating it changes nothing. ``record`` stores status 201, or 200 if it was registered before.

    Raises:
        Conflict: another spec has that name, or it is another workload's id.
        Invalid: a member doesn't exist, or can't be a member.
    """
    prior = None
    if priors.takes(spec):
        with database.reading() as session:
            is_new = members.find(session, tenant, spec.name) is None
        prior = priors.make(database, tenant, spec) if is_new else None  # before the database is locked
    try:
        with database.session() as session:
            return _register(session, tenant, spec, prior, record)
    except IntegrityError:  # another caller registered that name between our look and our insert
        with database.session() as session:
            return _register(session, tenant, spec, prior, record)


def _register(
    session: Session, tenant: str, spec: Any, prior: Mapping[str, Any] | None, record: Record
) -> WorkloadRead:
    present = members.find(session, tenant, spec.name)
    if present is not None and present.name != spec.name:  # requests for that one by id would get this one
        message = "must not be another workload's id"
        raise Conflict(f"name {spec.name!r} {message}", errors=[FieldError("/name", message, spec.name)])
    if present is not None:
        answer, status = _same(present, spec), PRESENT
    else:
        members.require(session, tenant, spec)
        workload = Workload(
            tenant=tenant,
            name=spec.name,
            kind=spec.kind,
            spec=spec.model_dump(mode="json"),
            prior=None if prior is None else dict(prior),
        )
        session.add(workload)
        session.flush()
        audit.add(session, tenant, "workload.create", f"workload {spec.name}")
        answer, status = to_response(workload), CREATED
    record(session, answer, status=status, headers={"Location": f"/workloads/{spec.name}"})
    return answer


def _same(present: Workload, spec: Any) -> WorkloadRead:
    known = read_spec(present.spec)
    if known == spec:
        return to_response(present)
    was, document = known.model_dump(mode="json"), spec.model_dump(mode="json")
    changeable = " or ".join(KINDS[known.kind].patch.model_fields)
    fields = [name for name in document if name not in was or was[name] != document[name]]
    raise Conflict(
        f"workload {spec.name!r} is registered with another spec (they differ in {', '.join(fields)}); choose another "
        f"name, PATCH its {changeable}, or delete it first",
        errors=[FieldError(f"/{name}", "differs from the registered spec", document[name]) for name in fields],
    )


def require(session: Session, tenant: str, name_or_id: str, *, lock: bool = False) -> Workload:
    """A tenant's workload by name or id; raises NotFound if there is none.

    ``lock``: lock its row until the transaction ends.
    """
    workload = members.find(session, tenant, name_or_id, lock=lock)
    if workload is None:
        raise NotFound(f"no workload {name_or_id!r}; register it with POST /workloads")
    return workload


def to_response(workload: Workload) -> WorkloadRead:
    """API representation of a workload; raises MissingKind or BrokenRow if its spec can't be read."""
    return WorkloadRead(spec=read_spec(workload.spec), **_beside_spec(workload))


def read_listed(workload: Workload) -> WorkloadListed:
    """API representation of a workload in a list; an unreadable spec is returned as stored, with the problem."""
    spec, problem = read_or_raw(read_spec, workload.spec)
    return WorkloadListed(spec=spec, problem=problem, **_beside_spec(workload))


def _beside_spec(workload: Workload) -> dict[str, Any]:
    return {
        "id": workload.id,
        "name": workload.name,
        "kind": workload.kind,
        "spec_version": workload.spec_version,
        "champion": workload.champion(DEFAULT_ROLE),
        "champions": {role: champion.version for role, champion in workload.champions.items()},
        "revision": workload.revision,
        "similar_workloads": list((priors.prior_of(workload) or {}).get("workloads", ())),
        "created_at": workload.created_at,
    }


def get(database: Database, tenant: str, name: str) -> WorkloadRead:
    """A tenant's workload by name or id; raises NotFound, MissingKind or BrokenRow (its spec can't be read)."""
    with database.reading() as session:
        return to_response(require(session, tenant, name))


def list_workloads(database: Database, tenant: str, request: PageRequest) -> Slice[Workload]:
    """One page of a tenant's workloads, ordered by name; raises Invalid for a foreign cursor."""
    with database.reading() as session:
        return members.list_workloads(session, tenant, request)


def change(database: Database, tenant: str, name: str, patch: Mapping[str, Any]) -> WorkloadRead:
    """Apply a patch of the fields that may change; the next decisions of this process use it.

    Raises:
        ValidationError: it doesn't match the kind's schema of patches.
        InvalidInput: it names something that the spec doesn't have.
        MissingKind, BrokenRow: the stored spec can't be read.
        Invalid: a member doesn't exist, or can't be a member.
        NotFound: there is no such workload.
    """
    with database.session() as session:
        workload = require(session, tenant, name, lock=True)
        before = read_spec(workload.spec)
        kind = KINDS[before.kind]
        after = kind.apply_patch(before, kind.patch.model_validate(patch))
        if after != before:
            members.require(session, tenant, after)
            workload.spec = after.model_dump(mode="json")
            workload.spec_version += 1
            mark_changed(session, workload)
            session.flush()
            detail = {"patch": dict(patch), "spec_version": workload.spec_version}
            audit.add(session, tenant, "workload.change", f"workload {before.name}", detail)
        return to_response(workload)


def mark_changed(session: Session, workload: Workload) -> None:
    """Increment the revision of a workload and of those that have it as a member, so that caches reload them."""
    workload.revision += 1
    others = [one.id for one in members.naming(session, workload)]
    if others:
        members.bump(session, *others)


def delete(database: Database, tenant: str, name: str, *, force: bool = False) -> None:
    """Delete a workload with its samples, exogenous series, models, agents, jobs and runs.

    Raises:
        Conflict: another workload has it as a member or, without ``force``, a run is running or a job open.
        NotFound: there is no such workload.
    """
    with database.session() as session:
        workload = require(session, tenant, name, lock=True)
        others = ", ".join(one.name for one in members.naming(session, workload))
        if others:
            raise Conflict(f"workload {workload.name!r} is a member of {others}: change or delete that first")
        if not force:
            holds.refuse(f"workload {workload.name!r}", holds.workload(session, workload.id), "or set force=true")
        members.remove(session, workload.id)
        audit.add(session, tenant, "workload.delete", f"workload {workload.name}", {"force": force})
