"""Test kit of the contract of actuators: subclass `ActuatorKit` in a test module, and say how yours is made.

::

    class TestDocker(ActuatorKit):
        wanted = {"cpu": Range(50, 200, 50)}

        @pytest.fixture
        def make(self) -> Callable[[], Actuator]:
            return lambda: registry.create("docker", self.wanted, {"image": "python:3.11"})

Needs pytest and a fixture named ``make``. With a double of a cluster, override ``running`` and ``ending`` by commands
that the double understands.
"""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from .contract import Actuator, ActuatorError, Allocation, CannotSet, Deferring, Launch, Range, Stream, reason_of
from .requests import Requests

Make = Callable[[], Actuator]
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
LONGEST_SECONDS = 60.0


class DeferringKit:
    """Tests for an actuator that is `Deferring`, beside those of `ActuatorKit`: subclass both.

    ``fill`` and ``free`` take and give back the room for the largest wanted allocation, while the smallest one fits.
    """

    settles_seconds: ClassVar[float] = 0.0
    """Longest time until the place where commands run has noticed that there is room."""

    def fill(self, actuator: Actuator) -> None:
        """Take the room that the largest wanted allocation would need."""
        raise NotImplementedError

    def free(self, actuator: Actuator) -> None:
        """Give it back."""
        raise NotImplementedError

    def _poll(self, actuator: Actuator) -> str:
        """The result of ``poll`` once the place has settled."""
        assert isinstance(actuator, Deferring)
        ends = time.monotonic() + self.settles_seconds
        while (waits := actuator.poll()) and time.monotonic() < ends:
            time.sleep(0.2)
        return waits

    def test_what_has_to_wait_changes_nothing_until_there_is_room(self, make: Make) -> None:
        kit: Any = self
        with kit.started(make, kit.running()) as actuator:
            assert actuator.poll() == "", "all of the first allocation is there"
            self.fill(actuator)
            before = dict(actuator.current())
            for _ in range(2):  # the same again leaves it waiting
                assert actuator.apply(kit.last) == before == actuator.current()
                assert actuator.poll(), "it must say why it waits"
            assert actuator.wait(0) is None, "what waits ends no command"
            self.free(actuator)
            assert self._poll(actuator) == ""
            assert kit.same(actuator.current(), kit.last)
            assert actuator.poll() == ""

    def test_what_waits_is_withdrawn_and_replaced(self, make: Make) -> None:
        kit: Any = self
        with kit.started(make, kit.running()) as actuator:
            self.fill(actuator)
            actuator.apply(kit.last)
            actuator.withdraw()
            assert actuator.poll() == ""
            assert kit.same(actuator.current(), kit.first)
            actuator.apply(kit.last)
            assert kit.same(actuator.apply(kit.first), kit.first), "another one replaces it"
            self.free(actuator)
            assert actuator.poll() == ""
            assert kit.same(actuator.current(), kit.first), "what was given up isn't set later"
            actuator.withdraw()
            assert actuator.wait(0) is None

    def test_what_waits_for_too_long_times_out(self, make: Make) -> None:
        kit: Any = self
        with kit.started(make, kit.running()) as actuator:
            self.fill(actuator)
            now = [0.0]
            requests = Requests(actuator, 60.0, lambda: now[0])
            assert requests.set(kit.last).state == "requested"
            states = []
            for now[0] in (0.5, 30.0, 61.0, 100.0):
                event = requests.poll()
                states.append(event.state if event else "")
            assert states == ["", "", "timed_out", ""]
            assert not requests.awaits
            assert kit.same(actuator.current(), kit.first)
            taken = requests.take(actuator.current())
            assert taken is not None
            assert (taken.state, taken.reason != "") == ("timed_out", True)
            assert requests.take(actuator.current()) is None, "it is reported once"
            self.free(actuator)


class OutputRecorder:
    """An output sink that stores all pieces."""

    def __init__(self) -> None:
        self.pieces: list[tuple[Stream, bytes]] = []

    def __call__(self, stream: Stream, piece: bytes) -> None:
        self.pieces.append((stream, piece))

    def of(self, stream: Stream) -> bytes:
        """All bytes received on one stream, joined."""
        return b"".join(piece for name, piece in self.pieces if name == stream)


