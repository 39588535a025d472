"""What a run reported as rows of samples: measured steps, learning curves, and submitted jobs.

A run has been served and is over: what of it can't be a sample is left out, and never refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from app.kinds.cluster import experience
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.columns import is_name

LONGER = 1.5
"""Than usual is longer between two reports of a job's progress: it waited."""
Row = dict[str, Any]
Report = Mapping[str, Any]


def run_rows(spec: ClusterSpec, reports: Sequence[Report]) -> dict[str, list[Row]]:
    """Rows of samples by their form."""
    return {
        "steps": steps(reports, spec.members),
        "curves": curves(reports),
        "arrivals": arrivals(reports, spec.interval_seconds),
    }


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
