"""Search in lists by the first characters of an object's id or of its workload's name."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select
from sqlalchemy.orm import Session

from app.database.tables import Workload

SEARCH = r"^[a-z0-9._-]{0,63}$"
SHORTEST_ID = 4
MOST_FOUND = 50
"""Most workloads found by a search whose lists are read one by one."""


def few_workloads(session: Session, tenant: str, search: str) -> list[str] | None:
    """Ids of the tenant's workloads whose names begin with ``search``; None if they are more than ``MOST_FOUND``."""
    rows: list[str] = list(session.scalars(_named(tenant, search).limit(MOST_FOUND + 1)))
    return None if len(rows) > MOST_FOUND else rows


def _named(tenant: str, search: str) -> Select[str]:
    return select(Workload.id).where(Workload.tenant == tenant, Workload.name.startswith(search, autoescape=True))


def is_id_prefix(search: str) -> bool:
    """Whether a search may be for an id: hexadecimal digits, enough of them to find few objects."""
    return len(search) >= SHORTEST_ID and set(search) <= set("0123456789abcdef")


def id_prefix(column: Any, search: str) -> ColumnElement[bool]:
    """SQL condition: an id begins with these hexadecimal digits; a range of the column's index."""
    return and_(column >= search, column < f"{search}g")


def found_by(tenant: str, table: Any, search: str) -> ColumnElement[bool]:
    """SQL condition: an object's id, or the name of its workload, begins with ``search``."""
    of_workload = table.workload_id.in_(_named(tenant, search))
    return or_(of_workload, id_prefix(table.id, search)) if is_id_prefix(search) else of_workload
