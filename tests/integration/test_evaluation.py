"""`steward evaluate` against a real service, whose worker is killed in the middle of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import StartSteward
from tests.integration.caller import SPEC, WORKLOAD, Caller, samples
from tests.integration.conftest import Call
from tests.integration.processes import family
from tests.servers import wait_until

QUICK = {"checkpoint_seconds": "0.1", "progress_seconds": "0.05", "sweep_seconds": "0.3"}


def steward(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "app.cli", "evaluate", WORKLOAD, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def prepare(caller: Caller) -> None:
    """A small workload, with a model and an agent."""
    executors = {**SPEC["resources"][0], "maximum": 10, "max_steps": 1, "initial": 6}
    targets = [{**SPEC["metrics"][0], "target": 120.0}]
    caller.post("/workloads", json={**SPEC, "resources": [executors], "metrics": targets, "iterations": 10})
    csv = samples(executions=14, iterations=10, largest=10)
    caller.post(f"/workloads/{WORKLOAD}/samples", content=csv, headers={"Content-Type": "text/csv"})
    assert caller.wait(caller.fit())["state"] == "succeeded"
    assert caller.wait(caller.train(algorithm="planner", seed=1))["state"] == "succeeded"


@pytest.mark.slow
def test_an_evaluation_outlives_its_worker_and_ends_as_a_page(
    steward_factory: StartSteward, call: Call, tmp_path: Path
) -> None:
    server = steward_factory(**QUICK)
    caller = call(server)
    prepare(caller)
    page = tmp_path / "pages" / "report.html"
    options = ("--level", "L1", "--episodes", "16", "--out", str(page), "--json")
    command = steward("--url", server.url, "--agent", "1", *options)
    wait_until(lambda: bool(caller.get("/jobs?state=running")["items"]), 60, "the evaluation to begin")
    (job,) = caller.get("/jobs?state=running")["items"]
    wait_until(lambda: caller.job(job["id"])["progress"] > 0.2, 120, "some of the evaluation to be done")
    for process in family(server):
        process.kill()
    output, notes = command.communicate(timeout=300)
    assert command.returncode == 0, notes
    body = json.loads(output)
    assert [verdict["agent"] for verdict in body["verdicts"]] == [1]
    assert [level["level"] for level in body["report"]["levels"] if level["available"]][-1] == "L1"
    done = caller.job(job["id"])
    assert (done["attempts"], done["result"]) == (2, {"evaluation": body["id"]})
    assert page.read_bytes() == caller.http.get(f"/evaluations/{body['id']}/report").content
    assert f"Evaluation of agent 1 on {WORKLOAD}" in page.read_text()

    refused = steward("--url", server.url, "--agent", "9")
    _, notes = refused.communicate(timeout=60)
    assert (refused.returncode, "the newest is 1" in " ".join(notes.split())) == (1, True)
