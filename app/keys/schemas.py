"""What crosses the API about keys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

ScopeName = Literal["read", "report", "train", "admin"]


def _future(moment: datetime) -> datetime:
    if moment <= datetime.now(UTC):
        raise ValueError("must be in the future")
    return moment


class KeyRequest(BaseModel):
    """A key to be made, of the caller's own tenant."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field("", max_length=120, description="What it is for; free text.", examples=["nightly training"])
    scopes: set[ScopeName] = Field(
        {"read", "report"}, min_length=1, description="What it may do; `admin` stands for all.", examples=[["report"]]
    )
    expires_at: Annotated[AwareDatetime, AfterValidator(_future)] | None = Field(
        None, description="When it stops working; null: never."
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
    """A key that was just made: the one time that it is shown."""

    key: str | None = Field(description="To be sent as `Authorization: Bearer …`; null in a repeated answer.")
