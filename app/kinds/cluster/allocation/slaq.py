"""SLAQ: GPUs go one by one where the loss falls most (Zhang, Stafman, Or and Freedman, SoCC 2017)."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.allocation.optimus import give
from app.kinds.cluster.allocation.situation import Situation, Wanted, admitted

SECONDS = 60.0
"""Over which the fall of the loss is predicted."""


def slaq(situation: Situation) -> Wanted:
    """The fewest GPUs for each job, then one more wherever the predicted fall of the normalised loss grows most.

    Where not all jobs can have their fewest, those come first whose loss falls most for each GPU.
    """
    jobs, free = situation.jobs, situation.gpus
    fall = situation.outlook.loss_reduction(np.arange(free + 1), SECONDS)
    first = np.take_along_axis(fall, np.minimum(jobs.minimum, free)[:, None], axis=1)[:, 0]
    gpus = admitted(jobs.minimum, np.argsort(-first / np.maximum(jobs.minimum, 1), kind="stable"), free)
    most = np.minimum(jobs.maximum, free)
    give(gpus, np.diff(fall[:, 1:], axis=1), most, free - int(gpus.sum()))
    return Wanted(gpus, np.argsort(gpus, kind="stable"))
