"""Requested allocations that a run didn't get: decisions plan with what is there, and request again with back-off.

A report says which allocation was requested, and that it is still awaited or was refused. An awaited one is decided as
any other, but what is projected is what is there. A refused one, and what asks for still more of the same resources, is
excluded until its back-off ends; each further refusal doubles the back-off. So is one that decisions have given up
while it was awaited, from the second time on. Shapes: R resources, N actions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Protocol

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from app.charts.text import count_text, moment
from app.kinds.contract.inputs import InvalidInput, invalid, timestamp
from app.kinds.fields import Part
from app.kinds.iterative.layout import Layout

State = Literal["requested", "refused", "timed_out"]
FIRST_WAIT_SECONDS = 60.0
"""Least back-off in seconds after a first refusal; at least one iteration."""
MOST_DOUBLINGS = 6
MOST_REQUESTS = 8
"""Requests that a run remembers, the latest ones."""


class RequestedAllocation(Part, frozen=True):
    """An allocation that was requested and is not there."""

    allocation: Annotated[
        Annotated[dict[str, float], Meta(max_length=64)],
        Meta(description="What was requested, by resource.", examples=[{"gpus": 8}]),
    ]
    state: Annotated[
        State,
        Meta(
            description="`requested`: awaited; `refused`; `timed_out`: it was awaited for too long and withdrawn.",
            examples=["refused"],
        ),
    ]
    since: Annotated[datetime, Meta(tz=True, description="When it was requested.", examples=["2026-01-01T00:00:00Z"])]
    reason: Annotated[
        Annotated[str, Meta(max_length=200)],
        Meta(
            description="Why it isn't there, as the place where the command runs names it: `Deferred` or `Infeasible` "
            "(Kubernetes), `Resources` or `QOSMaxGRESPerUser` (Slurm).",
            examples=["QOSMaxGRESPerUser"],
        ),
    ] = ""


class NotGranted(BaseModel):
    """An allocation that was requested and is not there: this decision plans with what is."""

    allocation: dict[str, float] = Field(description="What is there, by resource.", examples=[{"gpus": 4}])
    requested: dict[str, float] = Field(description="What was requested, by resource.", examples=[{"gpus": 8}])
    state: State = Field(description="`requested`: it is awaited, and projections are of what is there.")
    since: datetime = Field(description="When it was requested.")
    reason: str = Field(description="Why it isn't there, as reported; empty: unknown.")
    refusals: int = Field(description="How often it was refused so far.")
    next_request: int | None = Field(
        description="Iteration from which it may be requested again; null: it is awaited, or the run is over before."
    )


class Request(msgspec.Struct, frozen=True):
    """A request of a run that was not granted.

    Attributes:
        levels: the requested allocation, in grid steps above the minimum, [R].
        moved: sign of its difference from what was there instead, [R].
        state, since, reason: its state, time of the request (RFC 3339), and text on the state.
        times: how often it was refused.
        until: iteration from which it may be requested again.
        withdrawals: how often it was given up by a decision since the last refusal; its state is ``timed_out`` then.
    """

    levels: tuple[int, ...]
    moved: tuple[int, ...]
    state: State
    since: str
    reason: str
    times: int = 0
    until: int = 0
    withdrawals: int = 0

    @property
    def withdrawn(self) -> bool:
        """Whether a decision has given it up."""
        return self.withdrawals > 0 and self.state != "requested"

    def covers(self, levels: NDArray[np.integer] | Sequence[int]) -> NDArray[np.bool_]:
        """Return a mask, [...], of allocations ``levels`` [..., R] that ask for as much as this, or more, of each
        resource that it would have changed."""
        moved = np.array(self.moved)
        beyond = (np.asarray(levels) - np.array(self.levels)) * moved >= 0
        mask: NDArray[np.bool_] = (beyond | (moved == 0)).all(axis=-1)
        return mask


def checked_request(layout: Layout, body: RequestedAllocation, levels: Sequence[int]) -> Request:
    """Return a report's request in the layout's order; ``levels`` [R]: the allocation that is there.

    Raises:
        InvalidInput: a name is unknown or missing, a value out of bounds, ``since`` is outside the years of UTC, or all
            of it is there.
    """
    try:
        requested = layout.encode_allocation(body.allocation)
    except InvalidInput as error:
        issues = [one._replace(pointer=f"/requested{one.pointer}") for one in error.errors]
        raise InvalidInput(issues) from error
    moved = tuple(int(np.sign(wanted - there)) for wanted, there in zip(requested, levels, strict=True))
    if not any(moved):
        raise invalid("/requested/allocation", "must differ from `allocation`, which is there", dict(body.allocation))
    try:
        since = timestamp(body.since.astimezone(UTC))
    except OverflowError as error:
        raise invalid("/requested/since", "must be in the years 1 to 9999 (UTC)", body.since.isoformat()) from error
    reason = "".join(each if each.isprintable() else " " for each in body.reason)  # a cluster's may have several lines
    return Request(tuple(requested), moved, body.state, since, reason)


def after_report(
    before: Sequence[Request], request: Request | None, levels: Sequence[int], following: int, seconds: float
) -> tuple[tuple[Request, ...], str]:
    """Return a run's requests after a report, and the state that one of them has reached by it: ``requested``,
    ``granted``, ``refused`` or ``timed_out``; empty: none has.

    Args:
        before: the requests before it.
        request: what the report says was requested; None: nothing, or it is there.
        levels: the reported allocation, [R].
        following: number of the next iteration.
        seconds: duration of the reported iteration.
    """
    left = [one for one in before if not one.covers(levels)]
    rest = [one for one in left if one.state != "requested"]
    if request is None:
        given_up = awaited(left)
        if given_up is not None:  # the first time is free: it may have been granted meanwhile, or circumstances changed
            times, until = given_up.withdrawals, following + _wait(given_up.withdrawals, seconds)
            rest.append(msgspec.structs.replace(given_up, state="timed_out", until=until, withdrawals=times + 1))
        return tuple(rest), "granted" if len(left) < len(before) else ""
    known = next((one for one in left if one.levels == request.levels), None)
    others = [one for one in rest if one.levels != request.levels][1 - MOST_REQUESTS :]
    if request.state == "requested":
        if known is not None:
            request = msgspec.structs.replace(request, times=known.times, withdrawals=known.withdrawals)
        return (*others, request), "requested" if known is None or known.state != "requested" else ""
    if known is not None and known.state != "requested" and not known.withdrawn and following <= known.until:
        return tuple(rest), ""  # the same refusal once more: it hasn't been asked for since
    times = (known.times if known else 0) + 1
    refused = msgspec.structs.replace(request, times=times, until=following + _wait(times, seconds))
    return (*others, refused), request.state


def _wait(times: int, seconds: float) -> int:
    """Return the back-off in iterations of ``seconds`` each, doubled by each of ``times`` but the first; 0 times: 0."""
    if not times:
        return 0
    return int(2 ** min(times - 1, MOST_DOUBLINGS) * max(1, math.ceil(FIRST_WAIT_SECONDS / seconds)))


def awaited(requests: Sequence[Request]) -> Request | None:
    """Return the request that is awaited; None: there is none."""
    return next((one for one in requests if one.state == "requested"), None)


def excluded(requests: Sequence[Request], iteration: int, levels: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return a mask, [N], of the allocations ``levels`` [N, R] that are known to be refused in ``iteration``."""
    result = np.zeros(len(levels), np.bool_)
    for one in requests:
        if one.state != "requested" and iteration < one.until:
            result |= one.covers(levels)
    return result


