"""Rules of domain models: asking for a fit, reading, predicting, and publishing what was fitted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from app.database.engine import Database
from app.database.tables import DomainModel, Workload
from app.domain_models import repository
from app.domain_models.schemas import FitRequest, Interval, ModelRead, Prediction
from app.errors import Conflict, FieldError, Invalid, NotFound
from app.idempotency.once import Record, no_record
from app.jobs import service as jobs
from app.jobs.schemas import JobRead
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.pagination import PageRequest, Slice
from app.samples import repository as samples
from app.samples.service import layout_of
from app.workloads import repository as workload_rows
from app.workloads import service as workloads

ITERATIVE = "iterative"


def request_fit(database: Database, tenant: str, name: str, request: FitRequest, record: Record = no_record) -> JobRead:
    """Queue a fit of all samples that are stored when it starts.

    Raises:
        Conflict: there is no sample yet.
    """
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        require_samples(session, workload)
        job = jobs.create(
            session, job_type="fit", workload_id=workload.id, request=request.model_dump(mode="json"), tenant=tenant
        )
        answer = jobs.read(job, workload.name)
        record(session, answer)
        return answer


def require_samples(session: Session, workload: Workload) -> None:
    """Make sure that there is something to learn from.

    Raises:
        Conflict: there is no sample yet; it says what to do.
    """
    if samples.count(session, workload.id) == 0:
        raise Conflict(
            f"workload {workload.name!r} has no samples yet: upload executions with "
            f"POST /workloads/{workload.name}/samples, or finish a run of it, first",
            errors=[FieldError("/samples", "must hold at least one execution", 0)],
        )


def require(session: Session, workload: Workload, version: int) -> DomainModel:
    """One version of a workload's model.

    Raises:
        NotFound: there is none of that number.
    """
    model = repository.find(session, workload.id, version)
    if model is None:
        newest = repository.latest_version(session, workload.id)
        known = f"the newest is {newest}" if newest else f"fit one with POST /workloads/{workload.name}/models"
        raise NotFound(f"workload {workload.name!r} has no model {version}; {known}")
    return model


def read(model: DomainModel, workload: str) -> ModelRead:
    """A model as answered."""
    return ModelRead(
        workload=workload,
        version=model.version,
        spec_version=model.spec_version,
        report=model.report,
        created_at=model.created_at,
    )


def get(database: Database, tenant: str, name: str, version: int) -> ModelRead:
    """One version of a workload's model."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        return read(require(session, workload, version), workload.name)


def listed(database: Database, tenant: str, name: str, request: PageRequest) -> tuple[Slice[DomainModel], str]:
    """A page of a workload's models, newest first, and the workload's name."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        return repository.listed(session, workload.id, request), workload.name


class Question(NamedTuple):
    """What a prediction is asked for."""

    allocation: dict[str, float]
    features: dict[str, float]
    iteration: int


def predict(database: Database, tenant: str, name: str, version: int, question: Question) -> Prediction:
    """What a version of the model expects of one iteration of a run that it hasn't seen.

    Raises:
        InvalidInput: unknown or missing names, values out of bounds or off the grid.
        Invalid: an iteration beyond the workload's.
    """
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        stored = require(session, workload, version).table
        if workload.kind != ITERATIVE:
            raise _not_asked(workload)
        layout = layout_of(workload)
    _check_iteration(question.iteration, layout)
    levels, _, features = layout.encode_report(
        question.allocation, dict.fromkeys(layout.metrics, 1.0), question.features
    )
    table = ModelTable.from_bytes(stored)
    at = np.array(levels, np.int32)
    return Prediction(
        workload=workload.name,
        model=version,
        allocation=layout.allocation_dict(at),
        iteration=question.iteration,
        features=question.features,
        predicted=_predicted(table, layout, at, np.array(features), question.iteration),
        seen=_seen(table, layout, at, np.array(features)),
    )


def _not_asked(workload: Workload) -> Invalid:
    message = f"workloads of kind {workload.kind} have no iterations to predict; what tasks take shows in decisions"
    return Invalid(message, errors=[FieldError("/path/workload", message, workload.name)])


def _check_iteration(iteration: int, layout: Layout) -> None:
    if not 0 <= iteration < layout.iterations:
        message = f"must be between 0 and {layout.iterations - 1}"
        raise Invalid(
            f"iteration {message}, not {iteration}", errors=[FieldError("/query/iteration", message, iteration)]
        )


def _predicted(
    table: ModelTable, layout: Layout, levels: NDArray[np.int32], features: NDArray[np.float64], iteration: int
) -> dict[str, Interval]:
    """Log-normal mean at a typical run effect, and the conformal interval of a new run, by metric."""
    cell = int(table.cell(features[None])[0])
    centre = table.log_mean[:, int(layout.index(levels)), cell, int(table.iteration_bin[iteration])].astype(float)
    mean = np.exp(centre + table.noise_sd**2 / 2)
    low, high = np.exp(centre + table.marginal_low), np.exp(centre + table.marginal_high)
    return {
        metric: Interval(mean=float(mean[i]), low=float(low[i]), high=float(high[i]), level=table.level)
        for i, metric in enumerate(layout.metrics)
    }


def _seen(table: ModelTable, layout: Layout, levels: NDArray[np.int32], features: NDArray[np.float64]) -> bool:
    allocation = layout.allocations[int(layout.index(levels))]
    within = (table.seen_low <= allocation) & (allocation <= table.seen_high)
    usual = (table.feature_low <= features) & (features <= table.feature_high)
    return bool(table.informed and within.all() and usual.all())


def publish(session: Session, workload_id: str, spec_version: int, report: dict[str, Any], table: bytes) -> int:
    """Store a fitted model as the workload's newest version, in the caller's transaction; the version."""
    workload = session.get_one(Workload, workload_id, with_for_update=True)
    version = (repository.latest_version(session, workload_id) or 0) + 1
    session.add(
        DomainModel(
            tenant=workload.tenant,
            workload_id=workload_id,
            version=version,
            spec_version=spec_version,
            report={**report, "version": version},
            table=table,
        )
    )
    workload_rows.bump(session, workload_id)
    session.flush()
    return version
