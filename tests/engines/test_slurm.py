"""The actuator for Slurm on a real Slurm: the kit, changes of size, and what Slurm does with jobs by itself."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from steward_client.launcher.actuators import registry, slurm
from steward_client.launcher.actuators.contract import Actuator, ActuatorError, CannotSet, Launch, Range
from steward_client.launcher.actuators.kit import ActuatorKit, DeferringKit
from steward_client.launcher.actuators.requests import Requests
from steward_client.launcher.actuators.slurm import SlurmJob

from tests.clients.launcher.kits import LeavingKit, QueueKit
from tests.engines.slurm_engine import SlurmEngine, cluster, engine, until_state
from tests.servers import wait_until

__all__ = ["cluster", "engine"]

Make = Callable[[], Actuator]
ONE_NODE = {"cpu": Range(100, 200, 100), "memory": Range(64, 256, 64)}


class InFolder(SlurmJob):
    """Gives its command a folder: what the job writes comes by files."""

    def __init__(self, folder: Path, wanted: dict[str, Range] = ONE_NODE, **options: str) -> None:
        super().__init__(wanted, shared="yes", **options)
        self._folder = folder

    def start(self, launch: Launch) -> None:
        super().start(replace(launch, folder=self._folder))

    @property
    def number(self) -> str:
        """Number of the job."""
        return self._job


@pytest.mark.usefixtures("cluster")
class TestSlurm(LeavingKit):
    wanted: ClassVar[dict[str, Range]] = ONE_NODE

    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        return lambda: InFolder(tmp_path)

    def test_a_job_that_runs_is_requeued_under_its_new_size_within_seconds(
        self, make: Make, cluster: SlurmEngine
    ) -> None:
        with self.started(make, self.running()) as actuator:
            assert isinstance(actuator, InFolder)
            until_state(cluster, actuator.number, ["RUNNING"])
            for size, cores, memory, again in ((self.last, "2", "256M", 1), (self.first, "1", "64M", 2)):
                assert actuator.apply(size) == size
                seconds = until_state(cluster, actuator.number, ["RUNNING"])
                assert seconds < 20, "Slurm lets a requeued job wait for 120 s"
                job = cluster.job(actuator.number)
                assert (job["NumCPUs"], job["CPUs/Task"], job["MinMemoryNode"]) == (cores, cores, memory)
                assert job["Restarts"] == str(actuator.restarts) == str(again)
            assert actuator.wait(0) is None

    def test_what_the_cluster_lacks_is_refused_while_the_job_runs_and_while_it_waits(
        self, make: Make, cluster: SlurmEngine
    ) -> None:
        with self.started(make, self.running()) as actuator:
            assert isinstance(actuator, InFolder)
            until_state(cluster, actuator.number, ["RUNNING"])
            for state in ("RUNNING", "PENDING"):
                with pytest.raises(CannotSet, match=r"cpu=300 .*configuration is not available"):
                    actuator.apply({"cpu": 300})
                with pytest.raises(CannotSet, match=r"memory=4000 .*configuration is not available"):
                    actuator.apply({"memory": 4000})
                job = cluster.job(actuator.number)
                size = job["JobState"], job["NumCPUs"], job["CPUs/Task"], job["MinMemoryNode"]
                assert size == (state, "1", "1", "64M")
                assert self.same(actuator.current(), self.first)
                if state == "RUNNING":
                    cluster.call("scontrol", "requeuehold", actuator.number)
                    until_state(cluster, actuator.number, ["PENDING"])

    def test_a_command_that_does_not_resume_keeps_the_size_with_which_it_was_submitted(
        self, tmp_path: Path, cluster: SlurmEngine
    ) -> None:
        actuator = InFolder(tmp_path)
        try:
            actuator.start(Launch(self.running(), self.first))
            until_state(cluster, actuator.number, ["RUNNING"])
            with pytest.raises(CannotSet, match="without --checkpoint it isn't requeued"):
                actuator.apply(self.last)
            assert cluster.job(actuator.number)["Requeue"] == "0"
            assert (actuator.wait(0), actuator.restarts) == (None, 0)
        finally:
            actuator.close()


NODES = {"nodes": Range(1, 2)}
WHOLE = "--cpus-per-task=2"
"""Option by which a job has whole nodes: ``--exclusive`` jobs that give nodes back block them at Slurm 22.05."""
SLEEPS = ["/bin/sh", "-c", "echo ready; exec sleep 200"]


def begin(folder: Path, cluster: SlurmEngine, *, resumes: bool, nodes: int = 2, **options: str) -> InFolder:
    """A command that runs on whole nodes."""
    actuator = InFolder(folder, NODES, sbatch=WHOLE, **options)
    actuator.start(Launch(SLEEPS, {"nodes": nodes}, resumes=resumes))
    until_state(cluster, actuator.number, ["RUNNING"])
    actuator.look()
    return actuator


def ended(actuator: InFolder) -> tuple[int | None, str]:
    """Exit status and the reason of a command that something else ends."""
    try:
        return actuator.wait(120), actuator.reason
    finally:
        actuator.close()


def await_news(actuator: InFolder, what: str) -> str:
    """The first line of news that holds this text."""
    parts = list[str]()

    def there() -> bool:
        actuator.look()
        parts.extend(line for line in actuator.news() if what in line)
        return bool(parts)

    wait_until(there, 30, f"news: {what}")
    return parts[0]


def test_nodes_are_given_back_while_it_runs_and_come_back_by_a_requeue(tmp_path: Path, cluster: SlurmEngine) -> None:
    actuator = begin(tmp_path, cluster, resumes=True)
    try:
        assert actuator.apply({"nodes": 1}) == {"nodes": 1}
        job = cluster.job(actuator.number)
        assert (job["JobState"], job["NumNodes"], job["Restarts"]) == ("RUNNING", "1", "0")
        assert actuator.apply({"nodes": 2}) == {"nodes": 2}
        until_state(cluster, actuator.number, ["RUNNING"])
        job = cluster.job(actuator.number)
        assert (job["NumNodes"], job["NumTasks"], job["Restarts"]) == ("2", "2", "1")
    finally:
        actuator.close()


class TestFullQueue(DeferringKit):
    """The node that a growing job would need is taken by another job, and comes back."""

    wanted: ClassVar[dict[str, Range]] = NODES
    settles_seconds = 30.0
    first: ClassVar[dict[str, float]] = {"nodes": 1}
    last: ClassVar[dict[str, float]] = {"nodes": 2}
    started: ClassVar[Any] = ActuatorKit.started
    same: ClassVar[Any] = ActuatorKit.same

    def running(self) -> list[str]:
        return SLEEPS

    @pytest.fixture
    def make(self, tmp_path: Path, cluster: SlurmEngine) -> Make:
        self.cluster = cluster
        return lambda: InFolder(tmp_path, NODES, sbatch=WHOLE)

    def fill(self, actuator: Actuator) -> None:
        assert isinstance(actuator, InFolder)
        until_state(self.cluster, actuator.number, ["RUNNING"])
        number = self.cluster.call("sbatch", "--parsable", WHOLE, "--output=/dev/null", "--wrap=sleep 300")
        self.other = number.strip()
        until_state(self.cluster, self.other, ["RUNNING"])

    def free(self, actuator: Actuator) -> None:
        self.cluster.call("scancel", self.other)

    def test_what_has_to_wait_changes_nothing_until_there_is_room(self, make: Make) -> None:
        """As the kit's; meanwhile the job keeps its node and is not requeued."""
        with self.started(make, self.running()) as actuator:
            assert isinstance(actuator, InFolder)
            self.fill(actuator)
            requests = Requests(actuator)
            result = requests.set({"nodes": 2})
            assert result.state == "requested"
            assert result.reason.startswith("Resources: there is room at ")
            job = self.cluster.job(actuator.number)
            assert (job["JobState"], job["NumNodes"], job["Restarts"]) == ("RUNNING", "1", "0")
            self.free(actuator)
            assert self._poll(actuator) == ""
            assert actuator.current() == {"nodes": 2}
            until_state(self.cluster, actuator.number, ["RUNNING"])
            job = self.cluster.job(actuator.number)
            assert (job["NumNodes"], job["Restarts"]) == ("2", "1")


