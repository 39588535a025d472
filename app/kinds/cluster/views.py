"""Pages of kind `cluster`: jobs, applications, allocations over time, hindsight, risk and outcome of runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
from typing_extensions import override

from app.charts.figures import DECIDED, Figure, Fitted, beside_decided, responses
from app.charts.text import NOTHING, count_text, duration, number, percent
from app.charts.timeline import courses, shares
from app.kinds.cluster import jobs as table
from app.kinds.cluster import records
from app.kinds.cluster.advance import advance
from app.kinds.cluster.decide import Compiled, decide
from app.kinds.cluster.jobs import Integers
from app.kinds.cluster.layout import ClusterState, Layout, begin
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.outlook import BelievedOutlook
from app.kinds.cluster.report import ClusterReport
from app.kinds.cluster.throughput import Place, interval
from app.kinds.cluster.waiting import predict_starts, seconds_left
from app.kinds.contract.run_outcome import EndedRun, Judgement, in_time
from app.kinds.contract.views import (
    ASKED_THEN,
    MOST_ROWS,
    NOTHING_YET,
    Alternative,
    Fact,
    Hindsight,
    Learnt,
    RunHistory,
    Step,
    Table,
    Views,
    errors,
    evenly,
    job_table,
    too_long,
)

# Predicted speed of applications by number of GPUs.


MOST = 6
"""Most applications in one chart."""


def speeds(layout: Layout, model: ClusterModel) -> dict[str, list[Fitted]]:
    """Return samples per second by number of GPUs, with 90 % interval, for up to ``MOST`` measured applications by
    name."""
    table, classes = model.throughput, dict[str, list[Fitted]]()
    for one in range(min(model.measured, MOST)):
        most = min(int(table.largest[one]), int(layout.capacity.sum()))
        gpus = np.array([2**power for power in range(most.bit_length()) if 2**power <= most])
        local = float(np.median(table.local[one]))
        place = Place(gpus, -(-gpus // int(table.node[0])), np.full(len(gpus), local))
        seconds = [np.asarray(part, np.float64) for part in interval(table, one, place)]
        mean, low, high = (gpus * local / part for part in (seconds[0], seconds[2], seconds[1]))
        curve = zip(gpus, mean, low, high, strict=True)
        classes[model.applications[one]] = [Fitted(*(float(part) for part in point)) for point in curve]
    return classes


# Hindsight: what other rules would have decided at the reports of a run.


POINTS = 20
"""Most decisions that are compared."""
MOST_ASKED = 200
"""Most jobs at a time for which other rules are run: a page waits for the result."""
TOO_MANY = f"Available for runs with up to {MOST_ASKED} jobs at a time."


class ReplayedReport(NamedTuple):
    """A run after a report.

    Attributes:
        reported: state after the report.
        judged: the same state with updated ceilings of GPUs.
        allocation: allocation decided then, GPUs of J jobs on N nodes, [J, N].
    """

    reported: ClusterState
    judged: ClusterState
    allocation: Integers


def hindsight(compiled: Compiled, history: RunHistory) -> Hindsight:
    """Replay a run from its reports and decisions, and compare every rule's decision at up to ``POINTS`` of them.
    Without a figure, the result has the reason as text: no report, too many reports or jobs."""
    if not history.steps:
        return Hindsight([], NOTHING_YET)
    if len(history.steps) < history.iterations:
        return Hindsight([], too_long(len(history.steps)))
    stood = [one for one in _replay(compiled, history) if one.judged.names]
    if not stood or max(len(one.judged.names) for one in stood) > MOST_ASKED:
        return Hindsight([], TOO_MANY if stood else "No jobs yet.")
    points = evenly(stood, POINTS)
    decided, others = [one.allocation for one in points], _allocations_by_rule(compiled, points)
    text = f"{len(points):,} of {history.iterations:,} decisions, with jobs present."
    same = {name: float(np.mean(list(map(_agreement, decided, every)))) for name, every in others.items()}
    run = {
        name: float(np.mean([gpus.any(axis=1).sum() for gpus in every]))
        for name, every in {DECIDED: decided, **others}.items()
    }
    figures = [
        beside_decided("Jobs with the same number of GPUs", "share of jobs", same, text),
        beside_decided("Running jobs by policy", "running jobs, mean", run, text),
    ]
    return Hindsight(figures, ASKED_THEN)


def _agreement(decided: Integers, other: Integers) -> float:
    return float((decided.sum(axis=1) == other.sum(axis=1)).mean())


def _allocations_by_rule(compiled: Compiled, reports: Sequence[ReplayedReport]) -> dict[str, list[Integers]]:
    """Return, by rule name, the allocation of each compared decision: GPUs by job and node."""
    values: dict[str, list[Integers]] = {}
    for one in reports:
        outlook = compiled.outlook(one.judged)
        for name, rule in compiled.layout.rules.items():
            other, _ = decide(compiled.layout, one.judged, compiled.advice(rule, outlook, one.judged, one.reported))
            values.setdefault(name.replace("_", " "), []).append(other.jobs.allocation)
    return values


def _replay(compiled: Compiled, history: RunHistory) -> Iterator[ReplayedReport]:
    """Yield the run's state and decided allocation after each report."""
    layout = compiled.layout
    state = begin(layout)
    for step in history.steps:
        reported = advance(layout, state, msgspec.convert(step.report, ClusterReport))
        judged = compiled.update_ceilings(reported)
        # GPUs of J jobs on N nodes after the ``changes`` of a stored decision, [J, N]
        changes = step.decision["changes"]
        allocation, row = judged.jobs.allocation.copy(), {name: at for at, name in enumerate(judged.names)}
        for one in changes:
            allocation[row[one["job"]]] = 0
            for node, gpus in one["nodes"].items():
                allocation[row[one["job"]], compiled.layout.node_index[node]] = gpus
        yield ReplayedReport(reported, judged, allocation)
        jobs = table.move(judged.jobs, allocation, layout.spec.restart_seconds)
        begun = np.asarray(allocation.any(axis=1) & ~judged.jobs.allocation.any(axis=1))
        state = judged._replace(jobs=jobs, records=records.reset_training_time(judged.records, begun, jobs))


