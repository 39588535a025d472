"""What it means for a cluster to be at risk, and to have met its targets.

Its targets are the deadlines of jobs that are members' runs. It is also at risk while a job asks for more than there
is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from app.kinds.cluster.allocation.deadlines import Deadlines
from app.kinds.cluster.decisions.compiled import Compiled
from app.kinds.cluster.live.decide import Change
from app.kinds.cluster.live.state import ClusterState
from app.kinds.contract.run_outcome import Ended, Judgement, in_time


def risk(state: ClusterState, deadlines: Deadlines | None, changes: Iterable[Change]) -> str:
    """Which jobs can't start on the GPUs that are there, and which will end after their deadlines, by what was just
    decided; empty where there are none.
    """
    jobs, there, found = state.jobs, int(state.capacity.sum()), list[str]()
    stuck = np.flatnonzero((jobs.asked > there) & ~jobs.held.any(axis=1)).tolist()
    if stuck:
        first = f"{state.names[stuck[0]]} waits for {jobs.asked[stuck[0]]:,} GPUs of {there:,} that are there"
        found.append(f"{first}{_more(stuck)}")
    if deadlines is not None:
        late = [state.names[at] for at in np.flatnonzero(deadlines.at < state.now).tolist()]
        late += [
            one.job
            for one in changes
            if one.wanted is not None and one.wanted >= 0 and one.left is not None and one.left > one.wanted
        ]
        if late:
            found.append(f"{late[0]} will end after its deadline{_more(late)}")
    return "; ".join(found)


def _more(jobs: Sequence[object]) -> str:
    return f", and {len(jobs) - 1:,} more" if len(jobs) > 1 else ""


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
