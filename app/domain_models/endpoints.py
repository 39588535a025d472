"""HTTP endpoints of domain models."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response, status

from app.domain_models import service
from app.domain_models.schemas import FitRequest, ModelRead, Prediction
from app.http.dependencies import FromDatabase, Tenant, Version, WorkloadName, problems
from app.http.idempotency.once import IdempotentPost
from app.http.pagination import Page, Paging, page
from app.http.pairs import pairs
from app.jobs.schemas import JobRead
from app.kinds.iterative.prediction import Question

router = APIRouter(prefix="/workloads/{workload}/models", tags=["models"])

Pairs = Annotated[list[str], Query(max_length=64)]


@router.post(
    "",
    status_code=status.HTTP_202_ACCEPTED,
    operation_id="fit_model",
    summary="Fit a domain model",
    response_model=JobRead,
    responses=problems(404, 409, 413, 415, _409="There is no sample to learn from yet."),
)
def fit(
    workload: WorkloadName,
    database: FromDatabase,
    tenant: Tenant,
    once: IdempotentPost,
    request: FitRequest | None = None,
) -> Response:
    """Queue a fit of the workload's samples; the job's result names the new version."""
    asked = request or FitRequest()
    return once.run(
        lambda record: service.request_fit(database, tenant, workload, asked, record), status=status.HTTP_202_ACCEPTED
    )


@router.get("", operation_id="list_models", summary="List domain models", responses=problems(404))
def listed(
    workload: WorkloadName, request: Request, database: FromDatabase, tenant: Tenant, paging: Paging
) -> Page[ModelRead]:
    """Versions of the workload's domain model, newest first."""
    found, name = service.listed(database, tenant, workload, paging)
    return page(request, found, lambda model: service.read(model, name))


@router.get("/{version}", operation_id="read_model", summary="Read a domain model", responses=problems(404))
def read(workload: WorkloadName, version: Version, database: FromDatabase, tenant: Tenant) -> ModelRead:
    """One version of the workload's domain model, with its report."""
    return service.get(database, tenant, workload, version)


@router.get(
    "/{version}/predict",
    operation_id="predict",
    summary="Predict an iteration",
    responses=problems(404, 409, _409="The model was fitted by another version of the service."),
)
def predict(
    workload: WorkloadName,
    version: Version,
    database: FromDatabase,
    tenant: Tenant,
    allocation: Annotated[Pairs, Query(description="`name:value`, once per resource.", examples=[["gpus:4"]])],
    feature: Annotated[Pairs, Query(description="`name:value`, once per feature.", examples=[["batch:128"]])] = [],  # noqa: B006
    iteration: Annotated[int, Query(ge=0, description="Counts from 0.")] = 0,
) -> Prediction:
    """What an iteration is expected to measure at an allocation, with the interval for a run not seen yet."""
    question = Question(pairs("allocation", allocation), pairs("feature", feature), iteration)
    return service.predict(database, tenant, workload, version, question)
