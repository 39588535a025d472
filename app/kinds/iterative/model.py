"""The domain model of kind `iterative`: tables, ensemble members, and logged runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.iterative.layout import Layout
from app.kinds.tensors import read_json, read_tensors, write_tensors

# Interpolation of features: corners of the surrounding box among a table's nodes, with linear weights.


Array = NDArray[Any]
Indices = NDArray[np.integer]
TINY = 1e-30  # lower bound of sums before their logarithm


class Point(NamedTuple):
    """Position of B feature vectors in a table's feature grid: between J corners each.

    Attributes:
        cells: index of the cell at each corner, [J, B].
        weights: interpolation weights of the corners with sum 1, [J, B]; None with a single corner.
    """

    cells: Indices
    weights: Array | None = None


def locate(nodes: Sequence[Array], features: Array) -> Point:
    """Locate ``features`` [B, F] (B vectors of F features) among the ascending ``nodes`` of each feature, clipped.

    Distances are logarithmic for features whose nodes are all above 0."""
    cells = np.zeros((1, len(features)), np.intp)
    weights = np.ones((1, len(features)))
    for column, known in enumerate(nodes):
        if len(known) == 1:
            continue
        place = _place(known, features[:, column])
        low = np.minimum(place.astype(np.intp), len(known) - 2)
        share = place - low
        cells = np.concatenate([cells * len(known) + low, cells * len(known) + low + 1])
        weights = np.concatenate([weights * (1 - share), weights * share])
    return Point(cells, weights if len(cells) > 1 else None)


def _place(nodes: Array, values: Array) -> Array:
    """Return the fractional index of ``values`` [B] among ascending ``nodes``, clipped, [B]."""
    inside, known = np.minimum(np.maximum(values, nodes[0]), nodes[-1]), nodes
    if nodes[0] > 0:
        inside, known = np.log(inside), np.log(nodes)
    return np.interp(inside, known, np.arange(len(nodes)))


def interpolate(values: Sequence[Array], weights: Array | None, *, logs: bool) -> Array:
    """Interpolate J ``values`` [..., B], one per corner, by ``weights`` [J, B] (None: a single corner), to [..., B].

    Interpolation is linear if ``logs`` (values are logarithms), else geometric."""
    if weights is None:
        return values[0]
    if logs:
        return weighted_sum(values, weights)
    return np.exp(weighted_sum([np.log(np.maximum(value, TINY)) for value in values], weights))


def weighted_sum(values: Sequence[Array], weights: Array) -> Array:
    """Return Σ over J corners of ``values`` [..., B] (one array per corner) times ``weights`` [J, B], [..., B]."""
    total: Array = values[0] * weights[0]
    for value, weight in zip(values[1:], weights[1:], strict=True):
        total += value * weight
    return total


# Exported domain model of an ``iterative`` workload: tables that can be read without the estimators' libraries.


Floats = NDArray[np.float64]
UNINFORMED_EFFECT_SD = 2.0
FORMAT = "1"


@dataclass(frozen=True, eq=False)
class ModelTable:
    """Domain model ``measured = table(allocation, features, iteration) · run effect · noise``, per metric, in
    logarithms.

    M metrics, A allocations (the grid ``Layout.allocations``), C feature cells (1 without features), I iteration bins,
    R resources, F features, K ensemble members. Logarithms are natural.

    Attributes:
        log_mean: logarithm of each metric's median, [M, A, C, I].
        iteration_bin: bin of each iteration, [iterations].
        feature_nodes: ascending nodes of each feature; logarithms are interpolated between them.
        effect_sd: standard deviation of the log run effect between runs, [M].
        noise_sd: standard deviation of log residuals within a run, [M].
        drift_sd: standard deviation per iteration of the random walk of the log run effect, [M].
        marginal_low, marginal_high: conformal log offsets of an iteration of a new run at ``level``, [M].
        residual_low, residual_high: the same given the run effect, [M].
        change_seconds: additional seconds of an iteration in which a resource changes, [R].
        seen_low, seen_high: range of allocations in the samples, in units, [R].
        feature_low, feature_high: range of features in the samples, [F].
        level: nominal coverage of the intervals, 0…1.
        informed: whether the table was fitted to any executions, so that policies may plan with it.
        prior: whether it was fitted to other workloads, for want of samples.
        members: log offsets from ``log_mean`` of models that fit the samples equally well, equally likely a priori,
            [K, M, A, C, I]; None: a single model.
        noise_by_bin: ``noise_sd`` by iteration bin, [M, I]; None: constant.
        noise_weight: weight of this noise, in iterations, against a run's own errors when its noise is estimated; 0:
            own errors only widen intervals.
        rule: name of the heuristic used without an agent; None: model-predictive control.
        evidence: reason for that rule, as text; empty if None.
        terms: value, low and high of the targets, weights and prices under which the rule was chosen, by name.
        courses: features over the iterations of X past executions, [X, G, F], iteration i at i · G // iterations; NaN
            for features that no execution changed. None: none changed any.
    """

    log_mean: NDArray[np.float32]
    iteration_bin: NDArray[np.int32]
    feature_nodes: tuple[Floats, ...]
    effect_sd: Floats
    noise_sd: Floats
    drift_sd: Floats
    marginal_low: Floats
    marginal_high: Floats
    residual_low: Floats
    residual_high: Floats
    change_seconds: Floats
    seen_low: Floats
    seen_high: Floats
    feature_low: Floats
    feature_high: Floats
    level: float = 0.9
    informed: bool = True
    prior: bool = False
    members: NDArray[np.float32] | None = None
    noise_by_bin: Floats | None = None
    courses: NDArray[np.float32] | None = None
    noise_weight: float = 0.0
    rule: str | None = None
    evidence: str = ""
    terms: dict[str, list[float]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Serialise the table as safetensors, for ``from_bytes``."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_ARRAYS}
        arrays = {name: array for name, array in arrays.items() if array is not None}
        arrays |= {f"feature_nodes.{i}": nodes for i, nodes in enumerate(self.feature_nodes)}
        header = {name: getattr(self, name) for name in _HEADER}
        return write_tensors(arrays, {"format": FORMAT, "header": json.dumps(header)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Deserialise a table from the bytes that ``to_bytes`` returned.

        Raises:
            IncompatibleModel: ``data`` is no such table, or has another format version.
        """
        try:
            metadata, arrays = read_tensors(data)
            header = read_json(metadata["header"])
            count = sum(name.startswith("feature_nodes.") for name in arrays)
            nodes = [arrays.pop(f"feature_nodes.{i}") for i in range(count)]
            table = cls(feature_nodes=tuple(nodes), **arrays, **header)
        except (KeyError, TypeError, ValueError) as error:
            raise IncompatibleModel(f"its table can't be read: {type(error).__name__}: {error}") from error
        if metadata.get("format") != FORMAT:
            raise IncompatibleModel(f"its table has format {metadata.get('format')}; this version reads {FORMAT}")
        return table

    @property
    def fitted(self) -> bool:
        """Whether the table was fitted to samples of the workload itself."""
        return self.informed and not self.prior

    @cached_property
    def cells(self) -> int:
        """Number of feature cells C."""
        return int(self.log_mean.shape[2])

    @cached_property
    def believed(self) -> Self | None:
        """Table of all K members side by side, ``log_mean`` [M, A, K · C, I]: cell k · C + c is feature cell c of
        member k. None for a single model."""
        if self.members is None or len(self.members) < 2:
            return None
        apart = np.moveaxis(self.log_mean + self.members, 0, 2)  # [M, A, K, C, I]
        return replace(self, log_mean=apart.reshape(*apart.shape[:2], -1, apart.shape[4]), members=None)

    def thinned(self, count: int) -> Self:
        """Return the table with at most its first ``count`` members; any subset is valid, as draws are independent."""
        return self if self.members is None else replace(self, members=self.members[:count])

    def member(self, index: int) -> Self:
        """Return the table of member ``index``, or itself without an ensemble; raises IndexError if there is none."""
        if self.members is None:
            return self
        return replace(self, log_mean=self.log_mean + self.members[index], members=None)

    def point(self, features: Floats) -> Point:
        """Locate B vectors of F ``features`` [B, F] among the feature cells."""
        return locate(self.feature_nodes, features)


