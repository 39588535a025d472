"""The picture of the architecture: solid boxes with white text, readable on light and on dark pages."""

from __future__ import annotations

import math
from html import escape
from typing import NamedTuple

TEXT = "#ffffff"
SERVICE, OTHER, STEP = "#0b7a6e", "#475467", "#c2410c"
"""Fills: each has a contrast of at least 4.5 with the text (WCAG AA)."""
LINE = "#8a93a0"
WIDTH, HEIGHT, RADIUS = 760, 330, 12


class Box(NamedTuple):
    """A part of the system: its upper left corner and size in pixels, its name, and what it does."""

    x: int
    y: int
    width: int
    height: int
    fill: str
    name: str
    lines: tuple[str, ...]


class Arrow(NamedTuple):
    """A numbered step from one point to another."""

    number: int
    start: tuple[int, int]
    end: tuple[int, int]


BOXES = (
    Box(10, 20, 190, 120, OTHER, "Launcher", ("your command or loop;", "applies allocations,", "reports iterations")),
    Box(300, 20, 190, 120, SERVICE, "API", ("decides: heuristic,", "or agent behind", "the guard")),
    Box(580, 20, 170, 120, OTHER, "Database", ("workloads, samples,", "runs, models, agents,", "jobs")),
    Box(300, 230, 190, 80, OTHER, "Queue", ("ids of jobs",)),
    Box(580, 230, 170, 80, SERVICE, "Workers", ("fit, train, evaluate",)),
)
ARROWS = (
    Arrow(1, (200, 55), (300, 55)),
    Arrow(2, (300, 110), (200, 110)),
    Arrow(3, (490, 80), (580, 80)),
    Arrow(4, (395, 140), (395, 230)),
    Arrow(5, (490, 270), (580, 270)),
    Arrow(6, (665, 230), (665, 140)),
)
TITLE = (
    "A launcher reports each iteration to the API (1) and gets a decision (2); the API stores reports in the database "
    "(3) and queues jobs (4); workers take them (5) and store models and agents in the database (6), by which the API "
    "decides"
)


def architecture() -> str:
    """The picture as SVG, with a title for screen readers."""
    parts = [_box(box) for box in BOXES] + [_arrow(arrow) for arrow in ARROWS]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" font-family="sans-serif" text-anchor="middle"><title>{escape(TITLE)}</title>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _box(box: Box) -> str:
    middle, top = box.x + box.width / 2, box.y + 30
    lines = [
        f'<text x="{middle:g}" y="{top + 26 + 20 * row}" font-size="14" fill="{TEXT}">{escape(line)}</text>'
        for row, line in enumerate(box.lines)
    ]
    return (
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="8" fill="{box.fill}" '
        f'stroke="{LINE}"/><text x="{middle:g}" y="{top}" font-size="17" font-weight="bold" fill="{TEXT}">'
        f"{escape(box.name)}</text>" + "".join(lines)
    )


def _arrow(arrow: Arrow) -> str:
    (x, y), (to_x, to_y) = arrow.start, arrow.end
    angle = math.degrees(math.atan2(to_y - y, to_x - x))
    middle_x, middle_y = (x + to_x) // 2, (y + to_y) // 2
    return (
        f'<path d="M{x} {y}L{to_x} {to_y}" stroke="{LINE}" stroke-width="2"/>'
        f'<path d="M-10 -6L0 0L-10 6Z" fill="{LINE}" transform="translate({to_x} {to_y}) rotate({angle:g})"/>'
        f'<circle cx="{middle_x}" cy="{middle_y}" r="{RADIUS}" fill="{STEP}"/>'
        f'<text x="{middle_x}" y="{middle_y + 5}" font-size="14" font-weight="bold" fill="{TEXT}">{arrow.number}</text>'
    )
