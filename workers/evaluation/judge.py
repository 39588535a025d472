"""Verdict on a trained agent (promoted or not), and the check for aliased states."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.text import SHARE, amount, confidence, decimals, percent
from app.kinds.contract.kind import Outcome
from app.kinds.contract.policy import Policy, Situation
from workers.evaluation.arena import play
from workers.evaluation.problem import Encoder, Problem
from workers.evaluation.statistics import (
    MARGIN,
    POWER,
    ROUNDING,
    Clusters,
    Equivalence,
    Estimate,
    Level,
    estimate,
    mean_interval,
    share_interval,
)

Floats = NDArray[np.float64]
CHAMPION = "the champion at that time"

TOLERATED = 0.01
"""Share of runs by which an agent may miss more targets than its rival, also where the margin is smaller."""


class OutcomeValues(NamedTuple):
    """Outcomes in users' units in the E episodes of a verdict.

    Attributes:
        outcomes: names and units of the O outcomes.
        agent: the agent's outcomes, [E, O].
        baselines: each baseline's outcomes by name, [E, O].
        champion: the current champion's outcomes, [E, O]; None where a baseline is in use.
    """

    outcomes: Sequence[Outcome]
    agent: Floats
    baselines: Mapping[str, Floats]
    champion: Floats | None = None


@dataclass(frozen=True)
class Judgement:
    """Returns of an agent, the baselines and the current champion on the same E episodes, and the verdict from them.

    Attributes:
        returns: the agent's undiscounted returns, [E].
        baselines: each baseline's returns by name, [E].
        answering: name of the baseline in use while there is no agent; None: the one of the highest mean return.
        champion: the current champion's returns, [E]; None where a baseline is in use.
        equivalence_margin: difference that counts as none, as a share of the best baseline's mean return.
        outcome_values: outcomes in users' units, which the reason states before returns; None: no outcomes.
        clusters: index of each episode's group of dependent episodes, [E], or of two crossed groups, [E, 2]; None: all
            are independent.
        confidence: confidence level of the verdict and of all intervals, 0 to 1.
        gain_margin: margin that the gain over the incumbent must exceed, as a share like ``equivalence_margin``, which
            is its default.
    """

    returns: Floats
    baselines: Mapping[str, Floats]
    answering: str | None = None
    champion: Floats | None = None
    equivalence_margin: float = MARGIN
    outcome_values: OutcomeValues | None = None
    clusters: Clusters | None = None
    confidence: float = 0.95
    gain_margin: float | None = None

    @property
    def best(self) -> str:
        """Name of the baseline of the highest mean return; the first one if several are equal."""
        return max(self.baselines, key=lambda name: float(self.baselines[name].mean()))

    @property
    def incumbent(self) -> str:
        """Name of the policy in use: "the champion at that time" (`CHAMPION`), or a baseline's name."""
        return CHAMPION if self.champion is not None else self.answering or self.best

    @property
    def equivalence(self) -> Equivalence:
        """Equivalence margin for comparisons with the best baseline."""
        return Equivalence(self.equivalence_margin, float(self.baselines[self.best].mean()))

    @property
    def needed(self) -> Equivalence:
        """Margin (``gain_margin``, or else the equivalence margin) for the comparison with the policy in use."""
        return self.equivalence if self.gain_margin is None else replace(self.equivalence, share=self.gain_margin)

    @property
    def advantage(self) -> dict[str, float]:
        """Mean paired return of agent minus best baseline: `mean`, `low`, `high` (interval of level `confidence`)."""
        return self._interval(self.returns - self.baselines[self.best])

    @property
    def gain(self) -> dict[str, float]:
        """Mean paired return of agent minus policy in use: `mean`, `low`, `high` (interval of level `confidence`)."""
        return self._interval(self.returns - self._of(self.baselines, self.champion, self.incumbent))

    @property
    def detectable(self) -> float:
        """Smallest true gain in return over the policy in use that such a verdict would detect with probability 0.8."""
        return self._detectable(self._of(self.baselines, self.champion, self.incumbent), self.needed)

    @property
    def champion_advantage(self) -> dict[str, float] | None:
        """Mean paired return of champion minus the baseline that would be in use without it: `mean`, `low` and `high`
        (interval of level `confidence`); None without a champion."""
        if self.champion is None:
            return None
        return self._interval(self.champion - self.baselines[self.answering or self.best])

    @property
    def champion_worse(self) -> bool:
        """Whether the champion is worse than the baseline that would be in use without it; False without a champion."""
        ahead = self.champion_advantage
        return ahead is not None and self.equivalence.worse(ahead)

    @property
    def as_good(self) -> bool:
        """Whether the agent is at least as good as the best baseline, up to the margin, with ``confidence``, and does
        not miss more targets."""
        return self.equivalence.as_good(self.advantage) and not self._later(self.best)

    @property
    def better(self) -> bool:
        """Whether the agent is better than the policy in use by more than ``needed``, with ``confidence``, and does not
        miss more targets."""
        return self.needed.better(self.gain) and not self._later(self.incumbent)

    def _later(self, rival: str) -> str:
        if self.outcome_values is None:
            return ""
        counted = self.outcome_values
        theirs = self._of(counted.baselines, counted.champion, rival)
        return later(
            counted.outcomes, counted.agent, theirs, self.equivalence_margin, self.clusters, sure=self.confidence
        )

    @property
    def promoted(self) -> bool:
        """Whether the agent becomes champion: as good as the best baseline, and better than the policy in use."""
        return self.as_good and self.better

    @property
    def reason(self) -> str:
        """Reason for the verdict in words: outcomes in users' units, then returns, difference and its interval."""
        if not self.as_good:
            late = self._later(self.best)
            doubt = f"not at least as good as the best heuristic, {self.best}, with {self._sure} confidence"
            doubt = f"more targets missed than by the best heuristic, {self.best}: {late}" if late else doubt
            return f"not promoted: {doubt}: {self._against(self.best, self.equivalence)}; {self._reason_to_stay}"
        against = f"{self._present}: {self._against(self.incumbent, self.needed)}"
        best = self.baselines[self.best].mean()
        beside = (
            "" if self.incumbent == self.best else f"; the best heuristic, {self.best}, returns {decimals(best, 5)}"
        )
        if late := self._later(self.incumbent):
            return f"not promoted: more targets missed than by {self._present}: {late}; {self._reason_to_stay}"
        if not self.better:
            return f"not promoted: not better than {against}{beside}; {self._reason_to_stay}"
        return f"promoted: better than {against}{beside}"

    def _against(self, rival: str, margin: Equivalence) -> str:
        """Return a text that compares the agent's returns with those of ``rival``, a baseline's name or `CHAMPION`."""
        returns = self._of(self.baselines, self.champion, rival)
        difference = self._interval(self.returns - returns)
        mean, low, high = (decimals(difference[part], 5, signed=True) for part in ("mean", "low", "high"))
        text = "".join(
            f"{row['name']} {amount(row['policies']['agent']['mean'], row['unit'])} against "
            f"{amount(row['policies'][rival]['mean'], row['unit'])}, "
            for row in self.rows(rival)
        )
        return (
            f"{text}return {decimals(self.returns.mean(), 5)} against {decimals(returns.mean(), 5)} "
            f"(difference {mean}, {self._sure} interval {low} to {high}; {margin}; a gain of "
            f"{decimals(self._detectable(returns, margin), 5)} would be detected in {percent(POWER, 0)} of evaluations)"
        )

    def _detectable(self, rival: Floats, margin: Equivalence) -> float:
        return margin.margin + self._estimate(self.returns - rival).detectable(self.confidence)

    def _estimate(self, values: Floats) -> Estimate:
        return estimate(values, self.clusters)

    def _interval(self, values: Floats) -> dict[str, float]:
        return self._estimate(values).interval(self.confidence).as_dict()

    @property
    def _sure(self) -> str:
        return confidence(self.confidence)

    def rows(self, *rivals: str) -> list[dict[str, Any]]:
        """Return each outcome's name, unit, and intervals by policy (``agent`` and ``rivals``); [] without outcomes."""
        if self.outcome_values is None:
            return []
        counted = {name: self._of(self.outcome_values.baselines, self.outcome_values.champion, name) for name in rivals}
        counted = {"agent": self.outcome_values.agent, **counted}
        return [
            outcome.document()
            | {"policies": {name: self._outcome_interval(outcome, values[:, i]) for name, values in counted.items()}}
            for i, outcome in enumerate(self.outcome_values.outcomes)
        ]

    def _outcome_interval(self, outcome: Outcome, values: Floats) -> dict[str, float]:
        if outcome.unit != SHARE:
            return self._interval(values)
        return share_interval(values, self.clusters, self.confidence).as_dict()

    @staticmethod
    def _of(baselines: Mapping[str, Floats], champion: Floats | None, name: str) -> Floats:
        return champion if name == CHAMPION and champion is not None else baselines[name]

    @property
    def _present(self) -> str:
        return CHAMPION if self.champion is not None else f"{self.incumbent}, the policy in use at that time"

    @property
    def _reason_to_stay(self) -> str:
        return f"the {'heuristic' if self.champion is None else 'champion'} stayed in use"

    def report(self) -> dict[str, Any]:
        """Return what the agent's report says of the verdict, as JSON values by name: outcomes, returns, gains, margin,
        whether the agent is ``promoted``, the ``reason`` and the number of ``episodes``."""
        return {
            "outcomes": self.rows(*dict.fromkeys((self.best, self.incumbent))),
            "return": self._interval(self.returns),
            "heuristics": {name: self._interval(returns) for name, returns in self.baselines.items()},
            "best_heuristic": self.best,
            "advantage": self.advantage,
            "incumbent": self.incumbent,
            "gain": self.gain,
            "detectable": self.detectable,
            "champion_advantage": self.champion_advantage,
            "champion_worse": self.champion_worse,
            "equivalence_margin": self.equivalence_margin,
            "confidence": self.confidence,
            "promoted": self.promoted,
            "reason": self.reason,
            "episodes": len(self.returns),
        }


