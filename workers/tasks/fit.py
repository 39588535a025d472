"""Fit a domain model to all samples of a workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from app.database.tables import Workload
from app.domain_models import service as domain_models
from app.kinds.iterative.spec import Spec as IterativeSpec
from app.kinds.registry import read_spec
from app.samples import service as samples
from workers.kinds.iterative.estimation.executions import Executions
from workers.kinds.iterative.estimation.fit import fit_domain_model
from workers.kinds.workflow.estimation.run_times import fit_run_times
from workers.tasks.base import RunningJob


class FitInput(NamedTuple):
    """What a fit needs; no session is open any more."""

    spec: Any
    spec_version: int
    executions: tuple[tuple[str, Any], ...]


class Fitted(NamedTuple):
    """A model as bytes, and its report."""

    model: bytes
    report: dict[str, Any]


def load(job: RunningJob) -> FitInput:
    """Read spec and samples into arrays."""
    with job.database.reading() as session:
        workload = session.get_one(Workload, job.lease.workload_id)
        executions = tuple(samples.executions(session, workload))
        return FitInput(read_spec(workload.spec), workload.spec_version, executions)


def fit(job: RunningJob) -> None:
    """Fit and publish."""
    given = load(job)
    model, report = FITS[given.spec.kind](given, int(job.lease.request.get("seed", 0)))
    job.publish(
        lambda session: {
            "model": domain_models.publish(session, job.lease.workload_id, given.spec_version, report, model)
        }
    )


def _response(given: FitInput, seed: int) -> Fitted:
    """How metrics respond to allocations."""
    fitted = fit_domain_model(cast("IterativeSpec", given.spec), Executions(given.executions), seed)
    return Fitted(fitted.table.to_bytes(), fitted.report)


def _run_times(given: FitInput, seed: int) -> Fitted:  # noqa: ARG001 - nothing is drawn
    """How long tasks run."""
    fitted = fit_run_times(given.executions)
    return Fitted(fitted.predictor.to_bytes(), fitted.report)


FITS: dict[str, Callable[[FitInput, int], Fitted]] = {"iterative": _response, "workflow": _run_times}
"""What a domain model is, by kind."""
