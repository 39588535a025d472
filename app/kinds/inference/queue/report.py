"""What a run of kind ``inference`` reports: a batch of events. Times are seconds since the run's start, never falling.

Pydantic's models are the schema; their ``msgspec`` twins are read on the hot path, and equal reports are encoded to
equal bytes.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from pydantic import Field

from app.kinds.contract.report_reading import decoded
from app.kinds.fields import Strict
from app.kinds.inference.samples.limits import LARGEST, LATEST

LONGEST_ID = 63
"""Characters of a request's name: a decision names every request that it starts or drops."""
LARGEST_REPORT = 10_000
Id = Annotated[str, Field(min_length=1, max_length=255)]
RequestId = Annotated[str, Field(pattern=r"^[^#]", max_length=LONGEST_ID)]
BatchSize = Annotated[int, Field(ge=1, le=1_024)]
Moment = Annotated[float, Field(ge=0, le=LATEST, allow_inf_nan=False)]
Took = Annotated[float, Field(gt=0, le=LARGEST, allow_inf_nan=False)]
ServerState = Literal["starting", "up", "down"]


class Arrived(Strict):
    """A request that arrived."""

    user: Id
    at: Moment
    id: RequestId | None = Field(default=None, description="null: a number is assigned; a name must not begin with `#`")


class Finished(Strict):
    """The end of a batch; its details are used for the run's samples, which are made from reports only."""

    server: Id = Field(description="Class and index, starting at 0.", examples=["cpu-0"])
    at: Moment
    variant: Id | None = None
    batch: BatchSize | None = None
    seconds: Took | None = Field(default=None, description="measured duration of the batch")


class ServerChange(Strict):
    """A change of a server's state. If it goes down, the requests of its batch wait again."""

    server: Id
    state: ServerState
    at: Moment | None = Field(default=None, description="null: the time of the report")


class Started(Strict):
    """A batch of the user's oldest requests that the client itself started; only in carried runs."""

    server: Id
    user: Id
    variant: Id
    batch: BatchSize
    at: Moment


class InferenceReport(Strict):
    """Events since the last report, in order of time within each list."""

    kind: Literal["inference"] = "inference"
    at: Moment = Field(description="Time of the report, in seconds since the run's start.")
    arrived: Annotated[tuple[Arrived, ...], Field(max_length=LARGEST_REPORT)] = ()
    finished: Annotated[tuple[Finished, ...], Field(max_length=LARGEST_REPORT)] = ()
    servers: Annotated[tuple[ServerChange, ...], Field(max_length=LARGEST_REPORT)] = ()
    started: Annotated[tuple[Started, ...], Field(max_length=LARGEST_REPORT)] = ()


Text = Annotated[str, Meta(min_length=1, max_length=255)]
Given = Annotated[str, Meta(pattern="^[^#]", max_length=LONGEST_ID)]
Size = Annotated[int, Meta(ge=1, le=1_024)]
Time = Annotated[float, Meta(ge=0, le=LATEST)]
TookNumber = Annotated[float, Meta(gt=0, le=LARGEST)]


class EncodedArrived(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, gc=False):
    """`Arrived`."""

    user: Text
    at: Time
    id: Given | None = None


class EncodedFinished(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, gc=False):
    """`Finished`."""

    server: Text
    at: Time
    variant: Text | None = None
    batch: Size | None = None
    seconds: TookNumber | None = None


class EncodedChange(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, gc=False):
    """`ServerChange`."""

    server: Text
    state: ServerState
    at: Time | None = None


class EncodedStarted(Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """`Started`."""

    server: Text
    user: Text
    variant: Text
    batch: Size
    at: Time


class EncodedReport(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """`InferenceReport`."""

    at: Time
    kind: Literal["inference"] = "inference"
    arrived: Annotated[tuple[EncodedArrived, ...], Meta(max_length=LARGEST_REPORT)] = ()
    finished: Annotated[tuple[EncodedFinished, ...], Meta(max_length=LARGEST_REPORT)] = ()
    servers: Annotated[tuple[EncodedChange, ...], Meta(max_length=LARGEST_REPORT)] = ()
    started: Annotated[tuple[EncodedStarted, ...], Meta(max_length=LARGEST_REPORT)] = ()


_decoder = msgspec.json.Decoder(EncodedReport)


def decode(body: bytes) -> EncodedReport:
    """The report.

    Raises:
        ValidationError, InvalidInput: it is none.
    """
    return decoded(body, _decoder, InferenceReport)
