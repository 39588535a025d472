"""What crosses the API about keys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.http.dependencies import UtcTime

ScopeName = Literal["read", "report", "train", "admin"]


def _future(moment: datetime) -> datetime:
    if moment <= datetime.now(UTC):
        raise ValueError("must be in the future")
    return moment


class KeyRequest(BaseModel):
    """A key to create for the caller's tenant."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        "", max_length=120, description="Purpose of the key, as free text.", examples=["nightly training"]
    )
    scopes: set[ScopeName] = Field(
        {"read", "report"},
        min_length=1,
        description="Permissions of the key; `admin` includes all.",
        examples=[["report"]],
    )
    expires_at: Annotated[UtcTime, AfterValidator(_future)] | None = Field(
        None, description="Expiry time; null: never."
    )


class KeyRead(BaseModel):
    """A key, without its secret."""

    id: str
    tenant: str
    name: str
    scopes: list[ScopeName]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class KeyMade(KeyRead):
    """A new key, shown only this once."""

    key: str | None = Field(description="Send as `Authorization: Bearer …`; null in a repeated response.")
