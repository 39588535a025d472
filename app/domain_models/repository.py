"""SQL queries on domain models."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.database.tables import DomainModel
from app.retention import holds
from app.workloads.versions import Versions


class Table(NamedTuple):
    """A model's version and its exported table (safetensors bytes)."""

    version: int
    table: bytes


MODELS = Versions(DomainModel, "domain_models", "fit", holds.models)


def table(session: Session, workload_id: str, version: int | None = None) -> Table | None:
    """The exported table of one version (None: the newest); None if there is none."""
    statement = select(DomainModel.version, DomainModel.table).where(DomainModel.workload_id == workload_id)
    if version is not None:
        statement = statement.where(DomainModel.version == version)
    row = session.execute(statement.order_by(DomainModel.version.desc()).limit(1)).first()
    return None if row is None else Table(row.version, row.table)
