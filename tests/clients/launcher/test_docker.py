"""The actuator for Docker against a double of the Engine's API on a unix socket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from steward_client.launcher.actuators.contract import reason_of
from steward_client.launcher.actuators.docker import frames

from tests.clients.launcher.docker_double import DockerDouble
from tests.clients.launcher.docker_kit import DockerKit, Make


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerDouble]:
    with DockerDouble(tmp_path_factory.mktemp("docker")) as double:
        yield double


class TestDocker(DockerKit):
    def test_memory_that_ran_out_is_the_reason(self, make: Make, engine: DockerDouble) -> None:
        with self.started(make, self.running()) as actuator:
            (name,) = engine.containers
            engine.run_out_of_memory(name)
            assert actuator.wait(60) == 137
            assert reason_of(actuator) == "out of memory (the limit was 64 MiB)"


def test_frames_may_come_in_any_pieces() -> None:
    whole = b"\x01\0\0\0\0\0\0\x03abc\x02\0\0\0\0\0\0\x01d"
    expected = [("stdout", b"abc"), ("stderr", b"d")]
    assert list(frames(iter([whole]))) == expected
    assert list(frames(bytes([byte]) for byte in whole)) == expected
