"""HTTP endpoints of workloads."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["workloads"])
