"""Commands that a change starts again, by the double of Slurm: with a checkpoint, and without."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from steward_client.answers import PROBLEM
from steward_client.launcher import arguments, governed
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.contract import Range
from steward_client.launcher.learn.apart import measure_apart
from steward_client.launcher.learn.profile import Segment
from steward_client.launcher.main import main
from steward_client.launcher.watched import Watched

from app.database.engine import Database
from app.settings import Settings
from tests.clients.launcher.serving import script, worked
from tests.clients.launcher.test_launch import Serve, folder, iterations, runs, serve
from tests.clients.launcher.test_slurm import slurm
from tests.clients.test_run import Handler, forwarded
from tests.servers import wait_until

pytestmark = pytest.mark.slow  # commands are started, ended and requeued

__all__ = ["folder", "forwarded", "serve", "slurm"]

SPEC = {
    "name": "sized",
    "kind": "iterative",
    "resources": [{"name": "cpu", "unit": "%", "minimum": 100, "maximum": 400, "step": 100, "initial": 100}],
    "metrics": [{"name": "iteration_seconds", "unit": "s", "target": 60, "goal": "at_most", "scope": "run"}],
    "iterations": 12,
}
RESUMES = """
import sys, time
from pathlib import Path
checkpoint = Path(sys.argv[1])
done = int(checkpoint.read_text()) if checkpoint.exists() else 0
for n in range(max(done - 1, 0), 12):  # one is done again
    time.sleep(60 if n == 6 and not done and sys.argv[2:] else 0.2)
    print(f'epoch {n + 1}: loss=1', flush=True)
    checkpoint.with_suffix('.new').write_text(str(n + 1))
    checkpoint.with_suffix('.new').replace(checkpoint)  # whole, whenever it is killed
"""
SLURM = ("--actuator", "slurm", "--option", "shared=yes")


@pytest.fixture(autouse=True)
def registered(client: TestClient, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workload of these tests, whose command waits for a decision: it must come, on a busy machine, too."""
    monkeypatch.setattr(governed, "WAIT_SECONDS", 20.0)
    assert client.post("/workloads", json=SPEC).status_code == 201


def larger(answer: Handler, since: int) -> Handler:
    """Answers as ``answer``, but for decisions on iterations from ``since`` on, which are for 300 %, before for 100."""

    def changed(request: httpx.Request) -> httpx.Response:
        result = answer(request)
        if "/runs" not in request.url.path or not result.content or result.is_error:
            return result
        body: dict[str, Any] = result.json()
        decision = body.get("decision", body) if isinstance(body, dict) else {}
        if "allocation" in decision:
            decision["allocation"] = {"cpu": 300.0 if decision["iteration"] >= since else 100.0}
        return httpx.Response(result.status_code, json=body, headers={"content-type": result.headers["content-type"]})

    return changed


def test_a_requeue_is_measured_and_is_no_iterations(
    serve: Serve, forwarded: Handler, client: TestClient, folder: Path, slurm: Path
) -> None:
    command = [sys.executable, script(folder, RESUMES), str(folder / "checkpoint"), "waits"]
    requests = ["--workload", "sized", "--url", serve(larger(forwarded, 5)).url, *SLURM, "--checkpoint"]
    assert main([*requests, "--", *command]) == 0
    assert (slurm / "restarts").read_text() == "1\n"
    (one,) = runs(client)
    reports = [item["report"] for item in iterations(client, one["id"])]
    assert len(reports) in (11, 12)
    paused = [report.get("change_seconds") or 0.0 for report in reports]
    net = [report["metrics"]["iteration_seconds"] - pause for report, pause in zip(reports, paused, strict=True)]
    assert [pause > 1.5 for pause in paused].count(True) == 1, paused
    assert max(net) < 1.5, net
    assert reports[-1]["allocation"] == {"cpu": 300.0}
    first = next(index for index, report in enumerate(reports) if report["allocation"] == {"cpu": 300.0})
    assert paused[first] == max(paused)


