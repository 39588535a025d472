"""Kind ``cluster`` as workers know it: its domain model, clusters that are played, and the rules to hold against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from app.kinds.simulated.policies import Constant
from workers.inputs import Conditions, Workload
from workers.kinds.contract import Fitted
from workers.kinds.simulated import SimulatedKind

if TYPE_CHECKING:
    from app.kinds.contract.policy import Policy
    from workers.kinds.cluster.world.world import ClusterWorld


class LearnedCluster(SimulatedKind):
    """See ``LearnedKind``."""

    name = "cluster"
    validation_episodes, judged_episodes = 16, 32  # each decision of each places all jobs of a cluster

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


KIND = LearnedCluster()
