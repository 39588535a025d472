"""Reasons: the same numbers always give the same words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import pytest

from app.kinds.iterative.reasons import (
    AllocationText,
    DecisionContext,
    Reason,
    explain,
    first,
    flapping,
    within_noise,
    wording,
)
from app.kinds.iterative.spec import Spec
from tests.batched import SPEC as EXAMPLE

RUN = [wording(metric) for metric in Spec.model_validate(EXAMPLE).metrics]
LATENCY = [
    wording(metric)
    for metric in Spec.model_validate(
        EXAMPLE | {"metrics": [{"name": "latency", "unit": "ms", "target": 20}, {"name": "iteration_seconds"}]}
    ).metrics
]
FOUR, SIX = (AllocationText(msgspec.Raw(b"{}"), f"{n} GPUs") for n in (4, 6))
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
    """From 4 GPUs to ``after``."""
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
                "6 GPUs: finish at 29 min 24 s (81 %), remaining cost $12.00 (was $10.00); "
                "4 GPUs: 31 min 52 s (12 %); target 30 min"
            ),
        ),
        (
            context_of((1912, 1912), after=FOUR, chance=(0.123, 0.123)),
            "deadline_at_risk",
            "keep 4 GPUs: finish at 31 min 52 s (12 %), remaining cost $10.00; target 30 min",
        ),
        (
            context_of((1500, 1504), cost=(10, 6.6), chance=(0.97, 0.96), rest=(1000, 1004)),
            "slack_to_save_cost",
            (
                "6 GPUs: finish at 25 min 04 s (96 %), remaining cost $6.60 (was $10.00); "
                "4 GPUs: 25 min (97 %); target 30 min"
            ),
        ),
        (
            context_of((1500, 1900), cost=(10, 5), rest=(1000, 1400), chance=(0.97, 0.2)),
            "trade_off",
            (
                "6 GPUs: finish at 31 min 40 s (20 %), remaining cost $5.00 (was $10.00); "
                "4 GPUs: 25 min (97 %); target 30 min"
            ),
        ),
        (
            context_of((1790, 1600), chance=(0.54, 0.996)),
            "margin",
            (
                "6 GPUs: finish at 26 min 40 s (99 %), remaining cost $12.00 (was $10.00); "
                "4 GPUs: 29 min 50 s (54 %); target 30 min"
            ),
        ),
        (
            context_of((1764, 1764), after=FOUR, chance=(0.81, 0.81)),
            "on_track",
            "keep 4 GPUs: finish at 29 min 24 s (81 %), remaining cost $10.00; target 30 min",
        ),
        (
            context_of((1700, 1764), cost=(0, 0), after=FOUR, chance=(0.0004, 0.0004)),
            "on_track",
            "keep 4 GPUs: finish at 28 min 20 s (under 1 %); target 30 min",
        ),
        (
            context_of((1912, 1850), chance=(0.1, 0.2), after=SIX._replace(maximum=True)),
            "deadline_at_risk",
            (
                "6 GPUs: finish at 30 min 50 s (20 %), remaining cost $12.00 (was $10.00); "
                "4 GPUs: 31 min 52 s (10 %); target 30 min not met: 6 GPUs is the maximum"
            ),
        ),
        (
            context_of((1912, 1700), chance=(0.1, 0.9), after=SIX._replace(maximum=True)),
            "deadline_at_risk",
            (
                "6 GPUs: finish at 28 min 20 s (90 %), remaining cost $12.00 (was $10.00); "
                "4 GPUs: 31 min 52 s (10 %); target 30 min"
            ),
        ),
    ],
)
def test_a_deadline_in_words(context: DecisionContext, code: str, text: str) -> None:
    assert explain(RUN, context) == Reason(code, text)


@pytest.mark.parametrize(
    ("chance", "after", "attainable", "code", "words"),
    [
        (
            (0.9499, 0.97),
            SIX,
            True,
            "deadline_at_risk",
            "6 GPUs: finish at 26 min 40 s (97 %), *; target 30 min at 95 %",
        ),
        ((0.96, 0.96), FOUR, True, "on_track", "keep 4 GPUs: finish at 28 min 20 s (96 %), *; target 30 min at 95 %"),
        ((0.99, 0.951), SIX, True, "margin", "6 GPUs: finish at 26 min 40 s (95 %), *; target 30 min at 95 %"),
        (
            (0.4, 0.6),
            SIX,
            False,
            "out_of_reach",
            "6 GPUs: finish at 26 min 40 s (60 %), *; target 30 min at 95 % can't be met",
        ),
        (
            (0.4, 0.96),  # another target is missed
            SIX._replace(maximum=True),
            False,
            "out_of_reach",
            "6 GPUs: finish at 26 min 40 s (96 %), *; target 30 min at 95 %; not all targets can be met",
        ),
    ],
)
def test_a_probability_decides_what_is_at_risk(
    chance: Sequence[float], after: AllocationText, attainable: bool, code: str, words: str
) -> None:
    """Whatever the mean is projected to be: here it meets the target always."""
    reason = explain(RUN, context_of((1700, 1600), chance=chance, probability=0.95, after=after, attainable=attainable))
    assert reason.code == code
    start, end = words.split("*")
    assert (reason.text[: len(start)], reason.text[-len(end) :]) == (start, end)


def test_a_target_of_each_iteration_in_words() -> None:
    maximum = SIX._replace(maximum=True)  # more of it isn't known to help here
    assert "maximum" not in explain(LATENCY, context_of((24, 22), target=20, after=maximum)).text
    reason = explain(LATENCY, context_of((24.04, 18.2), target=20, chance=(0.1, 0.7)))
    assert reason.code == "target_at_risk"
    assert reason.text == (
        "6 GPUs: latency 18.2 ms (70 % in the next iteration), remaining cost $12.00 (was $10.00); "
        "4 GPUs: 24 ms (10 % in the next iteration); target 20 ms"
    )


def test_the_first_allocation_in_words() -> None:
    assert first(RUN, context_of((2000, 1764), chance=(0.1, 0.6))).text == (
        "start with 6 GPUs, the best trade-off: finish at 29 min 24 s (60 %), cost $12.00; target 30 min"
    )
    assert first(RUN, context_of((2000, 1600), chance=(0.1, 0.96), probability=0.95)).text == (
        "start with 6 GPUs, the best trade-off that meets the target: finish at 26 min 40 s (96 %), cost $12.00; "
        "target 30 min at 95 %"
    )
    beyond = context_of((2000, 1900), chance=(0.1, 0.3), probability=0.95, attainable=False)
    assert first(RUN, beyond).text == (
        "start with 6 GPUs, the best trade-off: finish at 31 min 40 s (30 %), cost $12.00; target 30 min at 95 % "
        "can't be met"
    )
    free = context_of((2000, 1764), chance=(0.1, 0.6), cost=(0, 0))
    assert first(RUN, free).text == "start with 6 GPUs, the best trade-off: finish at 29 min 24 s (60 %); target 30 min"


def test_a_change_that_is_not_taken_says_whether_its_gain_is_known() -> None:
    own = Reason("on_track", "keep 4 GPUs")
    assert within_noise(own, "6 GPUs", 0.2, 0.5).text == (
        "keep 4 GPUs; 6 GPUs: gain below threshold (return +0.2, more than 0.5 required)"
    )
    assert within_noise(own, "6 GPUs", -0.2, 0.5).text == "keep 4 GPUs; 6 GPUs: no gain"
    assert within_noise(own, "6 GPUs", float("nan"), 0.5).text == "keep 4 GPUs; 6 GPUs: gain unknown"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (0b10101, "changed 3 times in the last 5 iterations"),
        (0b11111, "changed 5 times in the last 5 iterations"),
        (0b11110, ""),  # the latest report changes nothing
        (0b00011, ""),
    ],
)
def test_an_allocation_that_changes_back_and_forth_is_flagged(changes: int, text: str) -> None:
    assert flapping(changes) == text
