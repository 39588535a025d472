"""Storing executions of uploads and runs; their SQL queries and API schemas."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import BaseModel, Field
from sqlalchemy import delete, func, insert, or_, select
from sqlalchemy.orm import Session, undefer

from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Execution
from app.errors import FieldError, Invalid, TooManyRequests
from app.http.caller import current_quotas
from app.http.pagination import PageRequest, Slice, paginate
from app.kinds.contract.inputs import MAXIMUM_NAME, FieldIssue, Refused, Sample, plain, printable
from app.kinds.contract.samples import Format
from app.workloads import service as workloads

# SQL queries on samples.


class KnownExecution(NamedTuple):
    """A stored execution, without its data."""

    id: str
    name: str
    digest: str
    iterations: int


def stored_executions(session: Session, workload_id: str, names: Sequence[str]) -> dict[str, KnownExecution]:
    """The stored executions with these names, by name."""
    columns = select(Execution.id, Execution.name, Execution.digest, Execution.iterations)
    rows = session.execute(columns.where(Execution.workload_id == workload_id, Execution.name.in_(names)))
    return {row.name: KnownExecution(*row) for row in rows}


def add(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Insert executions, each a mapping from column to value, without commit; IntegrityError if a name is stored
    already."""
    if rows:
        session.execute(insert(Execution), rows)


def remove(session: Session, identifiers: Sequence[str]) -> None:
    """Delete executions by id, without commit; unknown ids have no effect."""
    if identifiers:
        session.execute(delete(Execution).where(Execution.id.in_(identifiers)))


def count_of_tenant(session: Session, tenant: str) -> int:
    """Number of a tenant's executions; a lock makes other callers wait until this transaction ends."""
    if session.get_bind().dialect.name == "postgresql":  # SQLite has one writer at a time
        session.execute(select(func.pg_advisory_xact_lock(func.hashtext(f"executions of {tenant}"))))
    return session.scalar(select(func.count(Execution.id)).where(Execution.tenant == tenant)) or 0


def remove_before(session: Session, workload_id: str, before: datetime) -> None:
    """Delete a workload's executions stored before a time, without commit; no effect if there are none."""
    old = (Execution.workload_id == workload_id, Execution.created_at < before)
    session.execute(delete(Execution).where(*old).execution_options(synchronize_session=False))


def count(session: Session, workload_id: str) -> int:
    """Number of a workload's executions."""
    row = session.scalar(select(func.count()).select_from(Execution).where(Execution.workload_id == workload_id))
    return row or 0


def list_executions(
    session: Session, workload_id: str, request: PageRequest, name: str | None = None, *, data: bool = False
) -> Slice[Execution]:
    """One page of a workload's executions, oldest first, or the named one; with their data if ``data``. Raises Invalid
    for a foreign cursor."""
    statement = select(Execution).where(Execution.workload_id == workload_id)
    if data:
        statement = statement.options(undefer(Execution.data))
    if name is not None:
        statement = statement.where(Execution.name == name)
    weigh = _weight if data else None
    return paginate(session, statement, [Execution.created_at, Execution.id], request, weigh=weigh)


def _weight(row: Execution) -> int:
    return len(row.data)


def stored_data(session: Session, workload_id: str) -> Iterator[tuple[str, bytes]]:
    """Names and encoded data of all executions of a workload, oldest first."""
    statement = select(Execution.name, Execution.data).where(Execution.workload_id == workload_id)
    rows = session.execute(statement.order_by(Execution.created_at, Execution.id).execution_options(yield_per=100))
    return ((row.name, row.data) for row in rows)


REPORTS_AT_ONCE = 500
PART = "@"
"""Separator of a run's id and the first iteration, in the name of a sample of a part of it."""


class Cut(NamedTuple):
    """The end of a part of a run: the first drifted iteration, and the time of the notice."""

    since: int
    at: datetime


def remove_of_run(session: Session, workload_id: str, run_id: str) -> None:
    """Delete the samples made from a run, without commit; no effect if there are none."""
    names = or_(Execution.name == run_id, Execution.name.startswith(f"{run_id}{PART}"))
    of_run = Execution.workload_id == workload_id, Execution.source == "run", names
    session.execute(delete(Execution).where(*of_run).execution_options(synchronize_session=False))


# API schemas of samples.


class Rejection(BaseModel):
    """A rejected execution, and why."""

    execution: str
    line: int = Field(description="Line of the file, counting from 1; for application/json the number of the sample.")
    field: str = Field(description="JSON pointer into the report.", examples=["/metrics/iteration_seconds"])
    reason: str = Field(examples=["must be a finite number greater than 0"])
    value: Any = None


