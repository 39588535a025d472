"""What it means for a cluster to be at risk, and to have met its targets.

Its targets are those that members have for a whole run: each counts from the submission of a job on. A target of each
iteration weighs in decisions alone. A cluster is also at risk while a job needs more GPUs than there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from app.kinds.cluster.allocation.neighbours import slowdowns
from app.kinds.cluster.decisions.compiled import Compiled
from app.kinds.cluster.live.outlook import BelievedOutlook
from app.kinds.cluster.live.state import ClusterState
from app.kinds.contract.run_outcome import Ended, Judgement, in_time


def risk(compiled: Compiled, state: ClusterState, outlook: BelievedOutlook) -> str:
    """Which jobs can't start on the GPUs that are there, and which will end after their deadlines; empty where there
    are none.

    Args:
        compiled: the workload.
        state: after a decision.
        outlook: what is expected of the jobs.
    """
    jobs, there, found = state.jobs, int(state.capacity.sum()), list[str]()
    stuck = np.flatnonzero((jobs.minimum > there) & ~jobs.held.any(axis=1)).tolist()
    if stuck:
        first = f"{state.names[stuck[0]]} waits for {jobs.minimum[stuck[0]]:,} GPUs of {there:,} that are there"
        found.append(f"{first}{_more(stuck)}")
    allowed = _allowed(compiled)
    late = _late(state, outlook, allowed) if allowed and state.names else []
    if late:
        found.append(f"{late[0]} will end after its deadline{_more(late)}")
    return "; ".join(found)


def _late(state: ClusterState, outlook: BelievedOutlook, allowed: Mapping[str, float]) -> list[str]:
    """Jobs whose deadline has passed, or comes before their end as expected on what they hold."""
    jobs = state.jobs
    seconds = [allowed.get(application, math.inf) for application in state.records.application.tolist()]
    left = outlook.seconds_left(jobs.gpus[:, None])[:, 0]
    if outlook.neighbours is not None:
        left = left * slowdowns(outlook.neighbours, jobs.held)
    left = np.where((jobs.gpus > 0) & outlook.known, left + jobs.restarting, 0.0)
    return [state.names[at] for at in np.flatnonzero(state.now + left > jobs.submitted + np.array(seconds)).tolist()]


def _allowed(compiled: Compiled) -> dict[str, float]:
    """Seconds that a job may take from its submission on, by application: of members that have such a target."""
    members = compiled.snapshot.members
    return {name: one.run_seconds for name, one in members.items() if math.isfinite(one.run_seconds)}


def _more(jobs: Sequence[object]) -> str:
    return f", and {len(jobs) - 1:,} more" if len(jobs) > 1 else ""


def judge(compiled: Compiled, run: Ended) -> Judgement:
    """Every job of a member with a target for its whole run: it has to end within that from its submission on."""
    allowed = _allowed(compiled)
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
