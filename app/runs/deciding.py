"""Reports that wait: decided together, one evaluation per workload, and what they say of drifts.

What fails of one report is told to whoever awaits it, and to nobody else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from enum import Enum

import msgspec

from app.drift.detector import NOTHING, Drift, Report, new_notices, observed
from app.kinds.contract.engine import Answered, CompiledWorkload, Pending
from app.kinds.registry import KINDS
from app.runs.live import Live
from app.runs.repository import Entry

logger = logging.getLogger(__name__)
UNDECIDED = Answered(b"", None)


class Verdict(Enum):
    """What became of a report that was not written."""

    CHANGED = "the run has moved on in this process"
    OUTRUN = "another process has moved the run on"


class Item(msgspec.Struct, eq=False):
    """A report that waits: to be decided, then for the disk; as its kind's engine takes it, and as it is answered."""

    live: Live
    compiled: CompiledWorkload
    pending: Pending
    digest: str
    encoded: bytes
    future: asyncio.Future[bytes | Verdict]
    commit: Callable[[], None]
    """Called when it is about to be written: from there on nobody may be answered that it wasn't."""
    answered: Answered = UNDECIDED
    drift: Drift = NOTHING
    entry: Entry | None = None
    """What is written, where that was made aside: by ``decide_aside``."""

    @property
    def risk(self) -> str:
        """Why the run is at risk after the answer: as before where that can't be found out."""
        return self.live.risk if self.answered.risk is None else self.answered.risk


def decided(items: Sequence[Item], now: datetime) -> list[Item]:
    """The items with their answers, one evaluation per workload, but for those that are told they can't be decided."""
    groups: dict[int, list[Item]] = {}
    for item in items:
        groups.setdefault(id(item.compiled), []).append(item)
    return [item for group in groups.values() for item in _group(group, now)]


def _group(items: Sequence[Item], now: datetime) -> Sequence[Item]:
    """Advance each run of a workload by its report, and decide, unless that is done already."""
    waiting = [item for item in items if item.answered is UNDECIDED]
    try:
        if waiting:
            _decide(waiting, now)
    except Exception as error:  # noqa: BLE001 - handed to whoever awaits it
        if len(items) > 1:
            return [one for item in items for one in _group([item], now)]
        _fail(items[0], error)
        return []
    return [item for item in items if item.entry is not None or _is_watched(item, now)]


def _decide(waiting: Sequence[Item], now: datetime) -> None:
    first = waiting[0]
    answers = KINDS[first.live.kind].engine.answer(first.compiled, [item.pending for item in waiting], now)
    for item, answered in zip(waiting, answers, strict=True):
        item.answered = answered


def _is_watched(item: Item, now: datetime) -> bool:
    try:
        _watch(item, now)
    except Exception as error:  # noqa: BLE001 - handed to whoever awaits it
        _fail(item, error)
        return False
    return True


def _fail(item: Item, error: Exception) -> None:
    """Answer one report with what went wrong with it, whatever its neighbours are answered."""
    logger.error("run %s: iteration %d can't be decided", item.live.id, item.pending.iteration, exc_info=error)
    item.future.set_exception(error)


def _watch(item: Item, now: datetime) -> None:
    """Take what a report says of drifts; what is noticed by it stands in its decision."""
    answered, before = item.answered, item.live.drift
    residuals = answered.residuals
    if residuals is None:
        item.drift = before
        return
    snapshot = item.compiled.snapshot
    report = Report(item.pending.iteration, snapshot.model_version, now, snapshot.answering)
    item.drift = observed(before, residuals, report)
    notices = new_notices(before, item.drift)
    if notices:
        logger.warning("run %s: %s", item.live.id, "; ".join(notice.text for notice in notices))
        told = b'%b,"drift":%b}' % (answered.decision[:-1], msgspec.json.encode(notices))
        item.answered = msgspec.structs.replace(answered, decision=told)


def decide_aside(item: Item, now: datetime) -> None:
    """In a thread: the answer to one report that takes long; its report isn't read yet.

    The state that it starts from may be outrun meanwhile, here or elsewhere; then it is never written.

    Raises:
        InvalidInput, Contradiction: the report doesn't fit the run.
    """
    engine, pending = KINDS[item.live.kind].engine, item.pending
    report = engine.read(item.compiled, pending.state, pending.iteration, pending.report)
    item.answered = engine.answer(item.compiled, [msgspec.structs.replace(pending, report=report)], now)[0]
    _watch(item, now)
