"""The actuator for Docker on a real daemon: alone, and in whole runs under a real service."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from steward_client.launcher.actuators.contract import CannotSet, Launch
from steward_client.launcher.actuators.kit import OutputRecorder
from steward_client.launcher.actuators.requests import Requests

from tests.clients.launcher.docker_kit import HOLDS, DockerKit, Make, containers
from tests.clients.launcher.serving import REPORTS, SPEC, script
from tests.engines.dockerd import Dockerd
from tests.servers import StewardServer, clean_environment, stop, wait_until

LARGEST_DELAY_SECONDS = 2.0
"""Of a limit in a running container; measured: 0.3 s on two cores with forty other processes."""
QUOTA = """
import os, time
new = os.path.exists('/sys/fs/cgroup/cpu.max')
file = '/sys/fs/cgroup/cpu.max' if new else '/sys/fs/cgroup/cpu/cpu.cfs_quota_us'
last = ''
while True:
    now = open(file).read().split()[0]
    if now != last:
        print(now, time.time(), flush=True)
    last = now
    time.sleep(0.005)
"""
STEPS = """
import sys, time
count, seconds = int(sys.argv[1]), float(sys.argv[2])
for n in range(count):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)
    print(f'epoch {n}: loss={1 / (n + 1):.3f}', flush=True)
