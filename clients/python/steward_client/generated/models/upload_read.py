from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.rejection import Rejection


T = TypeVar("T", bound="UploadRead")


@_attrs_define
class UploadRead:
    """What became of an upload."""

    accepted: int
    """ Executions stored. """
    duplicate: int
    """ Executions that were stored already, with the same content. """
    rejected: int
    """ Executions of which nothing was kept. """
    iterations: int
    """ Iterations of the accepted executions. """
    rejections: list[Rejection]
    """ Why, one per rejected execution; the first 1,000. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        accepted = self.accepted

        duplicate = self.duplicate

        rejected = self.rejected

        iterations = self.iterations

        rejections = []
        for rejections_item_data in self.rejections:
            rejections_item = rejections_item_data.to_dict()
            rejections.append(rejections_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "accepted": accepted,
                "duplicate": duplicate,
                "rejected": rejected,
                "iterations": iterations,
                "rejections": rejections,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.rejection import Rejection  # noqa: PLC0415

        d = dict(src_dict)
        accepted = d.pop("accepted")

        duplicate = d.pop("duplicate")

        rejected = d.pop("rejected")

        iterations = d.pop("iterations")

        rejections = []
        _rejections = d.pop("rejections")
        for rejections_item_data in _rejections:
            rejections_item = Rejection.from_dict(rejections_item_data)

            rejections.append(rejections_item)

        upload_read = cls(
            accepted=accepted,
            duplicate=duplicate,
            rejected=rejected,
            iterations=iterations,
            rejections=rejections,
        )

        upload_read.additional_properties = d
        return upload_read

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
