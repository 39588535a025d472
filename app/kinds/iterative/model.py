"""The domain model of kind `iterative`: tables, members and the log that it is drawn from."""

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
from app.kinds.tensors import read_json, read_tensors, written

# Where features stand among a table's nodes: the corners of the box around them, for linear interpolation.


Array = NDArray[Any]
Indices = NDArray[np.integer]
TINY = 1e-30  # what sums are at least, so that they have a logarithm


class Point(NamedTuple):
    """B rows of features among the feature cells of a table, J corners each.

    Attributes:
        cells: [J, B].
        weights: of the corners, summing to 1, [J, B]; None where there is one corner.
    """

    cells: Indices
    weights: Array | None = None


def locate(nodes: Sequence[Array], features: Array) -> Point:
    """Where ``features`` [B, F] stand among ascending ``nodes`` by feature; beyond the outer ones: there.

    Distances are those of the logarithm where all nodes are greater than 0.
    """
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
    """Position among ``nodes`` as a fractional index, [B]."""
    inside, known = np.minimum(np.maximum(values, nodes[0]), nodes[-1]), nodes
    if nodes[0] > 0:
        inside, known = np.log(inside), np.log(nodes)
    return np.interp(inside, known, np.arange(len(nodes)))


def blended(values: Sequence[Array], weights: Array | None, *, logs: bool) -> Array:
    """``values`` at each corner, [..., B], weighted by ``weights`` [J, B]: as they are if ``logs``, else their logs."""
    if weights is None:
        return values[0]
    if logs:
        return weighted(values, weights)
    return np.exp(weighted([np.log(np.maximum(value, TINY)) for value in values], weights))


def weighted(values: Sequence[Array], weights: Array) -> Array:
    """Σ of ``values`` [..., B] times ``weights`` [J, B]."""
    total: Array = values[0] * weights[0]
    for value, weight in zip(values[1:], weights[1:], strict=True):
        total += value * weight
    return total


# The exported domain model of an ``iterative`` workload: a table, which needs no estimator to be read.


Floats = NDArray[np.float64]
UNINFORMED_EFFECT_SD = 2.0
FORMAT = "1"


