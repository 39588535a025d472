from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.cluster_spec import ClusterSpec
    from ..models.inference_spec import InferenceSpec
    from ..models.iterative_spec import IterativeSpec
    from ..models.workflow_spec import WorkflowSpec
    from ..models.workload_listed_champions import WorkloadListedChampions
    from ..models.workload_listed_spec_type_1 import WorkloadListedSpecType1


T = TypeVar("T", bound="WorkloadListed")


@_attrs_define
class WorkloadListed:
    """A registered workload in a list, even if it can't be read."""

    id: str
    name: str
    kind: str
    spec: ClusterSpec | InferenceSpec | IterativeSpec | WorkflowSpec | WorkloadListedSpecType1
    """ The current spec; if it can't be read, as stored. """
    spec_version: int
    """ Starts at 1; incremented by every PATCH that changes something. """
    champion: int | None
    """ Version of the agent that serves the default role; null: a heuristic. """
    champions: WorkloadListedChampions
    """ Versions of the serving agents, by role; a role not listed is served by a heuristic. """
    revision: int
    """ Grows with every change that affects the workload's decisions. """
    created_at: datetime.datetime
    similar_workloads: list[str] | Unset = UNSET
    """ Names of the tenant's similar workloads from whose domain models its first decisions are predicted, until it
    has one of its own. """
    currency: str | Unset = UNSET
    """ Currency of all prices: a sign, a code, or `cost units`. """
    problem: None | str | Unset = UNSET
    """ Why the spec can't be read, e.g. its kind isn't installed; null if it can. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.cluster_spec import ClusterSpec  # noqa: PLC0415
        from ..models.inference_spec import InferenceSpec  # noqa: PLC0415
        from ..models.iterative_spec import IterativeSpec  # noqa: PLC0415
        from ..models.workflow_spec import WorkflowSpec  # noqa: PLC0415

        id = self.id

        name = self.name

        kind = self.kind

        spec: dict[str, Any]
        if isinstance(self.spec, ClusterSpec):
            spec = self.spec.to_dict()
        elif isinstance(self.spec, InferenceSpec):
            spec = self.spec.to_dict()
        elif isinstance(self.spec, IterativeSpec):
            spec = self.spec.to_dict()
        elif isinstance(self.spec, WorkflowSpec):
            spec = self.spec.to_dict()
        else:
            spec = self.spec.to_dict()

        spec_version = self.spec_version

        champion: int | None
        champion = self.champion

        champions = self.champions.to_dict()

        revision = self.revision

        created_at = self.created_at.isoformat()

        similar_workloads: list[str] | Unset = UNSET
        if not isinstance(self.similar_workloads, Unset):
            similar_workloads = self.similar_workloads

        currency = self.currency

        problem: None | str | Unset
        if isinstance(self.problem, Unset):
            problem = UNSET
        else:
            problem = self.problem

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "name": name,
                "kind": kind,
                "spec": spec,
                "spec_version": spec_version,
                "champion": champion,
                "champions": champions,
                "revision": revision,
                "created_at": created_at,
            }
        )
        if similar_workloads is not UNSET:
            field_dict["similar_workloads"] = similar_workloads
        if currency is not UNSET:
            field_dict["currency"] = currency
        if problem is not UNSET:
            field_dict["problem"] = problem

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cluster_spec import ClusterSpec  # noqa: PLC0415
        from ..models.inference_spec import InferenceSpec  # noqa: PLC0415
        from ..models.iterative_spec import IterativeSpec  # noqa: PLC0415
        from ..models.workflow_spec import WorkflowSpec  # noqa: PLC0415
        from ..models.workload_listed_champions import WorkloadListedChampions  # noqa: PLC0415
        from ..models.workload_listed_spec_type_1 import WorkloadListedSpecType1  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        name = d.pop("name")

        kind = d.pop("kind")

        def _parse_spec(
            data: object,
        ) -> ClusterSpec | InferenceSpec | IterativeSpec | WorkflowSpec | WorkloadListedSpecType1:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                spec_type_0_type_0 = ClusterSpec.from_dict(data)

                return spec_type_0_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                spec_type_0_type_1 = InferenceSpec.from_dict(data)

                return spec_type_0_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                spec_type_0_type_2 = IterativeSpec.from_dict(data)

                return spec_type_0_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                spec_type_0_type_3 = WorkflowSpec.from_dict(data)

                return spec_type_0_type_3
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            spec_type_1 = WorkloadListedSpecType1.from_dict(data)

            return spec_type_1

        spec = _parse_spec(d.pop("spec"))

        spec_version = d.pop("spec_version")

        def _parse_champion(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        champion = _parse_champion(d.pop("champion"))

        champions = WorkloadListedChampions.from_dict(d.pop("champions"))

        revision = d.pop("revision")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        similar_workloads = cast(list[str], d.pop("similar_workloads", UNSET))

        currency = d.pop("currency", UNSET)

        def _parse_problem(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        problem = _parse_problem(d.pop("problem", UNSET))

        workload_listed = cls(
            id=id,
            name=name,
            kind=kind,
            spec=spec,
            spec_version=spec_version,
            champion=champion,
            champions=champions,
            revision=revision,
            created_at=created_at,
            similar_workloads=similar_workloads,
            currency=currency,
            problem=problem,
        )

        workload_listed.additional_properties = d
        return workload_listed

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
