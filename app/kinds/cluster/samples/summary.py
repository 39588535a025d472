"""What an execution of kind ``cluster`` comes to."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.kinds.cluster.samples.content import ASKED, DURATION, QUEUE, SECONDS, TIME, Content

SHOWN = 100
"""Applications that lists tell of by name."""


def summary(content: Content) -> dict[str, Any]:
    """What lists tell of an execution, JSON: positions of queues are of the layout."""
    steps, arrivals = content.steps, content.arrivals
    seconds, span = float(steps[:, SECONDS].sum()), float(np.ptp(arrivals[:, TIME])) if len(arrivals) else 0.0
    return {
        "seconds": seconds + span,
        "applications": list(content.applications[:SHOWN]),
        "steps": {"count": len(steps), "seconds": seconds} if len(steps) else None,
        "curves": {"jobs": len(content.jobs), "points": len(content.curves)} if len(content.curves) else None,
        "arrivals": _arrivals(arrivals, span) if len(arrivals) else None,
    }


def _arrivals(arrivals: np.ndarray[Any, np.dtype[np.float64]], span: float) -> dict[str, Any]:
    ran = arrivals[:, DURATION]
    ran = ran[~np.isnan(ran)]
    return {
        "count": len(arrivals),
        "of_queues": np.bincount(arrivals[:, QUEUE].astype(np.int64)).tolist(),
        "start": float(arrivals[0, TIME]),
        "span_seconds": span,
        "mean_gpus": float(arrivals[:, ASKED].mean()),
        "mean_duration": float(ran.mean()) if len(ran) else None,
    }
