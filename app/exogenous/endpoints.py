"""HTTP endpoints of exogenous series."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, status

from app.exogenous import service
from app.exogenous.repository import Period
from app.exogenous.schemas import ExogenousIssue, ExogenousRead, SeriesRead, Time
from app.http.dependencies import SLUG, FromDatabase, Tenant, WorkloadName, problems
from app.http.pagination import Page, Paging, page

router = APIRouter(prefix="/workloads/{workload}/exogenous", tags=["exogenous"])

SeriesName = Annotated[str, Path(pattern=SLUG, description="Name of the series.", examples=["arrivals"])]
Since = Annotated[Time | None, Query(description="Rows of times from this one on.")]
Until = Annotated[Time | None, Query(description="Rows of times before this one.")]
IssuedAt = Annotated[Time | None, Query(description="Rows of this issue; default: of each time the newest.")]
Before = Annotated[Time | None, Query(description="Rows of times before this one alone.")]


@router.put(
    "/{series}",
    operation_id="put_exogenous",
    summary="Put an issue of a series",
    responses=problems(404, 409, 413, 415, _409="The workload would have too many rows."),
)
def put(
    workload: WorkloadName, series: SeriesName, issue: ExogenousIssue, database: FromDatabase, tenant: Tenant
) -> SeriesRead:
    """Store what is forecast, or known, from outside: arrivals, prices. The same issue again replaces its rows."""
    return service.put(database, tenant, workload, series, issue)


@router.get("", operation_id="list_exogenous", summary="List series", responses=problems(404))
def listed(
    workload: WorkloadName, request: Request, database: FromDatabase, tenant: Tenant, paging: Paging
) -> Page[SeriesRead]:
    """The workload's exogenous series, by name."""
    found, name = service.listed(database, tenant, workload, paging)
    return page(request, found, lambda series: service.read(series, name))


@router.get("/{series}", operation_id="read_exogenous", summary="Read a series", responses=problems(404))
def read(
    workload: WorkloadName,
    series: SeriesName,
    request: Request,
    database: FromDatabase,
    tenant: Tenant,
    paging: Paging,
    since: Since = None,
    until: Until = None,
    issued_at: IssuedAt = None,
) -> Page[ExogenousRead]:
    """Rows of a series by time; of each time the one that was issued last."""
    period = Period(since, until, issued_at)
    return page(request, service.rows(database, tenant, workload, series, period, paging), service.read_row)


@router.delete(
    "/{series}",
    status_code=status.HTTP_204_NO_CONTENT,
    operation_id="delete_exogenous",
    summary="Delete a series",
    responses=problems(404),
)
def delete(
    workload: WorkloadName, series: SeriesName, database: FromDatabase, tenant: Tenant, before: Before = None
) -> None:
    """Delete a series with all its issues, or what it says of times before one."""
    service.delete(database, tenant, workload, series, before)
