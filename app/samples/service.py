"""Rules of samples: uploading, listing, exporting, and taking over what a run reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.database.base import new_id, utc_now
from app.database.engine import Database, DeadlinePassed, is_lost
from app.database.tables import Execution, Run, Workload
from app.errors import Invalid, StewardError, Timeout, Unavailable
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.spec import Spec
from app.pagination import PageRequest, Slice
from app.samples import repository
from app.samples.check import Checker, table
from app.samples.formats.base import Reader, Sound
from app.samples.formats.csv import CsvReader
from app.samples.formats.json import JsonReader, NdjsonReader
from app.samples.intake import Intake, Target, rejection_errors, row
from app.samples.schemas import ExecutionRead, Report, UploadRead
from app.samples.stream import limited, lines, unzipped
from app.workloads import service as workloads

MediaType = Literal["application/json", "application/x-ndjson", "text/csv"]
READERS: dict[MediaType, Callable[[Checker], Reader]] = {
    "application/json": JsonReader,
    "application/x-ndjson": NdjsonReader,
    "text/csv": CsvReader,
}
LONGEST_CSV_LINE_BYTES = 16_384


class Upload(NamedTuple):
    """A body as it comes in, and how it is to be read; sizes are of the unpacked body."""

    media_type: MediaType
    chunks: Iterable[bytes]
    gzip: bool
    limit_bytes: int
    json_limit_bytes: int


def upload(database: Database, tenant: str, name: str, given: Upload) -> UploadRead:
    """Read and store executions while they come in; memory holds one batch of them.

    Raises:
        Invalid: nothing in the body could be accepted; or it can't be read on, and what came before is kept.
    """
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
    layout = layout_of(workload)
    intake = Intake(database, Target(tenant, workload.id))
    try:
        for item in READERS[given.media_type](Checker(layout)).read(_lines(given)):
            intake.take(item)
        intake.flush()
    except StewardError as error:
        intake.flush()
        raise _after(error, intake.counts) from error
    except (SQLAlchemyError, DeadlinePassed) as error:
        if not intake.counts.accepted:
            raise
        raise _after(_interruption(error), intake.counts) from error
    return _concluded(intake.counts)


def _lines(given: Upload) -> Iterator[bytes]:
    limit = given.json_limit_bytes if given.media_type == "application/json" else given.limit_bytes
    longest = LONGEST_CSV_LINE_BYTES if given.media_type == "text/csv" else given.json_limit_bytes
    chunks = limited(given.chunks, limit)
    return lines(limited(unzipped(chunks), limit) if given.gzip else chunks, longest)


def _after(error: StewardError, counts: UploadRead) -> StewardError:
    """An error in the middle of an upload also says what was kept."""
    if not counts.accepted:
        return error
    kept = f"{error.detail}; the {counts.accepted} executions accepted before it are kept"
    return type(error)(kept, errors=error.errors, retry_after=error.retry_after)


def _interruption(error: SQLAlchemyError | DeadlinePassed) -> StewardError:
    """Why storing stopped, where part of the upload is stored already."""
    if isinstance(error, DeadlinePassed):
        return Timeout("the upload took too long")
    if is_lost(error):
        return Unavailable("the database does not answer")
    raise error


def _concluded(counts: UploadRead) -> UploadRead:
    if counts.accepted or counts.duplicate:
        return counts
    if not counts.rejected:
        raise Invalid("the body holds no execution; send at least one with at least one iteration")
    first = counts.rejections[0]
    raise Invalid(
        f"none of the {counts.rejected} executions could be accepted; line {first.line}, {first.field}: {first.reason}",
        errors=rejection_errors(counts.rejections),
    )


def layout_of(workload: Workload) -> Layout:
    """The layout that a workload's samples are stored in."""
    return Layout(Spec.model_validate(workload.spec))


def listed(database: Database, tenant: str, name: str, request: PageRequest) -> tuple[Slice[Execution], Checker]:
    """A page of a workload's executions, oldest first, and what reads their data."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        return repository.listed(session, workload.id, request), Checker(layout_of(workload))


def array(execution: Execution, columns: int) -> NDArray[np.float64]:
    """The data of an execution, [iterations, columns]."""
    return np.frombuffer(execution.data, "<f8").reshape(-1, columns)


def read(execution: Execution, checker: Checker, *, reports: bool = False) -> ExecutionRead:
    """An execution as answered."""
    data = array(execution, checker.columns)
    return ExecutionRead(
        execution=execution.name,
        source=execution.source,
        iterations=execution.iterations,
        seconds=checker.seconds(data),
        created_at=execution.created_at,
        reports=[_report(checker, values) for values in data] if reports else None,
    )


def _report(checker: Checker, values: NDArray[np.float64]) -> Report:
    allocation, metrics, features = checker.named(values)
    return Report(iteration=int(values[0]), allocation=allocation, metrics=metrics, features=features)


def executions(session: Session, workload: Workload) -> list[tuple[str, NDArray[np.float64]]]:
    """All executions of a workload, oldest first: identifier and data [iterations, C], as in ``Execution``."""
    columns = Checker(layout_of(workload)).columns
    return [
        (name, np.frombuffer(data, "<f8").reshape(-1, columns))
        for name, data in repository.stored(session, workload.id)
    ]


def add_run(session: Session, run: Run, now: Callable[[], datetime] = utc_now) -> int:
    """Turn what a run reported into a sample of its workload, in the caller's transaction; its number of iterations.

    A run without reports leaves no sample, and a second call changes nothing.
    """
    workload = session.get_one(Workload, run.workload_id)
    reports = repository.reports_of_run(session, run.id)
    if not reports or repository.known(session, workload.id, [run.id]):
        return len(reports)
    layout = layout_of(workload)
    rows = []
    for iteration, report in enumerate(reports):
        parts = [(layout.resources, "allocation"), (layout.metrics, "metrics"), (layout.features, "features")]
        rows.append([float(iteration), *(float(report[part][name]) for names, part in parts for name in names)])
    data = table(rows, 1 + len(layout.resources) + len(layout.metrics) + len(layout.features))
    target = Target(workload.tenant, workload.id)
    repository.add(session, [row(target, new_id(), Sound(run.id, 0, data), "run", now())])
    return len(reports)