class TestQueue(QueueKit):
    """A node is taken by another job, and whole nodes are asked for."""

    wanted: ClassVar[dict[str, Range]] = NODES
    small: ClassVar[dict[str, float]] = {"nodes": 1}
    large: ClassVar[dict[str, float]] = {"nodes": 2}
    options: ClassVar[list[str]] = ["slurm", "--option", "shared=yes", "--option", f"sbatch={WHOLE} --time=5"]
    spoilt: ClassVar[dict[str, str]] = {"partition": "Partition(Config|NodeLimit)", "nodes": ".*(DOWN|Unavailable)"}

    @pytest.fixture(autouse=True)
    def place(self, cluster: SlurmEngine) -> Iterator[None]:
        self.cluster, self.others = cluster, list[str]()
        yield
        cluster.call("scontrol", "update", "PartitionName=low", "MaxNodes=UNLIMITED")
        if "drain" in cluster.call("sinfo", "--noheader", "--format=%T"):
            cluster.call("scontrol", "update", "NodeName=n2", "State=RESUME")

    def fill(self) -> None:
        told = self.cluster.call("sbatch", "--parsable", WHOLE, "--time=5", "--output=/dev/null", "--wrap=sleep 300")
        self.others.append(told.strip())
        until_state(self.cluster, self.others[0], ["RUNNING"])

    def free(self) -> None:
        self.cluster.call("scancel", self.others[0])

    def spoil(self, how: str) -> None:
        if how == "partition":
            self.cluster.call("scontrol", "update", "PartitionName=low", "MaxNodes=1")
        else:
            self.cluster.call("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test")

    def left(self) -> list[str]:
        return [job for job in self.cluster.jobs() if job not in self.others]


