"""What a run reported as rows of samples: jobs that came, steps that were measured, and how well jobs did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = dict[str, Any]
Report = Mapping[str, Any]


def arrivals(reports: Sequence[Report]) -> list[Row]:
    """Jobs in order of their submission, each once."""
    rows = [_arrival(job, report) for job, report in first_seen(reports).values()]
    return sorted(rows, key=lambda row: float(row["time"]))


def _arrival(job: Report, report: Report) -> Row:
    at = job.get("at")
    time = report["at"] if at is None else at
    return {"time": time, **{name: job.get(name) for name in ("queue", "application", "gpus", "data")}}


def first_seen(reports: Sequence[Report]) -> dict[str, tuple[Report, Report]]:
    """Each job as it was submitted first, and the report that said so, by name."""
    found: dict[str, tuple[Report, Report]] = {}
    for report in reports:
        for job in report.get("submitted") or ():
            found.setdefault(job["job"], (job, report))
    return found


def steps(reports: Sequence[Report]) -> list[Row]:
    """Steps whose seconds were told with the GPUs, of jobs whose application and batch size are known."""
    known, rows = first_seen(reports), list[Row]()
    for one in _progressed(reports):
        job = known[one["job"]][0] if one["job"] in known else {}
        batch = one.get("batch") or job.get("batch")
        if not (job.get("application") and batch and one.get("seconds") and one.get("gpus")):
            continue
        told = {name: one.get(name) for name in ("gpus", "nodes", "seconds", "computing", "beside")}
        rows.append({"application": job["application"], "batch": batch, **told})
    return rows


def curves(reports: Sequence[Report]) -> list[Row]:
    """Losses or metrics by iterations; what was done again after a job went on from a checkpoint is left out."""
    known, last, rows = first_seen(reports), dict[str, float](), list[Row]()
    for one in _progressed(reports):
        name, iteration = one["job"], one["iteration"]
        told = {part: one.get(part) for part in ("loss", "metric", "batch", "noise_scale")}
        if (told["loss"] is None and told["metric"] is None) or iteration <= last.get(name, -1.0):
            continue
        last[name] = iteration
        job = known[name][0] if name in known else {}
        rows.append({"job": name, "iteration": iteration, **told, "application": job.get("application")})
    return rows


def _progressed(reports: Sequence[Report]) -> Iterator[Report]:
    return (one for report in reports for one in report.get("progressed") or ())
