"""What networks are shown at decisions in few steps is what all others are shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.kinds.contract.policy import Situation
from app.kinds.inference.choices import Glance
from app.kinds.inference.dynamics import CONTROL, NOTHING_LOADED, view_of
from app.kinds.inference.layout import Layout
from app.kinds.inference.queue import Fleet
from app.kinds.inference.report import Row, states
from app.policies.network import NetworkPolicy
from tests.app.kinds.inference.workloads import layout

MADE = layout(batches=[1, 2, 4, 8])


def rows(layout: Layout, count: int = 64) -> list[Row]:
    """Any decisions: on servers of either class, and on their number."""
    random, users, classes = np.random.default_rng(0), len(layout.users), len(layout.servers)
    return [
        Row(
            [
                *random.integers(0, 11, users).tolist(),
                *random.uniform(0, 3, 4 * users).tolist(),
                *random.integers(0, 3, 3 * classes).tolist(),
                float(random.uniform(0, 3)),
            ],
            int(random.integers(CONTROL, classes)),
            int(random.integers(NOTHING_LOADED, len(layout.variants))),
        )
        for _ in range(count)
    ]


def test_a_glance_shows_what_is_seen() -> None:
    glance, fleet, values = Glance(MADE, Fleet(MADE)), Fleet(MADE), rows(MADE)
    together, usual = glance.view(values), view_of(MADE, states(fleet, values))
    np.testing.assert_array_equal(together.observation, usual.observation)
    np.testing.assert_array_equal(together.mask, usual.mask)
    for at, row in enumerate(values):
        alone = glance.view([row])
        np.testing.assert_array_equal(alone.observation[0], usual.observation[at])
        np.testing.assert_array_equal(alone.mask[0], usual.mask[at])


def test_the_best_action_is_the_one_of_the_highest_value() -> None:
    random, entries = np.random.default_rng(1), len(MADE.entries)
    shapes = {"trunk.0": (16, entries), "advantage": (MADE.actions, 16), "value": (1, 16)}
    arrays: dict[str, Any] = {}
    for name, shape in shapes.items():
        arrays |= {f"{name}.weight": random.normal(0, 1, shape), f"{name}.bias": random.normal(0, 1, shape[0])}
    fleet, values = Fleet(MADE), rows(MADE)
    situation = Situation(None, None, view_of(MADE, states(fleet, values)))
    for dueling in (True, False):
        config = {"algorithm": "dqn", "layers": [16], "activation": "relu", "dueling": dueling}
        policy = NetworkPolicy.build(config, arrays)
        np.testing.assert_array_equal(policy.best(*situation.view), policy.act(situation).action)