def test_a_job_that_waits_says_why_and_is_changed_in_place(tmp_path: Path, cluster: SlurmEngine) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first = begin(tmp_path / "one", cluster, resumes=False)
    second = InFolder(tmp_path / "two", NODES, sbatch=WHOLE)
    try:
        second.start(Launch(SLEEPS, {"nodes": 2}))
        assert "waits: Resources" in await_news(second, "waits")
        assert second.apply({"nodes": 1}) == {"nodes": 1}
        assert first.apply({"nodes": 1}) == {"nodes": 1}  # which leaves one to the other
        assert await_news(second, "runs on n2")
        assert {cluster.job(one.number)["NodeList"] for one in (first, second)} == {"n1", "n2"}
    finally:
        first.close()
        second.close()


def test_a_job_that_is_preempted_starts_again_if_it_resumes_and_ends_if_not(
    tmp_path: Path, cluster: SlurmEngine
) -> None:
    for resumes in (True, False):
        place = tmp_path / str(resumes)
        place.mkdir()
        actuator = begin(place, cluster, resumes=resumes)
        cluster.call("sbatch", "--partition=high", "--nodes=2", WHOLE, "--output=/dev/null", "--wrap=sleep 2")
        if not resumes:
            assert ended(actuator) == (143, "preempted by a job of higher priority")
            continue
        try:
            assert "was requeued by Slurm" in await_news(actuator, "requeued")
            assert "runs on n[1-2]" in await_news(actuator, "runs on")
            assert (actuator.restarts, actuator.wait(0)) == (1, None)
        finally:
            actuator.close()


