"""The evaluation's view of a workload of kind ``cluster``: what is random at each level."""

from __future__ import annotations

from workers.evaluation.levels import Level
from workers.kinds.simulated.problem import SimulatedProblem

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

    def description(self, level: Level) -> str:
        """See ``Problem``."""
        return DESCRIPTIONS[level]
