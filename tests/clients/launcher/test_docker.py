"""The actuator for Docker against a double of the Engine's API on a unix socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.contract import Actuator, ActuatorError, Launch, Range, Unavailable
from steward_client.launcher.actuators.docker import frames
from steward_client.launcher.main import main

from tests.clients.launcher.docker_double import IMAGE, DockerDouble
from tests.clients.launcher.kits import LeavingKit

WANTED = {"cpu": Range(50, 200, 50), "memory": Range(64, 256, 64)}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerDouble]:
    with DockerDouble(tmp_path_factory.mktemp("docker")) as double:
        yield double


class TestDocker(LeavingKit):
    wanted: ClassVar[dict[str, Range]] = WANTED

    @pytest.fixture
    def make(self, engine: DockerDouble) -> Callable[[], Actuator]:
        options = {"image": IMAGE, "host": f"unix://{engine.socket}"}
        return lambda: registry.create("docker", self.wanted, options)

    def test_the_container_is_limited_from_the_start_and_gone_at_the_end(
        self, make: Callable[[], Actuator], engine: DockerDouble, tmp_path: Path
    ) -> None:
        with self.started(make, self.running(), folder=tmp_path, name="run-1") as actuator:
            ((_, container),) = engine.containers.items()
            assert container["Labels"]["steward"] == "run-1"
            limits = container["HostConfig"]
            assert limits["Binds"] == [f"{tmp_path}:{tmp_path}"]
            assert (limits["NanoCpus"], limits["Memory"], limits["MemorySwap"]) == (5 * 10**8, 64 << 20, 64 << 20)
            actuator.apply(self.last)
            assert (limits["NanoCpus"], limits["Memory"], limits["MemorySwap"]) == (2 * 10**9, 256 << 20, 256 << 20)
        assert engine.containers == {}

    def test_what_was_left_can_be_removed_without_starting_anything(
        self, make: Callable[[], Actuator], engine: DockerDouble, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        options = ["--option", f"image={IMAGE}", "--option", f"host=unix://{engine.socket}"]
        with self.started(make, self.running(), folder=tmp_path, name="steward-busy"):
            assert main(["--clean", "--workload", "busy", "--actuator", "docker", *options]) == 0
            assert engine.containers == {}
        assert "removed c" in capfd.readouterr().err

    def test_what_cant_start_leaves_nothing(self, make: Callable[[], Actuator], engine: DockerDouble) -> None:
        actuator = make()
        with pytest.raises(ActuatorError, match="executable file not found"):
            actuator.start(Launch(["/no/such/program"], self.first))
        assert engine.containers == {}
        actuator.close()

    def test_what_is_missing_is_named_with_its_remedy(self, engine: DockerDouble) -> None:
        host = f"unix://{engine.socket}"
        actuator = registry.create("docker", self.wanted, {"image": "none", "host": host})
        with pytest.raises(ActuatorError, match="No such image: none; docker pull none"):
            actuator.start(Launch(["true"], self.first))
        actuator.close()
        with pytest.raises(Unavailable, match="--option image="):
            registry.create("docker", self.wanted)
        with pytest.raises(Unavailable, match="is Docker's daemon running"):
            registry.create("docker", self.wanted, {"image": IMAGE, "host": "unix:///none"})


def test_frames_may_come_in_any_pieces() -> None:
    whole = b"\x01\0\0\0\0\0\0\x03abc\x02\0\0\0\0\0\0\x01d"
    expected = [("stdout", b"abc"), ("stderr", b"d")]
    assert list(frames(iter([whole]))) == expected
    assert list(frames(bytes([byte]) for byte in whole)) == expected
