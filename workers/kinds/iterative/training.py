"""The training problem of kind ``iterative``: its simulators, and how policies are scored and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from typing_extensions import override

from app.kinds.contract.policy import Policy
from app.kinds.iterative.heuristics import HEURISTICS, ImprovedRulePolicy, TunedPolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import check, load, save
from app.kinds.iterative.spec import Spec
from workers.evaluation.headroom import TUNED
from workers.evaluation.statistics import MARGIN
from workers.inputs import Samples
from workers.kinds.iterative.judge import (
    CrossFit,
    Evaluator,
    TooFewHalves,
    calibrate_hysteresis,
    evaluate_unguarded,
    judge,
)
from workers.kinds.iterative.optimum import Grid, NoOptimum, Optimum, plan
from workers.kinds.iterative.simulator import TRAINING, describe_simulator
from workers.kinds.iterative.tuning import artifact_of, headroom, tune
from workers.learning.simulator import SimulatorSpec
from workers.learning.training.competition import Competition
from workers.learning.training.driver import PlannedPolicy, Training, TrainingProblem
from workers.learning.training.request import PLANNER, Request

VALIDATION_EPISODES = 2_048
TRAINING_MEMBERS = 4  # of the belief, except in the verdict: a simulated step's time is proportional to them
LARGEST_ERROR = 0.01  # as a share of the return, for an optimum to count as exact
TABLE_ENTRIES = ("allocation.", "left.", "effect.", "progress")
LARGEST_TABLE = 6  # observation entries
UNSEEN = "under models that have not seen what it is judged on"


class IterativeTraining(TrainingProblem):
    """The ``TrainingProblem`` of an iterative workload.

    Args:
        spec: the workload's spec.
        table: its domain model.
        seed: seed of the training; scoring, hysteresis, judge and its cross-check use ``seed + 1`` to ``seed + 4``.
        samples: the executions that the model was fitted to. A promotion must also hold on models of their halves
            (``CrossFit``); with too few executions that check is left out.
        improves: whether ``plan`` also learns corrections of the tuned rule.
    """

    continuing = False
    cloning_entropy: float | None = None
    competing = ("ppo", "recurrent_ppo")  # memory pays where runs hide what they are: benchmarks/iterative_agents.py

    def __init__(
        self, spec: Spec, table: ModelTable, seed: int, samples: Samples = (), *, improves: bool = False
    ) -> None:
        self.spec, self.table, self.seed, self.layout, self.samples = spec, table, seed, Layout(spec), samples
        self.improves = improves
        self.length = self.layout.iterations
        results = [i for i, name in enumerate(self.layout.observation_names) if name.startswith(TABLE_ENTRIES)]
        self.tabular = tuple(results[:LARGEST_TABLE])
        self.fewer = table.thinned(TRAINING_MEMBERS)
        self.evaluator = Evaluator(spec, self.fewer, seed + 1, VALIDATION_EPISODES)

    @override
    def simulator(self, batch: int, seed: int) -> SimulatorSpec:
        return describe_simulator(self.spec, self.fewer, batch, seed, TRAINING, expected=True)

    @override
    def experts(self) -> Mapping[str, Policy]:
        return HEURISTICS

    def plan(self, budget: int = 0, margin: float = MARGIN) -> PlannedPolicy:
        """Compute the exact optimum, or the best plan on a coarser grid, tune and improve the rule; return the best.

        If neither a plan nor a tuned rule is possible, the result has the reason. ``budget``: environment steps.
        """
        planned = self._exact_plan()
        tuned = tune(self.spec, self.fewer, self.seed, budget)
        if tuned is None:
            return planned
        room, score = headroom(self.spec, self.fewer, tuned.artifact, self.seed, margin), self.score(tuned.artifact)
        details = {**planned.details, "tuned": tuned.point, "headroom": tuned.report() | room.report()}
        if planned.artifact and planned.score >= score:
            return replace(planned, details=details, nothing_to_win=room.nothing_to_win())
        plan = PlannedPolicy(tuned.artifact, score, False, "", details, room.nothing_to_win(), TUNED)
        if not self.improves or plan.nothing_to_win:
            return plan
        from workers.kinds.iterative.improvement import IMPROVED, improve  # imports torch, which takes seconds

        improved = improve(self.spec, self.fewer, tuned.artifact, self.seed, budget)
        better = self.score(improved) if improved else score
        return replace(plan, artifact=improved, score=better, name=IMPROVED) if improved and better > score else plan

    def _exact_plan(self) -> PlannedPolicy:
        try:
            result = plan(self.layout, self.table)
        except NoOptimum as error:
            return PlannedPolicy(why_not=str(error))
        artifact = self.save(result.policy)
        fine = result.error <= LARGEST_ERROR * abs(result.expected)
        details = {"expected": result.expected, "error": result.error, "grid": list(result.grid)}
        return PlannedPolicy(artifact, self.score(artifact), result.exact and fine, details=details)

    @override
    def save(self, policy: Any) -> bytes:
        return save(policy, self.layout)

    @override
    def load(self, artifact: bytes) -> Any:
        result = load(artifact)
        check(result, self.layout)
        return result.policy

    @override
    def score(self, artifact: bytes) -> float:
        return float(self.evaluator.score_artifact(load(artifact)).returns.mean())

    def calibrate(self, artifact: bytes) -> bytes:
        """Return the artifact with the largest hysteresis (least gain for which it acts) that doesn't lower its return.

        Raises:
            IncompatibleArtifact: the artifact can't be read.
        """
        if isinstance(load(artifact).policy, (TunedPolicy, ImprovedRulePolicy)):  # whose hysteresis is tuned with it
            return artifact
        return calibrate_hysteresis(self.spec, self.fewer, artifact, seed=self.seed + 2)

    @override
    def evaluate_unguarded(self, artifact: bytes, planned: PlannedPolicy) -> dict[str, Any]:
        return evaluate_unguarded(self.spec, self.table, artifact, seed=self.seed + 3, optimum=self._optimum(planned))

    @override
    def judge(self, artifact: bytes, planned: PlannedPolicy, champion: bytes | None, margin: float) -> dict[str, Any]:
        point = planned.details.get("tuned")
        tuned = artifact_of(self.layout, np.array(point)) if point else artifact
        rival = None if tuned == artifact else tuned
        verdict = judge(
            self.spec,
            self.table,
            artifact,
            seed=self.seed + 3,
            champion=champion,
            optimum=self._optimum(planned),
            margin=margin,
            tuned=rival,
        )
        share = verdict.pop("share_won")
        if "headroom" in planned.details:
            verdict["headroom"] = planned.details["headroom"] | {"share_won": share}
        if isinstance(self._cross_fit, str):
            return verdict | {"cross_fitted": {"reason": self._cross_fit}}
        crossed = self._cross_fit.judged(artifact, champion, margin, rival)
        if verdict["promoted"] and not crossed["promoted"]:
            verdict |= {"promoted": False, "reason": f"{UNSEEN}: {crossed['reason']}"}
        return verdict | {"cross_fitted": crossed}

    @cached_property
    def _cross_fit(self) -> CrossFit | str:
        """The comparison of policies on models of halves of the samples, or the reason why there is none."""
        try:
            return CrossFit(self.spec, self.samples, self.seed + 4, self.table.rule)
        except TooFewHalves as error:
            return str(error)

    def _optimum(self, planned: PlannedPolicy) -> Optimum | None:
        if planned.name != PLANNER or not planned.artifact:
            return None
        details = planned.details
        return Optimum(load(planned.artifact).policy, details["expected"], details["error"], Grid(*details["grid"]))


def training(
    spec: Spec,
    table: ModelTable,
    request: Request,
    checkpoint: bytes | None = None,
    *,
    champion: bytes | None = None,
    clock: Callable[[], float] = perf_counter,
) -> Training:
    """Make a ``Training`` in this process, in simulators of the domain model.

    Args:
        spec, table: the workload's spec and its domain model.
        request: algorithm, budget, seed and options of the training.
        checkpoint: state of an interrupted training to resume; None: begin anew.
        champion: the serving artifact, which a new agent must beat; None: there is none.
        clock: function that returns monotonic seconds.

    Raises:
        Untrainable: the algorithm is unknown.
        ExecutionError, BackendError: the executor or device cannot run it.
        CheckpointError: the checkpoint can't be read.
    """
    problem = IterativeTraining(spec, table, request.seed, improves=request.plans)
    return Training(Competition(problem, request, champion, clock), checkpoint)
