"""Schedules as one file that needs nothing from elsewhere: a page, or one image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import vl_convert

from workers.evaluation.report import schedules
from workers.evaluation.report.charts import definition, figure
from workers.evaluation.report.markup import Markup, document, element, joined, section, table
from workers.evaluation.report.wording import count, number, percent

Json = dict[str, Any]
SUFFIXES = (".html", ".svg", ".png")
MOST_LETTERS = 100  # of a line above a chart
SHARPNESS = 1.5  # pixels of a PNG per pixel of the definition


def save(file: Path, title: str, pictures: Sequence[Json]) -> None:
    """Write pictures as what the file's suffix says; see ``write``."""
    write(file, lambda: page(title, pictures), lambda: stacked(title, drawn(pictures)))


def write(file: Path, as_page: Callable[[], str], as_chart: Callable[[], Json]) -> None:
    """Write what the file's suffix says: a page, or one chart as an image.

    Raises:
        ValueError: it is none of ``SUFFIXES``.
        OSError: the file can't be written.
    """
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{file.name}: a plot is one of {', '.join(SUFFIXES)}")
    if suffix == ".html":
        file.write_text(as_page(), encoding="utf-8")
    elif suffix == ".svg":
        chart = definition(as_chart())
        file.write_text(vl_convert.vegalite_to_svg(chart, allowed_base_urls=[]), encoding="utf-8")
    else:
        chart = definition(as_chart())
        file.write_bytes(vl_convert.vegalite_to_png(chart, scale=SHARPNESS, allowed_base_urls=[]))


def page(title: str, pictures: Sequence[Json]) -> str:
    """An HTML document of schedules: their figures, and a section for each picture."""
    return document(title, joined([element("h1", title), summary(pictures), *sections(pictures)]))


def summary(pictures: Sequence[Json]) -> Markup:
    """The figures of every schedule."""
    head = ["strategy", "tasks", "mean bounded slowdown", "mean wait (s)", "makespan (s)"]
    rows = []
    for picture in pictures:
        figures = picture["figures"]
        times = [number(figures[name]) for name in ("slowdown", "wait", "makespan")]
        rest = [percent(figures["misses"]), percent(figures["utilisation"]), number(figures["cost"])]
        rows.append([picture["name"], count(picture["tasks"]), *times, *rest])
    return table([*head, "deadlines missed", "utilisation", "cost"], rows)


def drawn(pictures: Sequence[Json], costs: Sequence[Json] = ()) -> list[tuple[str, str, Json]]:
    """Every plot that there is something to show in: heading, caption and chart.

    Args:
        pictures: of schedules.
        costs: name, cost and makespan of all that are to be compared; those of the pictures if not given.
    """
    shown = schedules.chosen(pictures)
    which = "" if len(shown) == len(pictures) else f"; the first and the best {len(shown) - 1} of {len(pictures)}"
    found = [
        ("Ranks", "Mean bounded slowdown, the best first", schedules.bars(pictures, "slowdown", "slowdown")),
        ("Ranks", "Makespan, the shortest first", schedules.bars(pictures, "makespan", "makespan (s)")),
        ("Utilisation", f"Busy share of the processors over time{which}", schedules.utilisation(shown)),
        ("Queue", f"Tasks that are ready and wait, over time{which}", schedules.queue(shown)),
        (
            "Slowdown",
            f"Share of the tasks that are slowed down more than that{which}",
            schedules.slowdowns({picture["name"]: picture["slowdown"] for picture in shown}),
        ),
        (
            "Cost",
            "Cost against makespan; nothing beats those on the line in both",
            schedules.front(points(pictures, costs)),
        ),
    ]
    found += [
        ("Gantt chart", _bars_caption(picture), schedules.gantt(picture, frame))
        for picture, frame in zip(shown, schedules.frames(shown), strict=True)
    ]
    return [(heading, caption, chart) for heading, caption, chart in found if chart is not None]


def points(pictures: Sequence[Json], costs: Sequence[Json] = ()) -> list[Json]:
    """Cost and makespan of each; none where nothing costs anything or there is nothing to compare."""
    own = [{"name": p["name"], **{k: p["figures"][k] for k in ("cost", "makespan")}} for p in pictures]
    names = {point["name"] for point in own}
    all_points = [*own, *(point for point in costs if point["name"] not in names)]
    return all_points if len(all_points) > 1 and any(point["cost"] for point in all_points) else []


def sections(pictures: Sequence[Json]) -> list[Markup]:
    """The plots under their headings."""
    plots = drawn(pictures)
    headings = dict.fromkeys(heading for heading, _, _ in plots)
    return [
        section(one, *(figure(chart, said) for heading, said, chart in plots if heading == one)) for one in headings
    ]


def stacked(title: str, plots: Sequence[tuple[str, str, Json]]) -> Json:
    """Plots, as ``drawn`` gives them, below each other in one chart."""
    charts = [{**chart, "title": titled(caption)} for _, caption, chart in plots]
    return {
        "title": title,
        "vconcat": charts,
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
    }


def titled(caption: str) -> Json:
    """A caption above a chart, in lines that are not much wider than it."""
    return {"text": wrap(caption, MOST_LETTERS)}


def _bars_caption(picture: Json) -> str:
    found = picture["gantt"]
    caption = f"{picture['name']}: which task ran when, and where"
    if found["whole"]:
        return caption
    shown = len({bar["task"] for bar in found["bars"]})
    later = found["from"] > picture["over_time"]["time"][0]
    which = "from the stretch that waited longest" if later else "the first"
    return f"{caption}; {count(shown)} of {count(picture['tasks'])} tasks, {which}"
