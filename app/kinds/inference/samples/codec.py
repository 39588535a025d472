"""Samples of kind ``inference``: an execution is measured batches, a log of requests, or, from a run, both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from app.kinds.contract.reading import Sample
from app.kinds.contract.rows import MICRO, Rows
from app.kinds.contract.samples import Export, Format, Stored
from app.kinds.inference.layout import Layout
from app.kinds.inference.samples import content
from app.kinds.inference.samples.check import COLUMNS, Collector
from app.kinds.inference.samples.content import Content, batches_of, requests_of
from app.kinds.inference.samples.reading import BODIES
from app.kinds.inference.samples.run import run_batches, run_requests
from app.kinds.inference.samples.schemas import (
    JSON_SCHEMA,
    LOG_EXAMPLE,
    NDJSON_SCHEMA,
    BatchesRead,
    InferenceExecution,
    RequestsRead,
)
from app.kinds.inference.samples.summary import summary

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
Row = dict[str, Any]


class InferenceSamples:
    """Executions as safetensors: see ``app.kinds.inference.samples.content``."""

    formats: ClassVar[Mapping[str, Format]] = BODIES.formats(JSON_SCHEMA, NDJSON_SCHEMA, LOG_EXAMPLE)
    exports: ClassVar[Mapping[str, Export]] = {
        CSV: Export(lambda _: ",".join(COLUMNS) + "\n", lambda codec, execution: codec.as_csv(execution), single=True),
        NDJSON: Export(lambda _: "", lambda codec, execution: codec.as_ndjson(execution), single=True),
    }
    tells_reports = False

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def unpacked(self, data: bytes) -> Content:
        """An execution's batches and requests."""
        return content.unpacked(data)

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """What it comes to."""
        return summary(data)

    def read(self, execution: Stored, *, reports: bool) -> InferenceExecution:  # noqa: ARG002 - exports tell all of it
        """An execution as answered: what it comes to."""
        known = execution.summary or {}
        log, batches = known.get("requests"), known.get("batches")
        return InferenceExecution(
            kind="inference",
            execution=execution.name,
            source=execution.source,
            iterations=execution.iterations,
            seconds=known.get("seconds", 0.0),
            created_at=execution.created_at,
            requests=log and RequestsRead(**{**log, "of_users": self._by_user(log["of_users"])}),
            batches=batches and BatchesRead(**batches),
        )

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:  # noqa: ARG002
        """The requests that arrived, and the batches that the run measured: see ``run_batches``."""
        requests, batches = run_requests(self.layout, reports), run_batches(self.layout, reports)
        if not requests["time"] and not batches["seconds"]:
            return None
        collector = Collector(self.layout)
        collector.take(Rows(requests, lambda row: f"/arrived/{row}"))
        collector.take(Rows(batches, lambda row: f"/finished/{row}"))
        return collector.sample(run)

    def as_csv(self, execution: Stored) -> Iterator[str]:
        """An execution's rows, under a header of all columns."""
        for row in self._rows(execution.data):
            yield ",".join(str(row.get(name, "")) for name in COLUMNS) + "\n"

    def as_ndjson(self, execution: Stored) -> Iterator[str]:
        """An execution's rows as objects."""
        for row in self._rows(execution.data):
            yield json.dumps(row) + "\n"

    def _by_user(self, counts: Sequence[int]) -> dict[str, int]:
        every = [*counts, *[0] * len(self.layout.users)]
        return dict(zip(self.layout.users, every, strict=False))

    def _rows(self, data: bytes) -> Iterator[Row]:
        users, variants, servers = self.layout.users, self.layout.variants, self.layout.servers
        for piece in requests_of(data):
            for time, user, size in zip(*(column.tolist() for column in piece), strict=True):
                sized = {} if np.isnan(size) else {"size": size}
                yield {"time": time / MICRO, "user": users[user], **sized}
        for variant, batch, server, cores, seconds in batches_of(data).tolist():
            names = {"variant": variants[int(variant)], "batch": int(batch), "server": servers[int(server)]}
            yield {**names, "cores": cores, "seconds": seconds}