# Time series of jobs: GPUs held, learning curves, and GPUs given back.


Json = Mapping[str, Any]
Course = list[tuple[float, float]]
MOST_JOBS = 8
REST = "Other"


def part(history: RunHistory) -> str:
    """Return a note for a chart if only every n-th report is shown; empty otherwise."""
    return "" if history.every == 1 else f" Over the whole run: every {history.every:,}th report."


def gpus_by_job(history: RunHistory, whole: float) -> list[tuple[float, Mapping[str, float]]]:
    """Return the time of each decision, in seconds since the run's start, with the GPUs by job after it. Skipped
    reports leave jobs as they were last changed. The total is what each decision reports in use, of ``whole`` GPUs;
    GPUs of no known job are listed under ``REST``."""
    has: dict[str, float] = {}
    last = _last(history)
    results: list[tuple[float, Mapping[str, float]]] = []
    for at, step in enumerate(history.steps):
        there, gone = _reported_jobs(step), {one["job"] for one in step.report.get("ended", ())}
        if step.report.get("whole"):
            gone |= has.keys() - there
        has |= {change["job"]: float(change["gpus"]) for change in step.decision["changes"]}
        has = {job: gpus for job, gpus in has.items() if job not in gone and (history.every == 1 or last[job] >= at)}
        results.append((step.report["at"], _cut_to_total(has, whole - step.decision["free"])))
    return results


def _reported_jobs(step: Step) -> set[str]:
    """Return the names of the jobs that a report lists as submitted or progressed."""
    return {one["job"] for name in ("submitted", "progressed") for one in step.report.get(name, ())}


def _last(history: RunHistory) -> dict[str, int]:
    """Return, by job, the index of the last step that mentions it; the number of steps for jobs present now."""
    counts: dict[str, int] = {}
    for at, step in enumerate(history.steps):
        counts |= dict.fromkeys([*_reported_jobs(step), *(one["job"] for one in step.decision["changes"])], at)
    there = () if history.state is None else history.state.names
    return counts | dict.fromkeys(there, len(history.steps))


