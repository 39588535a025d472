"""Rows of samples from a finished run's reports: measured steps, learning curves, and submitted jobs.

Reports are JSON objects in the form of ``ClusterReport``. Entries that can't be samples are left out, without an
error."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from app.kinds.cluster import experience
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.columns import is_name

LONGER = 1.5
"""Factor on the usual gap between two progress reports above which the job is taken to have waited."""
Row = dict[str, Any]
Report = Mapping[str, Any]


def run_rows(spec: ClusterSpec, reports: Sequence[Report]) -> dict[str, list[Row]]:
    """Return the rows of samples of a run, by form: `steps`, `curves` and `arrivals`; ``reports`` are JSON objects."""
    return {
        "steps": steps(reports, spec.members),
        "curves": curves(reports),
        "arrivals": arrivals(reports, spec.interval_seconds),
    }


def arrivals(reports: Sequence[Report], interval: float) -> list[Row]:
    """Return a row for each submitted job, by time of submission in seconds since the run's start. Rows of finished
    jobs have the samples they needed, where their steps allow it; else None.

    Args:
        reports: reports of a run, as JSON objects.
        interval: seconds between decisions.
    """
    needed = samples(reports, interval)
    rows = [_arrival(name, job, report, needed) for name, (job, report) in first_seen(reports).items()]
    return sorted(rows, key=lambda row: float(row["time"]))


def _arrival(name: str, job: Report, report: Report, needed: Mapping[str, float]) -> Row:
    at = job.get("at")
    time = report["at"] if at is None else at
    fields = {name: job.get(name) for name in ("queue", "gpus", "data")}
    return {"time": time, **fields, "application": _application(job), "samples": needed.get(name)}


def samples(reports: Sequence[Report], interval: float) -> dict[str, float]:
    """Return, by name, the samples that each finished job needed, at the efficiency of its application's first batch.
    The rate of a progress report holds since the job's last one; of a gap longer than usual only the usual time counts.
    ``interval`` is in seconds between decisions."""
    known, courses, values = first_seen(reports), dict[str, list[tuple[float, float]]](), dict[str, float]()
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
        for name in _pop_finished(report, courses):
            course = courses.pop(name)
            if course:
                # Samples that one job trained in all. ``course`` has times and samples per second of its progress,
                # ``since`` its submission, ``end`` its end; times in seconds.
                since = _came(*known[name])
                end = float(report["at"])
                times = np.array([since, *(at for at, _ in course), end])
                rates = np.array([*(rate for _, rate in course), course[-1][1]])
                gaps = np.diff(times)
                usual = max(interval, float(np.median(gaps[1:])))
                values[name] = float(rates @ np.where(gaps > LONGER * usual, usual, gaps))
    return values


def _pop_finished(report: Report, there: dict[str, list[tuple[float, float]]]) -> list[str]:
    """Return the names in ``there`` that finished with this report; jobs that failed are removed from ``there``."""
    left = {job["job"]: job.get("state", "finished") for job in report.get("ended") or ()}
    if report.get("whole"):
        left |= dict.fromkeys(
            there.keys() - {job["job"] for job in report.get("submitted") or ()} - left.keys(), "finished"
        )
    for name in [name for name, state in left.items() if state != "finished"]:
        there.pop(name, None)
    return [name for name, state in left.items() if state == "finished" and name in there]


def _came(job: Report, report: Report) -> float:
    """Return the submission time of a job, seconds since the run's start: its own, else its first report's."""
    return float(report["at"] if job.get("at") is None else job["at"])


def _application(job: Report) -> str | None:
    """Return the name of a job's application; None if it has none, or the name isn't allowed in samples."""
    name = job.get("application")
    return name if name and is_name(name) else None


def first_seen(reports: Sequence[Report]) -> dict[str, tuple[Report, Report]]:
    """Return the first submission of each job, by name, as (job, report that contains it)."""
    first_seen: dict[str, tuple[Report, Report]] = {}
    for report in reports:
        for job in report.get("submitted") or ():
            first_seen.setdefault(job["job"], (job, report))
    return first_seen


def steps(reports: Sequence[Report], members: Sequence[str] = ()) -> list[Row]:
    """Return a row for each reported step with known seconds and GPUs, of jobs with a known application and batch. For
    ``members`` without a batch, a step counts as one sample per GPU. With accumulated gradients, one pass is a step."""
    known, rows = first_seen(reports), list[Row]()
    for one in _progress_entries(reports):
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
        fields = {"gpus": gpus, "seconds": seconds, "beside": [*beside], "application": application, "batch": batch}
        each = (("nodes", one.get("nodes"), gpus), ("computing", computing, seconds))
        rows.append(fields | {name: value for name, value, most in each if value and value <= most})  # others are wrong
    return rows


def curves(reports: Sequence[Report]) -> list[Row]:
    """Return the points of jobs' learning curves: losses, or metrics, whichever a job reported first. Iterations
    repeated after resuming from a checkpoint are left out."""
    known, last, rows = first_seen(reports), dict[str, tuple[float, bool]](), list[Row]()
    for one in _progress_entries(reports):
        name, iteration = one["job"], one["iteration"]
        fields = {part: one.get(part) for part in ("loss", "metric", "batch", "noise_scale")}
        rises = fields["metric"] is not None
        before, rose = last.get(name, (-1.0, rises))
        if (fields["loss"] is None and not rises) or rises != rose or iteration <= before or not is_name(name):
            continue
        last[name] = iteration, rises
        job = known[name][0] if name in known else {}
        rows.append({"job": name, "iteration": iteration, **fields, "application": _application(job)})
    return rows


def _progress_entries(reports: Sequence[Report]) -> Iterator[Report]:
    return (one for report in reports for one in report.get("progressed") or ())
