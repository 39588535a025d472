"""The kit for actuators whose commands are run by a double: a shell's commands, for they start in no time."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from steward_client.launcher.actuators import leftovers
from steward_client.launcher.actuators.contract import Actuator
from steward_client.launcher.actuators.kit import ActuatorKit


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