def later(
    outcomes: Sequence[Outcome],
    ours: NDArray[np.floating],
    theirs: NDArray[np.floating],
    margin: float,
    clusters: Clusters | None,
    *,
    sure: float,
) -> str:
    """Return in words which shares of missed targets exceed another policy's beyond the margin; empty: none.

    Only outcomes with ``binding`` are compared, shares of missed targets that no saving in cost can make up for.

    Args:
        outcomes: the O outcomes.
        ours, theirs: outcomes of both policies in the same E episodes, [E, O].
        margin: largest difference of shares that counts as none, 0 to 1; at least 0.01 (`TOLERATED`).
        clusters: index of each episode's group of dependent episodes; None: all are independent.
        sure: confidence with which the difference must be above the margin, 0 to 1.
    """
    parts, margin = list[str](), max(margin, TOLERATED)
    for place, outcome in enumerate(outcomes):
        if not outcome.binding:
            continue
        mine, other = (np.asarray(values[:, place], np.float64) for values in (ours, theirs))
        difference = estimate(mine - other, clusters).interval(sure)
        if difference.low > margin + ROUNDING:
            low, high = percent(difference.low), percent(difference.high)
            parts.append(
                f"{outcome.name} {percent(mine.mean())} against {percent(other.mean())} (difference {low} to {high} "
                f"with {confidence(sure)} confidence, tolerance {percent(margin)})"
            )
    return ", ".join(parts)


