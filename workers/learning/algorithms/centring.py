"""Rewards less what every decision is worth, for problems that go on and on.

Where what follows is discounted by the time that a decision takes, and nothing ends, the values of all states have one
level in common, many times as large as what sets them apart. To learn it takes as long as the horizon, and it says
nothing about what to do. Rewards are centred (Naik et al., Reward Centering, 2024): less the level's share of the time
that each decision takes. The level is the one at which the batch's temporal-difference errors are 0 on average, so that
values stay relative, and nothing of it has to be learned. What is best remains so: all values differ by one number.
"""

from typing import Any

from workers.learning.backends.base import Array

NEVER = 1e-9  # a share of endings that is none


def centred(xp: Any, reward: Array, ends: Array, error: Array) -> Array:
    """The rewards, or targets, less the level's share, in any shape.

    Args:
        xp: the arrays' namespace.
        reward: what was paid, or the targets of values.
        ends: 1 − the discount of what follows, as `reward`.
        error: temporal-difference errors before, as `reward`.
    """
    return reward - ends * (xp.mean(error) / (xp.mean(ends) + NEVER))
