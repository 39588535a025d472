"""The audit log: adding, listing and exporting entries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.database.base import new_id, utc_now
from app.database.engine import Database
from app.database.tables import AuditEntry
from app.http.caller import current_caller
from app.http.pagination import MAXIMUM_LIMIT, PageRequest, Slice, json_size, paginate
from app.kinds.columns import csv_writer

# API schemas of the audit log.


class AuditRead(BaseModel):
    """One audit record: who did what to which object, when, and from which address."""

    id: str
    at: datetime
    tenant: str
    actor: str = Field(
        description="`key:<id>`, `subject:<name>` of an identity provider, `anybody` if no keys are required, or "
        "`steward` for its own command line and workers.",
        examples=["key:5f0c8a4be9f04a0c"],
    )
    action: str = Field(examples=["agent.promote"])
    target: str = Field(examples=["workload resnet18"])
    address: str | None = Field(description="Address that the request came from.")
    detail: dict[str, Any] | None


# Entries are added in the transaction that makes the change, so that neither can exist without the other.


OWN = "steward"
LONGEST_TARGET = 255


def add(session: Session, tenant: str, action: str, target: str, detail: dict[str, Any] | None = None) -> None:
    """Record a change in the current transaction; its actor is the request's caller, or `steward` outside requests."""
    caller = current_caller.get()
    session.add(
        AuditEntry(
            id=new_id(),
            tenant=tenant,
            created_at=utc_now(),
            actor=OWN if caller is None else caller.name[:LONGEST_TARGET],
            action=action,
            target=target[:LONGEST_TARGET],
            address=None if caller is None else caller.address,
            detail=detail,
        ),
    )


def to_response(row: AuditEntry) -> AuditRead:
    """API representation of an audit entry."""
    return AuditRead(
        id=row.id,
        at=row.created_at,
        tenant=row.tenant,
        actor=row.actor,
        action=row.action,
        target=row.target,
        address=row.address,
        detail=row.detail,
    )


def list_entries(
    database: Database, tenant: str | None, request: PageRequest, action: str | None, target: str | None = None
) -> Slice[AuditEntry]:
    """One page of audit entries, newest first; raises Invalid for a foreign cursor.

    ``tenant``, ``action`` (or a prefix of it) and ``target`` filter them; None: all.
    """
    statement = select(AuditEntry)
    if tenant is not None:
        statement = statement.where(AuditEntry.tenant == tenant)
    if action is not None:
        of_prefix = AuditEntry.action.startswith(f"{action}.", autoescape=True)
        statement = statement.where((AuditEntry.action == action) | of_prefix)
    if target is not None:
        statement = statement.where(AuditEntry.target == target)
    with database.reading() as session:
        return paginate(
            session,
            statement,
            [AuditEntry.created_at, AuditEntry.id],
            request,
            descending=True,
            weigh=lambda row: json_size([row.actor, row.target, row.detail]),
        )


def every(database: Database, tenant: str | None, action: str | None = None) -> Iterator[AuditRead]:
    """Iterate over all audit entries, newest first, with one query per page; tenant None: of all tenants."""
    request = PageRequest(MAXIMUM_LIMIT)
    while True:
        entries = list_entries(database, tenant, request, action)
        yield from map(to_response, entries.rows)
        if entries.cursor is None:
            return
        request = PageRequest(MAXIMUM_LIMIT, entries.cursor)


def as_ndjson(entries: Iterator[AuditRead]) -> Iterator[str]:
    """Audit entries as newline-delimited JSON, one string per line."""
    return (f"{entry.model_dump_json()}\n" for entry in entries)


def as_csv(entries: Iterator[AuditRead]) -> Iterator[str]:
    """Audit entries as CSV, a string per row and header; cells that spreadsheets would run as formulas are escaped."""
    write = csv_writer()
    yield write(AuditRead.model_fields)
    for entry in entries:
        values = entry.model_dump(mode="json")
        values["detail"] = None if entry.detail is None else json.dumps(entry.detail, ensure_ascii=False)
        yield write(values[name] for name in AuditRead.model_fields)
