"""A workload of kind ``iterative`` for tests, with a feature, changes that take time, and up to 16 GPUs."""

import json
from typing import Any

from app.kinds.contract.kind import Example

SPEC: dict[str, Any] = {
    "name": "resnet18",
    "kind": "iterative",
    "resources": [
        {
            "name": "gpus",
            "unit": "gpu",
            "minimum": 1,
            "maximum": 16,
            "step": 1,
            "max_steps": 2,
            "initial": 4,
            "price_per_hour": 2.5,
            "change_seconds": 30,
        }
    ],
    "metrics": [
        {
            "name": "iteration_seconds",
            "unit": "s",
            "target": 1800,
            "goal": "at_most",
            "scope": "run",
            "weight": 1.0,
        }
    ],
    "features": [{"name": "batch", "minimum": 1, "maximum": 512}],
    "iterations": 90,
    "weights": {"sla": 1.0, "cost": 0.1, "change": 0.01},
}


def _rows() -> list[tuple[int, int, int, float, int]]:
    """Run, iteration, GPUs, seconds and batch: each iteration takes 2 s and 56 GPU-seconds at a batch of 128."""
    rows = []
    for run, gpus in enumerate((1, 2, 3, 4, 6, 8, 12, 16)):
        batch = (64, 128)[run % 2]
        for iteration in range(10):
            off = 1 + 0.02 * ((7 * run + 3 * iteration) % 5 - 2)
            rows.append((run, iteration, gpus, round((2 + 56 * batch / 128 / gpus) * off, 3), batch))
    return rows


def _csv() -> bytes:
    head = "execution,iteration,allocation.gpus,metric.iteration_seconds,feature.batch"
    return "\n".join([head, *("run-" + ",".join(map(str, row)) for row in _rows())]).encode()


REPORTS = [
    {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 16.0 + i}, "features": {"batch": 128}}
    for i in range(3)
]
SAMPLE = json.dumps({"execution": "run-17", "reports": REPORTS})
EXAMPLE = Example(
    summary="Training on GPUs",
    spec=SPEC,
    patch={"targets": {"iteration_seconds": 1500}, "prices": {"gpus": 3.1}, "weights": {"cost": 0.2}},
    start={"targets": {"iteration_seconds": 1700}, "features": {"batch": 128}},
    reports=REPORTS,
    unfit={**REPORTS[1], "allocation": {"gpus": 99}},
    samples={
        "application/json": f'{{"samples": [{SAMPLE}]}}'.encode(),
        "application/x-ndjson": SAMPLE.encode(),
        "text/csv": _csv(),
    },
)
