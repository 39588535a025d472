"""Verdicts on agents of kind ``iterative``: cross-fitting, held-out executions, hysteresis, and the comparison with
heuristics, champion and optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.text import confidence, decimals
from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.iterative.heuristics import HEURISTICS, MODEL_PREDICTIVE, Heuristic, default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.observation import TERMS, reward
from app.kinds.iterative.observation import terms as reward_terms
from app.kinds.iterative.policies import GuardedChoice, check, decide, load, save, terms
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import begin
from app.policies.artifact import Artifact
from workers.estimators.base import EstimationError
from workers.evaluation.arena import play
from workers.evaluation.headroom import share_won
from workers.evaluation.judge import Judgement, OutcomeValues, gap, refute
from workers.evaluation.protocol import HeldOutChoice, choose
from workers.evaluation.statistics import MARGIN, Level
from workers.evaluation.statistics import mean_interval as interval
from workers.evaluation.wrappers import World, Wrapper
from workers.inputs import HoldOut, Samples
from workers.kinds.iterative.fit import FEWEST_TO_JUDGE, check_judge, fit_domain_model
from workers.kinds.iterative.grid import Executions
from workers.kinds.iterative.off_policy import outcome_increments, outcomes_of
from workers.kinds.iterative.optimum import NoOptimum, Optimum, solve
from workers.kinds.iterative.problem import IterativeProblem
from workers.kinds.iterative.simulator import IterativeSimulator
from workers.kinds.iterative.world import IterativeWorld

# Cross-fitting: policies are judged under models fitted without the executions that the policies' model has seen.
#
# The executions are split into two halves, each with a belief of its own. Policies assume one half's model while runs
# follow the other's members, and vice versa: so no projection, plan or guard has seen what it is judged on. What a
# network has learned from all executions stays in its weights.
#
# All artifacts and heuristics decide behind the guard, as in the service. Verdicts vary with the executions that runs
# follow, which thousands of episodes repeat: so a verdict uses several splits, and its intervals are over halves, not
# episodes. Splits share executions, which makes intervals slightly too narrow; their coverage is measured in
# ``benchmarks.planted_judgings``.
#
# A half's model has half of the data. So an agent need not show the full gain that is required under the whole model:
# it must be better than the answering policy at all, and as good as the heuristics within the margin.


MEMBERS, DEALS = 4, 3  # members of each half's belief, splits per verdict
ATTEMPTS = 4  # draws per split, since few executions have few distinct splits
EPISODES, FEWEST_EPISODES, STEPS = 128, 16, 4_096  # most, least per followed model; their iterations in all
FEWEST_TO_CHOOSE, TRIED_EPISODES = 12, 32  # executions, and episodes per model, for the choice of a heuristic
LONGEST_COMPARED = 5_000
"""Most iterations of a run for which heuristics are compared: at about 40 ms per iteration this takes three minutes."""
UNCHOSEN = "static_best"  # equals ``hold`` in the long run, but computes a plan at each report


class Half(NamedTuple):
    """Domain models of two disjoint sets of executions: policies assume ``believed``, runs follow ``followed``."""

    believed: ModelTable
    followed: ModelTable


class TooFewHalves(ValueError):
    """The executions can't be split into halves that carry a domain model each; the message says why."""


def halves(spec: Spec, samples: Samples, seed: int) -> tuple[Half, Half]:
    """Split the executions at random, fit a model to each half, and return both ordered pairs of these models.

    Raises:
        TooFewHalves: there are too few executions, or a half can't carry a domain model.
    """
    if len(samples) < 2 * FEWEST_TO_JUDGE:
        raise TooFewHalves(f"needs {2 * FEWEST_TO_JUDGE} executions, has {len(samples)}")
    parts = [Executions(tuple(samples[i] for i in part)) for part in _deal(len(samples), seed)]
    try:
        for part in parts:
            check_judge(Layout(spec), part.flat(Layout(spec)))
        one, other = (fit_domain_model(spec, part, seed, reported=False).table.thinned(MEMBERS) for part in parts)
    except EstimationError as error:
        raise TooFewHalves(f"half of the {len(samples)} executions can't carry a model: {error}") from error
    return Half(one, other), Half(other, one)