def test_what_is_granted_within_an_iteration_is_reported_as_what_it_ran_with(
    serve: Serve, forwarded: Handler, client: TestClient, folder: Path, slurm: Path
) -> None:
    checkpoint = folder / "checkpoint"
    (slurm / "start").write_text("2099-01-01T00:00:00")  # no room for more

    def free() -> None:
        wait_until(lambda: checkpoint.exists() and checkpoint.read_text() == "6", 60, "the iteration that hangs")
        time.sleep(2)  # its request has been reported as awaited
        (slurm / "start").write_text("2026-01-01T00:00:00")

    command = [sys.executable, script(folder, RESUMES), str(checkpoint), "waits"]
    requests = ["--workload", "sized", "--url", serve(larger(forwarded, 4)).url, *SLURM, "--checkpoint"]
    with ThreadPoolExecutor(1) as beside:
        freed = beside.submit(free)
        assert main([*requests, "--", *command]) == 0
        freed.result()
    assert (slurm / "restarts").read_text() == "1\n"
    (one,) = runs(client)
    items = iterations(client, one["id"])
    cpus = [item["report"]["allocation"]["cpu"] for item in items]
    paused = [item["report"].get("change_seconds") or 0.0 for item in items]
    first = paused.index(max(paused))
    assert cpus == [100.0] * first + [300.0] * (len(cpus) - first)
    texts = [item["decision"]["reason"]["text"] for item in items]
    assert [index for index, text in enumerate(texts) if "granted by now" in text] == [first], texts


