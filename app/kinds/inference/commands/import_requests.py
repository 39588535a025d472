"""Text that ``steward import requests`` prints about imported logs and batches, and about the model fitted to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.charts.text import count_text, number
from app.cli.remote.sample_import import Import, lasting, since
from app.kinds.contract.inputs import Sample
from app.kinds.inference.layout import Layout
from app.kinds.inference.samples import BATCH, SERVER, VARIANT, batches_of


def _words(sample: Sample, layout: Layout) -> Iterator[str]:
    yield from _log(sample.summary.get("requests"), layout)
    yield from _batches(sample.data, layout)


def _log(log: Any, layout: Layout) -> Iterator[str]:
    if log is None:
        return
    seconds = max(float(log["span_seconds"]), 1e-6)
    yield f"{count_text(log['count'], 'request')} over {lasting(seconds)}{since(float(log['start']))}"
    counts = [*log["of_users"], *[0] * len(layout.users)]
    for name, count in zip(layout.users, counts, strict=False):
        yield f"  {name}: {count:,}, {number(count / seconds)} a second" if count else f"  {name}: none"


def _batches(data: bytes, layout: Layout) -> Iterator[str]:
    rows = batches_of(data)
    if not len(rows):
        return
    yield f"{len(rows):,} measured batch{'' if len(rows) == 1 else 'es'}"
    for position, name in enumerate(layout.variants):
        own = rows[rows[:, VARIANT] == position]
        sizes = ", ".join(f"{size:g}" for size in np.unique(own[:, BATCH]))
        classes = ", ".join(layout.servers[int(place)] for place in np.unique(own[:, SERVER]))
        yield f"  {name}: {len(own):,}, of {sizes} on {classes}" if len(own) else f"  {name}: none"


def _model(model: dict[str, Any]) -> Iterator[str]:
    tested = model["report"]["metrics"]["seconds"]
    if tested["mape"] is not None:
        yield (
            f"seconds of batches that were left out: off by {tested['mape']:.1%} (the mean of their variant by "
            f"{tested['naive_mape']:.1%}); {tested['coverage']:.0%} within the 90 % interval"
        )
    for name, arrivals in model["report"]["arrivals"].items():
        rate, dispersion = arrivals["per_second"], arrivals["index_of_dispersion"]
        yield f"{name}: {number(rate)} requests a second, dispersion {number(dispersion)} (1: evenly random)"


REQUESTS = Import("inference", _words, _model)
