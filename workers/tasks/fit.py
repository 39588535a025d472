"""Fit a domain model to all samples of a workload."""

from __future__ import annotations

from typing import NamedTuple

from app.database.tables import Workload
from app.domain_models import service as domain_models
from app.kinds.iterative.spec import Spec
from app.samples import service as samples
from workers.estimators.executions import Executions
from workers.estimators.fit import fit_domain_model
from workers.tasks.base import RunningJob


class FitInput(NamedTuple):
    """What a fit needs; no session is open any more."""

    spec: Spec
    spec_version: int
    executions: Executions


def load(job: RunningJob) -> FitInput:
    """Read spec and samples into arrays."""
    with job.database.reading() as session:
        workload = session.get_one(Workload, job.lease.workload_id)
        executions = Executions(tuple(samples.executions(session, workload)))
        return FitInput(Spec.model_validate(workload.spec), workload.spec_version, executions)


def fit(job: RunningJob) -> None:
    """Fit and publish."""
    given = load(job)
    fitted = fit_domain_model(given.spec, given.executions, int(job.lease.request.get("seed", 0)))
    table = fitted.table.to_bytes()
    job.publish(
        lambda session: {
            "model": domain_models.publish(session, job.lease.workload_id, given.spec_version, fitted.report, table)
        }
    )
