"""Successive halving (Jamieson & Talwalkar, 2016): many trials begin, the worst stop early, the best is published.

Pure rules, whoever runs the trials. A trial's budget is cut by rungs; at each rung all trials that are still there
are compared by the return of the best policy that each has had so far, on the same validation episodes, and one in
`REDUCTION` goes on. So what is stopped has never been better than what goes on, and what is published is the best of
all that was ever compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

REDUCTION = 3
FIRST = 0.1  # share of a trial's budget after which trials are first compared


@dataclass(frozen=True)
class Entry:
    """A trial that is to be made."""

    algorithm: str
    seed: int


@dataclass(frozen=True)
class TrialRecord:
    """The state of a trial.

    Attributes:
        rungs: how many comparisons it has reached.
        score: return of its best policy so far on the validation episodes; None before its first comparison.
        ended: why it goes no further; None while it does.
    """

    entry: Entry
    rungs: int = 0
    score: float | None = None
    ended: str | None = None


@dataclass(frozen=True)
class Decision:
    """What follows from a comparison: positions of the trials that go on, and why others are stopped.

    With nobody to go on, it is over.
    """

    survivors: tuple[int, ...]
    stopped: Mapping[int, str]


class Bracket:
    """The rungs of a number of trials.

    Attributes:
        shares: of a trial's budget at which trials are compared, ascending; the last is 1.
        field: how many trials go up to each of them.
        work: trial budgets that it takes in all.
    """

    def __init__(self, trials: int) -> None:
        if trials < 1:
            raise ValueError("a bracket needs a trial at least")
        field = [trials]
        while field[-1] > 1:
            field.append(ceil(field[-1] / REDUCTION))
        rungs = len(field) - 1
        self.field = tuple(field)
        self.shares = (*(FIRST ** (1 - rung / rungs) for rung in range(rungs)), 1.0)
        before = (0.0, *self.shares)
        self.work = sum(n * (share - last) for n, share, last in zip(self.field, self.shares, before, strict=False))

    def budget(self, whole: float) -> float:
        """What each trial may use at most, of a budget that all of them share but that none exceeds.

        `whole`: in trial budgets.
        """
        return min(1.0, whole / self.work)

    def decide(self, records: Sequence[TrialRecord]) -> Decision:
        """Compare the trials that go on, all of which have reached the same rung."""
        present = [i for i, record in enumerate(records) if record.ended is None]
        if not present:
            return Decision((), {})
        rung = records[present[0]].rungs
        ranked = sorted(present, key=lambda i: -_score(records[i]))
        if rung >= len(self.field):
            return Decision((), dict.fromkeys(present, ""))
        kept = self.field[rung]
        stopped = {i: self._reason(rung, place, len(present), kept) for place, i in enumerate(ranked) if place >= kept}
        return Decision(tuple(sorted(ranked[:kept])), stopped)

    def _reason(self, rung: int, place: int, of: int, kept: int) -> str:
        share = self.shares[rung - 1]
        return f"number {place + 1} of {of} after {share:.0%} of its budget, where {kept} went on"


def best(records: Sequence[TrialRecord], reference: float | None = None) -> int | None:
    """The position of the trial to publish; None: what scored ``reference``, or nobody where there is none."""
    scored = [i for i, record in enumerate(records) if record.score is not None]
    found = max(scored, key=lambda i: _score(records[i]), default=None)
    if found is None or (reference is not None and reference >= _score(records[found])):
        return None
    return found


def _score(record: TrialRecord) -> float:
    return float("-inf") if record.score is None else record.score
