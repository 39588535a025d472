"""What crosses the API about the audit."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field


class AuditRead(BaseModel):
    """One change."""

    id: str
    at: datetime
    tenant: str
    actor: str = Field(
        description="`key:<id>`, `subject:<name>` of an identity provider, `anybody` where no keys are asked for, or "
        "`steward`: its own command line or workers.",
        examples=["key:5f0c8a4be9f04a0c"],
    )
    action: str = Field(examples=["agent.promote"])
    target: str = Field(examples=["workload resnet18"])
    address: str | None = Field(description="From where the request came.")
    detail: dict[str, Any] | None
