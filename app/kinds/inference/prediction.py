"""What a domain model expects of a batch, and of arrivals at a time of day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from app.kinds.contract.engine import Query
from app.kinds.contract.inputs import LATEST_MOMENT, invalid
from app.kinds.contract.kind import Parameter
from app.kinds.inference.forecast import forecast
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel

LEVEL = 0.9
_TEXT: dict[str, Any] = {"type": "string", "maxLength": 63}
PARAMETERS = (
    Parameter("variant", "Name of a variant.", _TEXT, "resnet18", required=True),
    Parameter("batch", "One of the workload's batch sizes.", {"type": "integer", "minimum": 1}, 4, required=True),
    Parameter("server", "Name of a server class; optional if there is only one.", _TEXT, "cpu"),
    Parameter(
        "at",
        "Time of day, in seconds since 00:00 UTC: adds expected arrivals.",
        {"type": "number", "minimum": 0},
        43_200,
    ),
)


class Interval(BaseModel):
    """A prediction: mean, and the bounds that hold with probability `level`."""

    mean: float
    low: float
    high: float
    level: float


class BatchPrediction(BaseModel):
    """Predictions for a batch, and for arrivals."""

    workload: str
    model: int = Field(description="Version of the model used.")
    variant: str
    batch: int
    server: str
    seconds: Interval = Field(description="From its start to its end.")
    measured: bool = Field(description="Whether the variant was measured on this server class.")
    arrivals: dict[str, Interval] | None = Field(
        default=None, description="Requests per second by user, in the control interval at `at`; null if not given."
    )


def predict(layout: Layout, model: ServiceModel, query: Query) -> dict[str, Any]:
    """What a batch is expected to take: the fields of ``BatchPrediction``.

    Raises:
        InvalidInput: unknown or missing names, a batch size that the workload hasn't, a time before 0.
    """
    variant = _position(query, "variant", layout.variants)
    server = _position(query, "server", layout.servers)
    batch = _batch(query, layout)
    place = server, variant, layout.spec.batches.index(batch)
    low, high = model.interval()
    return {
        "variant": layout.variants[variant],
        "batch": batch,
        "server": layout.servers[server],
        "seconds": _interval(model.seconds()[place], low[place], high[place]),
        "measured": bool(model.measured[server, variant]),
        "arrivals": _arrivals(layout, model, query["at"]) if "at" in query else None,
    }


def _arrivals(layout: Layout, model: ServiceModel, values: Sequence[str]) -> Mapping[str, Interval]:
    at = _seconds(values)
    told = [forecast(model, user, at, layout.spec.control_seconds) for user in range(len(layout.users))]
    return {name: _interval(*one) for name, one in zip(layout.users, told, strict=True)}


def _interval(mean: Any, low: Any, high: Any) -> Interval:
    return Interval(mean=float(mean), low=float(low), high=float(high), level=LEVEL)


def _position(query: Query, name: str, known: Sequence[str]) -> int:
    values = query.get(name, () if len(known) > 1 else known)
    if len(values) != 1 or values[0] not in known:
        raise invalid(f"/query/{name}", f"must be given once, one of {', '.join(known)}", [*values] or None)
    return known.index(values[0])


def _batch(query: Query, layout: Layout) -> int:
    sizes = [str(size) for size in layout.spec.batches]
    values = query.get("batch", ())
    if len(values) != 1 or values[0] not in sizes:
        raise invalid("/query/batch", f"must be given once, one of {', '.join(sizes)}", [*values] or None)
    return int(values[0])


def _seconds(values: Sequence[str]) -> float:
    try:
        at = float(values[0]) if len(values) == 1 else np.nan
    except ValueError:
        at = np.nan
    if not 0 <= at <= LATEST_MOMENT:
        accepted = f"must be given once, as seconds since 0:00 UTC, 0 to {LATEST_MOMENT:g}"
        raise invalid("/query/at", accepted, [*values])
    return at
