"""What samples of kind `cluster` must hold, and the sample that a run becomes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster import experience
from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.sample_columns import LARGEST, MOST_BESIDE, SHORTEST, WIDTHS, Content, packed, summary
from app.kinds.contract.inputs import LARGEST_NUMBER, FieldIssue, InvalidInput, Sample, name_issue
from app.kinds.contract.samples import (
    LATEST,
    LISTED,
    MICRO,
    NOTHING,
    Rows,
    known,
    named,
    numbers,
    refuse,
    refused,
    shown,
    times,
)
from app.kinds.contract.samples import TIME as A_TIME

# Rows of measured steps, learning curves and submissions against the workload's layout, many at a time.


STEP = ("application", "gpus", "nodes", "node_class", "batch", "beside", "seconds", "computing")
CURVE = ("job", "application", "iteration", "loss", "metric", "batch", "noise_scale")
ARRIVAL = ("time", "queue", "application", "gpus", "data", "duration", "samples")
FORMS = {"seconds": STEP, "iteration": CURVE, "time": ARRIVAL}
"""Columns of each form, by the one that tells it."""
COLUMNS = tuple(dict.fromkeys((*STEP, *CURVE, *ARRIVAL)))
NEEDED = (
    {"application", "gpus", "batch", "seconds"},
    {"job", "iteration", "loss"},
    {"job", "iteration", "metric"},
    {"time", "gpus"},
)
WORDS = (
    "must say application, gpus, batch and seconds of a measured step; or job, iteration, and loss or metric of a "
    "learning curve; or time and gpus of a job that came"
)
UNNAMED = "samples-"
BETWEEN = ";"
MOST_GPUS = 1_000_000
MOST_ROWS, MOST_NAMES, LONGEST_NAME = 1_000_000, 10_000, 255


class Names:
    """Positions of names, in the order in which they came."""

    def __init__(self) -> None:
        self.positions: dict[str, int] = {}

    def at(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """Positions, −1 for what is no name, [n]."""
        return np.array([self._at(value) for value in values], np.int64)

    def _at(self, value: Any) -> int:
        found = self.positions.get(value) if isinstance(value, str) else -1
        if found is not None:
            return found
        return self.positions.setdefault(value, len(self.positions)) if is_name(value) else -1


def is_name(value: str) -> bool:
    """Whether it can be the name of a job or an application."""
    return 0 < len(value) <= LONGEST_NAME and value.isprintable() and BETWEEN not in value


A_NAME = f"must be 1 to {LONGEST_NAME} printable characters without {BETWEEN!r}"


class Collector:
    """Collects what an execution says.

    Args:
        layout: of the workload.
    """

    def __init__(self, layout: Layout) -> None:
        spec = layout.spec
        self._queues = {name: position for position, name in enumerate(layout.queues)}
        self._classes = {one.name: position for position, one in enumerate(spec.nodes)}
        self._largest_node = max(one.gpus for one in spec.nodes)
        self._too_few = f"must be at least gpus / {self._largest_node}: no node has more than {self._largest_node} GPUs"
        self._applications, self._jobs = Names(), Names()
        self._tables: dict[str, list[Floats]] = {name: [] for name in WIDTHS}
        self._curves: dict[int, tuple[float, float, float]] = {}
        self._last = 0

    def add(self, rows: Rows, form: str) -> None:
        """Take rows of one of ``FORMS`` in, or nothing of them.

        Raises:
            InvalidInput: some can't be right.
        """
        taken = {"seconds": self._take_steps, "iteration": self._take_curves, "time": self._take_arrivals}
        taken[form](rows)

    def take(self, rows: Rows) -> None:
        """See ``app.kinds.contract.row_reading.Collector``."""
        if not rows.rows:
            return
        for form, part in _parted(rows).items():
            self.add(part, form)
        if self.count > MOST_ROWS:
            message = f"an execution holds at most {MOST_ROWS:,} rows: upload it in parts"
            raise refused([FieldIssue(rows.where(rows.rows - 1), message, None)])
        for names, what in ((self._applications, "applications"), (self._jobs, "jobs")):
            if len(names.positions) > MOST_NAMES:
                message = f"an execution names at most {MOST_NAMES:,} {what}: upload it in parts"
                raise refused([FieldIssue(rows.where(rows.rows - 1), message, None)])

    def sample(self, name: str | None) -> Sample:
        """See ``app.kinds.contract.row_reading.Collector``."""
        if not self.count:
            raise refused([FieldIssue("", f"holds nothing: each row {WORDS}", None)])
        issue = name_issue(name) if name else None
        if issue is not None:
            raise refused([issue])
        content = Content(tuple(self._applications.positions), tuple(self._jobs.positions), *map(self._table, WIDTHS))
        data = packed(content)
        digest = hashlib.sha256(data).hexdigest()
        return Sample(name or UNNAMED + digest[:12], 1, data, self.count, digest, summary(content))

    @property
    def count(self) -> int:
        """Rows so far."""
        return sum(len(part) for parts in self._tables.values() for part in parts)

    def _table(self, name: str) -> Floats:
        return np.concatenate([np.zeros((0, WIDTHS[name])), *self._tables[name]])

    def _take_steps(self, rows: Rows) -> None:
        application, beside = self._applications.at(rows.given("application")), self._beside(rows)
        kind = named(rows.given("node_class"), self._classes)
        gpus, batch, seconds = (numbers(rows.given(name)) for name in ("gpus", "batch", "seconds"))
        packed_on = np.ceil(gpus / self._largest_node)
        nodes = np.where(rows.silent("nodes"), packed_on, numbers(rows.given("nodes")))
        computing, untold = numbers(rows.given("computing")), rows.silent("computing")
        refuse(
            [
                *rows.issues("application", application < 0, A_NAME),
                *_counts(rows, "gpus", gpus, np.full(len(gpus), MOST_GPUS), f"{MOST_GPUS:,}"),
                *_counts(rows, "nodes", nodes, np.where(gpus >= 1, gpus, MOST_GPUS), "gpus"),
                *rows.issues("nodes", (gpus <= MOST_GPUS) & (nodes < packed_on), self._too_few),
                *rows.issues("node_class", kind < 0, known("node class", [*self._classes])),
                *rows.issues("batch", ~((batch > 0) & (batch <= LARGEST)), ABOVE_0),
                *rows.issues("seconds", ~((seconds >= SHORTEST) & (seconds <= LARGEST)), A_STEP),
                *rows.issues("computing", ~(untold | (computing > 0) & (computing <= seconds)), COMPUTING_PART),
                *rows.issues("beside", (beside == UNREADABLE).any(axis=1), BESIDE_NAMES),
            ]
        )
        columns = [application, gpus, nodes, kind, batch, seconds, computing]
        self._tables["steps"].append(np.column_stack([*columns, beside]).astype(np.float64))

    def _beside(self, rows: Rows) -> NDArray[np.int64]:
        """Positions of applications, −1 where there are fewer, ``UNREADABLE`` where they can't be read, [n, 4]."""
        found = np.full((rows.rows, MOST_BESIDE), -1)
        for row, value in enumerate(rows.given("beside")):
            if value not in (*NOTHING, []):
                names = value.split(BETWEEN) if isinstance(value, str) else value
                positions = self._applications.at(names[:MOST_BESIDE])
                found[row, : len(positions)] = np.where(positions < 0, UNREADABLE, positions)
                found[row, 0] = UNREADABLE if len(names) > MOST_BESIDE else found[row, 0]
        return found

    def _take_curves(self, rows: Rows) -> None:
        job, application = self._jobs.at(rows.given("job")), self._applications.at(rows.given("application"))
        iteration, batch, noise = (numbers(rows.given(name)) for name in ("iteration", "batch", "noise_scale"))
        falls, rises = ~rows.silent("loss"), ~rows.silent("metric")
        value = np.where(rises, numbers(rows.given("metric")), numbers(rows.given("loss")))
        told = np.where(rises, "metric", "loss")
        wrong = ~(np.abs(value) <= LARGEST_NUMBER)
        refuse(
            [
                *rows.issues("job", job < 0, A_NAME),
                *rows.issues("application", (application < 0) & ~rows.silent("application"), A_NAME),
                *rows.issues("iteration", ~((iteration >= 0) & (iteration <= LARGEST)), "must be 0 or more"),
                *rows.issues("metric", rises & falls, "must not stand beside a loss: a curve has one of them"),
                *rows.issues("loss", ~rises & ~falls, "must be a number, or a metric given"),
                *[issue for name in ("loss", "metric") for issue in rows.issues(name, wrong & (told == name), FINITE)],
                *rows.issues("batch", ~(rows.silent("batch") | (batch > 0) & (batch <= LARGEST)), ABOVE_0),
                *_amounts(rows, "noise_scale", noise),
            ]
        )
        table = np.column_stack([job, application, iteration, value, rises, batch, noise]).astype(np.float64)
        self._follow(rows, table)
        self._tables["curves"].append(table)

    def _follow(self, rows: Rows, table: Floats) -> None:
        """Make sure that each row goes on with the curve of its job."""
        issues, last = list[FieldIssue](), dict[int, tuple[float, float, float]]()
        for row, (job, application, iteration, _, rises, *_) in enumerate(table.tolist()):
            before = last.get(int(job), self._curves.get(int(job)))
            last[int(job)] = application, iteration, rises
            if before is None:
                continue
            if iteration <= before[1]:
                issues.append(FieldIssue(f"{rows.where(row)}/iteration", f"must be more than {before[1]:g}", iteration))
            if (application, rises) != (before[0], before[2]):
                wrong = "application" if application != before[0] else "metric" if rises else "loss"
                value = shown(rows.given(wrong)[row])
                issues.append(FieldIssue(f"{rows.where(row)}/{wrong}", SAME_JOB, value))
        refuse(issues)
        self._curves.update(last)

    def _take_arrivals(self, rows: Rows) -> None:
        time = times(rows.given("time"))
        queues: dict[Any, int] = {**self._queues, **dict.fromkeys(NOTHING, len(self._queues) - 1)}
        queue = np.array([queues.get(value, -1) for value in rows.given("queue")], np.int64)
        application = self._applications.at(rows.given("application"))
        gpus, data, *ran = (numbers(rows.given(name)) for name in ("gpus", "data", "duration", "samples"))
        before = np.concatenate([[self._last], time[:-1]])
        refuse(
            [
                *rows.issues("time", (time < 0) | (time > LATEST * MICRO), A_TIME),
                *rows.issues("time", (time >= 0) & (time < before), "must not be less than the time before it"),
                *rows.issues("queue", queue < 0, known("queue", [*self._queues])),
                *rows.issues("application", (application < 0) & ~rows.silent("application"), A_NAME),
                *_counts(rows, "gpus", gpus, np.full(len(gpus), MOST_GPUS), f"{MOST_GPUS:,}"),
                *_amounts(rows, "data", data),
                *_amounts(rows, "duration", ran[0]),
                *_amounts(rows, "samples", ran[1]),
            ]
        )
        self._last = int(time[-1])
        columns = [time / MICRO, queue, application, gpus, data, *ran]
        self._tables["arrivals"].append(np.column_stack(columns).astype(np.float64))


