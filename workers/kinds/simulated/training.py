"""The training problem of a ``SimulatedEnvironment``: its simulators, and how policies are scored and judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.contract.policy import Policy
from workers.evaluation.arena import Bare, Scores, play
from workers.evaluation.headroom import share_won
from workers.evaluation.judge import Judgement, OutcomeValues, gap, refute
from workers.evaluation.statistics import MARGIN, Level, confidence_at, mean_interval
from workers.inputs import Conditions, Workload
from workers.kinds.simulated.headroom import FEWEST_EPISODES, MOST_EPISODES, measure
from workers.kinds.simulated.problem import SimulatedEnvironment
from workers.learning.simulator import SimulatorSpec
from workers.learning.training.driver import PlannedPolicy, TrainingProblem
from workers.learning.training.request import COMPETING

LARGEST_TABLE = 6  # observation entries
FEWEST_JUDGED = 32  # episodes of any length, since intervals are over episodes
AGENT, CHAMPION = "agent", "champion"


class SimulatedTraining(TrainingProblem):
    """The ``TrainingProblem`` of a ``SimulatedEnvironment``.

    Args:
        kind: the environment.
        workload: the workload with its domain model.
        seed: seed of the training; scores use ``seed + 1``, the final judgement ``seed + 3``, so episodes differ.
        options: the kind's options for its simulators.
    """

    competing = COMPETING

    def __init__(
        self,
        kind: SimulatedEnvironment,
        workload: Workload,
        seed: int,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.kind, self.workload, self.seed, self.options = kind, workload, seed, dict(options or {})
        self.layout = kind.layout(workload.spec)
        self.length = kind.length(workload)
        enough = max(kind.judged_decisions // self.length, FEWEST_JUDGED)
        self.judged_episodes, self.confidence = min(kind.judged_episodes, enough), 0.95
        self.continuing, self.cloning_entropy = kind.continuing, kind.cloning_entropy
        self.tabular = tuple(range(min(LARGEST_TABLE, len(kind.entries(workload.spec)))))

    @override
    def simulator(self, batch: int, seed: int) -> SimulatorSpec:
        spec = self.workload.spec.model_dump_json().encode()
        return SimulatorSpec(self.kind.name, spec, self.workload.model, batch, seed, self.options)

    @override
    def experts(self) -> Mapping[str, Policy]:
        return self.kind.baselines(self.workload)

    @override
    def plan(self, budget: int = 0, margin: float = MARGIN) -> PlannedPolicy:
        planned, rivals = self.kind.reference(self.workload), self.kind.rivals(self.workload)
        episodes = 0 if rivals is None else min(int(budget * rivals.share / self.length), MOST_EPISODES)
        if rivals is None or episodes < FEWEST_EPISODES:
            return planned
        room, details = measure(rivals, self.seed, episodes, margin)
        details = {**planned.details, "headroom": details}
        return replace(planned, details=details, nothing_to_win=room.nothing_to_win())

    @override
    def save(self, policy: Any) -> bytes:
        return self.kind.save(policy, self.workload.spec)

    @override
    def load(self, artifact: bytes) -> Any:
        return self.kind.load(artifact, self.workload.spec)

    @override
    def score(self, artifact: bytes) -> float:
        return float(self._played(self.load(artifact), self.seed + 1, self.judged_episodes // 2).returns.mean())

    def calibrate(self, artifact: bytes) -> bytes:
        """Return the artifact unchanged: this kind has nothing to tune after learning."""
        return artifact

    @override
    def evaluate_unguarded(self, artifact: bytes, planned: PlannedPolicy) -> dict[str, Any]:
        scores = self._judged(self.load(artifact))
        values = mean_interval(_returns(scores), scores.clusters)
        return {"return": values} | self._to_optimum(_returns(scores), planned, {})

    @override
    def judge(self, artifact: bytes, planned: PlannedPolicy, champion: bytes | None, margin: float) -> dict[str, Any]:
        agent = self._judged(self.load(artifact))
        experts = self.experts()
        distinct = {id(policy): policy for policy in experts.values()}  # a policy with several names plays once
        played = {key: self._judged(policy) for key, policy in distinct.items()}
        rules = {name: played[id(policy)] for name, policy in experts.items()}
        present = None if champion is None else self._judged(self.load(champion))
        verdict = Judgement(
            _returns(agent),
            {name: _returns(rule) for name, rule in rules.items()},
            next(iter(rules)),
            None if present is None else _returns(present),
            margin,
            OutcomeValues(
                self.kind.outcomes(self.workload),
                agent.outcomes,
                {name: rule.outcomes for name, rule in rules.items()},
                None if present is None else present.outcomes,
            ),
            agent.clusters,
            self.confidence,
        )
        names = self.kind.terms(self.workload)
        report = verdict.report() | {"terms": dict(zip(names, map(float, agent.terms), strict=True))}
        shown = {AGENT: artifact, report["best_heuristic"]: None, **({} if champion is None else {CHAMPION: champion})}
        if "headroom" in planned.details:
            report["headroom"] = self._won(artifact, planned.details["headroom"])
        return report | self._pictures(shown) | self._to_optimum(verdict.returns, planned, verdict.baselines)

    def _won(self, artifact: bytes, result: Mapping[str, Any]) -> dict[str, Any]:
        """Play an artifact in the episodes of a headroom's ``result``; return its report with the mean return ``agent``
        (95 % interval) and ``share_won``, the part of the gain that knowledge allows over the tuned rule."""
        played = _returns(self._played(self.load(artifact), result["seed"], len(result["tuned"])))
        tuned, knowable = (np.array(result[name]) for name in ("tuned", "knowable"))
        return {**result["report"], "agent": mean_interval(played), "share_won": share_won(played, tuned, knowable)}

    def _pictures(self, shown: Mapping[str, bytes | None]) -> dict[str, Any]:
        """Return ``{"pictures": charts}`` of the artifacts ``shown`` by name; None: the heuristic of that name.

        The result is empty if the kind has no charts.
        """
        rules = self.experts()
        policies = {name: rules[name] if data is None else self.load(data) for name, data in shown.items()}
        pictures = self.kind.pictures(self.workload, policies, self.seed + 3)
        return {} if pictures is None else {"pictures": pictures}

    def _to_optimum(
        self, agent: NDArray[np.float64], planned: PlannedPolicy, others: Mapping[str, NDArray[np.float64]]
    ) -> dict[str, Any]:
        if not planned.exact:
            reason = planned.why_not or "the plan is not the exact optimum"
            return {"optimum": None, "gap_to_optimum": None, "optimum_reason": reason}
        best = self._judged(self.load(planned.artifact))
        optimum = _returns(best)
        doubt = refute(optimum, {"the agent": agent, **others}, best.clusters)
        if doubt is not None:
            return {"optimum": None, "gap_to_optimum": None, "optimum_reason": doubt}
        details = {name: value for name, value in planned.details.items() if name != "headroom"}
        report = mean_interval(optimum, best.clusters) | details
        return {"optimum": report, "gap_to_optimum": gap(agent, optimum), "optimum_reason": None}

    def _judged(self, policy: Policy) -> Scores:
        return self._played(policy, self.seed + 3, self.judged_episodes)

    def _played(self, policy: Policy, seed: int, episodes: int) -> Scores:
        world = self.kind.world(self.workload, Conditions(episodes, seed, options=self.options))
        return play(world, Level.SEEDS, seed, Bare(policy))


def _returns(scores: Scores) -> NDArray[np.float64]:
    return scores.returns.astype(np.float64)


class WindowTraining(SimulatedTraining):
    """Online learning on a window of recent runs, judged against the default heuristic and the champion only.

    Args:
        kind: the environment.
        workload: the workload with its domain model.
        seed: seed of the training.
        window: the packed window, which simulators replay.
        look: number of times that the champion has been judged, this one included; confidence grows with it.
    """

    def __init__(self, kind: SimulatedEnvironment, workload: Workload, seed: int, window: bytes, look: int = 1) -> None:
        super().__init__(kind, workload, seed, {"window": window})
        self.judged_episodes, self.confidence = kind.window_episodes, confidence_at(look)

    def experts(self) -> Mapping[str, Policy]:
        """Return the one heuristic that decides when there is no agent, by name."""
        name, policy = next(iter(super().experts().items()))
        return {name: policy}

    def score(self, artifact: bytes) -> float:
        """Return an artifact's mean return on the part of the window for learning; the other part is for judging.

        Raises:
            IncompatibleArtifact: the artifact can't be read, or was made for another kind or spec.
        """
        options = {**self.options, "part": "learning"}
        world = self.kind.world(self.workload, Conditions(self.judged_episodes, self.seed + 1, options=options))
        return float(play(world, Level.SEEDS, self.seed + 1, Bare(self.load(artifact))).returns.mean())

    def _pictures(self, shown: Mapping[str, bytes | None]) -> dict[str, Any]:
        """Return no charts: they would show episodes outside the window, and take longer than the learning."""
        del shown
        return {}
