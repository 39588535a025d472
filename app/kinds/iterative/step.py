"""What an action does to an allocation."""

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout


def step(layout: Layout, levels: NDArray[np.integer], action: NDArray[np.integer]) -> NDArray[np.int16]:
    """The allocation after ``action`` [B] from ``levels`` [B, R], never beyond the bounds."""
    after = layout.deltas.take(action, axis=0)
    after += levels
    np.minimum(np.maximum(after, 0, out=after), layout.tops, out=after)
    return after.astype(np.int16)


def action_towards(layout: Layout, levels: NDArray[np.integer], goal: NDArray[np.integer]) -> NDArray[np.intp]:
    """The action [B] that comes nearest to ``goal`` [B, R] from ``levels`` [B, R], as far as each resource may move."""
    reach = np.array([r.max_steps for r in layout.spec.resources])
    moves = np.clip(goal - levels, -reach, reach) + reach
    action = np.zeros(len(levels), np.intp)
    for resource, most in enumerate(reach):
        action = action * (2 * most + 1) + moves[:, resource]
    return action
