"""HTTP endpoints of exogenous series."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request

from app.exogenous import service
from app.exogenous.repository import Period
from app.exogenous.service import ExogenousIssue, ExogenousRead, SeriesRead, Time
from app.http.dependencies import SLUG, FromDatabase, NounRouter, Tenant, WorkloadName, command, problems
from app.http.pagination import Page, Paging, page

router = NounRouter("exogenous")

SeriesName = Annotated[str, Path(pattern=SLUG, description="Name of the series.", examples=["arrivals"])]
Since = Annotated[Time | None, Query(description="Start of the time range, inclusive.")]
Until = Annotated[Time | None, Query(description="End of the time range, exclusive.")]
IssuedAt = Annotated[Time | None, Query(description="Rows of this issue; default: the newest for each time.")]
Before = Annotated[Time | None, Query(description="Delete only rows for times before this one.")]


@router.put(
    "/{series}",
    operation_id="put_exogenous",
    openapi_extra=command("series create"),
    summary="Store an issue of a series",
    responses=problems(404, 409, 413, 415, _409="The workload would exceed its maximum number of rows."),
)
def put(
    workload: WorkloadName, series: SeriesName, issue: ExogenousIssue, database: FromDatabase, tenant: Tenant
) -> SeriesRead:
    """Store forecast or known external values, such as arrivals or prices. Repeating an issue replaces its rows."""
    return service.put(database, tenant, workload, series, issue)


@router.lists(404, columns=["series", "rows", "since", "until", "issued: issued_at"])
def list_series(
    workload: WorkloadName, request: Request, database: FromDatabase, tenant: Tenant, paging: Paging
) -> Page[SeriesRead]:
    """List the workload's exogenous series by name."""
    found, name = service.list_series(database, tenant, workload, paging)
    return page(request, found, lambda series: service.to_response(series, name))


@router.reads("/{series}", columns=["time", "mean", "low", "high", "issued: issued_at"])
def list_rows(
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
    """List the rows of a series by time; for each time, the row issued last."""
    period = Period(since, until, issued_at)
    return page(request, service.rows(database, tenant, workload, series, period, paging), service.read_row)


@router.deletes("/{series}")
def delete(
    workload: WorkloadName, series: SeriesName, database: FromDatabase, tenant: Tenant, before: Before = None
) -> None:
    """Delete a series with all its issues, or only its rows before a given time."""
    service.delete(database, tenant, workload, series, before)
