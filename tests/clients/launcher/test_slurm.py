"""The actuator for Slurm against doubles of its programs on PATH."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators import slurm as slurm_
from steward_client.launcher.actuators.contract import (
    Actuator,
    ActuatorError,
    CannotSet,
    Launch,
    Range,
    Unavailable,
    Waiting,
)
from steward_client.launcher.actuators.kit import DeferringKit
from steward_client.launcher.actuators.slurm import SlurmJob
from steward_client.launcher.watched import QueueTimeout

from tests.clients.launcher.kits import LeavingKit, QueueKit
from tests.servers import wait_until

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


@pytest.mark.slow  # waits for seconds at a time
class TestQueue(QueueKit):
    wanted: ClassVar[dict[str, Range]] = {"cpu": Range(100, 400, 100)}
    small: ClassVar[dict[str, float]] = {"cpu": 100}
    large: ClassVar[dict[str, float]] = {"cpu": 400}
    options: ClassVar[list[str]] = ["slurm", "--option", "shared=yes"]
    spoilt: ClassVar[dict[str, str]] = {
        "partition": "PartitionNodeLimit",
        "nodes": "ReqNodeNotAvail,_UnavailableNodes:n2",
    }

    @pytest.fixture(autouse=True)
    def place(self, slurm: Path) -> None:
        self.slurm = slurm

    def fill(self) -> None:
        (self.slurm / "busy").write_text(f"1 {self.waits}\n")

    def free(self) -> None:
        (self.slurm / "busy").unlink()

    def spoil(self, how: str) -> None:
        down = " down" if how == "nodes" else ""
        (self.slurm / "busy").write_text(f"1 {self.spoilt[how]}{down}\n")

    def left(self) -> list[str]:
        places = [self.slurm, *(self.slurm / name for name in ("43", "44"))]
        return [(one / "state").read_text() for one in places if one.exists() and not ended(one)]

    def test_nodes_that_others_have_reserved_are_waited_for(self, tmp_path: Path) -> None:
        reason = "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions"
        (self.slurm / "busy").write_text(f"1 {reason}\n")
        found = {size == self.large: found for size, found in self.measured(tmp_path, QueueTimeout(7.0))}
        assert found[True] == f"it has not started in 7 s (--queue-timeout): {reason}"

    def test_a_job_that_nobody_cancels_is_tried_again_and_one_that_started_meanwhile_goes_on(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.fill()
        (self.slurm / "deaf").touch()
        first, second = (self.watched(tmp_path / name, QueueTimeout(0.5)) for name in ("one", "two"))
        first.start(self.large, {})
        later = threading.Timer(2.0, (self.slurm / "deaf").unlink)
        later.start()
        assert list(first.iterations()) == []
        assert "it can't be cancelled: scancel: scancel: error: Unable to contact" in capsys.readouterr().out
        assert self.left() == []
        second.start(self.large, {})
        self.free()
        iterations = second.iterations()
        assert next(iterations).index == 0
        second.actuator.close()


def ended(job: Path) -> bool:
    """Whether a job of the double's has ended."""
    return (job / "code").exists() or (job / "state").read_text() == "CANCELLED\n"


ROOM, BEHIND = Waiting("Resources"), Waiting("Priority", behind=True)


def test_jobs_that_share_a_time_out_wait_for_one_another() -> None:
    now = [0.0]
    shared, own = QueueTimeout(600.0, lambda: now[0]), QueueTimeout(600.0, lambda: now[0])
    for now[0] in (300.0, 590.0, 1_000.0):
        assert shared.check(None) == ""
        assert shared.check(ROOM) == ""
    assert own.check(ROOM) == "it has not started in 16 min 40 s (--queue-timeout): Resources"
    assert (own.passed, shared.passed) == (True, False)
    now[0] = 1_601.0
    assert "Resources" in shared.check(ROOM)


def test_a_job_that_held_up_others_is_given_up_before_them() -> None:
    now = [601.0]
    shared = QueueTimeout(600.0, lambda: now[0] - 601.0)
    gone = list[tuple[float, str]]()
    for now[0] in (1_200.0, 1_201.0, 1_202.0, 1_262.0, 1_322.0):
        gone += [(now[0], why.rpartition(" ")[2]) for why in map(shared.check, (BEHIND, ROOM, BEHIND, ROOM)) if why]
    assert gone == [(1_201.0, "Resources"), (1_262.0, "Resources"), (1_322.0, "Resources")]
    now[0] += 121.0
    assert shared.check(BEHIND) == "it has not started in 14 min 02 s (--queue-timeout): Priority"
    now[0] += 121.0
    assert "Priority" in shared.check(BEHIND)
    assert QueueTimeout(None, lambda: 1e9).check(ROOM) == ""
    assert "PartitionConfig" in QueueTimeout(None).check(Waiting("PartitionConfig", never=True))


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


