"""HTTP endpoints of samples."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["samples"])
