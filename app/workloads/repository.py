"""SQL about workloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, event, or_, select, update
from sqlalchemy.orm import Session, object_session

from app.database.engine import touch
from app.database.tables import Workload
from app.http.pagination import PageRequest, Slice, json_size, paginate


def find(session: Session, tenant: str, name_or_id: str, *, lock: bool = False) -> Workload | None:
    """A workload by name, or by id where no name matches; ``lock`` holds its row until the transaction ends."""
    statement = select(Workload).where(
        Workload.tenant == tenant, or_(Workload.name == name_or_id, Workload.id == name_or_id)
    )
    if lock:
        statement = statement.with_for_update()
    found = sorted(session.scalars(statement), key=lambda workload: workload.name != name_or_id)
    return found[0] if found else None


def of_kinds(session: Session, tenant: str, kinds: Sequence[str]) -> Sequence[Workload]:
    """A tenant's workloads of some kinds, by name."""
    statement = select(Workload).where(Workload.tenant == tenant, Workload.kind.in_(kinds)).order_by(Workload.name)
    return session.scalars(statement).all()


def keep(session: Session, workload_id: str) -> bool:
    """Whether a workload is there; nobody deletes it until the transaction ends, others may refer to it as well."""
    statement = select(Workload.id).where(Workload.id == workload_id).with_for_update(read=True, key_share=True)
    return session.scalar(statement) is not None


def listed(session: Session, tenant: str, request: PageRequest) -> Slice[Workload]:
    """A tenant's workloads by name."""
    statement = select(Workload).where(Workload.tenant == tenant)
    return paginate(session, statement, [Workload.name], request, weigh=lambda row: json_size(row.spec))


def remove(session: Session, workload_id: str) -> None:
    """Delete a workload; foreign keys take what hangs on it along."""
    touch(session, workload_id)
    session.execute(delete(Workload).where(Workload.id == workload_id))


def bump(session: Session, *workload_ids: str) -> None:
    """Tell caches that the decisions of workloads may have changed."""
    for workload_id in workload_ids:
        touch(session, workload_id)
    session.execute(update(Workload).where(Workload.id.in_(workload_ids)).values(revision=Workload.revision + 1))


@event.listens_for(Workload, "after_update")
def _updated(_mapper: Any, _connection: Any, workload: Workload) -> None:
    session = object_session(workload)
    if session is not None:
        touch(session, workload.id)


def revisions(session: Session, workload_ids: Sequence[str]) -> dict[str, int]:
    """Present revision of each of these workloads that still exists."""
    statement = select(Workload.id, Workload.revision).where(Workload.id.in_(workload_ids))
    return {row.id: row.revision for row in session.execute(statement)}
