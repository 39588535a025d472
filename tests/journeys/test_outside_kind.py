"""A kind from outside: installed by what its `pyproject.toml` says, it takes every way through the house."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.outside import install
from tests.servers import StewardServer, wait_until

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "examples" / "thermostat"


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For processes of their own alone: this one has read its kinds already."""
    install(SOURCE, tmp_path / "site", monkeypatch, here=False)


class Caller:
    """Calls a service, and makes sure that it is answered as expected."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def __call__(self, method: str, path: str, status: int = 200, **request: Any) -> Any:
        answer = self.client.request(method, path, **request)
        assert answer.status_code == status, answer.text
        return answer.json()

    def job(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for a job, and wait until it has succeeded; what it gave."""
        job = self("POST", path, 202, json=body)["id"]
        wait_until(lambda: self("GET", f"/jobs/{job}")["state"] not in ("queued", "running"), 240, f"the job of {path}")
        done = self("GET", f"/jobs/{job}")
        assert done["state"] == "succeeded", done
        result: dict[str, Any] = done["result"]
        return result


def in_a_process(*arguments: str) -> str:
    """What a Python of its own says, which finds the kind."""
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_two_modules_of_three_hundred_lines_that_nothing_else_names() -> None:
    files = [*SOURCE.glob("*.py"), SOURCE / "pyproject.toml"]
    assert len(files) == 3
    assert sum(len(file.read_text().splitlines()) for file in files) <= 300
    for package in ("app", "workers", "migrations"):
        assert [path for path in (ROOT / package).rglob("*.py") if "thermostat" in path.read_text().lower()] == []


@pytest.mark.usefixtures("_installed")
def test_it_serves_without_what_it_learns_with() -> None:
    code = (
        "import sys, app.main; from app.kinds.registry import KINDS;"
        "print('thermostat' in KINDS, {'torch', 'workers', 'sklearn', 'gymnasium', 'scipy'} & set(sys.modules))"
    )
    assert in_a_process("-c", code).strip() == "True set()"


@pytest.mark.slow
@pytest.mark.usefixtures("_installed")
def test_it_goes_all_the_way(steward_factory: Callable[..., StewardServer]) -> None:
    server = steward_factory()
    with httpx.Client(base_url=server.url, timeout=60) as client:
        walk(Caller(client), server.url)


def walk(call: Caller, url: str) -> None:
    """Register, sample, fit, train, decide, finish, change, evaluate, train again."""
    described(call("GET", "/openapi.json"))
    example = json.loads(
        in_a_process(
            "-c",
            "import json; from thermostat import EXAMPLE as e; print(json.dumps([e.spec, e.reports, e.unfit, e.samples"
            "['application/x-ndjson'].decode()]))",
        )
    )
    spec, reports, unfit, samples = example
    call("POST", "/workloads", 201, json=spec)
    assert call("GET", "/workloads/bedroom")["spec"]["minutes"] == 15
    upload = {"content": samples, "headers": {"Content-Type": "application/x-ndjson"}}
    assert call("POST", "/workloads/bedroom/samples", 201, **upload)["accepted"] == 8
    listed = call("GET", "/workloads/bedroom/samples?reports=true&limit=1")["items"][0]
    assert (listed["kind"], len(listed["reports"]), listed["seconds"]) == ("thermostat", 12, 12 * 900)

    call.job("/workloads/bedroom/models", {})
    model = call("GET", "/workloads/bedroom/models/1")["report"]
    assert model["gain"] == pytest.approx(4.0, abs=0.2)
    assert model["loss"] == pytest.approx(0.2, abs=0.05)

    first = start(call)
    assert decided(call, first, 0, reports[0])["reason"]["code"] == "no_agent"
    call.job("/workloads/bedroom/agents", {"algorithm": "dqn", "budget": 60_000})
    agent = call("GET", "/workloads/bedroom/agents/1")
    assert set(agent["report"]["heuristics"]) == {"off", "on", "hysteresis", "proportional"}
    assert set(agent["report"]["terms"]) == {"energy", "discomfort"}
    assert agent["promoted"], agent["report"]["reason"]

    # A process takes note of a promotion within a poll of the database.
    wait_until(lambda: decided(call, start(call), 0, reports[0])["source"] == "agent", 30, "the agent to answer")
    run = start(call, shadow=1)
    refused = call.client.put(f"/runs/{run}/iterations/0", json=unfit)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/power")
    for n, report in enumerate(reports):
        decision = decided(call, run, n, report)
        assert (decision["source"], decision["agent"], decision["policy"]) == ("agent", 1, "dqn")
        assert decision["power"] == spec["powers"][decision["action"]]
        assert decision["shadow"]["agrees"]
    assert decided(call, run, 2, reports[2], 200) == decision
    call("PATCH", f"/runs/{run}", json={"state": "finished"})
    assert call("GET", f"/workloads/bedroom/samples?execution={run}")["items"][0]["iterations"] == 3
    assert call("PATCH", "/workloads/bedroom", json={"lowest": 19})["spec"]["lowest"] == 19
    assert "bedroom" in call.client.get("/").text

    request = {"workload": "bedroom", "level": "L1", "seeds": 5, "episodes": 8}
    evaluation = call("GET", f"/evaluations/{call.job('/evaluations', request)['evaluation']}")
    assert [(one["agent"], one["level"]) for one in evaluation["verdicts"]] != []
    train = ("train", "bedroom", "--algorithm", "tabular_q", "--budget", "5000", "--json", "--url", url)
    output = in_a_process("-m", "app.cli", *train)
    assert json.loads(output)["algorithm"] == "tabular_q"


def described(schema: dict[str, Any]) -> None:
    """Its models stand in every union, told apart by ``kind``."""
    text = json.dumps(schema)
    for name in ("Spec", "Patch", "Report", "Decision", "Execution"):
        assert f"Thermostat{name}" in schema["components"]["schemas"], name
    for name in ("Spec", "Report", "Decision", "Execution"):
        assert f'"thermostat": "#/components/schemas/Thermostat{name}"' in text, name
    accepted = schema["paths"]["/workloads/{workload}/samples"]["post"]["requestBody"]["content"]["application/json"]
    assert len(accepted["schema"]["anyOf"]) == 4  # with iterative, inference and cluster


def start(call: Caller, **more: Any) -> str:
    """Start a run; its name."""
    begun = call("POST", "/runs", 201, json={"workload": "bedroom", **more})
    assert begun["decision"]["policy"] == "initial"
    return str(begun["id"])


def decided(call: Caller, run: str, n: int, report: dict[str, Any], status: int = 201) -> dict[str, Any]:
    """The decision that answers a report."""
    decision: dict[str, Any] = call("PUT", f"/runs/{run}/iterations/{n}", status, json=report)
    assert (decision["kind"], decision["reported"]) == ("thermostat", n)
    return decision


@pytest.mark.slow
@pytest.mark.usefixtures("_installed")
def test_it_passes_the_contract_kits() -> None:
    kits = [f"tests/contracts/test_{half}.py" for half in ("kind", "learned_kind")]
    output = in_a_process("-m", "pytest", "-q", "-p", "no:cacheprovider", *kits, "-k", "thermostat or every_kind")
    assert re.search(r"\b[1-9]\d* passed", output), output
    assert "failed" not in output, output
