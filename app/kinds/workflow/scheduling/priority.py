"""A family of priority rules: a score for each waiting task, the smallest first, of few numbers that are tuned.

p predicted run time, n processors, N those of the machine, w wait; SAF is a = 1 and the rest 0, and the rules of
Tang et al. 2009 and of Carastan-Santos and de Camargo 2017 are near to others of the family:

    score = log p + a·log n + b·n/N − c·log(1 + w/(exp(d)·(p/3000)^e))

and by log p + f·log n tasks overtake one that must wait. p is g-th power of the predicted share of the requested time,
times that time: at g = 0 users are believed.

Written in what Numba compiles too.
"""

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.trace import Seconds

NAMES = ("size", "width", "ageing", "patience", "stretch", "overtaking", "prediction")
SIZE, WIDTH, AGEING, PATIENCE, STRETCH, OVERTAKING, PREDICTION = range(7)
WEIGHTS = len(NAMES)
USUAL = 8.0  # log of 3000 seconds
SAF = (1.0, 0.0, 0.0, USUAL, 0.0, 1.0, 0.0)


def scores(
    weights: Seconds, now: float, submit: Seconds, length: Seconds, processors: NDArray[np.int64], machine: int
) -> Seconds:
    """Score of each of Q waiting tasks, the smallest first, [Q].

    Args:
        weights: a, b, c, d, e of the formula, in the order of ``NAMES``, [``WEIGHTS``].
        now: seconds.
        submit: seconds, [Q].
        length: log p, [Q].
        processors: [Q].
        machine: its processors.
    """
    patience = np.exp(weights[PATIENCE] + weights[STRETCH] * (length - USUAL))
    waited = np.log1p(np.maximum(now - submit, 0.0) / patience)
    size = weights[SIZE] * np.log(processors) + weights[WIDTH] * processors / machine
    return length + size - weights[AGEING] * waited


def overtaking(weights: Seconds, length: Seconds, processors: NDArray[np.int64]) -> Seconds:
    """Scores by which tasks overtake, the smallest first, [Q]; arguments as above."""
    return length + weights[OVERTAKING] * np.log(processors)