class TestSlurm(LeavingKit, DeferringKit):
    wanted: ClassVar[dict[str, Range]] = {"cpu": Range(100, 400, 100), "memory": Range(64, 256, 64)}

    @pytest.fixture
    def make(self, slurm: Path, tmp_path: Path) -> Make:
        self.slurm = slurm
        return lambda: InFolder(tmp_path)

    def fill(self, actuator: Actuator) -> None:
        (self.slurm / "start").write_text("2099-01-01T00:00:00")

    def free(self, actuator: Actuator) -> None:
        (self.slurm / "start").write_text("2026-01-01T00:00:00")

    def test_a_job_that_runs_is_requeued_under_its_new_size(self, make: Make, slurm: Path) -> None:
        with self.started(make, self.running(), name="run-1") as actuator:
            assert (slurm / "sizes").read_text().split() == ["cpus=1", "memory=64M"]
            assert (slurm / "name").read_text() == "run-1\n"
            assert all(one.restarts for one in actuator.resources().values())
            actuator.apply(self.last)
            change = "update JobId=42 CPUsPerTask=4 NumCPUs=4 MinMemoryNode=256"
            now = "update JobId=42 StartTime=now"
            assert updates(slurm) == ["requeuehold 42", change, "release 42", now]
            assert (slurm / "granted").read_text() == "4\n"
            assert actuator.wait(0.1) is None
            (slurm / "state").write_text("PENDING\n")
            actuator.apply(self.first)
            assert updates(slurm)[4:] == ["update JobId=42 CPUsPerTask=1 NumCPUs=1 MinMemoryNode=64"]

    def test_what_slurm_cant_give_ends_nothing(self, make: Make, slurm: Path) -> None:
        with self.started(make, self.running()) as actuator:
            for state in ("RUNNING", "PENDING"):
                (slurm / "state").write_text(f"{state}\n")
                with pytest.raises(CannotSet, match=r"cpu=900 .*node configuration is not available"):
                    actuator.apply({"cpu": 900})
                assert self.same(actuator.current(), self.first)
                assert updates(slurm) == []

    def test_what_slurm_refuses_after_the_requeue_leaves_the_former_size(self, slurm: Path) -> None:
        actuator = registry.create("slurm", {"cpu": Range(100, 400), "gpus": Range(1, 4)})
        actuator.start(Launch(self.running(), {"cpu": 100, "gpus": 1}, resumes=True))
        (slurm / "state").write_text("PENDING\n")
        (slurm / "nogpus").touch()
        with pytest.raises(ActuatorError, match="Invalid generic resource"):
            actuator.apply({"cpu": 400, "gpus": 4})
        assert updates(slurm)[-1] == "update JobId=42 CPUsPerTask=1 NumCPUs=1 Gres=gpu:1"
        assert (slurm / "numcpus").read_text() == "1\n"
        assert actuator.current() == {"cpu": 100, "gpus": 1}
        actuator.close()

    def test_without_a_checkpoint_nothing_is_requeued(self, slurm: Path) -> None:
        actuator = registry.create("slurm", self.wanted)
        actuator.start(Launch(self.running(), self.first))
        assert (slurm / "requeue").read_text() == "--no-requeue\n"
        with pytest.raises(CannotSet, match="without --checkpoint it isn't requeued"):
            actuator.apply(self.last)
        assert updates(slurm) == []
        (slurm / "state").write_text("PENDING\n")  # then it costs nothing
        assert actuator.apply(self.last) == self.last
        actuator.close()

    def test_what_slurm_does_is_told(self, make: Make, slurm: Path) -> None:
        with self.started(make, self.running()) as actuator:
            assert isinstance(actuator, SlurmJob)
            messages = list[str]()

            def now(**files: str) -> list[str]:
                for name, text in files.items():
                    (slurm / name).write_text(f"{text}\n")
                actuator.look()
                messages[:] = actuator.news()
                return messages

            assert now(state="PENDING", reason="Resources") == ["job 42 waits: Resources (squeue --job 42)"]
            assert now() == []
            assert now(reason="Priority") == ["job 42 waits: Priority (squeue --job 42)"]
            assert now(state="RUNNING", reason="None")[0].startswith("job 42 runs on n1, after ")
            assert now(limit="01:00:00") == ["job 42: its time limit is 01:00:00 now, was UNLIMITED"]
            assert "was requeued by Slurm" in now(state="PENDING", reason="BeginTime", restarts="1")[0]
            assert actuator.restarts == 1
            wait_until(lambda: bool(now()), 10, "the job to run again")  # its begin time is brought forward
            assert messages[0].startswith("job 42 runs on n1, after ")
            assert updates(slurm) == ["update JobId=42 StartTime=now"]

    @pytest.mark.parametrize(
        ("state", "status", "why"),
        [
            ("CANCELLED", 143, "cancelled from outside (scancel)"),
            ("PREEMPTED", 137, "preempted by a job of higher priority"),
            ("NODE_FAIL", 137, "a node of the job failed"),
            ("OUT_OF_MEMORY", 137, "the job used more memory than it had"),
        ],
    )
    def test_what_ends_a_job_from_outside_is_told(
        self, make: Make, slurm: Path, state: str, status: int, why: str
    ) -> None:
        with self.started(make, self.running()) as actuator:
            assert isinstance(actuator, SlurmJob)
            (slurm / "state").write_text(f"{state}\n")
            assert (actuator.wait(10), actuator.reason) == (status, why)
            os.kill(int((slurm / "pid").read_text()), 9)

    def test_a_controller_that_is_away_ends_nothing_and_a_job_it_forgot_has_ended(
        self, make: Make, slurm: Path
    ) -> None:
        with self.started(make, self.running()) as actuator:
            assert isinstance(actuator, SlurmJob)
            (slurm / "away").touch()
            actuator.look()
            assert actuator.wait(0) is None
            with pytest.raises(ActuatorError, match="Unable to contact slurm controller"):
                actuator.apply(self.last)
            (slurm / "away").unlink()
            (slurm / "forgotten").touch()
            (slurm / "accounts").write_text("CANCELLED by 0|0:15\n")
            assert (actuator.wait(10), actuator.reason) == (143, "cancelled from outside (scancel)")
            os.kill(int((slurm / "pid").read_text()), 9)

    def test_a_job_that_a_change_holds_is_released_once_somebody_answers(self, make: Make, slurm: Path) -> None:
        with self.started(make, self.running()) as actuator:
            (slurm / "stuck").touch()
            with pytest.raises(ActuatorError, match="Unable to contact"):
                actuator.apply(self.last)
            assert isinstance(actuator, SlurmJob)

            def runs() -> bool:
                actuator.look()
                return (slurm / "state").read_text() == "RUNNING\n"

            wait_until(runs, 20, "the job to run again")

    def test_a_job_that_nobody_answers_for_after_its_submission_is_not_left(self, make: Make, slurm: Path) -> None:
        (slurm / "away").touch()
        with pytest.raises(ActuatorError, match="Unable to contact"), self.started(make, self.running()):
            pass
        assert (slurm / "state").read_text() == "CANCELLED\n"

    def test_slurm_is_not_asked_as_often_as_the_actuator_is(self, make: Make, slurm: Path) -> None:
        with self.started(make, self.running()) as actuator:
            for _ in range(1_000):
                assert actuator.wait(0) is None
            assert len((slurm / "calls").read_text().splitlines()) < 300

    def test_nodes_are_given_back_while_it_runs(self, slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        actuator = registry.create("slurm", {"nodes": Range(1, 4), "workers": Range(1, 8)})
        actuator.start(Launch(self.running(), {"nodes": 4, "workers": 4}, resumes=True))
        assert actuator.apply({"nodes": 2}) == {"nodes": 2, "workers": 4}
        assert updates(slurm) == ["update JobId=42 NumNodes=2"]
        with monkeypatch.context() as soon:
            soon.setattr(slurm_, "AGAIN_SECONDS", 0.01)
            with pytest.raises(CannotSet, match="try again in a bit"):
                actuator.apply({"nodes": 1})
        assert updates(slurm) == ["update JobId=42 NumNodes=2", *["update JobId=42 NumNodes=1"] * slurm_.TRIES]
        assert actuator.apply({"nodes": 3, "workers": 3}) == {"nodes": 3, "workers": 3}
        assert "update JobId=42 NumNodes=3-3 NumTasks=3 NumCPUs=3" in updates(slurm)
        assert actuator.wait(0.1) is None
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
