"""Workloads that are jobs of others: they must be there, are told of their changes, and can't be deleted meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.database.tables import Workload
from app.domain_models import repository as domain_models
from app.errors import Conflict, FieldError, Invalid
from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.contract.member import Member
from app.kinds.contract.stored import BrokenRow
from app.kinds.registry import KINDS, MissingKind, layout_of, read_spec, with_members
from app.workloads import repository


def require(session: Session, tenant: str, spec: Any) -> None:
    """Make sure that the members of a spec are there; they stay until the transaction ends.

    Raises:
        Invalid: one is not, or is of a kind that can't be one.
    """
    names = KINDS[spec.kind].members(spec)
    problems = [_problem(session, tenant, name) for name in names]
    errors = [FieldError(f"/members/{at}", said, names[at]) for at, said in enumerate(problems) if said]
    if errors:
        raise Invalid(f"{errors[0].pointer} {errors[0].message}: {errors[0].value!r}", errors=errors)


def _problem(session: Session, tenant: str, name: str) -> str:
    found = repository.find(session, tenant, name)
    if found is None or found.name != name or not repository.keep(session, found.id):
        return "must be the name of a workload that is registered"
    if KINDS[found.kind].member(layout_of(read_spec(found.spec)), None) is None:
        return f"must be a workload that takes whole GPUs; this one, of kind {found.kind}, doesn't"
    return ""


def naming(session: Session, workload: Workload) -> list[Workload]:
    """The workloads that have a workload as a member."""
    others = repository.of_kinds(session, workload.tenant, with_members())
    return [one for one in others if workload.name in _members(one)]


def _members(workload: Workload) -> Sequence[str]:
    """None of a workload that can't be read here: nothing is decided for it either."""
    try:
        return KINDS[workload.kind].members(read_spec(workload.spec))
    except (BrokenRow, MissingKind):
        return ()


def refuse_deletion(session: Session, workload: Workload) -> None:
    """A workload that others have as a member stays.

    Raises:
        Conflict: it names them.
    """
    others = ", ".join(one.name for one in naming(session, workload))
    if others:
        raise Conflict(f"workload {workload.name!r} is a member of {others}: change or delete that first")


def read(session: Session, tenant: str, spec: Any) -> dict[str, Member]:
    """What the members of a spec tell of themselves, by name; without those that can't be read here."""
    found = {name: _read(session, tenant, name) for name in KINDS[spec.kind].members(spec)}
    return {name: member for name, member in found.items() if member is not None}


def _read(session: Session, tenant: str, name: str) -> Member | None:
    workload = repository.find(session, tenant, name)
    if workload is None or workload.kind not in KINDS:
        return None
    kind, stored = KINDS[workload.kind], domain_models.table(session, workload.id)
    layout = layout_of(read_spec(workload.spec))
    try:
        return kind.member(layout, kind.model(stored.table) if stored else None)
    except IncompatibleModel:
        return kind.member(layout, None)
