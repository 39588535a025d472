"""Routes of exogenous series: storing an issue, listing, reading, deleting.

``app.exogenous.rows`` defines what a row means. API schemas come first, then the routes with their SQL.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, NamedTuple

from fastapi import Path, Query, Request
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from sqlalchemy import Select, delete, func, select
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.charts.text import exact
from app.database.leases import insert
from app.database.tables import ExogenousRow, Workload
from app.errors import Conflict, FieldError, Invalid, NotFound
from app.exogenous.rows import in_force
from app.http.dependencies import SLUG, FromDatabase, NounRouter, Tenant, WorkloadName, command, problems
from app.http.pagination import Page, Paging, Slice, decode_cursor, encode_cursor, page, paginate
from app.kinds.contract.inputs import stored
from app.kinds.fields import Finite
from app.workloads import service as workloads

MAX_ROWS_PER_REQUEST = 2_000
"""Their validation blocks the event loop for about 15 ms."""
MAX_ROWS_PER_WORKLOAD = 200_000
"""Over all series and issues."""
MAX_ERRORS = 20
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)

TIME_FORMAT = "must be an RFC 3339 time with its zone, from 1970 to 2199, such as '2026-01-01T00:00:00Z'"


def _only_rfc3339(value: object) -> object:
    # Pydantic would also take numbers and bare dates.
    if not isinstance(value, str | datetime) or (isinstance(value, str) and "T" not in value.upper()):
        raise ValueError(TIME_FORMAT)
    return value


def _in_range(value: datetime) -> datetime:
    if not EARLIEST <= value < LATEST:
        raise ValueError(TIME_FORMAT)
    return value.astimezone(UTC)


Time = Annotated[AwareDatetime, BeforeValidator(_only_rfc3339), AfterValidator(_in_range)]


class ExogenousPoint(BaseModel):
    """Expected value at one time with its interval, in the series' unit."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"time": "2026-01-01T00:00:00Z", "mean": 12.5}]}
    )

    time: Time
    mean: Finite
    low: Finite | None = Field(default=None, description="Default: the mean, for values known for certain.")
    high: Finite | None = Field(default=None, description="Default: the mean.")

    @property
    def bounds(self) -> tuple[float, float]:
        """(low, high) in the series' unit; the mean stands for a bound that is missing."""
        return self.mean if self.low is None else self.low, self.mean if self.high is None else self.high

    @model_validator(mode="after")
    def _check_order(self) -> ExogenousPoint:
        low, high = self.bounds
        if not low <= self.mean <= high:
            raise ValueError(
                f"low {exact(low)}, mean {exact(self.mean)} and high {exact(high)} must be in ascending order"
            )
        return self


class ExogenousIssue(BaseModel):
    """One issue of a series: what was known at one moment."""

    model_config = ConfigDict(extra="forbid")

    issued_at: Time = Field(description="When this was known; repeating an issue replaces its rows.")
    rows: list[ExogenousPoint] = Field(
        min_length=1,
        max_length=MAX_ROWS_PER_REQUEST,
        description="Each time at most once; send more rows in several requests.",
    )


class ExogenousRead(BaseModel):
    """One row of a series: a time, and the value expected for it with its interval, in the series' unit."""

    time: datetime
    issued_at: datetime
    mean: float
    low: float
    high: float


class SeriesRead(BaseModel):
    """Summary of a series: number of rows, first and last time, and time of the newest issue."""

    workload: str
    series: str
    rows: int = Field(description="Number of rows of all issues.")
    since: datetime = Field(description="Its earliest time.")
    until: datetime = Field(description="Its latest time.")
    issued_at: datetime = Field(description="Its newest issue.")


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
    """Store forecast or known external values, such as arrivals or prices. Repeating an issue replaces its rows.\f
    Raises NotFound, Invalid for a repeated time, Conflict for more rows than a workload may have."""
    times: set[datetime] = set()
    errors = []
    for number, row in enumerate(issue.rows):
        if row.time in times:
            errors.append(FieldError(f"/rows/{number}/time", "must be given once", row.time.isoformat()))
        times.add(row.time)
    if errors:
        raise Invalid(f"{len(errors)} of {len(issue.rows)} rows repeat a time", errors=errors[:MAX_ERRORS])

    with database.session() as session:
        owner = workloads.require(session, tenant, workload, lock=True)
        key = {"tenant": owner.tenant, "workload_id": owner.id, "series": series, "issued_at": issue.issued_at}
        values = [
            {**key, "time": row.time, "mean": row.mean, "low": row.bounds[0], "high": row.bounds[1]}
            for row in issue.rows
        ]
        statement = insert(session, ExogenousRow.__table__)
        session.execute(
            statement.on_conflict_do_update(
                index_elements=[column.name for column in ExogenousRow.__table__.primary_key],
                set_={name: statement.excluded[name] for name in ("mean", "low", "high")},
            ),
            values,
        )
        owner.revision += 1  # serving processes reload the workload: its decisions depend on these rows
        total = session.scalar(select(func.count()).where(ExogenousRow.workload_id == owner.id)) or 0
        if total > MAX_ROWS_PER_WORKLOAD:
            limit = (
                f"a workload keeps at most {MAX_ROWS_PER_WORKLOAD:,} rows of all series and issues; delete some first"
            )
            raise Conflict(
                f"with these, workload {owner.name!r} would have {total:,} rows: {limit}",
                errors=[FieldError("/rows", limit, len(issue.rows))],
            )
        return _require_series(session, owner, series)