class ActuatorKit:
    """The tests; each makes an actuator and closes it.

    Attributes:
        wanted: ranges of the resources for which the actuator is made; at least two values for one resource.
        python: the Python command where the commands run.
        separate: whether the actuator reports standard output and standard error separately.
    """

    wanted: ClassVar[Mapping[str, Range]] = {"cpu": Range(50, 100, 50)}
    python: ClassVar[str] = sys.executable
    separate: ClassVar[bool] = True

    def running(self) -> list[str]:
        """Command line that runs for 60 s, prints ``ready`` first, and ends quickly on SIGTERM."""
        return [self.python, "-c", "import time; print('ready', flush=True); time.sleep(60)"]

    def ending(self, status: int) -> list[str]:
        """Command line that exits at once with this status."""
        return [self.python, "-c", f"import sys; sys.exit({status})"]

    @property
    def first(self) -> dict[str, float]:
        """The smallest wanted allocation."""
        return {name: wanted.minimum for name, wanted in self.wanted.items()}

    @property
    def last(self) -> dict[str, float]:
        """The largest wanted allocation."""
        return {name: wanted.maximum for name, wanted in self.wanted.items()}

    @contextmanager
    def started(self, make: Make, command: list[str], **more: object) -> Iterator[Actuator]:
        """Context manager: an actuator with a running command, closed at the end; ``more``: fields of `Launch`."""
        actuator = make()
        try:
            actuator.start(Launch(command, **{"allocation": self.first, "resumes": True, **more}))  # type: ignore[arg-type]
            yield actuator
        finally:
            actuator.close()

    def same(self, allocation: Allocation, expected: Allocation) -> bool:
        """Whether two allocations have the same resources and agree to half a step each."""
        return allocation.keys() == expected.keys() and all(
            abs(allocation[name] - value) <= self.wanted[name].step / 2 for name, value in expected.items()
        )

    def test_it_says_what_it_can_set(self, make: Make) -> None:
        actuator = make()
        try:
            assert isinstance(actuator, Actuator)
            resources = actuator.resources()
            assert resources.keys() == self.wanted.keys()
            for name, settable in resources.items():
                assert NAME.fullmatch(name), name
                assert settable.how, f"{name}: it must say by what it is set"
                assert settable.change_seconds >= 0, name
                settable.check(name, self.wanted[name].minimum)
                settable.check(name, self.wanted[name].maximum)
        finally:
            actuator.close()

    def test_a_resource_that_nobody_can_set_is_refused_by_name(self, make: Make) -> None:
        with self.started(make, self.running()) as actuator:
            before = dict(actuator.current())
            try:
                actuator.apply({**self.last, "no_such_resource": 1.0})
            except CannotSet as refused:
                assert refused.resource == "no_such_resource"
                assert "no_such_resource" in str(refused)
            else:
                raise AssertionError("no_such_resource was set")
            assert actuator.current() == before, "all or nothing"

    def test_what_is_out_of_bounds_is_refused_and_nothing_changes(self, make: Make) -> None:
        with self.started(make, self.running()) as actuator:
            before, name = dict(actuator.current()), next(iter(self.wanted))
            for value in (actuator.resources()[name].minimum - 1, float("nan")):
                try:
                    actuator.apply({name: value})
                except CannotSet as refused:
                    assert (refused.resource, refused.accepted != "") == (name, True)
                else:
                    raise AssertionError(f"{name}={value} was set")
            assert actuator.current() == before

    def test_it_sets_what_it_is_told(self, make: Make) -> None:
        with self.started(make, self.running()) as actuator:
            assert self.same(actuator.current(), self.first)
            assert self.same(actuator.apply(self.last), self.last)
            assert self.same(actuator.current(), self.last)
            assert actuator.apply(self.last) == actuator.current(), "the same again changes nothing"
            assert actuator.apply({}) == actuator.current(), "nothing named, nothing changed"
            assert self.same(actuator.apply(self.first), self.first)
            assert actuator.wait(0) is None, "a change ends no command"

    def test_the_status_is_the_commands_own(self, make: Make) -> None:
        for status in (0, 7):
            with self.started(make, self.ending(status)) as actuator:
                assert actuator.wait(LONGEST_SECONDS) == status
                assert reason_of(actuator) == "" or status, "nothing ended a command that went well"
                actuator.apply(self.last)  # too late: nothing is done, nothing is wrong
                assert actuator.stop() == status, "what has ended is not ended again"
                assert actuator.wait(0) == status

    def test_waiting_ends_in_time(self, make: Make) -> None:
        with self.started(make, self.running()) as actuator:
            began = time.monotonic()
            assert actuator.wait(0.2) is None
            assert time.monotonic() - began < LONGEST_SECONDS / 2

    def test_it_is_stopped_once_however_often_it_is_said(self, make: Make) -> None:
        with self.started(make, self.running()) as actuator:
            status = actuator.stop(signal.SIGTERM, 1.0)
            assert status not in (None, 0)
            assert actuator.stop() == status
            assert actuator.wait(0) == status

    def test_it_starts_once(self, make: Make) -> None:
        with self.started(make, self.running()) as actuator:
            try:
                actuator.start(Launch(self.running(), self.first))
            except ActuatorError:
                assert actuator.wait(0) is None, "the first goes on"
            else:
                raise AssertionError("it was started twice")

    def test_what_never_started_is_stopped_and_closed_quietly(self, make: Make) -> None:
        actuator = make()
        assert dict(actuator.current()) == {}
        assert actuator.stop() is None
        actuator.close()
        actuator.close()

    def test_output_and_environment_pass_through(self, make: Make) -> None:
        heard = OutputRecorder()
        program = "import os, sys; print(os.environ['MARK']); sys.stdout.flush(); sys.stderr.write('aside')"
        command = [self.python, "-c", program]
        with self.started(make, command, environment={"MARK": "a b\tc"}, output=heard) as actuator:
            assert actuator.wait(LONGEST_SECONDS) == 0
        out, aside = heard.of("stdout"), heard.of("stderr")
        if self.separate:
            assert (out, aside) == (b"a b\tc\n", b"aside"), "all of it, by the time that close has returned"
        else:
            assert sorted((out + aside).split(b"\n")) == [b"a b\tc", b"aside"]

    def test_files_are_where_they_are_said_to_be(self, make: Make, tmp_path: Path) -> None:
        file = tmp_path / "iterations"
        file.touch()
        command = [self.python, "-c", "import os; open(os.environ['FILE'], 'a').write('1\\n')"]
        with self.started(make, command, environment={"FILE": str(file)}, folder=tmp_path) as actuator:
            if actuator.shares_files:
                assert actuator.wait(LONGEST_SECONDS) == 0
                assert file.read_text() == "1\n"
