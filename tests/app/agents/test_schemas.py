"""What may be asked of a training, against what the learning engine knows."""

from __future__ import annotations

from typing import get_args

import pytest

from app.agents.schemas import EXPERTS, Algorithm
from app.kinds.iterative.heuristics import HEURISTICS
from workers.learning.algorithms.config import NAMED, named
from workers.learning.training.request import COMPETING

COMPARISONS = {"auto", "planner"}  # these aren't algorithms of the learning engine


@pytest.mark.parametrize("algorithm", sorted(set(get_args(Algorithm)) - COMPARISONS))
def test_the_engine_knows_every_algorithm_that_may_be_asked_for(algorithm: str) -> None:
    assert named(algorithm) is not None


def test_every_algorithm_of_the_engine_may_be_asked_for() -> None:
    assert set(get_args(Algorithm)) == set(NAMED) | COMPARISONS
    assert set(COMPETING) < set(NAMED)


def test_every_heuristic_may_be_imitated() -> None:
    assert set(EXPERTS) == {*HEURISTICS, "planner"}