"""
"""Iterations that last as long on a busy machine."""


class TestDocker(DockerKit):
    python: ClassVar[str] = "python3"

    @pytest.fixture
    def engine(self, docker: Dockerd) -> Iterator[Dockerd]:
        yield docker
        assert containers(docker) == []

    def test_memory_that_ran_out_is_the_reason(self, make: Make) -> None:
        with self.started(make, [self.python, "-c", HOLDS.format(size=100)]) as actuator:
            assert actuator.wait(60) == 128 + signal.SIGKILL
            assert getattr(actuator, "reason", "") == "out of memory (the limit was 64 MiB)"
        with self.started(make, [self.python, "-c", HOLDS.format(size=20)]) as actuator:
            assert actuator.stop(signal.SIGKILL, 1) == 128 + signal.SIGKILL
            assert getattr(actuator, "reason", "") == ""

    def test_a_limit_above_the_hosts_is_refused_by_the_actuator_and_by_the_daemon(self, make: Make) -> None:
        with self.started(make, self.running()) as actuator:
            most = 100.0 * (os.cpu_count() or 1)
            requests = Requests(actuator)
            result = requests.set({"cpu": most + 100})
            assert result.state == "refused"
            assert f"to {most:g} % is accepted" in result.message
            assert self.same(actuator.current(), self.first)
            taken = requests.take(actuator.current())
            assert taken is not None
            assert taken.report["allocation"] == {"cpu": most + 100}
            with pytest.raises(CannotSet, match=r"it is refused: Docker: .*[Rr]ange of CPUs is from 0.01 to"):
                actuator._set({"cpu": most + 100})  # type: ignore[attr-defined]
            assert actuator.wait(0) is None
            assert requests.set(self.last).state == "granted"

    def test_a_limit_is_changed_in_the_running_container(self, make: Make) -> None:
        heard = OutputRecorder()
        with closing(make()) as actuator:
            actuator.start(Launch([self.python, "-c", QUOTA], self.first, output=heard))
            wait_until(lambda: heard.of("stdout").count(b"\n") == 1, what="the first limit")
            begun = time.time()
            actuator.apply(self.last)
            wait_until(lambda: heard.of("stdout").count(b"\n") == 2, what="the second limit")
        (first, _), (second, in_force) = (line.split() for line in heard.of("stdout").splitlines())
        print(f"a limit is in force {float(in_force) - begun:.3f} s after it was asked for")
        assert (int(first), int(second)) == (50_000, 200_000)  # microseconds in each 100 ms
        assert float(in_force) - begun < LARGEST_DELAY_SECONDS

    def test_a_script_may_run_as_another_user(self, engine: Dockerd, tmp_path: Path) -> None:
        files, work = tmp_path / "steward-run-1", tmp_path / "work"
        files.mkdir(mode=0o700)
        (files / "iterations").touch(mode=0o600)
        work.mkdir()
        program = "import os; print(os.getuid(), os.getgid()); open(os.environ['FILE'], 'a').write('1\\n')"
        script(work, program)
        actuator = self.build(engine, user="1000:1001", folder=str(work))
        environment = {"FILE": str(files / "iterations")}
        status, launcher_output = self.ran(actuator, [self.python, "train.py"], environment=environment, folder=files)
        assert (status, launcher_output["stdout"], (files / "iterations").read_text()) == (0, b"1000 1001\n", "1\n"), (
            launcher_output
        )

    def test_the_images_entry_point_is_not_run_and_its_user_and_folder_are(
        self, engine: Dockerd, tmp_path: Path
    ) -> None:
        build = engine.docker("create", engine.image, "true")
        changes = ['ENTRYPOINT ["/bin/false"]', "USER 1000", "WORKDIR /srv"]
        engine.docker("commit", *[part for one in changes for part in ("--change", one)], build, "other")
        engine.docker("rm", build)
        files = tmp_path / "steward-run-1"
        files.mkdir(mode=0o700)
        program = "import os; print(os.getuid(), os.getcwd()); os.listdir; open(os.environ['FILE'], 'a').write('1\\n')"
        (files / "iterations").touch(mode=0o600)
        actuator = self.build(engine, image="other", folder="")
        environment = {"FILE": str(files / "iterations")}
        status, launcher_output = self.ran(
            actuator, [self.python, "-c", program], environment=environment, folder=files
        )
        assert (status, launcher_output["stdout"], (files / "iterations").read_text()) == (0, b"1000 /srv\n", "1\n"), (
            launcher_output
        )

    def test_a_container_that_is_ended_from_outside_has_the_signals_status(self, make: Make, engine: Dockerd) -> None:
        for verb, status in (("stop", 143), ("kill", 137)):
            with self.started(make, self.running()) as actuator:
                engine.docker(verb, containers(engine)[0]["Id"])
                assert actuator.wait(60) == status


TENANTS = ("first", "second")


class Launches:
    """Runs of two tenants under one service, each with a workload ``busy`` and a folder with a script."""

    def __init__(self, server: StewardServer, engine: Dockerd, folder: Path) -> None:
        self.server, self.engine, self.folder = server, engine, folder
        self.keys = {tenant: self._key(tenant) for tenant in TENANTS}
        for tenant in TENANTS:
            (folder / tenant).mkdir()
            script(folder / tenant, STEPS)
            assert self.call(tenant, "POST", "/workloads", json=SPEC).is_success

    def _key(self, tenant: str) -> str:
        data = ["--data", str(self.server.data_dir)]
        command = [sys.executable, "-m", "app.cli", "key", "create", "--tenant", tenant, "--scopes", "admin", *data]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=clean_environment({}))
        return done.stdout.strip()

    def call(self, tenant: str, method: str, path: str, **more: Any) -> httpx.Response:
        """A call of the service with the tenant's key."""
        headers = {"Authorization": f"Bearer {self.keys[tenant]}"}
        return httpx.request(method, f"{self.server.url}{path}", headers=headers, timeout=60, **more)

    def run(self, tenant: str) -> dict[str, Any]:
        """The tenant's newest run."""
        run: dict[str, Any] = self.call(tenant, "GET", "/runs?workload=busy").json()["items"][0]
        return run

    @contextmanager
    def started(
        self, tenant: str, *command: str, options: Mapping[str, str] | None = None, wishes: tuple[str, ...] = ()
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A launcher in the tenant's folder; its output is in the file ``out`` there."""
        settings = {"image": self.engine.image, "host": self.engine.host, **(options or {})}
        where = [part for name, value in settings.items() for part in ("--option", f"{name}={value}")]
        launch = ["run", "--url", self.server.url, "--workload", "busy", "--actuator", "docker", *where, *wishes, "--"]
        with (self.folder / tenant / "out").open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "app.cli", *launch, *(command or ("python3", "train.py", "5", "0.3"))],
                cwd=self.folder / tenant,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=clean_environment({"STEWARD_API_KEY": self.keys[tenant]})
                | {"PYTHONPATH": os.pathsep.join(sys.path)},
            )
        try:
            yield process
        finally:
            stop(process)

    def launcher_output(self, tenant: str) -> str:
        """What the tenant's last launcher has printed."""
        return (self.folder / tenant / "out").read_text()

    def wait_for(self, tenant: str, text: str) -> None:
        """Wait until the tenant's launcher has printed a text."""
        wait_until(lambda: text in self.launcher_output(tenant), 120, f"{text!r} of the launcher")


