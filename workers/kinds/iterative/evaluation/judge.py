"""The judge of every training: the exported policy beside every heuristic and the exact optimum, on fresh seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.iterative.heuristics import HEURISTICS, Heuristic, default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies.artifact import check, load, save
from app.kinds.iterative.policies.guard import Decided, decide
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reward import TERMS, reward, terms
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import begin
from app.policies.artifact import Artifact
from workers.evaluation.equivalence import MARGIN
from workers.evaluation.judge import Counted, Judgement, beaten, gap
from workers.evaluation.statistics import mean_interval as interval
from workers.kinds.iterative.evaluation.optimum import NoOptimum, Optimum, solve
from workers.kinds.iterative.evaluation.outcomes import counted, outcomes_of
from workers.kinds.iterative.simulator import IterativeSimulator

EPISODES = 4096
BELIEF_EPISODES = 1024  # under a belief, where a step costs as much as there are members
HYSTERESES = (0.0, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3)


@dataclass(frozen=True)
class Scores:
    """What a policy earned in each of E episodes, paired by position with any other's under the same seed.

    Attributes:
        returns: [E].
        terms: summed over the episode, [E, 3].
        counted: what users count, see ``outcomes``, [E, O].
    """

    returns: NDArray[np.float64]
    terms: NDArray[np.float64]
    counted: NDArray[np.float64]

    def interval(self) -> dict[str, float]:
        """Mean return and its 95 % interval."""
        return interval(self.returns)


class Evaluator:
    """Episodes of one workload under its model, the same ones for every policy."""

    def __init__(self, spec: Spec, table: ModelTable, seed: int, episodes: int | None = None) -> None:
        self.layout, self.table = Layout(spec), table
        usual = EPISODES if table.members is None else BELIEF_EPISODES
        self.seed, self.episodes = seed, usual if episodes is None else episodes

    def score(self, policy: Policy) -> Scores:
        """Let a policy decide every episode to its end: a heuristic as the service would let it, any other one bare."""
        if isinstance(policy, Heuristic):
            return self._play(lambda situation: decide(situation, None, policy))
        return self._play(policy.act)

    def score_artifact(self, artifact: Artifact) -> Scores:
        """Let an artifact decide as the service would: behind the guard."""
        return self._play(lambda situation: decide(situation, artifact))

    def _play(self, act: Callable[[Situation], Choice | Decided]) -> Scores:
        simulator = IterativeSimulator(self.layout, self.table, self.episodes, self.seed, shaped=False, count=counted)
        simulator.reset()
        total, outcomes = self._opening(simulator)
        weights = simulator.state.weights.astype(np.float64)
        memory: NDArray[np.float32] | None = None
        for _ in range(self.layout.iterations - 1):
            chosen = act(simulator.situation._replace(memory=memory))
            memory = chosen.memory
            simulator.step(chosen.action)
            total += simulator.terms
            outcomes += simulator.counted
        return Scores(reward(weights, total).astype(np.float64), total, outcomes)

    def _opening(self, simulator: IterativeSimulator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Terms and outcomes of the iteration that was run before the first decision."""
        after = simulator.state
        before = begin(simulator.projector, after.levels, targets=after.targets, features=after.features)
        return terms(simulator.projector, before, after).astype(np.float64), counted(simulator.projector, before, after)


def judge(
    spec: Spec,
    table: ModelTable,
    artifact: bytes,
    *,
    seed: int,
    champion: bytes | None = None,
    optimum: Optimum | None = None,
    episodes: int | None = None,
    margin: float = MARGIN,
) -> dict[str, Any]:
    """Score an artifact: the agent report's ``return`` to ``reason``.

    Args:
        artifact: what would be published.
        champion: what answers now; it must be beaten to be replaced.
        optimum: the solved problem where the caller has it; else it is solved here. A coarser plan is no yardstick.
        margin: of practical equivalence, as a share of the best heuristic's return.
    """
    evaluator = Evaluator(spec, table, seed, episodes)
    agent = evaluator.score_artifact(load(artifact))
    rules = {name: evaluator.score(rule) for name, rule in HEURISTICS.items()}
    present = _present(evaluator, champion)
    verdict = Judgement(
        agent.returns,
        {name: rule.returns for name, rule in rules.items()},
        default_heuristic(Projector(evaluator.layout, table)).name,
        None if present is None else present.returns,
        margin,
        Counted(
            outcomes_of(spec),
            agent.counted,
            {name: rule.counted for name, rule in rules.items()},
            None if present is None else present.counted,
        ),
    )
    terms_paid = dict(zip(TERMS, map(float, agent.terms.mean(axis=0)), strict=True))
    played = {name: rule.returns for name, rule in rules.items()}
    return verdict.report() | {"terms": terms_paid, **_to_optimum(evaluator, agent, optimum, played)}


def alone(
    spec: Spec, table: ModelTable, artifact: bytes, *, seed: int, optimum: Optimum | None = None
) -> dict[str, Any]:
    """What the bare policy of an artifact earns, nothing guarding it, beside the exact optimum where it can be had."""
    evaluator = Evaluator(spec, table, seed)
    scores = evaluator.score(load(artifact).policy)
    return {"return": scores.interval()} | _to_optimum(evaluator, scores, optimum, {})


def _present(evaluator: Evaluator, champion: bytes | None) -> Scores | None:
    if champion is None:
        return None
    artifact = load(champion)
    check(artifact, evaluator.layout)
    return evaluator.score_artifact(artifact)


def _to_optimum(
    evaluator: Evaluator, agent: Scores, optimum: Optimum | None, others: Mapping[str, NDArray[np.float64]]
) -> dict[str, Any]:
    """The exact optimum on the same episodes, and what the agent leaves to be won; or why it can't be had."""
    if optimum is None or not optimum.exact:
        try:
            optimum = solve(evaluator.layout, evaluator.table)
        except NoOptimum as error:
            return {"optimum": None, "gap_to_optimum": None, "optimum_reason": str(error)}
    scores = evaluator.score(optimum.policy)
    doubt = beaten(scores.returns, {"the agent": agent.returns, **others})
    if doubt is not None:
        return {"optimum": None, "gap_to_optimum": None, "optimum_reason": doubt}
    optimum_report = {**scores.interval(), "expected": optimum.expected, "grid_error": optimum.error}
    return {"optimum": optimum_report, "gap_to_optimum": gap(agent.returns, scores.returns), "optimum_reason": None}


def calibrated(spec: Spec, table: ModelTable, artifact: bytes, *, seed: int, episodes: int = 2048) -> bytes:
    """The artifact with the largest hysteresis that costs nothing beyond the noise: it changes only for a gain.

    Every candidate is played on the same episodes; one is accepted while its return is not below the first's by more
    than a tenth of a per cent, or is not significantly below it at all.
    """
    evaluator, made = Evaluator(spec, table, seed, episodes), load(artifact)
    candidates = [replace(made, experience=replace(made.experience, hysteresis=h)) for h in HYSTERESES]
    chosen = candidates[_largest_hysteresis([evaluator.score_artifact(candidate).returns for candidate in candidates])]
    return save(chosen.policy, evaluator.layout, chosen.experience)


def _largest_hysteresis(returns: Sequence[NDArray[np.float64]]) -> int:
    """The last of the candidates up to which every one is as good as the first."""
    accepted = 0
    for index, values in enumerate(returns):
        loss = interval(returns[0] - values)
        if loss["low"] > 0 and loss["mean"] > 1e-3 * abs(float(returns[0].mean())):
            break
        accepted = index
    return accepted
