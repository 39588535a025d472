"""Tuning of the rule's numbers for a workload, and the headroom: how much any policy could gain there.

Everything is played in simulators of the domain model, behind the guard as in the service, on fresh episodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.heuristics import TunedNumbers, TunedPolicy, default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import MODEL_NOISE, experience_of, load, save
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Disturbances, Spec
from app.kinds.iterative.state import EARLIER, STEADIER
from workers.evaluation.arena import play
from workers.evaluation.headroom import FIRST, MOST, POPULATION, TUNED, Headroom, Search, cross_entropy
from workers.evaluation.statistics import MARGIN, Level
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.optimum import hindsight_bound
from workers.kinds.iterative.problem import IterativeProblem

EPISODES, VALIDATION_EPISODES = 128, 512
CENTRE = np.array([0.0, 0.0, math.log(MODEL_NOISE), 0.0, 0.3])  # logs of target, risk and hysteresis; follow, ignored
SPREAD = np.array([0.05, 0.7, 1.0, 0.5, 0.3])
NEUTRAL = np.array([0.0, 0.0, math.log(MODEL_NOISE), 0.0, 0.0])
"""Model-predictive control as served where no shift of pace is declared."""


def served(projector: Projector) -> NDArray[np.float64]:
    """Return the numbers [5] (see ``artifact_of``) at which the rule decides like served model-predictive control."""
    return NEUTRAL + projector.slowdown * np.array([-EARLIER, 0.0, STEADIER, 0.0, 0.0])


def steps(layout: Layout, generations: int) -> int:
    """Number of environment steps that the search plays in ``generations`` generations."""
    return generations * POPULATION * EPISODES * layout.iterations


def artifact_of(layout: Layout, point: NDArray[np.float64]) -> bytes:
    """Serialise the rule with the numbers ``point`` [5]: natural logs of the factors of target and risk and of the
    hysteresis (in return); by how many deviations of the noise recent errors shift the expected pace (``follow``); and
    the mean standardised error below which they don't (``ignored``)."""
    target, risk, least, follow, ignored = point.tolist()
    numbers = TunedNumbers(math.exp(target), math.exp(risk), follow, max(ignored, 0.0))
    policy = TunedPolicy({"algorithm": TUNED, "numbers": numbers._asdict()})
    return save(policy, layout, experience_of(layout, math.exp(least)))


@dataclass(frozen=True)
class Tuned:
    """The best numbers of the rule that a search found.

    Attributes:
        artifact: the rule with these numbers, as it would be served.
        point: the numbers as ``artifact_of`` takes them.
        generations: generations played.
        converged: whether the last doubling of the generations gained less than a tenth of the margin.
    """

    artifact: bytes
    point: list[float]
    generations: int
    converged: bool

    def report(self) -> dict[str, Any]:
        """The rule's tuned numbers and hysteresis, generations played, and convergence, as JSON values by name."""
        result = load(self.artifact)
        numbers = {**result.policy.config["numbers"], "hysteresis": result.experience.hysteresis}
        return {"numbers": numbers, "generations": self.generations, "converged": self.converged}


def tune(spec: Spec, table: ModelTable, seed: int, budget: int) -> Tuned | None:
    """Tune the rule's numbers within ``budget`` environment steps; None if that isn't enough for 4 generations.

    ``seed``: of search and episodes, which are others than those of ``headroom`` with the same ``seed``.
    """
    layout = Layout(spec)
    if steps(layout, FIRST) > budget:
        return None
    first, last, *each = np.random.SeedSequence([seed, 0]).generate_state(2 + MOST).tolist()
    random, validation = np.random.default_rng(first), Evaluator(spec, table, last, VALIDATION_EPISODES)

    def validated(point: NDArray[np.float64]) -> float:
        return float(validation.score_artifact(load(artifact_of(layout, point))).returns.mean())

    def play_all(points: NDArray[np.float64], generation: int) -> NDArray[np.float64]:
        episodes = Evaluator(spec, table, each[generation], EPISODES)
        played = [episodes.score_artifact(load(artifact_of(layout, point))).returns.mean() for point in points]
        return np.array(played, np.float64)

    affordable = min(MOST, budget // steps(layout, 1))
    start = served(Projector(layout, table))
    search = Search(start, CENTRE + start - NEUTRAL, SPREAD, play_all, validated, affordable)
    result = cross_entropy(search, random)
    return Tuned(artifact_of(layout, result.point), result.point.tolist(), result.generations, result.converged)


# Headroom: what is served, the tuned rule, that rule with knowledge of what could be known, and hindsight.


HEADROOM_EPISODES, HINDSIGHT_EPISODES = 1_024, 64


def headroom(spec: Spec, table: ModelTable, tuned: bytes, seed: int, margin: float = MARGIN) -> Headroom:
    """Measure the headroom of a workload: how much more return knowledge of the run or hindsight would gain.

    ``tuned``: artifact of the tuned rule; ``margin``: a share (0 to 1) of that rule's return. Raises
    IncompatibleArtifact if ``tuned`` can't be read.
    """
    first, *single = np.random.SeedSequence([seed, 1]).generate_state(1 + HINDSIGHT_EPISODES).tolist()
    evaluator = Evaluator(spec, table, first, HEADROOM_EPISODES)
    artifact, rule = load(tuned), default_heuristic(Projector(evaluator.layout, table))
    served, ours = evaluator.score(rule).returns, evaluator.score_artifact(artifact).returns
    known = evaluator.score_artifact(artifact, informed=True).returns
    beyond, why = None, ""
    try:
        beyond = np.array(list(_beyond(spec, table, tuned, single)))
    except ValueError as error:
        why = str(error)
    return Headroom.of(rule.name, served, ours, known, margin=margin, beyond=beyond, why=why)


def _beyond(spec: Spec, table: ModelTable, tuned: bytes, seeds: Sequence[int]) -> Iterator[float]:
    """Yield, for the single episode of each seed, the upper bound in hindsight less the tuned rule's return.

    Raises:
        ValueError: runs are disturbed, several targets are on sums over the run, or the problem is too large.
    """
    if spec.disturbances != Disturbances():
        raise ValueError("runs are disturbed, and a bound would have to know how")
    problem = IterativeProblem(spec, table)
    for seed in seeds:
        bound = hindsight_bound(problem.world(1, seed))
        played = play(problem.world(1, seed), Level.FIXED, seed, problem.player(tuned))
        yield bound - float(played.returns[0])
