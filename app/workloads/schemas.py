"""What crosses the API about workloads."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from app.kinds.fields import NonNegative, Positive
from app.kinds.registry import AnySpec

EXAMPLE = {
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

CLUSTER_EXAMPLE = {
    "name": "cluster",
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

PATCH_EXAMPLE: JsonDict = {"targets": {"iteration_seconds": 1500}, "prices": {"gpus": 3.1}, "weights": {"cost": 0.2}}


class WorkloadRead(BaseModel):
    """A registered workload."""

    id: str = Field(examples=["0f6ed0f0b7c14f1db3ad3a4f0b0a5f10"])
    name: str = Field(examples=["resnet18"])
    kind: str = Field(examples=["iterative"])
    spec: AnySpec = Field(description="The spec as it stands, defaults filled in.", examples=[EXAMPLE])
    spec_version: int = Field(description="Counts from 1; every PATCH that changes something adds 1.")
    champion: int | None = Field(description="Version of the agent that answers; null: a heuristic does.")
    revision: int = Field(description="Grows with whatever changes the workload's decisions.")
    created_at: datetime


Targets = Annotated[
    dict[str, Positive | None],
    Field(description="New targets by metric; null: no target any more.", examples=[{"iteration_seconds": 1500}]),
]
Prices = Annotated[
    dict[str, NonNegative],
    Field(description="New prices per unit and hour, by resource or type of node.", examples=[{"gpus": 3.1}]),
]
Weights = Annotated[
    dict[str, NonNegative],
    Field(
        description="New weights of the objective's terms, by name; 0 takes a term out, null is refused.",
        examples=[{"cost": 0.2}],
    ),
]


class WorkloadPatch(BaseModel):
    """What may change without a new training; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [PATCH_EXAMPLE]})

    targets: Targets = {}
    prices: Prices = {}
    weights: Weights = {}
