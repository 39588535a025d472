"""Charts as definitions: axes of time that people can read, and what is expected to come."""

from __future__ import annotations

import re
from typing import Any

import pytest
import vl_convert

from app.charts.figures import (
    DARK_COLOURS,
    LIGHT_COLOURS,
    Cell,
    Figure,
    LearningPoint,
    Ranked,
    config,
    learning,
    ranking,
    steps_map,
    tips,
)
from app.charts.overlay import overlay
from app.charts.timeline import (
    MOST_NAMES,
    MOST_TICKS,
    Ahead,
    Bar,
    Came,
    Coming,
    Point,
    counts,
    courses,
    forecast,
    gantt,
    projected,
    shares,
    time,
)


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
    assert drawn.caption == "Bars. All ran on large-0."


def test_what_is_expected_follows_what_came_with_its_band() -> None:
    came = [Came(3_600.0 * hour, 5.0) for hour in range(30)]
    drawn = forecast("Coming", "in 1 h", came, [Coming(30 * 3_600.0, 4.0, 2.0, 7.0)], "Expected.")
    assert [layer["mark"]["style"] for layer in drawn.spec["layer"]] == ["measured", "awaited", "decided"]
    assert drawn.rows[-1] == ["expected", "1970-01-02T06:00:00Z", 4.0, 2.0, 7.0]
    assert len(drawn.rows) == 25
    assert vl_convert.vegalite_to_svg(drawn.spec).startswith("<svg")


def texts(spec: dict[str, Any], *, dark: bool = False) -> list[str]:
    drawn = vl_convert.vegalite_to_svg({**spec, "width": 300, "config": config(dark=dark)})
    return re.findall(r"<text[^>]*>([^<]*)</text>", drawn)


@pytest.mark.parametrize(
    ("value", "number", "text"),
    [(0.0165, ".1~%", "1.65 %"), (-0.06558, ".3~g", "-0.0656"), (0.0, ".3~g", "0"), (12_345.6, ".3~g", "12,346")],
)
def test_bars_have_their_numbers_beside_their_names(value: float, number: str, text: str) -> None:
    drawn = ranking("Ranked", "error", [Ranked("a", value, chosen=True), Ranked("b", 1.0)], "Bars.", number)
    assert {f"a\u2002{text}"} <= set(texts(drawn.spec))


def test_what_is_counted_is_not_ticked_by_halves() -> None:
    counted = courses("Given back", "GPUs", {"given": [(0.0, 0.0), (9.0, 1.0)]}, "Line.")
    stacked = counts("Requests", "requests", {"a": [(0.0, 1.0), (60.0, 2.0)]}, 60.0, "Bars.")
    coming = forecast("Coming", "in 1 h", [Came(0.0, 1.0)], [Coming(3_600.0, 0.5, 0.0, 2.0)], "Expected.")
    for one in (counted, stacked, coming):
        assert not {text for text in texts(one.spec) if re.fullmatch(r"[0-9]\.[0-9]+", text)}


def test_names_are_told_apart_as_far_as_there_are_colours() -> None:
    assert len(set(LIGHT_COLOURS)) == len(set(DARK_COLOURS)) == len(LIGHT_COLOURS) == MOST_NAMES
    has = {f"job-{n}": 1.0 for n in range(MOST_NAMES + 3)}
    drawn = shares("Had", "GPUs", [(0.0, has), (1.0, has)], None, "Blocks.")
    domain = drawn.spec["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert (len(domain), domain[-1]) == (MOST_NAMES, "Other")


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("dark", "panel"), [(False, "#ffffff"), (True, "#1a1f28")])
def test_marks_stand_out_from_their_ground_and_notes_can_be_read(dark: bool, panel: str) -> None:
    look = config(dark=dark)
    ends = look["range"]["diverging"]
    assert min(contrast(colour, panel) for colour in [*look["range"]["category"], ends[0], ends[-1]]) >= 3
    assert contrast(look["style"]["note"]["color"], panel) >= 4.5
    assert contrast(look["axis"]["labelColor"], panel) >= 4.5


def test_a_map_has_its_colours_from_the_theme() -> None:
    drawn = steps_map("Map", "gpus", [Cell(0, 1.0, -2.0), Cell(1, 1.0, 2.0)], 2.0, "Cells.")
    colours = vl_convert.vegalite_to_svg({**drawn.spec, "config": config(dark=True)})
    assert all(
        f'fill="rgb({red}, {green}, {blue})"' in colours for red, green, blue in ((116, 192, 252), (255, 135, 135))
    )


