"""What the actuator for Docker must do with any engine: the double, and Docker itself (``tests/engines``)."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, ClassVar, Protocol

import httpx
import pytest
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.contract import (
    Actuator,
    ActuatorError,
    CannotSet,
    Launch,
    Range,
    Stream,
    Unavailable,
    reason_of,
)
from steward_client.launcher.actuators.kit import OutputRecorder
from steward_client.launcher.main import main

from tests.clients.launcher.kits import LeavingKit
from tests.servers import wait_until

Make = Callable[[], Actuator]
WANTED = {"cpu": Range(50, 200, 50), "memory": Range(64, 256, 64)}
HALF_CORE, MEBIBYTE = 5 * 10**8, 1 << 20
PIECES = "import time\nfor n in range({count}):\n    print(n, end='\\r', flush=True)\n    time.sleep({pause})\n"
HOLDS = "import time\nheld = b'x' * ({size} << 20)\nprint('held', flush=True)\ntime.sleep(60)\n"


class Engine(Protocol):
    """An engine on a unix socket, with an image that has Python."""

    image: str

    @property
    def socket(self) -> Path:
        """Path of the socket."""
        ...

    def away(self) -> AbstractContextManager[None]:
        """The engine is gone within the block; its containers go on."""
        ...


def call(engine: Engine, method: str, path: str, body: Any = None, **params: str) -> Any:
    """The Engine API's response to a call, as JSON; None without a body."""
    transport = httpx.HTTPTransport(uds=str(engine.socket))
    with httpx.Client(transport=transport, base_url="http://docker", timeout=60) as client:
        answer = client.request(method, path, params=params, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


def containers(engine: Engine) -> list[dict[str, Any]]:
    """All containers of the engine, as the API shows each."""
    listed = call(engine, "GET", "/containers/json", all="true")
    return [call(engine, "GET", f"/containers/{one['Id']}/json") for one in listed]


class DockerKit(LeavingKit):
    """The tests; subclasses have a fixture ``engine``, and ``python``, as it is called in the image."""

    wanted: ClassVar[Mapping[str, Range]] = WANTED

    @pytest.fixture
    def make(self, engine: Engine) -> Make:
        return lambda: self.build(engine)

    def build(self, engine: Engine, **options: str) -> Actuator:
        """The actuator for this engine, with more options."""
        return registry.create(
            "docker", self.wanted, {"image": engine.image, "host": f"unix://{engine.socket}", **options}
        )

    def ran(self, actuator: Actuator, command: list[str], **more: Any) -> tuple[int | None, dict[Stream, bytes]]:
        """Exit status and output of a command at the least allocation."""
        heard = OutputRecorder()
        with closing(actuator):
            actuator.start(Launch(command, self.first, output=heard, **more))
            status = actuator.wait(60)
        return status, {"stdout": heard.of("stdout"), "stderr": heard.of("stderr")}

    def test_the_container_is_limited_from_the_start_and_gone_at_the_end(
        self, make: Make, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "files").mkdir()
        monkeypatch.chdir(tmp_path)
        with self.started(make, self.running(), folder=tmp_path / "files", name="run-1") as actuator:
            (container,) = containers(engine)
            assert container["Config"]["Labels"]["steward"] == "run-1"
            assert container["Config"]["WorkingDir"] == str(tmp_path)
            limits = container["HostConfig"]
            assert [one["Target"] for one in limits["Mounts"]] == [str(tmp_path / "files"), str(tmp_path)]
            result = limits["NanoCpus"], limits["Memory"], limits["MemorySwap"]
            assert result == (HALF_CORE, 64 * MEBIBYTE, 64 * MEBIBYTE)  # no swap
            actuator.apply(self.last)
            (container,) = containers(engine)
            limits = container["HostConfig"]
            result = limits["NanoCpus"], limits["Memory"], limits["MemorySwap"]
            assert result == (4 * HALF_CORE, 256 * MEBIBYTE, 256 * MEBIBYTE)
        assert containers(engine) == []

    def test_a_script_of_the_working_folder_is_found(
        self, make: Make, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        for folder in (tmp_path, tmp_path / "elsewhere"):
            (folder / "train.py").write_text(f"import os\nprint({folder.name!r}, os.getcwd())\n")
        monkeypatch.chdir(tmp_path)
        command = [self.python, "train.py"]
        status, result = self.ran(make(), command)
        assert (status, result["stdout"]) == (0, f"{tmp_path.name} {tmp_path}\n".encode()), result
        status, result = self.ran(self.build(engine, folder="elsewhere"), command)
        assert (status, result["stdout"]) == (0, f"elsewhere {tmp_path / 'elsewhere'}\n".encode()), result
        status, result = self.ran(self.build(engine, folder=""), command)
        assert status == 2, result  # the image's working folder has no such script
        monkeypatch.chdir("/")  # can't be mounted
        assert self.ran(make(), self.ending(3))[0] == 3
        with pytest.raises(ActuatorError, match="folder=none: a folder of this machine is accepted"):
            self.build(engine, folder="none")

    def test_another_user_may_append_to_the_launchers_files(self, engine: Engine, tmp_path: Path) -> None:
        folder = tmp_path / "steward-run-1"
        folder.mkdir(mode=0o700)
        (folder / "iterations").touch(mode=0o600)
        (folder / "within").mkdir(mode=0o700)
        self.ran(self.build(engine, user=str(os.getuid())), self.ending(0), folder=folder)
        assert folder.stat().st_mode & 0o777 == 0o700  # the launcher's own user needs no more
        self.ran(self.build(engine, user=f"{os.getuid() + 1000}:1000"), self.ending(0), folder=folder)
        assert [one.stat().st_mode & 0o777 for one in (folder, folder / "iterations", folder / "within")] == [
            0o711,
            0o666,
            0o700,
        ]

    def test_one_limit_is_changed_alone(self, make: Make, engine: Engine) -> None:
        with self.started(make, self.running()) as actuator:
            for name, value in self.last.items():
                before = dict(actuator.current())
                assert actuator.apply({name: value}) == {**before, name: value}
            (container,) = containers(engine)
            assert container["HostConfig"]["NanoCpus"] == 4 * HALF_CORE

    def test_a_limit_below_what_is_in_use_is_refused(self, make: Make) -> None:
        heard = OutputRecorder()
        actuator = make()
        with closing(actuator):
            most = {"cpu": 100.0, "memory": 256.0}
            actuator.start(Launch([self.python, "-c", HOLDS.format(size=100)], most, output=heard))
            wait_until(lambda: heard.of("stdout") == b"held\n", what="memory to be held")
            with pytest.raises(CannotSet, match=r"memory=64 can't be set: more is needed: the command has 1\d\d MiB"):
                actuator.apply({"cpu": 50.0, "memory": 64.0})
            assert dict(actuator.current()) == most
            assert actuator.apply({"memory": 192.0}) == {"cpu": 100.0, "memory": 192.0}
            assert actuator.wait(0) is None

    def test_a_piece_of_a_line_is_passed_on_as_it_is_written(self, make: Make) -> None:
        """As progress bars are drawn."""
        heard = OutputRecorder()
        actuator = make()
        with closing(actuator):
            actuator.start(Launch([self.python, "-c", PIECES.format(count=600, pause=0.1)], self.first, output=heard))
            wait_until(lambda: b"1\r" in heard.of("stdout"), what="a piece of a line")
            assert actuator.wait(0) is None

    def test_without_a_listener_output_goes_to_the_launchers(
        self, make: Make, capfd: pytest.CaptureFixture[str]
    ) -> None:
        program = "import sys; print('out', flush=True); sys.stderr.write('aside')"
        with self.started(make, [self.python, "-c", program]) as actuator:
            assert actuator.wait(60) == 0
        assert capfd.readouterr() == ("out\n", "aside")

    def test_a_container_that_is_removed_from_outside_was_killed(self, make: Make, engine: Engine) -> None:
        with self.started(make, self.running()) as actuator:
            (container,) = containers(engine)
            call(engine, "DELETE", f"/containers/{container['Id']}", force="true")
            assert actuator.wait(60) == 128 + signal.SIGKILL
            assert reason_of(actuator) == "the container was removed"
            assert actuator.stop() == 128 + signal.SIGKILL

    def test_what_was_left_can_be_removed_without_starting_anything(
        self, make: Make, engine: Engine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        options = ["--option", f"image={engine.image}", "--option", f"host=unix://{engine.socket}"]
        with self.started(make, self.running(), folder=tmp_path, name="steward-busy"):
            assert main(["--clean", "--workload", "busy", "--actuator", "docker", *options]) == 0
            assert containers(engine) == []
        assert "removed " in capfd.readouterr().err

    def test_what_cant_start_leaves_nothing(self, make: Make, engine: Engine, tmp_path: Path) -> None:
        status, result = self.ran(make(), ["/no/such/program"])
        assert status == 127
        assert b"/no/such/program failed: No such file or directory" in result["stderr"]
        with closing(make()) as actuator, pytest.raises(ActuatorError, match="/gone"):
            actuator.start(Launch(["true"], self.first, folder=tmp_path / "gone"))
        assert containers(engine) == []

    def test_what_is_missing_is_named_with_its_remedy(self, engine: Engine) -> None:
        missing = pytest.raises(ActuatorError, match=r"No such image: none.*; docker pull none")
        with closing(self.build(engine, image="none")) as actuator, missing:
            actuator.start(Launch(["true"], self.first))
        with pytest.raises(Unavailable, match="--option image="):
            registry.create("docker", self.wanted)
        with pytest.raises(Unavailable, match="is Docker's daemon running"):
            self.build(engine, host="unix:///none")

    @pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
    def test_an_engine_that_is_away_and_back_ends_nothing_and_loses_no_line(self, make: Make, engine: Engine) -> None:
        heard = OutputRecorder()
        program = (  # it goes on for as long as the engine takes to come back
            "import signal, time\nended, n = [], 0\nsignal.signal(signal.SIGTERM, lambda *_: ended.append(1))\n"
            "while not ended:\n    print(n, flush=True)\n    n += 1\n    time.sleep(0.1)\n"
        )
        actuator = make()
        with closing(actuator):
            actuator.start(Launch([self.python, "-c", program], self.first, output=heard))
            wait_until(lambda: b"3\n" in heard.of("stdout"), what="output")
            with engine.away():
                time.sleep(0.5)
                assert actuator.wait(0.5) is None, "who doesn't answer counts as running"
                with pytest.raises(Unavailable, match="Docker doesn't answer"):
                    actuator.apply(self.last)
                assert self.same(actuator.current(), self.first)
            assert self.same(actuator.apply(self.last), self.last)
            assert actuator.stop() == 0
        lines = heard.of("stdout").split()
        assert len(lines) > 10
        assert lines == [b"%d" % n for n in range(len(lines))]
        gc.collect()  # httpcore leaves the sockets of refused connections to the collector

    def test_two_with_one_name_do_not_disturb_one_another(self, make: Make, engine: Engine) -> None:
        with (
            self.started(make, self.running(), name="steward-busy") as first,
            self.started(make, self.running(), name="steward-busy") as second,
        ):
            first.apply(self.last)
            assert sorted(one["HostConfig"]["NanoCpus"] for one in containers(engine)) == [HALF_CORE, 4 * HALF_CORE]
            assert first.stop() is not None
            assert second.wait(0) is None
            first.close()
            assert len(containers(engine)) == 1
            assert self.same(second.apply(self.last), self.last)