class Words(Protocol):
    """An allocation as JSON, ``encoded``, and in ``words``."""

    @property
    def encoded(self) -> msgspec.Raw:
        """The allocation as JSON."""
        ...

    @property
    def words(self) -> str:
        """The allocation in words."""
        ...


class Outcome(msgspec.Struct, frozen=True):
    """Result of a run's requests in a decision: its field ``granted`` (None: none) and a text; empty: none."""

    granted: dict[str, Any] | None
    text: str


def outcome(
    requests: Sequence[Request],
    decided: NDArray[np.integer],
    present: Words,
    allocation_text: Callable[[Sequence[int]], Words],
    iteration: int,
    iterations: int,
) -> Outcome:
    """Return what a decision for ``iteration`` says of a run's ``requests``.

    ``decided`` [R]: the decided allocation; ``present``: the one that is there; ``allocation_text`` words any levels;
    ``iterations``: number of iterations of the run."""
    again = [one for one in requests if one.times and one.until <= iteration and one.covers(decided)][:1]
    waits = awaited(requests)
    past = [one for one in requests if one.state != "requested" and iteration < one.until]
    refused = [one for one in past if not one.withdrawn]
    if waits is None and not refused:
        texts = [f"requested again after {count_text(one.times, 'refusal')}" for one in again]
        texts += [f"{allocation_text(one.levels).words} isn't requested before iteration {one.until}" for one in past]
        return Outcome(None, "; ".join(texts))
    one = waits or refused[-1]
    requested = allocation_text(one.levels)
    waits_for_it = waits is not None and waits.levels == tuple(decided)
    plans = f"plans with {(present if waits_for_it else allocation_text(decided.tolist())).words}"
    why = f", {one.reason}" if one.reason else ""
    following = one.until if waits is None and one.until < iterations else None
    if waits is not None:
        how, then = f"requested since {moment(datetime.fromisoformat(one.since))}", ""
    else:
        how = f"{'refused' if one.state == 'refused' else 'timed out'} {count_text(one.times, 'time')}"
        then = ", isn't requested again" if following is None else f", asks again after iteration {following - 1}"
    text = f"not granted: {requested.words} ({how}{why}); {plans}{then}"
    return Outcome(
        {
            "allocation": present.encoded,
            "requested": requested.encoded,
            "state": one.state,
            "since": one.since,
            "reason": one.reason,
            "refusals": one.times,
            "next_request": following,
        },
        text,
    )
