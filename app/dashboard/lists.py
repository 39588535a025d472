"""Runs as lines of lists, with what their kinds tell of them; and the home page."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from sqlalchemy.orm import Session

from app.charts.text import NOTHING, duration, money, percent
from app.dashboard import repository
from app.dashboard.repository import Counts, Targets
from app.database.engine import Database
from app.database.tables import Job
from app.http.pagination import PageRequest
from app.kinds.contract.inputs import BrokenRow
from app.kinds.contract.views import MOST_STEPS, RunHistory, Standing, Step, Views
from app.kinds.registry import KINDS, MissingKind
from app.runs import outcomes, standing
from app.runs import service as runs
from app.runs.outcomes import Staleness, stale_reason
from app.runs.repository import LoadedRun
from app.workloads import service as workloads
from app.workloads.service import WorkloadListed

# Runs and workloads as their kinds describe them.


logger = logging.getLogger(__name__)

CompiledOf = Callable[[str], Any]
"""Function from a workload's name to its compiled form."""


def compiler_of(request: Request, tenant: str) -> CompiledOf:
    """Function that compiles the tenant's workloads as stored now.

    The cache of decisions may be a polling interval behind, and a page's charts would contradict its lists.
    """
    return partial(request.app.state.compiled_workloads.current, tenant=tenant)


class RunLine(NamedTuple):
    """A run in a list, with ``stands``: how far it is, as far as its kind tells.

    Attributes:
        chance: lowest probability of meeting a target (0 to 1), of a live run; None: not known.
        cost: what it cost so far, in the prices' currency; None: not known.
        seconds: seconds since its start, or until its end.
        live: whether it has not ended.
    """

    id: str
    workload: str
    outcome: str
    outcome_reason: str
    iterations: int
    stands: Standing
    chance: float | None
    cost: float | None
    seconds: float
    live: bool
    drifted: bool
    created_at: datetime
    finished_at: datetime | None

    @property
    def progress(self) -> str:
        """Reported iterations, of how many."""
        return f"{self.iterations:,}" if self.stands.of is None else f"{self.iterations:,} of {self.stands.of:,}"

    @property
    def elapsed(self) -> str:
        """Measured time, of the deadline."""
        if self.stands.elapsed is None:
            return NOTHING
        so_far = duration(self.stands.elapsed)
        return so_far if self.stands.deadline is None else f"{so_far} of {duration(self.stands.deadline)}"

    @property
    def likely(self) -> str:
        """Lowest probability of meeting a target, in per cent and never certain."""
        return NOTHING if self.chance is None else percent(min(max(self.chance, 0.01), 0.99), 0)

    @property
    def spent(self) -> str:
        """Cost in the configured currency."""
        return NOTHING if self.cost is None else money(self.cost)


def run_lines(database: Database, found: Sequence[LoadedRun], rule: Staleness) -> list[RunLine]:
    """Runs as lines of a list; ``rule`` has the clock."""
    with database.reading() as session:
        known = standing.of_runs(session, [one.run.id for one in found])
    return [_line(one, known.get(one.run.id, Standing()), rule) for one in found]


def _line(loaded: LoadedRun, stands: Standing, rule: Staleness) -> RunLine:
    run, kind = loaded.run, views(loaded.kind)
    live = run.finished_at is None
    decision = run.decision if loaded.last is None else loaded.last.decision
    why = outcomes.reason(run, loaded.outcome, loaded.silent_seconds, loaded.expected) or ""
    return RunLine(
        run.id,
        loaded.workload,
        loaded.outcome,
        why,
        run.next_iteration,
        stands,
        kind.chance(decision) if live and kind is not None else None,
        standing.stored_cost(run) if stands.cost is None else stands.cost,
        max(0.0, ((run.finished_at or rule.now()) - run.created_at).total_seconds()),
        live,
        run.drifts > 0,
        run.created_at,
        run.finished_at,
    )


def views(kind: str) -> Views | None:
    """A kind's views; None if it has none or isn't installed."""
    return KINDS[kind].views if kind in KINDS else None


