"""The environment of a simulated kind, for trainings and evaluations: worlds, observations, reward terms, outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.contract.kind import Outcome
from app.kinds.contract.policy import Policy, Situation, View
from app.kinds.simulated import NumberedLayout
from workers.evaluation.arena import Bare, Player
from workers.evaluation.problem import Axis, Encoder, HeatMapAxes, LevelOptimum, Problem, SimulatedWorld, Tunable
from workers.evaluation.statistics import TITLES, Level
from workers.evaluation.wrappers import World
from workers.inputs import Conditions, Workload
from workers.kinds.contract import Spaces

if TYPE_CHECKING:
    from workers.kinds.simulated.headroom import Rivals
    from workers.learning.training.driver import PlannedPolicy


NO_PLAN = "no plan is known for workloads of this kind"


class SimulatedEnvironment:
    """The part of ``SimulatedKind`` that trainings and evaluations call.

    Attributes:
        name: the kind's name.
        judged_episodes: most episodes in which the best agent of a training is compared with the baselines; candidates
            within the training are scored on half as many.
        judged_decisions: most decisions in all judged episodes together; long episodes are therefore fewer.
        cloning_entropy: entropy bonus while a policy imitates an expert; None: the learners' default.
        continuing: whether the learners' environment never terminates; ends of episodes are then marked ``truncated``.
        window_episodes: episodes by which online learning is judged on each window.
    """

    name: str
    continuing = False
    cloning_entropy: float | None = None
    judged_episodes, judged_decisions, window_episodes = 4_096, 1 << 22, 128

    def world(self, workload: Workload, conditions: Conditions) -> World:
        """Make B episodes that begin together and accept disturbances; ``conditions.held_out``: models as bytes.

        Raises:
            NotImplementedError: always, in this base class.
        """
        raise NotImplementedError

    def baselines(self, workload: Workload) -> Mapping[str, Policy]:
        """Return the layout's baseline policies by name."""
        return {policy.name: policy for policy in self.layout(workload.spec).baselines}

    def terms(self, workload: Workload) -> Sequence[str]:
        """Return the names of the reward's T terms, as a world of one episode has them."""
        return tuple(self.world(workload, Conditions(1, 0)).terms_of)  # type: ignore[attr-defined]

    def weights(self, workload: Workload) -> Sequence[float]:
        """Return the weights of the reward's T terms, as a world of one episode has them."""
        return tuple(map(float, self.world(workload, Conditions(1, 0)).weights))  # type: ignore[attr-defined]

    def outcomes(self, workload: Workload) -> Sequence[Outcome]:
        """Return names and units of the outcomes that are counted per episode, as a world of one episode has them."""
        return tuple(self.world(workload, Conditions(1, 0)).outcomes)  # type: ignore[attr-defined]

    def length(self, workload: Workload) -> int:
        """Return the largest number of decisions in an episode; 1 if there are none."""
        return max(1, self.world(workload, Conditions(1, 0)).steps)

    def layout(self, spec: Any) -> Any:
        """Derive the layout (spaces, names, scales) from a parsed spec, by the registry of kinds.

        Raises:
            MissingKind: the spec's kind isn't installed.
        """
        from app.kinds.registry import layout_of

        return layout_of(spec)

    def entries(self, spec: Any) -> Sequence[str]:
        """Return the names of the observation's D entries."""
        return tuple(self.layout(spec).entries)

    def spaces(self, spec: Any) -> Spaces:
        """Return the layout's observation and action spaces; the kind gives no scores of candidates."""
        layout = self.layout(spec)
        return Spaces(layout.observation_space, layout.action_space, None)

    def save(self, policy: Any, spec: Any) -> bytes:
        """Serialise a policy of one of the shared families as an artifact for workloads of ``spec``."""
        from app.policies.artifact import save

        return save(policy, self.name, self.entries(spec), int(self.spaces(spec).action.n), {})

    def load(self, artifact: bytes, spec: Any) -> Policy:
        """Read the policy of an artifact.

        Raises:
            IncompatibleArtifact: the artifact can't be read, or was made for another kind, other observation entries or
                another number of actions.
        """
        from app.policies.artifact import load

        result = load(artifact)
        result.check(self.name, self.entries(spec), int(self.spaces(spec).action.n))
        policy: Policy = result.policy
        return policy

    def reference(self, workload: Workload) -> PlannedPolicy:
        """Return a ``PlannedPolicy`` without artifact, whose ``why_not`` says that this kind has no plan."""
        from workers.learning.training.driver import PlannedPolicy

        del workload
        return PlannedPolicy(why_not=NO_PLAN)

    def rivals(self, workload: Workload) -> Rivals | None:
        """Return the plays that measure the headroom (return that rules could still gain); None, the default: none."""
        del workload
        return None

    def pictures(self, workload: Workload, shown: Mapping[str, Policy], seed: int) -> dict[str, Any] | None:
        """Chart the policies ``shown`` by name, the judged one first, as JSON for the report; None: no charts."""
        del workload, shown, seed
        return None


NOTHING_HELD_OUT = "no executions were held out"
BINS = tuple(np.linspace(-2, 2, 11).round(3).tolist())


