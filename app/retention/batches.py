"""Retention times, rows due to be deleted by them, and their deletion in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import (
    Column,
    ColumnElement,
    CursorResult,
    LargeBinary,
    delete,
    func,
    inspect,
    literal,
    select,
    tuple_,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased, undefer

from app.database.base import UtcDateTime
from app.database.tables import (
    Agent,
    AuditEntry,
    DomainModel,
    Evaluation,
    Iteration,
    Job,
    JobEvent,
    Run,
    Trial,
    Workload,
)
from app.jobs import repository
from app.retention import holds

# API schemas of retention.

Days = Annotated[float | None, Field(gt=0, le=36_500, description="Null: for ever; left out: as the settings say.")]


class Retention(BaseModel):
    """How many days a workload's data is kept before it is archived and deleted.

    What is active, or what something active depends on, is never deleted.
    """

    model_config = ConfigDict(extra="forbid")

    iterations_days: Days = Field(None, description="Iterations, after the end of their run; the last one is kept.")
    runs_days: Days = Field(None, description="Runs with all their remaining data, after their end.")
    jobs_days: Days = Field(None, description="Jobs with their events and trials, after their end.")
    events_days: Days = Field(None, description="Events of jobs, after the job's end; the last one is kept.")
    evaluations_days: Days = Field(None, description="Evaluations.")
    artifacts_days: Days = Field(None, description="Superseded agents and models; the newest is kept.")


class RetentionRead(BaseModel):
    """How many days a workload's data is kept: its own settings, and those in effect."""

    workload: str
    given: Retention = Field(description="Values set for this workload.")
    effective: Retention = Field(description="The same, completed by the service's settings.")


# Due rows: those older than their retention time, unless something active needs them.


class Ages(NamedTuple):
    """For each kind of row, the time before which it must have ended to be due for deletion; None: it is never due.

    Iterations and events end with their run or job; for evaluations and artifacts the time of creation counts.
    """

    iterations: datetime | None
    runs: datetime | None
    jobs: datetime | None
    events: datetime | None
    evaluations: datetime | None
    artifacts: datetime | None


def ages(retention: Retention, now: datetime) -> Ages:
    """Times before which rows are due now, from retention times in days."""
    days = {name: getattr(retention, f"{name}_days") for name in Ages._fields}
    return Ages(**{name: None if age is None else now - timedelta(days=age) for name, age in days.items()})


def first_kept() -> ColumnElement[int]:
    """SQL expression: number of a run's first stored iteration; 0 if none was deleted."""
    return func.coalesce(Run.kept_from, 0)


def ended_runs(session: Session, workload_id: str, before: datetime) -> list[ColumnElement[bool]]:
    """SQL conditions: runs of a workload that ended before a time and aren't needed."""
    needed = holds.needed_runs(session, workload_id)
    return [Run.workload_id == workload_id, Run.state != holds.RUNNING, Run.finished_at < before, Run.id.not_in(needed)]


def ended_jobs(session: Session, workload_id: str, before: datetime) -> list[ColumnElement[bool]]:
    """SQL conditions: jobs of a workload, with trials, that ended before a time and aren't needed."""
    needed = holds.needed_jobs(session, workload_id)
    return [
        Job.workload_id == workload_id,
        Job.state.not_in(repository.OPEN),
        Job.finished_at < before,
        Job.id.not_in(needed),
    ]


def superseded_versions(
    session: Session, workload_id: str, table: type[Agent | DomainModel], before: datetime
) -> list[int]:
    """Versions in ``table`` created before a time, that nothing needs, without the newest version."""
    reasons = holds.agents(session, workload_id) if table is Agent else holds.models(session, workload_id)
    newest = select(func.max(table.version)).where(table.workload_id == workload_id).scalar_subquery()
    old = select(table.version).where(table.workload_id == workload_id, table.created_at < before)
    rows = session.scalars(old.where(table.version < newest).order_by(table.version))
    return [version for version in rows if version not in reasons]


