"""Storing executions while an upload is still being read: in batches, each execution whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.database.base import utc_now
from app.database.engine import Database
from app.errors import FieldError, Invalid, TooManyRequests
from app.http.caller import current_quotas
from app.kinds.contract.inputs import FieldIssue
from app.kinds.contract.reading import Refused, Sample
from app.kinds.contract.samples import Format
from app.kinds.contract.text import MAXIMUM_NAME, plain, printable
from app.samples import repository
from app.samples.repository import Known
from app.samples.schemas import Rejection, Remark, SkippedLines, UploadRead
from app.workloads import service as workloads

BATCH_EXECUTIONS = 500
BATCH_BYTES = 4 << 20
QUOTA_SECONDS = 3600
"""After which it is worth asking again: somebody has to delete some first."""
LISTED_REJECTIONS = 1_000
MAXIMUM_REJECTIONS = 100_000


class Target(NamedTuple):
    """The workload that samples are stored for."""

    tenant: str
    workload_id: str


def row(target: Target, identifier: str, sound: Sample, source: str, now: datetime) -> dict[str, Any]:
    """An execution as a row of its table."""
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
    """Called in the transaction that has stored executions, which ends with it.

    Raises:
        TooManyRequests: the tenant has more of them than it may.
    """
    most = current_quotas().executions
    if most and repository.count_of_tenant(session, tenant) > most:
        message = f"tenant {tenant} may have {most:,} executions stored, and would have more"
        raise TooManyRequests(f"{message}; delete some first", retry_after=QUOTA_SECONDS)


class Intake:
    """Takes the executions of one upload, and counts what became of them.

    An execution whose rows turn up again further down was not in one block: it is refused, and what had been stored of
    it is taken back. Which those are is seen from their identifiers: an upload's begin with a token of its own, so
    nothing has to be remembered of accepted executions, however many there are.
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
        """One more execution; it is stored with the next batch."""
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
        """Store what was taken, in one transaction.

        Raises:
            NotFound: the workload was deleted meanwhile.
            Invalid: far too many executions were refused to go on.
            TooManyRequests: the tenant would have more executions than it may; the batch is not stored.
        """
        batch, self._batch, self._bytes = self._batch, [], 0
        if not batch:
            return
        with self._database.session() as session:
            outcome = self._settle(session, batch)
            repository.remove(session, [known.id for known in outcome.taken_back])
            repository.add(session, list(outcome.rows.values()))
            check_quota(session, self._target.tenant)
        self._count(outcome)
        if self.counts.rejected > MAXIMUM_REJECTIONS:
            message = f"stopped after {self.counts.rejected:,} refused executions"
            raise Invalid(message, errors=rejection_errors(self._form, self.counts.rejections[:20]))

    def _settle(self, session: Session, batch: list[Sample | Refused]) -> _Outcome:
        workloads.require(session, self._target.tenant, self._target.workload_id, lock=True)
        names = sorted({item.execution for item in batch if _storable(item.execution)})
        outcome = _Outcome(repository.known(session, self._target.workload_id, names))
        now = self._now()
        for item in batch:
            if item.execution in self._spoiled:
                continue  # the rest of an execution that was refused already
            refused = item if isinstance(item, Refused) else self._store(item, outcome, now)
            if refused is not None:
                self._refuse(refused, outcome)
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
        reason = "its rows must stand in one block" if self._ours(present) else "is stored with other content"
        return Refused(item.execution, item.line, FieldIssue("/execution", reason, item.execution))

    def _refuse(self, refused: Refused, outcome: _Outcome) -> None:
        if _storable(refused.execution):  # no other can turn up again and be taken
            self._spoiled.add(refused.execution)
        outcome.rejections.append(_rejection(refused))
        present = outcome.present(refused.execution)
        if outcome.rows.pop(refused.execution, None) is None and present is not None and self._ours(present):
            outcome.taken_back.append(present)

    def _ours(self, present: Known) -> bool:
        return present.id.startswith(self._token)

    def _count(self, outcome: _Outcome) -> None:
        counts, taken_back = self.counts, outcome.taken_back
        counts.accepted += len(outcome.rows) - len(taken_back)
        counts.iterations += sum(r["iterations"] for r in outcome.rows.values()) - sum(k.iterations for k in taken_back)
        counts.duplicate += outcome.duplicate
        counts.rejected += len(outcome.rejections)
        room = LISTED_REJECTIONS - len(counts.rejections)
        counts.rejections.extend(outcome.rejections[:room])


class _Outcome:
    """What a batch comes to."""

    def __init__(self, known: dict[str, Known]) -> None:
        self.known = known
        self.rows: dict[str, dict[str, Any]] = {}
        self.taken_back: list[Known] = []
        self.rejections: list[Rejection] = []
        self.duplicate = 0

    def present(self, name: str) -> Known | None:
        """What is stored, or about to be, under a name."""
        fresh = self.rows.get(name)
        if fresh is None:
            return self.known.get(name)
        return Known(fresh["id"], name, fresh["digest"], fresh["iterations"])


def _rejection(refused: Refused) -> Rejection:
    pointer, message, value = refused.issue
    name = printable(refused.execution[:300])
    return Rejection(execution=name, line=refused.line, field=pointer, reason=message, value=plain(value))


def _remark(execution: str, issue: FieldIssue) -> Remark:
    pointer, message, value = issue
    return Remark(execution=execution, pointer=pointer, message=printable(message), value=plain(value))


def _storable(name: str) -> bool:
    return 0 < len(name) <= MAXIMUM_NAME and name.isprintable()


def rejection_errors(form: Format, rejections: list[Rejection]) -> list[FieldError]:
    """Rejections as the errors of a problem, pointing into what was sent in a format."""
    return [FieldError(f"{form.place(one.line)}{one.field}", one.reason, one.value) for one in rejections]
