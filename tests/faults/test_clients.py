"""Clients that don't read what they asked for, or send what they have too slowly, are no one else's trouble."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from app.database.engine import Database
from app.database.tables import Job, JobEvent
from tests.app.jobs.test_lease import make
from tests.conftest import StartSteward
from tests.faults.reporting import Reporting

STREAMS, EVENTS = 120, 4_000
GROWTH_BYTES = 150 << 20


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    client = socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=30)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return client


def much_told(database_url: str) -> str:
    """A job that runs and has told much."""
    database = Database(database_url)
    try:
        job = make(database, "talkative")
        with database.session() as session:
            session.get_one(Job, job).state = "running"
            fields = {"state": "running", "progress": 0.5, "more": "x" * 500}
            session.add_all(JobEvent(job_id=job, sequence=2 + i, data=fields) for i in range(EVENTS))
    finally:
        database.dispose()
    return job


@pytest.mark.slow
def test_streams_that_nobody_reads_and_bodies_that_never_end_hold_up_nobody(steward_factory: StartSteward) -> None:
    api = steward_factory(None, "--workers", "0", wait="alive", header_timeout_seconds="5")
    job = much_told(api.database_url)
    process = max((psutil.Process(api.process.pid), *psutil.Process(api.process.pid).children()), key=_resident)
    before = _resident(process)
    with ExitStack() as stack, Reporting(api.url) as reporting:
        for number in range(STREAMS):
            client = stack.enter_context(connected(api.url))
            if number % 2:
                client.sendall(f"GET /jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            else:
                head = "POST /workloads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                client.sendall(f"{head}Content-Length: 100000\r\n\r\n{{".encode())
        time.sleep(3)
        reporting.wait_for_more(10)
        assert httpx.get(f"{api.url}/healthz", timeout=30).status_code == 200
        assert httpx.get(f"{api.url}/runs", timeout=30).status_code == 200
        assert _resident(process) - before < GROWTH_BYTES
    reporting.check()
    assert reporting.statuses <= {200, 201}


def _resident(process: psutil.Process) -> int:
    return int(process.memory_info().rss)