def test_without_a_checkpoint_the_size_of_the_submission_stays(
    serve: Serve,
    forwarded: Handler,
    client: TestClient,
    folder: Path,
    slurm: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    command = [sys.executable, script(folder, RESUMES), str(folder / "checkpoint")]
    assert main(["--workload", "sized", "--url", serve(larger(forwarded, 5)).url, *SLURM, "--", *command]) == 0
    output = capfd.readouterr().err
    assert "the size is set once, at the start" in output
    assert "can't be set" not in output
    assert [line for line in (slurm / "calls").read_text().splitlines() if not line.startswith("show")] == []
    (one,) = runs(client)
    assert client.get(f"/runs/{one['id']}").json()["start"]["policy"] == "hold"
    assert {item["report"]["allocation"]["cpu"] for item in iterations(client, one["id"])} == {100.0}


BEGINS = """
import sys, time
from pathlib import Path
checkpoint = Path(sys.argv[1])
done = int(checkpoint.read_text()) if checkpoint.exists() else 0
for n in range(done, 12):
    print(f'epoch {n + 1}: loss=1', flush=True)
    time.sleep(0.2)
    checkpoint.with_suffix('.new').write_text(str(n + 1))
    checkpoint.with_suffix('.new').replace(checkpoint)  # whole, whenever it is killed
    time.sleep(0 if n or done else 60)
"""


def test_a_requeue_in_the_first_iteration_shifts_none(
    serve: Serve, client: TestClient, folder: Path, slurm: Path
) -> None:
    checkpoint = folder / "checkpoint"

    def requeue() -> None:
        wait_until(checkpoint.exists, 60, "the first iteration")
        time.sleep(1)
        scontrol = ["scontrol", "requeuehold", "42"]
        subprocess.run(scontrol, check=True)
        time.sleep(1.1)
        subprocess.run(["scontrol", "release", "42"], check=True)

    with ThreadPoolExecutor(1) as beside:
        requeued = beside.submit(requeue)
        command = [sys.executable, script(folder, BEGINS), str(checkpoint)]
        requests = ["--workload", "sized", "--url", serve().url, *SLURM, "--checkpoint", "--marks", "start"]
        assert main([*requests, "--policy", "hold", "--", *command]) == 0
        requeued.result()
    (one,) = runs(client)
    assert [item["iteration"] for item in iterations(client, one["id"])] == list(range(12))


def test_a_command_that_cannot_be_ended_has_a_run_that_ends(
    serve: Serve, client: TestClient, folder: Path, slurm: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (slurm / "deaf").touch()
    command = [sys.executable, "-c", "import time; print('epoch 1', flush=True); time.sleep(60)"]
    requests = ["--workload", "sized", "--url", serve().url, *SLURM, "--max-duration", "1s"]
    assert main([*requests, "--", *command]) == 143
    assert "the command may run on: scancel: scancel: error: Unable to contact" in capfd.readouterr().err
    (one,) = runs(client)
    assert (one["state"], one["outcome"]) == ("cancelled", "cap_reached")
    (slurm / "deaf").unlink()
    subprocess.run(["scancel", "42"], check=True)


def test_learning_by_restarts_needs_the_users_word(
    serve: Serve, folder: Path, slurm: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, script(folder, RESUMES), str(folder / "checkpoint")]
    learn = ["--learn", "--name", "fresh", "--resource", "cpu=100..400/100%", "--iterations", "12"]
    assert main([*learn, "--url", serve().url, *SLURM, "--", *command]) == 2
    error = capfd.readouterr().err
    assert "--learn changes cpu some 8 times, and each change starts the command again (slurm): --checkpoint" in error
    assert "; --profile-jobs measures it by short jobs side by side instead; else upload samples" in error
    here = ["--learn", "--profile-jobs", "--name", "fresh", "--resource", "cpu=50..100/50%"]
    assert main([*here, "--url", serve().url, "--", *command]) == 2
    assert "--profile-jobs with actuator local: commands side by side would slow one another down" in (
        capfd.readouterr().err
    )
    several = [*learn, "--profile-jobs", "--url", serve().url, *SLURM]
    assert main([*several, "--watch-file", str(folder / "log"), "--", *command]) == 2
    assert "all jobs would write to one file; --pattern is accepted" in capfd.readouterr().err
    assert main([*several, "--option", "shared=no", "--", *command]) == 2
    assert "iterations of the jobs can't be seen; for slurm --option shared=yes" in capfd.readouterr().err
    assert main([*several, "--profile-iterations", "303", "--", *command]) == 2
    assert "submits 101 jobs at once: --profile-iterations up to 300 is accepted" in capfd.readouterr().err
    assert not (slurm / "calls").exists()


SIZED = """
import json, os, sys, time
if os.environ.get('FAILS'):
    sys.exit(3)
if json.load(open(os.environ['STEWARD_ALLOCATION']))['allocation']['cpu'] == float(os.environ.get('HANGS', 0)):
    time.sleep(600)
for n in range(12):
    print(f'epoch {n + 1}/12', flush=True)
    time.sleep(0.3)
"""


@pytest.fixture
def training_url(
    serve: Serve, forwarded: Handler, database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The URL of a service that does each job within the request that queues it, which takes long."""
    monkeypatch.setattr("steward_client.live.TIMEOUT_SECONDS", 250.0)
    monkeypatch.setattr("steward_client.launcher.service.PATIENCE_SECONDS", 250.0)
    return serve(worked(forwarded, database, settings)).url


def test_short_jobs_side_by_side_measure_what_has_no_checkpoint(
    training_url: str,
    client: TestClient,
    folder: Path,
    slurm: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    command = [sys.executable, script(folder, SIZED)]
    learn = ["--learn", "--profile-jobs", "--profile-iterations", "9", "--name", "fresh", "--deadline", "60"]
    request = [*learn, "--resource", "cpu=100..400/100%", "--url", training_url, *SLURM, "--", *command]
    assert main(request) == 0, capfd.readouterr().err
    error = capfd.readouterr().err
    assert "profile: 3 short jobs side by side, each ended after 3 measured iterations" in error
    assert all(f"; cpu {cpu} %: " in error for cpu in (100, 400))
    (one, other) = ((slurm / name / "sizes").read_text() for name in ("43", "44"))
    assert one != other, "each has a size of its own"
    assert not (slurm / "45").exists(), "the run comes after them"
    samples = client.get("/workloads/fresh/samples").json()["items"]
    assert [(one["execution"].partition("-")[0], one["iterations"]) for one in samples].count(("profile", 3)) == 3
    (run,) = runs(client)
    assert (run["state"], run["decision"]["reason"]["code"] != "no_model") == ("finished", True), error
    assert client.get("/workloads/fresh/agents").json()["items"] == [], "the size is set once: none would decide"


def test_short_jobs_of_which_none_is_measured_end_with_the_commands_status(
    serve: Serve,
    client: TestClient,
    folder: Path,
    slurm: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAILS", "yes")
    command = [sys.executable, script(folder, SIZED)]
    learn = ["--learn", "--profile-jobs", "--profile-iterations", "6", "--name", "fresh", "--deadline", "60"]
    assert main([*learn, "--resource", "cpu=100..900/400%", "--url", serve().url, *SLURM, "--", *command]) == 3
    error = capfd.readouterr().err
    assert len(re.findall(r"a short job \(cpu \d00 %\) was not measured: ", error)) == 2
    assert "Requested node configuration is not available" in error
    assert client.get("/workloads/fresh").status_code == 404


def test_short_jobs_leave_one_another_alone_whatever_becomes_of_one(
    training_url: str,
    client: TestClient,
    folder: Path,
    slurm: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HANGS", "400")  # the first of them: --max-duration ends it, --clean no other of these
    command = [sys.executable, script(folder, SIZED)]
    learn = ["--learn", "--profile-jobs", "--profile-iterations", "6", "--name", "fresh", "--deadline", "60"]
    more = ["--clean", "--max-duration", "12s", "--no-restart", "--resource", "cpu=100..400/100%"]
    assert main([*learn, *more, "--url", training_url, *SLURM, "--", *command]) in (0, 143), capfd.readouterr().err
    output = capfd.readouterr().err
    assert "a short job (cpu 400 %) was not measured: the command has run for 12 s" in output, output
    assert "removed " not in output
    samples = client.get("/workloads/fresh/samples").json()["items"]
    assert [one["iterations"] for one in samples[:2]] == [3, 3], "another size was measured in its place"


def test_a_queue_that_admits_one_job_at_a_time_is_asked_again_and_an_outage_ends_no_measurement(
    serve: Serve,
    forwarded: Handler,
    client: TestClient,
    folder: Path,
    slurm: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("steward_client.launcher.service.PATIENCE_SECONDS", 1.0)
    requests = list[float]()
    (slurm / "single").touch()
    command = [sys.executable, script(folder, SIZED)]
    learn = ["--learn", "--profile-jobs", "--profile-iterations", "6", "--name", "fresh", "--deadline", "60"]

    def no_fit(request: httpx.Request) -> httpx.Response:
        if (request.method, request.url.path) == ("POST", "/workloads/fresh/samples"):
            requests.append(time.monotonic())
            if requests[-1] < requests[0] + 1.5:
                return httpx.Response(503)
        if not request.url.path.endswith("/models"):
            return forwarded(request)
        problem = {"type": "/problems/invalid", "title": "No fit here", "status": 422}
        return httpx.Response(422, headers={"content-type": PROBLEM}, content=json.dumps(problem))

    url = serve(no_fit).url
    assert main([*learn, "--resource", "cpu=100..400/100%", "--url", url, *SLURM, "--", *command]) == 1
    output = capfd.readouterr().err
    refused = r"a short job \(cpu \d00 %\) was not measured: sbatch: sbatch: error: Job violates accounting/QOS"
    assert len(re.findall(refused, output)) == 1, output
    assert output.count("not sent yet: POST /workloads/fresh/samples: no answer of ") == 1, output
    assert "6 iterations (6 wanted)" in output
    samples = client.get("/workloads/fresh/samples").json()["items"]
    assert [one["iterations"] for one in samples] == [3, 3]


def test_an_interrupted_launch_ends_its_short_jobs_and_keeps_what_was_measured(
    folder: Path, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANGS", "400")
    wishes = arguments.read("steward-run", ["--name", "fresh", *SLURM, "--", sys.executable, script(folder, SIZED)])
    commands = []
    for cpu in (400.0, 100.0):
        (own := folder / f"{cpu:g}").mkdir()
        actuator = registry.create("slurm", {"cpu": Range(100, 400, 100)}, dict(wishes.options))
        commands.append((Watched(wishes, actuator, own, print), {"cpu": cpu}))
    measured = measure_apart(commands)
    watched, result = next(measured)
    assert isinstance(result, Segment)
    assert (watched, result.allocation) == (commands[1][0], {"cpu": 100.0}), "it doesn't wait for the one before"
    measured.close()
    assert [(slurm / name / "state").read_text() for name in (".", "43")] == ["CANCELLED\n"] * 2


def test_a_workload_that_is_registered_for_a_command_has_the_cost_of_its_changes(
    serve: Serve, client: TestClient, folder: Path, slurm: Path
) -> None:
    command = [sys.executable, script(folder, RESUMES), str(folder / "checkpoint")]
    requests = ["--deadline", "5m", "--name", "fresh", "--resource", "cpu=100..400/100%", "--iterations", "12"]
    assert main([*requests, "--url", serve().url, *SLURM, "--", *command]) == 0
    (resource,) = client.get("/workloads/fresh").json()["spec"]["resources"]
    assert resource["change_seconds"] == 60.0
