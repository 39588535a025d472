"""What may be asked of a training, against what the learning engine knows."""

from __future__ import annotations

from typing import get_args

import pytest

from app.agents.schemas import Algorithm
from workers.learning.algorithms.config import named

COMPARISONS = {"auto", "planner"}  # these aren't algorithms of the learning engine


@pytest.mark.parametrize("algorithm", sorted(set(get_args(Algorithm)) - COMPARISONS))
def test_the_engine_knows_every_algorithm_that_may_be_asked_for(algorithm: str) -> None:
    assert named(algorithm) is not None
