"""What a run of kind ``iterative`` reports."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from pydantic import BaseModel, ConfigDict, Field

from app.kinds.contract.inputs import invalid
from app.kinds.contract.report_reading import decoded
from app.kinds.iterative.upcoming import MOST_UPCOMING

LARGEST_BYTES = 1 << 20  # with as much announced as there may be; names take long to read
MOST_NAMES = 64
"""Of resources, metrics or features in a report; workloads have fewer."""
Numbers = Annotated[dict[str, float], Field(max_length=MOST_NAMES)]
EncodedNumbers = Annotated[dict[str, float], Meta(max_length=MOST_NAMES)]


class UpcomingIteration(BaseModel):
    """What is known in advance about one iteration."""

    model_config = ConfigDict(extra="forbid")

    features: Numbers = Field(description="All of the workload's features.", examples=[{"batch": 128}])


class IterationReport(BaseModel):
    """What one iteration used and measured."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["iterative"] = "iterative"
    allocation: Numbers = Field(examples=[{"gpus": 4}])
    metrics: Numbers = Field(examples=[{"iteration_seconds": 31.5}])
    features: Numbers = Field(default={}, examples=[{"batch": 128}])
    upcoming: list[UpcomingIteration] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        max_length=MOST_UPCOMING,
        description="The iterations right after this one, in order, as far as known: at most as many as are left. "
        "Replaces what was announced before; an empty list withdraws it; if omitted, it still holds.",
        examples=[[{"features": {"batch": 128}}, {"features": {"batch": 256}}]],
    )


class EncodedUpcoming(msgspec.Struct, forbid_unknown_fields=True):
    """`UpcomingIteration` on the hot path."""

    features: EncodedNumbers


class EncodedReport(msgspec.Struct, forbid_unknown_fields=True):
    """`IterationReport` on the hot path; what it is kept as does not repeat the kind of its run."""

    allocation: EncodedNumbers
    metrics: EncodedNumbers
    features: EncodedNumbers = {}
    upcoming: Annotated[list[EncodedUpcoming], Meta(max_length=MOST_UPCOMING)] | UnsetType | None = UNSET
    kind: Literal["iterative"] | UnsetType = UNSET


_decoder = msgspec.json.Decoder(EncodedReport)


def decode(body: bytes) -> EncodedReport:
    """The report.

    Raises:
        ValidationError, InvalidInput: it is none.
    """
    if len(body) > LARGEST_BYTES:
        raise invalid("", f"must have at most {LARGEST_BYTES:,} bytes", len(body))
    report = decoded(body, _decoder, IterationReport, exclude={"kind"}, exclude_unset=True)
    if report.upcoming is None:
        report.upcoming = UNSET
    report.kind = UNSET
    return report
