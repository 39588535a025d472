"""What it means for a cluster to be at risk, and to have met its targets: deadlines of jobs that are members' runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from app.kinds.cluster.allocation.deadlines import Deadlines
from app.kinds.cluster.decisions.compiled import Compiled
from app.kinds.cluster.live.decide import Change
from app.kinds.contract.run_outcome import Ended, Judgement, in_time


def risk(names: Sequence[str], now: float, deadlines: Deadlines | None, changes: Iterable[Change]) -> str:
    """Which jobs have passed their deadlines, or are expected to by what was just decided; empty where none has."""
    if deadlines is None:
        return ""
    late = [names[at] for at in np.flatnonzero(deadlines.at < now).tolist()]
    late += [
        one.job
        for one in changes
        if one.wanted is not None and one.wanted >= 0 and one.left is not None and one.left > one.wanted
    ]
    if not late:
        return ""
    more = f" and {len(late) - 1:,} more" if len(late) > 1 else ""
    return f"{late[0]}{more} will end after the deadline"


def judge(compiled: Compiled, run: Ended) -> Judgement:
    """Every job of a member with a target for its whole run: it has to end within that from its submission on."""
    allowed = {
        name: one.run_seconds for name, one in compiled.snapshot.members.items() if math.isfinite(one.run_seconds)
    }
    if not allowed:
        return in_time(0, 0, "job")
    due: dict[str, float] = {}
    late, met, now = 0, 0, 0.0
    for report in run.reports():
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