def test_a_job_whose_node_fails_starts_again_if_it_resumes_and_ends_if_not(
    tmp_path: Path, cluster: SlurmEngine
) -> None:
    for resumes in (True, False):
        place = tmp_path / str(resumes)
        place.mkdir()
        actuator = begin(place, cluster, resumes=resumes, nodes=1)
        cluster.call("scontrol", "update", "NodeName=n1", "State=DOWN", "Reason=test")
        if resumes:
            try:
                assert "was requeued by Slurm" in await_news(actuator, "requeued")
                assert await_news(actuator, "runs on")
            finally:
                actuator.close()
        else:
            status, why = ended(actuator)
            assert status not in (None, 0)
            assert why == "a node of the job failed"
        wait_until(lambda: restore(cluster), 60, "node n1 to be idle")


def restore(cluster: SlurmEngine) -> bool:
    """Whether both nodes are free; one that is down is set up again, or comes back when its daemon registers."""
    if "down" in cluster.call("sinfo", "--noheader", "--format=%T"):
        with suppress(AssertionError):  # it is back meanwhile
            cluster.call("scontrol", "update", "NodeName=n1", "State=RESUME")
    return cluster.idle()


def test_what_ends_a_job_from_outside_is_said(tmp_path: Path, cluster: SlurmEngine) -> None:
    actuator = begin(tmp_path, cluster, resumes=True)
    cluster.call("scancel", actuator.number)
    assert ended(actuator) == (143, "cancelled from outside (scancel)")


@pytest.mark.long
def test_a_changed_time_limit_is_said_and_one_that_is_reached_ends_the_job(
    tmp_path: Path, cluster: SlurmEngine
) -> None:
    actuator = InFolder(tmp_path, NODES, sbatch=f"{WHOLE} --time=5")
    actuator.start(Launch(SLEEPS, {"nodes": 1}))
    until_state(cluster, actuator.number, ["RUNNING"])
    actuator.look()
    cluster.call("scontrol", "update", f"JobId={actuator.number}", "TimeLimit=1")
    assert "its time limit is 00:01:00 now, was 00:05:00" in await_news(actuator, "time limit")
    status, why = ended(actuator)
    assert status not in (None, 0)
    assert "the job's time limit was reached" in why


def test_what_slurm_refuses_at_submission_is_said_in_its_words(tmp_path: Path, cluster: SlurmEngine) -> None:
    for options, message in (
        ({"partition": "none"}, "invalid partition specified: none"),
        ({"sbatch": "--nodelist=n9"}, "Invalid node name specified"),
        ({"sbatch": "--nonsense"}, "unrecognized option '--nonsense'"),
    ):
        actuator = InFolder(tmp_path, NODES, **options)
        with pytest.raises(ActuatorError, match=message):
            actuator.start(Launch(SLEEPS, {"nodes": 1}))
        actuator.close()
    assert cluster.jobs() == []


def test_a_controller_that_does_not_answer_ends_nothing(
    tmp_path: Path, cluster: SlurmEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "LOOK_TIMEOUT_SECONDS", 1.0)
    actuator = begin(tmp_path, cluster, resumes=True)
    try:
        cluster.controller.send_signal(signal.SIGSTOP)
        try:
            actuator.look()
            with pytest.raises(ActuatorError, match="does not answer"):
                actuator.apply({"nodes": 1})
        finally:
            cluster.controller.send_signal(signal.SIGCONT)
        assert (actuator.current(), actuator.wait(0)) == ({"nodes": 2}, None)
        assert actuator.apply({"nodes": 1}) == {"nodes": 1}
    finally:
        actuator.close()


def test_a_job_that_slurm_has_forgotten_has_ended(tmp_path: Path, cluster: SlurmEngine) -> None:
    actuator = registry.create("slurm", NODES)
    assert isinstance(actuator, SlurmJob)
    actuator.start(Launch(["true"], {"nodes": 1}))
    actuator._job = "999999"
    assert actuator.wait(10) == 137
    assert "Slurm has forgotten the job" in actuator.reason
