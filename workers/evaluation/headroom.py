"""Headroom: the return that better rules and more knowledge would add to the served heuristic, on the same episodes.

Four returns are compared: that of the served heuristic; of a rule with tuned numbers; of this rule when it also knows
what could be known of each run (informed); and, where available, an upper bound in hindsight, with all chance known.

The numbers of a rule are tuned by the cross-entropy method (Rubinstein 1999): numbers are drawn from a normal
distribution and played on the same episodes, and the distribution is fitted to the best quarter. Its mean is compared
on validation episodes whenever the number of generations has doubled, until that gains less than a tenth of the margin
of practical equivalence. Shapes: E episodes, D numbers of a rule, R points of a generation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.charts.text import percent
from workers.evaluation.statistics import MARGIN, Clusters, mean_interval, ratio_interval

Floats = NDArray[np.float64]
TUNED = "tuned_rule"
LAW = "each run's law"
POPULATION, KEPT = 16, 0.7  # rules of a generation; weight of the best quarter against the distribution before
FIRST, MOST = 4, 32  # generations before the first comparison, and in all


class Search(NamedTuple):
    """A search for D numbers of a rule.

    Attributes:
        neutral: the numbers as served, [D].
        centre, spread: mean and standard deviation of the first generation, [D].
        play: function of points [R, D] and the generation's index that plays all points on the same episodes; it
            returns their mean returns, [R].
        validated: function that returns a point's mean return on validation episodes.
        affordable: most generations that may be played.
        population: points of a generation.
        first: generations before the first comparison.
    """

    neutral: Floats
    centre: Floats
    spread: Floats
    play: Callable[[Floats, int], Floats]
    validated: Callable[[Floats], float]
    affordable: int
    population: int = POPULATION
    first: int = FIRST


class Found(NamedTuple):
    """Result of a search.

    Attributes:
        point: the best numbers, [D].
        generations: number of generations played.
        converged: whether the last comparison gained less than a tenth of the margin of practical equivalence.
    """

    point: Floats
    generations: int
    converged: bool


def cross_entropy(search: Search, random: np.random.Generator) -> Found:
    """Search for the rule's D numbers of the highest mean return by the cross-entropy method (Rubinstein, 1999).

    The result's return on the validation episodes is at least that of ``search.neutral``.
    """
    centre, spread = search.centre.copy(), search.spread.copy()
    best, most = search.neutral, search.validated(search.neutral)
    played, following, converged = 0, search.first, False
    while played < search.affordable and not converged:
        points = centre + spread * random.standard_normal((search.population, len(centre)))
        points[0] = centre
        top = points[np.argsort(search.play(points, played))[-max(search.population // 4, 2) :]]
        centre = KEPT * top.mean(axis=0) + (1 - KEPT) * centre
        spread = KEPT * top.std(axis=0) + (1 - KEPT) * spread
        played += 1
        if played == following:
            value = search.validated(centre)
            converged = value - most < MARGIN / 10 * abs(most) and played > search.first
            best, most = (centre.copy(), value) if value > most else (best, most)
            following *= 2
    return Found(best, played, converged)


@dataclass(frozen=True)
class Headroom:
    """Mean returns with 95 % intervals on the same episodes, and their differences, in the reward's unit.

    Attributes:
        rule: name of the heuristic that is served.
        served, tuned: returns of the served heuristic and of the tuned rule.
        knowable: return of the informed rule: the tuned rule with all knowledge of a run that is not chance.
        gain: ``tuned`` minus ``served``.
        left: ``knowable`` minus ``tuned``.
        beyond: upper bound in hindsight, with all chance known, minus ``tuned``; None if there is no such bound.
        margin: margin of practical equivalence, in the reward's unit.
        why: why there is no bound in hindsight, in words; empty if there is one.
        knows: what the informed rule knows, in words that complete “knowing …”.
        best: "tuned_rule", or the name of the best heuristic, used as the tuned rule if none has numbers to tune.
        published: whether a training publishes the tuned rule where that is better than what it learned.
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
    knows: str = LAW
    best: str = TUNED
    published: bool = True

    @classmethod
    def of(
        cls,
        rule: str,
        served: Floats,
        tuned: Floats,
        known: Floats,
        *,
        margin: float = MARGIN,
        beyond: Floats | None = None,
        clusters: Clusters | None = None,
        why: str = "",
        knows: str = LAW,
        best: str = TUNED,
        published: bool = True,
    ) -> Self:
        """Compare returns [E] on the same E episodes.

        Args:
            rule, served, tuned: name of the served heuristic, its returns, and the tuned rule's.
            known: returns of the informed rule; ``knowable_returns`` is applied to them.
            margin: margin of practical equivalence, as a share (0 to 1) of the tuned rule's mean return.
            beyond: upper bounds minus the tuned rule's return, of any episodes; None: there is no bound.
            clusters: index of each episode's group of dependent episodes; None: all are independent.
            why, knows, best, published: attributes of the result.
        """
        known = knowable_returns(known, tuned)

        def mean(values: Floats) -> dict[str, float]:
            return mean_interval(values.astype(np.float64), clusters if len(values) == len(tuned) else None)

        return cls(
            rule,
            served=mean(served),
            tuned=mean(tuned),
            knowable=mean(known),
            gain=mean(tuned - served),
            left=mean(known - tuned),
            beyond=None if beyond is None else mean(beyond),
            margin=margin * abs(float(tuned.mean())),
            why=why,
            knows=knows,
            best=best,
            published=published,
        )

    @property
    def most(self) -> float | None:
        """Upper 95 % bound of the gain over the policy that training publishes without learning; None without a bound.

        That policy is the tuned rule if ``published``, else the served heuristic.
        """
        if self.beyond is None:
            return None
        return self.beyond["high"] + (0.0 if self.published else max(self.gain["high"], 0.0))

    @property
    def is_exhausted(self) -> bool:
        """Whether even hindsight gains less than the margin over what training publishes without learning."""
        return self.most is not None and self.most < self.margin

    def text(self) -> str:
        """Return the headroom as one line of text for people, in the reward's unit."""
        size = abs(self.tuned["mean"]) or 1.0
        gain, left = (f"{percent(part['mean'] / size)}" for part in (self.gain, self.left))
        tuned = f"tuned by {gain} over {self.rule}"
        if self.best != TUNED:
            tuned = f"{self.best}, the best of rules without numbers to tune, is {gain} over {self.rule}"
        known = f"{tuned}; knowing {self.knows} would give {left} more"
        if self.beyond is None:
            return f"{known}; no bound in hindsight: {self.why}"
        return f"{known}, and knowing all noise at most {percent(self.beyond['mean'] / size)}"

    def nothing_to_win(self) -> str:
        """Return in words why no training can gain more than the margin; empty if one can, or if there is no bound."""
        if not self.is_exhausted or self.most is None:
            return ""
        size = abs(self.tuned["mean"]) or 1.0
        most, margin = (percent(max(part, 0.0) / size) for part in (self.most, self.margin))
        rule = "the tuned rule" if self.published else self.rule
        return f"nothing to gain here: with all noise known, {rule} loses at most {most}, less than {margin}"

    def report(self) -> dict[str, Any]:
        """Return the headroom as JSON values by name: all fields but ``published``, and its ``text``."""
        parts = {name: getattr(self, name) for name in ("served", "tuned", "knowable", "gain", "left", "beyond")}
        values = {name: None if part is None else dict(part) for name, part in parts.items()}
        words = {name: getattr(self, name) for name in ("rule", "best", "knows", "margin", "why")}
        return {**words, **values, "text": self.text()}


def knowable_returns(known: Floats, tuned: Floats) -> Floats:
    """Return the informed rule's returns ``known`` [E], or ``tuned`` [E] if their mean is higher.

    The informed rule could ignore its knowledge, so that its mean return need not be below the tuned rule's.
    """
    return known if known.mean() > tuned.mean() else tuned


def share_won(agent: Floats, tuned: Floats, known: Floats) -> dict[str, float] | None:
    """Return the agent's gain over the tuned rule as a share (1: all) of the informed rule's: ``mean``, and ``low`` and
    ``high`` of its 95 % bootstrap interval; None unless the 95 % interval of the informed rule's gain is above 0.

    Args:
        agent, tuned, known: returns of the agent, the tuned rule, and the informed rule on the same E episodes, [E].
    """
    share = ratio_interval(agent - tuned, known - tuned)
    return None if share is None else share.as_dict()
