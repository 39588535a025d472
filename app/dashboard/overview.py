"""What the first page tells: each workload's state, and what needs somebody's attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.dashboard import repository, shown
from app.dashboard.on_target import OnTarget, on_target
from app.dashboard.repository import Counts
from app.dashboard.shown import CompiledOf
from app.database.engine import Database
from app.http.pagination import PageRequest
from app.kinds.registry import KINDS
from app.runs import service as runs
from app.workloads import service as workloads
from app.workloads.schemas import WorkloadListed

ROWS, NOTICES = 50, 6
RECENT = timedelta(days=7)
LEAST_SHARE = 0.5


class Summary(NamedTuple):
    """A workload in a line.

    Attributes:
        problem: why it can't be read; empty when it can.
        standing: how many of its ended runs were on target.
    """

    name: str
    kind: str
    resources: str
    targets: str
    problem: str
    champions: dict[str, int]
    counts: Counts
    standing: OnTarget


class Notice(NamedTuple):
    """Something that needs attention: how grave, what it is about, why, and where to look."""

    level: str
    what: str
    why: str
    link: str


class Overview(NamedTuple):
    """The first page."""

    summaries: Sequence[Summary]
    notices: Sequence[Notice]
    runs: Sequence[shown.RunLine]
    more: str | None


def overview(database: Database, tenant: str, compiled_of: CompiledOf, now: datetime) -> Overview:
    """Everything on the first page, of at most ``ROWS`` workloads."""
    found = workloads.listed(database, tenant, PageRequest(ROWS))
    latest = runs.listed(database, tenant, PageRequest(10)).rows
    with database.reading() as session:
        has = repository.counts(session, [row.id for row in found.rows])
        read = [workloads.read_listed(row) for row in found.rows]
        summaries = [_summary(session, one, has[one.id], compiled_of) for one in read]
        notices = [*_failed(session, tenant, now), *_drifted(session, tenant, now)]
        notices += [notice for one in read for notice in _missing(session, one, has[one.id])]
    notices += [_missed(one) for one in summaries if misses(one.standing)]
    lines = [shown.line(runs.read_listed(run)) for run in latest]
    return Overview(summaries, notices[: 2 * NOTICES], lines, found.cursor)


def _summary(session: Session, one: WorkloadListed, has: Counts, compiled_of: CompiledOf) -> Summary:
    told: tuple[str, str] = ("", "")
    if one.problem is None:
        description = KINDS[one.kind].describe(one.spec)
        told = description.resources, description.targets
    standing = on_target(session, one, compiled_of)
    return Summary(one.name, one.kind, *told, one.problem or "", one.champions, has, standing)


def _failed(session: Session, tenant: str, now: datetime) -> Iterator[Notice]:
    for job, workload in repository.failed(session, tenant, now - RECENT, NOTICES):
        why = str((job.error or {}).get("detail", "it says no more"))
        yield Notice("bad", f"{job.type} of {workload} failed", why, f"/ui/jobs/{job.id}")


def _drifted(session: Session, tenant: str, now: datetime) -> Iterator[Notice]:
    for run, workload, drift in repository.drifted(session, tenant, now - RECENT, NOTICES):
        notices: list[Any] = drift.get("notices", [])
        why = notices[-1].get("text", "") if notices else ""
        yield Notice("warn", f"{workload} has drifted", why, f"/ui/runs/{run}")


def _missing(session: Session, one: WorkloadListed, has: Counts) -> Iterator[Notice]:
    """What a workload still needs and nobody sees to, or why no agent answers."""
    if one.problem is not None:
        yield Notice("bad", f"{one.name} can't be read", one.problem, "")
        return
    link = f"/ui/workloads/{one.name}"
    if one.champions or not has.samples or has.working & {"fit", "train"}:
        return
    if has.model is None and KINDS[one.kind].simulated:
        yield Notice(
            "note", f"{one.name} has samples and no model", f"Have one fitted: steward model create {one.name}", link
        )
    elif has.agent is None:
        known = "samples" if has.model is None else "a model"
        yield Notice(
            "note", f"{one.name} has {known} and no agent", f"Have one trained: steward train {one.name}", link
        )
    else:
        why = repository.verdict(session, one.id) or "nobody has promoted one"
        yield Notice("note", f"{one.name} has no champion", why, link)


def misses(standing: OnTarget) -> bool:
    """Whether more ended runs missed than is to be put up with, the newest among them."""
    return standing.newest is not None and standing.hit < LEAST_SHARE * standing.judged


def _missed(one: Summary) -> Notice:
    standing = one.standing
    why = f"{standing.judged - standing.hit} of the last {standing.judged} ended runs missed a target"
    return Notice("warn", f"{one.name} misses its targets", why, f"/ui/runs/{standing.newest}")