_HEADER = ("level", "informed", "prior", "noise_weight", "rule", "evidence", "terms")
_NOT_ARRAYS = {"feature_nodes", *_HEADER}


def initial_table(layout: Layout) -> ModelTable:
    """Return the table before any samples: seconds fall with the square root of the allocation, on an unknown scale.

    The prior of the run effect is so wide that the first report sets the scale."""
    metrics, allocations = len(layout.metrics), len(layout.allocations)
    share = np.maximum(layout.allocations / layout.allocations.max(axis=0), 1e-3)
    log_mean = np.zeros((metrics, allocations, 1, 1), np.float32)
    log_mean[:] = targets_per_iteration(layout)[:, None, None, None]
    log_mean[layout.seconds, :, 0, 0] -= 0.5 * np.log(share).mean(axis=1)
    wide, zero = np.full(metrics, UNINFORMED_EFFECT_SD), np.zeros(metrics)
    return ModelTable(
        log_mean=log_mean,
        iteration_bin=np.zeros(layout.iterations, np.int32),
        feature_nodes=tuple(np.array([(f.minimum + f.maximum) / 2]) for f in layout.spec.features),
        effect_sd=wide,
        noise_sd=np.full(metrics, 0.1),
        drift_sd=zero,
        marginal_low=-1.645 * wide,
        marginal_high=1.645 * wide,
        residual_low=zero - 0.165,
        residual_high=zero + 0.165,
        change_seconds=np.array([r.change_seconds for r in layout.spec.resources]),
        seen_low=np.array([r.minimum for r in layout.spec.resources]),
        seen_high=np.array([r.maximum for r in layout.spec.resources]),
        feature_low=np.array([f.minimum for f in layout.spec.features]),
        feature_high=np.array([f.maximum for f in layout.spec.features]),
        informed=False,
    )


