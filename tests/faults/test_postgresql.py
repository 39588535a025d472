"""PostgreSQL behind a proxy: connections are cut, held still, led to a standby; no report is lost, none doubled."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import StartSteward
from tests.faults.partition import namespace
from tests.faults.proxy import Proxy
from tests.faults.reporting import Reporting
from tests.servers import PostgresServer, _as_postgres, free_port, postgres_program, postgres_server, wait_until

pytestmark = [pytest.mark.servers, pytest.mark.slow]


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


def through(proxy: Proxy, server: PostgresServer) -> str:
    return server.url().replace(f":{server.port}/", f":{proxy.port}/")


def test_connections_are_cut_again_and_again(server: PostgresServer, steward_factory: StartSteward) -> None:
    with Proxy(server.port).running() as proxy:
        url = through(proxy, server)
        api = steward_factory(None, "--workers", "0", wait="alive", database_url=url)
        with Reporting(api.url) as reporting:
            for _ in range(5):
                proxy.cut()
                reporting.wait_for_more(3)
        reporting.check()
    assert reporting.statuses <= {200, 201, 503}


def test_a_network_that_holds_still_costs_time_and_no_report(
    server: PostgresServer, steward_factory: StartSteward
) -> None:
    with Proxy(server.port).running() as proxy:
        url = through(proxy, server)
        api = steward_factory(None, "--workers", "0", wait="alive", database_url=url, request_timeout_seconds="3")
        with Reporting(api.url) as reporting:
            proxy.pause()
            time.sleep(6)
            proxy.resume()
            reporting.wait_for_more(3)
        reporting.check()
    assert reporting.statuses <= {200, 201, 503}


def test_a_network_that_drops_everything_costs_time_and_no_report(steward_factory: StartSteward) -> None:
    """No end of a connection is told; what is sent is dropped, for longer than a connection is waited for."""
    with namespace() as there, postgres_server(there.address, there.within) as server:
        knobs = {"request_timeout_seconds": "3", "database_silence_seconds": "3", "database_connect_seconds": "2"}
        api = steward_factory(None, "--workers", "0", wait="alive", database_url=server.url(), **knobs)
        with Reporting(api.url) as reporting:
            there.part()
            time.sleep(7)
            there.join()
            reporting.wait_for_more(3)
        reporting.check()
        assert reporting.statuses <= {200, 201, 503}
        api.stop()


@contextmanager
def standby(primary: PostgresServer) -> Iterator[PostgresServer]:
    """A second server that has all that the first one acknowledges: it commits once both have it."""
    program = postgres_program("pg_basebackup")
    assert program is not None
    folder = primary.folder.with_name(f"{primary.folder.name}-standby")
    folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)
    source = f"host=127.0.0.1 port={primary.port} user=steward application_name=standby"
    copy = [program, "-D", str(folder / "data"), "-d", source, "-R", "-X", "stream", "-c", "fast"]
    subprocess.run(_as_postgres(copy), check=True, capture_output=True, cwd=folder)
    server = PostgresServer(folder, free_port())
    server.start()
    try:
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        primary.execute("SELECT pg_reload_conf()")
        yield server
    finally:
        server.stop()
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def promote(server: PostgresServer) -> None:
    server.execute("SELECT pg_promote(true, 60)")


def kill(server: PostgresServer) -> None:
    """The host is gone: the postmaster and what it has started, which follow it at once."""
    postmaster = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGQUIT)  # immediate: no checkpoint, no goodbye
    assert server.process is not None
    server.process.wait(60)
    server.process = None


def test_a_standby_takes_over(server: PostgresServer, steward_factory: StartSteward) -> None:
    with standby(server) as other, Proxy(server.port).running() as proxy:
        url = through(proxy, server)
        api = steward_factory(None, "--workers", "0", wait="alive", database_url=url)
        with Reporting(api.url) as reporting:
            kill(server)
            promote(other)
            proxy.lead_to(other.port)
            reporting.wait_for_more(5)
        reporting.check()
        wait_until(api.alive, what="the API to answer")
    assert reporting.statuses <= {200, 201, 503}
    assert not Path(server.folder / "data" / "postmaster.pid").exists()
