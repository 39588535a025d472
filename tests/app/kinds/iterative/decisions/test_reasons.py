"""Reasons: the same numbers always give the same words."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from app.kinds.contract.text import number
from app.kinds.iterative.decisions.reasons import AllocationText, DecisionContext, explain, first
from app.kinds.iterative.example import SPEC as EXAMPLE
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.spec import Spec

RUN = Layout(Spec.model_validate(EXAMPLE))
LATENCY = Layout(
    Spec.model_validate(
        EXAMPLE | {"metrics": [{"name": "latency", "unit": "ms", "target": 20}, {"name": "iteration_seconds"}]}
    )
)
SLACK = "projected 1,500 s against a target of 1,800 s; 6 gpus bring it to "
FOUR, SIX = (AllocationText(msgspec.Raw(b"{}"), f"{n} gpus") for n in (4, 6))


def context_of(
    projected: Sequence[float], target: float = 1800, cost: Sequence[float] = (10, 12), after: AllocationText = SIX
) -> DecisionContext:
    """From 4 gpus to ``after``."""
    excess = [value / target - 1 for value in projected]
    return DecisionContext(0, target, projected, excess, cost, after is not FOUR, FOUR, after)


@pytest.mark.parametrize(
    ("context", "code", "text"),
    [
        (
            context_of((1912, 1764)),
            "deadline_at_risk",
            "projected 1,912 s against a target of 1,800 s; 6 gpus bring it to 1,764 s",
        ),
        (
            context_of((1912, 1912), after=FOUR),
            "deadline_at_risk",
            (
                "projected 1,912 s against a target of 1,800 s if nothing changes; no step now is worth "
                "more than 4 gpus for the next iteration"
            ),
        ),
        (
            context_of((1500, 1764), cost=(10, 8)),
            "slack_to_save_cost",
            f"{SLACK}1,764 s and save 20 % of the remaining cost",
        ),
        (
            context_of((1500, 1900), cost=(10, 5)),
            "trade_off",
            f"{SLACK}1,900 s and save 50 % of the remaining cost",
        ),
        (
            context_of((1790, 1600)),
            "margin",
            "projected 1,790 s against a target of 1,800 s leaves little margin; 6 gpus bring it to 1,600 s",
        ),
        (context_of((1764, 1764), after=FOUR), "on_track", "projected 1,764 s against a target of 1,800 s"),
    ],
)
def test_a_deadline_in_words(context: DecisionContext, code: str, text: str) -> None:
    assert explain(RUN, context) == (code, text)


def test_a_target_of_each_iteration_in_words() -> None:
    reason = explain(LATENCY, context_of((24.04, 18.2), target=20))
    assert reason.code == "target_at_risk"
    assert reason.text == "latency projected at 24.0 ms against a target of 20.0 ms; 6 gpus bring it to 18.2 ms"


def test_the_first_allocation_in_words() -> None:
    assert first(RUN, context_of((2000, 1764))).text == (
        "6 gpus cost least of what meets the target: projected 1,764 s against a target of 1,800 s"
    )
    assert first(RUN, context_of((2000, 1900))).text.startswith("6 gpus are worth most by the model: projected 1,900 s")


@pytest.mark.parametrize(
    ("value", "text"), [(1234567.8, "1,234,568"), (100, "100"), (99.96, "100.0"), (12.34, "12.3"), (0.01234, "0.0123")]
)
def test_numbers_are_as_a_person_would_write_them(value: float, text: str) -> None:
    assert number(value) == text
