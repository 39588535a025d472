"""Rules of samples: uploading, listing, exporting, and taking over what a run reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.database.base import new_id, utc_now
from app.database.engine import Database, DeadlinePassed, check_deadline, is_full, is_lost
from app.database.tables import Execution, Run, Workload
from app.errors import DiskFull, FieldError, Invalid, NotFound, StewardError, Timeout, Unavailable, UnsupportedMedia
from app.http.pagination import PageRequest, Slice
from app.kinds.contract.reading import Refused, Sound
from app.kinds.contract.samples import Format, Shelf
from app.kinds.registry import layout_of as layout_of_spec
from app.kinds.registry import read_spec
from app.samples import repository
from app.samples.intake import Intake, Target, rejection_errors, row
from app.samples.schemas import UploadRead
from app.samples.shelves import FORMATS, shelf_of
from app.samples.stream import limited, lines, sniffed, unzipped
from app.workloads import service as workloads

LONGEST_SHORT_LINE_BYTES = 16_384


class Upload(NamedTuple):
    """A body as it comes in, and how it is to be read; sizes are of the unpacked body.

    Attributes:
        name: what the caller calls the one execution that is in it; None where the body names them.
    """

    media_type: str
    chunks: Iterable[bytes]
    gzip: bool
    limit_bytes: int
    json_limit_bytes: int
    trace_limit_bytes: int = 256 << 20
    name: str | None = None

    @property
    def largest(self) -> int:
        """Bytes of the largest body of its media type."""
        limits = {"upload": self.limit_bytes, "json": self.json_limit_bytes, "trace": self.trace_limit_bytes}
        return limits[FORMATS[self.media_type].limit]


def upload(database: Database, tenant: str, name: str, given: Upload) -> UploadRead:
    """Read and store executions while they come in; memory holds one batch of them.

    Raises:
        UnsupportedMedia: samples of this kind of workload are not read from that media type.
        Invalid: nothing in the body could be accepted; or it can't be read on, and what came before is kept.
    """
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
    shelf = shelf_of(workload)
    form = _format(workload, shelf, given)
    intake = Intake(database, Target(tenant, workload.id))
    try:
        _store(intake, form.reader(shelf, given.name).read(_body(given, form)))
    except (StewardError, SQLAlchemyError, DeadlinePassed) as error:
        if not intake.counts.accepted:
            raise
        raise _after(error, intake.counts) from error
    return _concluded(intake.counts)


def _store(intake: Intake, items: Iterable[Sound | Refused]) -> None:
    """Store what is read, also what was sound before the body could not be read on."""
    try:
        for item in items:
            check_deadline()
            intake.take(item)
    except StewardError:
        intake.flush()
        raise
    intake.flush()


def _format(workload: Workload, shelf: Shelf, given: Upload) -> Format:
    form = shelf.formats.get(given.media_type)
    if form is None:
        message = f"must be one of {', '.join(shelf.formats)} for a workload of kind {workload.kind}"
        field = FieldError("/header/content-type", message, given.media_type)
        raise UnsupportedMedia(f"content-type {given.media_type!r} isn't accepted: {message}", errors=[field])
    if given.name is not None and not form.named:
        message = f"must not be given: executions are named in a body of {given.media_type}"
        raise Invalid(f"execution {message}", errors=[FieldError("/query/execution", message, given.name)])
    return form


def _body(given: Upload, form: Format) -> Iterator[bytes]:
    """The body as its format is read: unpacked, measured, and in lines or pieces."""
    chunks: Iterable[bytes] = limited(given.chunks, given.largest)
    zipped = given.gzip
    if form.named and not zipped:
        zipped, chunks = sniffed(chunks)
    pieces = limited(unzipped(chunks), given.largest) if zipped else iter(chunks)
    if form.lines is None:
        return pieces
    return lines(pieces, LONGEST_SHORT_LINE_BYTES if form.lines == "short" else given.json_limit_bytes)


def _after(error: StewardError | SQLAlchemyError | DeadlinePassed, counts: UploadRead) -> StewardError:
    """An error in the middle of an upload also says what was kept."""
    ours = error if isinstance(error, StewardError) else _interruption(error)
    kept = f"{ours.detail}; the {counts.accepted} executions accepted before it are kept"
    return type(ours)(kept, errors=ours.errors, retry_after=ours.retry_after)


def _interruption(error: SQLAlchemyError | DeadlinePassed) -> StewardError:
    """Why storing stopped, where part of the upload is stored already."""
    if isinstance(error, DeadlinePassed):
        return Timeout("the upload took too long")
    if is_full(error):
        return DiskFull("the disk of the database is full")
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


def layout_of(workload: Workload) -> Any:
    """The layout of a workload, as its kind has it."""
    return layout_of_spec(read_spec(workload.spec))


def listed(
    database: Database, tenant: str, name: str, request: PageRequest, execution: str | None = None
) -> tuple[Slice[Execution], Shelf]:
    """A page of a workload's executions, oldest first, or the named one, and what reads their data.

    Raises:
        NotFound: there is no execution of that name.
    """
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        found = repository.listed(session, workload.id, request, execution)
        if execution is not None and not found.rows and request.cursor is None:
            raise NotFound(f"workload {name!r} has no execution {execution!r}")
        return found, shelf_of(workload)


def executions(session: Session, workload: Workload) -> list[tuple[str, Any]]:
    """All executions of a workload, oldest first: identifier, and what its shelf unpacks.

    That is an array [iterations, C] for kind ``iterative``, and a ``Trace`` for kind ``workflow``.
    """
    shelf = shelf_of(workload)
    return [(name, shelf.unpacked(data)) for name, data in repository.stored(session, workload.id)]


def add_run(session: Session, run: Run, now: Callable[[], datetime] = utc_now) -> int:
    """Turn what a run reported into a sample of its workload, in the caller's transaction; its number of reports.

    A run that leaves nothing to learn from leaves no sample, and a second call changes nothing.
    """
    workload = session.get_one(Workload, run.workload_id)
    reports = repository.reports_of_run(session, run.id)
    if not reports or repository.known(session, workload.id, [run.id]):
        return len(reports)
    sound = shelf_of(workload).of_run(run.id, reports)
    if sound is not None:
        repository.add(session, [row(Target(workload.tenant, workload.id), new_id(), sound, "run", now())])
    return len(reports)