@pytest.fixture(scope="module")
def launches(
    docker: Dockerd, tmp_path_factory: pytest.TempPathFactory, steward_module: Callable[..., StewardServer]
) -> Launches:
    folder = tmp_path_factory.mktemp("launches")
    return Launches(steward_module(folder / "data", "--workers", "0", wait="alive"), docker, folder)


@pytest.fixture(autouse=True)
def nothing_left(docker: Dockerd) -> Iterator[None]:
    yield
    assert containers(docker) == []


def test_two_tenants_run_the_same_name_at_once(launches: Launches) -> None:
    with launches.started("first") as first, launches.started("second", "python3", "train.py", "5", "0.6") as second:
        assert first.wait(120) == 0, launches.launcher_output("first")
        assert second.wait(120) == 0, launches.launcher_output("second")
    for tenant in TENANTS:
        run, output = launches.run(tenant), launches.launcher_output(tenant)
        assert (run["state"], run["decision"]["iteration"]) == ("finished", 5), output
        assert "docker update --cpus" in output
        assert "epoch 4: loss=0.200" in output


def test_ctrl_c_ends_the_container_and_cancels_the_run(launches: Launches) -> None:
    with launches.started("first", "python3", "train.py", "100", "0.2") as launcher:
        launches.wait_for("first", "epoch 2")
        launcher.send_signal(signal.SIGINT)
        assert launcher.wait(60) == 128 + signal.SIGINT, launches.launcher_output("first")
    assert launches.run("first")["state"] == "cancelled"


def test_a_daemon_that_is_away_in_the_middle_costs_no_iteration(launches: Launches, docker: Dockerd) -> None:
    with launches.started("first", "python3", "train.py", "5", "1.5") as launcher:
        launches.wait_for("first", "epoch 0")
        with docker.away():
            time.sleep(1)
        assert launcher.wait(120) == 0, launches.launcher_output("first")
    run = launches.run("first")
    assert (run["state"], run["decision"]["iteration"]) == ("finished", 5), launches.launcher_output("first")


def test_memory_that_ran_out_is_the_runs_reason(launches: Launches) -> None:
    spec = json.loads(json.dumps(SPEC)) | {"name": "large"}
    spec["resources"] += [{"name": "memory", "unit": "MiB", "minimum": 64, "maximum": 128, "step": 64, "max_steps": 1}]
    launches.call("first", "POST", "/workloads", json=spec)
    with launches.started("first", "python3", "-c", HOLDS.format(size=200), wishes=("--workload", "large")) as launcher:
        assert launcher.wait(120) == 128 + signal.SIGKILL, launches.launcher_output("first")
    run = launches.call("first", "GET", "/runs?workload=large").json()["items"][0]
    assert run["state"] == "failed"
    assert "killed by SIGKILL: out of memory (the limit was 128 MiB)" in launches.launcher_output("first")


def test_a_killed_launchers_container_is_removed_by_the_next_run_of_that_name(
    launches: Launches, docker: Dockerd
) -> None:
    with launches.started("first", "python3", "train.py", "1000", "0.2") as launcher:
        launches.wait_for("first", "epoch 2")
        launcher.kill()
        launcher.wait()
    (left,) = containers(docker)
    assert left["State"]["Status"] == "running"
    with launches.started("first") as launcher:
        assert launcher.wait(120) == 0, launches.launcher_output("first")
    assert f"removed {left['Id']}" in launches.launcher_output("first")


def test_a_daemon_over_tcp_shares_no_files_and_the_command_reports_by_itself(
    launches: Launches, docker: Dockerd
) -> None:
    options = {"host": f"tcp://127.0.0.1:{docker.port}", "network": "host"}
    with launches.started("second", "python3", "-c", REPORTS, "5", "0.05", options=options) as launcher:
        assert launcher.wait(180) == 0, launches.launcher_output("second")
    run = launches.run("second")
    assert (run["state"], run["decision"]["iteration"]) == ("finished", 5), launches.launcher_output("second")
