"""The service that a launch has of its own: it comes back when it is killed, and is given up when it can't stay."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest
from steward_client.launcher import embedded, serving
from steward_client.launcher.actuators import leftovers
from steward_client.launcher.embedded import Embedded
from steward_client.launcher.service import Service
from steward_client.launcher.serving import service_at
from steward_client.launcher.standby import Turn
from steward_client.launcher.wishes import Misuse, Wishes

from tests.servers import free_port, wait_until

STANDS_FOR_IT = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"status": "alive"}')
HTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> int:
    """Of a service that launchers can start."""
    found = free_port()
    command = [sys.executable, "-c", STANDS_FOR_IT, str(found)]
    monkeypatch.setattr(serving, "_command", lambda _, data: [*command, str(data)])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return found


def running(port: int) -> list[psutil.Process]:
    """Services at a port that are below this process."""
    return [one for one in psutil.Process().children(recursive=True) if str(port) in one.cmdline()]


def wished(port: int, data: Path) -> Wishes:
    """To launch anything there."""
    return Wishes(("ls",), "ls", url=f"http://127.0.0.1:{port}", data=data)


def test_it_is_started_again_when_it_is_killed_and_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    monkeypatch.setattr(embedded, "FIRST_PAUSE_SECONDS", 0.01)
    said = list[str]()
    with service_at(wished(port, tmp_path), tmp_path, said.append) as started:
        (first,) = running(port)
        first.kill()
        wait_until(lambda: started.answers() and [one.pid for one in running(port)] != [first.pid], 60)
    assert "the service ended with status 137; it is started again" in said
    assert running(port) == []


def test_of_launchers_that_are_called_at_once_one_starts_it(tmp_path: Path, port: int) -> None:
    owned, met = list[bool](), threading.Barrier(2)

    def launch(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        with service_at(wished(port, tmp_path / "data"), folder, lambda _: None) as found:
            owned.append(found.own)
            met.wait(60)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(launch, range(2)))
    assert sorted(owned) == [False, True]


def test_the_other_one_goes_on_with_it_when_the_one_that_ran_it_ends(tmp_path: Path, port: int) -> None:
    said = list[str]()
    first = ExitStack()
    with first:
        first.enter_context(service_at(wished(port, tmp_path / "data"), tmp_path, said.append))
        with service_at(wished(port, tmp_path / "elsewhere"), tmp_path, said.append) as found:
            (before,) = running(port)
            assert not found.own
            first.close()
            wait_until(lambda: found.own and found.answers(), 60)
            (after,) = running(port)
            assert (before.is_running(), after.cmdline()[-1]) == (False, str(tmp_path / "data"))
    assert running(port) == []
    assert any(line.startswith("the service ended with the launcher that ran it") for line in said)


def test_a_service_that_no_launcher_runs_is_never_replaced(tmp_path: Path, port: int) -> None:
    with subprocess.Popen([sys.executable, "-c", STANDS_FOR_IT, str(port)]) as plain:
        try:
            wait_until(Service(f"http://127.0.0.1:{port}").answers, 60)
            with service_at(wished(port, tmp_path), tmp_path, lambda _: None) as found:
                assert not found.own
                assert "steward-standby" not in [one.name for one in threading.enumerate()]
        finally:
            plain.kill()


@pytest.mark.skipif(os.getuid() != 0, reason="makes a file that is another user's")
def test_what_another_user_left_at_the_place_of_the_lock_is_not_read(tmp_path: Path, port: int) -> None:
    lock = tmp_path / f"steward-0-{port}.lock"
    lock.write_text("/theirs")
    os.chown(lock, 12345, -1)
    with pytest.raises(Misuse, match="another user's"), service_at(wished(port, tmp_path), tmp_path, lambda _: None):
        pass


def test_a_turn_is_one_launchers(port: int, tmp_path: Path) -> None:
    with closing(Turn(port)) as first, closing(Turn(port)) as second:
        assert not second.held()
        assert first.take(tmp_path)
        assert (second.held(), second.take(tmp_path)) == (True, False)
    with closing(Turn(port)) as third:
        assert third.take()
        assert third.data == tmp_path


def test_one_that_ends_at_once_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "FIRST_PAUSE_SECONDS", 1e-3)
    monkeypatch.setattr(embedded, "MOST_STARTS", 2)
    said = list[str]()
    with closing(Embedded(["sh", "-c", "echo no room; exit 3"], tmp_path / "log", said.append)) as own:
        own.keep()
        wait_until(lambda: len(said) == 3, 60)
    assert said[-1] == "the service ended 3 times (no room): the last decision holds"


def test_a_launcher_is_known_by_more_than_its_number() -> None:
    host, pid, began = leftovers.launcher().split(".")
    assert not leftovers._gone(f"{host}.{pid}.{began}")
    assert leftovers._gone(f"{host}.{pid}.1")
    assert not leftovers._gone(f"elsewhere.{pid}.1")
    assert not leftovers._gone("")


def test_hosts_of_one_name_are_told_from_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, pid, _ = leftovers.launcher().split(".")
    assert len(leftovers.launcher()) <= 63  # of a label
    other = tmp_path / "boot"
    other.write_text("another boot, or another machine of this name")
    monkeypatch.setattr(leftovers, "BOOT", other)
    assert not leftovers._gone(f"{host}.{pid}.1")
    assert leftovers._elsewhere(f"{host}.{pid}.1")
