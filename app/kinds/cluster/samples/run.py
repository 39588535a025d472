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
    """Updates whose seconds were told with the GPUs, of jobs whose application and batch size are known."""
    known = {name: job for name, (job, _) in first_seen(reports).items() if job.get("application") and job.get("batch")}
    return [
        {
            "application": known[one["job"]]["application"],
            "batch": known[one["job"]]["batch"],
            "gpus": one["gpus"],
            "nodes": one.get("nodes"),
            "seconds": one["update_seconds"],
        }
        for one in _progressed(reports)
        if one["job"] in known and one.get("update_seconds") and one.get("gpus")
    ]


def curves(reports: Sequence[Report]) -> list[Row]:
    """Losses by updates; what was done again after a job went on from an earlier checkpoint is left out."""
    known, last, rows = first_seen(reports), dict[str, float](), list[Row]()
    for one in _progressed(reports):
        name, updates = one["job"], one["updates"]
        if one.get("metric") is None or updates <= last.get(name, -1.0):
            continue
        last[name] = updates
        job = known[name][0] if name in known else {}
        told = {"application": job.get("application"), "batch": job.get("batch")}
        rows.append({"job": name, "iteration": updates, "loss": one["metric"], **told})
    return rows


def _progressed(reports: Sequence[Report]) -> Iterator[Report]:
    return (one for report in reports for one in report.get("progressed") or ())
