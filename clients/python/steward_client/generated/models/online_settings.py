from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="OnlineSettings")


@_attrs_define
class OnlineSettings:
    """Options of algorithm `online`: seconds of a window, environment steps to learn in it, number of windows."""

    window_seconds: float | Unset = 300.0
    """ Length of a window, after which it learns from what runs reported in it and is evaluated. """
    steps: int | Unset = 50000
    """ Environment steps per window. """
    windows: int | None | Unset = UNSET
    """ Number of windows; default: until cancelled. """

    def to_dict(self) -> dict[str, Any]:
        window_seconds = self.window_seconds

        steps = self.steps

        windows: int | None | Unset
        if isinstance(self.windows, Unset):
            windows = UNSET
        else:
            windows = self.windows

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if window_seconds is not UNSET:
            field_dict["window_seconds"] = window_seconds
        if steps is not UNSET:
            field_dict["steps"] = steps
        if windows is not UNSET:
            field_dict["windows"] = windows

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        window_seconds = d.pop("window_seconds", UNSET)

        steps = d.pop("steps", UNSET)

        def _parse_windows(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        windows = _parse_windows(d.pop("windows", UNSET))

        online_settings = cls(
            window_seconds=window_seconds,
            steps=steps,
            windows=windows,
        )

        return online_settings
