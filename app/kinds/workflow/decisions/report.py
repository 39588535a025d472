"""`app.kinds.workflow.queue.report` on the hot path; equal reports are encoded to equal bytes."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from app.kinds.contract.inputs import invalid
from app.kinds.contract.report_reading import decoded
from app.kinds.fields import Amount, Number, PositiveNumber, Time
from app.kinds.workflow.queue.report import MOST_PARENTS, MOST_TASKS, QueueReport
from app.kinds.workflow.spec import MAXIMUM_NODES

Id = Annotated[str, Meta(min_length=1, max_length=255)]
Text = Annotated[str, Meta(max_length=255)]
AtMost = Meta(max_length=MOST_TASKS)


class EncodedParent(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """``Parent`` on the fast path."""

    task: Id
    bytes: Amount = 0.0


class EncodedQueued(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """``QueuedTask`` on the fast path."""

    id: Id
    processors: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    submit: Time | None = None
    estimate: PositiveNumber | None = None
    memory_gb: Amount | None = None
    user: Text | None = None
    deadline: Number | None = None
    workflow: Text | None = None
    parents: Annotated[tuple[Id | EncodedParent, ...], Meta(max_length=MOST_PARENTS)] = ()


class EncodedRunning(EncodedQueued, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """``RunningTask`` on the fast path."""

    node: Id | None = None
    start: Time | None = None


class EncodedFinished(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """``FinishedTask`` on the fast path."""

    id: Id
    end: Time
    node: Id | None = None
    start: Time | None = None


class EncodedNode(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """``NodeReport`` on the fast path."""

    name: Id
    state: str
    since: Time | None = None


class EncodedQueue(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """``QueueReport`` on the fast path."""

    now: Time
    kind: Literal["workflow"] = "workflow"
    delta: bool = False
    queued: Annotated[tuple[EncodedQueued, ...], AtMost] = ()
    running: Annotated[tuple[EncodedRunning, ...], AtMost] = ()
    finished: Annotated[tuple[EncodedFinished, ...], AtMost] = ()
    withdrawn: Annotated[tuple[Id, ...], AtMost] = ()
    nodes: Annotated[tuple[EncodedNode, ...], Meta(max_length=MAXIMUM_NODES)] | None = None


_decoder = msgspec.json.Decoder(EncodedQueue)
_STATES = frozenset({"off", "starting", "up", "failed"})


def decode(body: bytes) -> EncodedQueue:
    """The report.

    Raises:
        ValidationError, InvalidInput: it is none.
    """
    report = decoded(body, _decoder, QueueReport)
    for at, node in enumerate(report.nodes or ()):
        if node.state not in _STATES:
            raise invalid(f"/nodes/{at}/state", f"must be one of {', '.join(sorted(_STATES))}", node.state)
    return report
