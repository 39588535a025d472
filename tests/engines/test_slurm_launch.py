"""``steward run --actuator slurm`` against a real service and a real Slurm: changes that cost a requeue, and none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.engines.slurm_engine import SlurmEngine, cluster, engine
from tests.servers import StewardServer, start_steward, stop, wait_until

__all__ = ["cluster", "engine"]

ITERATIONS, USUAL, SLOW_FROM, DEADLINE = 30, 1.0, 5, 45
SCRIPT = f"""
import json, os, sys, time
from pathlib import Path
checkpoint, how = Path(sys.argv[1]), sys.argv[2]
done = int(checkpoint.read_text()) if checkpoint.exists() else 0
nodes = int(os.environ["SLURM_JOB_NUM_NODES"])
for n in range(max(done - 1, 0), {ITERATIONS}):  # the last one again: its checkpoint is older than its report
    seconds = {USUAL} * (2 if n >= {SLOW_FROM} else 1) / nodes
    time.sleep(seconds)
    if how == "reports":
        with open(os.environ["STEWARD_ITERATIONS"], "a") as file:
            file.write(json.dumps({{"iteration": n + 1}}) + "\\n")
    print(f"epoch {{n + 1}}/{ITERATIONS}", flush=True)
    checkpoint.with_suffix('.new').write_text(str(n + 1))
    checkpoint.with_suffix('.new').replace(checkpoint)  # whole, whenever it is killed
"""
"""Iterations of a second on one node, half of it on two; from the sixth on they take twice as long."""


def spec(name: str, change_seconds: float) -> dict[str, Any]:
    """A workload on one or two nodes that should take at most ``DEADLINE`` seconds."""
    nodes = {"name": "nodes", "minimum": 1, "maximum": 2, "max_steps": 1, "initial": 1, "price_per_hour": 1.0}
    return {
        "name": name,
        "kind": "iterative",
        "resources": [nodes | {"change_seconds": change_seconds}],
        "metrics": [{"name": "iteration_seconds", "unit": "s", "target": DEADLINE, "goal": "at_most", "scope": "run"}],
        "iterations": ITERATIONS,
        "weights": {"sla": 20.0, "cost": 0.1, "change": 0.002},
    }


@dataclass
class Service:
    """A service with a worker."""

    server: StewardServer
    http: httpx.Client

    def learn(self, name: str) -> dict[str, Any]:
        """Fit a model to the samples of a workload; its report."""
        job = self.http.post(f"/workloads/{name}/models", json={}).json()["id"]
        wait_until(lambda: self.http.get(f"/jobs/{job}").json()["state"] not in ("queued", "running"), 120, "a fit")
        body = self.http.get(f"/jobs/{job}").json()
        assert body["state"] == "succeeded", body
        model: dict[str, Any] = self.http.get(f"/workloads/{name}/models/{body['result']['model']}").json()
        return model

    def known(self, name: str, change_seconds: float = 5.0) -> None:
        """Register a workload, upload samples without changes, and fit a model to them."""
        assert self.http.post("/workloads", json=spec(name, change_seconds)).status_code == 201
        samples = [
            {
                "execution": f"before-{run}-{nodes}",
                "reports": [
                    {
                        "allocation": {"nodes": nodes},
                        "metrics": {"iteration_seconds": USUAL / nodes * (1 + 0.02 * ((7 * n + 3 * run) % 5 - 2))},
                    }
                    for n in range(ITERATIONS)
                ],
            }
            for nodes in (1, 2)
            for run in range(3)
        ]
        answer = self.http.post(f"/workloads/{name}/samples", json={"samples": samples}).json()
        assert answer["rejections"] == []
        self.learn(name)

    def iterations(self, name: str) -> list[dict[str, Any]]:
        """The reports of the latest run of a workload."""
        (run, *_) = self.http.get("/runs", params={"workload": name}).json()["items"]
        items: list[dict[str, Any]] = self.http.get(f"/runs/{run['id']}/iterations?limit=100").json()["items"]
        return items

    def outcome(self, name: str) -> tuple[str, str]:
        """State and outcome of the latest run of a workload."""
        (run, *_) = self.http.get("/runs", params={"workload": name}).json()["items"]
        return run["state"], run["outcome"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A real service, with a worker."""
    server = start_steward(tmp_path_factory.mktemp("steward"), "--workers", "1")
    with httpx.Client(base_url=server.url, timeout=30) as http:
        yield Service(server, http)
    stop(server.process)


