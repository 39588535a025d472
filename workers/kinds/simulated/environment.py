"""What a kind is to those who learn and judge in its simulator: its world, what is observed, paid and counted in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workers.inputs import Conditions, Workload
from workers.kinds.contract import Spaces

if TYPE_CHECKING:
    from app.kinds.contract.outcome import Outcome
    from app.kinds.contract.policy import Policy
    from workers.evaluation.wrappers.base import World
    from workers.learning.training.problem import Planned

NO_PLAN = "no plan is known for workloads of this kind"


class SimulatedEnvironment:
    """The part of ``SimulatedKind`` that trainings and evaluations need; see there for what a kind writes.

    Attributes:
        judged_episodes: at most, by which the best agent of a training is judged beside the baselines; agents are
            compared by half as many.
        judged_decisions: at most, in all of these together.
        cloning_entropy: see ``TrainingProblem``.
        continuing: whether the world of learners goes on and on; its steps then say that episodes are ``truncated``.
        window_episodes: by which what goes on learning is judged on each window.
    """

    name: str
    continuing = False
    cloning_entropy: float | None = None
    judged_episodes, judged_decisions, window_episodes = 4_096, 1 << 22, 128

    def world(self, workload: Workload, conditions: Conditions) -> World:
        """B episodes that begin together, open to disturbances; ``held_out`` are domain models as bytes.

        ``workers.evaluation.world.SimulatedWorld`` is one that only has to be filled in.
        """
        raise NotImplementedError

    def baselines(self, workload: Workload) -> Mapping[str, Policy]:
        """See ``LearnedKind``: the layout's ``baselines``."""
        return {policy.name: policy for policy in self.layout(workload.spec).baselines}

    def terms(self, workload: Workload) -> Sequence[str]:
        """Names of the reward's terms, [T]: the world's."""
        return tuple(self.world(workload, Conditions(1, 0)).terms_of)  # type: ignore[attr-defined]

    def weights(self, workload: Workload) -> Sequence[float]:
        """What each of them is worth, [T]."""
        return tuple(map(float, self.world(workload, Conditions(1, 0)).weights))  # type: ignore[attr-defined]

    def outcomes(self, workload: Workload) -> Sequence[Outcome]:
        """What users count of an episode: the world's."""
        return tuple(self.world(workload, Conditions(1, 0)).outcomes)  # type: ignore[attr-defined]

    def length(self, workload: Workload) -> int:
        """Decisions of an episode, about: the world's most."""
        return max(1, self.world(workload, Conditions(1, 0)).steps)

    def layout(self, spec: Any) -> Any:
        """What is derived from a spec: spaces, names, scales."""
        from app.kinds.registry import layout_of

        return layout_of(spec)

    def entries(self, spec: Any) -> Sequence[str]:
        """What each entry of an observation is, [D]: the layout's ``entries``."""
        return tuple(self.layout(spec).entries)

    def spaces(self, spec: Any) -> Spaces:
        """See ``LearnedKind``: the layout's."""
        layout = self.layout(spec)
        return Spaces(layout.observation_space, layout.action_space, None)

    def save(self, policy: Any, spec: Any) -> bytes:
        """A policy of one of the families that all kinds share, as an artifact for a spec."""
        from app.policies.artifact import save

        return save(policy, self.name, self.entries(spec), int(self.spaces(spec).action.n), {})

    def load(self, artifact: bytes, spec: Any) -> Policy:
        """The policy of an artifact.

        Raises:
            IncompatibleArtifact: it was made for another kind or spec.
        """
        from app.policies.artifact import load

        made = load(artifact)
        made.check(self.name, self.entries(spec), int(self.spaces(spec).action.n))
        policy: Policy = made.policy
        return policy

    def reference(self, workload: Workload) -> Planned:
        """See ``LearnedKind``; there is none."""
        from workers.learning.training.problem import Planned

        del workload
        return Planned(why_not=NO_PLAN)

    def pictures(self, workload: Workload, shown: Mapping[str, Policy], seed: int) -> dict[str, Any] | None:
        """What reports show of policies, the first of which is judged; see ``workers.evaluation.report.pictures``."""
        del workload, shown, seed
        return None
