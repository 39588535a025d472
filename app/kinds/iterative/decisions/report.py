"""What a run of kind ``iterative`` reports."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType
from pydantic import BaseModel, ConfigDict, Field

from app.kinds.contract.inputs import invalid
from app.kinds.contract.nesting import TOO_DEEP, deep_place


class IterationReport(BaseModel):
    """What one iteration used and measured."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["iterative"] = "iterative"
    allocation: dict[str, float] = Field(examples=[{"gpus": 4}])
    metrics: dict[str, float] = Field(examples=[{"iteration_seconds": 31.5}])
    features: dict[str, float] = Field(default={}, examples=[{"batch": 128}])


class EncodedReport(msgspec.Struct, forbid_unknown_fields=True):
    """`IterationReport` on the hot path; what it is kept as does not repeat the kind of its run."""

    allocation: dict[str, float]
    metrics: dict[str, float]
    features: dict[str, float] = {}
    kind: Literal["iterative"] | UnsetType = UNSET


_decode = msgspec.json.Decoder(EncodedReport).decode


def decode(body: bytes) -> EncodedReport:
    """The report, read fast; what can't be read so is read again by Pydantic, whose errors name each field."""
    try:
        report = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        place = deep_place(body)
        if place is not None:
            raise invalid(place, TOO_DEEP, None) from None
        return EncodedReport(**IterationReport.model_validate_json(body, strict=True).model_dump(exclude={"kind"}))
    report.kind = UNSET
    return report