def targets_per_iteration(layout: Layout) -> Floats:
    """Return the natural logarithm of each of M metrics' target per iteration, [M]; a missing target counts as 1, which
    gives 0, or minus the log of the number of iterations for a metric of scope ``run``."""
    per_run = np.array([m.scope == "run" for m in layout.spec.metrics])
    targets = np.nan_to_num(layout.targets, nan=1.0)
    return np.log(np.where(per_run, targets / layout.iterations, targets))


# Logged runs: allocations and measurements, whichever policy decided.


class Log(NamedTuple):
    """One run of T iterations; R resources, M metrics, F features.

    Attributes:
        levels: allocation of each iteration, in grid steps above the minimum, [T, R].
        metrics: measured values in the metrics' units, [T, M].
        features: features of each iteration, [T, F].
        targets: the run's targets in the metrics' units, [M]; NaN: none.
        chances: probability with which each allocation was chosen, [T]; None: unknown.
        paused: measured seconds of the change before each iteration, [T]; NaN: unknown; None: all are.
    """

    levels: NDArray[np.int16]
    metrics: NDArray[np.float64]
    features: NDArray[np.float64]
    targets: NDArray[np.float64]
    chances: NDArray[np.float64] | None = None
    paused: NDArray[np.float64] | None = None


def from_reports(layout: Layout, reports: Sequence[dict[str, Any]], targets: dict[str, float]) -> Log:
    """Convert a run's stored reports, in order, to a log; ``targets`` of the run, by metric, override the layout's.

    Raises:
        InvalidInput: a report doesn't fit the layout.
        ValueError: there are no reports.
    """
    encoded = [layout.encode_report(r["allocation"], r["metrics"], r["features"]) for r in reports]
    levels, metrics, features = zip(*encoded, strict=True)
    own = [targets.get(name, default) for name, default in zip(layout.metrics, layout.targets, strict=True)]
    return Log(
        np.array(levels, np.int16),
        np.array(metrics, np.float64),
        np.array(features, np.float64).reshape(len(reports), len(layout.features)),
        np.array(own, np.float64),
        paused=np.array([r.get("change_seconds", np.nan) for r in reports], np.float64),
    )