def counts(session: Session, workload_id: str, due: Ages) -> Mapping[str, int]:
    """Number of rows of a workload that are due for deletion, by noun, such as `iterations` or `runs`."""
    old = (
        []
        if due.evaluations is None
        else [Evaluation.workload_id == workload_id, Evaluation.created_at < due.evaluations]
    )
    return {
        "iterations": _iterations(session, workload_id, due),
        "runs": 0 if due.runs is None else _count(session, Run.id, ended_runs(session, workload_id, due.runs)),
        "events": _events(session, workload_id, due),
        "jobs": _jobs(session, workload_id, due.jobs),
        "evaluations": (_count(session, Evaluation.id, old) if old else 0),
        **_artifacts(session, workload_id, due.artifacts),
    }


def _count(session: Session, column: Any, conditions: list[ColumnElement[bool]]) -> int:
    return session.scalar(select(func.count(column)).where(*conditions)) or 0


def _iterations(session: Session, workload_id: str, due: Ages) -> int:
    """Number of iterations due for deletion: all of due runs, all but the last of others that ended long enough ago."""
    iterations = 0
    if due.runs is not None:
        going = ended_runs(session, workload_id, due.runs)
        iterations += session.scalar(select(func.sum(Run.next_iteration - first_kept())).where(*going)) or 0
    if due.iterations is not None:
        old = ended_runs(session, workload_id, due.iterations)
        if due.runs is not None:
            old.append(Run.finished_at >= due.runs)
        left = Run.next_iteration - 1 - first_kept()
        iterations += session.scalar(select(func.sum(left)).where(*old, left > 0)) or 0
    return iterations


def _jobs(session: Session, workload_id: str, before: datetime | None) -> int:
    if before is None:
        return 0
    return _count(session, Job.id, [*ended_jobs(session, workload_id, before), Job.type != "trial"])


def _events(session: Session, workload_id: str, due: Ages) -> int:
    """Number of events due for deletion: all but the last of each job that ended long enough ago."""
    if due.events is None:
        return 0
    jobs = select(Job.id).where(*ended_jobs(session, workload_id, due.events))
    statement = select(func.count() - func.count(JobEvent.job_id.distinct())).where(JobEvent.job_id.in_(jobs))
    return session.scalar(statement) or 0


def _artifacts(session: Session, workload_id: str, before: datetime | None) -> Mapping[str, int]:
    if before is None:
        return {"agents": 0, "models": 0}
    return {
        "agents": len(superseded_versions(session, workload_id, Agent, before)),
        "models": len(superseded_versions(session, workload_id, DomainModel, before)),
    }


# Batches: each is read, archived, and then deleted in one short transaction.
#
# A batch lists its rows, so that repeating it after a crash deletes nothing else.


ROWS = 1_000
JOBS = 100
LARGE_ROWS = 10
CLOCKS_APART = timedelta(days=1)
AUDITED = {"runs": ("run.end", "run.change"), "jobs": ("job.create", "job.cancel")}
"""Actions in the audit log of which there are as many as runs or jobs; their entries are deleted as those are."""
Reading = Callable[[], AbstractContextManager[Session]]
Kinds = Mapping[str, str]
"""Type of each column: text, integer, real, boolean, time, json or bytes."""


class Batch(NamedTuple):
    """Rows that are archived and deleted together.

    Attributes:
        noun: noun of the rows, such as ``runs``.
        rows: the rows as archived, by column.
        kinds: types of the columns.
        delete: deletes those rows that are still unneeded in a session, and returns their number.
    """

    noun: str
    rows: Sequence[Mapping[str, Any]]
    kinds: Kinds
    delete: Callable[[Session], int]


class Piece(NamedTuple):
    """Iterations of a run from ``first`` up to, but without, ``end``."""

    run: str
    first: int
    end: int


