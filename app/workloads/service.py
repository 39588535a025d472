"""Rules of workloads: registering, changing, deleting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.database.engine import Database
from app.database.tables import Workload
from app.errors import Conflict, FieldError, Invalid, NotFound
from app.idempotency.once import Record, no_record
from app.kinds.iterative.spec import Spec
from app.pagination import PageRequest, Slice
from app.workloads import repository
from app.workloads.schemas import WorkloadPatch, WorkloadRead

CREATED, PRESENT = 201, 200


def register(database: Database, tenant: str, spec: Spec, record: Record = no_record) -> WorkloadRead:
    """Register a spec; ``record`` is told whether it is new. The same spec again changes nothing.

    Raises:
        Conflict: another spec is registered under that name.
    """
    try:
        with database.session() as session:
            return _register(session, tenant, spec, record)
    except IntegrityError:  # another caller registered that name between our look and our insert
        with database.session() as session:
            return _register(session, tenant, spec, record)


def _register(session: Session, tenant: str, spec: Spec, record: Record) -> WorkloadRead:
    present = repository.find(session, tenant, spec.name)
    if present is not None and present.name == spec.name:
        answer, status = _same(present, spec), PRESENT
    else:
        workload = Workload(tenant=tenant, name=spec.name, kind=spec.kind, spec=spec.model_dump(mode="json"))
        session.add(workload)
        session.flush()
        answer, status = read(workload), CREATED
    record(session, answer, status=status, headers={"Location": f"/workloads/{spec.name}"})
    return answer


def _same(present: Workload, spec: Spec) -> WorkloadRead:
    known = Spec.model_validate(present.spec)
    if known == spec:
        return read(present)
    fields = [name for name in Spec.model_fields if getattr(known, name) != getattr(spec, name)]
    raise Conflict(
        f"workload {spec.name!r} is registered with another spec (they differ in {', '.join(fields)}); choose another "
        "name, PATCH its targets, prices or weights, or delete it first",
        errors=[
            FieldError(f"/{name}", "differs from the registered spec", spec.model_dump(mode="json")[name])
            for name in fields
        ],
    )


def require(session: Session, tenant: str, name_or_id: str, *, lock: bool = False) -> Workload:
    """The workload of that name or id.

    Raises:
        NotFound: there is none.
    """
    workload = repository.find(session, tenant, name_or_id, lock=lock)
    if workload is None:
        raise NotFound(f"no workload {name_or_id!r}; register it with POST /workloads")
    return workload


def read(workload: Workload) -> WorkloadRead:
    """A workload as answered."""
    return WorkloadRead(
        id=workload.id,
        name=workload.name,
        kind=workload.kind,
        spec=Spec.model_validate(workload.spec),
        spec_version=workload.spec_version,
        champion=workload.champion,
        revision=workload.revision,
        created_at=workload.created_at,
    )


def get(database: Database, tenant: str, name: str) -> WorkloadRead:
    """One workload."""
    with database.reading() as session:
        return read(require(session, tenant, name))


def listed(database: Database, tenant: str, request: PageRequest) -> Slice[Workload]:
    """A page of workloads, by name."""
    with database.reading() as session:
        return repository.listed(session, tenant, request)


def change(database: Database, tenant: str, name: str, patch: WorkloadPatch) -> WorkloadRead:
    """Apply new targets, prices and weights; agents obey them without a new training.

    Raises:
        Invalid: a metric or resource that the workload hasn't.
    """
    with database.session() as session:
        workload = require(session, tenant, name, lock=True)
        before = Spec.model_validate(workload.spec)
        after = patched(before, patch)
        if after != before:
            workload.spec = after.model_dump(mode="json")
            workload.spec_version += 1
            workload.revision += 1
            session.flush()
        return read(workload)


def patched(spec: Spec, patch: WorkloadPatch) -> Spec:
    """A spec with a patch applied."""
    unknown = [
        *_unknown("targets", patch.targets, (metric.name for metric in spec.metrics)),
        *_unknown("prices", patch.prices, (resource.name for resource in spec.resources)),
    ]
    if unknown:
        raise Invalid("; ".join(f"{e.pointer}: {e.message}" for e in unknown), errors=unknown)
    fields = spec.model_dump()
    for metric in fields["metrics"]:
        metric["target"] = patch.targets.get(metric["name"], metric["target"])
    for resource in fields["resources"]:
        resource["price_per_hour"] = patch.prices.get(resource["name"], resource["price_per_hour"])
    fields["weights"] |= patch.weights.model_dump(exclude_none=True)
    return Spec.model_validate(fields)


def _unknown(part: str, given: dict[str, Any], known: Iterable[str]) -> list[FieldError]:
    names = list(known)
    accepted = f"unknown name; known: {', '.join(names)}"
    return [FieldError(f"/{part}/{name}", accepted, value) for name, value in given.items() if name not in names]


def delete(database: Database, tenant: str, name: str) -> None:
    """Delete a workload with its samples, models, agents, jobs and runs."""
    with database.session() as session:
        repository.remove(session, require(session, tenant, name).id)
