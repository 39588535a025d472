"""Policies of known worth before the judge of a training: is the worse refused, and the better promoted?

``python -m benchmarks planted_judgings`` (``planted_judgings:iterative`` and so on runs one kind). Nothing is trained.
A policy that is worse than what answers, the best rule, by half a margin of practical equivalence must be refused in
95 of 100 judgings, and one that is better than the champion by two margins must be promoted in 90. The margin is that
of a training by default, and ten times that for ``workflow``. Handicaps are tuned on some episodes, and what they come
to is measured on others; no judging sees either. Where that is off by more than a fifth, the goal is neither met nor
missed.

``iterative``: each judging is of executions of its own, drawn from a known law, to which a domain model is fitted as
the service does; another rule replaces model-predictive control in a share of its decisions. How often the interval of
the cross-fitted gain holds what is earned under the law, with beliefs of half as many executions, is told.
``inference``, ``cluster``: a small workload with its domain model, new episodes for each judging; a poorer rule
replaces the best one in a share of the decisions, or of the episodes. ``workflow``: a log for each judging; priorities
with more ageing.

Beside them, for each kind, a whole training as it is by default: its processor time until all has been learned, and
from then on.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from app.kinds.cluster.example import EXAMPLE
from app.kinds.cluster.layout import Layout as ClusterLayout
from app.kinds.cluster.samples import ClusterSamples
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.iterative import policies
from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import MODEL_NOISE
from app.kinds.iterative.projector import Projector
from app.kinds.records import JSON
from app.kinds.workflow.policies import PriorityPolicy, save
from app.kinds.workflow.scheduling.dispatch import EASY
from app.kinds.workflow.scheduling.planning import AGEING
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.trace import Trace, independent_jobs
from app.policies.base import Arrays
from benchmarks.inference_small import SYSTEMS
from benchmarks.inference_small import planted as crowded
from benchmarks.problems import PROBLEMS, Problem
from workers.evaluation.arena import Scores, play
from workers.evaluation.statistics import MARGIN, Level, share_interval
from workers.evaluation.wrappers import HeldOut
from workers.inputs import Workload
from workers.kinds.cluster.kind import LearnedCluster
from workers.kinds.inference.kind import LearnedInference
from workers.kinds.iterative.fit import fit_domain_model
from workers.kinds.iterative.grid import Executions
from workers.kinds.iterative.kind import Iterative
from workers.kinds.iterative.problem import IterativeProblem
from workers.kinds.iterative.training import IterativeTraining
from workers.kinds.iterative.world import IterativeWorld
from workers.kinds.simulated.problem import SimulatedEnvironment
from workers.kinds.simulated.training import SimulatedTraining
from workers.kinds.workflow.kind import Workflow
from workers.kinds.workflow.training.judge import judge
from workers.kinds.workflow.training.sequences import Sequence, Source, measure_losses, piece, pieces
from workers.kinds.workflow.training.train import CHOSEN, LENGTH, load_shipped_policy
from workers.learning.training.driver import PlannedPolicy, Training
from workers.learning.training.request import Request

PARTS = ("iterative", "workflow", "inference", "cluster")
JUDGINGS, EXECUTIONS, TRUE_EPISODES = 100, 24, 1_024
REFUSED, PROMOTED, COST = 0.95, 0.90, 2
WORSE, BETTER = -0.5 * MARGIN, 2 * MARGIN
NOTHING = PlannedPolicy(why_not="no plan competes")
PLANTED = "planted-1"  # whose law executions follow
TUNED, MEASURED = 5_000, 6_000  # first seeds of the episodes that handicaps are tuned and measured on
PROCESSORS, JOBS = 64, 300_000  # of the machine, and in a log of it
LOGS, MODELS = 6, 8  # by which the worth of priorities, and of artifacts of kind ``iterative``, is measured
COARSE = 0.1  # margin for queues: slow-downs of pieces differ so much that a log of JOBS can't tell less
OFF = 4.0  # the most that is added to the weight of ageing
Row = dict[str, Any]


def results(parts: tuple[str, ...] | list[str] = PARTS) -> list[Row]:
    """Shares of judgings, and what each policy is worth, by kind."""
    results = []
    for part in parts:
        planted = plant(part)
        results += [*rows(part, planted, [planted.judge(seed) for seed in range(JUDGINGS)]), cost(part)]
    return results


class Judging(NamedTuple):
    """What came of one.

    Attributes:
        refused: whether the worse was.
        promoted: whether the better was.
        seconds: processor time of one of them.
        fit: processor time of the fit of the domain model before; None: there was none.
        holds: whether the cross-fitted interval of the gain of the better holds its worth; None: there is none.
    """

    refused: bool
    promoted: bool
    seconds: float
    fit: float | None = None
    holds: bool | None = None


class Planted(NamedTuple):
    """Policies of known worth.

    Attributes:
        worths: of the worse over what answers, and of the better over the champion, as shares of the return.
        judge: judges both on what a seed draws.
        margin: of practical equivalence.
    """

    worths: tuple[float, float]
    judge: Callable[[int], Judging]
    margin: float = MARGIN


def plant(name: str) -> Planted:
    """The policies of a kind, tuned."""
    result = {"iterative": iterative, "workflow": workflow}
    return result[name]() if name in result else simulated(name)


def iterative() -> Planted:
    """Model-predictive control, which answers, and the same with other decisions among its own."""
    problem = PROBLEMS[PLANTED]()
    best = careless(problem, 0.0)
    handicaps = (
        tuned(lambda share: WORSE - worth(problem, careless(problem, share), None)),
        tuned(lambda share: worth(problem, best, careless(problem, share)) - BETTER),
    )
    worse, champion = (careless(problem, share) for share in handicaps)
    worths = worth(problem, worse, None, MEASURED), worth(problem, best, champion, MEASURED)
    unseen = worth(problem, best, champion, MEASURED, EXECUTIONS // 2)

    def judging(seed: int) -> Judging:
        samples = executions(problem, seed)
        begun = time.process_time()
        table = fit_domain_model(problem.spec, Executions(samples), seed).table
        fit = time.process_time() - begun
        training = IterativeTraining(problem.spec, table, 10 * seed, samples)
        begun = time.process_time()
        refused = not training.judge(worse, NOTHING, None, MARGIN)["promoted"]
        spent = time.process_time() - begun
        verdict = training.judge(best, NOTHING, champion, MARGIN)
        crossed = verdict["cross_fitted"]
        gain, earned = crossed["gain"], abs(crossed["return"]["mean"] - crossed["gain"]["mean"])
        holds = gain["low"] <= unseen * earned <= gain["high"]
        return Judging(refused, verdict["promoted"], spent, fit, holds)

    return Planted(worths, judging)


def tuned(excess: Callable[[float], float]) -> float:
    """The handicap from 0 to 1 for ``excess``, which grows with it, to pass 0; by bisection."""
    low, high = 0.0, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return (low + high) / 2


class Careless:
    """Model-predictive control that in a share of its decisions does what the threshold rule would; an artifact.

    It tells the guard that those are worth most, so that they aren't taken for noise.
    """

    name = "careless"
    arrays: ClassVar[Arrays] = {}

    def __init__(self, config: dict[str, Any]) -> None:
        self.config, self.rng = config, np.random.default_rng(7)

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> "Careless":
        """The policy that a config describes; it has no arrays."""
        del arrays
        return cls(config)

    def act(self, situation: Situation) -> Choice:
        """What model-predictive control chooses, or in the drawn share the threshold rule; values as said above."""
        usual, other = (HEURISTICS[name].act(situation) for name in ("model_predictive", "threshold"))
        values, drawn = np.array(usual.values), self.rng.random(len(usual.action)) < self.config["share"]
        values[drawn, other.action[drawn]] = values[drawn].max(axis=1) + 1.0
        return Choice(np.where(drawn, other.action, usual.action), values)


policies.FAMILIES = {**policies.FAMILIES, "careless": Careless}


def careless(problem: Problem, share: float) -> bytes:
    """An artifact that hesitates as much as a heuristic does."""
    layout = Layout(problem.spec)
    return policies.save(Careless({"share": share}), layout, policies.experience_of(layout, MODEL_NOISE))


def worth(
    problem: Problem, artifact: bytes, champion: bytes | None, first: int = TUNED, known: int = EXECUTIONS
) -> float:
    """What an artifact earns over the champion, or over the heuristic that answers, as a share of its return.

    Policies believe in models fitted to sets of ``known`` executions, of seeds from ``first`` on; runs follow the law.
    """
    layout, law = Layout(problem.spec), Projector(Layout(problem.spec), problem.table, np.float32)
    gains, returns = [], []
    for seed in range(first, first + MODELS):
        table = believed(seed, known)
        evaluation = IterativeProblem(problem.spec, table)
        earned = []
        for contender in (artifact, champion or HEURISTICS["model_predictive"]):
            world = IterativeWorld(Projector(layout, table, np.float32), [law], TRUE_EPISODES, seed)
            HeldOut(world, seed)
            earned.append(play(world, Level.SEEDS, seed, evaluation.player(contender)).returns)
        gains.append(float((earned[0] - earned[1]).mean()))
        returns.append(abs(float(earned[1].mean())))
    return sum(gains) / sum(returns)


@cache
def believed(seed: int, known: int) -> ModelTable:
    """The domain model of executions of a seed, of four members."""
    problem = PROBLEMS[PLANTED]()
    return fit_domain_model(problem.spec, Executions(executions(problem, seed, known)), seed).table.thinned(4)


def executions(problem: Problem, seed: int, count: int = EXECUTIONS) -> tuple[Any, ...]:
    """Executions of the law, each at an allocation of its own."""
    rng, layout, executions = np.random.default_rng(seed), Layout(problem.spec), []
    table, iterations = problem.table, problem.spec.iterations
    rows = np.linspace(0, len(layout.allocations) - 1, count).round().astype(int)
    for number, row in enumerate(rng.permutation(rows)):
        drift = np.cumsum(table.drift_sd[0] * rng.standard_normal(iterations))
        logs = table.log_mean[0, row, 0, 0] + table.effect_sd[0] * rng.standard_normal() + drift
        seconds = np.exp(logs + table.noise_sd[0] * rng.standard_normal(iterations))
        amounts = np.tile(layout.allocations[row], (iterations, 1))
        executions.append((f"run-{number}", np.column_stack([np.arange(iterations), amounts, seconds])))
    return tuple(executions)


class Handicapped:
    """Decides as ``better``, and in a share of the decisions, drawn anew each time it plays, as ``worse``."""

    name = "handicapped"

    def __init__(self, better: Policy, worse: Policy, share: float) -> None:
        self.better, self.worse, self.share, self.rng = better, worse, share, np.random.default_rng(7)

    def act(self, situation: Situation) -> Choice:
        """The better one's action, or in the drawn share the worse one's."""
        ours, theirs = self.better.act(situation).action, self.worse.act(situation).action
        drawn = self.rng.random(len(ours)) < self.share
        return Choice(np.where(drawn.reshape(-1, *(1,) * (ours.ndim - 1)), theirs, ours))


class PlantedTraining(SimulatedTraining):
    """Judges artifacts that name a rule and the share in which the ``worse`` one answers: of decisions, or of episodes
    where rules answer for all jobs at once.
    """

    worse = ""

    def __init__(self, kind: SimulatedEnvironment, workload: Workload, seed: int) -> None:
        super().__init__(kind, workload, seed)
        self.known: dict[tuple[str, int, int], Scores] = {}  # of rules, each of which is played once

    def load(self, artifact: bytes) -> Handicapped:
        """The policy of ``"<rule> <share>"``."""
        rule, share = artifact.decode().split()
        rules = self.experts()
        return Handicapped(rules[rule], rules[self.worse], float(share))

    def worth(self, artifact: bytes, seed: int) -> float:
        """Mean return in the episodes of a seed."""
        return float(self._played(self.load(artifact), seed, TRUE_EPISODES // 2).returns.mean())

    def _played(self, policy: Policy, seed: int, episodes: int) -> Scores:
        if not isinstance(policy, Handicapped):
            key = policy.name, seed, episodes
            if key not in self.known:
                self.known[key] = super()._played(policy, seed, episodes)
            return self.known[key]
        if self.kind.name != "cluster":
            return super()._played(policy, seed, episodes)
        ours, theirs = (self._played(one, seed, episodes) for one in (policy.better, policy.worse))
        drawn = np.random.default_rng(seed).permutation(episodes) < policy.share * episodes
        returns = np.where(drawn, theirs.returns, ours.returns)
        return ours._replace(returns=returns, outcomes=np.where(drawn[:, None], theirs.outcomes, ours.outcomes))

    def _pictures(self, shown: Mapping[str, bytes | None]) -> dict[str, Any]:
        """None: the whole training beside it counts what they take."""
        del shown
        return {}


def simulated(name: str) -> Planted:
    """The best rule, handicapped by the rule that is worse by as little as will do."""
    kind, workload = _example(name)
    training = PlantedTraining(kind, workload, 0)
    bare = cache(lambda rule, seed: training.worth(f"{rule} 0".encode(), seed))
    rules = list(training.experts())
    training.worse = rules[0]
    best = max(rules, key=lambda rule: bare(rule, TUNED))
    least = bare(rules[0], TUNED) - 0.9 * BETTER * abs(bare(best, TUNED))  # worse than what answers without an agent
    worse = training.worse = max(
        (rule for rule in rules if bare(rule, TUNED) < least), key=lambda rule: bare(rule, TUNED)
    )

    def gain(share: float, seed: int = TUNED) -> float:
        """Of the best rule by a share of the worse one, below 0, as a share of the best's return."""
        return (training.worth(f"{best} {share}".encode(), seed) - bare(best, seed)) / abs(bare(best, seed))

    handicaps = tuned(lambda share: WORSE - gain(share)), tuned(lambda share: -BETTER - gain(share))
    poorer, champion = (f"{best} {share}".encode() for share in handicaps)
    unspoilt = f"{best} 0".encode()

    def judging(seed: int) -> Judging:
        training = PlantedTraining(kind, workload, 10 * seed)
        training.worse = worse
        begun = time.process_time()
        refused = not training.judge(poorer, NOTHING, unspoilt, MARGIN)["promoted"]
        spent = time.process_time() - begun
        return Judging(refused, training.judge(unspoilt, NOTHING, champion, MARGIN)["promoted"], spent)

    return Planted((gain(handicaps[0], MEASURED), -gain(handicaps[1], MEASURED)), judging)


