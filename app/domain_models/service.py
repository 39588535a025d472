"""Operations on domain models: request a fit, read, delete, predict, forecast, publish; their API schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.orm import Session

from app.charts.text import number
from app.database.engine import Database
from app.database.tables import DomainModel, Workload
from app.domain_models.repository import MODELS
from app.errors import Conflict, FieldError, Invalid
from app.exogenous.rows import observed_counts
from app.http.idempotency import Record, no_record
from app.http.pagination import PageRequest, Slice
from app.jobs import service as jobs
from app.jobs.service import JobRead, Priority
from app.kinds.contract.engine import Query
from app.kinds.contract.inputs import invalid, stored
from app.kinds.forecasting.answer import HOUR, LEAST_SECONDS, Forecast, forecast_of
from app.kinds.registry import KINDS, read_spec
from app.samples import intake
from app.workloads import service as workloads

# API schemas of domain models.


Seed = Annotated[int, Field(ge=0, le=2**31 - 1, description="The same seed and samples give the same result.")]


class FitRequest(BaseModel):
    """Options of a fit; all are optional."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{}]})

    seed: Seed = 0
    priority: Priority = 0


class ModelRead(BaseModel):
    """One version of a workload's domain model, with the report of its fit."""

    workload: str
    version: int = Field(description="Counts from 1.")
    spec_version: int = Field(description="Version of the spec that it was fitted under.")
    report: dict[str, Any] = Field(
        description="Family, candidates with their errors, error and interval coverage per metric, run effect, "
        "residual spread, cost of a change, seconds of one simulated iteration, and what could not be explained."
    )
    created_at: datetime


# Operations on domain models.


def request_fit(database: Database, tenant: str, name: str, request: FitRequest, record: Record = no_record) -> JobRead:
    """Queue a fit on all samples stored when it starts, and return its job.

    Raises:
        Conflict: the workload has no samples.
        NotFound: there is no such workload.
        TooManyRequests: the tenant's quota of open jobs is reached.
    """
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        checked = _checked(session, workload, request)
        job = jobs.create(session, job_type="fit", workload_id=workload.id, request=checked, tenant=tenant)
        answer = jobs.to_response(job, workload.name)
        record(session, answer)
        return answer


def _checked(session: Session, workload: Workload, request: FitRequest) -> dict[str, Any]:
    require_samples(session, workload)
    return request.model_dump(mode="json")


jobs.PREPARED["fit"] = FitRequest, _checked


def require_samples(session: Session, workload: Workload) -> None:
    """Check that the workload has samples; raises Conflict, with the remedy, if it has none."""
    if intake.count(session, workload.id) == 0:
        raise Conflict(
            f"workload {workload.name!r} has no samples yet: upload executions with "
            f"POST /workloads/{workload.name}/samples, or finish a run of it, first",
            errors=[FieldError("/samples", "must hold at least one execution", 0)],
        )


def to_response(model: DomainModel, workload: str) -> ModelRead:
    """API representation of a model; ``workload`` is its workload's name; raises BrokenRow if the row is invalid."""
    with stored(f"model {model.version} of {workload!r}"):
        return ModelRead(
            workload=workload,
            version=model.version,
            spec_version=model.spec_version,
            report=model.report,
            created_at=model.created_at,
        )


def get(database: Database, tenant: str, name: str, version: int) -> ModelRead:
    """One version of a workload's model; raises NotFound if there is no such workload or version."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        return to_response(MODELS.require(session, workload, version), workload.name)


def list_models(database: Database, tenant: str, name: str, request: PageRequest) -> tuple[Slice[DomainModel], str]:
    """One page of a workload's models, newest first, and the workload's name. Raises NotFound if there is no such
    workload, Invalid for a foreign cursor."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        return MODELS.page(session, workload.id, request), workload.name


def predict(database: Database, tenant: str, name: str, version: int, query: Query) -> BaseModel:
    """Prediction of a version of the model, in the form of its kind's ``Prediction``.

    ``query``: parameters of the run to be predicted, as the workload's kind defines them.

    Raises:
        InvalidInput: the query has unknown parameters, or doesn't fit the workload.
        Invalid: models of that kind make no predictions.
        NotFound: there is no such workload or version.
    """
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        stored, spec = MODELS.require(session, workload, version).table, read_spec(workload.spec)
    kind = KINDS[spec.kind]
    if kind.prediction is None:
        message = f"domain models of kind {kind.name} can't be asked: what they say shows in decisions"
        raise Invalid(message, errors=[FieldError("/path/workload", message, workload.name)])
    _check_names(query, [parameter.name for parameter in kind.prediction.parameters])
    answer = kind.prediction.predict(kind.layout(spec), kind.model(stored), query)
    return kind.prediction.answer(workload=workload.name, model=version, **answer)


def forecast(database: Database, tenant: str, name: str, version: int) -> Forecast:
    """Forecasts of a version of the model, continued from counts observed since its fit (exogenous series).

    Raises:
        Invalid: it makes no forecasts.
        NotFound: there is no such workload or version.
    """
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        kind = KINDS[read_spec(workload.spec).kind]
        model = MODELS.require(session, workload, version)
        forecasters = kind.forecasters(kind.model(model.table))
        if not forecasters:
            message = f"model {version} of kind {kind.name} forecasts nothing: {_lacking(model.report)}"
            raise Invalid(message, errors=[FieldError("/path/workload", message, workload.name)])
        return forecast_of(workload.name, version, forecasters, observed_counts(session, workload.id, forecasters))


def _lacking(report: Mapping[str, Any]) -> str:
    """Why a fitted model makes no forecasts, in words."""
    has, needed = float(report.get("log_seconds") or 0), LEAST_SECONDS / HOUR
    if not has:
        return f"it was fitted to no log of arrivals; one of {needed:g} hours at least is needed"
    return f"its longest log of arrivals lasts {number(has / HOUR)} hours; {needed:g} hours at least are needed"


def _check_names(query: Query, known: Sequence[str]) -> None:
    for name, values in query.items():
        if name not in known:
            raise invalid(f"/query/{name}", f"unknown parameter; accepted: {', '.join(known)}", values[0])


def publish(session: Session, workload_id: str, spec_version: int, report: dict[str, Any], table: bytes) -> int:
    """Store a fitted model as the workload's newest version, in the caller's transaction; returns its version.

    ``spec_version``: version of the spec for which it was fitted; ``table``: the exported table (safetensors).
    Raises NoResultFound if there is no such workload.
    """
    workload = session.get_one(Workload, workload_id, with_for_update=True)
    version = MODELS.following(session, workload)
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
    workload.prior = None
    workloads.mark_changed(session, workload)
    session.flush()
    return version
