"""A service of several hosts, of which some are cut off: PostgreSQL and Redis, two APIs and three workers."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from app.database.engine import Database
from app.database.tables import Agent, Job
from tests.faults.partition import Namespace, network
from tests.faults.reporting import Reporting
from tests.integration.caller import Caller
from tests.servers import (
    StewardServer,
    clean_environment,
    postgres_server,
    redis_server,
    standalone_worker,
    start_steward,
    wait_until,
)

QUICK = {
    "checkpoint_seconds": "0.3",
    "progress_seconds": "0.1",
    "heartbeat_seconds": "2",
    "sweep_seconds": "1",
    "requeue_seconds": "3",
    "lease_seconds": "20",
    "database_silence_seconds": "4",
    "database_connect_seconds": "3",
}
WORKERS = ("worker-a", "worker-b", "worker-c")
CUT_SECONDS = 25.0
"""Longer than a lease, and than a connection is waited for."""
FREED_SECONDS = 90.0
"""Longest time until a lost job is free: what its host holds in the database must have ended, too."""
JOB_SECONDS = 600.0
TRAINING = {"algorithm": "tabular_q", "budget": 50_000}


@dataclass(frozen=True)
class Hosts:
    """The hosts, and what runs on them."""

    apis: tuple[tuple[Namespace, StewardServer], ...]
    workers: tuple[Namespace, ...]
    database: Database
    headers: dict[str, str]

    def caller(self, api: int, workload: str) -> Caller:
        """A caller of one of the APIs."""
        caller = Caller(self.apis[api][1].url, workload)
        caller.http.headers.update(self.headers)
        return caller

    def owners(self, jobs: list[str]) -> dict[str, str]:
        """Running jobs by the name of the host that runs them."""
        with self.database.reading() as session:
            rows = session.execute(select(Job.owner, Job.id).where(Job.id.in_(jobs), Job.state == "running"))
            return {owner.partition(":")[0]: job for owner, job in rows if owner}


@contextmanager
def several(folder: Path) -> Iterator[Hosts]:
    """Six hosts on one bridge: data, two APIs, three workers."""
    with ExitStack() as stack:
        data, *rest = stack.enter_context(network(("data", "api-a", "api-b", *WORKERS)))
        postgres = stack.enter_context(postgres_server(data.address, data.within))
        broker = stack.enter_context(redis_server(host=data.address, within=data.within))
        shared = {"database_url": postgres.url(), "broker_url": broker, **QUICK}
        headers = {"Authorization": f"Bearer {_key(shared)}"}
        apis = []
        for host in rest[:2]:
            own = {"host": host.address, "allowed_hosts": host.address}
            api = start_steward(folder / host.name, "--workers", "0", wait="alive", within=host.within, **shared, **own)
            stack.callback(api.stop)
            apis.append((host, api))
        for host in rest[2:]:
            (folder / host.name).mkdir()
            stack.enter_context(standalone_worker(folder / host.name, 1, host.within, **shared))
        database = Database(postgres.url())
        stack.callback(database.dispose)
        yield Hosts(tuple(apis), tuple(rest[2:]), database, headers)


def _key(shared: dict[str, str]) -> str:
    """The first key, of an administrator."""
    command = [sys.executable, "-m", "app.cli", "key", "create", "--scopes", "admin"]
    environment = clean_environment({f"STEWARD_{name.upper()}": value for name, value in shared.items()})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_worker_and_an_api_that_are_cut_off_cost_time_and_neither_reports_nor_jobs(tmp_path: Path) -> None:
    with several(tmp_path) as hosts, ExitStack() as stack:
        callers = [hosts.caller(number, f"trained-{number}") for number in range(2)]
        for caller in callers:
            stack.callback(caller.http.close)
            caller.modelled(hosts.apis[0][1])
        reports = [stack.enter_context(Reporting(api.url, 2, hosts.headers)) for _, api in hosts.apis]
        jobs = [callers[seed % 2].train(**TRAINING, seed=seed) for seed in range(len(WORKERS))]
        wait_until(lambda: len(hosts.owners(jobs)) == len(WORKERS), 200, "each worker to have a job")
        cut, job = hosts.workers[0], hosts.owners(jobs)[hosts.workers[0].name]

        for host in (cut, hosts.apis[0][0]):
            host.part()
        begun, other = time.monotonic(), sum(reports[1].counts.values())
        wait_until(lambda: hosts.owners([job]).get(cut.name) is None, FREED_SECONDS, "the job to be another host's")
        time.sleep(max(CUT_SECONDS - (time.monotonic() - begun), 0))
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{hosts.apis[0][1].url}/healthz", timeout=2)
        assert sum(reports[1].counts.values()) > other, "the other API has gone on"
        for host in (cut, hosts.apis[0][0]):
            host.join()

        for reporting in reports:
            reporting.wait_for_more(3)
        for reporting in reports:
            reporting.__exit__()
            reporting.check()
            assert reporting.statuses <= {200, 201, 503}
        last = callers[0].train(**TRAINING, seed=9)  # by the API that was cut off
        done = [callers[1].wait(one, JOB_SECONDS) for one in (*jobs, last)]
        assert [one["state"] for one in done] == ["succeeded"] * len(done)
        with hosts.database.reading() as session:
            assert session.scalar(select(func.count()).select_from(Agent)) == len(done), "none twice"
