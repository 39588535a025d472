"""Jobs survive whatever ends their workers: nothing is lost, nothing is done twice. Real workers, real trainings."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from app.processes import process_name
from tests.conftest import StartSteward
from tests.integration.caller import Caller
from tests.integration.conftest import Call
from tests.integration.processes import all_gone, family, worker_main
from tests.recovering import recovering
from tests.servers import StewardServer, start_steward, wait_until

LONG: dict[str, Any] = {"algorithm": "tabular_q", "budget": 400_000, "seed": 3}  # starts without torch
NETWORK: dict[str, Any] = {"algorithm": "dueling_double_dqn", "budget": 100_000, "seed": 3}
QUICK = {
    "checkpoint_seconds": "0.1",
    "progress_seconds": "0.05",
    "heartbeat_seconds": "0.3",
    "sweep_seconds": "0.3",
    "requeue_seconds": "2",
    "lease_seconds": "30",
}

pytestmark = pytest.mark.slow


@pytest.fixture(params=["embedded", pytest.param("scale", marks=pytest.mark.servers)])
def backend(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings of the embedded default, or of PostgreSQL and Redis."""
    if request.param == "embedded":
        return dict(QUICK)
    broker = str(request.getfixturevalue("redis_url"))
    with redis.Redis.from_url(broker) as client:
        client.flushall()
    return {**QUICK, "database_url": str(request.getfixturevalue("postgres_url")), "broker_url": broker}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StewardServer]:
    """One whose children alone are killed, for several tests; its leases outlast them."""
    process = start_steward(tmp_path_factory.mktemp("lasting"), **{**QUICK, "lease_seconds": "600"})
    yield process
    process.stop()


def events(caller: Caller, job: str) -> list[dict[str, Any]]:
    """All that a job has told; it must be done."""
    lines = caller.http.get(f"/jobs/{job}/events").text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def steps_of_attempt(reported: list[dict[str, Any]], attempt: int) -> list[int]:
    """Environment steps that an attempt reported, in order; attempts count from 1."""
    counts: dict[int, list[int]] = {}
    number = 0
    for event in reported:
        if "attempt" in event:
            number += 1
        elif "steps" in event:
            counts.setdefault(number, []).append(event["steps"])
    return counts.get(attempt, [])


def until_half_way(caller: Caller, job: str, fraction: float = 0.15) -> None:
    """Wait until a training has come so far, and is not done."""
    wait_until(lambda: caller.job(job)["progress"] >= fraction, 120, f"a progress of {fraction}")
    assert caller.job(job)["state"] == "running"


def is_done_once(caller: Caller, job: str) -> dict[str, Any]:
    """Wait for the end: one success, one agent."""
    done = caller.wait(job, 240)
    assert done["state"] == "succeeded", done
    assert [agent["version"] for agent in caller.agents()] == [done["result"]["agent"]] == [1]
    return done


def test_a_killed_worker_is_followed_by_one_that_resumes(
    steward_factory: StartSteward, call: Call, backend: dict[str, str]
) -> None:
    server = steward_factory(**backend)
    caller = call(server)
    caller.modelled(server)
    job = caller.train(**NETWORK)
    until_half_way(caller, job)
    for process in family(server):
        process.kill()
    with recovering():
        wait_until(lambda: caller.job(job)["attempts"] == 2, 240, "another attempt")
    done = is_done_once(caller, job)
    assert done["attempts"] == 2
    reported_events = events(caller, job)
    assert [event["state"] for event in reported_events].count("succeeded") == 1
    first, second = steps_of_attempt(reported_events, 1), steps_of_attempt(reported_events, 2)
    assert second[0] > first[0]  # it went on, it did not begin again
    assert second[-1] >= NETWORK["budget"]


def test_a_killed_child_is_noticed_without_waiting_for_its_lease(server: StewardServer, call: Call) -> None:
    caller = call(server, "killed")
    caller.modelled(server)
    job = caller.train(**LONG)
    until_half_way(caller, job)
    _main, child = family(server)
    child.kill()
    with recovering():
        wait_until(lambda: caller.job(job)["attempts"] == 2, 120, "another attempt")
    assert is_done_once(caller, job)["attempts"] == 2


def test_a_killed_idler_takes_no_lock_with_it(server: StewardServer, call: Call) -> None:
    caller = call(server, "idle")
    caller.modelled(server)
    _main, child = family(server)
    time.sleep(1.0)  # it is waiting for work by now
    child.kill()
    done = caller.wait(caller.train(algorithm="tabular_q", budget=1_000), 60)
    assert (done["state"], done["attempts"]) == ("succeeded", 1)


