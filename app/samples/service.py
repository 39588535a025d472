"""Operations on samples: upload, list, export, delete, and conversion of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel
from sqlalchemy import select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.database.base import new_id, utc_now
from app.database.engine import Database, DeadlinePassed, check_deadline, is_full, is_lost
from app.database.tables import Execution, Iteration, Run, Workload
from app.errors import (
    DiskFull,
    FieldError,
    Invalid,
    NotFound,
    StewardError,
    Timeout,
    Unavailable,
    UnsupportedMedia,
    as_steward_error,
)
from app.http.pagination import PageRequest, Slice
from app.kinds.contract.inputs import BrokenRow, InvalidInput, Reader, stored
from app.kinds.contract.samples import Format, SampleCodec
from app.kinds.registry import MissingKind, read_spec
from app.kinds.registry import layout_of as layout_of_spec
from app.retention import holds
from app.samples import intake as repository
from app.samples.body import FORMATS, blocks, check_between, codec_of, decompress, detect_gzip, limit_size, returning
from app.samples.intake import (
    REPORTS_AT_ONCE,
    Intake,
    StoredExecution,
    Target,
    UploadRead,
    check_quota,
    rejection_errors,
    row,
)
from app.workloads import service as workloads

LONGEST_SHORT_LINE_BYTES = 16_384
SUMMARISED_BYTES = 1 << 18


class Upload(NamedTuple):
    """An upload's body and its options; sizes are of the decompressed body, in bytes.

    Attributes:
        name: name of the only execution in the body; None: the body contains names.
        check: called regularly while reading; raises to stop.
        skip_bad: skip invalid lines instead of rejecting the body.
    """

    media_type: str
    chunks: Iterable[bytes]
    gzip: bool
    limit_bytes: int
    json_limit_bytes: int
    trace_limit_bytes: int = 256 << 20
    name: str | None = None
    check: Callable[[], None] = check_deadline
    skip_bad: bool = False

    @property
    def largest(self) -> int:
        """Largest body in bytes for its media type."""
        limits = {"upload": self.limit_bytes, "json": self.json_limit_bytes, "trace": self.trace_limit_bytes}
        return limits[FORMATS[self.media_type].limit]


def upload(database: Database, tenant: str, name: str, upload: Upload) -> UploadRead:
    """Read and store an upload's executions as a stream, one batch in memory at a time; returns their counts.

    Raises:
        UnsupportedMedia: the workload's kind doesn't read that media type.
        Invalid: no execution was accepted, or the body became invalid; executions before that are kept.
        NotFound: there is no such workload.
        StewardError: another error stopped the upload; its message says how many executions are kept.
    """
    return returning(lambda: _upload(database, tenant, name, upload))


def _upload(database: Database, tenant: str, name: str, upload: Upload) -> UploadRead:
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
    codec = codec_of(workload)
    form = _format(workload, codec, upload)
    intake = Intake(database, Target(tenant, workload.id), form)
    try:
        # Store the executions read, including those before an error
        items = _reader(form, codec, upload).read(_body(upload, form))
        try:
            for item in items:
                check_deadline()
                intake.take(item)
        except (StewardError, InvalidInput):
            intake.flush()
            raise
        intake.flush()
    except (StewardError, InvalidInput, SQLAlchemyError, DeadlinePassed) as error:
        if not intake.counts.accepted:
            raise
        # The error of an upload, with the number of stored executions in its message
        ours = _as_steward_error(error)
        text = f"{ours.detail}; the {intake.counts.accepted} executions accepted before it are kept"
        raise type(ours)(text, errors=ours.errors, retry_after=ours.retry_after) from error
    if intake.counts.accepted or intake.counts.duplicate:
        return intake.counts
    if not intake.counts.rejected:
        raise Invalid("the body holds no execution; send at least one with at least one iteration")
    errors = rejection_errors(form, intake.counts.rejections)
    message = (
        f"none of the {intake.counts.rejected} executions could be accepted; {errors[0].pointer}: {errors[0].message}"
    )
    raise Invalid(message, errors=errors)


def _format(workload: Workload, codec: SampleCodec, upload: Upload) -> Format:
    form = codec.formats.get(upload.media_type)
    if form is None:
        message = f"must be one of {', '.join(codec.formats)} for a workload of kind {workload.kind}"
        field = FieldError("/header/content-type", message, upload.media_type)
        raise UnsupportedMedia(f"content-type {upload.media_type!r} isn't accepted: {message}", errors=[field])
    if upload.name is not None and not form.named:
        message = f"must not be given: executions are named in a body of {upload.media_type}"
        raise Invalid(f"execution {message}", errors=[FieldError("/query/execution", message, upload.name)])
    return form


def _reader(form: Format, codec: SampleCodec, upload: Upload) -> Reader:
    """The reader of a body; raises Invalid if ``skip_bad`` is set and the format doesn't support it."""
    if not upload.skip_bad:
        return form.reader(codec, upload.name)
    if form.skipping is None:
        able = ", ".join(media for media, other in codec.formats.items() if other.skipping) or "no format of this kind"
        message = f"must not be given with {upload.media_type}; lines can be left out of {able}"
        raise Invalid(f"skip_bad {message}", errors=[FieldError("/query/skip_bad", message, True)])
    return form.skipping(codec, upload.name)