class Remark(BaseModel):
    """Something in a trace that looks wrong or was repaired."""

    execution: str
    pointer: str = Field(description="Line or JSON pointer of the first or worst case.", examples=["/lines/12/runtime"])
    message: str
    value: Any = None


class SkippedLines(BaseModel):
    """Lines of a trace skipped for one reason, with `skip_bad`."""

    field: str = Field(description="Invalid column; empty for a whole line.", examples=["runtime"])
    reason: str = Field(examples=["must be a number of seconds from 0, or -1 where it is unknown"])
    count: int = Field(description="Number of lines.")
    lines: list[int] = Field(description="Numbers of the first 20 lines, counting from 1.")


class UploadRead(BaseModel):
    """Result of an upload: numbers of executions stored, duplicate and rejected, and what was wrong."""

    accepted: int = Field(description="Executions stored.")
    duplicate: int = Field(description="Executions already stored with the same content.")
    rejected: int = Field(description="Executions of which nothing was stored.")
    iterations: int = Field(description="Iterations of the accepted executions; for traces, tasks.")
    rejections: list[Rejection] = Field(description="Reasons, one per rejected execution; the first 1,000.")
    lacks: list[str] = Field(default=[], description="Information missing from a trace, and its consequences.")
    warnings: list[Remark] = Field(default=[], description="What looks wrong in a trace or was left out.")
    skipped: list[SkippedLines] = Field(
        default=[], description="Lines skipped with `skip_bad`, by reason, most frequent first; at most 21."
    )


class StoredExecution(BaseModel):
    """A stored execution that can't be read, as stored."""

    kind: str
    execution: str = Field(description="The caller's identifier, or the run's.", examples=["run-17"])
    source: str = Field(description="`upload` or `run`.", examples=["upload"])
    iterations: int = Field(description="Number of iterations; for a trace, of tasks.")
    created_at: datetime
    problem: str = Field(description="Why it can't be read, e.g. its kind isn't installed.")


# Executions are stored in batches while an upload is read, each entirely or not at all.


BATCH_EXECUTIONS = 500
BATCH_BYTES = 4 << 20
QUOTA_SECONDS = 3600
"""Retry-After in seconds for a tenant that has reached its quota, as executions must be deleted first."""
LISTED_REJECTIONS = 1_000
MAXIMUM_REJECTIONS = 100_000


class Target(NamedTuple):
    """Tenant and id of the workload for which samples are stored."""

    tenant: str
    workload_id: str


def row(target: Target, identifier: str, sound: Sample, source: str, now: datetime) -> dict[str, Any]:
    """Column values of the execution ``sound``; ``source``: 'upload' or 'run'; ``now``: time of storage."""
    return {
        "id": identifier,
        "tenant": target.tenant,
        "workload_id": target.workload_id,
        "name": sound.execution,
        "digest": sound.digest,
        "iterations": sound.iterations,
        "data": sound.data,
        "summary": dict(sound.summary),
        "source": source,
        "created_at": now,
    }


def check_quota(session: Session, tenant: str) -> None:
    """Check the tenant's quota of executions, after some were stored in this transaction; TooManyRequests beyond it."""
    most = current_quotas().executions
    if most and count_of_tenant(session, tenant) > most:
        message = f"tenant {tenant} has the maximum of {most:,} stored executions"
        raise TooManyRequests(f"{message}; delete some first", "executions", retry_after=QUOTA_SECONDS)


