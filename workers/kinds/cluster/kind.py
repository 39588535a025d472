"""The learning half of kind ``cluster``: fitting, simulated clusters, trainings, baselines and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from app.kinds.cluster.policies import AHEAD, WITH_MODEL, load
from workers.inputs import Conditions, Workload
from workers.kinds.contract import FittedModel
from workers.kinds.simulated import SimulatedKind

if TYPE_CHECKING:
    from app.kinds.contract.policy import Policy
    from workers.kinds.cluster.evaluation import ClusterProblem
    from workers.kinds.cluster.world import ClusterWorld
    from workers.kinds.simulated.headroom import Rivals
    from workers.learning.training.driver import Trainer
    from workers.learning.training.request import Request


IMITATING = frozenset({"auto", "ppo", "a2c", "vtrace"})
CLONING_ENTROPY = 0.5
"""Entropy bonus while a policy imitates the rule: about a third of the weights then change at first. With the usual
bonus a trained policy never deviates from the rule.
"""


class LearnedCluster(SimulatedKind):
    """The learning half of kind ``cluster``: agents set the weights of jobs.

    Methods raise IncompatibleModel for a domain model that they can't read.
    """

    name = "cluster"
    cloning_entropy = CLONING_ENTROPY
    judged_episodes = 64  # each decision of each episode weighs all jobs of a cluster
    pictured_episodes = 8

    @override
    def fit(self, workload: Workload, seed: int) -> FittedModel:
        from workers.kinds.cluster.fit import fit

        return fit(workload, seed)

    @override
    def world(self, workload: Workload, conditions: Conditions) -> ClusterWorld:
        from app.kinds.cluster.model import ClusterModel
        from app.kinds.cluster.outlook import Beliefs
        from workers.kinds.cluster.world import ClusterWorld, PlayedSource

        layout = self.layout(workload.spec)
        gpus = int(layout.capacity.sum())
        members = {name: one for name, one in workload.members.items() if one.seconds_known and one.amounts[0] <= gpus}
        models = [ClusterModel.from_bytes(data) for data in (workload.model, *conditions.held_out)]
        beliefs = [Beliefs(model, members) for model in models]
        return ClusterWorld(layout, PlayedSource(layout, beliefs), conditions, len(beliefs) - 1)

    def trainer(self, workload: Workload, request: Request, champion: bytes | None) -> Trainer:
        """Make a competition of algorithms. Policy gradients first imitate the default rule if ``request`` has neither
        ``imitate`` nor ``start``.

        Raises:
            Untrainable: no sample tells when jobs came and how long they ran.
        """
        from app.kinds.cluster.model import ClusterModel
        from workers.kinds.cluster.episodes import playable
        from workers.learning.training.request import Untrainable

        if not playable(ClusterModel.from_bytes(workload.model).arrivals):
            raise Untrainable("agents learn from jobs that come: no sample tells when any did, and how long it ran")
        begins = request.imitate is None and request.start is None and request.algorithm in IMITATING
        return super().trainer(workload, replace(request, imitate=WITH_MODEL) if begins else request, champion)

    def baselines(self, workload: Workload) -> Mapping[str, Policy]:
        """Return the layout's rules by name, without the one that simulates ahead; the default rule comes first."""
        from workers.kinds.cluster.world import RulePolicy

        names = sorted(self.layout(workload.spec).rules, key=lambda name: name != WITH_MODEL)
        return {name: RulePolicy(name) for name in names if name != AHEAD}

    @override
    def load(self, artifact: bytes, spec: Any) -> Policy:
        result = load(artifact)
        result.check(self.name, self.entries(spec), int(self.spaces(spec).action.n))
        policy: Policy = result.policy
        return policy

    @override
    def problem(self, workload: Workload, held_out: Sequence[bytes], without: str) -> ClusterProblem:
        from workers.kinds.cluster.evaluation import ClusterProblem

        return ClusterProblem(self, workload, held_out, without)

    @override
    def rivals(self, workload: Workload) -> Rivals:
        from workers.kinds.cluster.rivals import ClusterRivals

        return ClusterRivals(self, workload)

    def pictures(self, workload: Workload, shown: Mapping[str, Policy], seed: int) -> dict[str, Any]:
        """Chart GPUs, queue and completions of jobs under the policies ``shown``, beside some rules.

        Raises:
            TooLittleData: the domain model has no jobs to draw from.
        """
        from app.kinds.cluster.model import ClusterModel
        from workers.evaluation.arena import Bare
        from workers.kinds.cluster.evaluation import MOST_LINES, pictures, record_episodes

        rules = self.baselines(workload)
        several = dict(list({**shown, **rules}.items())[: max(MOST_LINES, len(shown))])
        conditions = Conditions(self.pictured_episodes, seed)
        played = {
            name: record_episodes(self.world(workload, conditions), seed, Bare(one)) for name, one in several.items()
        }
        first, *others = several
        rule = next((name for name in others if name in rules), first)
        compared, model = list(dict.fromkeys([first, rule])), ClusterModel.from_bytes(workload.model)
        return pictures(self.layout(workload.spec), model, played, compared, self.pictured_episodes)


KIND = LearnedCluster()