UNREADABLE = -2
ABOVE_0 = "must be greater than 0"
A_STEP = f"must be at least {SHORTEST:g}, and at most {LARGEST:,.0f}"
SAME_JOB = "must be as in the rows of its job before"
FINITE = f"must be a number, at most {LARGEST_NUMBER:g}"
COMPUTING_PART = "must be more than 0, and at most seconds, of which it is a part"
BESIDE_NAMES = f"must be at most {MOST_BESIDE} names of applications; in CSV with {BETWEEN!r} between them"


def _parted(rows: Rows) -> dict[str, Rows]:
    """Rows by form; the form of a row is told by what stands in it.

    Raises:
        InvalidInput: rows of several forms at once, or of none.
    """
    said = {form: ~rows.silent(form) for form in FORMS if form in rows.columns}
    number = np.sum([*said.values()], axis=0) if said else np.zeros(rows.rows)
    unclear = np.flatnonzero(number != 1)[:LISTED].tolist()
    refuse([FieldIssue(rows.where(row), WORDS, None) for row in unclear])
    for form, own in said.items():
        for name in sorted(rows.columns.keys() - set(FORMS[form])):
            refuse(rows.issues(name, own & ~rows.silent(name), f"does not belong to a row with {form}; it {WORDS}"))
    return {form: rows.take(np.flatnonzero(own).tolist()) for form, own in said.items() if own.any()}