def numbers(iterations: int, most: int = MOST_STEPS) -> tuple[list[int], int]:
    """Evenly spaced iterations of a run, about ``most`` at most, with the last one; and their spacing in iterations."""
    every = max(1, -(-iterations // most))
    found = list(range(0, iterations, every))
    if found and found[-1] != iterations - 1:
        found.append(iterations - 1)
    return found, every


def run_with_reports(session: Session, loaded: LoadedRun) -> RunHistory:
    """A run with the reports to show; deleted ones are missing."""
    run, kind = loaded.run, views(loaded.kind)
    chosen, every = numbers(run.next_iteration, MOST_STEPS if kind is None else kind.most)
    found = repository.iterations(session, run.id, chosen)
    steps = [Step(row.iteration, row.report, row.decision, row.reported_at) for row in found]
    return RunHistory(run.start, run.decision, state(loaded.kind, run.state_vector), run.next_iteration, steps, every)


def state(kind: str, stored: Any) -> Any:
    """A run's state restored by its engine; None if it can't be read."""
    try:
        return KINDS[kind].engine.restore(stored).state
    except (MissingKind, BrokenRow, LookupError, TypeError, ValueError):
        return None


def view_or_problem(what: str, make: Callable[[], Sequence[Any]]) -> tuple[list[Any], str]:
    """Result of a kind's view, and a problem in words if the view raises, so that the rest of the page is shown.

    ``what``: name of the view, for the problem. Never raises.
    """
    try:
        return list(make()), ""
    except Exception as error:  # whatever a kind from outside may raise
        logger.exception("%s can't be shown", what)
        return [], f"{what} can't be shown: {type(error).__name__}: {error}"


def compiled_or_none(compiled_of: CompiledOf, workload: str) -> Any:
    """The compiled workload; None if its kind isn't installed or its spec can't be read."""
    try:
        return compiled_of(workload)
    except (MissingKind, BrokenRow):
        return None


def reason(decision: Mapping[str, Any]) -> str:
    """A stored decision's reason in words; empty without one."""
    found = decision.get("reason")
    return str(found.get("text", "")) if isinstance(found, Mapping) else ""


# The home page: state of each workload, and notices.


ROWS, NOTICES = 50, 12
RECENT = timedelta(days=7)
LEVELS = ("bad", "warn")
"""Levels of notices, the gravest first."""
WORDS = {
    "failed": ("bad", "failed", "failed"),
    "missed": ("bad", "missed its targets", "missed their targets"),
    "at_risk": ("warn", "is at risk", "are at risk"),
    "stale": ("warn", "does not report", "do not report"),
}
"""Level and words of notices by outcome, for one run and for several."""


class Summary(NamedTuple):
    """A workload on the home page, in words.

    Attributes:
        problem: why it can't be read; empty if it can.
        champions: version of the champion by role.
        met: how many of its newest judged runs met their targets.
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
    """Something that needs attention: its level, subject and reason, and a link."""

    level: str
    what: str
    why: str
    link: str


class Overview(NamedTuple):
    """Content of the home page.

    ``notices``: the gravest notices; ``further``: number of others; ``more``: cursor of the next page, None: there is
    none.
    """

    summaries: Sequence[Summary]
    notices: Sequence[Notice]
    further: int
    runs: Sequence[RunLine]
    more: str | None


def overview(database: Database, tenant: str, rule: Staleness) -> Overview:
    """Content of the home page, with at most 50 workloads; ``rule``: when a live run is stale."""
    found = workloads.list_workloads(database, tenant, PageRequest(ROWS))
    latest = runs.list_runs(database, tenant, PageRequest(10), rule).rows
    with database.reading() as session:
        has = repository.counts(session, [row.id for row in found.rows])
        read = [workloads.read_listed(row) for row in found.rows]
        met = repository.targets(session, [row.id for row in found.rows])
        summaries = [_summary(one, has[one.id], met[one.id]) for one in read]
        notices = [*_unreadable(read), *_runs(session, tenant, rule), *_drift_notices(session, tenant, rule)]
        failed, number = repository.failed_jobs(session, tenant, rule.now() - RECENT, NOTICES)
    notices += [_job(job, workload) for job, workload in failed]
    number += len(notices) - len(failed)
    notices.sort(key=lambda one: LEVELS.index(one.level))
    lines = run_lines(database, latest, rule)
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
    """One notice per workload and outcome, with the reason of the newest run."""
    for one in repository.troubled_runs(session, tenant, rule.now() - RECENT, rule):
        level, alone, together = WORDS[one.outcome]
        reason = one.reason or "no reason was given"
        if one.outcome == "stale":
            reason = stale_reason(one.silent_seconds, one.expected)
        if one.number == 1:
            yield Notice(level, f"A run of {one.workload} {alone}", reason, f"/ui/runs/{one.run}")
        else:
            which = urlencode({"workload": one.workload, "outcome": one.outcome})
            what = f"{one.number:,} runs of {one.workload} {together}"
            yield Notice(level, what, f"the newest: {reason}", f"/ui/runs?{which}")


def _job(job: Job, workload: str) -> Notice:
    why = str((job.error or {}).get("detail", "no reason was given"))
    return Notice("bad", f"{job.type} of {workload} failed", why, f"/ui/jobs/{job.id}")


def _drift_notices(session: Session, tenant: str, rule: Staleness) -> Iterator[Notice]:
    """One notice per workload with recent drift, with the text of the newest run."""
    for workload, run, drift, number in repository.drifted_runs(session, tenant, rule.now() - RECENT):
        notices: list[Any] = (drift or {}).get("notices", [])
        why = notices[-1].get("text", "") if notices else ""
        what = f"{number:,} runs of {workload} have drifted" if number > 1 else f"{workload} has drifted"
        yield Notice("warn", what, f"the newest: {why}" if number > 1 else why, f"/ui/runs/{run}")
