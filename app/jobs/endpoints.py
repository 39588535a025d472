"""HTTP endpoints of jobs."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["jobs"])
