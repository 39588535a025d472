"""What the built wheels alone install, in an environment outside of the repository: without extras, and with `worker`.

Dependencies come from the index that pip, or uv, is configured for.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import connect
from typing import Any, NamedTuple

import httpx
import pytest

from app.kinds.registry import KINDS
from tests.integration.caller import SPEC, samples
from tests.servers import clean_environment, free_port, stop, wait_until
from tests.wheels import ROOT, build

EXTRA = 'pip install "$(echo dist/steward_allocation-*.whl)[worker]"'
KNOBS = {"STEWARD_WORKER_WARM": "false", "STEWARD_WORKER_NICE": "0", "STEWARD_TRAINING_NICE": "0"}


class Installed(NamedTuple):
    """A virtual environment that has the wheels, and a folder to work in."""

    binaries: Path
    folder: Path

    def run(self, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, whatever its exit status."""
        program, environment = [str(self.binaries / command[0]), *command[1:]], self.environment(settings)
        return subprocess.run(
            program, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    def environment(self, settings: dict[str, str]) -> dict[str, str]:
        environment = clean_environment({**KNOBS, **settings})
        environment.pop("PYTHONPATH", None)  # nothing of the checkout is found
        return environment

    @contextmanager
    def serving(self, data: Path, *options: str) -> Iterator[tuple[httpx.Client, Path]]:
        """A client of `steward serve`, and what the service prints."""
        port, log = free_port(), self.folder / "serve.log"
        command = [str(self.binaries / "steward"), "serve", "--port", str(port), "--data", str(data), *options]
        with log.open("wb") as output, httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.folder, env=self.environment({}))
            try:
                wait_until(lambda: process.poll() is not None or answers(client), 100, "the service to answer")
                assert process.poll() is None, log.read_text()
                yield client, log
            finally:
                assert stop(process) == 0, log.read_text()


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").is_success
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return build(tmp_path_factory.mktemp("wheels"))


def install(folder: Path, wheels: Sequence[Path], extra: str = "") -> Installed:
    """Make an environment, and install both wheels with the constraints' versions, as pip does."""
    uv, place = Path(sys.executable).with_name("uv"), folder / "environment"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, place], check=True)
    environment = {**os.environ, "UV_FIND_LINKS": os.environ.get("UV_FIND_LINKS", os.environ.get("PIP_FIND_LINKS", ""))}
    values = [f"{wheels[0]}{extra}", str(wheels[1]), "--constraint", str(ROOT / "constraints.txt")]
    command = [str(uv), "pip", "install", "--quiet", "--python", str(place / "bin/python"), *values]
    subprocess.run(command, check=True, env=environment, cwd=folder)
    return Installed(place / "bin", folder)