def _body(upload: Upload, form: Format) -> Iterator[bytes]:
    """The body as its format needs it: decompressed, limited in size, in blocks of lines or in pieces. Reading it
    raises TooLarge, Invalid or BadRequest if it is too large, malformed or incomplete."""
    chunks: Iterable[bytes] = limit_size(upload.chunks, upload.largest)
    zipped = upload.gzip
    if not zipped:
        zipped, chunks = detect_gzip(chunks)
    pieces = check_between(limit_size(decompress(chunks), upload.largest) if zipped else chunks, upload.check)
    if form.lines is None:
        return pieces
    return blocks(pieces, LONGEST_SHORT_LINE_BYTES if form.lines == "short" else upload.json_limit_bytes)


def _as_steward_error(error: StewardError | InvalidInput | SQLAlchemyError | DeadlinePassed) -> StewardError:
    if isinstance(error, StewardError):
        return error
    return as_steward_error(error) if isinstance(error, InvalidInput) else _interruption(error)


def _interruption(error: SQLAlchemyError | DeadlinePassed) -> StewardError:
    """The error that stopped an upload after a part was stored; errors that aren't interruptions are raised again."""
    if isinstance(error, DeadlinePassed):
        return Timeout("the upload took too long")
    if is_full(error):
        return DiskFull("the disk of the database is full")
    if is_lost(error):
        return Unavailable("the database does not answer")
    raise error


def layout_of(workload: Workload) -> Any:
    """A workload's layout (spaces, names and scales, derived from its spec); raises MissingKind or BrokenRow if the
    spec can't be read."""
    return layout_of_spec(read_spec(workload.spec))


def list_executions(
    database: Database,
    tenant: str,
    name: str,
    request: PageRequest,
    execution: str | None = None,
    *,
    reports: bool = False,
) -> tuple[Slice[Execution], Callable[[Execution], BaseModel]]:
    """One page of a workload's executions, oldest first, or the named one, and a function to API representations.

    ``reports`` includes their data, if the kind supports that. Unreadable ones are represented as stored.
    Raises NotFound if there is no such workload or execution.
    """
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        try:
            codec = codec_of(workload)
        except (MissingKind, BrokenRow) as error:
            return _page(session, workload, request, execution), partial(_raw, workload.kind, str(error))
        whole = reports and codec.tells_reports
        page = _page(session, workload, request, execution, data=whole)
    _summarise(database, codec, [row for row in page.rows if row.summary is None])
    return page, partial(_decode_execution, workload.kind, codec, reports=whole)


def _page(
    session: Session, workload: Workload, request: PageRequest, execution: str | None, *, data: bool = False
) -> Slice[Execution]:
    page = repository.list_executions(session, workload.id, request, execution, data=data)
    if execution is not None and not page.rows and request.cursor is None:
        raise NotFound(f"workload {workload.name!r} has no execution {execution!r}")
    return page


def _decode_execution(kind: str, codec: SampleCodec, execution: Execution, *, reports: bool) -> BaseModel:
    try:
        with stored(f"execution {execution.name!r}"):
            return codec.read(execution, reports=reports)
    except BrokenRow as error:
        return _raw(kind, str(error), execution)


def _raw(kind: str, problem: str, execution: Execution) -> StoredExecution:
    return StoredExecution(
        kind=kind,
        execution=execution.name,
        source=execution.source,
        iterations=execution.iterations,
        created_at=execution.created_at,
        problem=problem,
    )