def _example(name: str) -> tuple[Any, Workload]:
    """A small workload of a kind, with its domain model."""
    if name == "inference":
        layout, model = crowded(*SYSTEMS["crowded"])
        return LearnedInference(), Workload(layout.spec, model.to_bytes())
    cluster, spec = LearnedCluster(), ClusterSpec.model_validate(EXAMPLE.spec)
    codec = ClusterSamples(ClusterLayout(spec))
    read: Any = next(iter(codec.formats[JSON].reader(codec, None).read(iter([EXAMPLE.samples[JSON]]))))
    return cluster, Workload(spec, cluster.fit(Workload(spec, samples=[("march", codec.unpack(read.data))]), 0).model)


def workflow() -> Planted:
    """The priorities that ship, which answer, and others that are off."""
    best = load_shipped_policy()
    logs = {first: [one for seed in range(first, first + LOGS) for one in judged(seed)] for first in (TUNED, MEASURED)}
    least = {first: float(measure_losses(best, sequences).mean()) for first, sequences in logs.items()}

    def off(share: float) -> PriorityPolicy:
        weights = best.weights.copy()
        weights[:, AGEING] += OFF * share
        return PriorityPolicy(weights)

    def loss(share: float, first: int = TUNED) -> float:
        """Over that of the priorities that ship, as a share of it."""
        return float(measure_losses(off(share), logs[first]).mean()) / least[first] - 1

    handicaps = tuned(lambda share: loss(share) - COARSE / 2), tuned(lambda share: loss(share) - 2 * COARSE)
    worse, champion, usual = save(off(handicaps[0])), save(off(handicaps[1])), save(best)

    def judging(seed: int) -> Judging:
        sequences = judged(seed)
        begun = time.process_time()
        refused = not judge(worse, sequences, usual, margin=COARSE)["promoted"]
        spent = time.process_time() - begun
        return Judging(refused, judge(usual, sequences, champion, margin=COARSE)["promoted"], spent)

    return Planted((-loss(handicaps[0], MEASURED), loss(handicaps[1], MEASURED)), judging, COARSE)


