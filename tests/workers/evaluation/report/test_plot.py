"""Plots of schedules: everything that was asked for is drawn, offline, as page or image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.kinds.workflow.queue import nodes_of, pool
from app.kinds.workflow.spec import NodeType
from tests.workers.evaluation.report.test_page import NASTY, Seen, nodes, texts_of
from tests.workers.kinds.workflow.evaluation.schedules import drawn, in_turn, jobs
from workers.evaluation.report import plots as plot
from workers.evaluation.report.plots import page, save
from workers.evaluation.report.schedules import choose_pictures, frames, pareto_front
from workers.kinds.workflow.evaluation.pictures import picture, window
from workers.kinds.workflow.simulator.simulate import Schedule


def pictures(name: str = "gate") -> list[dict[str, Any]]:
    trace = drawn(60, 5)
    schedule = in_turn(trace, 16)
    dear = nodes_of((NodeType(name="big", processors=16, minimum=1, maximum=1, price_per_hour=2.0),))
    later = Schedule(schedule.start + 60, schedule.end + 60, schedule.node)
    return [picture("fcfs", trace, dear, later), picture(name, trace, dear, schedule)]


@pytest.fixture(scope="module")
def observations() -> Seen:
    return Seen(page("A trace", pictures()))


def test_the_page_has_every_plot_and_figure(observations: Seen) -> None:
    headings = ["Ranks", "Utilisation", "Queue", "Slowdown", "Cost", "Gantt chart"]
    assert [text for text in observations.texts if text in headings] == headings
    assert len(observations.images) == 8
    assert {"fcfs", "gate"} <= texts_of(observations.images[2])
    assert "60" in observations.texts
    assert not {"script", "link", "iframe"} & set(observations.tags)


def test_every_bar_is_drawn(observations: Seen) -> None:
    bars = [bar for one in pictures() if one["name"] == "fcfs" for bar in one["gantt"]["bars"]]
    marks = [node for node in nodes(observations.images[7]) if node.get("aria-roledescription") == "rect mark"]
    assert len(marks) == len(bars)


def thirteen() -> list[dict[str, Any]]:
    """Schedules ever later, the names in another order than the ranks."""
    trace = drawn(60, 5)
    schedule = in_turn(trace, 16)
    moved = [
        Schedule(schedule.start + 40 * (7 * k % 13), schedule.end + 40 * (7 * k % 13), schedule.node) for k in range(13)
    ]
    stretch = window(trace, moved)
    return [picture(f"s{k}", trace, pool(16), one, stretch=stretch) for k, one in enumerate(moved)]


def test_bars_of_all_come_first_and_are_in_the_order_of_their_ranks() -> None:
    plots = plot.schedule_charts(thirteen())
    heading, _, chart = plots[0]
    assert heading == "Ranks"
    bar, text = chart["layer"]
    order = bar["encoding"]["y"]["sort"]
    figures = {one["name"]: one["figures"]["slowdown"] for one in thirteen()}
    assert order == sorted(figures, key=lambda name: figures[name])
    assert len(order) == 13
    assert text["encoding"]["y"]["sort"] == order


def test_no_plot_has_more_than_six_lines_and_no_two_of_one_colour() -> None:
    for heading, caption, chart in plot.schedule_charts(thirteen()):
        if heading in ("Utilisation", "Queue", "Slowdown"):
            scale = chart["encoding"]["color"]["scale"]
            assert scale["domain"] == ["s0", "s2", "s4", "s6", "s8", "s10"]
            assert len(set(scale["range"])) == 6
            assert "the first and the best 5 of 13" in caption


def test_gantt_charts_share_their_window_and_their_colours() -> None:
    charts = [chart for heading, _, chart in plot.schedule_charts(thirteen()) if heading == "Gantt chart"]
    assert len(charts) == 6
    bars = [chart["layer"][0]["encoding"] for chart in charts]
    assert len({tuple(one["x"]["scale"]["domain"]) for one in bars}) == 1
    assert len({tuple(one["color"]["scale"]["domain"]) for one in bars}) == 1
    colours = bars[0]["color"]["scale"]
    assert len(set(colours["range"])) == len(colours["domain"]) + 1
    slowdowns = [bar["slowdown"] for one in choose_pictures(thirteen()) for bar in one["gantt"]["bars"]]
    assert len(set(np.searchsorted(colours["domain"], slowdowns))) >= 3  # tasks are told apart


def test_charts_of_other_stretches_have_their_own_time() -> None:
    early, late = drawn(60, 5), drawn(60, 5)
    late = late._replace(submit=late.submit + 1e6)
    both = [picture(name, one, pool(16), in_turn(one, 16)) for name, one in (("a", early), ("b", late))]
    first, second = frames(both)
    assert first.clock.first + 1e5 < second.clock.first


def test_where_nothing_costs_anything_there_is_no_front() -> None:
    trace = jobs([0, 1], [5, 5], [1, 1])
    alone = picture("fcfs", trace, pool(2), in_turn(trace, 2))
    texts = Seen(page("A trace", [alone])).texts
    assert "Cost" not in texts


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
    assert [(row["time"], row["cost"]) for row in pareto_front(rows)] == [(1, 5), (2, 3), (3, 1)]
