"""A broker that answers errors: workers outlast it, tell that they take nothing, and take all once it answers again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest
import redis

from tests.conftest import StartSteward
from tests.integration.caller import Caller
from tests.recovering import recovering
from tests.servers import free_port, redis_server, standalone_worker, wait_until

FAULT_SECONDS = 8.0
RECOVERY_SECONDS = 400  # 30 on an idle machine
QUICK: dict[str, Any] = {"algorithm": "tabular_q", "budget": 1_000}
pytestmark = [pytest.mark.servers, pytest.mark.slow]

SEEN = {"heartbeat_seconds": "0.5", "sweep_seconds": "0.5", "worker_seen_seconds": "3", "requeue_seconds": "3"}


class Fault(NamedTuple):
    """How a broker is brought to answer errors, and back; whether an idle worker notices."""

    begin: str
    end: str
    is_noticed: bool = True


FAULTS = {
    "read-only": Fault("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
    "no replicas": Fault("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
    "full": Fault("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", is_noticed=False),
    "not permitted": Fault("ACL SETUSER default -brpop", "ACL SETUSER default +brpop"),
    "resets": Fault("CLIENT KILL TYPE normal SKIPME yes", "PING", is_noticed=False),
}


def says(caller: Caller, name: str) -> str:
    """What readiness says of a check."""
    return str(caller.http.get("/readyz").json()[name])


def execute(client: redis.Redis, command: str) -> None:
    """A command of an operator's."""
    client.execute_command(*command.split())  # type: ignore[no-untyped-call]


def during(fault: Fault, client: redis.Redis, look: Callable[[], object]) -> None:
    """Keep the fault up, and look on."""
    execute(client, fault.begin)
    try:
        begun = time.monotonic()
        look()
        while time.monotonic() - begun < FAULT_SECONDS:
            if "KILL" in fault.begin:
                execute(client, fault.begin)
            time.sleep(0.2)
    finally:
        execute(client, fault.end)


def are_done_once(caller: Caller, jobs: Sequence[str]) -> None:
    """Wait for all: each succeeds at the first attempt, with one agent."""
    assert [caller.wait(job, RECOVERY_SECONDS)["state"] for job in jobs] == ["succeeded"] * len(jobs)
    assert [caller.job(job)["attempts"] for job in jobs] == [1] * len(jobs)
    assert sorted(agent["version"] for agent in caller.agents()) == [1 + number for number in range(len(jobs))]


@pytest.mark.parametrize("name", FAULTS)
def test_an_idle_worker_outlasts_a_broker_that_answers_errors(name: str, steward_factory: StartSteward) -> None:
    with redis_server() as url, redis.Redis.from_url(url) as client:
        api = steward_factory(None, "--workers", "0", wait="alive", broker_url=url, **SEEN)
        caller = Caller(api.url)
        caller.modelled(api)
        with standalone_worker(api.data_dir, 1, broker_url=url, database_url=api.database_url, **SEEN) as worker:
            jobs = [caller.train(**QUICK)]
            are_done_once(caller, jobs)

            def look() -> None:
                jobs.append(caller.train(**QUICK))
                if FAULTS[name].is_noticed:
                    wait_until(lambda: says(caller, "worker") != "ok", 60, "readiness to tell that nothing is consumed")

            during(FAULTS[name], client, look)
            with recovering():
                jobs.append(caller.train(**QUICK))
                are_done_once(caller, jobs)
            wait_until(lambda: says(caller, "worker") == "ok", RECOVERY_SECONDS, "the worker to be ready")
            assert worker.poll() is None
        caller.http.close()


@pytest.mark.parametrize("name", ["read-only", "resets"])
def test_jobs_under_way_are_done_once_while_their_broker_fails(name: str, steward_factory: StartSteward) -> None:
    """The first one's message can't be acknowledged; more come meanwhile, which the worker's other process finds."""
    with redis_server() as url, redis.Redis.from_url(url) as client:
        api = steward_factory(None, "--workers", "0", wait="alive", broker_url=url, **SEEN)
        caller = Caller(api.url)
        caller.modelled(api)
        with standalone_worker(api.data_dir, 2, broker_url=url, database_url=api.database_url, **SEEN) as worker:
            jobs = [caller.train(algorithm="tabular_q", budget=200_000)]
            wait_until(lambda: caller.job(jobs[0])["state"] == "running", 120, "the job to begin")

            def look() -> None:
                for _ in range(5):
                    execute(client, FAULTS[name].begin)
                    jobs.append(caller.train(**QUICK))
                caller.wait(jobs[0], RECOVERY_SECONDS)

            during(FAULTS[name], client, look)
            jobs.append(caller.train(**QUICK))
            are_done_once(caller, jobs)
            assert worker.poll() is None
        caller.http.close()


def test_a_worker_goes_on_whose_broker_died_as_its_job_ended(steward_factory: StartSteward) -> None:
    """The message of the job can't be acknowledged, and the only place of the worker is taken by it."""
    with ExitStack() as servers:
        port = free_port()
        first = redis_server(port=port)
        url = first.__enter__()
        try:
            api = steward_factory(None, "--workers", "0", wait="alive", broker_url=url, **SEEN)
            caller = Caller(api.url)
            caller.modelled(api)
            worker = servers.enter_context(
                standalone_worker(api.data_dir, 1, broker_url=url, database_url=api.database_url, **SEEN)
            )
            jobs = [caller.train(algorithm="tabular_q", budget=200_000)]
            wait_until(lambda: caller.job(jobs[0])["state"] == "running", 120, "the job to begin")
        finally:
            first.__exit__(None, None, None)
        caller.wait(jobs[0], RECOVERY_SECONDS)
        time.sleep(3)  # the worker has tried to acknowledge it
        assert servers.enter_context(redis_server(port=port)) == url
        jobs.append(caller.train(**QUICK))
        are_done_once(caller, jobs)
        assert worker.poll() is None
        caller.http.close()
