"""The numbers of model-predictive control, by the disturbances that a spec declares; without any, the same for all.

No other numbers for all workloads were found to be better everywhere (``benchmarks.declared_disturbances``).
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Disturbances, Spec

Floats = NDArray[np.float64]
MODEL_NOISE = 1e-3  # of return: a heuristic's predicted gain below it is within the noise of the model
"""Least gain in return for a heuristic's change; smaller ones are within the model's noise."""
NUMBERS = ("target", "risk", "hysteresis", "follow", "ignored")
NEUTRAL = np.array([0.0, 0.0, math.log(MODEL_NOISE), 0.0, 0.3])
"""The numbers without disturbances, in the order of ``NUMBERS``; of the first three, logarithms."""
REACH = np.array([0.2, 1.5, 2.5, 1.0, 0.28])  # most by which they depart from these
USUAL = np.array([0.25, 0.2, 0.25])  # sizes of ``expected`` where disturbances are severe
SHIPPED = Path(__file__).with_name("declared.json")


def expected(spec: Spec) -> Floats:
    """Return what a spec's disturbances do to a run on average, [3], of order 1; zeros without any.

    The share of capacity that is lost; the log factor of the pace, and the standard deviation of whether it comes."""
    lost, shift = spec.disturbances.lost_capacity, spec.disturbances.pace_shift
    away = 0.0 if lost is None else lost.probability * (1 - sum(lost.left) / 2)
    if shift is None:
        return np.array([away, 0.0, 0.0]) / USUAL
    chance, slower = shift.probability, (math.log(shift.factor[0]) + math.log(shift.factor[1])) / 2
    return np.array([away, chance * slower, math.sqrt(chance * (1 - chance)) * slower]) / USUAL


def numbers(weights: Floats, spec: Spec) -> Floats:
    """Return the rule's numbers for a spec, [..., 5], by ``weights`` [..., 5, 3] of ``expected``; ``NEUTRAL`` for
    weights of 0."""
    return NEUTRAL + REACH * np.tanh(weights @ expected(spec))


@cache
def shipped() -> Floats:
    """Return the weights that ``steward pretrain`` tuned, [5, 3]."""
    read: dict[str, Any] = json.loads(SHIPPED.read_text())
    return np.array([read["weights"][name] for name in NUMBERS])


def served(layout: Layout, table: ModelTable) -> Floats | None:
    """Return the numbers with which model-predictive control answers, [5]; None: as without disturbances.

    They were tuned for fitted models, and for targets without a required probability."""
    required = not np.isnan(layout.probabilities).all()
    if not table.fitted or required or layout.spec.disturbances == Disturbances():
        return None
    return numbers(shipped(), layout.spec)
