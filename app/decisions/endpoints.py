"""HTTP endpoints of decisions."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["decisions"])
