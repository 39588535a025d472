"""Example workload of kind ``inference``, for the documentation and the contract kit."""

import json
from typing import Any

from app.kinds.contract.kind import Example

SPEC: dict[str, Any] = {
    "name": "vision",
    "kind": "inference",
    "variants": [
        {"name": "resnet18", "accuracy": 0.698},
        {"name": "resnet50", "accuracy": 0.803},
    ],
    "servers": [
        {
            "name": "cpu",
            "minimum": 1,
            "maximum": 4,
            "cores": 8,
            "price_per_hour": 0.4,
            "startup_seconds": 5,
            "switch_seconds": 0.02,
        }
    ],
    "users": [
        {"name": "shop", "weight": 2, "quality": {"full_until": 0.1, "zero_at": 0.5}},
        {"name": "archive", "quality": {"full_until": 1, "zero_at": 10, "shape": "exponential"}},
    ],
    "batches": [1, 2, 4, 8],
    "queue_limit": 200,
    "weights": {"quality": 1, "fairness": 0.1, "cost": 0.1, "switching": 0.01},
}
REQUESTS = [{"user": "shop" if i % 3 else "archive", "time": 0.25 * i} for i in range(120)]
BATCHES = [
    {"variant": variant, "batch": batch, "server": "cpu", "seconds": first * (0.6 + 0.4 * batch) * (1 + 0.02 * again)}
    for variant, first in (("resnet18", 0.02), ("resnet50", 0.05))
    for batch in (1, 2, 4, 8)
    for again in range(4)
]
_CSV = ["variant,batch,server,seconds", *(",".join(map(str, batch.values())) for batch in BATCHES)]
EXAMPLE = Example(
    summary="Requests on model variants",
    spec=SPEC,
    patch={"prices": {"cpu": 0.3}, "users": {"shop": 3}},
    start={},
    reports=[
        {
            "at": 0.1,
            "arrived": [
                {"user": "shop", "id": "r-17", "at": 0.04},
                {"user": "shop", "at": 0.05},
                {"user": "archive", "at": 0.09},
            ],
        },
        {"at": 0.3, "arrived": [{"user": "shop", "at": 0.2}], "finished": [{"server": "cpu-0", "at": 0.28}]},
        {"at": 5.2, "servers": [{"server": "cpu-1", "state": "up"}, {"server": "cpu-2", "state": "up"}]},
    ],
    unfit={"at": 0.3, "arrived": [{"user": "nobody", "at": 0.2}]},
    samples={
        "application/json": json.dumps(
            {"samples": [{"execution": "monday", "requests": REQUESTS, "batches": BATCHES}]}
        ).encode(),
        "application/x-ndjson": "\n".join(map(json.dumps, [*REQUESTS, *BATCHES])).encode(),
        "text/csv": "\n".join(_CSV).encode(),
    },
)
