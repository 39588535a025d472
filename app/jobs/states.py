"""States and types of jobs, and what their rows hold in them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app import queue
from app.database.tables import Job

TASKS: dict[str, str] = {
    "fit": queue.FIT,
    "train": queue.TRAIN,
    "trial": queue.TRIAL,
    "evaluate": queue.EVALUATE,
}
"""The task that does jobs of a type."""

WAITING = "waiting"
"""Nobody holds the job: a training waits for its trials, a trial for the comparison, a training that goes on for its
next window. Callers see it as running."""

OPEN = ("queued", "running", WAITING)
FINAL = ("succeeded", "failed", "cancelled")


def ended(now: datetime) -> dict[str, Any]:
    """Values of every ended job's row: nobody holds it, and its checkpoint is not needed any more."""
    nobody = {"owner": None, "lease_expires_at": None, "eta_seconds": None, "not_before": None}
    return {"finished_at": now, "checkpoint": None, **nobody}


def cancelled(now: datetime) -> dict[str, Any]:
    """Values of a cancelled job's row."""
    return {"state": "cancelled", "cancel_requested": True, **ended(now)}


def waiting() -> dict[str, Any]:
    """Values of the row of a job that its worker has let go until its family has come as far. No failed attempt."""
    return {
        "state": WAITING,
        "owner": None,
        "lease_expires_at": None,
        "fence": Job.fence + 1,
        "attempts": Job.attempts - 1,
    }


def resting(until: datetime) -> dict[str, Any]:
    """Values of the row of a job that its worker has let go until a time; what it lost workers by before is over."""
    return {**waiting(), "attempts": 0, "eta_seconds": None, "not_before": until}


def requeued(announced: datetime | None) -> dict[str, Any]:
    """Values of the row of a job that goes back into the queue; `announced` is when the broker is told of it."""
    return {
        "state": "queued",
        "owner": None,
        "lease_expires_at": None,
        "eta_seconds": None,
        "fence": Job.fence + 1,
        "enqueued_at": announced,
        "not_before": None,
    }
