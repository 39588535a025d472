"""Reasons: the same numbers always give the same words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import pytest

from app.kinds.iterative.reasons import AllocationText, DecisionContext, Reason, explain, first, percent, wording
from app.kinds.iterative.spec import Spec
from tests.batched import SPEC as EXAMPLE

RUN = [wording(metric) for metric in Spec.model_validate(EXAMPLE).metrics]
LATENCY = [
    wording(metric)
    for metric in Spec.model_validate(
        EXAMPLE | {"metrics": [{"name": "latency", "unit": "ms", "target": 20}, {"name": "iteration_seconds"}]}
    ).metrics
]
FOUR, SIX = (AllocationText(msgspec.Raw(b"{}"), f"{n} gpus") for n in (4, 6))
UNKNOWN = (math.nan, math.nan)


def context_of(
    projected: Sequence[float],
    target: float = 1800,
    cost: Sequence[float] = (10, 12),
    after: AllocationText = SIX,
    chance: Sequence[float] = UNKNOWN,
    probability: float = math.nan,
    rest: Sequence[float] = (1000, 890),
    attainable: bool = True,
) -> DecisionContext:
    """From 4 gpus to ``after``."""
    excess = [value / target - 1 for value in projected]
    numbers = (0, target, probability, projected, excess, chance, rest, cost)
    return DecisionContext(*numbers, after is not FOUR, FOUR, after, attainable)


@pytest.mark.parametrize(
    ("context", "code", "text"),
    [
        (
            context_of((1912, 1764), chance=(0.123, 0.819)),
            "deadline_at_risk",
            (
                "projected 1,912 s against a target of 1,800 s (12 % sure); 6 gpus bring it to 1,764 s (81 % sure) "
                "if held; what is left costs $12.00 instead of $10.00 and takes 11 % less time"
            ),
        ),
        (
            context_of((1912, 1912), after=FOUR, chance=(0.123, 0.123)),
            "deadline_at_risk",
            "projected 1,912 s against a target of 1,800 s (12 % sure); 4 gpus stay, and what is left costs $10.00",
        ),
        (
            context_of((1500, 1504), cost=(10, 6.6), chance=(0.97, 0.96), rest=(1000, 1004)),
            "slack_to_save_cost",
            (
                "projected 1,500 s against a target of 1,800 s (97 % sure); 6 gpus bring it to 1,504 s (96 % sure) "
                "if held; what is left costs $6.60 instead of $10.00 and takes as long"
            ),
        ),
        (
            context_of((1500, 1900), cost=(10, 5), rest=(1000, 1400), chance=(0.97, 0.2)),
            "trade_off",
            (
                "projected 1,500 s against a target of 1,800 s (97 % sure); 6 gpus bring it to 1,900 s (20 % sure) "
                "if held; what is left costs $5.00 instead of $10.00 and takes 40 % longer"
            ),
        ),
        (
            context_of((1790, 1600), chance=(0.54, 0.996)),
            "margin",
            (
                "projected 1,790 s against a target of 1,800 s (54 % sure); 6 gpus bring it to 1,600 s (99 % sure) "
                "if held; what is left costs $12.00 instead of $10.00 and takes 11 % less time"
            ),
        ),
        (
            context_of((1764, 1764), after=FOUR, chance=(0.81, 0.81)),
            "on_track",
            "projected 1,764 s against a target of 1,800 s (81 % sure); 4 gpus stay, and what is left costs $10.00",
        ),
        (
            context_of((1700, 1764), cost=(0, 0), after=FOUR, chance=(0.0004, 0.0004)),
            "on_track",
            "projected 1,700 s against a target of 1,800 s (under 1 % sure); 4 gpus stay",
        ),
    ],
)
def test_a_deadline_in_words(context: DecisionContext, code: str, text: str) -> None:
    assert explain(RUN, context) == Reason(code, text)


@pytest.mark.parametrize(
    ("chance", "after", "attainable", "code", "words"),
    [
        ((0.9499, 0.97), SIX, True, "deadline_at_risk", " (94 % sure, 95 % asked for); 6 gpus bring it to "),
        ((0.96, 0.96), FOUR, True, "on_track", " (96 % sure, 95 % asked for); 4 gpus stay"),
        ((0.99, 0.951), SIX, True, "margin", " (99 % sure, 95 % asked for); 6 gpus bring it to "),
        (
            (0.4, 0.6),
            SIX,
            False,
            "out_of_reach",
            " (40 % sure, 95 % asked for); no allocation is as sure as is asked for, so the weights decide; 6 gpus",
        ),
    ],
)
def test_a_probability_decides_what_is_at_risk(
    chance: Sequence[float], after: AllocationText, attainable: bool, code: str, words: str
) -> None:
    """Whatever the mean is projected to be: here it meets the target always."""
    reason = explain(RUN, context_of((1700, 1600), chance=chance, probability=0.95, after=after, attainable=attainable))
    assert reason.code == code
    assert reason.text.startswith(f"projected 1,700 s against a target of 1,800 s{words}")


def test_a_target_of_each_iteration_in_words() -> None:
    reason = explain(LATENCY, context_of((24.04, 18.2), target=20, chance=(0.1, 0.7)))
    assert reason.code == "target_at_risk"
    assert reason.text.startswith(
        "latency projected at 24 ms against a target of 20 ms (10 % sure in the next iteration); "
        "6 gpus bring it to 18.2 ms (70 % sure in the next iteration) if held"
    )


def test_the_first_allocation_in_words() -> None:
    assert first(RUN, context_of((2000, 1764), chance=(0.1, 0.6))).text == (
        "6 gpus to start with, worth most by the weights: projected 1,764 s against a target of 1,800 s (60 % sure); "
        "the run costs $12.00"
    )
    assert first(RUN, context_of((2000, 1600), chance=(0.1, 0.96), probability=0.95)).text == (
        "6 gpus to start with, worth most by the weights of what is sure enough: projected 1,600 s against a target of "
        "1,800 s (96 % sure, 95 % asked for); the run costs $12.00"
    )
    beyond = context_of((2000, 1900), chance=(0.1, 0.3), probability=0.95, attainable=False)
    assert first(RUN, beyond).text.startswith(
        "no allocation is as sure as is asked for, so the weights decide on 6 gpus: projected 1,900 s"
    )


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0 %"), (0.004, "under 1 %"), (0.9999, "99 %"), (1.0, "100 %"), (0.29, "29 %")]
)
def test_a_chance_is_never_told_greater_than_it_is(share: float, text: str) -> None:
    assert percent(share) == text