def _counts(rows: Rows, name: str, values: Floats, most: Floats, told: str) -> list[FieldIssue]:
    whole = (values >= 1) & (values <= most) & (values == np.rint(values))
    return rows.issues(name, ~whole, f"must be a whole number, 1 to {told}")


def _amounts(rows: Rows, name: str, values: Floats) -> list[FieldIssue]:
    return rows.issues(name, ~(rows.silent(name) | (values >= 0) & (values <= LARGEST_NUMBER)), "must be 0 or more")


# What a run reported as rows of samples: jobs that came, steps that were measured, and how well jobs did.
#
# A run has been served and is over: what of it can't be a sample is left out, and never refused.


LONGER = 1.5
"""Than usual is longer between two reports of a job's progress: it waited."""
Row = dict[str, Any]
Report = Mapping[str, Any]


def collected(layout: Layout, reports: Sequence[Report]) -> Collector:
    """All that was reported, and can be a sample; of more rows of a form than ``MOST_ROWS`` the last."""
    collector = Collector(layout)
    for form, rows in (
        ("seconds", steps(reports, layout.spec.members)),
        ("iteration", curves(reports)),
        ("time", arrivals(reports, layout.spec.interval_seconds)),
    ):
        columns = {name: [row.get(name) for row in rows[-MOST_ROWS:]] for name in FORMS[form]}
        _add_sound(collector, Rows(columns, str), form)
    return collector