def refute(optimum: Floats, others: Mapping[str, Floats], clusters: Clusters | None = None) -> str | None:
    """Return in words why a supposed optimum is none: another policy is better with 95 % confidence; None if none is.

    Args:
        optimum: returns of the supposed optimum on E episodes, [E].
        others: returns of other policies on the same episodes, by name, [E].
        clusters: index of each episode's group of dependent episodes; None: all are independent.
    """
    ahead = {name: mean_interval(returns - optimum, clusters) for name, returns in others.items()}
    sure = [name for name, interval in ahead.items() if interval["low"] > ROUNDING * abs(float(optimum.mean()))]
    if not sure:
        return None
    best = max(sure, key=lambda name: ahead[name]["mean"])
    return (
        f"the plan that was computed for the domain model returns {decimals(optimum.mean(), 5)} on these episodes, and "
        f"{best} {decimals(others[best].mean(), 5)}: it is not the optimum of what is compared"
    )


def gap(agent: Floats, optimum: Floats) -> float:
    """Return how far the agent's mean return is below the optimum's, as a share of the latter's magnitude; both [E]."""
    best = float(optimum.mean())
    return (best - float(agent.mean())) / max(abs(best), 1e-12)


# Check for state aliasing: situations with equal observations that require different actions.
#
# A teacher, which gives every action's value, labels the situations that good and bad policies get into. Where several
# of them have one observation, the policy can only choose one action for all; the return that the best such choice
# loses against the teacher is the cost of state aliasing (Whitehead and Ballard 1991).