class SimulatedProblem(Problem):
    """The ``Problem`` that evaluations play for a ``SimulatedEnvironment``.

    Args:
        kind: the environment.
        workload: the workload with its domain model.
        held_out: domain models of held-out executions, as bytes.
        without: the reason why ``held_out`` is empty, shown for level L3.
    """

    def __init__(
        self,
        kind: SimulatedEnvironment,
        workload: Workload,
        held_out: Sequence[bytes] = (),
        without: str = NOTHING_HELD_OUT,
    ) -> None:
        self._kind, self._workload, self.held_out, self.without = kind, workload, held_out, without
        self.kind, self.name, self.layout = kind.name, workload.spec.name, kind.layout(workload.spec)
        self.terms: Sequence[str] = kind.terms(workload)
        self.weights: Sequence[float] = kind.weights(workload)
        self.outcomes: Sequence[Outcome] = kind.outcomes(workload)
        self.heuristics: Mapping[str, Policy] = kind.baselines(workload)
        self.entries = kind.entries(workload.spec)
        self._planned: LevelOptimum | None = None

    @property
    def heat_map_axes(self) -> HeatMapAxes:
        """Axes of the heat map: the first two observation entries; the colour is the number of the action."""
        x, y = self.entries[0], self.entries[min(1, len(self.entries) - 1)]
        return HeatMapAxes(Axis(x, BINS), Axis(y, BINS), "number of the action")

    @override
    def player(self, contender: bytes | Policy) -> Player:
        return Bare(self._policy(contender))

    def _policy(self, contender: bytes | Policy) -> Policy:
        if not isinstance(contender, bytes):
            return contender
        return self._kind.load(contender, self._workload.spec)

    @override
    def title(self, contender: bytes | Policy) -> str:
        return self._policy(contender).name

    @override
    def world(self, batch: int, seed: int) -> World:
        return self._kind.world(self._workload, Conditions(batch, seed, held_out=self.held_out))

    @override
    def unavailable(self, level: Level) -> str | None:
        return self.without if level is Level.COMPOSITION and not self.held_out else None

    def optimum(self, level: Level, seed: int) -> LevelOptimum:
        """Return the kind's reference plan, computed once; it counts as exact only on levels where seeds alone vary."""
        del seed
        if self._planned is None:
            reference = self._kind.reference(self._workload)
            policy = self._policy(reference.artifact) if reference.artifact else None
            self._planned = LevelOptimum(policy, reference.exact, reason=reference.why_not or None)
        alike = level in {Level.TRAIN, Level.SEEDS}
        return self._planned if alike else self._planned._replace(exact=False, reason=self._planned.reason or "planned")

    @override
    def tunables(self) -> Sequence[Tunable]:
        return ()

    def static(self, values: Mapping[str, int]) -> Policy:
        """Raise LookupError, because workloads of this kind have no static settings."""
        raise LookupError(f"nothing can be set: {dict(values)}")

    @override
    def heat_map_points(self, situation: Situation, action: NDArray[np.integer]) -> tuple[NDArray[np.floating], ...]:
        observation = situation.view.observation
        return observation[:, 0], observation[:, min(1, observation.shape[1] - 1)], action.astype(np.float64)

    def encoder(self, contender: bytes | Policy) -> Encoder | None:
        """Return the encoder of the observation, float32 [B, D], for artifacts; None for heuristics."""
        return Encoder("float32", lambda s: s.view.observation) if isinstance(contender, bytes) else None

    def labels(self) -> tuple[str, Policy] | None:
        """Return None, because the optimal actions are not known for this kind."""
        return None

    @override
    def named_observation(self, situation: Situation, row: int) -> Mapping[str, float]:
        values = situation.view.observation[row]
        return {name: round(float(value), 4) for name, value in zip(self.entries, values, strict=True)}

    @override
    def action_name(self, action: int) -> str:
        return str(action)

    @override
    def description(self, level: Level) -> str:
        return TITLES[level][1]

    @override
    def pictures(self, shown: Mapping[str, bytes | Policy], seed: int) -> dict[str, Any] | None:
        return self._kind.pictures(self._workload, {name: self._policy(one) for name, one in shown.items()}, seed)


class NumberedWorld(SimulatedWorld):
    """B episodes of a workload whose layout is a ``NumberedLayout`` and whose domain models are named tuples of
    numbers.

    A kind writes ``begin`` and ``advance``, and sets ``terms_of`` (names of the reward's terms).

    Args:
        layout: the workload's layout.
        models: the workload's domain model, then those of held-out executions.
        weights: weight of each term of the reward, [T].
        conditions: batch size B, and seed.
    """

    def __init__(
        self, layout: NumberedLayout, models: Sequence[Any], weights: Sequence[float], conditions: Conditions
    ) -> None:
        super().__init__(
            layout,
            len(layout.entries),
            layout.actions,
            weights,
            steps=layout.iterations,
            batch=conditions.batch,
            seed=conditions.seed,
            held_out=len(models) - 1,
        )
        self._models, self._model = np.array(models, np.float64), type(models[0])

    def followed(self) -> Any:
        """Return the domain models that the B episodes follow, as one named tuple whose numbers are arrays [B]."""
        which = np.zeros(self.batch, np.int64) if self.model is None else 1 + self.model
        return self._model(*self._models[which].T)

    def observe(self, state: Any) -> View:
        """Return observation [B, D] (D entries) and mask of legal actions [B, N] of a state, by the layout."""
        view: View = self.layout.observe(state)
        return view
