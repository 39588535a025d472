"""Kind ``cluster`` as workers know it: its domain model, clusters that are played, and the rules to hold against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.kinds.simulated.policies import Constant
from workers.inputs import Conditions, Workload
from workers.kinds.contract import Fitted
from workers.kinds.simulated import SimulatedKind

if TYPE_CHECKING:
    from app.kinds.contract.policy import Policy
    from workers.kinds.cluster.evaluation.problem import ClusterProblem
    from workers.kinds.cluster.world.world import ClusterWorld


class LearnedCluster(SimulatedKind):
    """See ``LearnedKind``."""

    name = "cluster"
    validation_episodes, judged_episodes = 16, 32  # each decision of each places all jobs of a cluster
    pictured_episodes = 8

    def fit(self, workload: Workload, seed: int) -> Fitted:
        """See ``LearnedKind``."""
        from workers.kinds.cluster.estimation.fit import fit

        return fit(workload, seed)

    def world(self, workload: Workload, conditions: Conditions) -> ClusterWorld:
        """See ``SimulatedKind``.

        Raises:
            ValueError: the domain model has seen no job come.
        """
        from app.kinds.cluster.model import ClusterModel
        from workers.kinds.cluster.world.world import ClusterWorld

        models = [ClusterModel.from_bytes(data) for data in (workload.model, *conditions.held_out)]
        return ClusterWorld(self.layout(workload.spec), models, conditions)

    def baselines(self, workload: Workload) -> Mapping[str, Policy]:
        """See ``LearnedKind``: every rule alone."""
        rules = self.layout(workload.spec).rules
        return {name: Constant(name, number) for number, name in enumerate(rules)}

    def problem(self, workload: Workload, held_out: Sequence[bytes], without: str) -> ClusterProblem:
        """See ``SimulatedKind``."""
        from workers.kinds.cluster.evaluation.problem import ClusterProblem

        return ClusterProblem(self, workload, held_out, without)

    def pictures(self, workload: Workload, shown: Mapping[str, Policy], seed: int) -> dict[str, Any]:
        """See ``SimulatedKind``: what becomes of jobs; beside what is shown, other rules."""
        from app.kinds.cluster.model import ClusterModel
        from workers.evaluation.arena import Bare
        from workers.kinds.cluster.evaluation.pictures import MOST_LINES, pictures
        from workers.kinds.cluster.evaluation.recording import recorded

        rules = self.baselines(workload)
        several = dict(list({**shown, **rules}.items())[: max(MOST_LINES, len(shown))])
        conditions = Conditions(self.pictured_episodes, seed)
        played = {name: recorded(self.world(workload, conditions), seed, Bare(one)) for name, one in several.items()}
        first, *others = several
        rule = next((name for name in others if name in rules), first)
        compared, model = list(dict.fromkeys([first, rule])), ClusterModel.from_bytes(workload.model)
        return pictures(self.layout(workload.spec), model, played, compared, self.pictured_episodes)


KIND = LearnedCluster()
