"""Runs as lines of lists, with what their kinds tell of them; and the home page."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from sqlalchemy.orm import Session

from app.charts.text import NOTHING, duration, money, probability
from app.dashboard import repository
from app.dashboard.repository import Counts, Outcomes, TroubledWorkload
from app.database.engine import Database
from app.database.tables import Job
from app.http.pagination import PageRequest
from app.jobs.repository import JOB_REMEDY, failure
from app.kinds.contract.inputs import BrokenRow
from app.kinds.contract.views import MOST_STEPS, RunHistory, Standing, Step, Views
from app.kinds.registry import KINDS, MissingKind, read_or_raw, read_spec
from app.runs import outcomes, savings, standing
from app.runs import service as runs
from app.runs.outcomes import HAPPENED, Staleness, is_capped, stale_reason
from app.runs.outcomes import remedy as remedy_of
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
        not_granted: state of a requested allocation that a live run doesn't have; empty: there is none.
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
    not_granted: str = ""

    @property
    def progress(self) -> str:
        """Number of reported iterations as text, with the number in all if it is known: “25 of 90”."""
        return f"{self.iterations:,}" if self.stands.of is None else f"{self.iterations:,} of {self.stands.of:,}"

    @property
    def elapsed(self) -> str:
        """Duration of the reported iterations as text, with the deadline: “3 min of 1 h”; “–”: unknown."""
        if self.stands.elapsed is None:
            return NOTHING
        so_far = duration(self.stands.elapsed)
        return so_far if self.stands.deadline is None else f"{so_far} of {duration(self.stands.deadline)}"

    @property
    def likely(self) -> str:
        """Lowest probability of meeting a target as text, in per cent; “–”: unknown."""
        return NOTHING if self.chance is None else probability(self.chance)

    @property
    def spent(self) -> str:
        """Cost so far as text, in the configured currency; “–”: unknown."""
        return NOTHING if self.cost is None else money(self.cost)


def run_lines(database: Database, loaded_runs: Sequence[LoadedRun], rule: Staleness) -> list[RunLine]:
    """Runs as lines of a list; ``rule`` has the clock."""
    with database.reading() as session:
        known = standing.of_runs(session, [one.run.id for one in loaded_runs])
    return [_line(one, known.get(one.run.id, Standing()), rule) for one in loaded_runs]


def _line(loaded: LoadedRun, stands: Standing, rule: Staleness) -> RunLine:
    run, kind = loaded.run, views(loaded.kind)
    live = run.finished_at is None
    decision = run.decision if loaded.last is None else loaded.last.decision
    why = outcomes.reason(run, loaded.outcome, loaded.silent_seconds, loaded.expected) or ""
    chance = kind.chance(decision) if live and kind is not None else None
    cost = standing.stored_cost(run.savings) if stands.cost is None else stands.cost
    seconds = max(0.0, ((run.finished_at or rule.now()) - run.created_at).total_seconds())
    return RunLine(
        *(run.id, loaded.workload, loaded.outcome, why, run.next_iteration, stands, chance, cost, seconds, live),
        *(run.drifts > 0, run.created_at, run.finished_at),
        (decision.get("granted") or {}).get("state", "") if live else "",
    )


def views(kind: str) -> Views | None:
    """A kind's views; None if it has none or isn't installed."""
    return KINDS[kind].views if kind in KINDS else None


def numbers(iterations: int, most: int = MOST_STEPS) -> tuple[list[int], int]:
    """Evenly spaced iterations of a run, about ``most`` at most, with the last one; and their spacing in iterations."""
    every = max(1, -(-iterations // most))
    numbers = list(range(0, iterations, every))
    if numbers and numbers[-1] != iterations - 1:
        numbers.append(iterations - 1)
    return numbers, every


def run_with_reports(session: Session, loaded: LoadedRun) -> RunHistory:
    """A run with about as many evenly spaced reports as its kind's charts show; deleted reports are missing."""
    run, kind = loaded.run, views(loaded.kind)
    chosen, every = numbers(run.next_iteration, MOST_STEPS if kind is None else kind.most)
    iterations = repository.iterations(session, run.id, chosen)
    steps = [Step(row.iteration, row.report, row.decision, row.reported_at) for row in iterations]
    now, live = state(loaded.kind, run.state_vector), run.state == "running"
    return RunHistory(run.start, run.decision, now, run.next_iteration, steps, every, live)


def state(kind: str, stored: Any) -> Any:
    """A run's state as its kind restores it from what is stored; None if it can't be read."""
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
    reason = decision.get("reason")
    return str(reason.get("text", "")) if isinstance(reason, Mapping) else ""


# The home page: what needs attention and what to do about it, facts of the whole, and a line for each workload.


