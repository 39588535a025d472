"""Requests of allocations to an actuator: granted at once, awaited, refused, or withdrawn after a time-out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from .contract import Actuator, ActuatorError, Allocation, CannotSet, Deferring

State = Literal["granted", "requested", "refused", "timed_out"]
GRANT_SECONDS = 600.0
"""Default time in seconds until a request that waits is withdrawn."""
FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS, SHARE = 1.0, 30.0, 0.1
"""Between two looks at a request that waits, and as a share of the time for which it has."""
LONGEST_REASON = 200


@dataclass(frozen=True)
class Request:
    """A request of an allocation.

    Attributes:
        allocation: the requested values, by resource.
        state: ``requested``: it waits; ``timed_out``: it waited for too long, and was withdrawn.
        since: when it was requested (UTC).
        reason: why it isn't granted, by the name that the cluster gives it, if it has one, else in words.
        message: the same in a sentence.
    """

    allocation: Allocation
    state: State
    since: datetime
    reason: str = ""
    message: str = ""

    @property
    def report(self) -> dict[str, Any]:
        """The request as a report of the API has it (``requested``), unless it is granted."""
        return {
            "allocation": dict(self.allocation),
            "state": self.state,
            "since": self.since.isoformat(),
            "reason": " ".join((self.reason or self.message).split())[:LONGEST_REASON],
        }


class Requests:
    """The requests of a run, one after the other: each replaces the one before.

    Attributes:
        last: the last request; None: there was none, or its refusal has been taken.
        granted_at: when the latest of those that waited was found to be granted, by the clock; 0: none was.

    Args:
        actuator: the actuator.
        seconds: time until a request that waits is withdrawn.
        clock: seconds of a monotonic clock.
        now: the time (UTC).
    """

    def __init__(
        self,
        actuator: Actuator,
        seconds: float = GRANT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._actuator, self._seconds, self._clock, self._now = actuator, seconds, clock, now
        self.last: Request | None = None
        self._late: Request | None = None  # a request that was granted since the last report
        self._asked = self._due = self.granted_at = 0.0

    @property
    def awaits(self) -> bool:
        """Whether the last request waits."""
        return self.last is not None and self.last.state == "requested"

    def begin(self, allocation: Allocation) -> Request:
        """The request of the first allocation, with which the actuator has just started its command."""
        request, self._asked = Request(dict(allocation), "granted", self._now()), self._clock()
        try:
            if waits := self._look():
                request = _waiting(request, waits)
        except CannotSet as error:
            request = _refused(request, error)
        self.last, self._due = request, self._asked + FIRST_POLL_SECONDS
        return request

    def set(self, allocation: Allocation) -> Request:
        """Request an allocation, in place of what waits. The same one again changes nothing while it waits.

        If what waited could not be withdrawn, the result is refused, and `last` still waits.
        """
        if self.last is not None and self.last.state == "requested" and self.last.allocation == dict(allocation):
            return self.last
        request, clock = Request(dict(allocation), "granted", self._now()), self._clock()
        try:
            self._actuator.apply(allocation)
            if waits := self._look():
                request = _waiting(request, waits)
        except CannotSet as error:
            request = _refused(request, error)
            if self.awaits and isinstance(self._actuator, Deferring):  # an actuator may have looked at the bounds first
                try:
                    self._actuator.withdraw()
                except ActuatorError:  # nor can what waits be withdrawn: it may still be granted
                    return request
        except ActuatorError as error:
            request = _refused(request, error)
            with suppress(CannotSet):
                if self.awaits and self._look():
                    return request
        self.last, self._asked, self._due = request, clock, clock + FIRST_POLL_SECONDS
        return request

    def _look(self) -> str:
        """Why an allocation waits, empty: none does; without a response it may. Raises CannotSet."""
        try:
            return self._actuator.poll() if isinstance(self._actuator, Deferring) else ""
        except CannotSet:
            raise
        except ActuatorError as error:
            return str(error)

    def poll(self) -> Request | None:
        """Look at a request that waits, seldom enough for any cluster; returns it if its state has changed."""
        if self.last is None or self.last.state != "requested" or self._clock() < self._due:
            return None
        waited = self._clock() - self._asked
        self._due = self._clock() + min(max(FIRST_POLL_SECONDS, SHARE * waited), LONGEST_POLL_SECONDS)
        assert isinstance(self._actuator, Deferring)  # noqa: S101 - of no other does one wait
        try:
            waits = self._actuator.poll()
        except CannotSet as error:
            self.last = _refused(self.last, error)
            return self.last
        except ActuatorError:  # nobody responds just now
            return None
        if not waits:
            self._late, self.granted_at = self.last, self._clock()
            self.last = replace(self.last, state="granted", reason="", message="")
            return self.last
        self.last = replace(self.last, reason=waits)
        if waited < self._seconds:
            return None
        try:
            self._actuator.withdraw()
        except ActuatorError:  # it may still be granted: the next look tries again
            return None
        message = f"it was withdrawn after {waited:.0f} s: {waits}"
        self.last = replace(self.last, state="timed_out", message=message)
        return self.last

    def take(self, allocation: Mapping[str, float]) -> Request | None:
        """The last request, for a report of ``allocation``; None if nothing else was requested, or it was granted.

        A refusal is returned once: it is reported once, however long nothing else is requested. One that was granted
        after the reported iteration is returned as it was before: without it the report would say that it was given up.
        """
        result, late, self._late = self.last, self._late, None
        if result is not None and result.state == "granted":
            result = late
        if result is None or result.allocation.items() <= dict(allocation).items():
            return None
        if result is self.last and result.state != "requested":
            self.last = None
        return result


def _waiting(request: Request, why: str) -> Request:
    return replace(request, state="requested", reason=why, message=f"it waits: {why}")


def _refused(request: Request, error: ActuatorError) -> Request:
    reason = error.reason if isinstance(error, CannotSet) else ""
    return replace(request, state="refused", reason=reason, message=str(error))
