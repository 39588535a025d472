"""Example workload of kind ``workflow``, for the documentation and the contract kit."""

import json
from typing import Any

from app.kinds.contract.kind import Example

SPEC: dict[str, Any] = {
    "name": "queue",
    "kind": "workflow",
    "nodes": [
        {
            "name": "large",
            "processors": 16,
            "memory_gb": 64,
            "price_per_hour": 0.8,
            "billing_seconds": 60,
            "startup_seconds": 90,
            "minimum": 1,
            "maximum": 8,
        }
    ],
    "weights": {"slowdown": 1.0, "cost": 0.5},
    "strategy": "sjf",
    "backfilling": "easy",
}


def _log() -> bytes:
    """Return sixty jobs of two users in Standard Workload Format, one every two minutes."""
    jobs = (
        f"{i + 1} {120 * i} -1 {60 + 37 * i % 900} {1 + i % 8} -1 -1 {1 + i % 8} 1800 -1 1 {1 + i % 2} 1 -1 -1 -1 -1 -1"
        for i in range(60)
    )
    return "\n".join(["; MaxProcs: 128", *jobs]).encode()


FLOW = {"name": "x", "schemaVersion": "1.4", "workflow": {"tasks": [{"name": "a"}, {"name": "b", "parents": ["a"]}]}}
EXAMPLE = Example(
    summary="Batch jobs on rented nodes",
    spec=SPEC,
    patch={"prices": {"large": 0.7}, "weights": {"cost": 0.2}},
    start={},
    reports=[
        {"now": 0, "queued": [{"id": f"t{i}", "processors": 4, "estimate": 100.0 * (i + 1)} for i in range(6)]},
        {"now": 100, "delta": True, "running": [{"id": "t0", "node": "large-0", "start": 95}]},
        {"now": 200, "delta": True, "finished": [{"id": "t0", "end": 190}]},
    ],
    unfit={"now": 100, "delta": True, "queued": [{"id": "big", "processors": 1000}]},
    samples={"application/x-swf": _log(), "application/vnd.wfformat+json": json.dumps(FLOW).encode()},
)