def _add_sound(collector: Collector, rows: Rows, form: str) -> None:
    """Those that can be right: where some can't, half by half."""
    if not rows.rows:
        return
    try:
        collector.add(rows, form)
    except InvalidInput:
        middle = rows.rows // 2
        for part in (range(middle), range(middle, rows.rows)) if middle else ():
            _add_sound(collector, rows.take([*part]), form)


def arrivals(reports: Sequence[Report], interval: float) -> list[Row]:
    """Jobs in order of their submission, each once; of those that finished, samples that they needed, if steps tell.

    Args:
        reports: of a run.
        interval: seconds between decisions.
    """
    needed = samples(reports, interval)
    rows = [_arrival(name, job, report, needed) for name, (job, report) in first_seen(reports).items()]
    return sorted(rows, key=lambda row: float(row["time"]))


def _arrival(name: str, job: Report, report: Report, needed: Mapping[str, float]) -> Row:
    at = job.get("at")
    time = report["at"] if at is None else at
    told = {name: job.get(name) for name in ("queue", "gpus", "data")}
    return {"time": time, **told, "application": _application(job), "samples": needed.get(name)}


def samples(reports: Sequence[Report], interval: float) -> dict[str, float]:
    """Samples at the efficiency of the initial batch that jobs needed which finished, by name.

    What a job's steps tell holds for the time since its last progress; of longer than usual it waited.
    """
    known, courses, found = first_seen(reports), dict[str, list[tuple[float, float]]](), dict[str, float]()
    first_noise, noise, initial = dict[str, float](), dict[str, float](), dict[str, int]()
    for report in reports:
        for one in report.get("progressed") or ():
            name, job = one["job"], known[one["job"]][0] if one["job"] in known else {}
            of, batch = _application(job), one.get("batch") or job.get("batch")
            if not (of and batch and one.get("seconds")):
                continue
            scale = one.get("noise_scale")
            if scale is not None:
                first_noise.setdefault(of, scale)
                noise[name] = scale
            reference = initial.setdefault(of, job.get("batch") or batch)
            rate = experience.rate(reference, batch, one["seconds"], noise.get(name, first_noise.get(of, math.inf)))
            courses.setdefault(name, []).append((report["at"], rate))
        for name in _finished(report, courses):
            course = courses.pop(name)
            if course:
                found[name] = _in_all(course, _came(*known[name]), interval, float(report["at"]))
    return found


