"""The learning half of kind ``inference``: fitting, simulator, trainings, baselines, charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from app.kinds.inference.heuristics import ALGORITHM
from workers.inputs import Conditions, Workload
from workers.kinds.contract import Evaluation, FittedModel, Online
from workers.kinds.simulated import SimulatedKind

if TYPE_CHECKING:
    from app.kinds.contract.kind import Outcome
    from app.kinds.contract.policy import Policy
    from workers.evaluation.protocol import KeptBack
    from workers.inputs import HoldOut, LoggedRun
    from workers.kinds.inference.evaluation.problem import InferenceProblem
    from workers.kinds.inference.simulator.world import InferenceWorld
    from workers.kinds.simulated.headroom import Rivals
    from workers.learning.training.driver import PlannedPolicy, Trainer
    from workers.learning.training.request import Request


class LearnedInference(SimulatedKind, Online):
    """The learning half of kind ``inference``: one agent for all users, or one agent for each user."""

    name = "inference"
    own = (ALGORITHM,)
    continuing = True
    judged_episodes, judged_decisions = 256, 1 << 18  # an episode has hundreds or thousands of decisions
    pictured_episodes = 16

    @override
    def fit(self, workload: Workload, seed: int) -> FittedModel:
        from workers.kinds.inference.estimation.fit import fit

        return fit(workload, seed)

    def trainer(self, workload: Workload, request: Request, champion: bytes | None) -> Trainer:
        """Make a competition of algorithms or, for ``grbal``, the training of an adaptive dynamics model.

        Raises:
            Untrainable: ``grbal``, which has one policy for all users, is requested with a policy per user.
        """
        from workers.kinds.inference.adaptation import AdaptiveTrainer
        from workers.learning.training.request import Untrainable

        if request.algorithm != ALGORITHM:
            return super().trainer(workload, request, champion)
        if workload.spec.policies != "one":
            raise Untrainable(f"{ALGORITHM} plans for all users at once: policies must be 'one', not 'per_user'")
        return AdaptiveTrainer(workload, self.training(workload, request), request, champion)

    def world(self, workload: Workload, conditions: Conditions) -> InferenceWorld:
        """Make a world under the domain model, or, with option ``window`` (bytes), one that replays recent runs.

        Raises:
            IncompatibleModel: the domain model's bytes can't be read.
            CheckpointError: the window's bytes can't be read.
        """
        from app.kinds.inference.model import ServiceModel
        from workers.kinds.inference.simulator.world import InferenceWorld

        if "window" in conditions.options:
            return self._window(workload, conditions)
        models = [ServiceModel.from_bytes(data) for data in (workload.model, *conditions.held_out)]
        return InferenceWorld(self.layout(workload.spec), models, conditions)

    def simulator(self, workload: Workload, conditions: Conditions) -> Any:
        """Make the world; its episodes restart one by one for learners, who get ``Clients`` with a policy per user.

        Raises:
            IncompatibleModel, CheckpointError: the domain model's, or the window's, bytes can't be read.
        """
        from workers.kinds.inference.simulator.world import Clients

        world = self.world(workload, conditions)
        together = conditions.purpose == "learning" and workload.spec.policies == "per_user"
        return Clients(world) if together else world

    def save(self, policy: Any, spec: Any) -> bytes:
        """Serialise a policy, or a mapping of policies by user, as one artifact. Raises KeyError if a user has none."""
        from app.kinds.inference.awarding import clients
        from app.kinds.inference.policies import FAMILIES
        from app.policies.artifact import save, save_roles

        if not isinstance(policy, Mapping):
            return save(policy, self.name, self.entries(spec), int(self.spaces(spec).action.n), {}, FAMILIES)
        return save_roles(
            {
                name: save(policy[name], self.name, client.entries, client.actions, {})
                for name, client in clients(self.layout(spec)).items()
            }
        )

    def load(self, artifact: bytes, spec: Any) -> Policy:
        """Read an artifact's policy; policies of several users are combined into one that decides for all.

        Raises:
            IncompatibleArtifact: the artifact can't be read, or was made for another kind or spec.
        """
        from app.kinds.inference.awarding import Together
        from app.kinds.inference.heuristics import OFFERING
        from app.kinds.inference.policies import check, load

        result, layout = load(artifact), self.layout(spec)
        if not result.roles:
            result.check(self.name, self.entries(spec), int(self.spaces(spec).action.n))
            policy: Policy = result.policy
            return policy
        check(result, layout)
        return Together(layout, {role: one.policy for role, one in result.roles.items()}, OFFERING)

    def _window(self, workload: Workload, conditions: Conditions) -> InferenceWorld:
        """Make a world that replays the window's part for learning (by purpose or option ``part``) or for judging."""
        from app.kinds.inference.model import ServiceModel
        from workers.kinds.inference.simulator.world import InferenceWorld
        from workers.kinds.inference.windows import Window

        window, believed = Window.from_bytes(conditions.options["window"]), ServiceModel.from_bytes(workload.model)
        spec = workload.spec.model_copy(update={"episode_seconds": window.episode_seconds})
        learned = "learning" in (conditions.purpose, conditions.options.get("part"))
        log = window.learning if learned else window.judged
        return InferenceWorld(self.layout(spec), [window.adapt(believed)], conditions, log, believed)

    def window(self, workload: Workload, runs: Sequence[LoggedRun]) -> bytes:
        """Pack the runs' arrival times of requests, and the natural log of batch seconds over the model's expectation,
        as bytes.

        Raises:
            TooLittleData: the window has too few requests, or no run reported long enough.
        """
        from app.kinds.inference.model import ServiceModel
        from workers.kinds.inference.windows import rebuilt, stretch

        layout = self.layout(workload.spec)
        met = [stretch(layout, run) for run in runs]
        return rebuilt(layout, ServiceModel.from_bytes(workload.model), met).to_bytes()

    def baselines(self, workload: Workload) -> Mapping[str, Policy]:
        """Return the layout's rules by name; with a policy per user also the rule that awards servers by offers."""
        from app.kinds.inference.awarding import Together
        from app.kinds.inference.heuristics import OFFERING, baselines

        layout = self.layout(workload.spec)
        rules: dict[str, Policy] = {**baselines(layout)}
        if workload.spec.policies == "per_user":
            offers = Together(layout, {}, OFFERING)
            rules[offers.name] = offers
        return rules

    @override
    def terms(self, workload: Workload) -> Sequence[str]:
        from workers.kinds.inference.simulator.world import TERMS

        del workload
        return TERMS

    def weights(self, workload: Workload) -> Sequence[float]:
        """Return the spec's four weights: of quality, fairness, cost and switching."""
        wanted = workload.spec.weights
        return wanted.quality, wanted.fairness, wanted.cost, wanted.switching

    @override
    def outcomes(self, workload: Workload) -> Sequence[Outcome]:
        from workers.kinds.inference.simulator.world import outcomes_of

        return outcomes_of(self.layout(workload.spec))

    def length(self, workload: Workload) -> int:
        """Estimate the number of decisions in an episode, requests plus control intervals; at least 1."""
        from app.kinds.inference.model import ServiceModel

        spec, rate = workload.spec, ServiceModel.from_bytes(workload.model).rate.mean(axis=1).sum()
        return max(1, int(spec.episode_seconds * (rate + 1 / spec.control_seconds)))

    def kept_back(self, workload: Workload, held_out: HoldOut, seed: int) -> KeptBack:
        """Choose the logs of requests, or the part of the only log, to hold out for L3."""
        from workers.kinds.inference.evaluation.problem import kept_back

        return kept_back(workload.samples, len(workload.spec.variants), held_out, seed)

    def evaluation(self, workload: Workload, held_out: HoldOut | None, seed: int) -> Evaluation:
        """Prepare an evaluation; with held-out users, L3 runs on domain models in which they swap arrivals."""
        from app.kinds.inference.model import ServiceModel
        from workers.kinds.inference.evaluation.problem import LONELY, USERS, exchange_users, users_kept_back

        if held_out is None or held_out.of != USERS:
            return super().evaluation(workload, held_out, seed)
        users = [user.name for user in workload.spec.users]
        chosen = users_kept_back(users, workload.samples, held_out, seed)
        if not chosen.names:
            return Evaluation(self.problem(workload, (), LONELY), chosen.report(LONELY, None))
        models = exchange_users(ServiceModel.from_bytes(workload.model), users, chosen.names, seed)
        note = (
            f"In L3 {', '.join(chosen.names)} and other users change places; "
            f"no agent's model knew a request of {chosen.unseen} of {len(chosen.names)}."
        )
        problem = self.problem(workload, [model.to_bytes() for model in models], "")
        return Evaluation(problem, chosen.report(None, note))

    @override
    def problem(self, workload: Workload, held_out: Sequence[bytes], without: str) -> InferenceProblem:
        from workers.kinds.inference.evaluation.problem import InferenceProblem

        return InferenceProblem(self, workload, held_out, without)

    @override
    def rivals(self, workload: Workload) -> Rivals:
        from workers.kinds.inference.rivals import InferenceRivals

        return InferenceRivals(self, workload)

    def pictures(self, workload: Workload, shown: Mapping[str, Policy], seed: int) -> dict[str, Any]:
        """Chart the requests' delays, qualities and batches under the policies ``shown``, beside other baselines."""
        from workers.evaluation.arena import Bare
        from workers.kinds.inference.evaluation.pictures import MOST_LINES, pictures
        from workers.kinds.inference.evaluation.problem import record_requests

        rules = self.baselines(workload)
        several = dict(list({**shown, **rules}.items())[: max(MOST_LINES, len(shown))])
        conditions = Conditions(self.pictured_episodes, seed)
        played = {
            name: record_requests(self.world(workload, conditions), seed, Bare(one)) for name, one in several.items()
        }
        rule = next((name for name in shown if name in rules), next(iter(several)))
        return pictures(self.layout(workload.spec), played, list(dict.fromkeys([next(iter(shown)), rule])))

    def reference(self, workload: Workload) -> PlannedPolicy:
        """Compute the optimum of a small system on one server; for others the result's ``why_not`` is the reason."""
        from app.kinds.inference.model import ServiceModel
        from workers.kinds.inference.evaluation.optimum import Intractable, solve
        from workers.learning.training.driver import PlannedPolicy

        if workload.spec.policies == "per_user":
            return PlannedPolicy(why_not="every user has an agent of its own")
        layout, model = self.layout(workload.spec), ServiceModel.from_bytes(workload.model)
        try:
            best = solve(layout, model)
        except Intractable as reason:
            return PlannedPolicy(why_not=str(reason))
        artifact = self.save(best.policy(layout), workload.spec)
        return PlannedPolicy(artifact, self._score(workload, artifact), exact=best.exact, details=best.details())

    def _score(self, workload: Workload, artifact: bytes) -> float:
        from workers.kinds.simulated.training import SimulatedTraining

        return SimulatedTraining(self, workload, 0).score(artifact)


KIND = LearnedInference()
