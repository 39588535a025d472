"""The verdict on a trained agent, of any kind: beside every baseline and the champion, on the same fresh episodes.

What is given are returns by episode, larger being better, paired by position: everybody has played the same episodes.
An agent may answer when it is at least as good as the best baseline, and better than the champion, both with 95 %
confidence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.evaluation.statistics import mean_interval

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Judgement:
    """Returns of an agent, the baselines and the champion on the same episodes.

    Attributes:
        returns: its own, [E].
        baselines: those of each baseline, [E].
        champion: those of what answers now, [E]; None: a baseline does.
    """

    returns: Floats
    baselines: Mapping[str, Floats]
    champion: Floats | None = None

    @property
    def best(self) -> str:
        """The baseline of the highest mean return; of equals the first."""
        return max(self.baselines, key=lambda name: float(self.baselines[name].mean()))

    @property
    def advantage(self) -> dict[str, float]:
        """What the agent earns over the best baseline, with its interval."""
        return mean_interval(self.returns - self.baselines[self.best])

    @property
    def gain(self) -> dict[str, float] | None:
        """What it earns over the champion, with its interval; None where there is none."""
        return None if self.champion is None else mean_interval(self.returns - self.champion)

    @property
    def as_good(self) -> bool:
        """Whether it is at least as good as the best baseline."""
        return self.advantage["low"] >= 0

    @property
    def better(self) -> bool:
        """Whether it is better than the champion, where there is one."""
        return self.gain is None or self.gain["low"] > 0

    @property
    def promoted(self) -> bool:
        """Whether the agent becomes champion: at least as good as the baselines, and better than the champion."""
        return self.as_good and self.better

    @property
    def reason(self) -> str:
        """Why it is promoted or not, with differences and 95 % intervals."""
        ahead, gain, rule = self.advantage, self.gain, self.baselines[self.best].mean()
        comparison = (
            f"return {self.returns.mean():.5f} against {rule:.5f} of the best heuristic, {self.best} "
            f"(difference {ahead['mean']:+.5f}, 95 % interval {ahead['low']:+.5f} to {ahead['high']:+.5f})"
        )
        if not self.as_good:
            doubt = "not at least as good with 95 % confidence"
            return f"not promoted: {doubt}; {comparison}; the heuristic goes on answering"
        if gain is not None and not self.better:
            return (
                f"not promoted: not better than the present champion (difference {gain['mean']:+.5f}, 95 % interval "
                f"{gain['low']:+.5f} to {gain['high']:+.5f}); {comparison}"
            )
        return f"promoted: {comparison}"

    def report(self) -> dict[str, Any]:
        """The agent report's part that all kinds have."""
        return {
            "return": mean_interval(self.returns),
            "heuristics": {name: mean_interval(returns) for name, returns in self.baselines.items()},
            "best_heuristic": self.best,
            "advantage": self.advantage,
            "promoted": self.promoted,
            "reason": self.reason,
            "episodes": len(self.returns),
        }


def gap(agent: Floats, optimum: Floats) -> float:
    """What an agent leaves to be won, as a share of the optimum's mean return: above 0 where it is behind."""
    best = float(optimum.mean())
    return (best - float(agent.mean())) / max(abs(best), 1e-12)