def _finished(report: Report, there: dict[str, list[tuple[float, float]]]) -> list[str]:
    """Jobs that have finished by a report, of those that are ``there``, from which the failed ones are taken."""
    left = {job["job"]: job.get("state", "finished") for job in report.get("ended") or ()}
    if report.get("whole"):
        left |= dict.fromkeys(
            there.keys() - {job["job"] for job in report.get("submitted") or ()} - left.keys(), "finished"
        )
    for name in [name for name, state in left.items() if state != "finished"]:
        there.pop(name, None)
    return [name for name, state in left.items() if state == "finished" and name in there]


def _came(job: Report, report: Report) -> float:
    return float(report["at"] if job.get("at") is None else job["at"])


def _in_all(course: Sequence[tuple[float, float]], since: float, interval: float, end: float) -> float:
    """Of one job: times of its progress and samples a second until then."""
    times = np.array([since, *(at for at, _ in course), end])
    rates = np.array([*(rate for _, rate in course), course[-1][1]])
    gaps = np.diff(times)
    usual = max(interval, float(np.median(gaps[1:])))
    return float(rates @ np.where(gaps > LONGER * usual, usual, gaps))


def _application(job: Report) -> str | None:
    """What a job trains, if it said so by a name that samples can have."""
    name = job.get("application")
    return name if name and is_name(name) else None


def first_seen(reports: Sequence[Report]) -> dict[str, tuple[Report, Report]]:
    """Each job as it was submitted first, and the report that said so, by name."""
    found: dict[str, tuple[Report, Report]] = {}
    for report in reports:
        for job in report.get("submitted") or ():
            found.setdefault(job["job"], (job, report))
    return found


def steps(reports: Sequence[Report], members: Sequence[str] = ()) -> list[Row]:
    """Steps whose seconds were told with the GPUs, of jobs whose application and batch size are known.

    Members know their batch sizes themselves: where none is told, a step counts as a sample on each GPU.
    """
    known, rows = first_seen(reports), list[Row]()
    for one in _progressed(reports):
        job = known[one["job"]][0] if one["job"] in known else {}
        application, batch = _application(job), one.get("batch") or job.get("batch")
        seconds, gpus, beside = one.get("seconds"), one.get("gpus"), one.get("beside") or ()
        batch = gpus if not batch and application in members else batch
        if not (application and batch and seconds and gpus and all(map(is_name, beside))):
            continue
        most_local, computing = job.get("gpu_batch_maximum"), one.get("computing")
        parts = -(-batch // (most_local * gpus)) if most_local else 1
        if parts > 1:  # their gradients are accumulated: one of them is a step
            if not computing:
                continue
            batch, seconds = gpus * -(-batch // (parts * gpus)), seconds - computing * (parts - 1) / parts
            computing = computing / parts
        told = {"gpus": gpus, "seconds": seconds, "beside": [*beside], "application": application, "batch": batch}
        each = (("nodes", one.get("nodes"), gpus), ("computing", computing, seconds))
        rows.append(told | {name: value for name, value, most in each if value and value <= most})  # else it is wrong
    return rows


def curves(reports: Sequence[Report]) -> list[Row]:
    """Losses or metrics by iterations, of a job that told both the first kind.

    What was done again after a job went on from a checkpoint is left out.
    """
    known, last, rows = first_seen(reports), dict[str, tuple[float, bool]](), list[Row]()
    for one in _progressed(reports):
        name, iteration = one["job"], one["iteration"]
        told = {part: one.get(part) for part in ("loss", "metric", "batch", "noise_scale")}
        rises = told["metric"] is not None
        before, rose = last.get(name, (-1.0, rises))
        if (told["loss"] is None and not rises) or rises != rose or iteration <= before or not is_name(name):
            continue
        last[name] = iteration, rises
        job = known[name][0] if name in known else {}
        rows.append({"job": name, "iteration": iteration, **told, "application": _application(job)})
    return rows


def _progressed(reports: Sequence[Report]) -> Iterator[Report]:
    return (one for report in reports for one in report.get("progressed") or ())