def test_jobs_go_on_after_a_stop_and_after_a_crash_of_everything(
    steward_factory: StartSteward, call: Call, tmp_path: Path, backend: dict[str, str]
) -> None:
    server = steward_factory(tmp_path / "data", **backend)
    caller = call(server)
    caller.modelled(server)
    job = caller.train(**{**LONG, "budget": 600_000})
    until_half_way(caller, job, 0.06)
    assert server.stop() == 0

    server = steward_factory(tmp_path / "data", **backend)
    caller = call(server)
    until_half_way(caller, job, caller.job(job)["progress"] + 0.06)
    processes = family(server)
    server.kill()
    wait_until(lambda: all_gone(processes), 60, "the workers to end with their parent")

    with recovering():
        server = steward_factory(tmp_path / "data", **backend)
        caller = call(server)
        wait_until(lambda: caller.job(job)["attempts"] == 2, 240, "another attempt")
    done = is_done_once(caller, job)
    assert done["attempts"] == 2  # the clean stop does not count
    reported_events = events(caller, job)
    starts = [steps_of_attempt(reported_events, attempt)[0] for attempt in (1, 2, 3)]
    assert starts[0] < starts[1] < starts[2]


def test_a_cancelled_training_ends_at_its_next_chunk(server: StewardServer, call: Call) -> None:
    caller = call(server, "cancelled")
    caller.modelled(server)
    job = caller.train(**{**LONG, "budget": 400_000_000})
    until_half_way(caller, job, 1e-4)
    caller.post(f"/jobs/{job}/cancel")
    assert caller.wait(job, 60)["state"] == "cancelled"
    assert caller.agents() == []
    following = caller.wait(caller.train(algorithm="tabular_q", budget=1_000), 60)  # the worker is free again
    assert following["state"] == "succeeded"


def test_an_emptied_broker_costs_time_and_no_job(
    steward_factory: StartSteward, call: Call, backend: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    api = steward_factory(data, "--workers", "0", wait="alive", **backend)
    caller = call(api)
    caller.modelled(api)
    jobs = [caller.train(algorithm="tabular_q", budget=1_000) for _ in range(3)]
    if "broker_url" in backend:
        with redis.Redis.from_url(backend["broker_url"]) as client:
            assert client.llen("celery") == 3
            client.flushall()
    else:
        assert len(list((data / "broker").iterdir())) >= 3
        shutil.rmtree(data / "broker")
    api.stop()
    server = steward_factory(data, **backend)
    caller = call(server)
    assert [caller.wait(job)["state"] for job in jobs] == ["succeeded"] * 3
    assert sorted(agent["version"] for agent in caller.agents()) == [1, 2, 3]


def freeze(caller: Caller, server: StewardServer, job: str) -> psutil.Process:
    """Stop the very process that holds a job, as if its host were stuck; not while it locks the database."""
    until_half_way(caller, job)
    owner = max(worker_main(server).children(), key=lambda child: child.cpu_times().user)
    for _ in range(20):
        owner.send_signal(signal.SIGSTOP)
        with closing(sqlite3.connect(server.data_dir / "steward.db", timeout=1.0, isolation_level=None)) as probe:
            try:
                probe.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                owner.send_signal(signal.SIGCONT)
                time.sleep(0.05)
            else:
                probe.execute("ROLLBACK")
                return owner
    pytest.fail("the process held the database's lock whenever it was stopped")


def test_a_worker_that_was_stuck_is_fenced_out(steward_factory: StartSteward, call: Call) -> None:
    server = steward_factory(None, "--workers", "2", **{**QUICK, "lease_seconds": "2"})
    caller = call(server)
    caller.modelled(server)
    job = caller.train(**LONG)
    stuck = freeze(caller, server, job)
    try:
        wait_until(lambda: caller.job(job)["attempts"] >= 2, 60, "somebody else to take the job")
        done = is_done_once(caller, job)
    finally:
        stuck.send_signal(signal.SIGCONT)
    assert done["attempts"] == 2
    wait_until(lambda: "not held any more" in server.log.read_text() or "taken over" in server.log.read_text(), 60)
    is_done_once(caller, job)


def test_processes_have_names_of_their_own() -> None:
    assert process_name() == process_name()
    assert str(psutil.Process().pid) in process_name()
