"""What an execution of kind ``inference`` comes to."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.kinds.contract.rows import MICRO
from app.kinds.inference.samples.content import SECONDS, batches_of, requests_of

MOST_USERS = 256


def summary(data: bytes) -> dict[str, Any]:
    """What lists tell of stored bytes, JSON: positions of users and variants are of the layout; one pass, bounded."""
    batches = batches_of(data)
    counts, first, last, sizes = np.zeros(MOST_USERS, np.int64), None, 0, []
    for piece in requests_of(data):
        counts += np.bincount(piece.user, minlength=MOST_USERS)
        first = int(piece.time[0]) if first is None else first
        last = int(piece.time[-1])
        sizes.append((float(np.nansum(piece.size)), int((~np.isnan(piece.size)).sum())))
    span = (last - first) / MICRO if first is not None else 0.0
    total, sized = np.sum(sizes, axis=0) if sizes else (0.0, 0)
    seconds = float(batches[:, SECONDS].sum())
    log = {
        "count": int(counts.sum()),
        "of_users": np.trim_zeros(counts, "b").tolist(),
        "start": (first or 0) / MICRO,
        "span_seconds": span,
        "mean_size": float(total / sized) if sized else None,
    }
    measured = {"count": len(batches), "seconds": seconds}
    return {
        "seconds": seconds + span,
        "requests": log if log["count"] else None,
        "batches": measured if len(batches) else None,
    }
