"""The demo's picture as PNG and HTML, made without a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from app.charts.figures import Figure
from app.charts.timeline import Beside, Expected, Point, Series, compared
from app.demo import drawing
from app.demo.drive import Row, Run


def save(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Write ``demo.png`` and the self-contained ``demo.html``; both paths. The first run is Steward's."""
    return drawing.save(figures(runs), folder / "demo.png")


def figures(runs: Sequence[Run]) -> list[Figure]:
    """Charts of seconds per iteration with the predicted interval, of allocations, and of elapsed seconds."""
    disturbed = [row.measured.iteration for row in runs[0].rows if row.measured.disturbed]
    beside = Beside(stress=(disturbed[0] - 0.5, disturbed[-1] + 0.5) if disturbed else None)
    return [
        compared(
            "Seconds per iteration",
            "seconds",
            _series(runs, lambda row: row.measured.seconds),
            "The band is what Steward predicted for its own run (90 %).",
            beside._replace(band=_band(runs[0])),
        ),
        compared(
            "CPU allocation",
            "CPU, % of a core",
            _series(runs, lambda row: row.measured.percent),
            "Shaded: a neighbour takes CPU under the same limit.",
            beside,
            steps=True,
        ),
        compared(
            "Elapsed time vs. deadline",
            "elapsed seconds",
            _series(runs, lambda row: row.elapsed),
            "Dashed: the deadline.",
            beside._replace(target=runs[0].deadline),
        ),
    ]


def _series(runs: Sequence[Run], of: Callable[[Row], float]) -> list[Series]:
    return [Series(run.label, [Point(row.measured.iteration, round(of(row), 4)) for row in run.rows]) for run in runs]


def _band(run: Run) -> list[Expected]:
    return [
        Expected(row.measured.iteration, row.advice.low, row.advice.high)
        for row in run.rows
        if row.advice.low is not None and row.advice.high is not None
    ]
