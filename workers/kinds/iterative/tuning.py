"""Tuning of the rule's numbers for a workload, and the headroom: how much any policy could gain there.

Everything is played in simulators of the domain model, behind the guard as in the service, on fresh episodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.charts.text import percent
from app.kinds.iterative.heuristics import TunedNumbers, TunedPolicy, default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import MODEL_NOISE, experience_of, load, save
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Disturbances, Spec
from workers.evaluation.arena import play
from workers.evaluation.statistics import MARGIN, Level, mean_interval
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.optimum import hindsight_bound
from workers.kinds.iterative.problem import IterativeProblem

TUNED = "tuned_rule"

# The cross-entropy method (Rubinstein 1999): draw numbers from a normal distribution, play them on the same episodes,
# and fit the distribution to the best quarter. Its mean is compared on validation episodes whenever the number of
# generations has doubled, until that gains less than a tenth of the margin of practical equivalence.


POPULATION, EPISODES, VALIDATION_EPISODES = 16, 128, 512
FIRST, MOST = 4, 32  # generations before the first comparison, and in all
KEPT = 0.7  # weight of the best quarter against the distribution before
CENTRE = np.array([0.0, 0.0, math.log(MODEL_NOISE), 0.0, 0.3])  # logs of target, risk and hysteresis; follow, ignored
SPREAD = np.array([0.05, 0.7, 1.0, 0.5, 0.3])
NEUTRAL = np.array([0.0, 0.0, math.log(MODEL_NOISE), 0.0, 0.0])
"""Model-predictive control as served."""


def steps(layout: Layout, generations: int) -> int:
    """Environment steps that so many generations play."""
    return generations * POPULATION * EPISODES * layout.iterations


def artifact_of(layout: Layout, point: NDArray[np.float64]) -> bytes:
    """Serialise the rule at a ``point`` [5] of the search; the hysteresis is the guard's."""
    target, risk, least, follow, ignored = point.tolist()
    numbers = TunedNumbers(math.exp(target), math.exp(risk), follow, max(ignored, 0.0))
    policy = TunedPolicy({"algorithm": TUNED, "numbers": numbers._asdict()})
    return save(policy, layout, experience_of(layout, math.exp(least)))


