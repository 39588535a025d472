"""What a run of kind ``cluster`` reports: jobs that came and went, and nodes. Times are seconds since its start."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from app.kinds.fields import NonNegative, Strict

LARGEST_REPORT = 10_000
Id = Annotated[str, Field(min_length=1, max_length=255)]
Gpus = Annotated[int, Field(ge=1, le=1_000_000)]


class Submitted(Strict):
    """A job that came, or that is there."""

    job: Id
    gpus: Gpus = Field(description="that its owner asked for")
    queue: Id | None = Field(default=None, description="null: the least urgent")
    minimum: Gpus | None = Field(default=None, description="null: the spec's, or what was asked for where that is less")
    maximum: Gpus | None = Field(default=None, description="null: the spec's, or what was asked for where that is more")
    at: NonNegative | None = Field(default=None, description="when it came; null: the moment of the report")


class Ended(Strict):
    """A job that is finished, or has failed: it leaves."""

    job: Id
    state: Literal["finished", "failed"] = "finished"


class NodeChange(Strict):
    """How many GPUs a node has now; 0: it is lost."""

    node: Id = Field(description="A class and a number from 0.", examples=["a100-0"])
    gpus: Annotated[int, Field(ge=0, le=64)]


class ClusterReport(Strict):
    """What has happened since the last report, or, where it is ``whole``, all that is there."""

    kind: Literal["cluster"] = "cluster"
    at: NonNegative = Field(description="The moment of the report.")
    whole: bool = Field(
        default=False,
        description="Whether `submitted` and `nodes` tell all: jobs that are not in it have left, nodes that are not "
        "in it have the GPUs that the spec says. Jobs that were there keep what is known of them.",
    )
    submitted: Annotated[tuple[Submitted, ...], Field(max_length=LARGEST_REPORT)] = ()
    ended: Annotated[tuple[Ended, ...], Field(max_length=LARGEST_REPORT)] = ()
    nodes: Annotated[tuple[NodeChange, ...], Field(max_length=LARGEST_REPORT)] = ()
