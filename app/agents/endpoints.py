"""HTTP endpoints of agents."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["agents"])
