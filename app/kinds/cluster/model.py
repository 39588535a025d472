"""The domain model of kind `cluster`, and the predictions it answers over the API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from app.kinds.cluster import arrivals
from app.kinds.cluster import throughput as interference
from app.kinds.cluster.arrivals import Arrivals
from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.lengths import CurvePoints, LearningCurves, ahead, parametric, thinned_indices
from app.kinds.cluster.report import LARGEST
from app.kinds.cluster.throughput import LAYOUTS, Interference, Place, Throughput, efficiency, interval, slowdown
from app.kinds.contract.engine import Query
from app.kinds.contract.inputs import IncompatibleModel, invalid
from app.kinds.contract.kind import Parameter
from app.kinds.forecasting.answer import Forecaster, deserialise
from app.kinds.tensors import read_json, read_tensors, write_tensors

FORMAT = "cluster-1"
PARTS: Mapping[str, Any] = {
    "throughput": Throughput,
    "curves": LearningCurves,
    "interference": Interference,
    "arrivals": Arrivals,
}
OWN = ("noise_scale", "initial", "forecasts")


@dataclass(frozen=True, eq=False)
class ClusterModel:
    """Domain model of kind ``cluster``: A applications with measured steps, and the arrival process.

    Attributes:
        applications: names; the first A are those of ``throughput``.
        throughput: seconds per step of the A applications.
        noise_scale: gradient noise scale in samples, by tenth of a job's run; NaN: unknown, [A, 10].
        initial: reference batch for statistical efficiency, the smallest measured, in samples, [A].
        curves: learning curves by application.
        interference: slowdown of jobs that share nodes.
        arrivals: arrival process of jobs.
        forecasts: serialised forecasters of arrivals by queue and of GPUs in use (``forecasting.answer.serialise``);
            empty: none.
    """

    applications: tuple[str, ...]
    throughput: Throughput
    noise_scale: Floats
    initial: Floats
    curves: LearningCurves
    interference: Interference
    arrivals: Arrivals
    forecasts: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))

    def forecasters(self) -> Sequence[Forecaster]:
        """Return the forecasters of each queue's arriving jobs, and of GPUs in use (``GPUS_IN_USE``), each where a log
        was long enough to fit one. Raises IncompatibleModel if the stored forecasters are unreadable."""
        return deserialise(self.forecasts) if len(self.forecasts) else ()

    @classmethod
    def unfitted(cls, layout: Layout) -> Self:
        """Return the model before any sample, for ``layout``'s queues and nodes: no applications, arrival rates of
        0."""
        node = np.array([int(layout.capacity.max()), len(layout.capacity)])
        whole, none = np.zeros(0, np.int64), np.zeros((0, 2))
        untold = Throughput(np.zeros((1, 0, LAYOUTS, 1, 2)), np.ones(1, np.int64), none, none, node, whole)
        curves = LearningCurves(whole, whole.astype(np.bool_), none, none, np.zeros((0, 2, 1)), none, whole, none)
        arrives = arrivals.none(len(layout.queues))
        return cls((), untold, np.zeros((0, 10)), np.zeros(0), curves, interference.no_interference(), arrives)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Position of each application by name."""
        return {name: position for position, name in enumerate(self.applications)}

    @cached_property
    def _classes(self) -> Mapping[tuple[str, bool], int]:
        """Position of the learning curve class by application name and direction (True: larger is better)."""
        of = zip(self.curves.application.tolist(), self.curves.rises.tolist(), strict=True)
        return {(self.applications[one], rises): number for number, (one, rises) in enumerate(of)}

    def curve_class(self, application: str, rises: bool) -> int:
        """Return the position in ``curves`` of the class of an application and direction; −1 if there is none.
        ``rises``: whether larger values are better, as for metrics, not losses."""
        return self._classes.get((application, rises), -1)

    @property
    def measured(self) -> int:
        """Number of applications with measured steps, A."""
        return len(self.throughput.largest)

    def efficiency(self, application: int, batch: float, part: float = 0.5) -> float:
        """Return the statistical efficiency of ``batch`` relative to the initial batch, NaN if the noise scale is
        unknown.

        It is (M₀ + φ)/(M + φ), where φ is the gradient noise scale (Pollux, Qiao et al., 2021, section 3.1).

        Args:
            application: position of the application, below A.
            batch: samples per step, over all GPUs.
            part: completed fraction of the job's run, 0 to 1.
        """
        scale = self.noise_scale[application, min(int(part * self.noise_scale.shape[1]), self.noise_scale.shape[1] - 1)]
        known = bool(np.isfinite(scale))
        return float(efficiency(self.initial[application], np.array(batch), scale)) if known else np.nan

    def check(self, layout: Layout) -> None:
        """Raise IncompatibleModel if the model has another number of queues than ``layout``."""
        if len(self.arrivals.rate) != len(layout.queues):
            raise IncompatibleModel(f"the model is of {len(self.arrivals.rate)} queues, not {len(layout.queues)}")

    def to_bytes(self) -> bytes:
        """Serialise the model as safetensors; equal models give equal bytes."""
        arrays = {
            f"{part}.{name}": np.asarray(value)
            for part in PARTS
            for name, value in getattr(self, part)._asdict().items()
        }
        own = {name: getattr(self, name) for name in OWN}
        return write_tensors({**arrays, **own}, {"format": FORMAT, "applications": json.dumps(self.applications)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Deserialise bytes that ``to_bytes`` returned. Raises IncompatibleModel if ``data`` is no such model, or has
        another format version."""
        try:
            header, arrays = read_tensors(data)
            version = header.get("format")
            if version != FORMAT:
                raise IncompatibleModel(f"the model has format {version}, this version reads {FORMAT}")
            parts = {name: kind(*(arrays[f"{name}.{field}"] for field in kind._fields)) for name, kind in PARTS.items()}
            own: dict[str, Any] = {name: arrays[name] for name in OWN if name in arrays}
            return cls(applications=tuple(read_json(header["applications"])), **parts, **own)
        except (ValueError, TypeError, KeyError) as error:
            raise IncompatibleModel(f"no domain model of kind cluster: {error}") from error


# Predictions over the API: seconds and goodput of a step, and the remaining gain of a job.


LEVEL = 0.9
MOST_POINTS = 1_000
ROUNDED = 1e-9
SHOWN = 80
"""Most characters of an invalid value that an error message repeats."""
_TEXT: dict[str, Any] = {"type": "string", "maxLength": 255}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 1}
_CURVE: dict[str, Any] = {"type": "string", "maxLength": 32_768}
PARAMETERS = (
    Parameter("application", "Name of an application in the samples.", _TEXT, "resnet50", required=True),
    Parameter(
        "gpus",
        "GPUs of a job, at most the number available or measured; with `batch`, predicts a step.",
        _COUNT,
        8,
    ),
    Parameter("batch", "Samples per step, over all GPUs.", _COUNT, 512),
    Parameter("nodes", "Number of nodes the GPUs are spread over; default: as few as they fill.", _COUNT, 2),
    Parameter("node_class", "Node class of the spec; default: the first.", _TEXT, "a100"),
    Parameter("beside", "Applications of jobs that share its nodes, separated by `;`.", _TEXT, "bert"),
    Parameter(
        "loss",
        "Learning curve so far: iterations and losses, at least four unless curves are known; requires `until`.",
        _CURVE,
        "1:2.5,2:1.9,3:1.6,4:1.45",
    ),
    Parameter("metric", "The same for a metric that should rise.", _CURVE, "1:0.42,2:0.55,3:0.61,4:0.64"),
    Parameter("until", "The last iteration of the job.", {"type": "number", "exclusiveMinimum": 0}, 90),
)


class Interval(BaseModel):
    """A prediction in the unit of its quantity: mean, and the bounds that hold with probability `level`."""

    mean: float
    low: float
    high: float
    level: float


class StepPrediction(BaseModel):
    """Predicted duration (seconds), speed (samples per second) and efficiency (0 to 1) of a training step."""

    gpus: int
    nodes: int
    node_class: str
    batch: float
    seconds: Interval
    samples_per_second: float
    slowdown: float = Field(description="Slowdown by jobs on the same nodes, included in `seconds`; 1 if alone.")
    efficiency: float | None = Field(
        description="Value of a sample relative to one of the smallest batch, in the middle of a run; null if no noise "
        "scale was measured."
    )
    goodput: float | None = Field(description="Samples per second × efficiency.")
    measured: bool = Field(
        description="Whether the number of GPUs, and of samples on each, is within what was measured; for more "
        "samples, seconds grow in proportion."
    )


class LeftPrediction(BaseModel):
    """Expected remaining gain of a job in the unit of its loss or metric; losses fall, metrics rise."""

    level: float = Field(description="Current level of the job, without noise.")
    gain: Interval = Field(description="Improvement from now to the end.")
    measured: bool = Field(
        description="Whether enough jobs of the application have ended to know the error of such predictions; if "
        "not, the interval is as wide as other applications need, and `convergence` limits no job."
    )


class ClusterPrediction(BaseModel):
    """Predictions for an application: one training step, and the remaining gain of a job."""

    workload: str
    model: int = Field(description="Version of the model used.")
    application: str
    step: StepPrediction | None = Field(default=None, description="Null without `gpus` and `batch`.")
    left: LeftPrediction | None = Field(default=None, description="Null without a learning curve.")


def predict(layout: Layout, model: ClusterModel, query: Query) -> dict[str, Any]:
    """Answer a query of the API about one application, by fields of ``ClusterPrediction``: a step, or remaining gain.

    Raises:
        InvalidInput: a parameter is missing, given twice, out of range, or names an unknown application or node class.
    """
    application = _application(model, _single_value(query, "application"), "application")
    wanted = {"gpus", "batch"} & query.keys()
    names = {"loss", "metric"} & query.keys()
    if not wanted and not names:
        raise invalid("/query/gpus", "must be given, with batch; or loss or metric, with until", None)
    return {
        "application": model.applications[application],
        "step": _step(layout, model, application, query) if wanted else None,
        "left": _predict_remaining(model, application, query) if names else None,
    }


def _step(layout: Layout, model: ClusterModel, application: int, query: Query) -> StepPrediction:
    if application >= model.measured:
        known = ", ".join(model.applications[: model.measured])
        raise invalid(
            "/query/application", f"must be one of which steps were measured: {known}", query["application"][0]
        )
    gpus = _whole_number(
        query, "gpus", int(model.throughput.gpus[-1])
    )  # of more nothing is known: no table goes further
    batch, packed = _number(query, "batch"), -(-gpus // int(model.throughput.node[0]))
    nodes = _whole_number(query, "nodes", gpus) if "nodes" in query else packed
    classes = {one.name: one for one in layout.spec.nodes}
    name = _single_value(query, "node_class") if "node_class" in query else layout.spec.nodes[0].name
    if name not in classes:
        raise invalid("/query/node_class", f"must be one of {', '.join(classes)}", name)
    others = query["beside"][0].split(";") if "beside" in query else []
    beside = [_application(model, other, "beside") for other in others]
    slower = np.array(slowdown(model.interference, application, beside))
    place = Place(*(np.array(value) for value in (gpus, nodes, batch / gpus)))
    mean, low, high = (float(part) for part in interval(model.throughput, application, place))
    apart = np.hypot(np.log([mean / low, high / mean]), np.log(slower[0] / slower[1]))
    mean *= float(slower[0]) / classes[name].speed
    efficiency = model.efficiency(application, batch)
    known_scale = bool(np.isfinite(efficiency))
    return StepPrediction(
        gpus=gpus,
        nodes=nodes,
        node_class=name,
        batch=batch,
        seconds=_interval(mean, mean * float(np.exp(-apart[0])), mean * float(np.exp(apart[1]))),
        samples_per_second=batch / mean,
        slowdown=float(slower[0]),
        efficiency=efficiency if known_scale else None,
        goodput=efficiency * batch / mean if known_scale else None,
        measured=_within_measurements(model, application, place),
    )


def _within_measurements(model: ClusterModel, application: int, place: Place) -> bool:
    """Whether a step's GPUs and samples per GPU are within the range that was measured for the application."""
    low, high = model.throughput.local[application, [0, -1]] * (1 - ROUNDED, 1 + ROUNDED)
    return bool(place.gpus <= model.throughput.largest[application] and low <= place.local <= high)


def _predict_remaining(model: ClusterModel, application: int, query: Query) -> LeftPrediction:
    if {"loss", "metric"} <= query.keys():
        raise invalid("/query/loss", "must not be given with metric", query["loss"][0])
    name = "metric" if "metric" in query else "loss"
    # Parse P points "iteration:value", separated by commas, to an array [P, 2] of iterations and values. Raises
    # InvalidInput if iterations don't ascend, a number is invalid, or there are more than ``MOST_POINTS``.
    text = _single_value(query, name)
    pairs = [[_parse_number(part) for part in pair.split(":")] for pair in text.split(",")[: MOST_POINTS + 1]]
    sound = all(len(pair) == 2 and None not in pair for pair in pairs) and len(pairs) <= MOST_POINTS
    table = np.array(pairs, np.float64) if sound else np.zeros((0, 2))
    if not sound or (table[:, 0] < 0).any() or (np.diff(table[:, 0]) <= 0).any():
        accepted = f"must be iteration:value, up to {MOST_POINTS:,} times with ',' between them, iterations ascending"
        raise invalid(f"/query/{name}", accepted, text[:SHOWN])
    points, until = table, _number(query, "until")
    rises = name == "metric"
    which = np.array([model.curve_class(model.applications[application], rises)])
    sign = 1.0 if rises else -1.0
    points = points[thinned_indices(len(points))]  # thinned like the curves that calibrated the intervals
    curve_points, end = CurvePoints(points[None, :, 0], sign * points[None, :, 1]), np.array([until])
    result = ahead(model.curves, which, curve_points, end)
    measured = bool(np.isfinite(result.half[0]))
    level, gain, half = (float(part[0]) for part in (result if measured else parametric(curve_points, end)))
    if not np.isfinite(gain):
        raise invalid(f"/query/{name}", "must have at least four points: no similar curves are known", len(points))
    return LeftPrediction(level=sign * level, gain=_interval(gain, gain - half, gain + half), measured=measured)


def _interval(mean: float, low: float, high: float) -> Interval:
    return Interval(mean=mean, low=low, high=high, level=LEVEL)


def _single_value(query: Query, name: str) -> str:
    """Return the value of a query parameter; raise InvalidInput unless it is given exactly once."""
    values = query.get(name, [])
    if len(values) != 1:
        raise invalid(f"/query/{name}", "must be given once", [*values] or None)
    return values[0]


def _application(model: ClusterModel, name: str, parameter: str) -> int:
    if name not in model.positions:
        known: Sequence[str] = model.applications[:20]
        raise invalid(f"/query/{parameter}", f"unknown application; known: {', '.join(known) or 'none'}", name)
    return model.positions[name]


def _number(query: Query, name: str) -> float:
    """Return the value of a query parameter, a number above 0 up to ``LARGEST``; raise InvalidInput for any other."""
    text = _single_value(query, name)
    value = _parse_number(text)
    if value is None or not 0 < value <= LARGEST:
        raise invalid(f"/query/{name}", f"must be a number greater than 0, at most {LARGEST:,.0f}", text[:SHOWN])
    return value


def _whole_number(query: Query, name: str, most: int) -> int:
    """Return the value of a query parameter, a whole number from 1 to ``most``; raise InvalidInput for any other."""
    text = _single_value(query, name)
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:10]) <= most and len(text) <= 10):
        raise invalid(f"/query/{name}", f"must be a whole number, 1 to {most:,}", text[:SHOWN])
    return int(text)


def _parse_number(text: str) -> float | None:
    """Parse a finite number of at most 1e100 either way; None if ``text`` is no such number."""
    try:
        value = float(text) if "_" not in text else np.nan
    except ValueError:
        return None
    return value if abs(value) <= 1e100 else None