Launch = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def launch(tmp_path: Path, cluster: SlurmEngine, service: Service) -> Iterator[Launch]:
    """Starts ``steward run`` for the script; the files are beside each other on the nodes."""
    started = list[subprocess.Popen[str]]()

    def start(name: str, *options: str, how: str = "prints") -> subprocess.Popen[str]:
        place = tmp_path / (name or "learned")
        place.mkdir()
        (place / "train.py").write_text(SCRIPT)
        run = [sys.executable, "-m", "steward_client.launcher.main", "--url", service.server.url]
        run += ["--workload", name] if name else []
        slurm = ["--actuator", "slurm", "--option", "shared=yes", "--option", "sbatch=--cpus-per-task=2"]
        command = [sys.executable, str(place / "train.py"), str(place / "checkpoint"), how]
        environment = {**os.environ, **cluster.environment, "TMPDIR": str(place)}
        process = subprocess.Popen(
            [*run, *slurm, *options, "--", *command],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=place,
        )
        started.append(process)
        return process

    yield start
    for one in started:
        stop(one)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["prints", pytest.param("reports", marks=pytest.mark.long)])
def test_a_run_grows_by_a_requeue_and_meets_its_deadline(
    launch: Launch, service: Service, cluster: SlurmEngine, how: str
) -> None:
    name = f"grows-{how}"
    service.known(name)
    out, message = launch(name, "--checkpoint", how=how).communicate(timeout=120)
    print(message)
    assert service.outcome(name) == ("finished", "met"), message
    reports = service.iterations(name)
    assert [one["iteration"] for one in reports] == list(range(reports[0]["iteration"], ITERATIONS))
    assert out.count(f"epoch {ITERATIONS}/") == 1
    nodes = [one["report"]["allocation"]["nodes"] for one in reports]
    assert (nodes[0], nodes[-1], nodes.count(2) > 10) == (1, 2, True), message
    paused = [one["report"].get("change_seconds") or 0 for one in reports]
    net = [one["report"]["metrics"]["iteration_seconds"] - pause for one, pause in zip(reports, paused, strict=True)]
    assert len([pause for pause in paused if pause > 1]) == 1, paused
    assert 2 < max(paused) < 20
    assert max(net) < 3 * USUAL, "a pause is no part of an iteration"
    sample = service.http.get(f"/workloads/{name}/samples", params={"limit": 100}).json()["items"]
    assert len(sample) == 7
    learned = service.learn(name)["report"]
    assert learned["change_seconds_measured"] == {"nodes": True}
    assert learned["change_seconds"]["nodes"] == pytest.approx(max(paused), rel=0.01)


@pytest.mark.long
def test_without_a_checkpoint_the_size_is_set_once(launch: Launch, service: Service, cluster: SlurmEngine) -> None:
    service.known("once")
    run = launch("once")
    wait_until(lambda: bool(cluster.jobs()), 60, "the job")
    (job,) = cluster.jobs()
    assert cluster.job(job)["Requeue"] == "0"
    _, message = run.communicate(timeout=150)
    assert run.returncode == 0, message
    assert "the size is set once, at the start" in message
    reports = service.iterations("once")
    assert {one["report"]["allocation"]["nodes"] for one in reports} == {1}
    assert not any(one["report"].get("change_seconds") for one in reports)


def test_short_jobs_side_by_side_are_measured_and_the_run_gets_its_size_once(
    launch: Launch, service: Service, cluster: SlurmEngine
) -> None:
    learn = ["--learn", "--profile-jobs", "--profile-iterations", "6", "--deadline", "90", "--no-output"]
    run = launch("", *learn, "--name", "apart", "--resource", "nodes=1..2", "--iterations", str(ITERATIONS))
    visited = set[str]()

    def measured() -> bool:
        visited.update(cluster.jobs())
        return bool(service.http.get("/runs", params={"workload": "apart"}).json().get("items"))

    wait_until(measured, 240, "the run")
    _, message = run.communicate(timeout=240)
    assert run.returncode == 0, message
    assert len(visited) >= 2, visited
    assert "profile: 2 short jobs side by side" in message
    samples = service.http.get("/workloads/apart/samples").json()["items"]
    assert [one["execution"].startswith("profile-") for one in samples].count(True) == 2
    assert service.outcome("apart") == ("finished", "met"), message
    assert "the size is set once, at the start" in message
    reports = service.iterations("apart")
    assert len({one["report"]["allocation"]["nodes"] for one in reports}) == 1


def test_a_profile_goes_on_without_what_a_full_queue_does_not_start(
    launch: Launch, service: Service, cluster: SlurmEngine
) -> None:
    whole = ["--cpus-per-task=2", "--output=/dev/null", "--wrap=sleep 300"]
    other = cluster.call("sbatch", "--parsable", *whole).strip()
    wait_until(lambda: cluster.job(other)["JobState"] == "RUNNING", 60, "the other job to run")
    learn = ["--learn", "--profile-jobs", "--profile-iterations", "12", "--deadline", "90", "--no-output"]
    more = ["--resource", "nodes=1..2", "--iterations", str(ITERATIONS), "--queue-timeout", "8s"]
    run = launch("", *learn, "--name", "full", *more)
    _, said = run.communicate(timeout=240)
    print(said)
    assert "a short job (nodes 2) was not measured: it has not started in 8 s (--queue-timeout): Resources" in said
    assert "profile: 6 of 12 iterations must do: the queue has no room for more" in said
    assert (run.returncode, service.outcome("full")) == (0, ("finished", "met")), said
    assert {one["report"]["allocation"]["nodes"] for one in service.iterations("full")} == {1}
    assert cluster.jobs() == [other]


