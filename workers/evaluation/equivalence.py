"""The margin of practical equivalence: by how much returns must differ for the difference to count.

The same for promotions and for the levels of evaluations, of every kind. Differences are paired means with confidence
intervals, larger being better. Under a margin m, a share of the reference's mean return:

- *at least as good*: the interval ends above −m at its lower end. A loss of nothing fails nobody;
- *better*: the whole interval lies above m. A gain of nothing promotes nobody, nor does one whose interval touches 0;
- *worse*: the whole interval lies below −m.

What is none of these is level, or not known well enough. (Equivalence and non-inferiority testing: Lakens 2017,
"Equivalence tests".)
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.charts.text import number, percent

MARGIN = 0.01
ROUNDING = 1e-7  # share of a return by which equals may differ: it is summed in single precision


@dataclass(frozen=True)
class Equivalence:
    """A margin.

    Attributes:
        share: of the reference's return, 0 or more.
        reference: mean return of the best baseline, of whatever sign.
    """

    share: float
    reference: float

    @property
    def margin(self) -> float:
        """By how much returns may differ and still be level."""
        return self.share * abs(self.reference)

    def as_good(self, difference: Mapping[str, float]) -> bool:
        """Whether what is ahead by ``difference`` (``mean``, ``low``, ``high``) is at least as good."""
        return difference["low"] >= -self._rounded

    def better(self, difference: Mapping[str, float]) -> bool:
        """Whether it is better."""
        return difference["low"] > self._rounded

    def worse(self, difference: Mapping[str, float]) -> bool:
        """Whether it is worse."""
        return difference["high"] < -self._rounded

    @property
    def _rounded(self) -> float:
        return self.margin + ROUNDING * abs(self.reference)

    def __str__(self) -> str:
        if not self.share:
            return "any difference counts"
        return f"up to {number(self.margin, 2)}, {percent(self.share)} of the best heuristic's return, counts as none"
