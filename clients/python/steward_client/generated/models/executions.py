from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.cluster_execution import ClusterExecution
    from ..models.execution_read import ExecutionRead
    from ..models.inference_execution import InferenceExecution
    from ..models.stored_execution import StoredExecution
    from ..models.trace_execution import TraceExecution


T = TypeVar("T", bound="Executions")


@_attrs_define
class Executions:
    """A page of executions."""

    items: list[ClusterExecution | ExecutionRead | InferenceExecution | StoredExecution | TraceExecution]
    next_: None | str
    """ Link to the next page, to be used as is; null on the last page. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.cluster_execution import ClusterExecution  # noqa: PLC0415
        from ..models.execution_read import ExecutionRead  # noqa: PLC0415
        from ..models.inference_execution import InferenceExecution  # noqa: PLC0415
        from ..models.trace_execution import TraceExecution  # noqa: PLC0415

        items = []
        for items_item_data in self.items:
            items_item: dict[str, Any]
            if isinstance(items_item_data, ClusterExecution):
                items_item = items_item_data.to_dict()
            elif isinstance(items_item_data, InferenceExecution):
                items_item = items_item_data.to_dict()
            elif isinstance(items_item_data, ExecutionRead):
                items_item = items_item_data.to_dict()
            elif isinstance(items_item_data, TraceExecution):
                items_item = items_item_data.to_dict()
            else:
                items_item = items_item_data.to_dict()

            items.append(items_item)

        next_: None | str
        next_ = self.next_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "items": items,
                "next": next_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cluster_execution import ClusterExecution  # noqa: PLC0415
        from ..models.execution_read import ExecutionRead  # noqa: PLC0415
        from ..models.inference_execution import InferenceExecution  # noqa: PLC0415
        from ..models.stored_execution import StoredExecution  # noqa: PLC0415
        from ..models.trace_execution import TraceExecution  # noqa: PLC0415

        d = dict(src_dict)
        items = []
        _items = d.pop("items")
        for items_item_data in _items:

            def _parse_items_item(
                data: object,
            ) -> ClusterExecution | ExecutionRead | InferenceExecution | StoredExecution | TraceExecution:
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    items_item_type_0_type_0 = ClusterExecution.from_dict(data)

                    return items_item_type_0_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    items_item_type_0_type_1 = InferenceExecution.from_dict(data)

                    return items_item_type_0_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    items_item_type_0_type_2 = ExecutionRead.from_dict(data)

                    return items_item_type_0_type_2
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    items_item_type_0_type_3 = TraceExecution.from_dict(data)

                    return items_item_type_0_type_3
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                items_item_type_1 = StoredExecution.from_dict(data)

                return items_item_type_1

            items_item = _parse_items_item(items_item_data)

            items.append(items_item)

        def _parse_next_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_ = _parse_next_(d.pop("next"))

        executions = cls(
            items=items,
            next_=next_,
        )

        executions.additional_properties = d
        return executions

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