@router.lists(404, columns=["series", "rows", "since", "until", "issued: issued_at"])
def list_series(
    workload: WorkloadName, request: Request, database: FromDatabase, tenant: Tenant, paging: Paging
) -> Page[SeriesRead]:
    """List the workload's exogenous series by name.\f Raises NotFound, Invalid for a foreign cursor."""
    with database.reading() as session:
        owner = workloads.require(session, tenant, workload)
        statement = _summaries(owner.id).order_by(ExogenousRow.series).limit(paging.limit + 1)
        if paging.cursor is not None:
            statement = statement.where(ExogenousRow.series > decode_cursor(paging.cursor, [str])[0])
        result = [Series(*row) for row in session.execute(statement)]
    shown = result[: paging.limit]
    cursor = encode_cursor([shown[-1].series]) if len(result) > len(shown) else None
    return page(request, Slice(shown, cursor), lambda series: SeriesRead(workload=owner.name, **series._asdict()))


@router.reads("/{series}", columns=["time", "mean", "low", "high", "issued: issued_at"])
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
    """List the rows of a series by time; for each time, the row issued last.\f
    Raises NotFound without such a series, Invalid for a foreign cursor."""
    row = ExogenousRow
    with database.reading() as session:
        owner = workloads.require(session, tenant, workload)
        _require_series(session, owner, series)
        statement = in_force(owner.id)
        if issued_at is not None:
            statement = select(row).where(row.workload_id == owner.id, row.issued_at == issued_at)
        statement = statement.where(row.series == series)
        if since is not None:
            statement = statement.where(row.time >= since)
        if until is not None:
            statement = statement.where(row.time < until)
        result = paginate(session, statement, [row.time], paging)
    return page(request, result, _as_read)


@router.deletes("/{series}")
def delete_series(
    workload: WorkloadName, series: SeriesName, database: FromDatabase, tenant: Tenant, before: Before = None
) -> None:
    """Delete a series with all its issues, or only its rows before a given time.\f
    Raises NotFound without such a series."""
    with database.session() as session:
        owner = workloads.require(session, tenant, workload, lock=True)
        _require_series(session, owner, series)
        statement = delete(ExogenousRow).where(ExogenousRow.workload_id == owner.id, ExogenousRow.series == series)
        session.execute(statement if before is None else statement.where(ExogenousRow.time < before))
        owner.revision += 1
        detail = {"series": series, "before": None if before is None else before.isoformat()}
        audit.add(session, tenant, "exogenous.delete", f"workload {owner.name}", detail)


class Series(NamedTuple):
    """Summary of a series: number of rows, first and last time, and time of the newest issue."""

    series: str
    rows: int
    since: datetime
    until: datetime
    issued_at: datetime


def _summaries(workload_id: str) -> Select[str, int, datetime, datetime, datetime]:
    row = ExogenousRow
    summary = (func.count(), func.min(row.time), func.max(row.time), func.max(row.issued_at))
    return select(row.series, *summary).where(row.workload_id == workload_id).group_by(row.series)


def _require_series(session: Session, workload: Workload, series: str) -> SeriesRead:
    row = session.execute(_summaries(workload.id).where(ExogenousRow.series == series)).first()
    if row is None:
        raise NotFound(
            f"workload {workload.name!r} has no series {series!r}; put rows with "
            f"PUT /workloads/{workload.name}/exogenous/{series}"
        )
    return SeriesRead(workload=workload.name, **Series(*row)._asdict())


def _as_read(row: ExogenousRow) -> ExogenousRead:
    with stored(f"a row of series {row.series!r}"):
        return ExogenousRead(time=row.time, issued_at=row.issued_at, mean=row.mean, low=row.low, high=row.high)
