"""Rules of exogenous series: storing issues, reading, deleting."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.database.engine import Database
from app.database.tables import ExogenousRow, Workload
from app.errors import Conflict, FieldError, Invalid, NotFound
from app.exogenous import repository
from app.exogenous.repository import Period, Series
from app.exogenous.schemas import ExogenousIssue, ExogenousRead, SeriesRead
from app.http.pagination import PageRequest, Slice
from app.kinds.contract.stored import stored
from app.workloads import service as workloads

MOST_ROWS = 200_000
"""Of a workload, over all series and issues."""
MOST_LISTED = 20


def put(database: Database, tenant: str, name: str, series: str, issue: ExogenousIssue) -> SeriesRead:
    """Store an issue of a series; the same again changes nothing.

    Raises:
        Conflict: the workload would have too many rows.
        Invalid: it says two things of one time.
    """
    _check_times(issue)
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        repository.put(session, list(_rows(workload, series, issue)))
        stored = repository.count(session, workload.id)
        if stored > MOST_ROWS:
            message = f"a workload keeps at most {MOST_ROWS:,} rows of all series and issues; delete some first"
            raise Conflict(
                f"with these, workload {workload.name!r} would have {stored:,} rows: {message}",
                errors=[FieldError("/rows", message, len(issue.rows))],
            )
        return read(_require(session, workload, series), workload.name)


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


def read(found: Series, workload: str) -> SeriesRead:
    """A series as answered."""
    return SeriesRead(workload=workload, **found._asdict())


def read_row(row: ExogenousRow) -> ExogenousRead:
    """A row as answered."""
    with stored(f"a row of series {row.series!r}"):
        return ExogenousRead(time=row.time, issued_at=row.issued_at, mean=row.mean, low=row.low, high=row.high)


def listed(database: Database, tenant: str, name: str, request: PageRequest) -> tuple[Slice[Series], str]:
    """A page of a workload's series, by name, and the workload's name."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        return repository.listed(session, workload.id, request), workload.name


def rows(
    database: Database, tenant: str, name: str, series: str, period: Period, request: PageRequest
) -> Slice[ExogenousRow]:
    """A page of a series, by time.

    Raises:
        NotFound: no such series.
    """
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        _require(session, workload, series)
        return repository.rows(session, workload.id, series, period, request)


def delete(database: Database, tenant: str, name: str, series: str, before: datetime | None) -> None:
    """Delete a series, or what it says of times before one.

    Raises:
        NotFound: no such series.
    """
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        _require(session, workload, series)
        repository.remove(session, workload.id, series, before)
        detail = {"series": series, "before": None if before is None else before.isoformat()}
        audit.add(session, tenant, "exogenous.delete", f"workload {workload.name}", detail)
