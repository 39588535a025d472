"""The verdict on a trained agent, of any kind: beside every baseline and what answers now, on the same fresh episodes.

What is given are returns by episode, larger being better, paired by position: everybody has played the same episodes.
An agent may answer when it is at least as good as the best baseline, and better than what answers now, the champion or
a baseline, both with 95 % confidence and beyond the margin of practical equivalence (see ``equivalence``). So one that
is level with what answers is not promoted: what answers goes on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.text import SHARE, amount, confidence, fixed, percent
from app.kinds.contract.outcome import Outcome
from workers.evaluation.equivalence import MARGIN, ROUNDING, Equivalence
from workers.evaluation.statistics import POWER, Clusters, Estimate, estimate, mean_interval, share_interval

Floats = NDArray[np.float64]
CHAMPION = "the champion at that time"


class Counted(NamedTuple):
    """What users count of the same episodes: O outcomes.

    Attributes:
        outcomes: what they are.
        agent: its own, [E, O].
        baselines: those of each baseline, [E, O].
        champion: those of the agent that answers now, [E, O]; None: a baseline does.
    """

    outcomes: Sequence[Outcome]
    agent: Floats
    baselines: Mapping[str, Floats]
    champion: Floats | None = None


@dataclass(frozen=True)
class Judgement:
    """Returns of an agent, the baselines and the champion on the same episodes.

    Attributes:
        returns: its own, [E].
        baselines: those of each baseline, [E].
        answering: the baseline that answers while no agent does; None: the best of them.
        champion: those of the agent that answers now, [E]; None: a baseline does.
        equivalence_margin: as a share of the best baseline's mean return.
        counted: what users count, which is told before returns.
        clusters: which episodes vary together, [E]; None: each by itself. See ``statistics.estimate``.
        confidence: of the verdict, and of all intervals.
        gain_margin: what must be earned over what answers now, as ``equivalence_margin``, which it is if None.
    """

    returns: Floats
    baselines: Mapping[str, Floats]
    answering: str | None = None
    champion: Floats | None = None
    equivalence_margin: float = MARGIN
    counted: Counted | None = None
    clusters: Clusters | None = None
    confidence: float = 0.95
    gain_margin: float | None = None

    @property
    def best(self) -> str:
        """The baseline of the highest mean return; of equals the first."""
        return max(self.baselines, key=lambda name: float(self.baselines[name].mean()))

    @property
    def incumbent(self) -> str:
        """What answers now: a baseline by its name, or the champion."""
        return CHAMPION if self.champion is not None else self.answering or self.best

    @property
    def equivalence(self) -> Equivalence:
        """The margin to the baselines."""
        return Equivalence(self.equivalence_margin, float(self.baselines[self.best].mean()))

    @property
    def needed(self) -> Equivalence:
        """The margin to what answers now."""
        return self.equivalence if self.gain_margin is None else replace(self.equivalence, share=self.gain_margin)

    @property
    def advantage(self) -> dict[str, float]:
        """What the agent earns over the best baseline, with its interval."""
        return self._interval(self.returns - self.baselines[self.best])

    @property
    def gain(self) -> dict[str, float]:
        """What it earns over what answers now, with its interval."""
        return self._interval(self.returns - self._of(self.baselines, self.champion, self.incumbent))

    @property
    def detectable(self) -> float:
        """The smallest gain over what answers now that is found to be better in ``POWER`` of such judgings."""
        return self._detectable(self._of(self.baselines, self.champion, self.incumbent), self.needed)

    @property
    def champion_advantage(self) -> dict[str, float] | None:
        """What the champion earns over the baseline that would answer without it, with its interval; or None."""
        if self.champion is None:
            return None
        return self._interval(self.champion - self.baselines[self.answering or self.best])

    @property
    def champion_worse(self) -> bool:
        """Whether the champion is worse than that baseline; not where there is none."""
        ahead = self.champion_advantage
        return ahead is not None and self.equivalence.worse(ahead)

    @property
    def as_good(self) -> bool:
        """Whether it is at least as good as the best baseline."""
        return self.equivalence.as_good(self.advantage)

    @property
    def better(self) -> bool:
        """Whether it is better than what answers now."""
        return self.needed.better(self.gain)

    @property
    def promoted(self) -> bool:
        """Whether the agent becomes champion: at least as good as the baselines, and better than what answers."""
        return self.as_good and self.better

    @property
    def reason(self) -> str:
        """Why it is promoted or not: what users count first, then returns, their difference and its interval."""
        if not self.as_good:
            doubt = (
                f"not promoted: not at least as good as the best heuristic, {self.best}, with {self._sure} confidence"
            )
            return f"{doubt}: {self._against(self.best, self.equivalence)}; {self._stayed}"
        against = f"{self._present}: {self._against(self.incumbent, self.needed)}"
        best = self.baselines[self.best].mean()
        beside = "" if self.incumbent == self.best else f"; the best heuristic, {self.best}, returns {fixed(best, 5)}"
        if not self.better:
            return f"not promoted: not better than {against}{beside}; {self._stayed}"
        return f"promoted: better than {against}{beside}"

    def _against(self, rival: str, margin: Equivalence) -> str:
        """The agent's figures and a rival's, which is a baseline or the incumbent."""
        returns = self._of(self.baselines, self.champion, rival)
        difference = self._interval(self.returns - returns)
        mean, low, high = (fixed(difference[part], 5, signed=True) for part in ("mean", "low", "high"))
        told = "".join(
            f"{row['name']} {amount(row['policies']['agent']['mean'], row['unit'])} against "
            f"{amount(row['policies'][rival]['mean'], row['unit'])}, "
            for row in self.rows(rival)
        )
        return (
            f"{told}return {fixed(self.returns.mean(), 5)} against {fixed(returns.mean(), 5)} (difference {mean}, "
            f"{self._sure} interval {low} to {high}; {margin}; a gain of "
            f"{fixed(self._detectable(returns, margin), 5)} would be found in {percent(POWER, 0)} of such judgings)"
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
        """Of each outcome ``name`` and ``unit``, and in ``policies`` intervals of ``agent`` and each rival, by name."""
        if self.counted is None:
            return []
        counted = {name: self._of(self.counted.baselines, self.counted.champion, name) for name in rivals}
        counted = {"agent": self.counted.agent, **counted}
        return [
            outcome.document()
            | {"policies": {name: self._counted(outcome, values[:, i]) for name, values in counted.items()}}
            for i, outcome in enumerate(self.counted.outcomes)
        ]

    def _counted(self, outcome: Outcome, values: Floats) -> dict[str, float]:
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
    def _stayed(self) -> str:
        return f"the {'heuristic' if self.champion is None else 'champion'} stayed in use"

    def report(self) -> dict[str, Any]:
        """The agent report's part that all kinds have."""
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


def beaten(optimum: Floats, others: Mapping[str, Floats], clusters: Clusters | None = None) -> str | None:
    """Why what was computed as the optimum is none: somebody earns more on the same episodes, with 95 % confidence.

    ``clusters`` as of ``Judgement``.
    """
    ahead = {name: mean_interval(returns - optimum, clusters) for name, returns in others.items()}
    sure = [name for name, interval in ahead.items() if interval["low"] > ROUNDING * abs(float(optimum.mean()))]
    if not sure:
        return None
    best = max(sure, key=lambda name: ahead[name]["mean"])
    return (
        f"the plan that was computed for the domain model returns {fixed(optimum.mean(), 5)} on these episodes, and "
        f"{best} {fixed(others[best].mean(), 5)}: it is not the optimum of what is compared"
    )


def gap(agent: Floats, optimum: Floats) -> float:
    """What an agent leaves to be won, as a share of the optimum's mean return: above 0 where it is behind."""
    best = float(optimum.mean())
    return (best - float(agent.mean())) / max(abs(best), 1e-12)