def judged(seed: int) -> list[Sequence]:
    """What a training would be judged on: the end of a log, under EASY."""
    jobs = log(seed)
    end = piece(jobs, int(CHOSEN * JOBS), JOBS - int(CHOSEN * JOBS))
    return [Sequence(one, PROCESSORS, EASY) for one in pieces(Source(end, PROCESSORS, whole=True), LENGTH)]


def log(seed: int) -> Trace:
    """A log of its own, on 64 processors."""
    rng, jobs = np.random.default_rng(seed), JOBS
    runtime = np.round(rng.lognormal(5, 1.3, jobs)) + 1
    need = 2 ** rng.integers(0, 6, jobs)
    submit = np.cumsum(rng.exponential(float((runtime * need).mean()) / PROCESSORS / 0.85, jobs))
    return independent_jobs(submit, runtime, runtime * rng.uniform(1, 5, jobs), need, rng.integers(0, 30, jobs))


def cost(name: str) -> Row:
    """Of a training as it is by default, to the last chunk of learning, and from there to its end."""
    kind, workload = _trained(name)
    training = Training(kind.trainer(workload, Request(seed=1), None))
    begun = time.process_time()
    while training.learning:
        training.advance()
    learned = time.process_time() - begun
    training.advance()
    judged = time.process_time() - begun - learned
    verdict = "met" if judged <= COST * learned else "missed"
    goal = f"≤ {COST} ×: {verdict}"
    return _row(f"{name}: processor time from the end of learning on", judged, "s", "learning", learned, goal)


