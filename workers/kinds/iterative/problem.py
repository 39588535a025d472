"""The ``Problem`` that evaluations play for workloads of kind ``iterative``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.contract.kind import Outcome
from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.iterative.heuristics import HEURISTICS, Heuristic, RulePolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.moves import action_towards
from app.kinds.iterative.observation import TERMS
from app.kinds.iterative.policies import PlannerPolicy, Verdict, check, decide, load
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Spec
from app.policies.artifact import Artifact, TablePolicy, cell
from app.policies.network import NetworkPolicy
from workers.evaluation.arena import Bare, Move, Player
from workers.evaluation.problem import Axis, Encoder, HeatMapAxes, LevelOptimum, Problem, Tunable
from workers.evaluation.statistics import TITLES, Level
from workers.evaluation.wrappers import World
from workers.kinds.iterative.off_policy import outcomes_of
from workers.kinds.iterative.optimum import NoOptimum, Optimum, hindsight, plan
from workers.kinds.iterative.world import IterativeWorld

MEMBERS = 4  # of the belief, in runs and policies: a simulated step's time is proportional to them
EXACT = 0.02  # share of the return within which the optimum of one episode counts as exact
PROGRESS = tuple(np.linspace(0, 1, 11).round(3).tolist())
RATIOS = tuple(np.linspace(-0.5, 0.5, 11).round(3).tolist())
OTHER_PARAMETERS = "it is the optimum at the registered targets and weights under the policies' own model; here {} too"

NOTHING_HELD_OUT = "no model of held-out executions was given: too few executions to hold any out"


@dataclass(frozen=True)
class GuardedPlayer(Player):
    """A player whose actions the guard checks, and may replace, as in the service.

    Attributes:
        artifact: the agent's artifact; None: the heuristic ``rule`` decides, or the default one if that is None too.
    """

    artifact: Artifact | None
    rule: Heuristic | None = None

    @override
    def begin(self, world: World, seed: int) -> None: ...

    @override
    def move(self, situation: Situation) -> Move:
        decided = decide(situation, self.artifact, self.rule)
        replaced = decided.verdict == Verdict.OUTSIDE_EXPERIENCE if self.artifact else None
        return Move(decided.action, replaced, decided.memory)


@dataclass(frozen=True)
class Static:
    """A policy that moves to one allocation and stays there; ``goal`` [R] in levels (steps above each minimum)."""

    goal: NDArray[np.int16]
    name: str = "static"

    def act(self, situation: Situation) -> Choice:
        """Choose for each of B runs the legal action that comes nearest to ``goal``, [B]."""
        levels = situation.state.levels
        return Choice(action_towards(situation.projector.layout, levels, np.broadcast_to(self.goal, levels.shape)))


class IterativeProblem(Problem):
    """The ``Problem`` of an iterative workload.

    Args:
        spec: the workload's spec.
        table: its domain model.
        held_out: domain models of held-out executions.
        without: the reason why there are none, for level L3.
    """

    kind = "iterative"
    terms: Sequence[str] = TERMS
    heuristics: Mapping[str, Policy] = HEURISTICS

    def __init__(
        self, spec: Spec, table: ModelTable, held_out: Sequence[ModelTable] = (), without: str = NOTHING_HELD_OUT
    ) -> None:
        self.layout = Layout(spec)
        self.name = spec.name
        self.weights: Sequence[float] = tuple(map(float, self.layout.weights))
        self.outcomes: Sequence[Outcome] = outcomes_of(spec)
        self.table, self.without = table, without
        self.projector = Projector(self.layout, table.thinned(MEMBERS), np.float32)
        self.held_out = tuple(Projector(self.layout, other, np.float32) for other in held_out)
        self.entries = self.layout.observation_names
        self._known: dict[int, LevelOptimum] = {}

    @override
    def player(self, contender: bytes | Policy) -> Player:
        if isinstance(contender, bytes):
            artifact = load(contender)
            check(artifact, self.layout)
            return GuardedPlayer(artifact)
        return GuardedPlayer(None, contender) if isinstance(contender, Heuristic) else Bare(contender)

    @override
    def title(self, contender: bytes | Policy) -> str:
        return (load(contender).policy if isinstance(contender, bytes) else contender).name

    @override
    def world(self, batch: int, seed: int) -> IterativeWorld:
        return IterativeWorld(self.projector, self.held_out, batch, seed)

    @override
    def unavailable(self, level: Level) -> str | None:
        if level is Level.COMPOSITION and not self.held_out:
            return self.without
        return None

    @cached_property
    def _planned(self) -> Optimum | str:
        try:
            return plan(self.layout, self.table)
        except NoOptimum as error:
            return str(error)

    @override
    def optimum(self, level: Level, seed: int) -> LevelOptimum:
        if level is Level.FIXED:
            return self._fixed(seed)
        planned = self._planned
        if isinstance(planned, str):
            return LevelOptimum(reason=planned)
        if level in {Level.TRAIN, Level.SEEDS}:
            coarse = None if planned.exact else f"solved on a coarser grid, {tuple(planned.grid)}, than needed"
            return LevelOptimum(planned.policy, planned.exact, planned.expected, planned.error, coarse)
        changed = {Level.PARAMETERS: "they change", Level.COMPOSITION: "the model changes"}
        reason = OTHER_PARAMETERS.format(changed.get(level, "the environment changes"))
        return LevelOptimum(planned.policy, reason=reason)

    def _fixed(self, seed: int) -> LevelOptimum:
        if seed not in self._known:
            try:
                result = hindsight(self.world(1, seed))
                exact = result.error <= EXACT * abs(result.expected)
                reason = None if exact else f"the best that was found; {result.error:.5f} more may be possible"
                self._known[seed] = LevelOptimum(result.policy, exact, result.expected, result.error, reason)
            except ValueError as error:
                self._known[seed] = LevelOptimum(reason=str(error))
        return self._known[seed]

    def tunables(self) -> tuple[Tunable, ...]:
        """Return one integer setting for each resource: its level, in steps above the minimum."""
        return tuple(Tunable(r.name, 0, r.levels - 1) for r in self.layout.spec.resources)

    @override
    def static(self, values: Mapping[str, int]) -> Static:
        return Static(np.array([values[name] for name in self.layout.resources], np.int16))

    @cached_property
    @override
    def heat_map_axes(self) -> HeatMapAxes:
        _, name = self._height
        return HeatMapAxes(
            Axis("progress", PROGRESS), Axis(name, RATIOS), "change of allocation (share of the largest)"
        )

    @cached_property
    def _height(self) -> tuple[int, str]:
        """Index of the observation's entry on the heat map's vertical axis, and that axis's title.

        Raises:
            LookupError: no entry is suitable, which does not happen with the kind's observations.
        """
        for prefix, form in (
            ("left.", "{}: left to the target / projected (log ratio)"),
            ("measured.", "{} over its target (log)"),
            ("effect.", "run effect on {} (standard deviations)"),
        ):
            for index, entry in enumerate(self.entries):
                if entry.startswith(prefix):
                    return index, form.format(entry.removeprefix(prefix))
        raise LookupError("an observation always has a run effect")

    @override
    def heat_map_points(self, situation: Situation, action: NDArray[np.integer]) -> tuple[NDArray[np.floating], ...]:
        layout, observation = self.layout, situation.view.observation
        moved = layout.deltas.sum(axis=1)[action] / layout.largest_action
        return observation[:, self.entries.index("progress")], observation[:, self._height[0]], moved

    @override
    def encoder(self, contender: bytes | Policy) -> Encoder | None:
        policy: Any = load(contender).policy if isinstance(contender, bytes) else contender
        if isinstance(policy, TablePolicy):
            return Encoder("table", lambda s: cell(s.view.observation, policy.config)[:, None])
        if isinstance(policy, NetworkPolicy) and policy.units:
            return None
        if isinstance(contender, bytes) and not isinstance(policy, PlannerPolicy | RulePolicy):
            return Encoder("float32", lambda s: s.view.observation.astype(np.float32))
        return getattr(policy, "encoder", None)

    @override
    def labels(self) -> tuple[str, Policy]:
        if isinstance(self._planned, Optimum):
            return "optimum" if self._planned.exact else "plan", self._planned.policy
        return "model_predictive", HEURISTICS["model_predictive"]

    @override
    def named_observation(self, situation: Situation, row: int) -> dict[str, float]:
        values = situation.view.observation[row]
        return {name: round(float(value), 4) for name, value in zip(self.entries, values, strict=True)}

    @override
    def action_name(self, action: int) -> str:
        steps = zip(self.layout.resources, self.layout.deltas[action], strict=True)
        moved = [f"{step:+d} {name}" for name, step in steps if step]
        return ", ".join(moved) or "stay"

    @override
    def description(self, level: Level) -> str:
        return TITLES[level][1]

    def pictures(self, shown: Mapping[str, bytes | Policy], seed: int) -> None:
        """Return None, since runs of this kind have no chart beside the heat map."""
