"""Adaptive planners for tests: of numbers that nobody learned, or that read a pace and a load as they are."""

from __future__ import annotations

import numpy as np

from app.kinds.inference.adaptive import ALGORITHM, AdaptivePlanner
from app.kinds.inference.dynamics import KEPT, Dynamics
from app.kinds.inference.layout import Layout
from app.kinds.inference.recent import PARTS_OF_INTERVAL
from app.policies.adaptation import NAMES, Parameters

UNITS = 4


def dynamics(layout: Layout, seed: int, usual: float = 4.0, steps: int = 1) -> Dynamics:
    """Two networks of random parameters."""
    random, users = np.random.default_rng(seed), len(layout.users)
    widths = {"pace": len(layout.servers) + len(layout.variants) + 1, "load": 2 + users}

    def drawn(width: int, scale: float) -> Parameters:
        shapes = dict(zip(NAMES, [(width, UNITS), (1, UNITS), (UNITS, 1), (1, 1)], strict=True))
        return {name: random.normal(0, scale, shape) for name, shape in shapes.items()}

    return Dynamics(
        {name: drawn(width, 0.3) for name, width in widths.items()},
        {name: drawn(width, 0.1) for name, width in widths.items()},
        {name: random.random(count) for name, count in KEPT.items()},
        {"pace": 0.1, "load": 0.2},
        np.full(users, usual),
        steps,
    )


def planner(layout: Layout, seed: int = 0) -> AdaptivePlanner:
    """A policy of them."""
    width = layout.spec.control_seconds / PARTS_OF_INTERVAL
    return AdaptivePlanner({"algorithm": ALGORITHM, "steps": 1, "width": width}, dynamics(layout, seed))
