"""The service that a launch has of its own: it comes back when it is killed, and is given up when it can't stay."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from steward_client.launcher import embedded, service
from steward_client.launcher.actuators import leftovers
from steward_client.launcher.embedded import Embedded
from steward_client.launcher.service import service_at
from steward_client.launcher.wishes import Wishes

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


def test_it_is_started_again_when_it_is_killed_and_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "FIRST_PAUSE_SECONDS", 0.01)
    port, said = free_port(), list[str]()
    monkeypatch.setattr(service, "_command", lambda _: [sys.executable, "-c", STANDS_FOR_IT, str(port)])

    def serving() -> list[psutil.Process]:
        family = psutil.Process().children(recursive=True)
        return [one for one in family if str(port) in one.cmdline()]

    wishes = Wishes(("ls",), "ls", url=f"http://127.0.0.1:{port}", data=tmp_path)
    with service_at(wishes, tmp_path, said.append) as started:
        (first,) = serving()
        first.kill()
        wait_until(lambda: started.answers() and [one.pid for one in serving()] != [first.pid], 60)
    assert "the service ended with status 137; it is started again" in said
    assert serving() == []


def test_of_launchers_that_are_called_at_once_one_starts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port, owned = free_port(), list[bool]()
    monkeypatch.setattr(service, "_command", lambda _: [sys.executable, "-c", STANDS_FOR_IT, str(port)])
    wishes, met = Wishes(("ls",), "ls", url=f"http://127.0.0.1:{port}", data=tmp_path / "data"), threading.Barrier(2)

    def launch(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        with service_at(wishes, folder, lambda _: None) as found:
            owned.append(found.own)
            met.wait(60)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(launch, range(2)))
    assert sorted(owned) == [False, True]


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
