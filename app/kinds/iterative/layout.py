"""Layout of an ``iterative`` workload: names, spaces and scales derived from its spec."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from app.charts.text import exact
from app.kinds.contract.inputs import LARGEST_NUMBER, SMALLEST_NUMBER, FieldIssue, InvalidInput
from app.kinds.iterative.spec import SECONDS, Spec

if TYPE_CHECKING:
    from gymnasium import spaces


# Entries of an observation, derived from the spec alone.


AHEAD = 4
"""Number of future iterations in an observation."""


def observation_names(spec: Spec) -> tuple[str, ...]:
    """Return the names of the observation's entries in order; a policy only fits workloads with equal names."""
    targeted = [m for m in spec.metrics if m.target is not None]
    actions = prod(2 * r.max_steps + 1 for r in spec.resources)
    return (
        *(f"allocation.{r.name}" for r in spec.resources),
        *(f"measured.{m.name}" for m in targeted),
        *(f"left.{m.name}" for m in targeted if m.scope == "run"),
        *(f"effect.{m.name}" for m in spec.metrics),
        "progress",
        *(f"feature.{f.name}" for f in spec.features),
        *(f"target.{m.name}" for m in targeted),
        "weight.sla",
        "weight.cost",
        "weight.change",
        *(f"price.{r.name}" for r in spec.resources),
        *(f"length.{ahead}" for ahead in range(AHEAD)),
        *(f"scaling.{ahead}" for ahead in range(AHEAD)),
        *(f"advice.{action}" for action in range(actions)),
    )


# Names, spaces and scales, derived once from a spec.


