"""Plots of schedules: everything that was asked for is drawn, offline, as page or image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.kinds.workflow.layout import nodes_of, pool
from app.kinds.workflow.spec import NodeType
from tests.workers.evaluation.report.test_page import NASTY, Seen, nodes, texts_of
from tests.workers.kinds.workflow.evaluation.schedules import drawn, in_turn, jobs
from workers.evaluation.report.plot import page, save
from workers.evaluation.report.schedules import undominated
from workers.kinds.workflow.evaluation.pictures import picture
from workers.kinds.workflow.simulator.schedule import Schedule


def pictures(name: str = "gate") -> list[dict[str, Any]]:
    trace = drawn(60, 5)
    schedule = in_turn(trace, 16)
    dear = nodes_of((NodeType(name="big", processors=16, minimum=1, maximum=1, price_per_hour=2.0),))
    chosen = [(float(time), ("sjf", name)[i % 2]) for i, time in enumerate(np.sort(schedule.start))]
    later = Schedule(schedule.start + 60, schedule.end + 60, schedule.node)
    return [picture("fcfs", trace, dear, later), picture(name, trace, dear, schedule, chosen)]


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen(page("A trace", pictures()))


def test_the_page_has_every_plot_and_figure(seen: Seen) -> None:
    headings = ["Utilisation", "Queue", "Slowdown", "Cost", "What the gate chose", "Gantt chart"]
    assert [text for text in seen.texts if text in headings] == headings
    assert len(seen.images) == 7
    assert {"fcfs", "gate"} <= texts_of(seen.images[0])
    assert {"sjf", "gate"} <= texts_of(seen.images[4])
    assert "60" in seen.texts
    assert not {"script", "link", "iframe"} & set(seen.tags)


def test_every_bar_is_drawn(seen: Seen) -> None:
    bars = picture("fcfs", drawn(60, 5), pool(16), in_turn(drawn(60, 5), 16))["gantt"]["bars"]
    marks = [node for node in nodes(seen.images[6]) if node.get("aria-roledescription") == "rect mark"]
    assert len(marks) == len(bars)


def test_where_nothing_costs_anything_there_is_no_front() -> None:
    trace = jobs([0, 1], [5, 5], [1, 1])
    alone = picture("fcfs", trace, pool(2), in_turn(trace, 2))
    texts = Seen(page("A trace", [alone])).texts
    assert "Cost" not in texts
    assert "What the gate chose" not in texts


def test_names_are_shown_and_not_obeyed() -> None:
    text = page(NASTY, pictures(NASTY))
    assert "<script" not in text
    assert any(NASTY in texts_of(image) for image in Seen(text).images)


@pytest.mark.parametrize(("suffix", "begins"), [("svg", b"<svg"), ("PNG", b"\x89PNG"), ("html", b"<!doctype")])
def test_the_suffix_says_what_is_written(tmp_path: Path, suffix: str, begins: bytes) -> None:
    file = tmp_path / f"plot.{suffix}"
    save(file, "A trace", pictures()[1:])
    assert file.read_bytes().startswith(begins)


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"plot\.gif: a plot is one of \.html, \.svg, \.png"):
        save(tmp_path / "plot.gif", "A trace", [])


def test_the_front_is_what_nothing_beats() -> None:
    rows = [{"time": t, "cost": c} for t, c in [(3, 1), (1, 5), (2, 5), (2, 3), (4, 1)]]
    assert [(row["time"], row["cost"]) for row in undominated(rows)] == [(1, 5), (2, 3), (3, 1)]