def batches(reading: Reading, workload: Workload, ages: Ages) -> Iterator[Batch]:
    """Yield batches of all rows of a workload that are due for deletion, rows that refer to others first."""
    yield from _runs(reading, workload, ages)
    yield from _batches_iterations(reading, workload, ages)
    yield from _batches_jobs(reading, workload, ages)
    yield from _batches_events(reading, workload, ages)
    yield from _batches_evaluations(reading, workload, ages)
    for table, noun in ((Agent, "agents"), (DomainModel, "models")):
        yield from _batches_artifacts(reading, workload, ages, table, noun)


def _pages(reading: Reading, statement: Any, keys: Sequence[InstrumentedAttribute[Any]], limit: int) -> Iterator[Any]:
    """Yield pages of at most ``limit`` rows of a statement, each read after the one before was processed."""
    after: Sequence[Any] | None = None
    while True:
        page = statement if after is None else statement.where(tuple_(*keys) > tuple_(*after))
        with reading() as session:
            rows = session.scalars(page.order_by(*keys).limit(limit)).all()
        if rows:
            yield rows
        if len(rows) < limit:
            return
        after = [literal(getattr(rows[-1], key.key), key.type) for key in keys]


def _ended_runs(reading: Reading, workload: Workload, before: Any) -> Iterator[Sequence[Run]]:
    with reading() as session:
        conditions = ended_runs(session, workload.id, before)
    yield from _pages(reading, select(Run).where(*conditions), [Run.created_at, Run.id], ROWS)


def _runs(reading: Reading, workload: Workload, ages: Ages) -> Iterator[Batch]:
    """Batches of runs due for deletion, each after the batches of their iterations."""
    if ages.runs is None:
        return
    for page in _ended_runs(reading, workload, ages.runs):
        pieces = [Piece(run.id, run.kept_from or 0, run.next_iteration) for run in page]
        yield from _cut(reading, workload, pieces)
        yield Batch("runs", _plain(page), _kinds(Run), partial(_delete_runs, workload, page))


def _delete_runs(workload: Workload, page: Sequence[Run], session: Session) -> int:
    needed, ids = holds.needed_runs(session, workload.id), [run.id for run in page]
    free = (Run.id.in_(ids), Run.id.not_in(needed), Run.state != holds.RUNNING)
    gone = _delete_rows(session, delete(Run).where(*free))
    _forget_audit(session, workload, Run, page)
    return gone


def _batches_iterations(reading: Reading, workload: Workload, ages: Ages) -> Iterator[Batch]:
    """Batches of iterations of kept runs; the last iteration with its decision is kept."""
    if ages.iterations is None:
        return
    for page in _ended_runs(reading, workload, ages.iterations):
        yield from _cut(reading, workload, [Piece(run.id, run.kept_from or 0, run.next_iteration - 1) for run in page])


def _cut(reading: Reading, workload: Workload, pieces: Iterable[Piece]) -> Iterator[Batch]:
    """Batches of up to 1,000 iterations, of a few long runs or many short ones."""
    gathered: list[Piece] = []
    room = ROWS
    for piece in pieces:
        first = piece.first
        while first < piece.end:
            end = min(piece.end, first + room)
            gathered.append(Piece(piece.run, first, end))
            room, first = room - (end - first), end
            if room == 0:
                yield _of_pieces(reading, workload, gathered)
                gathered, room = [], ROWS
    if gathered:
        yield _of_pieces(reading, workload, gathered)


def _of_pieces(reading: Reading, workload: Workload, pieces: Sequence[Piece]) -> Batch:
    rows, kinds = list[Mapping[str, Any]](), {**_kinds(Iteration), "report": "json", "decision": "json"}
    with reading() as session:
        for piece in pieces:
            result = session.scalars(select(Iteration).where(*_within(piece)).order_by(Iteration.iteration))
            rows += [{name: getattr(one, name) for name in kinds} for one in result]
    return Batch("iterations", rows, kinds, partial(_delete_pieces, workload, pieces))


def _within(piece: Piece) -> list[Any]:
    return [Iteration.run_id == piece.run, Iteration.iteration >= piece.first, Iteration.iteration < piece.end]