@dataclass(frozen=True, eq=False)
class ModelTable:
    """``measured = table(allocation, features, iteration) · run effect · noise``, per metric, on a log scale.

    Shapes: M metrics, A allocations (the whole grid, as in ``Layout.allocations``), C feature cells (one node per
    feature; 1 without features), I iteration bins, R resources, F features, K members of the belief.

    Attributes:
        log_mean: natural log of each metric's median, [M, A, C, I].
        iteration_bin: bin of each iteration, [iterations].
        feature_nodes: ascending nodes per feature; between them the logs are interpolated (``feature_grid``).
        effect_sd: between-run spread of the log run effect, [M].
        noise_sd: within-run spread of the log residual, [M].
        drift_sd: spread per iteration of the random walk of the log run effect, [M].
        marginal_low, marginal_high: conformal log offsets of an iteration of a new run at ``level``, [M].
        residual_low, residual_high: the same once the run effect is known, [M].
        change_seconds: extra seconds of an iteration in which a resource is changed, [R].
        seen_low, seen_high: bounds of the allocations that the samples hold, [R], in units.
        feature_low, feature_high: bounds of the features that the samples hold, [F].
        level: the share of iterations that the intervals are made for.
        informed: whether samples stand behind it.
        members: log offsets against ``log_mean`` of models that the samples can't tell apart, equally likely before a
            run's first report, [K, M, A, C, I]; None: there is one model.
        noise_by_bin: ``noise_sd`` by iteration bin, [M, I]; None: the same in all.
        rule: name of the heuristic that answers without an agent; None: model-predictive control.
        evidence: why that one does, in words; empty for None.
        terms: value, low and high of the targets, weights and prices under which it was chosen, by name.
        courses: features over the iterations of X past executions, [X, G, F], where iteration i is at i · G //
            iterations; not a number for a feature that no execution changed. None: no execution changed any.
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
    members: NDArray[np.float32] | None = None
    noise_by_bin: Floats | None = None
    courses: NDArray[np.float32] | None = None
    rule: str | None = None
    evidence: str = ""
    terms: dict[str, list[float]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The table as safetensors."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_ARRAYS}
        arrays = {name: array for name, array in arrays.items() if array is not None}
        arrays |= {f"feature_nodes.{i}": nodes for i, nodes in enumerate(self.feature_nodes)}
        header = {name: getattr(self, name) for name in _HEADER}
        return written(arrays, {"format": FORMAT, "header": json.dumps(header)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what ``to_bytes`` wrote.

        Raises:
            IncompatibleModel: ``data`` is no such table, or one of another version.
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

    @cached_property
    def cells(self) -> int:
        """Number of feature cells C."""
        return int(self.log_mean.shape[2])

    @cached_property
    def believed(self) -> Self | None:
        """All members side by side as feature cells, [M, A, K · C, I], members slowest; None: there is one model."""
        if self.members is None or len(self.members) < 2:
            return None
        apart = np.moveaxis(self.log_mean + self.members, 0, 2)  # [M, A, K, C, I]
        return replace(self, log_mean=apart.reshape(*apart.shape[:2], -1, apart.shape[4]), members=None)

    def thinned(self, count: int) -> Self:
        """With at most ``count`` members: they are drawn independently, so any of them are a belief too."""
        return self if self.members is None else replace(self, members=self.members[:count])

    def member(self, index: int) -> Self:
        """One member of the belief, as if it were the model; the model itself where there is one."""
        if self.members is None:
            return self
        return replace(self, log_mean=self.log_mean + self.members[index], members=None)

    def point(self, features: Floats) -> Point:
        """Where ``features`` [B, F] stand among the feature cells."""
        return locate(self.feature_nodes, features)


_HEADER = ("level", "informed", "rule", "evidence", "terms")
_NOT_ARRAYS = {"feature_nodes", *_HEADER}


def uninformed(layout: Layout) -> ModelTable:
    """What is assumed before any sample: seconds fall with the square root of the allocation, at any scale.

    The run effect's prior is so wide that the first report sets the scale.
    """
    metrics, allocations = len(layout.metrics), len(layout.allocations)
    share = np.maximum(layout.allocations / layout.allocations.max(axis=0), 1e-3)
    log_mean = np.zeros((metrics, allocations, 1, 1), np.float32)
    log_mean[:] = _guess(layout)[:, None, None, None]
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


def _guess(layout: Layout) -> Floats:
    """Log of a first guess per metric: its target, spread over the run when it is for the whole run."""
    per_run = np.array([m.scope == "run" for m in layout.spec.metrics])
    targets = np.nan_to_num(layout.targets, nan=1.0)
    return np.log(np.where(per_run, targets / layout.iterations, targets))


# A logged run: what was allocated and measured, whoever decided it.


class Log(NamedTuple):
    """One run of T iterations. R resources, M metrics, F features.

    Attributes:
        levels: allocation of each iteration, in steps, [T, R].
        metrics: as measured, [T, M].
        features: [T, F].
        targets: the run's own, [M]; not a number where a metric has none.
        chances: the probability with which each iteration's allocation was chosen, [T]; None where it is not known.
    """

    levels: NDArray[np.int16]
    metrics: NDArray[np.float64]
    features: NDArray[np.float64]
    targets: NDArray[np.float64]
    chances: NDArray[np.float64] | None = None


def from_reports(layout: Layout, reports: Sequence[dict[str, Any]], targets: dict[str, float]) -> Log:
    """The log of a run's reports, in order; `targets` are the run's own, the layout's hold for the rest.

    Raises:
        InvalidInput: a report doesn't fit the layout.
    """
    encoded = [layout.encode_report(r["allocation"], r["metrics"], r["features"]) for r in reports]
    levels, metrics, features = zip(*encoded, strict=True)
    own = [targets.get(name, default) for name, default in zip(layout.metrics, layout.targets, strict=True)]
    return Log(
        np.array(levels, np.int16),
        np.array(metrics, np.float64),
        np.array(features, np.float64).reshape(len(reports), len(layout.features)),
        np.array(own, np.float64),
    )