ROWS, NOTICES = 50, 9
RECENT = timedelta(days=7)
LEVELS = ("bad", "warn")
"""Levels of notices, the gravest first."""
GRAVE, DANGERS = ("failed", "missed", "cap_reached"), ("at_risk", "stale")
TOGETHER = {
    "failed": "failed",
    "missed": "missed their targets",
    "cap_reached": "were stopped at a cap",
    "at_risk": "are at risk",
    "stale": "do not report",
}
"""Predicates of sentences about several runs, by outcome."""
UNREADABLE_REMEDY = "install its kind's package, or register it again"
DRIFT_REMEDY = "fit its model again, and train a new agent"


class Summary(NamedTuple):
    """A workload on the home page, in words.

    Attributes:
        problem: why it can't be read; empty if it can.
        champions: version of the champion by role.
        runs: numbers of its runs, running or ended in the last 7 days.
        danger: which of at_risk and stale some of its runs are.
        saved: cost that its runs saved this month against the largest allocation, in words; empty: not known.
    """

    name: str
    kind: str
    resources: str
    targets: str
    problem: str
    champions: dict[str, int]
    counts: Counts
    runs: Outcomes
    danger: Sequence[str]
    saved: str


class Action(NamedTuple):
    """Action of a notice's button: an ``operation`` of the API at ``path``, or a link there for those who may do it.

    Attributes:
        then: page that is opened afterwards, with ``{id}`` of the answer; empty: the same page.
        goes: whether ``path`` is a page to go to.
    """

    words: str
    operation: str
    path: str
    then: str = ""
    body: Mapping[str, str] | None = None
    confirm: str = ""
    goes: bool = False


class Notice(NamedTuple):
    """Something that needs attention: level, subject, reason, what to do about it, link, and a button that does it."""

    level: str
    what: str
    why: str
    remedy: str
    link: str
    action: Action | None = None


class Facts(NamedTuple):
    """Numbers of a tenant's runs (``runs``), of those at risk and stale now, and of failed jobs; and what was saved in
    ``month``, in words: against the largest and the best fixed allocation (empty: unknown). ``unmeasured``: number of
    runs without a measurement at one of these, which are not counted."""

    runs: Outcomes
    at_risk: int
    stale: int
    failed_jobs: int
    saved: Sequence[str]
    unmeasured: int
    month: str


class Overview(NamedTuple):
    """Content of the home page.

    ``notices``: the gravest notices; ``further``: number of others; ``more``: cursor of the next page, None: there is
    none.
    """

    facts: Facts
    summaries: Sequence[Summary]
    notices: Sequence[Notice]
    further: int
    runs: Sequence[RunLine]
    more: str | None


def overview(database: Database, tenant: str, rule: Staleness) -> Overview:
    """Content of the home page, with at most 50 workloads; ``rule``: when a live run is stale."""
    result = workloads.list_workloads(database, tenant, PageRequest(ROWS))
    latest = runs.list_runs(database, tenant, PageRequest(10), rule).rows
    now = rule.now()
    month = datetime(now.year, now.month, 1, tzinfo=UTC)
    with database.reading() as session:
        has = repository.counts(session, [row.id for row in result.rows])
        read = [workloads.read_listed(row) for row in result.rows]
        ended = repository.outcomes(session, tenant, now - RECENT, rule)
        troubled = repository.troubled_runs(session, tenant, now - RECENT, rule)
        saved = savings.saved_since(session, tenant, month)
        notices = [*_unreadable(read), *map(_run, troubled), *_drift_notices(session, tenant, rule)]
        failed, number = repository.failed_jobs(session, tenant, now - RECENT, NOTICES)
    notices += [_job(job, workload) for job, workload in failed]
    further = number + len(notices) - len(failed) - NOTICES
    notices.sort(key=lambda one: LEVELS.index(one.level))
    summaries = []
    for one in read:
        danger = [each.outcome for each in troubled if each.workload == one.name and each.outcome in DANGERS]
        of = ended.get(one.id, Outcomes())
        summaries.append(_summary(one, has.get(one.id, Counts()), of, danger, saved.get(one.id)))
    live = Counter[str]()
    for trouble in troubled:
        live[trouble.outcome] += trouble.number
    total = Outcomes(*map(sum, zip(*ended.values(), strict=True))) if ended else Outcomes()
    sums = savings.total(saved).values() if saved else ()
    costs = [saved_in_words(one.cost) if one.runs else "unknown" for one in sums]
    unmeasured = max((one.unmeasured for one in sums), default=0)
    facts = Facts(total, live["at_risk"], live["stale"], number, costs, unmeasured, f"{month:%B}")
    shown, further = notices[:NOTICES], max(0, further)
    return Overview(facts, summaries, shown, further, run_lines(database, latest, rule), result.cursor)