def _cut_to_total(has: Mapping[str, float], used: float) -> dict[str, float]:
    """Return the GPUs of each job, cut to ``used`` GPUs in total, with the remainder under ``REST``."""
    values, left = dict[str, float](), used
    for job, gpus in has.items():
        values[job] = min(gpus, left)
        left -= values[job]
    return values | ({REST: left} if left > 0 else {})


def learning(steps: Sequence[Step]) -> dict[str, Course]:
    """Return, by job, times in seconds and reported losses or metrics, of the first ``MOST_JOBS`` jobs with any."""
    courses: dict[str, Course] = {}
    for step in steps:
        for job in step.report.get("progressed", ()):
            value = job.get("loss") if job.get("loss") is not None else job.get("metric")
            if value is not None and (job["job"] in courses or len(courses) < MOST_JOBS):
                courses.setdefault(job["job"], []).append((step.report["at"], value))
    return courses


def released(steps: Sequence[Step]) -> Course:
    """Return the time of each step, in seconds since the run's start, with the number of GPUs taken until then from
    jobs because their maximum of GPUs was set or changed; empty if no GPU was taken."""
    total, course = 0.0, Course()
    for step in steps:
        limited = [one for one in step.decision["changes"] if one.get("ceiling") is not None]
        total += sum(max(one["before"] - one["gpus"], 0) for one in limited)
        course.append((step.report["at"], total))
    return course if total else []


# Table of the present jobs.


COLUMNS = ("Job", "State", "Queue", "GPUs", "Progress", "ETA", "Why pending")


def jobs_table(compiled: Compiled, state: ClusterState) -> Table:
    """Return the table of a state's jobs: running ones by their end, pending ones by queue and submission."""
    jobs, gpus, outlook = state.jobs, state.jobs.gpus, compiled.outlook(state)
    left = seconds_left(state, outlook)
    _, starts = predict_starts(state, outlook, compiled.layout.spec.interval_seconds)
    expected = {one.job: one.seconds for one in starts}
    waits = np.flatnonzero(gpus == 0)
    waits = waits[np.lexsort((jobs.submitted[waits], jobs.queue[waits]))]
    runs = np.flatnonzero(gpus > 0)
    runs = runs[np.argsort(left[runs], kind="stable")]

    def row(at: int, why: str) -> list[str]:
        name, wanted = state.names[at], f"{jobs.requested[at]:,}"
        eta = duration(left[at]) if np.isfinite(left[at]) else NOTHING
        if why:
            eta = f"starts in {duration(expected[name])}" if name in expected else NOTHING
        text = f"{gpus[at]:,} of {wanted}" if gpus[at] else f"requests {wanted}"
        queue = compiled.layout.queues[jobs.queue[at]]
        return [name, "pending" if why else "running", queue, text, _progress(state, at), eta, why]

    why = reasons_pending(compiled.layout, state, waits.tolist())
    return job_table(
        "Jobs",
        COLUMNS,
        [partial(row, at, "") for at in runs.tolist()],
        [partial(row, at, one) for at, one in zip(waits.tolist(), why, strict=True)],
    )


def _progress(state: ClusterState, at: int) -> str:
    done, whole = float(state.records.iteration[at]), float(state.records.iterations[at])
    if np.isfinite(whole) and whole > 0:
        return f"{number(done)} of {number(whole)} ({percent(min(done / whole, 1.0), 0)})"
    return f"iteration {number(done)}" if done > 0 else NOTHING


def reasons_pending(layout: Layout, state: ClusterState, waits: Sequence[int]) -> list[str]:
    """Return why each of the pending jobs at positions ``waits``, in the order of their turn, has no GPUs."""
    there, whole, pending = int(state.capacity.sum()), int(layout.capacity.sum()), list[str]()
    free, first = there - int(state.jobs.gpus.sum()), ""
    for at in waits:
        least, name = int(state.jobs.minimum[at]), state.names[at]
        needs = f"needs {count_text(least, 'GPU')}"
        if least > whole:
            pending.append(f"can never start: {needs}, the cluster has {whole:,}")
            continue
        if least > there:
            pending.append(f"{needs}, {there:,} of {whole:,} are present")
            continue
        parts = [f"{needs}, {free:,} free"] if least > free else []
        parts += [f"behind {first}"] if first else []
        pending.append("; ".join(parts) or "waits for the next decision")
        first = first or name
    return pending