def readable(
    database: Database, tenant: str, name: str, request: PageRequest, execution: str | None
) -> tuple[Slice[Execution], SampleCodec]:
    """One page of a workload's executions, or the named one, without data, and their codec. Raises MissingKind or
    BrokenRow if the workload's spec can't be read, NotFound without the workload or execution, Invalid for a foreign
    cursor."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        return _page(session, workload, request, execution), codec_of(workload)


def export_executions(
    database: Database, tenant: str, name: str, request: PageRequest, execution: str | None
) -> Slice[Execution]:
    """One page of a workload's executions, or the named one, with data. Raises NotFound if there is no such workload,
    Invalid for a foreign cursor."""
    with database.reading() as session:
        workload = workloads.require(session, tenant, name)
        return repository.list_executions(session, workload.id, request, execution, data=True)


def delete(database: Database, tenant: str, name: str, execution: str | None, before: datetime | None) -> None:
    """Delete the named execution, or all stored before a time.

    Raises:
        NotFound: there is no such workload or execution.
        Invalid: neither or both are given.
        Conflict: a job that may read them has not ended.
    """
    if (execution is None) == (before is None):
        message = "give one of 'execution' and 'before'"
        raise Invalid(f"samples to delete: {message}", errors=[FieldError("/query/execution", message, execution)])
    with database.session() as session:
        workload = workloads.require(session, tenant, name, lock=True)
        executions = {} if execution is None else repository.stored_executions(session, workload.id, [execution])
        if execution is not None and execution not in executions:
            raise NotFound(f"workload {workload.name!r} has no execution {execution!r}")
        what = f"execution {execution!r}" if execution is not None else f"samples of {workload.name!r}"
        holds.refuse(what, holds.samples(session, workload.id))
        repository.remove(session, [one.id for one in executions.values()])
        if before is not None:
            repository.remove_before(session, workload.id, before)
        detail = {"execution": execution, "before": None if before is None else before.isoformat()}
        audit.add(session, tenant, "sample.delete", f"workload {workload.name}", detail)


def _summarise(database: Database, codec: SampleCodec, rows: Sequence[Execution]) -> None:
    """Compute and store missing summaries, a part at a time.

    Raises:
        DeadlinePassed: the time limit is exceeded; stored summaries are kept.
    """
    fresh: dict[str, Mapping[str, Any]] = {}
    size = 0
    for one in rows:
        with database.reading() as session:
            data = session.scalar(select(Execution.data).where(Execution.id == one.id)) or b""
        one.summary = dict(codec.summary(data)) if data else {"seconds": 0.0}
        fresh[one.id] = one.summary
        size += len(data)
        if size >= SUMMARISED_BYTES or one is rows[-1]:
            with database.session() as session:
                for identifier, summary in fresh.items():
                    session.execute(update(Execution).where(Execution.id == identifier).values(summary=dict(summary)))
            fresh, size = {}, 0


def executions(session: Session, workload: Workload) -> list[tuple[str, Any]]:
    """Names and decoded data of all executions of a workload, oldest first. Raises MissingKind or BrokenRow if the
    workload's spec can't be read."""
    codec = codec_of(workload)
    return [(name, codec.unpack(data)) for name, data in repository.stored_data(session, workload.id)]


def reports_of_run(session: Session, run: str) -> list[tuple[int, dict[str, Any]]]:
    """Iterations and reports of a run, in order."""
    statement = select(Iteration).where(Iteration.run_id == run).order_by(Iteration.iteration)
    rows = session.scalars(statement.execution_options(yield_per=REPORTS_AT_ONCE))
    return [(row.iteration, row.report) for row in rows]


def add_run(
    session: Session, run: Run, cuts: Sequence[repository.Cut] = (), now: Callable[[], datetime] = utc_now
) -> list[dict[str, Any]]:
    """Store a run's reports as a sample of its workload, in the caller's transaction, and return them in order.

    With ``cuts`` each part becomes a sample of its own, stored with the time of its cut, because conditions changed;
    parts replace earlier samples of the run. A run without usable reports gives no sample; repeating it has no effect.
    Without ``cuts``, raises TooManyRequests if the tenant's quota of executions is exceeded.
    """
    workload = session.get_one(Workload, run.workload_id)
    numbered = reports_of_run(session, run.id)
    reports = [report for _, report in numbered]
    if not cuts and (not reports or repository.stored_executions(session, workload.id, [run.id])):
        return reports
    repository.remove_of_run(session, workload.id, run.id)
    if not cuts:
        _add(session, workload, run.id, numbered, now())
        check_quota(session, workload.tenant)
        return reports
    begins = [*([repository.Cut(0, run.created_at)] if cuts[0].since else []), *cuts]
    for (since, at), until in zip(begins, [*(cut.since for cut in begins[1:]), math.inf], strict=True):
        part = [one for one in numbered if since <= one[0] < until]
        _add(session, workload, f"{run.id}{repository.PART}{since}", part, at)
    return reports


def _add(
    session: Session, workload: Workload, name: str, numbered: Sequence[tuple[int, dict[str, Any]]], at: datetime
) -> None:
    if not numbered:
        return
    sample = codec_of(workload).of_run(name, [report for _, report in numbered], numbered[0][0])
    if sample is not None:
        repository.add(session, [row(Target(workload.tenant, workload.id), new_id(), sample, "run", at)])
