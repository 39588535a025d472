"""What may be asked of a training, against what the learning engine knows."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from app.agents.algorithms import CONTESTS, kind_specific_names, names
from app.agents.schemas import EXPERTS, TrainRequest
from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.registry import KINDS
from workers.learning.algorithms import registry
from workers.learning.algorithms.config import NAMED
from workers.learning.training.request import COMPETING


@pytest.mark.parametrize("algorithm", sorted(NAMED))
def test_the_engine_knows_every_algorithm_that_may_be_asked_for(algorithm: str) -> None:
    assert registry.algorithm(algorithm).config == NAMED[algorithm]
    assert TrainRequest.model_validate({"algorithm": algorithm}).algorithm == algorithm


def test_every_algorithm_of_the_engine_may_be_asked_for() -> None:
    assert set(names()) == set(registry.names()) | set(CONTESTS) | kind_specific_names()
    assert set(NAMED) <= set(registry.names())
    described = TrainRequest.model_json_schema()["properties"]
    assert set(described["algorithm"]["enum"]) == set(names())
    assert set(COMPETING) < set(NAMED)


def test_every_heuristic_may_be_imitated() -> None:
    assert {*HEURISTICS, "planner"} <= set(EXPERTS)
    assert set(EXPERTS) == {name for kind in KINDS.values() for name in kind.training.experts}


def test_a_budget_in_seconds_is_refused_and_what_to_say_instead_is_told() -> None:
    with pytest.raises(ValidationError, match=r"must be left out, not 30: 'budget' gives the environment steps"):
        TrainRequest.model_validate({"seconds": 30})
