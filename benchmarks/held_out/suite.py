"""All worlds by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.held_out.ellis import spark
from benchmarks.held_out.planted_suite import JUDGED, PLANTED, plant
from benchmarks.held_out.world import World

DATA = Path(os.environ.get("STEWARD_DATA") or "../shared/data")
WORLDS: dict[str, Callable[[], World]] = {
    **{name: partial(spark, DATA, name) for name in ("logisticregression", "kmeans")},
    **{f"probability-{name}": partial(spark, DATA, name, 0.95) for name in ("logisticregression", "kmeans")},
    **{f"{name}-{seed}": partial(plant, name, seed) for name in PLANTED for seed in JUDGED},
}
