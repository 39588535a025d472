"""Failures of jobs as problem documents (RFC 9457)."""

from __future__ import annotations

import traceback
from typing import Any

from app.errors import StewardError, problem
from app.policies.base import IncompatibleArtifact
from workers.estimators.base import CriterionMissed, EstimationError, TooLittleData
from workers.learning.backends import BackendError
from workers.learning.execution import ExecutionError
from workers.learning.training.request import Untrainable

LONGEST_TRACEBACK = 8_000  # characters to keep from its end, where the error is
EXPECTED: dict[type[Exception], tuple[str, str]] = {
    TooLittleData: ("/problems/too-little-data", "Too little data"),
    CriterionMissed: ("/problems/criterion-missed", "Simulation too slow"),
    Untrainable: ("/problems/untrainable", "No agent can be trained"),
    ExecutionError: ("/problems/untrainable", "No agent can be trained"),
    BackendError: ("/problems/untrainable", "No agent can be trained"),
    IncompatibleArtifact: ("/problems/incompatible-agent", "Agent of another layout"),
    EstimationError: ("/problems/no-model", "No domain model available"),
}


def problem_of(error: Exception, job_id: str) -> dict[str, Any]:
    """Return the problem document (RFC 9457) of a job's exception: status 422 if expected, else 500 with traceback."""
    if isinstance(error, StewardError):
        return problem(error, f"/jobs/{job_id}")
    for family, (uri, title) in EXPECTED.items():
        if isinstance(error, family):
            pointer = getattr(error, "pointer", "")
            errors = [{"pointer": pointer, "message": str(error), "value": None}] if pointer else []
            return _document(uri, title, 422, str(error), job_id, errors)
    detail = f"{type(error).__name__}: {error}"
    text = "".join(traceback.format_exception(error))[-LONGEST_TRACEBACK:]
    return {**_document("/problems/internal", "Internal error", 500, detail, job_id, []), "traceback": text}


def _document(
    uri: str, title: str, status: int, detail: str, job_id: str, errors: list[dict[str, Any]]
) -> dict[str, Any]:
    document = {"type": uri, "title": title, "status": status, "detail": detail, "instance": f"/jobs/{job_id}"}
    return {**document, "errors": errors} if errors else document
