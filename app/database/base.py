"""Declarative base of tables, shared column types, and common columns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import uuid4

from sqlalchemy import JSON, DateTime, Dialect, MetaData, String
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

DEFAULT_TENANT = "default"

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


def new_id() -> str:
    """A random identifier: 32 hexadecimal digits of a UUID."""
    return uuid4().hex


def utc_now() -> datetime:
    """The present time in UTC, timezone-aware."""
    return datetime.now(UTC)


class UtcDateTime(TypeDecorator[datetime]):
    """Column type of timezone-aware UTC times; SQLite stores no zone, which is restored on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """The time in UTC, None for None; raises ValueError for a time without zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"naive time {value!r}; pass a timezone-aware one")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """The stored time in UTC, None for NULL; times stored without zone are in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""JSON; binary JSON on PostgreSQL."""

Identifier = String(32)


class Base(DeclarativeBase):
    """Base of all tables."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {datetime: UtcDateTime(), dict[str, Any]: Json, list[Any]: Json}


class TenantMixin:
    """Column with the row's tenant; without keys all rows belong to the default tenant."""

    tenant: Mapped[str] = mapped_column(String(63), default=DEFAULT_TENANT, index=True)


class IdMixin:
    """Column with a random identifier as primary key."""

    id: Mapped[str] = mapped_column(Identifier, primary_key=True, default=new_id)


class CreatedMixin:
    """Column with the time of the row's creation."""

    created_at: Mapped[datetime] = mapped_column(default=utc_now)
