"""Plots that a kind describes as plain values: all of it is drawn, names are shown and not obeyed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.workers.evaluation.report.sample import interval
from tests.workers.evaluation.report.test_page import NASTY, Seen, texts_of
from workers.evaluation.report import agent, page
from workers.evaluation.report import plots as plot
from workers.evaluation.report.agent import render_plots
from workers.evaluation.report.charts import definition

AXES = {"x": {"title": "seconds", "domain": [0, 2]}, "y": {"title": "share", "share": True, "domain": [0, 1]}}


def lines(form: str = "steps", *names: str) -> dict[str, Any]:
    series = [{"name": name, "x": [0, 1, 2], "y": [0.1, None, 0.5]} for name in names or ("agent", NASTY)]
    panels = [
        {"name": "one", "series": series},
        {"name": "other", "series": series[:1]},
        {"name": "none", "series": []},
    ]
    return {"heading": "Lines", "caption": f"As {form}", "form": form, **AXES, "panels": panels}


TILES = {
    "heading": "Map",
    "caption": "What is done",
    "form": "tiles",
    "x": {"title": "rate"},
    "y": {"title": "waiting"},
    "columns": ["1–2", "2–3"],
    "rows": ["1", "2–3"],
    "names": ["small", NASTY, "never", "waits"],
    "neutral": "waits",
    "panels": [
        {"name": "agent", "cells": [{"x": "1–2", "y": "1", "name": NASTY, "text": "4"}]},
        {"name": "rule", "cells": [{"x": "2–3", "y": "2–3", "name": "waits", "text": ""}]},
    ],
}
FOUND = {
    "title": "What it did",
    "told": "Two episodes.",
    "plots": [lines("steps"), lines("areas"), lines("lines"), TILES],
}
REPORT = {"version": 1, "algorithm": "ppo", "seed": 0, "promoted": True, "reason": "r", "return": interval(-0.1)}


def test_all_are_drawn_on_an_agents_page_and_as_an_image(tmp_path: Path) -> None:
    report = {**REPORT, "pictures": FOUND}
    observation = Seen(render_plots("vision", report).page(report))
    assert {"What it did", "Two episodes.", "As steps", "As areas", "What is done"} <= set(observation.texts)
    assert "One sequence" not in observation.texts
    texts = [texts_of(image) for image in observation.images]
    assert sum("agent" in text and "one" in text for text in texts) == 3
    assert {NASTY, "4", "1–2", "agent", "rule"} <= texts[-1]
    agent.save(tmp_path / "a.png", "vision", report)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_lines_are_told_apart_without_colours_and_only_what_is_used_has_an_entry() -> None:
    charts = {caption: definition(chart) for _, caption, chart in page.charts_of_report(FOUND)}
    dashes = charts["As steps"]["vconcat"][0]["layer"][-1]["encoding"]["strokeDash"]["scale"]["range"]
    assert len({tuple(dash) for dash in dashes}) == 2
    (colours,) = {str(one["layer"][0]["encoding"]["color"]["scale"]) for one in charts["What is done"]["hconcat"]}
    assert "never" not in colours
    assert "small" not in colours


@pytest.mark.parametrize("result", [None, {}, {"title": "t", "told": "t", "plots": []}])
def test_where_there_is_nothing_no_section_is_made(result: dict[str, Any] | None) -> None:
    scheduled = page.ScheduleSection("One sequence", "told")
    assert page.sections(result, scheduled, page.figures(result)) == []


def test_what_a_panel_lacks_is_left_out() -> None:
    empty = {**lines(), "panels": []}
    assert page.charts_of_report({"title": "t", "told": "t", "plots": [empty, {**TILES, "panels": []}]}) == []
    ((_, _, chart),) = page.charts_of_report({"title": "t", "told": "t", "plots": [lines("steps", "only")]})
    assert len(definition(plot.stack_plots("t", [("h", "c", chart)]))["vconcat"][0]["vconcat"]) == 2
