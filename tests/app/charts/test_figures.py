"""Charts as definitions: axes of time that people can read, and what is expected to come."""

from __future__ import annotations

from typing import Any

import pytest
import vl_convert

from app.charts.ahead import Came, Coming, forecast
from app.charts.spans import MOST_TICKS, Bar, gantt, time


@pytest.mark.parametrize(
    ("last", "unit", "ticks"),
    [
        (2.0, "seconds", None),
        (75.0, "seconds", [0, 10, 20, 30, 40, 50, 60, 70]),
        (3_600.0, "minutes", [600 * tick for tick in range(7)]),
        (6 * 3_600.0, "hours", [3_600 * tick for tick in range(7)]),
        (7 * 86_400.0, "days", [86_400 * tick for tick in range(8)]),
        (50 * 604_800.0, "days", [7 * 604_800 * tick for tick in range(8)]),
    ],
)
def test_time_is_told_in_the_unit_that_it_is_ticked_by(last: float, unit: str, ticks: list[int] | None) -> None:
    axis: dict[str, Any] = time([0.0, last])
    assert (axis["title"], axis["axis"].get("values")) == (unit, ticks)
    assert ("labelExpr" in axis["axis"]) == (unit != "seconds")


def test_moments_however_far_apart_have_few_ticks() -> None:
    axis: dict[str, Any] = time([1e-3, 1e15])
    assert len(axis["axis"]["values"]) <= MOST_TICKS + 1


def test_one_lane_is_named_in_words() -> None:
    drawn = gantt("Tasks", [Bar("a", "large-0", 0.0, 5.0), Bar("b", "large-0", 5.0, 9.0)], "Bars.")
    assert drawn.told == "Bars. All ran on large-0."


def test_what_is_expected_follows_what_came_with_its_band() -> None:
    came = [Came(3_600.0 * hour, 5.0) for hour in range(30)]
    drawn = forecast("Coming", "in 1 h", came, [Coming(30 * 3_600.0, 4.0, 2.0, 7.0)], "Expected.")
    assert [layer["mark"]["style"] for layer in drawn.spec["layer"]] == ["measured", "awaited", "decided"]
    assert drawn.rows[-1] == ["expected", "1970-01-02T06:00:00Z", 4.0, 2.0, 7.0]
    assert len(drawn.rows) == 25
    assert vl_convert.vegalite_to_svg(drawn.spec).startswith("<svg")
