"""HTTP endpoints of domain models."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["domain_models"])
