"""What a run reported as rows of samples: jobs that came, steps that were measured, and how well jobs did.

A run has been served and is over: what of it can't be a sample is left out, and never refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.kinds.cluster.layout import Layout
from app.kinds.cluster.samples.check import FORMS, MOST_ROWS, Collector, is_name
from app.kinds.contract.inputs import InvalidInput
from app.kinds.contract.rows import Rows

Row = dict[str, Any]
Report = Mapping[str, Any]


def collected(layout: Layout, reports: Sequence[Report]) -> Collector:
    """All that was reported, and can be a sample; of more rows of a form than ``MOST_ROWS`` the last."""
    collector = Collector(layout)
    for form, rows in (
        ("seconds", steps(reports, layout.spec.members)),
        ("iteration", curves(reports)),
        ("time", arrivals(reports)),
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


def arrivals(reports: Sequence[Report]) -> list[Row]:
    """Jobs in order of their submission, each once."""
    rows = [_arrival(job, report) for job, report in first_seen(reports).values()]
    return sorted(rows, key=lambda row: float(row["time"]))


def _arrival(job: Report, report: Report) -> Row:
    at = job.get("at")
    time = report["at"] if at is None else at
    told = {name: job.get(name) for name in ("queue", "gpus", "data")}
    return {"time": time, **told, "application": _application(job)}


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
        told = {"gpus": gpus, "seconds": seconds, "beside": [*beside], "application": application, "batch": batch}
        most = {"nodes": gpus, "computing": seconds}  # what is more was measured wrong
        rows.append(told | {name: one[name] for name, limit in most.items() if one.get(name) and one[name] <= limit})
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
