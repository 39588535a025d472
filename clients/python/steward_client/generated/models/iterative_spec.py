from __future__ import annotations

from collections.abc import Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.caps import Caps
    from ..models.criterion import Criterion
    from ..models.disturbances import Disturbances
    from ..models.feature import Feature
    from ..models.metric import Metric
    from ..models.resource import Resource
    from ..models.weights import Weights


T = TypeVar("T", bound="IterativeSpec")


@_attrs_define
class IterativeSpec:
    """A workload of kind ``iterative``: its resources, metrics with targets, features and preferences."""

    name: str
    resources: list[Resource]
    iterations: int
    kind: Literal["iterative"] | Unset = "iterative"
    metrics: list[Metric] | Unset = UNSET
    features: list[Feature] | Unset = UNSET
    weights: Weights | Unset = UNSET
    """ Relative weights, without unit, of the three terms of the reward. """
    criterion: Criterion | Unset = UNSET
    """ Limit on one simulated iteration: the lesser of a duration and a share of the real iteration. """
    use_earlier_workloads: bool | Unset = True
    """ Whether the first decisions, before a domain model is fitted, are also predicted from the tenant's similar
    earlier workloads, and this one's model serves later workloads so. """
    disturbances: Disturbances | Unset = UNSET
    """ Disturbances to expect in runs beyond what past executions show; agents are trained and evaluated with them.

    The iteration at which one begins is drawn uniformly over the run. As in a live run, it shows only in what is
    measured, and in a reported allocation that is less than the decided one. A ``pace_shift`` to slower paces also
    changes decisions at once: without an agent, targets are aimed at earlier, and allocations change less often.
    """
    caps: Caps | None | Unset = UNSET
    """ Limits for all runs of the workload in a month (UTC): those that run, and those that ended in it. """

    def to_dict(self) -> dict[str, Any]:
        from ..models.caps import Caps  # noqa: PLC0415

        name = self.name

        resources = []
        for resources_item_data in self.resources:
            resources_item = resources_item_data.to_dict()
            resources.append(resources_item)

        iterations = self.iterations

        kind = self.kind

        metrics: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.metrics, Unset):
            metrics = []
            for metrics_item_data in self.metrics:
                metrics_item = metrics_item_data.to_dict()
                metrics.append(metrics_item)

        features: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.features, Unset):
            features = []
            for features_item_data in self.features:
                features_item = features_item_data.to_dict()
                features.append(features_item)

        weights: dict[str, Any] | Unset = UNSET
        if not isinstance(self.weights, Unset):
            weights = self.weights.to_dict()

        criterion: dict[str, Any] | Unset = UNSET
        if not isinstance(self.criterion, Unset):
            criterion = self.criterion.to_dict()

        use_earlier_workloads = self.use_earlier_workloads

        disturbances: dict[str, Any] | Unset = UNSET
        if not isinstance(self.disturbances, Unset):
            disturbances = self.disturbances.to_dict()

        caps: dict[str, Any] | None | Unset
        if isinstance(self.caps, Unset):
            caps = UNSET
        elif isinstance(self.caps, Caps):
            caps = self.caps.to_dict()
        else:
            caps = self.caps

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "resources": resources,
                "iterations": iterations,
            }
        )
        if kind is not UNSET:
            field_dict["kind"] = kind
        if metrics is not UNSET:
            field_dict["metrics"] = metrics
        if features is not UNSET:
            field_dict["features"] = features
        if weights is not UNSET:
            field_dict["weights"] = weights
        if criterion is not UNSET:
            field_dict["criterion"] = criterion
        if use_earlier_workloads is not UNSET:
            field_dict["use_earlier_workloads"] = use_earlier_workloads
        if disturbances is not UNSET:
            field_dict["disturbances"] = disturbances
        if caps is not UNSET:
            field_dict["caps"] = caps

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.caps import Caps  # noqa: PLC0415
        from ..models.criterion import Criterion  # noqa: PLC0415
        from ..models.disturbances import Disturbances  # noqa: PLC0415
        from ..models.feature import Feature  # noqa: PLC0415
        from ..models.metric import Metric  # noqa: PLC0415
        from ..models.resource import Resource  # noqa: PLC0415
        from ..models.weights import Weights  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        resources = []
        _resources = d.pop("resources")
        for resources_item_data in _resources:
            resources_item = Resource.from_dict(resources_item_data)

            resources.append(resources_item)

        iterations = d.pop("iterations")

        kind = cast(Literal["iterative"] | Unset, d.pop("kind", UNSET))
        if kind != "iterative" and not isinstance(kind, Unset):
            raise ValueError(f"kind must match const 'iterative', got '{kind}'")

        _metrics = d.pop("metrics", UNSET)
        metrics: list[Metric] | Unset = UNSET
        if _metrics is not UNSET:
            metrics = []
            for metrics_item_data in _metrics:
                metrics_item = Metric.from_dict(metrics_item_data)

                metrics.append(metrics_item)

        _features = d.pop("features", UNSET)
        features: list[Feature] | Unset = UNSET
        if _features is not UNSET:
            features = []
            for features_item_data in _features:
                features_item = Feature.from_dict(features_item_data)

                features.append(features_item)

        _weights = d.pop("weights", UNSET)
        weights: Weights | Unset
        if isinstance(_weights, Unset):
            weights = UNSET
        else:
            weights = Weights.from_dict(_weights)

        _criterion = d.pop("criterion", UNSET)
        criterion: Criterion | Unset
        if isinstance(_criterion, Unset):
            criterion = UNSET
        else:
            criterion = Criterion.from_dict(_criterion)

        use_earlier_workloads = d.pop("use_earlier_workloads", UNSET)

        _disturbances = d.pop("disturbances", UNSET)
        disturbances: Disturbances | Unset
        if isinstance(_disturbances, Unset):
            disturbances = UNSET
        else:
            disturbances = Disturbances.from_dict(_disturbances)

        def _parse_caps(data: object) -> Caps | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                caps_type_0 = Caps.from_dict(data)

                return caps_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Caps | None | Unset, data)

        caps = _parse_caps(d.pop("caps", UNSET))

        iterative_spec = cls(
            name=name,
            resources=resources,
            iterations=iterations,
            kind=kind,
            metrics=metrics,
            features=features,
            weights=weights,
            criterion=criterion,
            use_earlier_workloads=use_earlier_workloads,
            disturbances=disturbances,
            caps=caps,
        )

        return iterative_spec