class Intake:
    """Stores the executions of one upload, and counts the results.

    An execution whose rows are not contiguous is rejected, and its stored rows are deleted. Ids of an upload begin with
    a random token, so that its own executions are recognised without a list of them.
    """

    def __init__(self, database: Database, target: Target, form: Format, now: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._target = target
        self._form = form
        self._now = now
        self._token = secrets.token_hex(8)
        self._sequence = 0
        self._batch: list[Sample | Refused] = []
        self._bytes = 0
        self._spoiled: set[str] = set()
        self.counts = UploadRead(accepted=0, duplicate=0, rejected=0, iterations=0, rejections=[])

    def take(self, item: Sample | Refused) -> None:
        """Add one execution to the batch, which is stored when full. Raises NotFound if the workload was deleted,
        Invalid for more than 100,000 rejections, TooManyRequests if the tenant's quota of executions is exceeded."""
        if isinstance(item, Refused):
            item = item.cut()
        self._batch.append(item)
        if isinstance(item, Sample):
            self._bytes += len(item.data)
            self.counts.lacks += item.lacks
            self.counts.warnings += [_remark(item.execution, issue) for issue in item.warnings]
            self.counts.skipped += [
                SkippedLines(field=one.field, reason=one.reason, count=one.count, lines=list(one.lines))
                for one in item.skipped
            ]
        if len(self._batch) >= BATCH_EXECUTIONS or self._bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Store the batch, in one transaction.

        Raises:
            NotFound: the workload was deleted meanwhile.
            Invalid: more than 100,000 executions were rejected.
            TooManyRequests: the tenant's quota of executions is exceeded; the batch is not stored.
        """
        batch, self._batch, self._bytes = self._batch, [], 0
        if not batch:
            return
        with self._database.session() as session:
            outcome = self._settle(session, batch)
            remove(session, [known.id for known in outcome.taken_back])
            add(session, list(outcome.rows.values()))
            check_quota(session, self._target.tenant)
        counts, taken_back = self.counts, outcome.taken_back
        counts.accepted += len(outcome.rows) - len(taken_back)
        counts.iterations += sum(r["iterations"] for r in outcome.rows.values()) - sum(k.iterations for k in taken_back)
        counts.duplicate += outcome.duplicate
        counts.rejected += len(outcome.rejections)
        room = LISTED_REJECTIONS - len(counts.rejections)
        counts.rejections.extend(outcome.rejections[:room])
        if self.counts.rejected > MAXIMUM_REJECTIONS:
            message = f"stopped after {self.counts.rejected:,} refused executions"
            raise Invalid(message, errors=rejection_errors(self._form, self.counts.rejections[:20]))

    def _settle(self, session: Session, batch: list[Sample | Refused]) -> _Outcome:
        workloads.require(session, self._target.tenant, self._target.workload_id, lock=True)
        names = sorted({item.execution for item in batch if _storable(item.execution)})
        outcome = _Outcome(stored_executions(session, self._target.workload_id, names))
        now = self._now()
        for item in batch:
            if item.execution in self._spoiled:
                continue  # the rest of an execution that was refused already
            refused = item if isinstance(item, Refused) else self._store(item, outcome, now)
            if refused is not None:
                if _storable(refused.execution):  # no other can turn up again and be taken
                    self._spoiled.add(refused.execution)
                pointer, message, value = refused.issue
                name = printable(refused.execution[:300])
                outcome.rejections.append(
                    Rejection(execution=name, line=refused.line, field=pointer, reason=message, value=plain(value))
                )
                present = outcome.present(refused.execution)
                if outcome.rows.pop(refused.execution, None) is None and present is not None and self._ours(present):
                    outcome.taken_back.append(present)
        return outcome

    def _store(self, item: Sample, outcome: _Outcome, now: datetime) -> Refused | None:
        self._sequence += 1
        fresh = row(self._target, f"{self._token}{self._sequence:016x}", item, "upload", now)
        present = outcome.present(item.execution)
        if present is None:
            outcome.rows[item.execution] = fresh
            return None
        if present.digest == fresh["digest"]:
            outcome.duplicate += 1
            return None
        reason = "its rows must be contiguous" if self._ours(present) else "is stored with other content"
        return Refused(item.execution, item.line, FieldIssue("/execution", reason, item.execution))

    def _ours(self, present: KnownExecution) -> bool:
        return present.id.startswith(self._token)


class _Outcome:
    """Rows, deletions, rejections and duplicates of one batch of an upload."""

    def __init__(self, known: dict[str, KnownExecution]) -> None:
        self.known = known
        self.rows: dict[str, dict[str, Any]] = {}
        self.taken_back: list[KnownExecution] = []
        self.rejections: list[Rejection] = []
        self.duplicate = 0

    def present(self, name: str) -> KnownExecution | None:
        """The execution of this name that is stored or in the batch; None if there is none."""
        fresh = self.rows.get(name)
        if fresh is None:
            return self.known.get(name)
        return KnownExecution(fresh["id"], name, fresh["digest"], fresh["iterations"])


def _remark(execution: str, issue: FieldIssue) -> Remark:
    pointer, message, value = issue
    return Remark(execution=execution, pointer=pointer, message=printable(message), value=plain(value))


def _storable(name: str) -> bool:
    return 0 < len(name) <= MAXIMUM_NAME and name.isprintable()


def rejection_errors(form: Format, rejections: list[Rejection]) -> list[FieldError]:
    """Rejections as field errors, with pointers into the uploaded format."""
    return [FieldError(f"{form.place(one.line)}{one.field}", one.reason, one.value) for one in rejections]
