"""Priority rules: a score for each waiting task, smallest first.

Compiled by Numba too, so that simulators and the service use the same code."""

import numpy as np
from numpy.typing import NDArray

FCFS, SJF, LJF, SAF, SMALLEST, LXF, WFP3, UNICEP, F1, F2, F3, F4 = range(12)
RULES = ("fcfs", "sjf", "ljf", "saf", "smallest", "lxf", "wfp3", "unicep", "f1", "f2", "f3", "f4")

Seconds = NDArray[np.float64]
SHORTEST = 10.0  # seconds; as in a bounded slowdown


def scores(rule: int, now: float, submit: Seconds, requested: Seconds, processors: NDArray[np.int64]) -> Seconds:
    """Return the score of each of Q waiting tasks by a rule, smallest first, [Q].

    FCFS, SJF, LJF (longest), SAF (smallest area), smallest (fewest processors), LXF (largest expansion factor); WFP3
    and UNICEP (Tang et al. 2009; waiting time at ``now``); F1 to F4 (Carastan-Santos and de Camargo 2017, with the
    constants of Zhang et al. 2020, RLScheduler). r requested time, n processors, s submit time, w waiting time:

    ====== =============================== ====== ==================================
    SAF    r·n                             F1     log10(r)·n + 870·log10(s)
    LXF    −(w + r)/max(r, 10)             F2     √r·n + 25600·log10(s)
    WFP3   −(w/r)³·n                       F3     r·n + 6.86e6·log10(s)
    UNICEP −w/(log2(n)·r), n at least 2    F4     r·√n + 5.3e5·log10(s)
    ====== =============================== ====== ==================================

    Args:
        rule: index into ``RULES``.
        now: seconds on the clock of ``submit``.
        submit: submission, seconds after the trace's origin, [Q]; at least 1 in logarithms.
        requested: requested seconds, [Q]; at least 1 in ratios and logarithms.
        processors: number of processors of each task, [Q].

    Raises:
        ValueError: there is no such rule.
    """
    if rule == FCFS:
        return submit.copy()
    if rule == SJF:
        return requested.copy()
    if rule == LJF:
        return -requested
    if rule == SAF:
        return requested * processors
    if rule == SMALLEST:
        return processors.astype(np.float64)
    return formula(rule, now - submit, np.maximum(submit, 1.0), np.maximum(requested, 1.0), processors)


def formula(rule: int, w: Seconds, s: Seconds, r: Seconds, n: NDArray[np.int64]) -> Seconds:
    """Return the scores of Q tasks by a rule with several terms, [Q], from waiting time ``w``, submission ``s`` and
    requested time ``r`` in seconds, and processors ``n``. Raises ValueError for another rule."""
    if rule == LXF:
        return -(w + r) / np.maximum(r, SHORTEST)
    if rule == WFP3:
        return -((w / r) ** 3) * n
    if rule == UNICEP:
        return -w / (np.log2(np.maximum(n, 2)) * r)
    if rule == F1:
        return np.log10(r) * n + 870.0 * np.log10(s)
    if rule == F2:
        return np.sqrt(r) * n + 25600.0 * np.log10(s)
    if rule == F3:
        return r * n + 6.86e6 * np.log10(s)
    if rule == F4:
        return r * np.sqrt(n) + 5.3e5 * np.log10(s)
    raise ValueError("no such rule")