@pytest.fixture(scope="module")
def core(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Without extras."""
    return install(tmp_path_factory.mktemp("core"), wheels)


def decide(client: httpx.Client, kind: str, name: str) -> dict[str, Any]:
    """Register a kind's example under a name, begin a run, report its first iteration; the decision for the next."""
    example = KINDS[kind].example
    assert client.post("/workloads", json={**example.spec, "name": name}).status_code == 201
    run = client.post("/runs", json={"workload": name, **example.start}).json()["id"]
    reported = client.put(f"/runs/{run}/iterations/0", json=example.reports[0])
    assert reported.status_code == 201, reported.text
    for page in (f"/ui/workloads/{name}", f"/ui/runs/{run}"):
        assert name in client.get(page).text
    body: dict[str, Any] = reported.json()
    return body


@pytest.mark.slow
def test_without_extras_it_serves_decisions_and_says_what_waits(core: Installed) -> None:
    listed = core.run("python", "-c", "import importlib.metadata as m; print(*(d.name for d in m.distributions()))")
    names = set(listed.stdout.lower().split())
    assert {"steward-allocation", "steward-client", "numpy"} <= names
    assert names & {"torch", "numba", "scipy", "scikit-learn", "gymnasium"} == set()
    redis = core.run("python", "-c", "from kombu import Connection as C; print(C('redis://host:6379/0').transport)")
    assert "redis.Transport" in redis.stdout, redis.stderr  # another broker needs no extra either
    data = core.folder / "data"
    with core.serving(data) as (client, log):
        assert f"fits and trainings wait for a worker: {EXTRA}" in log.read_text()
        for kind in KINDS:
            for name in (f"{kind}-a", f"{kind}-b"):
                assert decide(client, kind, name)["source"] == "heuristic"
        client.post("/workloads", json=SPEC)
        client.post(f"/workloads/{SPEC['name']}/samples", content=samples(), headers={"Content-Type": "text/csv"})
        job = client.post(f"/workloads/{SPEC['name']}/models", json={})
        assert job.status_code == 202, job.text
        assert client.get(f"/jobs/{job.json()['id']}").json()["state"] == "queued"
        home = client.get("/").text
        linked = set(re.findall(r'(?:href|src)="(/ui/static/[^"]+)"', home))
        assert len(linked) >= 4
        for page in ["/ui/runs", "/ui/jobs", "/ui/evaluations", "/docs", "/openapi.json", *linked]:
            assert client.get(page).is_success, page
        checks = json.loads(core.run("steward", "doctor", "--json", "--data", str(data)).stdout)["checks"]
        result = next(one for one in checks if one["check"] == "extras")
        assert (result["status"], EXTRA in result["remedy"]) == ("warn", True)
    existing(core, data)


def existing(core: Installed, data: Path) -> None:
    """Migrate an empty database and one that has rows; neither loses any."""
    for folder, rows in ((core.folder / "empty", 0), (data, 2 * len(KINDS) + 1)):
        for _ in range(2):
            done = core.run("steward", "db", "upgrade", "--data", str(folder))
            assert done.returncode == 0, done.stderr
        with closing(connect(folder / "steward.db")) as database:
            assert database.execute("SELECT count(*) FROM workloads").fetchone() == (rows,)
    with core.serving(data) as (client, _):
        assert len(client.get("/workloads").json()["items"]) == 2 * len(KINDS) + 1


@pytest.mark.slow
def test_commands_that_learn_name_the_extra_and_others_work(core: Installed) -> None:
    for command in (["demo", "--help"], ["--help"], ["pretrain", "--help"], ["db", "--help"]):
        assert core.run("steward", *command).returncode == 0, command
    assert core.run("steward-run", "--help").returncode == 0
    for command in (["worker"], ["demo"], ["serve", "--workers", "1", "--data", "unmade"]):
        done = core.run("steward", *command)
        assert done.returncode == 2
        assert "(gymnasium, numba, " in done.stderr
        assert EXTRA in done.stderr
    assert core.run("steward", "serve", STEWARD_WORKERS="2").returncode == 2  # who asks for workers is told
    script = "import time\nfor i in range(5): time.sleep(0.2); print(f'epoch {i + 1}/5 loss=1', flush=True)"
    for name in ("first", "second"):
        where = ["--url", f"http://127.0.0.1:{free_port()}", "--data", name, "--name", name]
        launched = ["--deadline", "60s", *where, "--", "python", "-c", script]
        done = core.run("steward-run", *launched)
        assert (done.returncode, "epoch 5/5" in done.stdout) == (0, True), done.stderr
        done = core.run("steward-run", "--learn", *launched)
        assert done.returncode == 2
        assert EXTRA in done.stderr
    assert not (core.folder / "unmade").exists()


@pytest.mark.slow
def test_with_the_extra_it_fits_and_trains(wheels: list[Path], tmp_path: Path) -> None:
    full = install(tmp_path, wheels, "[worker]")
    with full.serving(tmp_path / "data") as (client, _):
        for name in ("first", "second"):
            client.post("/workloads", json={**SPEC, "name": name})
            client.post(f"/workloads/{name}/samples", content=samples(), headers={"Content-Type": "text/csv"})
            ended(client, client.post(f"/workloads/{name}/models", json={}))
        training = {"algorithm": "tabular_q", "budget": 2_000, "seed": 1, "force": True}
        ended(client, client.post("/workloads/first/agents", json=training))
        assert "first" in client.get("/ui/workloads/first").text
    assert full.run("steward", "demo", "--help").returncode == 0


def ended(client: httpx.Client, queued: httpx.Response) -> None:
    """Wait until a job has succeeded."""
    assert queued.status_code == 202, queued.text
    place = f"/jobs/{queued.json()['id']}"
    wait_until(lambda: client.get(place).json()["state"] in ("succeeded", "failed"), 100, "the job to end")
    assert client.get(place).json()["state"] == "succeeded", client.get(place).json()