@pytest.mark.parametrize("how", ["--queue-timeout", "never"])
def test_a_run_whose_job_does_not_start_fails_and_says_why(
    launch: Launch, service: Service, cluster: SlurmEngine, how: str
) -> None:
    name = f"stays-{how.strip('-')}"
    service.known(name)
    try:
        cluster.call("scontrol", "update", "PartitionName=low", "MaxTime=UNLIMITED" if how != "never" else "MaxTime=1")
        if how != "never":
            cluster.call("sbatch", "--nodes=2", "--cpus-per-task=2", "--output=/dev/null", "--wrap=sleep 300")
        more = ["--queue-timeout", "5s"] if how != "never" else ["--option", "sbatch=--cpus-per-task=2 --time=60"]
        _, said = launch(name, "--checkpoint", *more).communicate(timeout=90)
    finally:
        cluster.call("scontrol", "update", "PartitionName=low", "MaxTime=UNLIMITED")
    why = (
        "it has not started in 5 s (--queue-timeout): " if how != "never" else "it can't start in this cluster as it is"
    )
    assert why in said
    assert service.outcome(name)[0] == "failed"
    assert service.iterations(name) == []


def test_an_interrupt_ends_short_jobs_that_run_and_that_wait(launch: Launch, cluster: SlurmEngine) -> None:
    learn = ["--learn", "--profile-jobs", "--profile-iterations", "9", "--deadline", "90", "--no-output"]
    run = launch("", *learn, "--name", "stopped", "--resource", "nodes=1..2", "--iterations", str(ITERATIONS))
    wait_until(lambda: len(cluster.jobs()) >= 2, 60, "jobs side by side")
    run.send_signal(signal.SIGINT)
    _, output = run.communicate(timeout=60)
    assert run.returncode == 128 + signal.SIGINT, output
    assert "the short jobs were ended; what was measured is kept" in output
    wait_until(lambda: cluster.jobs() == [], 30, "no job to be left")


@pytest.mark.long
def test_a_job_that_is_requeued_twice_from_outside_is_counted_on(
    launch: Launch, service: Service, cluster: SlurmEngine
) -> None:
    service.known("twice", change_seconds=1_000.0)  # so that it doesn't grow
    run = launch("twice", "--checkpoint", "--deadline", "200")
    for times in ("1", "2"):
        wait_until(lambda: len(cluster.jobs()) == 1, 60, "the job")
        (job,) = cluster.jobs()
        wait_until(lambda: cluster.job(job)["JobState"] == "RUNNING", 60, "the job to run")  # noqa: B023
        before = len(service.iterations("twice"))
        wait_until(lambda: len(service.iterations("twice")) > before, 60, "a report")  # noqa: B023
        cluster.call("scontrol", "requeue", job)
        wait_until(lambda: cluster.job(job)["Restarts"] == times, 60, "the requeue")  # noqa: B023
    _, message = run.communicate(timeout=200)
    assert run.returncode == 0, message
    assert message.count("was requeued by Slurm") == 2, message
    assert service.outcome("twice") == ("finished", "met"), message
    reports = service.iterations("twice")
    assert [one["iteration"] for one in reports] == list(range(reports[0]["iteration"], ITERATIONS))


def test_two_runs_share_the_two_nodes(launch: Launch, service: Service, cluster: SlurmEngine) -> None:
    for name in ("first", "second"):
        service.known(name, change_seconds=1_000.0)  # so that none grows
    runs = [launch(name, "--checkpoint", "--deadline", "200") for name in ("first", "second")]
    wait_until(lambda: len(cluster.jobs()) == 2, 60, "both jobs")
    wait_until(lambda: all(cluster.job(job)["JobState"] == "RUNNING" for job in cluster.jobs()), 60, "both to run")
    assert {cluster.job(job)["NodeList"] for job in cluster.jobs()} == {"n1", "n2"}
    for run, name in zip(runs, ("first", "second"), strict=True):
        _, message = run.communicate(timeout=150)
        assert (run.returncode, service.outcome(name)) == (0, ("finished", "met")), message


def test_a_job_cancelled_from_outside_ends_the_run_and_says_why(
    launch: Launch, service: Service, cluster: SlurmEngine
) -> None:
    service.known("cancelled")
    run = launch("cancelled", "--checkpoint")
    wait_until(lambda: len(cluster.jobs()) == 1, 60, "the job")
    (job,) = cluster.jobs()
    wait_until(lambda: cluster.job(job)["JobState"] == "RUNNING", 60, "the job to run")
    cluster.call("scancel", job)
    _, message = run.communicate(timeout=60)
    assert run.returncode == 143, message
    assert "failed after" in message
    assert "cancelled from outside (scancel)" in message
    assert service.outcome("cancelled")[0] == "failed"
