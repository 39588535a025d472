"""Text that ``steward import jobs`` prints about imported logs, steps and curves, and about the model fitted to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.charts.text import count_text, number
from app.cli.remote.sample_import import Import, lasting, since
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.samples import APPLICATION, ASKED, DURATION, GPUS, Content, unpack
from app.kinds.contract.inputs import Sample


def _words(sample: Sample, layout: Layout) -> Iterator[str]:
    content = unpack(sample.data)
    yield from _log(content, sample.summary["arrivals"], layout)
    yield from _steps(content)
    if len(content.curves):
        yield f"{count_text(len(content.curves), 'point')} of {count_text(len(content.jobs), 'learning curve')}"


def _log(content: Content, counts: Any, layout: Layout) -> Iterator[str]:
    if counts is None:
        return
    count, span = counts["count"], counts["span_seconds"]
    over = f" over {lasting(span)}" if span > 0 else ""
    yield f"{count_text(count, 'job')}{over}{since(counts['start'])}"
    for name, count in zip(layout.queues, [*counts["of_queues"], *[0] * len(layout.queues)], strict=False):
        yield f"  {name}: {count:,}" if count else f"  {name}: none"
    total, gpus = int(layout.capacity.sum()), content.arrivals[:, ASKED]
    too_many = int((gpus > total).sum())
    yield f"  {number(float(gpus.mean()))} GPUs each; {too_many:,} ask for more than the {total:,} there are"
    known = content.arrivals[:, DURATION]
    known = known[~np.isnan(known)]
    ran = f"median {lasting(float(np.median(known)))}" if len(known) else "unknown: nothing can be simulated"
    yield f"  how long they ran: {ran}"


def _steps(content: Content) -> Iterator[str]:
    if not len(content.steps):
        return
    yield count_text(len(content.steps), "measured step")
    for place, name in enumerate(content.applications):
        own = content.steps[content.steps[:, APPLICATION] == place]
        sizes = ", ".join(f"{size:g}" for size in np.unique(own[:, GPUS]))
        yield f"  {name}: {len(own):,}, on {sizes} GPUs" if len(own) else f"  {name}: none"


def _model(model: dict[str, Any]) -> Iterator[str]:
    tested = model["report"]["metrics"]["seconds"]
    yield (
        f"seconds of steps that were left out: off by {tested['mape']:.1%} (the mean by {tested['naive_mape']:.1%}); "
        f"{tested['coverage']:.0%} within the 90 % interval"
    )


JOBS = Import("cluster", _words, _model)
