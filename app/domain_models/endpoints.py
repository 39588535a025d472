"""HTTP endpoints of domain models."""

from __future__ import annotations

from fastapi import Request, Response, status

from app.domain_models import service
from app.domain_models.repository import MODELS
from app.domain_models.service import FitRequest, ModelRead
from app.http.dependencies import (
    FromDatabase,
    NounRouter,
    Tenant,
    Version,
    WorkloadName,
    command,
    components,
    problems,
    references,
)
from app.http.idempotency import IdempotentPost
from app.http.pagination import Page, Paging, page
from app.jobs.service import JobRead
from app.kinds.forecasting.answer import Forecast
from app.kinds.registry import KINDS
from app.workloads import service as workloads

router = NounRouter("domain_models")


@router.post(
    "",
    status_code=status.HTTP_202_ACCEPTED,
    operation_id="fit_model",
    openapi_extra=command("model create", options=["seed"], result="/workloads/{workload}/models/{model}"),
    summary="Fit a domain model",
    response_model=JobRead,
    responses=problems(404, 409, 413, 415, _409="There are no samples to learn from yet."),
)
def fit(
    workload: WorkloadName,
    database: FromDatabase,
    tenant: Tenant,
    once: IdempotentPost,
    request: FitRequest | None = None,
) -> Response:
    """Queue a fit to the workload's samples; the job's result names the new version.\f
    Raises NotFound, Conflict without samples, TooManyRequests at the quota of jobs."""
    body = request or FitRequest()
    return once.run(
        lambda record: service.request_fit(database, tenant, workload, body, record), status=status.HTTP_202_ACCEPTED
    )


@router.lists(404, columns=["version", "spec: spec_version", "age: created_at"])
def list_models(
    workload: WorkloadName, request: Request, database: FromDatabase, tenant: Tenant, paging: Paging
) -> Page[ModelRead]:
    """List versions of the workload's domain model, newest first.\f Raises NotFound, Invalid for a foreign cursor."""
    result, name = service.list_models(database, tenant, workload, paging)
    return page(request, result, lambda model: service.to_response(model, name))


@router.reads("/{version}")
def get_model(workload: WorkloadName, version: Version, database: FromDatabase, tenant: Tenant) -> ModelRead:
    """Get one version of the workload's domain model, with its report.\f Raises NotFound without such a version."""
    return service.get(database, tenant, workload, version)


@router.deletes("/{version}", 409, _409="Decisions, agents or jobs use it; they are named.")
def delete(workload: WorkloadName, version: Version, database: FromDatabase, tenant: Tenant) -> None:
    """Delete a version that is not in use; its number is not reused.\f Raises NotFound, Conflict if it is in use."""
    with database.session() as session:
        MODELS.delete(session, workloads.require(session, tenant, workload, lock=True), version)


@router.get(
    "/{version}/forecast",
    operation_id="forecast",
    openapi_extra=command("forecast"),
    summary="Get a forecast",
    responses=problems(404, 409, _409="The model was fitted by another version of the service."),
)
def forecast(workload: WorkloadName, version: Version, database: FromDatabase, tenant: Tenant) -> Forecast:
    """Forecast each series by horizon, with an interval.

    A forecast begins where the data that the model was fitted to ends. To include later counts, put them as rows of the
    exogenous series of the same name, each issued at the end of its interval.\f
    Raises Invalid if the model forecasts nothing, NotFound without such a workload or version."""
    return service.forecast(database, tenant, workload, version)


PREDICTIONS = [kind.prediction for kind in KINDS.values() if kind.prediction is not None]
ANSWERS = {one.answer.__name__: one.answer for one in PREDICTIONS}
PARAMETERS = {parameter.name: parameter for one in PREDICTIONS for parameter in one.parameters}
ALWAYS = [{parameter.name for parameter in one.parameters if parameter.required} for one in PREDICTIONS]
openapi_schemas = components(list(ANSWERS.values()))


@router.get(
    "/{version}/predict",
    operation_id="predict",
    summary="Get a prediction",
    openapi_extra={
        "parameters": [
            # what one kind requires another refuses: it can be required by all of them alone
            one._replace(required=all(one.name in names for names in ALWAYS)).documented()
            for one in PARAMETERS.values()
        ],
        **command("model predict", fields=True),
    },
    response_model=None,
    responses={
        200: {
            "content": {"application/json": {"schema": {"anyOf": references(ANSWERS)}}},
            "description": "The prediction.",
        },
        **problems(404, 409, _409="The model was fitted by another version of the service."),
    },
)
def predict(
    workload: WorkloadName, version: Version, request: Request, database: FromDatabase, tenant: Tenant
) -> Response:
    """Predict the measurements of an unseen run, with an interval; parameters depend on the workload's kind.\f
    Raises NotFound, Invalid if models of the kind make no predictions, InvalidInput for parameters that don't fit."""
    query = {name: request.query_params.getlist(name) for name in request.query_params}
    predictions = service.predict(database, tenant, workload, version, query)
    return Response(predictions.model_dump_json(), media_type="application/json")
