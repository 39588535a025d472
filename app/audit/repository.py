"""SQL queries on the audit log."""

from __future__ import annotations

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from app.database.tables import AuditEntry
from app.http.pagination import PageRequest, Slice, json_size, paginate


def add(session: Session, entry: AuditEntry) -> None:
    """Add an audit entry to the transaction that makes the change."""
    session.add(entry)


def list_entries(session: Session, tenant: str | None, request: PageRequest, action: str | None) -> Slice[AuditEntry]:
    """One page of entries, newest first, of a tenant and of an action, or prefix such as `key`; None: of all."""
    keys = [AuditEntry.created_at, AuditEntry.id]
    statement: Select[AuditEntry] = select(AuditEntry)
    if tenant is not None:
        statement = statement.where(AuditEntry.tenant == tenant)
    if action is not None:
        statement = statement.where(
            (AuditEntry.action == action) | AuditEntry.action.startswith(f"{action}.", autoescape=True)
        )
    return paginate(session, statement, keys, request, descending=True, weigh=_weight)


def _weight(row: AuditEntry) -> int:
    return json_size([row.actor, row.target, row.detail])