def _delete_pieces(workload: Workload, pieces: Sequence[Piece], session: Session) -> int:
    needed, gone = holds.needed_runs(session, workload.id), 0
    for piece in pieces:
        ended = (Run.id == piece.run, Run.state != holds.RUNNING, Run.id.not_in(needed))
        change = update(Run).where(*ended, first_kept() <= piece.first).values(kept_from=piece.end)
        if _delete_rows(session, change):
            gone += _delete_rows(session, delete(Iteration).where(*_within(piece)))
    return gone


def _batches_jobs(reading: Reading, workload: Workload, ages: Ages) -> Iterator[Batch]:
    """Batches of jobs due for deletion with their trials, each after the batches of their events."""
    if ages.jobs is None:
        return
    with reading() as session:
        conditions = ended_jobs(session, workload.id, ages.jobs)
    statement = select(Job).where(*conditions, Job.type != "trial")
    for page in _pages(reading, statement, [Job.created_at, Job.id], JOBS):
        ids = [job.id for job in page]
        yield from _events_of(reading, ids, whole=True)
        kinds = {**_kinds(Job), "trials": "json"}
        rows = _with_trials(reading, page)
        yield Batch("jobs", rows, kinds, partial(_delete_jobs, workload, page))


def _with_trials(reading: Reading, jobs: Sequence[Job]) -> list[Mapping[str, Any]]:
    with reading() as session:
        rows = session.scalars(select(Trial).where(Trial.parent_id.in_([job.id for job in jobs]))).all()
    return [
        {**row, "trials": [_trial_columns(trial) for trial in rows if trial.parent_id == row["id"]]}
        for row in _plain(jobs)
    ]


def _trial_columns(trial: Trial) -> dict[str, Any]:
    row = _plain([trial])[0]
    return {name: value for name, value in row.items() if name not in ("created_at", "tenant", "artifact")}


def _delete_jobs(workload: Workload, page: Sequence[Job], session: Session) -> int:
    needed, ids = holds.needed_jobs(session, workload.id), [job.id for job in page]
    free = select(Job.id).where(Job.id.in_(ids), Job.id.not_in(needed), Job.state.not_in(repository.OPEN))
    going = session.scalars(free).all()
    repository.remove(session, going)
    _forget_audit(session, workload, Job, page)
    return len(going)


def _forget_audit(session: Session, workload: Workload, table: type[Run | Job], page: Sequence[Run | Job]) -> None:
    """Delete the entries in the audit log about those runs or jobs of a page that are deleted."""
    noun, ids = table.__tablename__, [row.id for row in page]
    rows = set(session.scalars(select(table.id).where(table.id.in_(ids))))
    first, last = min(row.created_at for row in page), max(row.finished_at or row.created_at for row in page)
    statement = delete(AuditEntry).where(
        AuditEntry.tenant == workload.tenant,
        AuditEntry.created_at.between(first - CLOCKS_APART, last + CLOCKS_APART),  # by an index, which has no targets
        AuditEntry.action.in_(AUDITED[noun]),
        AuditEntry.target.in_([f"{noun.removesuffix('s')} {one}" for one in ids if one not in rows]),
    )
    _delete_rows(session, statement)


def _batches_events(reading: Reading, workload: Workload, ages: Ages) -> Iterator[Batch]:
    """Batches of events of kept jobs; the last event is kept."""
    if ages.events is None:
        return
    with reading() as session:
        conditions = ended_jobs(session, workload.id, ages.events)
    for page in _pages(reading, select(Job).where(*conditions), [Job.created_at, Job.id], JOBS):
        yield from _events_of(reading, [job.id for job in page], whole=False)


def _events_of(reading: Reading, jobs: Sequence[str], *, whole: bool) -> Iterator[Batch]:
    """Batches of events of jobs; with ``whole`` all, deleted with their jobs, else all but the last of each."""
    statement = select(JobEvent).where(JobEvent.job_id.in_(jobs))
    if not whole:
        other = aliased(JobEvent)
        last = select(func.max(other.sequence)).where(other.job_id == JobEvent.job_id).scalar_subquery()
        statement = statement.where(JobEvent.sequence < last)
    for page in _pages(reading, statement, [JobEvent.job_id, JobEvent.sequence], ROWS):
        ends = {} if whole else {event.job_id: event.sequence for event in page}
        yield Batch("events", _plain(page), _kinds(JobEvent), partial(_delete_events, ends))


