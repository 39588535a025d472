"""Operations on exogenous series: store an issue, list, read, delete; their API schemas."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.database.engine import Database
from app.database.tables import ExogenousRow, Workload
from app.errors import Conflict, FieldError, Invalid, NotFound
from app.exogenous import repository
from app.exogenous.repository import Period, Series
from app.http.pagination import PageRequest, Slice
from app.kinds.contract.inputs import stored
from app.kinds.fields import Finite
from app.workloads import service as workloads

# API schemas of exogenous series.


MOST_ROWS_AT_ONCE = 2_000
"""Rows per request; their validation blocks the event loop for about 15 ms."""
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
ACCEPTED = "must be an RFC 3339 time with its zone, from 1970 to 2199, such as '2026-01-01T00:00:00Z'"


def _text(value: object) -> object:
    if not isinstance(value, str | datetime) or (isinstance(value, str) and "T" not in value.upper()):
        raise ValueError(ACCEPTED)
    return value


def _utc(value: datetime) -> datetime:
    if not EARLIEST <= value < LATEST:
        raise ValueError(ACCEPTED)
    return value.astimezone(UTC)


Time = Annotated[AwareDatetime, BeforeValidator(_text), AfterValidator(_utc)]


class ExogenousPoint(BaseModel):
    """Expected value at one time, with its interval."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"time": "2026-01-01T00:00:00Z", "mean": 12.5}]}
    )

    time: Time
    mean: Finite
    low: Finite | None = Field(default=None, description="Default: the mean, for values known for certain.")
    high: Finite | None = Field(default=None, description="Default: the mean.")

    @model_validator(mode="after")
    def _ordered(self) -> ExogenousPoint:
        low, high = self.bounds
        if not low <= self.mean <= high:
            raise ValueError(f"low {low:g}, mean {self.mean:g} and high {high:g} must stand in this order")
        return self

    @property
    def bounds(self) -> tuple[float, float]:
        """Low and high, with the mean as their default."""
        return self.mean if self.low is None else self.low, self.mean if self.high is None else self.high


class ExogenousIssue(BaseModel):
    """One issue of a series: what was known at one moment."""

    model_config = ConfigDict(extra="forbid")

    issued_at: Time = Field(description="When this was known; repeating an issue replaces its rows.")
    rows: list[ExogenousPoint] = Field(
        min_length=1,
        max_length=MOST_ROWS_AT_ONCE,
        description="Each time at most once; send more rows in several requests.",
    )


class ExogenousRead(BaseModel):
    """One row of a series."""

    time: datetime
    issued_at: datetime
    mean: float
    low: float
    high: float


class SeriesRead(BaseModel):
    """Summary of a series."""

    workload: str
    series: str
    rows: int = Field(description="Number of rows of all issues.")
    since: datetime = Field(description="Its earliest time.")
    until: datetime = Field(description="Its latest time.")
    issued_at: datetime = Field(description="Its newest issue.")


# Rules of exogenous series: storing issues, reading, deleting.


MOST_ROWS = 200_000
"""Rows of a workload, over all series and issues."""
MOST_LISTED = 20


def put(database: Database, tenant: str, name: str, series: str, issue: ExogenousIssue) -> SeriesRead:
    """Store an issue of a series; repeating it changes nothing.

    Raises:
        Conflict: the workload would have too many rows.
        Invalid: a time is given twice.
        NotFound: there is no such workload.
    """
    _check_times(issue)
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        repository.put(session, list(_rows(workload, series, issue)))
        workload.revision += 1  # decisions go by what came
        stored = repository.count(session, workload.id)
        if stored > MOST_ROWS:
            message = f"a workload keeps at most {MOST_ROWS:,} rows of all series and issues; delete some first"
            raise Conflict(
                f"with these, workload {workload.name!r} would have {stored:,} rows: {message}",
                errors=[FieldError("/rows", message, len(issue.rows))],
            )
        return to_response(_require(session, workload, series), workload.name)


def _check_times(issue: ExogenousIssue) -> None:
    seen: set[datetime] = set()
    errors = []
    for number, row in enumerate(issue.rows):
        if row.time in seen:
            errors.append(FieldError(f"/rows/{number}/time", "must be given once", row.time.isoformat()))
        seen.add(row.time)
    if errors:
        raise Invalid(f"{len(errors)} of {len(issue.rows)} rows repeat a time", errors=errors[:MOST_LISTED])


def _rows(workload: Workload, series: str, issue: ExogenousIssue) -> Iterator[dict[str, Any]]:
    shared = {"tenant": workload.tenant, "workload_id": workload.id, "series": series, "issued_at": issue.issued_at}
    for row in issue.rows:
        low, high = row.bounds
        yield {**shared, "time": row.time, "mean": row.mean, "low": low, "high": high}


def _require(session: Session, workload: Workload, series: str) -> Series:
    found = repository.find(session, workload.id, series)
    if found is None:
        raise NotFound(
            f"workload {workload.name!r} has no series {series!r}; put rows with "
            f"PUT /workloads/{workload.name}/exogenous/{series}"
        )
    return found


def to_response(found: Series, workload: str) -> SeriesRead:
    """API representation of a series' summary."""
    return SeriesRead(workload=workload, **found._asdict())


def read_row(row: ExogenousRow) -> ExogenousRead:
    """API representation of a row; raises BrokenRow if the row is invalid."""
    with stored(f"a row of series {row.series!r}"):
        return ExogenousRead(time=row.time, issued_at=row.issued_at, mean=row.mean, low=row.low, high=row.high)


def list_series(database: Database, tenant: str, name: str, request: PageRequest) -> tuple[Slice[Series], str]:
    """One page of a workload's series by name, and its name; raises NotFound if there is no such workload."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        return repository.list_series(session, workload.id, request), workload.name


def rows(
    database: Database, tenant: str, name: str, series: str, period: Period, request: PageRequest
) -> Slice[ExogenousRow]:
    """One page of a series' rows within a period, ordered by time; raises NotFound if there is no such series."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        _require(session, workload, series)
        return repository.rows(session, workload.id, series, period, request)


def delete(database: Database, tenant: str, name: str, series: str, before: datetime | None) -> None:
    """Delete a series; with ``before``, only its rows of earlier times.

    Raises:
        NotFound: there is no such workload or series.
    """
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        _require(session, workload, series)
        repository.remove(session, workload.id, series, before)
        workload.revision += 1
        detail = {"series": series, "before": None if before is None else before.isoformat()}
        audit.add(session, tenant, "exogenous.delete", f"workload {workload.name}", detail)
