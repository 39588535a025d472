"""The evaluation's view of a workload of kind ``cluster``: what its policies do to jobs, and what is random."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.observation import ENTRIES
from app.kinds.cluster.policies import FACTORS
from app.kinds.contract.policy import Situation
from workers.evaluation.levels import Level
from workers.evaluation.problem import Axis, HeatMapAxes
from workers.kinds.cluster.simulator.stepping import NOBODY
from workers.kinds.simulated.problem import SimulatedProblem

BINS = 10
LEFT = ENTRIES.index("left")
DESCRIPTIONS = {
    Level.TRAIN: "As L1, under seeds that no test uses.",
    Level.FIXED: "One episode: the same jobs at the same times for everybody and every time.",
    Level.SEEDS: "What a seed decides: the hour of the day, which jobs come and how long they last, how far steps are "
    "slower than is believed.",
    Level.PARAMETERS: "How many jobs come, and how far steps stray from what is believed, changes too.",
    Level.COMPOSITION: "Jobs come and last as in a domain model of executions that were held out.",
    Level.ENVIRONMENT: "More jobs; steps slow down, GPUs are lost, and work is lost on top.",
}


class ClusterProblem(SimulatedProblem):
    """See ``Problem``."""

    @cached_property
    def heat_map_axes(self) -> HeatMapAxes:
        """See ``Problem``: how jobs' weights are changed, by what is left of a job and the GPUs that it has."""
        spec, gpus = self.layout.spec, int(self.layout.capacity.sum())
        hours = np.linspace(0.0, spec.episode_intervals * spec.interval_seconds / 3600, BINS + 1).round(3)
        held = np.unique(np.append(0.0, np.linspace(1, gpus + 1, BINS).round()))
        left = Axis("hours that are left of the job, on an equal share of GPUs", tuple(hours.tolist()))
        told = "change of the job's weight, in doublings (above 0: GPUs sooner; below: later)"
        return HeatMapAxes(left, Axis("GPUs that it has", tuple(held.tolist())), told)

    def drawn(self, situation: Situation, action: NDArray[np.integer]) -> tuple[NDArray[np.floating], ...]:
        """See ``Problem``; nothing is drawn where no job is asked for."""
        state, rows = situation.state, np.arange(len(action))
        asked = state.asked != NOBODY
        gpus = np.where(asked, state.clusters.gpus[rows, state.asked], 0).astype(np.float64)
        hours = self._seconds(situation.view.observation[:, LEFT]) / 3600
        return hours, gpus, np.where(asked, np.log2(FACTORS[action]), np.nan)

    def _seconds(self, entry: NDArray[np.floating]) -> NDArray[np.float64]:
        """What ``observation.observe`` made an entry of."""
        return np.asarray(self.layout.spec.interval_seconds * np.expm1(4.0 * (entry.astype(np.float64) + 1.0)))

    def action_name(self, action: int) -> str:
        """See ``Problem``."""
        return f"the job's weight × {FACTORS[action]:.3g}"

    def description(self, level: Level) -> str:
        """See ``Problem``."""
        return DESCRIPTIONS[level]
