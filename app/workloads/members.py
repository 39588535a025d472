"""SQL queries on workloads, and checks of workloads that are members of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, event, or_, select, update
from sqlalchemy.orm import Session, object_session

from app.database.engine import touch
from app.database.tables import Workload
from app.domain_models import repository as domain_models
from app.errors import FieldError, Invalid
from app.http.pagination import PageRequest, Slice, json_size, paginate
from app.kinds.contract.engine import Member
from app.kinds.contract.inputs import BrokenRow, IncompatibleModel
from app.kinds.registry import KINDS, MissingKind, layout_of, read_spec, with_members

# SQL queries on workloads.


def find(session: Session, tenant: str, name_or_id: str, *, lock: bool = False) -> Workload | None:
    """A tenant's workload by name, else by id; None if there is none; ``lock``: lock its row for the transaction."""
    statement = select(Workload).where(
        Workload.tenant == tenant, or_(Workload.name == name_or_id, Workload.id == name_or_id)
    )
    if lock:
        statement = statement.with_for_update()
    rows = sorted(session.scalars(statement), key=lambda workload: workload.name != name_or_id)
    return rows[0] if rows else None


def keep(session: Session, workload_id: str) -> bool:
    """Prevent the deletion of a workload until the transaction ends; False if it doesn't exist."""
    statement = select(Workload.id).where(Workload.id == workload_id).with_for_update(read=True, key_share=True)
    return session.scalar(statement) is not None


def list_workloads(session: Session, tenant: str, request: PageRequest) -> Slice[Workload]:
    """One page of a tenant's workloads, ordered by name; raises Invalid for a foreign cursor."""
    statement = select(Workload).where(Workload.tenant == tenant)
    return paginate(session, statement, [Workload.name], request, weigh=lambda row: json_size(row.spec))


def remove(session: Session, workload_id: str) -> None:
    """Delete a workload, without commit; foreign keys delete everything in it. No effect if there is no such
    workload."""
    touch(session, workload_id)
    session.execute(delete(Workload).where(Workload.id == workload_id))


def bump(session: Session, *workload_ids: str) -> None:
    """Increment workloads' revisions, without commit, so that caches reload them; unknown ids have no effect."""
    for workload_id in workload_ids:
        touch(session, workload_id)
    session.execute(update(Workload).where(Workload.id.in_(workload_ids)).values(revision=Workload.revision + 1))


@event.listens_for(Workload, "after_update")
def _refresh_members(_mapper: Any, _connection: Any, workload: Workload) -> None:
    session = object_session(workload)
    if session is not None:
        touch(session, workload.id)


def revisions(session: Session, workload_ids: Sequence[str]) -> dict[str, int]:
    """Revisions of these workloads by id; deleted ones are left out."""
    statement = select(Workload.id, Workload.revision).where(Workload.id.in_(workload_ids))
    return {row.id: row.revision for row in session.execute(statement)}


# Members of other workloads must exist, can't be deleted, and change with the workloads that name them.


def require(session: Session, tenant: str, spec: Any) -> None:
    """Check that the workloads that a spec names as members exist, and prevent their deletion until the transaction
    ends. Raises Invalid if a member doesn't exist, or its kind can't be a member."""
    names = KINDS[spec.kind].members(spec)
    problems = [_problem(session, tenant, name) for name in names]
    errors = [FieldError(f"/members/{at}", problem, names[at]) for at, problem in enumerate(problems) if problem]
    if errors:
        raise Invalid(f"{errors[0].pointer} {errors[0].message}: {errors[0].value!r}", errors=errors)


def _problem(session: Session, tenant: str, name: str) -> str:
    result = find(session, tenant, name)
    if result is None or result.name != name or not keep(session, result.id):
        return "must be the name of a workload that is registered"
    if KINDS[result.kind].member(layout_of(read_spec(result.spec)), None) is None:
        return f"must be a workload that takes whole GPUs; this one, of kind {result.kind}, doesn't"
    return ""


def naming(session: Session, workload: Workload) -> list[Workload]:
    """Workloads that have this one as a member, in the order of their names; those with unreadable specs are left
    out."""
    # A tenant's workloads of these kinds, ordered by name
    statement = (
        select(Workload)
        .where(Workload.tenant == workload.tenant, Workload.kind.in_(with_members()))
        .order_by(Workload.name)
    )
    others = session.scalars(statement).all()
    return [one for one in others if workload.name in _members(one)]


def _members(workload: Workload) -> Sequence[str]:
    """Names of a workload's members; empty if its spec can't be read."""
    try:
        return KINDS[workload.kind].members(read_spec(workload.spec))
    except (BrokenRow, MissingKind):
        return ()


def describe_members(session: Session, tenant: str, spec: Any) -> dict[str, Member]:
    """Descriptions of a spec's members by name; unreadable members are left out."""
    members = {name: _describe_member(session, tenant, name) for name in KINDS[spec.kind].members(spec)}
    return {name: member for name, member in members.items() if member is not None}


def _describe_member(session: Session, tenant: str, name: str) -> Member | None:
    workload = find(session, tenant, name)
    if workload is None or workload.kind not in KINDS:
        return None
    kind, stored = KINDS[workload.kind], domain_models.table(session, workload.id)
    layout = layout_of(read_spec(workload.spec))
    try:
        return kind.member(layout, kind.model(stored.table) if stored else None)
    except IncompatibleModel:
        return kind.member(layout, None)