AliasingFloats = NDArray[np.floating]
RESOLUTION = 0.05  # observations (of order 1) that differ by less count as equal
ALIASED = 0.01  # share of the return lost above which an encoder counts as aliased
TIE = 1e-3  # share of the return below which two actions of one decision are equally good
LARGEST = 20_000_000  # most action values to keep
EXAMPLES = 5
WHOLE = "the policy reads the whole state, or remembers what it saw before"


@dataclass
class Demonstrations:
    """Situations labelled with the value of every action; ``watch`` collects them, called before every step.

    Attributes:
        problem: the workload whose situations are collected.
        encoder: the observation of the policy under test.
        teacher: policy whose ``Choice.values`` give every action's value, in units of return.
        most: largest number of rows to collect.
        rows: observations of E entries, one array [b, E] of b episodes per call.
        losses: loss of return of each of N actions against the best legal one, [b, N] per call; inf if illegal.
        masks: whether each action is legal, [b, N] per call.
        situations: situation and episode index of each row.
        count: number of rows so far.
    """

    problem: Problem
    encoder: Encoder
    teacher: Policy
    most: int
    rows: list[NDArray[np.generic]] = field(default_factory=list)
    losses: list[AliasingFloats] = field(default_factory=list)
    masks: list[NDArray[np.bool_]] = field(default_factory=list)
    situations: list[tuple[Situation, int]] = field(default_factory=list)
    count: int = 0

    def watch(self, situation: Situation, _action: NDArray[np.integer], going: NDArray[np.bool_]) -> None:
        """Label the episodes of a situation that have not ended (``going`` [B]), up to ``most`` rows in all.

        Raises:
            ValueError: the teacher gives no action values.
        """
        which = np.flatnonzero(going)[: max(self.most - self.count, 0)]
        values = self.teacher.act(situation).values
        if values is None:
            raise ValueError(f"{self.teacher.name} does not say what its actions are worth")
        mask = np.asarray(situation.view.mask, np.bool_)[which]
        returns = np.where(mask, values[which], -np.inf)
        self.rows.append(np.asarray(self.encoder.encode(situation))[which])
        self.losses.append((returns.max(axis=1, keepdims=True) - returns).astype(np.float32))
        self.masks.append(mask)
        self.situations.extend((situation, int(row)) for row in which)
        self.count += len(which)


