"""The forecast of the load: least squares on the last parts of a control interval.

A network that adapts to them told no better (see ``benchmarks/inference_adaptation.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.dynamics import levels
from workers.kinds.inference.adaptation.experience import Tasks

RIDGE = 1.0  # against as many squares as there are moments
Floats = NDArray[np.float64]


class LoadFit(NamedTuple):
    """Weights of the last parts and a constant, [PARTS + 1]; root mean squared errors: of it, and of the usual."""

    weights: Floats
    error: float
    usual_error: float


def fit_load(tasks: Tasks, usual: Floats) -> LoadFit:
    """Fit what ``Dynamics.counts`` goes by.

    Args:
        tasks: of several worlds.
        usual: requests of each user in a part of a control interval, [U].
    """
    own = usual[tasks.user]
    seen, target = levels(own, tasks.parts), levels(own, tasks.next)[:, 0]
    inputs = np.concatenate([seen, np.ones((len(seen), 1))], axis=1)
    weights = np.linalg.solve(inputs.T @ inputs + RIDGE * np.eye(inputs.shape[1]), inputs.T @ target)
    error = float(np.sqrt(np.mean((inputs @ weights - target) ** 2)))
    return LoadFit(weights, error, float(np.sqrt(np.mean(target**2))))
