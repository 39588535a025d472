"""Versions of a workload's models and agents: reading, naming, numbering and deleting them, the same for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.database.tables import Agent, DomainModel, Workload
from app.errors import NotFound
from app.http.pagination import PageRequest, Slice, json_size, paginate
from app.nouns import NOUNS
from app.retention import holds
from app.retention.holds import Reasons

Row = TypeVar("Row", Agent, DomainModel)


class Versions(Generic[Row]):
    """Versions of one noun, which count from 1 in each workload; numbers of deleted versions are not reused.

    Args:
        table: table of the versions; large columns are deferred.
        package: package of the noun in the table ``app.nouns``.
        make: verb for making a version: "train".
        reasons: reasons against deleting versions of a workload by its id.
    """

    def __init__(self, table: type[Row], package: str, make: str, reasons: Callable[[Session, str], Reasons]) -> None:
        self._table: type[Row] = table
        self._noun, self._make, self._reasons = NOUNS[package], make, reasons

    def find(self, session: Session, workload_id: str, version: int) -> Row | None:
        """One version in a workload; None if there is none."""
        table = self._table
        return session.scalar(select(table).where(table.workload_id == workload_id, table.version == version))

    def newest(self, session: Session, workload_id: str) -> int | None:
        """Number of the newest version; None if there is none."""
        return session.scalar(select(func.max(self._table.version)).where(self._table.workload_id == workload_id))

    def following(self, session: Session, workload: Workload) -> int:
        """Number of the next version to be made; the workload's row must be locked."""
        deleted: int | None = getattr(workload, f"deleted_{self._noun.item}")
        return max(self.newest(session, workload.id) or 0, deleted or 0) + 1

    def require(self, session: Session, workload: Workload, version: int) -> Row:
        """One version in a workload; raises NotFound if there is none."""
        result = self.find(session, workload.id, version)
        if result is None:
            newest, path = self.newest(session, workload.id), self._noun.path.format(workload=workload.name)
            known = f"the newest is {newest}" if newest else f"{self._make} one with POST {path}"
            raise NotFound(f"workload {workload.name!r} has no {self._noun.item} {version}; {known}")
        return result

    def page(self, session: Session, workload_id: str, request: PageRequest) -> Slice[Row]:
        """One page of a workload's versions, newest first; raises Invalid for a foreign cursor."""
        statement = select(self._table).where(self._table.workload_id == workload_id)
        keys = [self._table.version]
        return paginate(session, statement, keys, request, descending=True, weigh=lambda row: json_size(row.report))

    def delete(self, session: Session, workload: Workload, version: int) -> None:
        """Delete a version that nothing active uses; the workload's row must be locked.

        Raises:
            Conflict: something active needs it.
            NotFound: there is no such version.
        """
        row, item = self.require(session, workload, version), self._noun.item
        needed = self._reasons(session, workload.id).get(version, ())
        holds.refuse(f"{item} {version} of {workload.name!r}", needed)
        holds.forget_version(workload, **{item: version})
        session.delete(row)
        audit.add(session, workload.tenant, f"{item}.delete", f"workload {workload.name}", {"version": version})
