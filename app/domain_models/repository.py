"""SQL queries on domain models."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.database.tables import DomainModel
from app.http.pagination import PageRequest, Slice, json_size, paginate


class Table(NamedTuple):
    """A model's version and its exported table (safetensors bytes)."""

    version: int
    table: bytes


def find(session: Session, workload_id: str, version: int) -> DomainModel | None:
    """One version of a workload's model, without its table; None if there is none."""
    statement = select(DomainModel).where(DomainModel.workload_id == workload_id, DomainModel.version == version)
    return session.scalar(statement)


def latest_version(session: Session, workload_id: str) -> int | None:
    """Newest version of a workload's models; None if it has none."""
    return session.scalar(select(func.max(DomainModel.version)).where(DomainModel.workload_id == workload_id))


def list_models(session: Session, workload_id: str, request: PageRequest) -> Slice[DomainModel]:
    """One page of a workload's models, newest first, without tables."""
    statement = select(DomainModel).where(DomainModel.workload_id == workload_id)
    return paginate(
        session, statement, [DomainModel.version], request, descending=True, weigh=lambda row: json_size(row.report)
    )


def table(session: Session, workload_id: str, version: int | None = None) -> Table | None:
    """The exported table of one version (None: the newest); None if there is none."""
    statement = select(DomainModel.version, DomainModel.table).where(DomainModel.workload_id == workload_id)
    if version is not None:
        statement = statement.where(DomainModel.version == version)
    row = session.execute(statement.order_by(DomainModel.version.desc()).limit(1)).first()
    return None if row is None else Table(row.version, row.table)
