"""Adaptive planners for tests: of numbers that nobody learned, or that read a pace and a load as they are."""

from __future__ import annotations

import numpy as np

from app.kinds.inference.dynamics import PARTS, Dynamics
from app.kinds.inference.heuristics import ALGORITHM, AdaptivePlanner
from app.kinds.inference.layout import Layout
from app.policies.network import NAMES, Parameters

UNITS = 4


def dynamics(layout: Layout, seed: int, usual: float = 4.0, steps: int = 1) -> Dynamics:
    """Of random parameters."""
    random, users = np.random.default_rng(seed), len(layout.users)
    width = len(layout.servers) + len(layout.variants) + 1

    def drawn(scale: float) -> Parameters:
        shapes = dict(zip(NAMES, [(width, UNITS), (1, UNITS), (UNITS, 1), (1, 1)], strict=True))
        return {name: random.normal(0, scale, shape) for name, shape in shapes.items()}

    weights = random.normal(0, 0.3, PARTS + 1)
    return Dynamics(drawn(0.3), drawn(0.1), 0.1, 0.2, weights, np.full(users, usual), steps)


def planner(layout: Layout, seed: int = 0) -> AdaptivePlanner:
    """A policy of them."""
    return AdaptivePlanner({"algorithm": ALGORITHM, "steps": 1, "spread": 0.2}, dynamics(layout, seed))