@dataclass(frozen=True)
class Tuned:
    """The best numbers found.

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
        """The numbers as JSON values, and how they were found."""
        made = load(self.artifact)
        numbers = {**made.policy.config["numbers"], "hysteresis": made.experience.hysteresis}
        return {"numbers": numbers, "generations": self.generations, "converged": self.converged}


def tune(spec: Spec, table: ModelTable, seed: int, budget: int) -> Tuned | None:
    """Tune the rule's numbers within ``budget`` environment steps; None if that isn't enough for 4 generations.

    Its episodes are others than those of ``headroom`` with the same ``seed``.
    """
    layout = Layout(spec)
    if steps(layout, FIRST) > budget:
        return None
    search, last, *each = np.random.SeedSequence([seed, 0]).generate_state(2 + MOST).tolist()
    random, validation = np.random.default_rng(search), Evaluator(spec, table, last, VALIDATION_EPISODES)

    def validated(point: NDArray[np.float64]) -> float:
        return float(validation.score_artifact(load(artifact_of(layout, point))).returns.mean())

    centre, spread = CENTRE.copy(), SPREAD.copy()
    best, most = NEUTRAL, validated(NEUTRAL)
    played, following, converged = 0, FIRST, False
    while played < MOST and steps(layout, played + 1) <= budget and not converged:
        points = centre + spread * random.standard_normal((POPULATION, len(centre)))
        points[0] = centre
        episodes = Evaluator(spec, table, each[played], EPISODES)
        scores = [episodes.score_artifact(load(artifact_of(layout, point))).returns.mean() for point in points]
        top = points[np.argsort(scores)[-POPULATION // 4 :]]
        centre = KEPT * top.mean(axis=0) + (1 - KEPT) * centre
        spread = KEPT * top.std(axis=0) + (1 - KEPT) * spread
        played += 1
        if played == following:
            value = validated(centre)
            converged = value - most < MARGIN / 10 * abs(most) and played > FIRST
            best, most = (centre.copy(), value) if value > most else (best, most)
            following *= 2
    return Tuned(artifact_of(layout, best), best.tolist(), played, converged)


# Headroom: what is served, the tuned rule, that rule with knowledge of what could be known, and hindsight.


HEADROOM_EPISODES, HINDSIGHT_EPISODES = 1_024, 64


@dataclass(frozen=True)
class Headroom:
    """Mean returns with 95 % intervals on the same episodes, and their differences.

    Attributes:
        rule: name of the heuristic that is served.
        served, tuned: the served heuristic, and the tuned rule.
        knowable: the tuned rule if it knew the law and the run effect that each run follows, but not the noise.
        gain: tuned less served.
        left: knowable less tuned.
        beyond: the best in hindsight, with all noise known, less tuned, on other episodes; None: it can't be computed.
        margin: margin of practical equivalence, in return.
        why: why there is no hindsight; empty if there is.
    """

    rule: str
    served: Mapping[str, float]
    tuned: Mapping[str, float]
    knowable: Mapping[str, float]
    gain: Mapping[str, float]
    left: Mapping[str, float]
    beyond: Mapping[str, float] | None
    margin: float
    why: str = ""

    @property
    def is_exhausted(self) -> bool:
        """Whether even hindsight gains less than the margin over the tuned rule (upper 95 % bound)."""
        return self.beyond is not None and self.beyond["high"] < self.margin

    def text(self) -> str:
        """The headroom in one line."""
        size = abs(self.tuned["mean"])
        shares = [f"{percent(part['mean'] / size)}" for part in (self.gain, self.left)]
        known = f"tuned by {shares[0]} over {self.rule}; knowing each run's law would give {shares[1]} more"
        if self.beyond is None:
            return f"{known}; no bound in hindsight: {self.why}"
        return f"{known}, and knowing all noise {percent(self.beyond['mean'] / size)}"

    def nothing_to_win(self) -> str:
        """Why training can't gain anything that counts; empty if it can."""
        if not self.is_exhausted or self.beyond is None:
            return ""
        size = abs(self.tuned["mean"])
        most, margin = (percent(max(part, 0.0) / size) for part in (self.beyond["high"], self.margin))
        return f"there is nothing to win here: all noise known, the tuned rule loses at most {most}, less than {margin}"

    def report(self) -> dict[str, Any]:
        """The headroom as JSON values."""
        parts = {name: getattr(self, name) for name in ("served", "tuned", "knowable", "gain", "left", "beyond")}
        values = {name: None if part is None else dict(part) for name, part in parts.items()}
        return {"rule": self.rule, **values, "margin": self.margin, "why": self.why, "text": self.text()}


def headroom(spec: Spec, table: ModelTable, tuned: bytes, seed: int, margin: float = MARGIN) -> Headroom:
    """Measure the headroom of a workload; ``margin`` is a share of the tuned rule's return."""
    first, *single = np.random.SeedSequence([seed, 1]).generate_state(1 + HINDSIGHT_EPISODES).tolist()
    evaluator = Evaluator(spec, table, first, HEADROOM_EPISODES)
    artifact, rule = load(tuned), default_heuristic(Projector(evaluator.layout, table))
    served, ours = evaluator.score(rule).returns, evaluator.score_artifact(artifact).returns
    known = evaluator.score_artifact(artifact, informed=True).returns
    known = known if known.mean() > ours.mean() else ours  # it need not use what it knows
    beyond, why = None, ""
    try:
        beyond = mean_interval(np.array(list(_beyond(spec, table, tuned, single))))
    except ValueError as error:
        why = str(error)
    return Headroom(
        rule=rule.name,
        served=mean_interval(served),
        tuned=mean_interval(ours),
        knowable=mean_interval(known),
        gain=mean_interval(ours - served),
        left=mean_interval(known - ours),
        beyond=beyond,
        margin=margin * abs(float(ours.mean())),
        why=why,
    )


def _beyond(spec: Spec, table: ModelTable, tuned: bytes, seeds: Sequence[int]) -> Iterator[float]:
    """Yield, for the single episode of each seed, the upper bound in hindsight less the tuned rule's return.

    Raises:
        ValueError: runs are disturbed, or as ``hindsight_bound``.
    """
    if spec.disturbances != Disturbances():
        raise ValueError("runs are disturbed, and a bound would have to know how")
    problem = IterativeProblem(spec, table)
    for seed in seeds:
        bound = hindsight_bound(problem.world(1, seed))
        played = play(problem.world(1, seed), Level.FIXED, seed, problem.player(tuned))
        yield bound - float(played.returns[0])
