"""States and types of jobs, and what their rows hold in them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app import queue

TASKS: dict[str, str] = {"fit": queue.FIT, "train": queue.TRAIN, "evaluate": queue.EVALUATE}
"""The task that does jobs of a type."""


def ended(now: datetime) -> dict[str, Any]:
    """Values of every ended job's row: nobody holds it, and its checkpoint is not needed any more."""
    return {"finished_at": now, "checkpoint": None, "owner": None, "lease_expires_at": None, "eta_seconds": None}


def cancelled(now: datetime) -> dict[str, Any]:
    """Values of a cancelled job's row."""
    return {"state": "cancelled", "cancel_requested": True, **ended(now)}
