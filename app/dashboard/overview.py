"""What the first page tells: each workload's state, and what needs somebody's attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from sqlalchemy.orm import Session

from app.dashboard import repository, shown
from app.dashboard.repository import Counts, Targets
from app.database.engine import Database
from app.database.tables import Job
from app.http.pagination import PageRequest
from app.kinds.registry import KINDS
from app.runs import service as runs
from app.runs.outcomes import Staleness, stale_reason
from app.workloads import service as workloads
from app.workloads.schemas import WorkloadListed

ROWS, NOTICES = 50, 12
RECENT = timedelta(days=7)
LEVELS = ("bad", "warn")
"""Of notices, the gravest first."""
WORDS = {
    "failed": ("bad", "failed", "failed"),
    "missed": ("bad", "missed its targets", "missed their targets"),
    "at_risk": ("warn", "is at risk", "are at risk"),
    "stale": ("warn", "does not report", "do not report"),
}
"""Outcomes of one run, and of several, as notices name them."""


class Summary(NamedTuple):
    """A workload in a line.

    Attributes:
        problem: why it can't be read; empty when it can.
        met: how many of its ended runs met their targets.
    """

    name: str
    kind: str
    resources: str
    targets: str
    problem: str
    champions: dict[str, int]
    counts: Counts
    met: Targets


class Notice(NamedTuple):
    """Something that needs attention: how grave, what it is about, why, and where to look."""

    level: str
    what: str
    why: str
    link: str


class Overview(NamedTuple):
    """The first page.

    Attributes:
        notices: the gravest.
        further: how many more there are.
    """

    summaries: Sequence[Summary]
    notices: Sequence[Notice]
    further: int
    runs: Sequence[shown.RunLine]
    more: str | None


def overview(database: Database, tenant: str, rule: Staleness) -> Overview:
    """Everything on the first page, of at most ``ROWS`` workloads."""
    found = workloads.listed(database, tenant, PageRequest(ROWS))
    latest = runs.listed(database, tenant, PageRequest(10), rule).rows
    with database.reading() as session:
        has = repository.counts(session, [row.id for row in found.rows])
        read = [workloads.read_listed(row) for row in found.rows]
        met = repository.targets(session, [row.id for row in found.rows])
        summaries = [_summary(one, has[one.id], met[one.id]) for one in read]
        notices = [*_unreadable(read), *_runs(session, tenant, rule), *_drifted(session, tenant, rule)]
        failed, number = repository.failed(session, tenant, rule.now() - RECENT, NOTICES)
    notices += [_job(job, workload) for job, workload in failed]
    number += len(notices) - len(failed)
    notices.sort(key=lambda one: LEVELS.index(one.level))
    lines = [shown.line(runs.read_listed(run)) for run in latest]
    return Overview(summaries, notices[:NOTICES], max(0, number - NOTICES), lines, found.cursor)


def _summary(one: WorkloadListed, has: Counts, met: Targets) -> Summary:
    words: tuple[str, str] = ("", "")
    if one.problem is None:
        description = KINDS[one.kind].describe(one.spec)
        words = description.resources, description.targets
    return Summary(one.name, one.kind, *words, one.problem or "", one.champions, has, met)


def _unreadable(read: Sequence[WorkloadListed]) -> Iterator[Notice]:
    for one in read:
        if one.problem is not None:
            yield Notice("bad", f"{one.name} can't be read", one.problem, "")


def _runs(session: Session, tenant: str, rule: Staleness) -> Iterator[Notice]:
    """One notice for all runs of a workload with the same outcome, with the reason of the newest."""
    for one in repository.troubled(session, tenant, rule.now() - RECENT, rule):
        level, alone, together = WORDS[one.outcome]
        reason = one.reason or "no reason was given"
        if one.outcome == "stale":
            reason = stale_reason(one.silent, one.expected)
        if one.number == 1:
            yield Notice(level, f"A run of {one.workload} {alone}", reason, f"/ui/runs/{one.run}")
        else:
            which = urlencode({"workload": one.workload, "outcome": one.outcome})
            what = f"{one.number:,} runs of {one.workload} {together}"
            yield Notice(level, what, f"the newest: {reason}", f"/ui/runs?{which}")


def _job(job: Job, workload: str) -> Notice:
    why = str((job.error or {}).get("detail", "no reason was given"))
    return Notice("bad", f"{job.type} of {workload} failed", why, f"/ui/jobs/{job.id}")


def _drifted(session: Session, tenant: str, rule: Staleness) -> Iterator[Notice]:
    """One notice for all runs of a workload that have drifted lately, with what the newest says."""
    for workload, run, drift, number in repository.drifted(session, tenant, rule.now() - RECENT):
        notices: list[Any] = (drift or {}).get("notices", [])
        why = notices[-1].get("text", "") if notices else ""
        what = f"{number:,} runs of {workload} have drifted" if number > 1 else f"{workload} has drifted"
        yield Notice("warn", what, f"the newest: {why}" if number > 1 else why, f"/ui/runs/{run}")
