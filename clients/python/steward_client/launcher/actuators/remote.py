"""Base of actuators whose command runs elsewhere and is controlled by calls to a daemon or a cluster."""

from __future__ import annotations

import logging
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from threading import Thread

from typing_extensions import override

from steward_client.launcher.terminal import write

from .contract import (
    GRACE_SECONDS,
    Actuator,
    ActuatorError,
    Allocation,
    CannotSet,
    Deferring,
    Launch,
    Range,
    Scheduled,
    Settable,
    Sink,
    Stream,
    amount,
)

SHARE = 0.1
"""Time until the next look at a command, as a share of the time for which it has run."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.02, 2.0
PARTING_SECONDS = 30.0
"""Longest wait in seconds for a killed command, and for the rest of its output."""
KILLED = 128 + signal.SIGKILL

logger = logging.getLogger("steward_client")


class Remote(Actuator, Scheduled, Deferring, ABC):
    """Base of remote actuators, `Scheduled` and `Deferring` all of them; subclasses implement the methods with an
    underscore, and set ``restarts``, ``reason`` and ``news`` if something starts the command again or ends it.

    Args:
        settable: all resources that the actuator could set, by name.
        wanted: ranges of the resources that will be set.

    Raises:
        CannotSet: a wanted resource can't be set, or not in that range.
    """

    name: str
    shares_files = False
    passes_output = True
    look_seconds = 1.0
    """Longest time in seconds between two looks at a command; shorter at its start, and while it ends."""

    def __init__(self, settable: Mapping[str, Settable], wanted: Mapping[str, Range]) -> None:
        for name, bounds in wanted.items():
            if name not in settable:
                raise CannotSet(name, f"{amount(bounds.minimum)}…", f"{self.name} sets {', '.join(settable)}")
            settable[name].check(name, bounds.minimum)
            settable[name].check(name, bounds.maximum)
        self._settable = {name: settable[name] for name in wanted}
        self._least = {name: bounds.minimum for name, bounds in wanted.items()}
        self._current: dict[str, float] = {}
        self._awaited: dict[str, float] = {}  # the changed values that wait
        self._first: dict[str, float] = {}  # the first allocation, while it waits
        self._status: int | None = None
        self._started = self._closed = False
        self._ending: int = signal.SIGTERM
        self._since, self._due = 0.0, 0.0
        self._follower: Thread | None = None
        self.restarts, self.reason = 0, ""
        self._news = list[str]()

    @abstractmethod
    def _begin(self, launch: Launch, allocation: Allocation) -> Allocation | None:
        """Start the command, or leave nothing behind and raise ActuatorError; returns what is there of the allocation,
        by resource, if some of it has to wait, else None."""

    @abstractmethod
    def _set(self, allocation: Allocation) -> str | None:
        """Set the changed, rounded values, all or none; returns why they have to wait, None or empty: they don't.

        Raises CannotSet or ActuatorError.
        """

    def _there(self, allocation: Allocation) -> Allocation | None:  # noqa: ARG002 # most set at once
        """What is there of the first allocation, if some of it waits; None: unknown; raises ActuatorError."""
        return None

    def _waits(self, allocation: Allocation) -> str:  # noqa: ARG002 # most set at once
        """Why values that wait aren't in effect yet, empty: they are; raises CannotSet or ActuatorError."""
        return ""

    def _waits_as_requested(self, allocation: Allocation) -> str:
        """As ``_waits``, for values that were requested just now: without a response they wait. Raises CannotSet."""
        try:
            return self._waits(allocation)
        except CannotSet:
            raise
        except ActuatorError as error:
            return str(error)

    def _withdraw(self, allocation: Allocation) -> None:  # most set at once
        """Give up values that wait; raises ActuatorError."""

    @property
    def _former(self) -> dict[str, float]:
        """What stays if values that wait are given up: what is there, and no less than was wanted at least."""
        return {name: max(value, self._least.get(name, value)) for name, value in self._current.items()}

    @abstractmethod
    def _look(self) -> int | None:
        """Exit status of the command; None while it runs; raises ActuatorError if daemon or cluster don't respond."""

    @abstractmethod
    def _signal(self, number: int, seconds: float) -> None:
        """Send the command a signal or the nearest equivalent, without waiting; raises ActuatorError."""

    @abstractmethod
    def _kill(self) -> None:
        """Kill the command; raises ActuatorError if its daemon or cluster refuses or doesn't respond."""

    @abstractmethod
    def _remove(self) -> None:
        """Remove everything that the command left; raises ActuatorError."""

    def _follow(self, sink: Sink) -> None:  # by default no output is available
        """Pass the command's output to ``sink`` until its end; runs in a thread of its own."""

    def _round(self, name: str, value: float) -> float:  # noqa: ARG002 # most set the value itself
        """The value that is set for a requested one, in the resource's unit."""
        return value

    @override
    def resources(self) -> Mapping[str, Settable]:
        return self._settable

    @override
    def current(self) -> Allocation:
        return dict(self._current)

    @override
    def start(self, launch: Launch) -> None:
        if self._started:
            raise ActuatorError("an actuator starts one command: this one has started already")
        allocation = self._check_allocation(launch.allocation)
        there = {**allocation, **(self._begin(launch, allocation) or {})}
        self._awaited = {name: value for name, value in allocation.items() if there[name] != value}
        self._first = allocation if self._awaited else {}
        self._started, self._current, self._since = True, there, time.monotonic()
        sink = launch.output or _write
        self._follower = Thread(target=self._follow, args=(sink,), daemon=True, name=f"{self.name} output")
        self._follower.start()

    @override
    def apply(self, allocation: Allocation) -> Allocation:
        if not self._started:
            raise ActuatorError("there is nothing to set yet: start a command first")
        request = self._check_allocation(allocation)
        if self._changed(request) == self._awaited:  # nothing changes, or it waits already
            return self.current()
        self.withdraw()
        changed = self._changed(request)
        if changed and self.wait(0) is None:
            try:
                waits = self._set(changed)
            except ActuatorError:
                if self._now() is None:  # else it has just ended: nothing is wrong
                    raise
            else:
                self._awaited, granted = (changed, {}) if waits else ({}, changed)
                self._current |= granted
        return self.current()

    def _changed(self, request: Allocation) -> dict[str, float]:
        return {name: value for name, value in request.items() if self._current.get(name) != value}

    @override
    def poll(self) -> str:
        if not self._awaited:
            return ""
        if self.wait(0) is not None:
            return "the command has ended"
        try:
            waits = self._waits(self._awaited)
        except CannotSet:
            self._awaited, self._first = {}, {}
            raise
        if not waits:
            self._current, self._awaited, self._first = self._current | self._awaited, {}, {}
        elif self._first:  # it comes part by part
            with suppress(ActuatorError):
                self._current |= self._there(self._first) or {}
                self._awaited = self._changed(self._first)
        return waits

    @override
    def withdraw(self) -> None:
        if self._first:  # parts that have come since the last look stay
            with suppress(ActuatorError):
                self.poll()
        if self._awaited and self.wait(0) is None:
            self._withdraw(self._awaited)
        self._awaited, self._first = {}, {}

    def _check_allocation(self, allocation: Allocation) -> dict[str, float]:
        for name, value in allocation.items():
            if name not in self._settable:
                raise CannotSet(name, value, f"{self.name} was made for {', '.join(self._settable)}")
            self._settable[name].check(name, value)
        return {name: self._round(name, value) for name, value in allocation.items()}

    @override
    def wait(self, seconds: float | None) -> int | None:
        began, pause = time.monotonic(), FIRST_PAUSE_SECONDS
        while self._started and self._status is None:
            self._look_if_due()
            left = LONGEST_PAUSE_SECONDS if seconds is None else began + seconds - time.monotonic()
            if self._status is not None or left <= 0:
                break
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
        return self._status

    @override
    def look(self) -> None:
        self._now()

    @override
    def news(self) -> list[str]:
        news, self._news = self._news, []
        return news

    def _look_if_due(self) -> None:
        now = time.monotonic()
        if now < self._due:
            return
        try:
            self._status = self._look()
        except ActuatorError as error:
            logger.debug("%s", error)  # no response: the command counts as running
        self._due = now + min(self.look_seconds, SHARE * (now - self._since))

    def _now(self) -> int | None:
        """Exit status by a look at the command now, regardless of the last look; None while it runs."""
        self._due = 0.0
        return self.wait(0)

    @override
    def stop(self, number: int = signal.SIGTERM, seconds: float = GRACE_SECONDS) -> int | None:
        if not self._started or self._now() is not None:
            return self._status
        self._ending, self._since = number, time.monotonic()
        try:
            self._signal(number, seconds)
            if self.wait(seconds) is None:
                self._kill()
        except ActuatorError:
            if self._now() is None:  # else it has ended meanwhile
                raise
        return self.wait(PARTING_SECONDS)

    @override
    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self.stop()
            if self._follower is not None:
                self._follower.join(PARTING_SECONDS)
            if self._started:
                self._remove()
        except ActuatorError as error:
            logger.warning("%s: something may be left: %s", self.name, error)


def _write(stream: Stream, piece: bytes) -> None:
    write(1 if stream == "stdout" else 2, piece)
