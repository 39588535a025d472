"""Draws the figures of the documentation, as SVG: `python docs/making/figures.py [NAME …]`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import measured_figures
import tour_figures
from architecture import architecture
from look import svg

from app.charts.figures import Json

FOLDER = Path(__file__).resolve().parents[1] / "figures"
CHARTS: dict[str, Callable[[], Json]] = {**tour_figures.FIGURES, **measured_figures.FIGURES}

if __name__ == "__main__":
    for name in sys.argv[1:] or [*CHARTS, "architecture"]:
        (FOLDER / f"{name}.svg").write_text(svg(CHARTS[name]()) if name in CHARTS else architecture())