def test_what_planning_reaches_is_told_from_what_others_do() -> None:
    drawn = learning([LearningPoint("dqn", 0, -2.0)], {"optimum": -1.0, "hold": -3.0}, "Line.", ("optimum", "plan"))
    rules = {layer["mark"]["style"]: layer["data"]["values"] for layer in drawn.spec["layer"][1:3]}
    assert rules == {"other": [{"name": "hold", "value": -3.0}], "reference": [{"name": "optimum", "value": -1.0}]}


def test_lines_too_close_for_two_labels_share_one() -> None:
    points, plans = [LearningPoint("dqn", 0, -10.0), LearningPoint("dqn", 9, -1.0)], ("plan",)
    for scale in (1.0, 1000.0):  # linear, and logarithmic
        drawn = learning(points, {"plan": -1.0, "hold": -9.0, "pid": -9.1, "far": -10.0 * scale}, "Line.", plans)
        labels = [row["name"] for row in drawn.spec["layer"][3]["data"]["values"]]
        assert labels == ["plan", "hold, pid", "far"]


def test_a_task_tells_when_it_began_by_its_clock() -> None:
    for first, began in ((90.0, "1 min 30 s of the run"), (1_767_268_800.0, "2026-01-01 12:00:00 UTC")):
        drawn = gantt("Tasks", [Bar("a", "n", first, first + 5), Bar("b", "m", first + 5, first + 9)], "Bars.")
        blocks = drawn.spec["layer"][0]
        assert {row["name"]: row["began"] for row in blocks["data"]["values"]}["a"] == began
        assert {"field": "began", "title": "start", "type": "nominal"} in blocks["encoding"]["tooltip"]


def test_runs_over_time_are_compared_in_seconds_on_the_axis_that_charts_share() -> None:
    figure = overlay(
        {
            "run 1": courses("Jobs", "jobs", {"run": [(0, 1), (7_200, 2)], "wait": [(0, 0), (7_200, 1_234_567)]}, "."),
            "run 2": courses("Jobs", "jobs", {"run": [(3_600, 5)]}, "."),
        }
    )
    assert figure is not None
    (line,) = figure.spec["layer"]
    assert line["encoding"]["x"]["field"] == "at"
    assert line["encoding"]["x"]["title"] == "minutes"  # of the labels alone: the table is in seconds
    assert line["encoding"]["tooltip"] == tips(name="of", value="jobs")
    assert line["mark"]["point"]  # of one there is a single point
    assert figure.columns == ["of", "seconds", "jobs"]
    rows = [["run 1: run", 0, 1], ["run 1: run", 7_200, 2], ["run 1: wait", 0, 0], ["run 1: wait", 7_200, 1_234_567]]
    assert figure.rows == [*rows, ["run 2: run", 3_600, 5]]
    dashes = dict(zip(*line["encoding"]["strokeDash"]["scale"].values(), strict=True))
    assert dashes["run 1: run"] == dashes["run 1: wait"] != dashes["run 2: run"]


def test_runs_over_iterations_are_compared_without_projections_and_with_a_target_that_all_have() -> None:
    ahead = [Ahead(1, 4.0, 4.0, 4.0), Ahead(9, 20.0, 18.0, 22.0)]
    points = [Point(0, 2.0), Point(1, 4.0)]

    def drawn(target: float) -> Figure:
        return projected("Elapsed", ("elapsed (s)", 1.0), points, ahead, [], target, ".")

    figure = overlay({"run 1": drawn(30.0), "run 2": drawn(30.0)})
    assert figure is not None
    line, target = figure.spec["layer"]
    assert [line["encoding"]["x"]["field"], line["encoding"]["y"]["field"]] == ["iteration", "value"]
    assert figure.rows == [["run 1", 0, 2.0], ["run 1", 1, 4.0], ["run 2", 0, 2.0], ["run 2", 1, 4.0]]
    assert "point" not in line["mark"]
    assert target["data"]["values"] == [{"target": 30.0}]
    other = overlay({"run 1": drawn(30.0), "run 2": drawn(40.0)})
    assert other is not None
    assert len(other.spec["layer"]) == 1
    assert overlay({"run 1": drawn(30.0), "run 2": gantt("Tasks", [], "Bars.")}) is None
