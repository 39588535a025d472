"""Whatever is written on the command line is understood or refused in a line, never anything else."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from steward_client.launcher import wishes
from steward_client.launcher.wishes import Misuse

PIECES = st.lists(st.sampled_from([*"0123456789.smhd =-+/%e", "cpu=", "..", "9" * 400, "٣", "inf", "nan"]), max_size=12)
TEXTS = st.text(max_size=12) | PIECES.map("".join)
READERS: list[Callable[[str], list[float]]] = [
    lambda text: [wishes.duration(text)],
    lambda text: [wishes.resource(text).minimum, wishes.resource(text).maximum, wishes.resource(text).step],
    lambda text: [value for _, value in wishes.targets([text])],
]


@pytest.mark.parametrize("read", READERS, ids=["duration", "resource", "target"])
@given(text=TEXTS)
@example(text="9" * 400 + "h")
@example(text="cpu=1.." + "9" * 400 + "/1")
@example(text="loss=1e999")
def test_any_text_is_finite_numbers_or_refused(read: Callable[[str], list[float]], text: str) -> None:
    try:
        result = read(text)
    except Misuse:
        return
    assert all(math.isfinite(value) for value in result)


@given(st.floats(0, 1e300))
def test_any_time_is_told(seconds: float) -> None:
    assert wishes.duration_text(seconds)
