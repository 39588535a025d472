"""Kind ``inference`` as workers know it: its domain model, the simulator of it, and what policies are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workers.inputs import Conditions, Workload
from workers.kinds.contract import Fitted
from workers.kinds.simulated import SimulatedKind

if TYPE_CHECKING:
    from app.kinds.contract.outcome import Outcome
    from app.kinds.contract.policy import Policy
    from workers.kinds.inference.simulator.world import InferenceWorld
    from workers.learning.training.problem import Planned


class LearnedInference(SimulatedKind):
    """See ``LearnedKind``."""

    name = "inference"
    continuing = True
    validation_episodes, judged_episodes = 128, 256  # of hundreds of decisions each, often thousands

    def fit(self, workload: Workload, seed: int) -> Fitted:
        """See ``LearnedKind``."""
        from workers.kinds.inference.estimation.fit import fit

        return fit(workload, seed)

    def world(self, workload: Workload, conditions: Conditions) -> InferenceWorld:
        """See ``SimulatedKind``; option ``service`` as in ``InferenceWorld``."""
        from app.kinds.inference.model import ServiceModel
        from workers.kinds.inference.simulator.world import InferenceWorld

        models = [ServiceModel.from_bytes(data) for data in (workload.model, *conditions.held_out)]
        return InferenceWorld(self.layout(workload.spec), models, conditions)

    def simulator(self, workload: Workload, conditions: Conditions) -> Any:
        """See ``LearnedKind``: the world, whose episodes begin anew one by one for learners.

        Where every user has an agent of its own they learn in it together.
        """
        from workers.kinds.inference.simulator.clients import Clients

        world = self.world(workload, conditions)
        together = conditions.purpose == "learning" and workload.spec.policies == "per_user"
        return Clients(world) if together else world

    def save(self, policy: Any, spec: Any) -> bytes:
        """A policy, or those of all users by name, as an artifact."""
        from app.kinds.inference.per_user import clients
        from app.policies.artifact import save, save_roles

        if not isinstance(policy, Mapping):
            return super().save(policy, spec)
        return save_roles(
            {
                name: save(policy[name], self.name, client.entries, client.actions, {})
                for name, client in clients(self.layout(spec)).items()
            }
        )

    def load(self, artifact: bytes, spec: Any) -> Policy:
        """See ``SimulatedKind``; the policies of users play together."""
        from app.kinds.inference.awarding import Together
        from app.kinds.inference.heuristics import BASELINES
        from app.kinds.inference.policies import check
        from app.policies.artifact import load

        made, layout = load(artifact), self.layout(spec)
        if not made.roles:
            return super().load(artifact, spec)
        check(made, layout)
        return Together(layout, {role: one.policy for role, one in made.roles.items()}, BASELINES[0])

    def baselines(self, workload: Workload) -> Mapping[str, Policy]:
        """See ``LearnedKind``."""
        from app.kinds.inference.heuristics import BASELINES

        del workload
        return {policy.name: policy for policy in BASELINES}

    def terms(self, workload: Workload) -> Sequence[str]:
        """See ``SimulatedKind``."""
        from workers.kinds.inference.simulator.world import TERMS

        del workload
        return TERMS

    def weights(self, workload: Workload) -> Sequence[float]:
        """See ``SimulatedKind``: the spec's."""
        wanted = workload.spec.weights
        return wanted.quality, wanted.fairness, wanted.cost, wanted.switching

    def outcomes(self, workload: Workload) -> Sequence[Outcome]:
        """See ``SimulatedKind``."""
        from workers.kinds.inference.simulator.world import outcomes_of

        return outcomes_of(self.layout(workload.spec))

    def length(self, workload: Workload) -> int:
        """See ``SimulatedKind``: a decision for each request, and for each control interval."""
        from app.kinds.inference.model import ServiceModel

        spec, rate = workload.spec, ServiceModel.from_bytes(workload.model).rate.mean(axis=1).sum()
        return max(1, int(spec.episode_seconds * (rate + 1 / spec.control_seconds)))

    def reference(self, workload: Workload) -> Planned:
        """See ``LearnedKind``: the optimum of one server whose answers lose nothing by delay."""
        from app.kinds.inference.model import ServiceModel
        from workers.kinds.inference.evaluation.optimum import Intractable, solve
        from workers.learning.training.problem import Planned

        if workload.spec.policies == "per_user":
            return Planned(why_not="every user has an agent of its own")
        layout, model = self.layout(workload.spec), ServiceModel.from_bytes(workload.model)
        try:
            found = solve(layout, model)
        except Intractable as reason:
            return Planned(why_not=str(reason))
        artifact = self.save(found.policy(layout), workload.spec)
        return Planned(artifact, self._score(workload, artifact), exact=found.exact, details=found.details())

    def _score(self, workload: Workload, artifact: bytes) -> float:
        from workers.kinds.simulated.training import SimulatedTraining

        return SimulatedTraining(self, workload, 0).score(artifact)


KIND = LearnedInference()
