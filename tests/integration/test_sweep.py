"""A training of many learners over two real workers: what is killed is taken up, what is cancelled stops."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from rich.console import Console
from typer.testing import CliRunner

from app.cli.main import cli
from app.cli.remote.train import Options, run
from tests.conftest import StartSteward
from tests.integration.caller import Caller
from tests.integration.conftest import Call
from tests.integration.processes import worker_main
from tests.servers import StewardServer, start_steward, wait_until

QUICK = {
    "checkpoint_seconds": "0.1",
    "progress_seconds": "0.05",
    "heartbeat_seconds": "0.3",
    "sweep_seconds": "0.3",
    "requeue_seconds": "2",
    "lease_seconds": "60",
}
SWEEP: dict[str, Any] = {"algorithm": "dueling_double_dqn", "seeds": 2, "budget": 100_000, "seed": 3}
QUICK_SWEEP: dict[str, Any] = {"algorithm": "tabular_q", "seeds": 3, "budget": 20_000, "seed": 3}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StewardServer]:
    """Two workers and the embedded default, for several tests."""
    process = start_steward(tmp_path_factory.mktemp("embedded"), "--workers", "2", **QUICK)
    yield process
    process.stop()


@pytest.fixture(params=["embedded", pytest.param("scale", marks=pytest.mark.servers)])
def server(request: pytest.FixtureRequest, steward_factory: StartSteward) -> StewardServer:
    """Two workers, on the embedded default or on PostgreSQL and Redis."""
    if request.param == "embedded":
        server = request.getfixturevalue("embedded")
        assert isinstance(server, StewardServer)
        return server
    broker = str(request.getfixturevalue("redis_url"))
    with redis.Redis.from_url(broker) as client:
        client.flushall()
    database = str(request.getfixturevalue("postgres_url"))
    return steward_factory(None, "--workers", "2", **QUICK, database_url=database, broker_url=broker)


def events(caller: Caller, job: str) -> list[dict[str, Any]]:
    """All that a job has told; it must be done."""
    lines = caller.http.get(f"/jobs/{job}/events").text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def test_a_killed_worker_costs_a_sweep_no_trial(server: StewardServer, call: Call) -> None:
    caller = call(server, "killed")
    caller.modelled(server)
    job = caller.train(**SWEEP)
    wait_until(lambda: caller.job(job)["progress"] > 0.2, 120, "one of them to go on alone")
    max(worker_main(server).children(), key=lambda child: child.cpu_percent(1.0)).kill()
    done = caller.wait(job, 240)
    assert done["state"] == "succeeded", done
    agents = caller.agents()
    assert [agent["version"] for agent in agents] == [done["result"]["agent"]] == [1]
    bracket = agents[0]["report"]["bracket"]
    assert sorted(trial["rungs"] for trial in bracket) == [1, 2]
    assert all(trial["score"] is not None for trial in bracket)
    reported_events = [event for event in events(caller, job) if event.get("phase") == "learning"]
    assert {event["trial"] for event in reported_events} == {0, 1}
    alone = [event["steps"] for event in reported_events if event["rung"] == 1]
    assert alone == sorted(set(alone))  # it went on from its checkpoint
    assert caller.get("/jobs")["items"][0]["id"] == job  # its trials are not listed


def test_a_cancelled_sweep_frees_both_workers(embedded: StewardServer, call: Call) -> None:
    caller = call(embedded, "cancelled")
    caller.modelled(embedded)
    job = caller.train(**{**SWEEP, "budget": 400_000_000})
    wait_until(lambda: caller.job(job)["progress"] > 0, 120, "trials to be at work")
    assert caller.post(f"/jobs/{job}/cancel")["state"] == "cancelled"
    assert caller.agents() == []
    following = [caller.train(algorithm="tabular_q", budget=1_000) for _ in range(2)]
    assert [caller.wait(training, 60)["state"] for training in following] == ["succeeded"] * 2


def test_the_command_follows_to_the_verdict_and_goes_on_from_it(embedded: StewardServer, call: Call) -> None:
    caller, url = call(embedded, "commanded"), embedded.url
    caller.modelled(embedded)
    notes, output = Console(record=True, width=200), Console(record=True, width=200)
    assert run(Options(url, caller.workload, QUICK_SWEEP), output, notes) == 0
    text = output.export_text()
    assert "tabular_q" in text
    assert "of its budget, where 1 went on" in text
    assert "agent 1: tabular_q" in text
    again = ["train", caller.workload, "--url", url, "--start-from", "1", "--budget", "20000", "--json"]
    result = CliRunner().invoke(cli, [*again, "--require-promoted"])
    agent = json.loads(result.stdout[result.stdout.index("{") :])
    assert (agent["version"], agent["report"]["parent"]) == (2, 1)
    assert result.exit_code == (0 if agent["promoted"] else 4)
    refused = CliRunner().invoke(cli, ["train", caller.workload, "--url", url, "--start-from", "9"])
    assert refused.exit_code == 1
    assert "the newest is 2" in " ".join(refused.stderr.split())
    assert CliRunner().invoke(cli, ["train", caller.workload, "--url", "http://127.0.0.1:9"]).exit_code == 3
