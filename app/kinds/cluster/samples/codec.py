"""Samples of kind ``cluster``: an execution is measured steps, learning curves, jobs that came, or some of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from app.kinds.cluster.layout import Layout
from app.kinds.cluster.samples import content
from app.kinds.cluster.samples import run as reported
from app.kinds.cluster.samples.check import ARRIVAL, BETWEEN, COLUMNS, CURVE, STEP
from app.kinds.cluster.samples.content import BESIDE, GPUS, NODES, Content
from app.kinds.cluster.samples.reading import BODIES
from app.kinds.cluster.samples.schemas import (
    JSON_SCHEMA,
    NDJSON_SCHEMA,
    STEPS_EXAMPLE,
    ArrivalsRead,
    ClusterExecution,
    CurvesRead,
    StepsRead,
)
from app.kinds.cluster.samples.summary import summary
from app.kinds.contract.csv_cells import line
from app.kinds.contract.reading import Sample
from app.kinds.contract.samples import Export, Format, Stored

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
Row = dict[str, Any]


class ClusterSamples:
    """Executions as safetensors: see ``app.kinds.cluster.samples.content``."""

    formats: ClassVar[Mapping[str, Format]] = BODIES.formats(JSON_SCHEMA, NDJSON_SCHEMA, STEPS_EXAMPLE)
    exports: ClassVar[Mapping[str, Export]] = {
        CSV: Export(lambda _: ",".join(COLUMNS) + "\n", lambda codec, execution: codec.as_csv(execution), single=True),
        NDJSON: Export(lambda _: "", lambda codec, execution: codec.as_ndjson(execution), single=True),
    }
    tells_reports = False

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def unpacked(self, data: bytes) -> Content:
        """Steps, curves and arrivals.

        Steps on fewer nodes than can have so many GPUs, which is refused by now, count as on as few as can: so they are
        learned from and handed out as they would be uploaded.
        """
        found = content.unpacked(data)
        steps = found.steps.copy()
        steps[:, NODES] = np.maximum(steps[:, NODES], np.ceil(steps[:, GPUS] / self.layout.capacity.max()))
        return found._replace(steps=steps)

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """What it comes to."""
        return summary(content.unpacked(data))

    def read(self, execution: Stored, *, reports: bool) -> ClusterExecution:  # noqa: ARG002 - exports tell all of it
        """An execution as answered: what it comes to."""
        known = execution.summary or {}
        steps, curves, arrivals = (known.get(name) for name in ("steps", "curves", "arrivals"))
        return ClusterExecution(
            kind="cluster",
            execution=execution.name,
            source=execution.source,
            iterations=execution.iterations,
            seconds=known.get("seconds", 0.0),
            created_at=execution.created_at,
            applications=known.get("applications", []),
            steps=steps and StepsRead(**steps),
            curves=curves and CurvesRead(**curves),
            arrivals=arrivals and ArrivalsRead(**{**arrivals, "of_queues": self._by_queue(arrivals["of_queues"])}),
        )

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:  # noqa: ARG002
        """What it says of steps, learning and arrivals: see ``app.kinds.cluster.samples.run``."""
        collector = reported.collected(self.layout, reports)
        return collector.sample(run) if collector.count else None

    def as_csv(self, execution: Stored) -> Iterator[str]:
        """An execution's rows, under a header of all columns."""
        for row in self._rows(self.unpacked(execution.data)):
            cells = row | {"beside": BETWEEN.join(row.get("beside", ()))}
            yield line(cells.get(name) for name in COLUMNS)

    def as_ndjson(self, execution: Stored) -> Iterator[str]:
        """An execution's rows as objects."""
        for row in self._rows(self.unpacked(execution.data)):
            yield json.dumps(row) + "\n"

    def _by_queue(self, counts: Sequence[int]) -> dict[str, int]:
        every = [*counts, *[0] * len(self.layout.queues)]
        return dict(zip(self.layout.queues, every, strict=False))

    def _rows(self, told: Content) -> Iterator[Row]:
        classes, names = [one.name for one in self.layout.spec.nodes], told.applications
        for values in told.steps.tolist():
            application, gpus, nodes, kind, batch, seconds, computing = values[:BESIDE]
            others = [names[int(one)] for one in values[BESIDE:] if one >= 0]
            columns = [names[int(application)], int(gpus), int(nodes), classes[int(kind)], batch, others]
            yield _said(zip(STEP, [*columns, seconds, computing], strict=True))
        for job, application, iteration, value, rises, batch, noise in told.curves.tolist():
            losses = (None, value) if rises else (value, None)
            columns = [told.jobs[int(job)], _named(names, application), iteration, *losses, batch, noise]
            yield _said(zip(CURVE, columns, strict=True))
        for time, queue, application, gpus, *others in told.arrivals.tolist():
            columns = [time, self.layout.queues[int(queue)], _named(names, application), int(gpus), *others]
            yield _said(zip(ARRIVAL, columns, strict=True))


def _named(names: Sequence[str], position: float) -> str | None:
    return names[int(position)] if position >= 0 else None


def _said(columns: Any) -> Row:
    """What is known of a row."""
    return {name: value for name, value in columns if not (value is None or value == [] or value != value)}