class Layout:
    """Representation of one spec: R resources, M metrics, F features, A allocations, N actions.

    An allocation in *levels* is the number of grid steps of each resource above its minimum.

    Attributes:
        spec: spec that the layout is derived from.
        resources, metrics, features: names, in order.
        levels: number of levels of each resource, [R]; tops: highest level, [R].
        iterations: number of iterations of a run.
        allocations: all allocations of the grid in the resources' units, [A, R], last resource fastest.
        deltas: change of the levels by each joint action, [N, R].
        noop: action that changes nothing.
        seconds: position of ``iteration_seconds`` among the metrics.
        strides: rows of ``allocations`` that a level of each resource spans, [R].
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.resources = [r.name for r in spec.resources]
        self.units = {r.name: r.unit for r in spec.resources}
        self.metrics = [m.name for m in spec.metrics]
        self.features = [f.name for f in spec.features]
        self.levels = tuple(r.levels for r in spec.resources)
        self.seconds = self.metrics.index(SECONDS)
        self.iterations = spec.iterations
        grids = [r.minimum + r.step * np.arange(r.levels) for r in spec.resources]
        self.allocations: NDArray[np.float64] = _product(grids)
        self.deltas: NDArray[np.int32] = _product(
            [np.arange(-r.max_steps, r.max_steps + 1) for r in spec.resources]
        ).astype(np.int32)
        self.tops = np.array(self.levels, np.int32) - 1
        self.noop = len(self.deltas) // 2
        self.strides = np.array([math.prod(self.levels[i + 1 :]) for i in range(len(self.levels))])

    @cached_property
    def targets(self) -> NDArray[np.float64]:
        """Targets of the spec's M metrics in their units, [M]; NaN: none."""
        return np.array([np.nan if m.target is None else m.target for m in self.spec.metrics])

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Required probabilities of the targets of the spec's M metrics, [M]; NaN: none."""
        return np.array([np.nan if m.probability is None else m.probability for m in self.spec.metrics])

    @cached_property
    def prices(self) -> NDArray[np.float64]:
        """Price of each of R resources per unit and hour, in the currency of all prices, [R]."""
        return np.array([r.price_per_hour for r in self.spec.resources])

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Weights of the reward's three terms sla, cost and change, [3], without unit."""
        w = self.spec.weights
        return np.array([w.sla, w.cost, w.change])

    @cached_property
    def largest_action(self) -> int:
        """Largest number of levels that one action changes, summed over resources."""
        return int(np.abs(self.deltas).sum(axis=1).max())

    @cached_property
    def start_levels(self) -> NDArray[np.int32]:
        """Initial allocation of the spec's R resources, in levels, [R]."""
        return np.array([r.level(r.start) for r in self.spec.resources], np.int32)

    @cached_property
    def observation_names(self) -> tuple[str, ...]:
        """Names of the observation's D entries."""
        return observation_names(self.spec)

    @cached_property
    def observation_size(self) -> int:
        """Length D of an observation."""
        return len(self.observation_names)

    @cached_property
    def observation_space(self) -> spaces.Box:
        """Space of observations: D unbounded float32 of order 1; raises ImportError without the extra ``worker``."""
        from gymnasium import spaces  # from the extra `worker`, which the service doesn't install

        return spaces.Box(-np.inf, np.inf, (self.observation_size,), np.float32)

    @cached_property
    def action_space(self) -> spaces.Discrete:
        """Space of the N joint actions, from 0; raises ImportError without the extra ``worker``."""
        from gymnasium import spaces

        return spaces.Discrete(len(self.deltas))

    def index(self, levels: NDArray[np.integer]) -> NDArray[np.intp]:
        """Return the row of ``allocations``, [...], for ``levels`` [..., R] of R resources; unchecked."""
        rows: NDArray[np.intp] = levels[..., -1].astype(np.intp)  # column by column: a product of integers is slow
        for resource, stride in enumerate(self.strides[:-1]):
            rows += levels[..., resource] * stride
        return rows

    def legal(self, levels: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return a mask [N, B] of the N actions that keep ``levels`` [B, R] (B runs, R resources) within bounds."""
        legal = np.ones((len(self.deltas), len(levels)), np.bool_)
        for resource, count in enumerate(self.levels):
            after = self.deltas[:, resource, None] + levels[None, :, resource]
            legal &= (after >= 0) & (after < count)
        return legal

    def allocation_dict(self, levels: NDArray[np.integer]) -> dict[str, float]:
        """Return the allocation ``levels`` [R] in the resources' units, by resource name."""
        return {r.name: _plain(r.amount(int(level))) for r, level in zip(self.spec.resources, levels, strict=True)}

    def delta_dict(self, before: NDArray[np.integer], after: NDArray[np.integer]) -> dict[str, float]:
        """Return the change from ``before`` to ``after`` (levels [R]) in the resources' units, by resource name."""
        pairs = zip(self.spec.resources, before, after, strict=True)
        return {r.name: _plain(r.step * (int(b) - int(a))) for r, a, b in pairs}

    def encode_report(
        self, allocation: Mapping[str, float], metrics: Mapping[str, float], features: Mapping[str, float]
    ) -> tuple[list[int], list[float], list[float]]:
        """Return a report in this layout's order: levels of R resources, M metrics, and F features.

        Raises:
            InvalidInput: a name is unknown or missing, or a value out of bounds, off the step grid, or not finite.
        """
        issues: list[FieldIssue] = []
        levels = self._levels(allocation, issues)
        measured = self._numbers("metrics", self.metrics, metrics, issues, positive=True)
        feature_values = self._feature_values(features, issues)
        if issues:
            raise InvalidInput(issues)
        return levels, measured, feature_values

    def encode_allocation(self, allocation: Mapping[str, float]) -> list[int]:
        """Return the levels of R resources of an allocation, given by name, in this layout's order.

        Raises:
            InvalidInput: a name is unknown or missing, or a value out of bounds, or off the step grid.
        """
        issues: list[FieldIssue] = []
        levels = self._levels(allocation, issues)
        if issues:
            raise InvalidInput(issues)
        return levels

    def encode_features(self, features: Mapping[str, float]) -> list[float]:
        """Return the values of features, given by name, in this layout's order.

        Raises:
            InvalidInput: a name is unknown or missing, or a value out of bounds or not finite.
        """
        issues: list[FieldIssue] = []
        feature_values = self._feature_values(features, issues)
        if issues:
            raise InvalidInput(issues)
        return feature_values

    def _feature_values(self, features: Mapping[str, float], issues: list[FieldIssue]) -> list[float]:
        numbers = self._numbers("features", self.features, features, issues, positive=False)
        for feature, value in zip(self.spec.features, numbers, strict=True):
            if not feature.minimum <= value <= feature.maximum:
                accepted = f"must be between {exact(feature.minimum)} and {exact(feature.maximum)}"
                issues.append(FieldIssue(f"/features/{feature.name}", accepted, value))
        return numbers

    def _levels(self, allocation: Mapping[str, float], issues: list[FieldIssue]) -> list[int]:
        _check_names("allocation", self.resources, allocation, issues)
        levels = []
        for resource in self.spec.resources:
            value = allocation.get(resource.name)
            level = resource.level(value) if _finite(value) else None
            if level is None:
                issues.append(FieldIssue(f"/allocation/{resource.name}", resource.accepted, value))
            levels.append(level or 0)
        return levels

    @staticmethod
    def _numbers(
        part: str, names: list[str], numbers: Mapping[str, float], issues: list[FieldIssue], *, positive: bool
    ) -> list[float]:
        _check_names(part, names, numbers, issues)
        accepted = f"must be {exact(SMALLEST_NUMBER)}" if positive else f"must be {exact(-LARGEST_NUMBER)}"
        accepted += f" to {exact(LARGEST_NUMBER)}"
        values = []
        for name in names:
            value = numbers.get(name)
            if not _finite(value) or abs(value) > LARGEST_NUMBER or (positive and value < SMALLEST_NUMBER):
                issues.append(FieldIssue(f"/{part}/{name}", accepted, value))
                value = None
            values.append(1.0 if value is None else float(value))
        return values


def _product(axes: list[NDArray[Any]]) -> NDArray[np.float64]:
    return np.array(list(itertools.product(*axes)), dtype=np.float64)


def _finite(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _check_names(part: str, names: list[str], values: Mapping[str, float], issues: list[FieldIssue]) -> None:
    if len(values) == len(names) and all(name in values for name in names):
        return
    for name in values:
        if name not in names:
            accepted = f"unknown name; known: {', '.join(names) or 'none'}"
            issues.append(FieldIssue(f"/{part}/{name}", accepted, values[name]))


def _plain(value: float) -> float:
    return int(value) if value == int(value) else value
