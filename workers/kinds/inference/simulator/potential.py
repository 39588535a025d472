"""What learners are paid in place of what is paid: the same values, less noise, and less far ahead to look.

Most of what a decision leads to is told by how many requests wait after it. What each of them costs later, found once
in the play of a rule, makes a potential: learners are paid its differences with the rest, by which what is best stays
best (Ng, Harada and Russell, 1999, for discounts by time, too). And what requests cost that came by chance beyond those
that were to be expected is taken out: 0 on average whatever was decided, so a control variate. On a small system this
took the standard deviation of a temporal difference from .83 to .40 with a slope that was fitted to play near the
optimum; with one that is fitted to a plain rule, as learners have it, that was not measured.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RIDGE = 1.0  # transitions' worth of doubt


class Transition(NamedTuple):
    """Of B worlds with U users, from one decision to the next.

    Attributes:
        pay: [B].
        discount: of what is paid later, [B].
        before, after: requests that wait at both, [B, U].
    """

    pay: NDArray[np.floating]
    discount: NDArray[np.float32]
    before: NDArray[np.integer]
    after: NDArray[np.integer]


class Potential(NamedTuple):
    """What waiting requests are worth, which is less than nothing.

    Attributes:
        slope: each of a user's, [U].
        usual: how many wait where the potential is 0, [U].
    """

    slope: Floats
    usual: Floats

    @classmethod
    def fit(cls, met: list[Transition]) -> Potential:
        """By least squares of temporal differences (LSTD: Bradtke and Barto, 1996)."""
        pay, discount, before, after = (np.concatenate(parts).astype(np.float64) for parts in zip(*met, strict=True))
        known, following = (np.append(one, np.ones((len(one), 1)), axis=1) for one in (before, after))
        moments = known.T @ (known - discount[:, None] * following) + RIDGE * np.eye(known.shape[1])
        worth = np.linalg.solve(moments, known.T @ pay)
        return cls(np.asarray(worth[:-1], np.float64), np.asarray(before.mean(axis=0), np.float64))

    def paid(self, one: Transition, surplus: Floats | None) -> Floats:
        """What learners are paid, [B]; ``surplus``: requests beyond those to be expected, [B, U], where it is known."""
        there, here = ((waiting - self.usual) @ self.slope for waiting in (one.after, one.before))
        pay: Floats = np.asarray(one.pay, np.float64) + one.discount * there - here
        return pay if surplus is None else pay - surplus @ self.slope