def _trained(name: str) -> tuple[Any, Workload]:
    """A small workload of a kind, with its domain model and samples."""
    if name == "iterative":
        problem = PROBLEMS[PLANTED]()
        workload = Workload(problem.spec, samples=executions(problem, TUNED))
        return Iterative(), replace(workload, model=Iterative().fit(workload, TUNED).model)
    if name == "workflow":
        nodes = [{"name": "node", "processors": PROCESSORS}]
        spec = Spec.model_validate({"name": "queue", "kind": "workflow", "nodes": nodes})
        return Workflow(), Workload(spec, samples=[("log", log(TUNED))])
    return _example(name)


def rows(name: str, planted: Planted, judgings: list[Judging]) -> list[Row]:
    """Of the judgings of a kind."""
    refused, promoted = sum(each.refused for each in judgings), sum(each.promoted for each in judgings)
    spent = float(np.mean([each.seconds for each in judgings]))
    fits = [each.fit for each in judgings if each.fit is not None]
    peer, before = ("fit", float(np.mean(fits))) if fits else (None, None)
    rows = [
        _share(f"{name}: refused though worse", refused, planted.worths[0], -0.5 * planted.margin, REFUSED),
        _share(f"{name}: promoted as it is better", promoted, planted.worths[1], 2 * planted.margin, PROMOTED),
        _row(f"{name}: processor time of a judging", spent, "s", peer, before, None),
    ]
    holds = [each.holds for each in judgings if each.holds is not None]
    if holds:
        share = sum(holds) / len(holds)
        verdict = "met" if 0.90 <= share <= 0.98 else "missed"
        title = f"{name}: 95 % intervals of the cross-fitted gain that hold it"
        rows.append(_row(title, share, "share", None, None, f"0.90 to 0.98: {verdict}"))
    return rows


def _share(title: str, count: int, effect: float, wanted: float, goal: float) -> Row:
    share = count / JUDGINGS
    _, low, high = share_interval(np.repeat([1.0, 0.0], [count, JUDGINGS - count]))
    name = f"{title}, {effect:+.2%} for {wanted:+.2%}, {JUDGINGS} judgings, 95 % interval {low:.2f} to {high:.2f}"
    verdict = "missed" if share < goal else "met" if low >= goal else "undecided at 95 %"
    if abs(effect - wanted) > abs(wanted) / 5:
        verdict = "not tried, what was planted is another effect"
    return _row(name, share, "share", None, None, f"≥ {goal:.2f}: {verdict}")


def _row(name: str, value: float, unit: str, peer: str | None, peer_value: float | None, goal: str | None) -> Row:
    names = ("name", "value", "unit", "peer", "peer_value", "ratio", "goal")
    return dict(zip(names, (name, value, unit, peer, peer_value, None, goal), strict=True))


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("planted_judgings", results())
