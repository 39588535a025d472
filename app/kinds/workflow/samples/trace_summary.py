"""What a trace comes to, in numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.formats.wfformat_writing import critical_path
from app.kinds.workflow.samples.schemas import Spread, TraceRead
from app.kinds.workflow.trace import Trace


def summary(trace: Trace) -> TraceRead:
    """Counts, spreads and sums of a trace."""
    known = ~np.isnan(trace.runtime)
    return TraceRead(
        tasks=trace.tasks,
        edges=len(trace.parents),
        users=len(trace.users),
        workflows=len(np.unique(trace.group[trace.group >= 0])),
        with_run_time=int(known.sum()),
        with_estimate=int((~np.isnan(trace.estimate)).sum()),
        with_memory=int((~np.isnan(trace.memory)).sum()),
        span_seconds=float(np.ptp(trace.submit)) if trace.tasks else 0.0,
        critical_path_seconds=critical_path(trace) if len(trace.parents) else None,
        processor_seconds=float((trace.runtime * trace.processors)[known].sum()),
        run_time_seconds=_spread(trace.runtime[known]),
        processors=_spread(trace.processors.astype(np.float64)),
        edge_bytes=float(np.nansum(trace.data)),
    )


def kept_summary(trace: Trace) -> dict[str, Any]:
    """What is kept with a trace for lists: fields of ``ExecutionRead``, as JSON."""
    return {"seconds": float(np.nansum(trace.runtime)), "trace": summary(trace).model_dump(mode="json")}


def _spread(values: NDArray[np.float64]) -> Spread | None:
    if not len(values):
        return None
    return Spread(
        smallest=float(values.min()),
        median=float(np.median(values)),
        mean=float(values.mean()),
        largest=float(values.max()),
    )