# Pages: allocations, pending jobs, learning curves, released GPUs.


def _free(compiled: Compiled, history: RunHistory, free: int) -> Fact:
    """Return the fact on free GPUs: their number, of those present, and of GPUs reported lost."""
    whole = int(compiled.layout.capacity.sum())
    there = whole if history.state is None else int(history.state.capacity.sum())
    lost = f"{whole - there:,} more reported lost" if there < whole else ""
    return Fact("free", f"{free:,} of {there:,} GPUs", lost)


class ClusterViews(Views):
    """Pages of runs and workloads of kind ``cluster``, with charts and texts."""

    most = 1_000

    @override
    def facts(self, compiled: Compiled, history: RunHistory) -> Sequence[Fact]:
        decision: Json = history.steps[-1].decision if history.steps else history.first
        facts = [
            Fact("reports", f"{history.iterations:,}"),
            Fact("time", duration(decision["at"])),
            Fact("jobs", f"{decision['running']:,} running, {decision['waiting']:,} pending"),
            _free(compiled, history, decision["free"]),
            Fact("rule", str(decision["rule"]).replace("_", " ")),
        ]
        spans = released(history.steps) if history.every == 1 else []
        if spans:
            facts.append(Fact("released GPUs", f"{spans[-1][1]:,.0f}", "by converging jobs"))
        return facts

    @override
    def run(self, compiled: Compiled, history: RunHistory) -> Sequence[Figure]:
        if not history.steps:
            return []
        whole = float(compiled.layout.capacity.sum())
        which = part(history)
        text = f"Stacked.{which} Dashed: all GPUs."
        figures = [shares("GPU allocation by job", "GPUs", gpus_by_job(history, whole), whole, text)]
        waiting = [(step.report["at"], float(step.decision["waiting"])) for step in history.steps]
        figures.append(
            courses("Pending jobs", "jobs", {"pending": waiting}, f"After each decision.{which}", steps=True)
        )
        curves = learning(history.steps)
        if curves:
            figures.append(courses("Loss", "loss or metric", curves, f"As reported, by job.{which}"))
        course = released(history.steps)
        if course:
            text = f"Cumulative, by converging jobs.{which}"
            figures.append(courses("Released GPUs", "GPUs", {"released": course}, text, steps=True))
        return figures

    @override
    def tables(self, compiled: Compiled, history: RunHistory) -> Sequence[Table]:
        """Return the table of the jobs after the last decision, unless the run has ended, and that of failed jobs."""
        state: ClusterState | None = history.state
        tables = [jobs_table(compiled, state)] if history.live and state is not None and state.names else []
        ended = [(step.iteration, job) for step in history.steps for job in step.report.get("ended", ())]
        failed = [(at, job) for at, job in reversed(ended) if job.get("state") == "failed"]
        if failed:
            rows = [(job["job"], f"{at:,}", job.get("reason") or "not reported") for at, job in failed[:MOST_ROWS]]
            note = "Newest first, of the reports that are shown."
            tables.append(Table("Failed jobs", note, ("Job", "Report", "Reason"), rows, len(failed) - len(rows)))
        return tables

    @override
    def workload(self, compiled: Compiled, learnt: Learnt) -> Sequence[Figure]:
        """Return charts of predicted speed by number of GPUs, and of the domain model's errors."""
        model: ClusterModel | None = compiled.snapshot.model
        curves = {} if model is None else speeds(compiled.layout, model)
        note = "At the usual batch per GPU, on as few nodes as possible. Band: 90 % of cases."
        figure = responses("Throughput by application", "GPUs", "samples/s", curves, note)
        return [*([figure] if curves else []), *errors(learnt.report or {})]

    @override
    def alternatives(self, compiled: Compiled, history: RunHistory) -> Sequence[Alternative]:
        """Return the allocation of the present jobs by each rule; none if there are no jobs or more than
        ``MOST_ASKED``."""
        state = history.state
        if state is None or not state.names or len(state.names) > MOST_ASKED:
            return []
        outlook = compiled.outlook(state)
        alternatives = []
        for name, rule in compiled.layout.rules.items():
            other, changes = decide(compiled.layout, state, compiled.advice(rule, outlook, state, state))
            gpus = zip(other.names, other.jobs.gpus.tolist(), strict=True)
            words = ", ".join(f"{job}: {amount}" for job, amount in gpus if amount) or "none"
            alternatives.append(Alternative(name.replace("_", " "), words, not changes))
        return alternatives

    @override
    def hindsight(self, compiled: Compiled, history: RunHistory) -> Hindsight:
        return hindsight(compiled, history)

    @override
    def details(self, decision: Json) -> Sequence[str]:
        """Return one line for each job that the decision changes."""
        return [f"{one['job']}: {one['before']} → {one['gpus']} GPUs; {one['text']}" for one in decision["changes"]]


