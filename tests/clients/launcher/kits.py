"""The kit for actuators whose commands are run by a double: a shell's commands, for they start in no time."""

from __future__ import annotations

import re
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest
from steward_client.launcher import arguments
from steward_client.launcher.actuators import leftovers, registry
from steward_client.launcher.actuators.contract import Actuator, Allocation, Range
from steward_client.launcher.actuators.kit import ActuatorKit
from steward_client.launcher.learn.apart import measure_apart
from steward_client.launcher.learn.profile import Segment
from steward_client.launcher.watched import QueueTimeout, Watched


class QuickKit(ActuatorKit):
    """As the kit; ``running`` and ``ending`` are commands of a shell."""

    def running(self) -> list[str]:
        return ["/bin/sh", "-c", "echo ready; exec sleep 60"]

    def ending(self, status: int) -> list[str]:
        return ["/bin/sh", "-c", f"exit {status}"]


class LeavingKit(QuickKit):
    """For places where a command outlives a launcher that is killed."""

    def test_what_a_launcher_left_is_removed_at_the_next_start(
        self, make: Callable[[], Actuator], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        messages: list[str] = []
        with (
            self.started(make, self.running(), folder=tmp_path, name="steward-busy") as actuator,
            closing(make()) as next_,
        ):
            assert isinstance(next_, leftovers.Leaving)
            leftovers.remove(next_, "steward-other", messages.append, every=True)
            leftovers.remove(next_, "steward-busy", messages.append)
            assert (messages, actuator.wait(0)) == ([], None)  # its launcher, this process, is there
            with monkeypatch.context() as elsewhere:
                elsewhere.setattr(socket, "gethostname", lambda: "elsewhere")
                leftovers.remove(next_, "steward-busy", messages.append)
            assert messages.pop().endswith("; --clean removes it")
            with monkeypatch.context() as later:
                later.setattr(leftovers, "_began", lambda _: "")
                leftovers.remove(next_, "steward-busy", messages.append)
            assert messages.pop().startswith("removed ")
            assert actuator.wait(30) is not None
            leftovers.remove(next_, "steward-busy", messages.append, every=True)
            assert messages == []


EPOCHS = "import time\nfor n in range(90):\n    print(f'epoch {n + 1}/90', flush=True); time.sleep(0.4)"


class QueueKit:
    """For places where jobs wait in a queue: what becomes of one that does not start.

    Attributes:
        wanted: ranges of the resources.
        small, large: sizes of which the second needs room that ``fill`` takes, and ``spoil`` takes for good.
        options: the launch's options of the actuator.
        waits: the reason that the place gives for a job of the large size after ``fill``.
        spoilt: by name of what ``spoil`` does, how the reason begins that the place gives then.
    """

    wanted: ClassVar[dict[str, Range]]
    small: ClassVar[dict[str, float]]
    large: ClassVar[dict[str, float]]
    options: ClassVar[list[str]]
    waits = "Resources"
    spoilt: ClassVar[dict[str, str]]

    def fill(self) -> None:
        """Take room that the large size would need."""
        raise NotImplementedError

    def free(self) -> None:
        """Give it back."""
        raise NotImplementedError

    def spoil(self, how: str) -> None:
        """Make a job of the large size one that can never start."""
        raise NotImplementedError

    def left(self) -> list[str]:
        """Jobs that wait or run, but for what ``fill`` has started."""
        raise NotImplementedError

    def watched(self, folder: Path, timeout: QueueTimeout) -> Watched:
        """A command that has not started yet."""
        folder.mkdir()
        actuator_name, *options = self.options
        asked = ["--name", "queued", "--actuator", actuator_name, *options, "--quiet"]
        wishes = arguments.read("steward-run", [*asked, "--", sys.executable, "-c", EPOCHS])
        actuator = registry.create(wishes.actuator, self.wanted, dict(wishes.options))
        return Watched(wishes, actuator, folder, print, timeout=timeout)

    def measured(self, folder: Path, timeout: QueueTimeout) -> list[tuple[Allocation, Segment | str]]:
        """What became of two jobs side by side, of the large size and of the small one, in the order of their ends.

        Where the first is ahead of the second, it may hold it up.
        """
        sizes = {self.watched(folder / name, timeout): size for name, size in (("l", self.large), ("s", self.small))}
        return [(sizes[watched], found) for watched, found in measure_apart(list(sizes.items()))]

    def test_a_short_job_that_does_not_start_is_given_up_and_another_is_measured(self, tmp_path: Path) -> None:
        self.fill()
        timeout = QueueTimeout(5.0)
        both = {size == self.large: found for size, found in self.measured(tmp_path, timeout)}
        found, why = both[False], both[True]
        assert isinstance(found, Segment), found
        assert len(found.rows) == 3
        assert why == f"it has not started in 5 s (--queue-timeout): {self.waits}"
        assert timeout.passed
        assert self.left() == []

    def test_a_short_job_that_waits_is_measured_once_there_is_room(self, tmp_path: Path) -> None:
        self.fill()
        later = threading.Timer(2.0, self.free)
        later.start()
        timeout = QueueTimeout(60.0)
        found = {size == self.large: found for size, found in self.measured(tmp_path, timeout)}
        later.join()
        assert all(isinstance(one, Segment) and len(one.rows) == 3 for one in found.values()), found
        assert len(found) == 2
        assert not timeout.passed

    @pytest.mark.parametrize("how", ["partition", "nodes"])
    def test_a_job_that_can_never_start_is_not_waited_for(self, tmp_path: Path, how: str) -> None:
        self.spoil(how)
        timeout = QueueTimeout(None)
        found = {size == self.large: found for size, found in self.measured(tmp_path, timeout)}
        assert isinstance(found[False], Segment), found[False]
        assert re.fullmatch(f"it can't start in this cluster as it is now: {self.spoilt[how]}.*", str(found[True]))
        assert not timeout.passed, "another size may fit"
        assert self.left() == []

    def test_a_runs_own_job_waits_for_as_long_as_its_launch_says(self, tmp_path: Path) -> None:
        self.fill()
        watched = self.watched(tmp_path / "run", QueueTimeout(5.0))
        watched.start(self.large, {})
        assert list(watched.iterations()) == []
        assert (watched.status, watched.clock.count) == (143, 0)
        assert watched.failure == f"it has not started in 5 s (--queue-timeout): {self.waits}"
        assert self.left() == []
