"""OpenTelemetry spans with the ids of the log. Needs the extra `otel`; imported only if `traces` is set.

Spans are made after their work. OpenTelemetry's own variables configure the export: `OTEL_EXPORTER_OTLP_ENDPOINT`,
`OTEL_TRACES_SAMPLER`, `OTEL_SERVICE_NAME`, …
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags, set_span_in_context

from app.telemetry.attributes import Value
from app.telemetry.logs import Trace

FLUSH_MILLISECONDS = 2000
NANOSECONDS = 1_000_000_000

__all__ = ["SpanKind", "Spans", "of_this_process"]


class _FixedIds(IdGenerator):
    """Id generator that returns the ids of ``trace``."""

    def __init__(self) -> None:
        self.trace = Trace("0" * 32, "0" * 16)

    def generate_trace_id(self) -> int:
        """Trace id of ``trace`` as a number."""
        return int(self.trace.trace_id, 16)

    def generate_span_id(self) -> int:
        """Span id of ``trace`` as a number."""
        return int(self.trace.span_id, 16)


class Spans:
    """Exports spans of completed work; for one thread."""

    def __init__(self, processor: SpanProcessor | None = None) -> None:
        self._ids = _FixedIds()
        name = os.environ.get("OTEL_SERVICE_NAME", "steward")
        self._provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}), id_generator=self._ids)
        self._provider.add_span_processor(processor or BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("steward")

    def add(
        self,
        name: str,
        trace: Trace,
        ended: float,
        seconds: float,
        values: Mapping[str, Value],
        *,
        kind: SpanKind = SpanKind.SERVER,
        failed: bool = False,
    ) -> None:
        """Export one span that ended at ``ended`` (POSIX seconds) after ``seconds``.

        ``values``: its attributes by name. ``failed``: whether its status is an error.
        """
        self._ids.trace = trace
        begin = round((ended - seconds) * NANOSECONDS)
        span = self._tracer.start_span(name, _parent(trace), kind, values, start_time=begin)
        if failed:
            span.set_status(StatusCode.ERROR)
        span.end(round(ended * NANOSECONDS))

    def flush(self) -> None:
        """Export waiting spans, for at most 2 s."""
        self._provider.force_flush(FLUSH_MILLISECONDS)

    def close(self) -> None:
        """Export waiting spans and shut down."""
        self._provider.shutdown()


def _parent(trace: Trace) -> Context:
    if not trace.parent_id:
        return Context()
    flags = TraceFlags(TraceFlags.SAMPLED if trace.sampled else TraceFlags.DEFAULT)
    caller = SpanContext(int(trace.trace_id, 16), int(trace.parent_id, 16), is_remote=True, trace_flags=flags)
    return set_span_in_context(NonRecordingSpan(caller), Context())


@lru_cache(maxsize=1)
def of_this_process(_pid: int) -> Spans:
    """Spans of a process, made once per process id, because a fork doesn't copy the exporting thread."""
    return Spans()
