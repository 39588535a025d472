"""Jobs of a live cluster that are runs of members: by when each should be finished."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from app.kinds.cluster.allocation.deadlines import Deadlines
from app.kinds.cluster.jobs import NEVER
from app.kinds.cluster.live.state import ClusterState
from app.kinds.contract.member import Member


def deadlines(members: Mapping[str, Member], state: ClusterState, worth: float) -> Deadlines | None:
    """Of a state's jobs; None: none has any.

    A target for the whole run counts from the job's submission. Where each iteration has one, what is left of the job
    should take no longer than so many of them.

    Args:
        members: by application.
        state: of the run.
        worth: of a target that is met, at weight 1.
    """
    records, names = state.records, state.records.application.tolist()
    found = Deadlines(np.full(len(names), NEVER), np.zeros(len(names)), np.zeros(len(names)))
    for at, one in ((at, members[name]) for at, name in enumerate(names) if name in members):
        whole = records.iterations[at] if np.isfinite(records.iterations[at]) else one.iterations
        left = max(whole - records.iteration[at], 1.0)
        found.at[at] = min(state.jobs.submitted[at] + one.run_seconds, state.now + left * one.iteration_seconds)
        found.spread[at], found.worth[at] = one.spread, worth * one.weight
    return found if (found.at < NEVER).any() else None
