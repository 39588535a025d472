"""Fit a domain model to all samples of a workload."""

from __future__ import annotations

from app.database.tables import Workload
from app.domain_models import service as domain_models
from workers.kinds.registry import learned_kind
from workers.tasks import inputs
from workers.tasks.base import RunningJob


def fit(job: RunningJob) -> None:
    """Read spec and samples, fit as the workload's kind does, and publish."""
    with job.database.reading() as session:
        workload = session.get_one(Workload, job.lease.workload_id)
        kind, spec_version = workload.kind, workload.spec_version
        given = inputs.workload(session, workload, with_samples=True)
    fitted = learned_kind(kind).fit(given, int(job.lease.request.get("seed", 0)))
    job.publish(
        lambda session: {
            "model": domain_models.publish(session, job.lease.workload_id, spec_version, fitted.report, fitted.model)
        }
    )
