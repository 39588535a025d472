"""The demo's picture as PNG and HTML, made without a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from app.charts.figures import Figure, Ranked, ranking
from app.charts.timeline import courses, lasting, shares
from app.demo import drawing
from app.demo.sharing.play import Played
from app.demo.sharing.workload import JOBS, SLICES


def save(played: Sequence[Played], folder: Path) -> list[Path]:
    """Write ``cluster.png`` and the self-contained ``cluster.html``; both paths. The first run is Steward's."""
    return drawing.save(list(figures(played)), folder / "cluster.png")


def figures(played: Sequence[Played]) -> Iterator[Figure]:
    """Charts of slices by job in each run, of accuracies in Steward's, and of completion times."""
    last = max(one.seconds for one in played)
    for one in played:
        moments = [(at, {job.name: float(slices.get(job.name, 0)) for job in JOBS}) for at, slices in one.given]
        told = "Slices of each job, one on top of the other. Dashed: all there are."
        given = shares(f"Who had what, {one.name}", "slices", [*moments, (one.seconds, {})], SLICES, told)
        yield lasting(given, last)
    learnt = {job.name: [(at, accuracy) for at, of, accuracy in played[0].learnt if of == job] for job in JOBS}
    told = "On digits that were not trained on."
    yield courses(f"Accuracy, {played[0].name}", "accuracy", learnt, told, steps=True)
    taken = [
        Ranked(f"{job.name}, {one.name}", one.completion[job], chosen=one is played[0])
        for job in JOBS
        for one in played
        if job in one.completion
    ]
    yield ranking("How long each job took", "seconds from arrival to end", taken, f"Coloured: {played[0].name}.")
