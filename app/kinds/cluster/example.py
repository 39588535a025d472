"""A small workload of kind ``cluster``, as the documentation shows it and the contract kit runs it."""

from typing import Any

from app.kinds.cluster.samples.example import SAMPLES
from app.kinds.contract.kind import Example

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
