"""What crosses the API about the audit."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field


class AuditRead(BaseModel):
    """One audit record."""

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
