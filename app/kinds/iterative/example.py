"""Example workload of the README, tour and dashboard, also for the contract kit: ``docs/tour/workload.json``."""

import json
from typing import Any

from app.kinds.contract.kind import Example
from app.kinds.iterative.spec import EXAMPLE as PATCH

SPEC: dict[str, Any] = {
    "name": "resnet18",
    "kind": "iterative",
    "resources": [
        {
            "name": "gpus",
            "unit": "gpu",
            "minimum": 1,
            "maximum": 8,
            "step": 1,
            "max_steps": 2,
            "initial": 4,
            "price_per_hour": 2.5,
        }
    ],
    "metrics": [{"name": "iteration_seconds", "unit": "s", "target": 1800, "goal": "at_most", "scope": "run"}],
    "iterations": 90,
    "weights": {"sla": 1.0, "cost": 0.1, "change": 0.01},
}


def _csv() -> bytes:
    """Return the CSV of twelve executions; an iteration takes 2 s plus 56 GPU-seconds over the GPUs, ± 4 %."""
    rows = ["execution,iteration,allocation.gpus,metric.iteration_seconds"]
    for run, gpus in enumerate((1, 2, 3, 4, 6, 8) * 2):
        for iteration in range(6):
            off = 1 + 0.02 * ((7 * run + 3 * iteration) % 5 - 2)
            rows.append(f"example-{run},{iteration},{gpus},{(2 + 56 / gpus) * off:.3f}")
    return "\n".join(rows).encode()


REPORTS = [{"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 18.0 + i}} for i in range(3)]
SAMPLE = json.dumps({"execution": "run-17", "reports": REPORTS})
EXAMPLE = Example(
    summary="Training on GPUs",
    spec=SPEC,
    patch=PATCH,
    start={"targets": {"iteration_seconds": 1700}},
    reports=REPORTS,
    unfit={**REPORTS[1], "allocation": {"gpus": 99}},
    samples={
        "application/json": f'{{"samples": [{SAMPLE}]}}'.encode(),
        "application/x-ndjson": SAMPLE.encode(),
        "text/csv": _csv(),
    },
)
