"""Example workload of kind `cluster`, for the documentation and the contract kit."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from app.kinds.contract.kind import Example

# Example samples of kind ``cluster``, for the documentation and the contract kit.


APPLICATIONS = {"resnet50": (0.05, 0.004, 0.03), "bert": (0.08, 0.02, 0.06)}
"""Seconds per step by application: a constant, an addition per sample of a GPU, and a constant for synchronisation."""
STEPS: list[dict[str, Any]] = [
    {
        "application": name,
        "gpus": gpus,
        "nodes": -(-gpus // 4),
        "batch": gpus * local,
        "seconds": (constant + each * local + (sync * (1 + gpus / 8) if gpus > 1 else 0)) * (1 + 0.01 * again),
    }
    for name, (constant, each, sync) in APPLICATIONS.items()
    for gpus in (1, 2, 4, 8)
    for local in (16, 32, 64)
    for again in range(2)
]
CURVES: list[dict[str, Any]] = [
    {
        "job": f"{name}-{number}",
        "application": name,
        "iteration": epoch,
        "loss": 0.3 + 2 / (0.5 * epoch + 1) + 0.02 * number + 0.004 * (-1) ** epoch,
        "batch": 128,
        "noise_scale": 400 + 100 * epoch,
    }
    for name in APPLICATIONS
    for number in range(3)
    for epoch in range(1, 13)
]
ARRIVALS: list[dict[str, Any]] = [
    {
        "time": 900.0 * number + 300.0 * (number % 3),
        "application": ("resnet50", "bert")[number % 2],
        "gpus": (1, 2, 4)[number % 3],
        "data": 10.0 + number % 5,
        "duration": 1200.0 + 60 * (number % 7),
    }
    for number in range(48)
]


def _table(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    lines = csv.DictWriter(text, [*rows[0]], lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows)
    return text.getvalue().rstrip().encode()


SAMPLES = {
    "application/json": json.dumps(
        {"samples": [{"execution": "march", "steps": STEPS, "curves": CURVES, "arrivals": ARRIVALS}]}
    ).encode(),
    "application/x-ndjson": "\n".join(map(json.dumps, [*STEPS, *CURVES, *ARRIVALS])).encode(),
    "text/csv": _table(STEPS),
}


# Example workload of kind ``cluster``, for the documentation and the contract kit.


SPEC: dict[str, Any] = {
    "name": "gpu-cluster",
    "kind": "cluster",
    "nodes": [{"name": "a100", "count": 2, "gpus": 4, "price_per_hour": 2.5}],
    "queues": [{"name": "urgent", "weight": 4}, {"name": "batch", "ageing_seconds": 14_400}],
    "restart_seconds": 30,
    "interval_seconds": 60,
    "episode_intervals": 60,
}
EXAMPLE = Example(
    summary="Training jobs that share GPUs",
    spec=SPEC,
    patch={"prices": {"a100": 2.0}, "queues": {"batch": {"weight": 0.5}}},
    start={},
    reports=[
        {
            "at": 10,
            "submitted": [
                {"job": "bert-7", "application": "bert", "gpus": 4, "batch": 128, "iterations": 40, "at": 4},
                {"job": "vision", "application": "resnet50", "gpus": 4, "maximum": 8},
            ],
        },
        {
            "at": 70,
            "submitted": [{"job": "now", "application": "resnet50", "gpus": 2, "queue": "urgent"}],
            "progressed": [
                {"job": "bert-7", "iteration": 3, "loss": 1.9, "seconds": 0.9, "gpus": 4, "nodes": 1},
                {"job": "vision", "iteration": 1},
            ],
        },
        {"at": 130, "ended": [{"job": "bert-7"}], "nodes": [{"node": "a100-1", "gpus": 2}]},
    ],
    unfit={"at": 70, "submitted": [{"job": "other", "gpus": 2, "queue": "nobody's"}]},
    samples=SAMPLES,
)