def _delete_events(ends: Mapping[str, int], session: Session) -> int:
    each = (
        delete(JobEvent).where(JobEvent.job_id == job, JobEvent.sequence <= sequence) for job, sequence in ends.items()
    )
    return sum(_delete_rows(session, statement) for statement in each)


def _batches_evaluations(reading: Reading, workload: Workload, ages: Ages) -> Iterator[Batch]:
    if ages.evaluations is None:
        return
    old = select(Evaluation).where(Evaluation.workload_id == workload.id, Evaluation.created_at < ages.evaluations)
    statement = old.options(undefer(Evaluation.report), undefer(Evaluation.page))
    for page in _pages(reading, statement, [Evaluation.created_at, Evaluation.id], LARGE_ROWS):
        going = delete(Evaluation).where(Evaluation.id.in_([one.id for one in page]))
        kinds = _kinds(Evaluation, whole=True)
        yield Batch("evaluations", _plain(page), kinds, partial(_delete_all, going))


def _batches_artifacts(
    reading: Reading, workload: Workload, ages: Ages, table: type[Agent | DomainModel], noun: str
) -> Iterator[Batch]:
    """Batches of superseded versions, with their artifacts."""
    if ages.artifacts is None:
        return
    before = ages.artifacts
    with reading() as session:
        versions = superseded_versions(session, workload.id, table, before)
    large = undefer(Agent.artifact if table is Agent else DomainModel.table)
    for start in range(0, len(versions), LARGE_ROWS):
        some = versions[start : start + LARGE_ROWS]
        with reading() as session:
            statement = select(table).where(table.workload_id == workload.id, table.version.in_(some))
            rows = _plain(session.scalars(statement.options(large)))

        def go(session: Session, some: Sequence[int] = some) -> int:
            return _delete_versions(
                session, workload, table, superseded_versions(session, workload.id, table, before), some
            )

        yield Batch(noun, rows, _kinds(table, whole=True), go)


def _delete_versions(
    session: Session, workload: Workload, table: type[Agent | DomainModel], free: Sequence[int], some: Sequence[int]
) -> int:
    """Delete those of the versions ``some`` that are in ``free`` (unneeded now), and return their number.

    The workload's row is locked, as promotions and trainings lock it.
    """
    row = session.get(Workload, workload.id, with_for_update=True)
    going = [version for version in some if version in free]
    if row is None or not going:
        return 0
    holds.forget_version(row, **{"agent" if table is Agent else "model": max(going)})
    return _delete_rows(session, delete(table).where(table.workload_id == workload.id, table.version.in_(going)))


def _delete_all(statement: Any, session: Session) -> int:
    return _delete_rows(session, statement)


def _delete_rows(session: Session, statement: Any) -> int:
    done = session.execute(statement.execution_options(synchronize_session=False))
    return cast("CursorResult[Any]", done).rowcount


def _plain(rows: Iterable[Any]) -> list[Mapping[str, Any]]:
    """The loaded columns of rows, by name."""
    return [{name: value for name, value in vars(row).items() if not name.startswith("_")} for row in rows]


def _kinds(table: Any, *, whole: bool = False) -> Kinds:
    """Types of a table's columns; large binary ones only if ``whole``."""
    columns = inspect(table).local_table.columns
    return {one.name: _kind(one) for one in columns if whole or not isinstance(one.type, LargeBinary)}


def _kind(column: Column[Any]) -> str:
    if isinstance(column.type, UtcDateTime):
        return "time"
    held_as = column.type.python_type
    return {str: "text", bool: "boolean", int: "integer", float: "real", bytes: "bytes"}.get(held_as, "json")