def _deal(count: int, seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    order = np.random.default_rng(seed).permutation(count).tolist()
    return tuple(sorted(order[::2])), tuple(sorted(order[1::2]))


def _dealt(spec: Spec, samples: Samples, seed: int, deals: int) -> list[Half]:
    """Return both pairings of up to ``deals`` different random splits; fewer if the executions allow no more.

    Raises:
        TooFewHalves: no split gives halves that carry a domain model.
    """
    halfs, tried, problem = list[Half](), set[frozenset[tuple[int, ...]]](), TooFewHalves("no deal was requested")
    for attempt in range(ATTEMPTS * deals):
        parts = frozenset(_deal(len(samples), seed + attempt))
        if parts in tried or len(halfs) == 2 * deals:
            continue
        tried.add(parts)
        try:
            halfs += halves(spec, samples, seed + attempt)
        except TooFewHalves as error:
            problem = error
    if not halfs:
        raise problem
    return halfs


class CrossFit:
    """Returns of policies in E episodes that follow models of other executions than the model that the policies assume.

    Args:
        spec: the workload's spec.
        samples: its executions.
        seed: seed of the splits and of the episodes.
        rule: name of the heuristic that decides without an agent; None: the default one.
        episodes: number per followed model; None: 128, or fewer for long runs.
        deals: largest number of random splits.

    Attributes:
        executions: number of past executions.
        answering: name of the heuristic that decides without an agent.
        models: index of the model that each episode follows, [E].
        halves: index of the half that this model is fitted to, [E].

    Raises:
        TooFewHalves: no split gives halves that carry a domain model.
    """

    def __init__(
        self,
        spec: Spec,
        samples: Samples,
        seed: int,
        rule: str | None = None,
        episodes: int | None = None,
        deals: int = DEALS,
    ) -> None:
        episodes = episodes or int(np.clip(STEPS // spec.iterations, FEWEST_EPISODES, EPISODES))
        self.executions = len(samples)
        dealt = _dealt(spec, samples, seed, deals)
        self._arenas = [
            _Arena(spec, half._replace(believed=replace(half.believed, rule=rule)), seed + i, episodes)
            for i, half in enumerate(dealt)
        ]
        self.answering = default_heuristic(self._arenas[0].believed).name
        follows = [arena.follows for arena in self._arenas]
        self.halves = np.repeat(np.arange(len(dealt)), [len(each) for each in follows])
        before = np.cumsum([0] + [len(arena.followed) for arena in self._arenas])
        self.models = np.concatenate(follows) + before[self.halves]

    @cached_property
    def rules(self) -> Mapping[str, NDArray[np.float64]]:
        """Returns of every heuristic by name in E episodes, [E] each."""
        return {name: self.returns(rule) for name, rule in HEURISTICS.items()}

    def returns(self, contender: bytes | Policy) -> NDArray[np.float64]:
        """Play a policy, or an artifact whose actions the service's guard checks; return E episodes' returns, [E].

        Raises:
            IncompatibleArtifact: the artifact can't be read, or was made for another kind or spec.
        """
        return np.concatenate([arena.returns(contender) for arena in self._arenas])

    def judged(
        self, artifact: bytes, champion: bytes | None = None, margin: float = MARGIN, tuned: bytes | None = None
    ) -> dict[str, Any]:
        """Judge an artifact against heuristics and champion; return the judge's report, with the ``executions``.

        Args:
            artifact: the candidate.
            champion: the serving artifact, which the candidate must beat; None: there is none.
            margin: margin of practical equivalence, as a share of the best heuristic's return.
            tuned: the rule tuned for the workload, one more heuristic; None: there is none, or it is the candidate.

        Raises:
            IncompatibleArtifact: an artifact can't be read, or was made for another kind or spec.
        """
        present = None if champion is None else self.returns(champion)
        rules = self.rules if tuned is None else {**self.rules, load(tuned).policy.name: self.returns(tuned)}
        verdict = Judgement(
            self.returns(artifact), rules, self.answering, present, margin, gain_margin=0.0, clusters=self.halves
        )
        return verdict.report() | {"executions": self.executions}


def chosen_rule(spec: Spec, samples: Samples, table: ModelTable, *, seed: int) -> tuple[ModelTable, dict[str, Any]]:
    """Choose the heuristic that decides where there is no agent, and store it in the domain model.

    The best heuristic under cross-fitting replaces model-predictive control if its return is larger by more than the
    margin of practical equivalence, with 95 % confidence corrected for the number of heuristics (Bonferroni).
    Executions are split only once, since each split costs two fits; intervals are over the models of halves. With a
    probability on a target, too few executions or too long runs nothing is compared; a failed split is reported in
    ``reason``, not raised.

    Returns:
        The table; and a report: ``rule`` (name), ``reason`` (text), ``returns`` (95 % interval for each heuristic).
    """
    default = default_heuristic(Projector(Layout(spec), table)).name
    if default != MODEL_PREDICTIVE or any(metric.probability is not None for metric in spec.metrics):
        return table, {"rule": default, "reason": "no other heuristic knows of probabilities", "returns": {}}
    if len(samples) < FEWEST_TO_CHOOSE:
        few = f"not compared with other heuristics: needs {FEWEST_TO_CHOOSE} executions, has {len(samples)}"
        return table, {"rule": default, "reason": few, "returns": {}}
    if spec.iterations > LONGEST_COMPARED:
        long = f"runs of {spec.iterations:,} iterations are too long to compare, at most {LONGEST_COMPARED:,} are"
        return table, {"rule": default, "reason": f"not compared with other heuristics: {long}", "returns": {}}
    try:
        arena = CrossFit(spec, samples, seed, episodes=TRIED_EPISODES, deals=1)
    except TooFewHalves as error:
        return table, {"rule": default, "reason": f"not compared with other heuristics: {error}", "returns": {}}
    played = {name: arena.returns(rule) for name, rule in HEURISTICS.items() if name != UNCHOSEN}
    usual = played[MODEL_PREDICTIVE]
    best = max(played, key=lambda name: float(played[name].mean()))
    sure = 1 - 0.05 / (len(played) - 1)
    verdict = Judgement(played[best], {MODEL_PREDICTIVE: usual}, clusters=arena.models, confidence=sure)
    returns = Judgement(usual, played, clusters=arena.models).report()["heuristics"]
    mean, low, high = (decimals(verdict.gain[part], 5, signed=True) for part in ("mean", "low", "high"))
    ours, theirs = decimals(played[best].mean(), 5), decimals(usual.mean(), 5)
    evidence = (
        f"on executions that its models had not seen it returns {ours} against {theirs} of {MODEL_PREDICTIVE} "
        f"(difference {mean}, {confidence(sure)} interval {low} to {high})"
    )
    if best == MODEL_PREDICTIVE:
        reason = "on executions that its models had not seen no other heuristic returns more"
        return table, {"rule": default, "reason": reason, "returns": returns}
    if not verdict.better:
        reason = f"{best} is not better beyond the margin: {evidence}"
        return table, {"rule": default, "reason": reason, "returns": returns}
    under = {name: list(term[:3]) for name, term in terms(spec).items()}
    table = replace(table, rule=best, evidence=evidence, terms=under)
    return table, {"rule": best, "reason": evidence, "returns": returns}


class _EachInTurn(Wrapper):
    """A wrapper by which episode e follows the held-out model of index e modulo the number of these models."""

    level: ClassVar[Level] = Level.COMPOSITION
    name: ClassVar[str] = "each_in_turn"

    def begin(self, world: World) -> None:
        world.compose(np.arange(world.batch) % world.held_out)


class _Arena:
    """Episodes in which policies assume one half's model and runs follow the other's; the same episodes for all
    policies.

    Args:
        episodes: number per member (alternative model) of the followed domain model.

    Attributes:
        follows: index of the model that each episode follows, [E].
    """

    def __init__(self, spec: Spec, half: Half, seed: int, episodes: int) -> None:
        layout, self.seed = Layout(spec), seed
        self.problem = IterativeProblem(spec, half.believed)
        self.believed = Projector(layout, half.believed, np.float32)
        self.followed: Sequence[Projector] = [
            Projector(layout, half.followed.member(k), np.float32)
            for k in range(1 if half.followed.members is None else len(half.followed.members))
        ]
        self.follows = np.arange(episodes * len(self.followed)) % len(self.followed)

    def returns(self, contender: bytes | Policy) -> NDArray[np.float64]:
        """Play a policy, or an artifact whose actions the service's guard checks; return E episodes' returns, [E].

        Raises:
            IncompatibleArtifact: the artifact can't be read, or was made for another kind or spec.
        """
        world = IterativeWorld(self.believed, self.followed, len(self.follows), self.seed)
        _EachInTurn(world, self.seed)
        return play(world, Level.SEEDS, self.seed, self.problem.player(contender)).returns.astype(np.float64)


class HeldOutModel(NamedTuple):
    """The domain model of held-out executions (None: they are too few or unsuitable), and a JSON-like report."""

    table: ModelTable | None
    report: dict[str, Any]


def held_out_model(spec: Spec, samples: Samples, request: HoldOut, seed: int) -> HeldOutModel:
    """Choose executions to hold out, and fit a domain model to them alone; on a failed fit the report has a reason."""
    data, layout = dict(samples), Layout(spec)

    def executions_of(names: Collection[str]) -> Executions:
        return Executions(tuple((name, data[name]) for name in names))

    def carries(names: Collection[str]) -> bool:
        try:
            check_judge(layout, executions_of(names).flat(layout))
        except EstimationError:
            return False
        return True

    chosen = choose([*data], request, seed, fewest=FEWEST_TO_JUDGE, carries=carries)
    try:
        check_judge(layout, executions_of(chosen.names).flat(layout))
        fitted = fit_domain_model(spec, executions_of(chosen.names), seed)
    except EstimationError as error:
        reason = f"the {len(chosen.names)} held-out executions can't carry a domain model of their own: {error}"
        return HeldOutModel(None, chosen.report(reason, None))
    return HeldOutModel(fitted.table, chosen.report(None, _note(chosen)))


def _note(chosen: HeldOutChoice) -> str:
    count, unseen = len(chosen.names), chosen.unseen
    if unseen == count:
        return f"L3 follows a domain model of {count} executions that no agent's domain model had been fitted on."
    known = "all" if unseen == 0 else f"{count - unseen}"
    return (
        f"L3 follows a domain model fitted on {count} executions alone; {known} of them were also among those that an "
        "agent's own domain model was fitted on, so that L3 shows another mixture rather than unknown executions."
    )


JUDGE_EPISODES = 4096
BELIEF_EPISODES = 1024  # with a belief, since a step's time is proportional to its members
HYSTERESES = (0.0, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3)


@dataclass(frozen=True)
class Scores:
    """Results of a policy in E episodes; position e is the same episode for every policy under one seed.

    Attributes:
        returns: return (unscaled), [E].
        terms: terms of the reward (target, cost, change), summed over the episode, [E, 3].
        outcomes: the O outcomes of ``outcomes_of`` in users' units, [E, O].
    """

    returns: NDArray[np.float64]
    terms: NDArray[np.float64]
    outcomes: NDArray[np.float64]

    def interval(self) -> dict[str, float]:
        """Return the mean return and its 95 % confidence interval: ``mean``, ``low``, ``high``."""
        return interval(self.returns)


class Evaluator:
    """Simulated episodes of one workload under its domain model, the same for every policy.

    Args:
        seed: seed of the episodes.
        episodes: number E; None: 4,096, or 1,024 if the domain model consists of several members.
    """

    def __init__(self, spec: Spec, table: ModelTable, seed: int, episodes: int | None = None) -> None:
        self.layout, self.table = Layout(spec), table
        usual = JUDGE_EPISODES if table.members is None else BELIEF_EPISODES
        self.seed, self.episodes = seed, usual if episodes is None else episodes

    def score(self, policy: Policy) -> Scores:
        """Play a policy in every episode; the service's guard checks actions of heuristics, not of other policies."""
        if isinstance(policy, Heuristic):
            return self._play(lambda situation: decide(situation, None, policy))
        return self._play(policy.act)

    def score_artifact(self, artifact: Artifact, *, informed: bool = False) -> Scores:
        """Play an artifact in every episode to the end; the service's guard checks its actions.

        ``informed``: whether the policy's state has the ensemble member and run effect that each run truly follows.
        """
        return self._play(lambda situation: decide(situation, artifact), informed=informed)

    def _play(self, act: Callable[[Situation], Choice | GuardedChoice], *, informed: bool = False) -> Scores:
        simulator = IterativeSimulator(
            self.layout, self.table, self.episodes, self.seed, shaped=False, count=outcome_increments
        )
        simulator.reset()
        total, outcomes = self._opening(simulator)
        weights = simulator.state.weights.astype(np.float64)
        memory: NDArray[np.float32] | None = None
        for _ in range(self.layout.iterations - 1):
            situation = simulator.informed_situation if informed else simulator.situation
            chosen = act(situation._replace(memory=memory))
            memory = chosen.memory
            simulator.step(chosen.action)
            total += simulator.terms
            outcomes += simulator.outcome_increments
        return Scores(reward(weights, total).astype(np.float64), total, outcomes)

    def _opening(self, simulator: IterativeSimulator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return terms [E, 3] and outcomes [E, O] of the iteration that runs before the first decision."""
        after = simulator.state
        before = begin(simulator.projector, after.levels, targets=after.targets, features=after.features)
        return reward_terms(simulator.projector, before, after).astype(np.float64), outcome_increments(
            simulator.projector, before, after
        )


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
    tuned: bytes | None = None,
) -> dict[str, Any]:
    """Judge an artifact against all heuristics, the champion and the optimum; return entries of the agent's report,
    among them ``return`` (mean, 95 % interval), ``promoted``, ``reason`` and ``share_won``.

    ``share_won`` is the candidate's gain over the tuned rule as a share of the gain that this rule would have if it
    knew each run's true model and effect (95 % interval); None without ``tuned``, or if that gain isn't certainly above
    0.

    Args:
        artifact: the candidate.
        seed: seed of the episodes.
        champion: the serving artifact, which the candidate must beat; None: there is none.
        optimum: the solved problem; it is solved here if None or on a coarser grid than a reference needs.
        episodes: number of episodes; None: 4,096, or 1,024 if the domain model consists of several members.
        margin: margin of practical equivalence, as a share of the best heuristic's return.
        tuned: the rule tuned for the workload, one more heuristic; None: there is none, or it is the candidate.

    Raises:
        IncompatibleArtifact: an artifact can't be read, or the champion was made for another kind or spec.
    """
    evaluator = Evaluator(spec, table, seed, episodes)
    agent = evaluator.score_artifact(load(artifact))
    rules = {name: evaluator.score(rule) for name, rule in HEURISTICS.items()}
    share: dict[str, float] | None = None
    if tuned is not None:
        rule = load(tuned)
        rules[rule.policy.name] = ours = evaluator.score_artifact(rule)
        known = evaluator.score_artifact(rule, informed=True)
        share = share_won(agent.returns, ours.returns, known.returns)
    present = _present(evaluator, champion)
    verdict = Judgement(
        agent.returns,
        {name: rule.returns for name, rule in rules.items()},
        default_heuristic(Projector(evaluator.layout, table)).name,
        None if present is None else present.returns,
        margin,
        OutcomeValues(
            outcomes_of(spec),
            agent.outcomes,
            {name: rule.outcomes for name, rule in rules.items()},
            None if present is None else present.outcomes,
        ),
    )
    terms_paid = dict(zip(TERMS, map(float, agent.terms.mean(axis=0)), strict=True))
    played = {name: rule.returns for name, rule in rules.items()}
    return verdict.report() | {
        "terms": terms_paid,
        "share_won": share,
        **_to_optimum(evaluator, agent, optimum, played),
    }


def evaluate_unguarded(
    spec: Spec, table: ModelTable, artifact: bytes, *, seed: int, optimum: Optimum | None = None
) -> dict[str, Any]:
    """Play an artifact's policy without the service's guard. Return ``return`` (``mean``, ``low``, ``high``: the 95 %
    interval), ``optimum`` (its ``mean``, ``low``, ``high``, ``expected`` return and ``grid_error``), ``gap_to_optimum``
    (share of the optimum's magnitude) and ``optimum_reason`` (text on why the optimum is unknown, so that the other two
    are None; else None). Raises IncompatibleArtifact if the artifact can't be read."""
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
    """Return ``optimum`` (its returns in the agent's episodes), ``gap_to_optimum`` and ``optimum_reason``.

    If the optimum is unknown or a policy beats it, the first two are None and the reason is a text; else it is None.
    """
    if optimum is None or not optimum.exact:
        try:
            optimum = solve(evaluator.layout, evaluator.table)
        except NoOptimum as error:
            return {"optimum": None, "gap_to_optimum": None, "optimum_reason": str(error)}
    scores = evaluator.score(optimum.policy)
    doubt = refute(scores.returns, {"the agent": agent.returns, **others})
    if doubt is not None:
        return {"optimum": None, "gap_to_optimum": None, "optimum_reason": doubt}
    optimum_report = {**scores.interval(), "expected": optimum.expected, "grid_error": optimum.error}
    return {"optimum": optimum_report, "gap_to_optimum": gap(agent.returns, scores.returns), "optimum_reason": None}


def calibrate_hysteresis(spec: Spec, table: ModelTable, artifact: bytes, *, seed: int, episodes: int = 2048) -> bytes:
    """Return the artifact with the largest hysteresis (least gain in return for which it acts) that costs no return.

    Candidates play the same episodes. One is accepted while its mean return is below that without hysteresis by at most
    0.1 %, or not significantly (95 %).

    Raises:
        IncompatibleArtifact: the artifact can't be read.
    """
    evaluator, result = Evaluator(spec, table, seed, episodes), load(artifact)
    candidates = [replace(result, experience=replace(result.experience, hysteresis=h)) for h in HYSTERESES]
    chosen = candidates[_largest_hysteresis(evaluator.score_artifact(candidate).returns for candidate in candidates)]
    return save(chosen.policy, evaluator.layout, chosen.experience)


def _largest_hysteresis(returns: Iterable[NDArray[np.float64]]) -> int:
    """Return the index, from 0, of the last policy up to which all are as good as the first, from the returns [E] of
    each in the same E episodes, in the order of their hysteresis."""
    accepted, every = 0, iter(returns)
    first = next(every)
    for index, values in enumerate(every, start=1):
        loss = interval(first - values)
        if loss["low"] > 0 and loss["mean"] > 1e-3 * abs(float(first.mean())):
            break
        accepted = index
    return accepted
