"""What a kind tells of a workload that is one of the jobs of another's: no kind need know any other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Member(NamedTuple):
    """A workload whose runs share something that is counted, with other jobs.

    Attributes:
        amounts: of what is shared that a run can have: whole numbers above 0, ascending, [A].
        seconds: median of one iteration on each; not a number where no domain model tells it, [A].
        spread: standard deviation of the log of what a run takes over that.
        iterations: of a run.
        run_seconds: what a run should take at most; infinite: it has no such target.
        iteration_seconds: what each iteration should take at most; infinite: there is no such target.
        weight: of these targets.
    """

    amounts: NDArray[np.int64]
    seconds: NDArray[np.float64]
    spread: float
    iterations: int
    run_seconds: float
    iteration_seconds: float
    weight: float

    @property
    def known(self) -> bool:
        """Whether a domain model tells how long it takes."""
        return bool(np.isfinite(self.seconds).all())