def _summary(
    one: WorkloadListed, has: Counts, of: Outcomes, danger: Sequence[str], saved: Mapping[str, savings.Saved] | None
) -> Summary:
    words: tuple[str, str] = ("", "")
    if one.problem is None:
        description = KINDS[one.kind].describe(one.spec)
        words = description.resources, description.targets
    cost = saved_in_words(saved["largest"].cost) if saved is not None and saved["largest"].runs else ""
    return Summary(one.name, one.kind, *words, one.problem or "", one.champions, has, of, danger, cost)


def saved_in_words(cost: float) -> str:
    """A saved cost: “$4.15”, or “$4.15 lost” if it is below 0."""
    return money(cost) if cost >= 0 else f"{money(-cost)} lost"


def _unreadable(read: Sequence[WorkloadListed]) -> Iterator[Notice]:
    for one in read:
        if one.problem is not None:
            link = f"/ui/workloads/{one.name}"
            yield Notice("bad", f"{one.name} can't be read", one.problem, UNREADABLE_REMEDY, link)


def _run(one: TroubledWorkload) -> Notice:
    """A notice of all runs of a workload with one outcome, with the reason of the newest."""
    level = "bad" if one.outcome in GRAVE else "warn"
    silent = one.outcome == "stale"
    reason = stale_reason(one.silent_seconds, one.expected) if silent else one.reason or "no reason was given"
    spec, problem = read_or_raw(read_spec, one.spec)
    remedy, kind = remedy_of(one.outcome, reason, None if problem else spec), "" if problem else str(spec.kind)
    if one.number == 1:
        what = f"Run {one.run[:8]} of {one.workload} {HAPPENED[one.outcome]}"
        return Notice(level, what, reason, remedy, f"/ui/runs/{one.run}", _run_action(one, kind))
    which = urlencode({"workload": one.workload, "outcome": one.outcome})
    what = f"{one.number:,} runs of {one.workload} {TOGETHER[one.outcome]}"
    do = None if one.outcome == "stale" else _run_action(one, kind)  # of each run, it may be another
    return Notice(level, what, f"the newest, {one.run[:8]}: {reason}", remedy, f"/ui/runs?{which}", do)


def _run_action(one: TroubledWorkload, kind: str) -> Action | None:
    if one.outcome == "stale":
        body = {"state": "failed", "reason": "ended as failed on the overview: it does not report"}
        sure = "End this run as failed? It takes no more reports."
        return Action("End as failed", "PATCH /runs/{run}", f"/runs/{one.run}", body=body, confirm=sure)
    if one.outcome not in ("at_risk", "missed") or not kind or is_capped(one.outcome, one.reason or ""):
        return None
    if one.outcome == "at_risk" and one.number == 1 and "targets" in KINDS[kind].start.model_fields:
        return Action("Change targets", "PATCH /runs/{run}", f"/ui/runs/{one.run}#retarget", goes=True)
    if "targets" in KINDS[kind].patch.model_fields:
        page = f"/ui/workloads/{one.workload}/spec#change"
        return Action("Change targets", "PATCH /workloads/{workload}", page, goes=True)
    return None


def _job(job: Job, workload: str) -> Notice:
    again = Action("Retry", "POST /jobs/{id}/retry", f"/jobs/{job.id}/retry", "/ui/jobs/{id}")
    return Notice("bad", *failure(job, workload), JOB_REMEDY, f"/ui/jobs/{job.id}", again)


def _drift_notices(session: Session, tenant: str, rule: Staleness) -> Iterator[Notice]:
    """One notice per workload with recent drift, with the text of the newest run."""
    for workload, run, drift, number in repository.drifted_runs(session, tenant, rule.now() - RECENT):
        notices: list[Any] = (drift or {}).get("notices", [])
        why = notices[-1].get("text", "") if notices else ""
        what = f"{number:,} runs of {workload} have drifted" if number > 1 else f"{workload} has drifted"
        why = f"the newest: {why}" if number > 1 else why
        path = "/workloads/{workload}/models"
        fit = Action("Fit a model", f"POST {path}", path.format(workload=workload), "/ui/jobs/{id}")
        yield Notice("warn", what, why, DRIFT_REMEDY, f"/ui/runs/{run}", fit)


def targets_of(spec: Any) -> dict[str, float | None]:
    """Targets of a spec by name, None where none is set, if its kind lets them be changed; else empty."""
    if isinstance(spec, dict) or "targets" not in KINDS[spec.kind].patch.model_fields:
        return {}
    parts = [value for value in spec.model_dump(mode="json").values() if isinstance(value, list)]
    objects = [one for part in parts for one in part if isinstance(one, dict) and "target" in one]
    return {one["name"]: one["target"] for one in objects}
