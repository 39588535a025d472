from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.rejection import Rejection
    from ..models.remark import Remark
    from ..models.skipped_lines import SkippedLines


T = TypeVar("T", bound="UploadRead")


@_attrs_define
class UploadRead:
    """Result of an upload: numbers of executions stored, duplicate and rejected, and what was wrong."""

    accepted: int
    """ Executions stored. """
    duplicate: int
    """ Executions already stored with the same content. """
    rejected: int
    """ Executions of which nothing was stored. """
    iterations: int
    """ Iterations of the accepted executions; for traces, tasks. """
    rejections: list[Rejection]
    """ Reasons, one per rejected execution; the first 1,000. """
    lacks: list[str] | Unset = UNSET
    """ Information missing from a trace, and its consequences. """
    warnings: list[Remark] | Unset = UNSET
    """ What looks wrong in a trace or was left out. """
    skipped: list[SkippedLines] | Unset = UNSET
    """ Lines skipped with `skip_bad`, by reason, most frequent first; at most 21. """
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

        lacks: list[str] | Unset = UNSET
        if not isinstance(self.lacks, Unset):
            lacks = self.lacks

        warnings: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.warnings, Unset):
            warnings = []
            for warnings_item_data in self.warnings:
                warnings_item = warnings_item_data.to_dict()
                warnings.append(warnings_item)

        skipped: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.skipped, Unset):
            skipped = []
            for skipped_item_data in self.skipped:
                skipped_item = skipped_item_data.to_dict()
                skipped.append(skipped_item)

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
        if lacks is not UNSET:
            field_dict["lacks"] = lacks
        if warnings is not UNSET:
            field_dict["warnings"] = warnings
        if skipped is not UNSET:
            field_dict["skipped"] = skipped

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.rejection import Rejection  # noqa: PLC0415
        from ..models.remark import Remark  # noqa: PLC0415
        from ..models.skipped_lines import SkippedLines  # noqa: PLC0415

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

        lacks = cast(list[str], d.pop("lacks", UNSET))

        _warnings = d.pop("warnings", UNSET)
        warnings: list[Remark] | Unset = UNSET
        if _warnings is not UNSET:
            warnings = []
            for warnings_item_data in _warnings:
                warnings_item = Remark.from_dict(warnings_item_data)

                warnings.append(warnings_item)

        _skipped = d.pop("skipped", UNSET)
        skipped: list[SkippedLines] | Unset = UNSET
        if _skipped is not UNSET:
            skipped = []
            for skipped_item_data in _skipped:
                skipped_item = SkippedLines.from_dict(skipped_item_data)

                skipped.append(skipped_item)

        upload_read = cls(
            accepted=accepted,
            duplicate=duplicate,
            rejected=rejected,
            iterations=iterations,
            rejections=rejections,
            lacks=lacks,
            warnings=warnings,
            skipped=skipped,
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
