"""The demo's workload, ``workload.json``, and its jobs."""

import json
from pathlib import Path
from typing import NamedTuple

from app.demo.api import Json

SPEC: Json = json.loads(Path(__file__).with_suffix(".json").read_text())
NAME: str = SPEC["name"]
SLICES: int = SPEC["nodes"][0]["gpus"]
PERCENT = 12  # of a core, a slice: all of them are less than a core, which every machine has to give
FETCH_SECONDS = 0.1  # of each iteration go by until its data are there, whatever CPU there is


class Size(NamedTuple):
    """A network: its width in units, and the CPU seconds of an iteration for which batches are chosen."""

    width: int
    seconds: float


class Job(NamedTuple):
    """A training: its network, queue, requested slices, iterations, and arrival in seconds since the start."""

    name: str
    size: str
    queue: str
    asked: int
    iterations: int
    at: float


SIZES = {"small": Size(256, 0.12), "large": Size(640, 0.4)}
JOBS = (
    Job("archive", "large", "batch", 4, 20, 0.0),
    Job("nightly", "small", "batch", 4, 30, 1.0),
    Job("release", "large", "urgent", 4, 12, 4.0),
    Job("hotfix", "small", "urgent", 4, 14, 8.0),
)
