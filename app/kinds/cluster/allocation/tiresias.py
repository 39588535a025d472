"""Tiresias: two queues by attained service, each first come first served (Gu et al., NSDI 2019)."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.allocation.situation import Situation, Wanted, admitted
from app.kinds.cluster.jobs import NEVER


def tiresias(situation: Situation) -> Wanted:
    """Each job whose asked GPUs still fit runs: those not yet demoted first, then others in order of their demotion."""
    jobs = situation.jobs
    since = np.where(jobs.demoted == NEVER, -np.inf, jobs.demoted)
    order = np.lexsort((np.arange(len(since)), since))
    return Wanted(admitted(jobs.asked, order, situation.gpus), order)