def check(
    problem: Problem,
    encoder: Encoder | None,
    *,
    seed: int,
    episodes: int = 32,
    resolution: float = RESOLUTION,
) -> dict[str, Any]:
    """Check for state aliasing: equal observations whose best actions differ, and the return lost by them.

    Args:
        problem: the workload whose situations are checked.
        encoder: the policy's observation; None: the policy reads the whole state, so that there is nothing to check.
        seed: seed of the episodes.
        episodes: number of episodes of the teacher and of each heuristic.
        resolution: grid to which floating-point observations are rounded; 0: only equal ones are merged.

    Returns:
        ``checked``, ``reason`` (if not checked), ``labels`` (the teacher's name) and ``encoder`` (its name); if
        checked, also counts of states and observations, ``value_lost`` (return per episode), ``share_lost`` (0 to 1),
        ``aliased`` and examples.

    Raises:
        ValueError: the teacher gives no action values.
    """
    labels = problem.labels()
    if labels is None:
        return {"checked": False, "reason": "the best actions are unknown", "labels": None, "encoder": None}
    name, teacher = labels
    if encoder is None:
        return {"checked": False, "reason": WHOLE, "labels": name, "encoder": None}
    demonstrations = Demonstrations(problem, encoder, teacher, LARGEST)
    best, steps = -math.inf, 1
    for policy in (teacher, *problem.heuristics.values()):
        world = problem.world(episodes, seed)
        demonstrations.most = LARGEST // max(int(world.action_space.n), 100)
        returns = play(world, Level.TRAIN, seed, problem.player(policy), demonstrations.watch).returns
        best, steps = max(best, float(returns.mean())), max(world.steps, 1)
    if not demonstrations.count:
        return {"checked": False, "reason": "nothing is ever decided", "labels": name, "encoder": encoder.name}
    return {"checked": True, "reason": None, "labels": name, "encoder": encoder.name} | _count_aliasing(
        problem, demonstrations, resolution, abs(best), steps
    )


def _count_aliasing(
    problem: Problem, cases: Demonstrations, resolution: float, scale: float, steps: int
) -> dict[str, Any]:
    """Return the aliasing check's entries: counts, ``value_lost`` (return per episode), ``share_lost``, examples."""
    losses = np.concatenate(cases.losses)
    group, count = _groups(np.concatenate(cases.rows), np.concatenate(cases.masks), resolution)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(count))
    sizes = np.diff(np.append(starts, len(order)))
    lost = np.add.reduceat(losses[order], starts, axis=0).min(axis=1)  # [G] loss of the best single action
    worst = np.maximum.reduceat(losses[order], starts, axis=0).min(axis=1)
    conflicting = worst > TIE * scale / steps
    value_lost = float(lost.sum()) / cases.count * steps
    share = value_lost / max(scale, 1e-12)
    dearest = [g for g in np.argsort(-lost)[:EXAMPLES] if conflicting[g]]
    return {
        "states": cases.count,
        "observations": int(count),
        "conflicting_observations": int(conflicting.sum()),
        "conflicting_states": int(sizes[conflicting].sum()),
        "value_lost": value_lost,
        "share_lost": share,
        "aliased": share > ALIASED,
        "examples": [
            _example(problem, cases, losses, order[starts[g] : starts[g] + sizes[g]], float(lost[g])) for g in dearest
        ],
    }


def _groups(rows: NDArray[np.generic], masks: NDArray[np.bool_], resolution: float) -> tuple[NDArray[np.intp], int]:
    """Group S situations by observation, ``rows`` [S, E], and legality, ``masks`` [S, N]; group indices [S], count."""
    if resolution and rows.dtype.kind == "f":
        rows = np.rint(rows.astype(np.float64) / resolution).astype(np.int64)
    parts = (np.ascontiguousarray(part) for part in (rows, np.packbits(masks, axis=1)))
    keys = np.concatenate([part.view(np.uint8).reshape(len(part), -1) for part in parts], axis=1)
    whole = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.shape[1]))).reshape(-1)
    unique, group = np.unique(whole, return_inverse=True)
    return group.reshape(-1), len(unique)


def _example(
    problem: Problem, demonstrations: Demonstrations, losses: AliasingFloats, members: NDArray[np.intp], lost: float
) -> dict[str, Any]:
    best = Counter(problem.action_name(int(losses[member].argmin())) for member in members)
    situation, row = demonstrations.situations[members[0]]
    return {
        "observation": dict(problem.named_observation(situation, row)),
        "states": len(members),
        "actions": dict(best.most_common()),
        "value_lost": lost / len(members),
    }