# Risk and outcome of a cluster run by the targets of members for a whole run, counted from a job's submission.
#
# Targets per iteration only weigh in decisions. A run is also at risk while a job needs more GPUs than are present.


def risk(compiled: Compiled, state: ClusterState, outlook: BelievedOutlook) -> str:
    """Return a text that names jobs that can't start on the GPUs present, or will miss their deadline; empty: no risk.

    Args:
        compiled: the workload.
        state: state after a decision.
        outlook: expected speed and remaining work of its jobs.
    """
    jobs, there, parts = state.jobs, int(state.capacity.sum()), list[str]()
    stuck = np.flatnonzero((jobs.minimum > there) & ~jobs.allocation.any(axis=1)).tolist()
    if stuck:
        first = f"{state.names[stuck[0]]} waits for {jobs.minimum[stuck[0]]:,} GPUs of {there:,} that are there"
        parts.append(f"{first}{_more(stuck)}")
    allowed = _deadline_seconds(compiled)
    late = _late(state, outlook, allowed) if allowed and state.names else []
    if late:
        parts.append(f"{late[0]} will end after its deadline{_more(late)}")
    return "; ".join(parts)


def _late(state: ClusterState, outlook: BelievedOutlook, allowed: Mapping[str, float]) -> list[str]:
    """Return the names of jobs whose deadline has passed or is before their expected end. ``allowed``: seconds from
    submission to deadline, by application."""
    jobs = state.jobs
    seconds = [allowed.get(application, math.inf) for application in state.records.application.tolist()]
    left = np.where((jobs.gpus > 0) & outlook.times_known, seconds_left(state, outlook), 0.0)
    return [state.names[at] for at in np.flatnonzero(state.now + left > jobs.submitted + np.array(seconds)).tolist()]


def _deadline_seconds(compiled: Compiled) -> dict[str, float]:
    """Return seconds from submission to deadline by application, for members with a target for a whole run."""
    members = compiled.snapshot.members
    return {name: one.run_seconds for name, one in members.items() if math.isfinite(one.run_seconds)}


def _more(jobs: Sequence[object]) -> str:
    return f", and {len(jobs) - 1:,} more" if len(jobs) > 1 else ""


def judge(compiled: Compiled, run: EndedRun) -> Judgement:
    """Count the jobs of members that ended within their target, and those that failed or were late. Jobs that have not
    ended count as late once their deadline has passed."""
    allowed = _deadline_seconds(compiled)
    if not allowed:
        return in_time(0, 0, "job")
    due: dict[str, float] = {}
    late, met, now = 0, 0, 0.0
    for report in run.reports:
        now = report["at"]
        named = {job["job"] for job in report.get("submitted", ())}
        left = {one["job"]: one.get("state", "finished") for one in report.get("ended", ())}
        if report.get("whole"):
            left |= dict.fromkeys(due.keys() - named - left.keys(), "finished")
        for job, state in left.items():
            deadline = due.pop(job, None)
            if deadline is not None:
                good = state == "finished" and now <= deadline
                late, met = late + (not good), met + good
        for job in report.get("submitted", ()):
            if job.get("application") in allowed and job["job"] not in due:
                since = now if job.get("at") is None else job["at"]
                due[job["job"]] = since + allowed[job["application"]]
    late += sum(deadline < now for deadline in due.values())
    return in_time(late, late + met, "job")
