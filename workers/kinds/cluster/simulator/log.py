"""Logs of jobs, as the published simulator has them: who came when, with what, and asked for how many GPUs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple


class Submission(NamedTuple):
    """One job of a log; ``time`` is in seconds, ``batch`` in samples over all GPUs.

    ``queue`` is its number, the most urgent 0; ``data`` the size of its data over that which was measured: an epoch has
    so many times the iterations.
    """

    name: str
    time: float
    application: str
    gpus: int
    batch: int
    queue: int = 0
    data: float = 1.0


def read_log(path: Path) -> list[Submission]:
    """The jobs of a CSV file in order of their submission."""
    with path.open(newline="") as file:
        jobs = [
            Submission(
                row["name"],
                float(row["time"]),
                row["application"],
                int(row["num_replicas"]),
                int(row["batch_size"]),
            )
            for row in csv.DictReader(file)
        ]
    return sorted(jobs, key=lambda job: job.time)
