"""The actuator for Slurm against doubles of its programs on PATH."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.contract import Actuator, ActuatorError, CannotSet, Launch, Range, Unavailable
from steward_client.launcher.actuators.slurm import SlurmJob

from tests.clients.launcher.kits import LeavingKit

PROGRAMS = Path(__file__).parent / "slurm"
Make = Callable[[], Actuator]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the double's job."""
    folder = tmp_path / "fake"
    folder.mkdir()
    monkeypatch.setenv("FAKE_SLURM", str(folder))
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    return folder


def updates(slurm: Path) -> list[str]:
    """What changed the job."""
    lines = (slurm / "calls").read_text().splitlines()
    return [line for line in lines if not line.startswith("show")]


class InFolder(SlurmJob):
    """Gives its command a folder: what the job writes comes by files."""

    def __init__(self, folder: Path) -> None:
        super().__init__(TestSlurm.wanted, shared="yes", partition="gpu")
        self._folder = folder

    def start(self, launch: Launch) -> None:
        super().start(replace(launch, folder=self._folder))


class TestSlurm(LeavingKit):
    wanted: ClassVar[dict[str, Range]] = {"cpu": Range(100, 400, 100), "memory": Range(64, 256, 64)}

    @pytest.fixture
    def make(self, slurm: Path, tmp_path: Path) -> Make:
        return lambda: InFolder(tmp_path)

    def test_a_job_that_runs_is_requeued_under_its_new_size(self, make: Make, slurm: Path) -> None:
        with self.started(make, self.running(), name="run-1") as actuator:
            assert (slurm / "sizes").read_text().split() == ["cpus=1", "memory=64M"]
            assert (slurm / "name").read_text() == "run-1\n"
            assert all(one.restarts for one in actuator.resources().values())
            actuator.apply(self.last)
            change = "update JobId=42 CPUsPerTask=4 MinMemoryNode=256"
            assert updates(slurm) == ["requeuehold 42", change, "release 42"]
            (slurm / "state").write_text("PENDING\n")
            actuator.apply(self.first)
            assert updates(slurm)[3:] == ["update JobId=42 CPUsPerTask=1 MinMemoryNode=64"]

    def test_what_slurm_cant_give_ends_nothing(self, make: Make, slurm: Path) -> None:
        with self.started(make, self.running()) as actuator:
            with pytest.raises(CannotSet, match=r"cpu=900 .*node configuration is not available"):
                actuator.apply({"cpu": 900})
            assert self.same(actuator.current(), self.first)
            assert updates(slurm) == []

    def test_slurm_is_not_asked_as_often_as_the_actuator_is(self, make: Make, slurm: Path) -> None:
        with self.started(make, self.running()) as actuator:
            for _ in range(1_000):
                assert actuator.wait(0) is None
            assert len((slurm / "calls").read_text().splitlines()) < 300

    def test_nodes_are_given_back_while_it_runs(self, slurm: Path) -> None:
        actuator = registry.create("slurm", {"nodes": Range(1, 4), "workers": Range(1, 8)})
        actuator.start(Launch(self.running(), {"nodes": 4, "workers": 4}))
        assert actuator.apply({"nodes": 2}) == {"nodes": 2, "workers": 4}
        assert updates(slurm) == ["update JobId=42 NumNodes=2"]
        actuator.close()

    def test_what_it_lacks_is_told(self, slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(CannotSet, match="Slurm counts it by node"):
            registry.create("slurm", {"nodes": Range(1, 2), "cpu": Range(100, 200)})
        with pytest.raises(ActuatorError, match="shared=maybe: yes or no"):
            registry.create("slurm", {}, {"shared": "maybe"})
        actuator = registry.create("slurm", {}, {"sbatch": "--nonsense"})
        with pytest.raises(ActuatorError, match="unrecognized option '--nonsense'"):
            actuator.start(Launch(["true"], {}))
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(Unavailable, match="sbatch is not on PATH: run this on a login node"):
            registry.create("slurm", {})
