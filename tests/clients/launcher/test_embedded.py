"""The service that a launch has of its own: it comes back when it is killed, and is given up when it can't stay."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest
from steward_client.launcher import embedded, service, serving, standby
from steward_client.launcher.actuators import leftovers
from steward_client.launcher.embedded import Embedded
from steward_client.launcher.service import JobFailed, Service
from steward_client.launcher.serving import service_at
from steward_client.launcher.standby import Turn
from steward_client.launcher.wishes import Misuse, Wishes

from tests.servers import free_port, wait_until

STANDS_FOR_IT = """
import os, signal, sys, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
signal.signal(signal.SIGTERM, lambda *_: threading.Timer(0.7, os._exit, [0]).start())  # and answers until then
class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if self.path == "/readyz" else 200)  # there is no worker
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"status": "alive", "ready": true}')
HTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""
LAUNCHES = """
import sys, time
from pathlib import Path
from steward_client.launcher import serving, standby
from steward_client.launcher.wishes import Wishes
folder, port, *command = sys.argv[1:]
standby.FOLDER = Path(folder)
serving._command = lambda _, data, **__: [*command, str(data)]
wishes = Wishes(("ls",), "ls", url=f"http://127.0.0.1:{port}", data=Path(folder) / "data")
with serving.service_at(wishes, Path(folder), lambda line: print(line, flush=True)):
    print("ready", flush=True)
    time.sleep(600)
"""


def command(port: int) -> list[str]:
    return [sys.executable, "-c", STANDS_FOR_IT, str(port)]


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> int:
    """Of a service that launchers can start."""
    count = free_port()
    monkeypatch.setattr(serving, "_command", lambda _, data, **__: [*command(count), str(data)])
    monkeypatch.setattr(standby, "FOLDER", tmp_path)
    monkeypatch.setattr(standby, "LOOK_SECONDS", 0.05)
    return count


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
    messages = list[str]()
    with service_at(wished(port, tmp_path), tmp_path, messages.append) as started:
        (first,) = running(port)
        first.kill()
        wait_until(lambda: started.is_up() and [one.pid for one in running(port)] != [first.pid], 60)
    assert "the service ended with status 137; it is started again" in messages
    assert running(port) == []


def test_of_launchers_that_are_called_at_once_one_starts_it(tmp_path: Path, port: int) -> None:
    owned, met = list[bool](), threading.Barrier(2)

    def launch(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        with service_at(wished(port, tmp_path / "data"), folder, lambda _: None) as service:
            owned.append(service.own)
            met.wait(60)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(launch, range(2)))
    assert sorted(owned) == [False, True]


def test_the_other_one_goes_on_with_it_when_the_one_that_ran_it_ends(tmp_path: Path, port: int) -> None:
    messages = list[str]()
    first = ExitStack()
    with first:
        first.enter_context(service_at(wished(port, tmp_path / "data"), tmp_path, messages.append))
        with service_at(wished(port, tmp_path / "elsewhere"), tmp_path, messages.append) as service:
            (before,) = running(port)
            assert not service.own
            first.close()
            wait_until(lambda: service.own and service.is_up(), 60)
            (after,) = running(port)
            assert (before.is_running(), after.cmdline()[-1]) == (False, str(tmp_path / "data"))
    assert running(port) == []
    assert any(line.startswith("the service ended with the launcher that ran it") for line in messages)


def test_one_goes_on_with_it_when_the_launcher_that_ran_it_was_killed(tmp_path: Path, port: int) -> None:
    launch = [sys.executable, "-c", LAUNCHES, str(tmp_path), str(port), *command(port)]
    with subprocess.Popen(launch, stdout=subprocess.PIPE, text=True) as first:
        try:
            wait_until(lambda: "ready\n" in iter(first.stdout.readline, ""), 60)  # type: ignore[union-attr]
            with service_at(wished(port, tmp_path / "elsewhere"), tmp_path, lambda _: None) as service:
                assert not service.own
                first.kill()
                first.wait()
                wait_until(lambda: service.own and service.is_up(), 60)
                assert [one.cmdline()[-1] for one in running(port)] == [str(tmp_path / "data")]
        finally:
            first.kill()
    assert running(port) == []


def test_whoever_cannot_run_it_leaves_it_to_others(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = list[str]()
    first = ExitStack()
    with first:
        first.enter_context(service_at(wished(port, tmp_path / "data"), tmp_path, messages.append))
        with service_at(wished(port, tmp_path), tmp_path, messages.append) as service:
            monkeypatch.setattr(serving, "_command", Mock(side_effect=Misuse("no program")))
            first.close()
            wait_until(lambda: "no program" in messages, 60)
            with closing(Turn("127.0.0.1", port)) as turn:
                wait_until(turn.take, 60)
            assert (service.own, running(port)) == (False, [])


def test_a_service_that_no_launcher_runs_is_never_replaced(tmp_path: Path, port: int) -> None:
    with subprocess.Popen(command(port)) as plain, closing(Service(f"http://127.0.0.1:{port}")) as requested:
        try:
            wait_until(requested.is_up, 60)
            with service_at(wished(port, tmp_path), tmp_path, lambda _: None) as service:
                plain.kill()
                plain.wait()
                with closing(Turn("127.0.0.1", port)) as turn:
                    assert turn.take()
                threading.Event().wait(0.5)  # ten looks of whoever would stand by
                assert (service.own, running(port)) == (False, [])
        finally:
            plain.kill()


class Waits(Service):
    """A service whose jobs wait, with or without a worker."""

    has_worker, looks = False, 0

    def call(self, method: str, path: str, *_: Any, **__: Any) -> Any:
        self.looks += 1
        return {"id": "1", "state": "queued" if self.looks < 9 else "succeeded", "result": {"model": 1}}

    def ready(self, *, worker: bool) -> bool:
        return self.has_worker or not worker


def test_a_job_that_no_worker_takes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "WORKER_SECONDS", 0.5)
    job = {"id": "1", "state": "queued"}
    with closing(Waits("http://there:80")) as without, closing(Waits("http://there:80")) as busy:
        busy.has_worker = True
        with pytest.raises(JobFailed, match=r"http://there has no worker: start `steward worker` there"):
            without.done(job, lambda _: None)
        assert busy.done(job, lambda _: None) == {"model": 1}


def test_who_learns_asks_for_a_worker_unless_settings_say_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learn_arguments(learns: bool) -> list[str]:
        return serving._command("http://127.0.0.1:8081", tmp_path, learns=learns)[1:]

    plain = ["serve", "--host", "127.0.0.1", "--port", "8081", "--data", str(tmp_path)]
    monkeypatch.delenv("STEWARD_WORKERS", raising=False)
    assert (learn_arguments(False), learn_arguments(True)) == (plain, [*plain, "--workers", "1"])
    monkeypatch.setenv("STEWARD_WORKERS", "2")
    assert learn_arguments(True) == plain


@pytest.mark.parametrize("text", ["link", "folder", "hard link"])
def test_what_is_no_file_of_the_users_alone_is_no_lock(tmp_path: Path, port: int, text: str) -> None:
    with closing(Turn("127.0.0.1", port)):
        (lock,) = tmp_path.glob("steward-*.lock")
    lock.touch(0o600)
    other = tmp_path / "other"
    if text == "hard link":
        other.hardlink_to(lock)
    else:
        lock.unlink()
        other.write_text("/elsewhere")
        lock.symlink_to(other) if text == "link" else lock.mkdir()
    with pytest.raises(OSError, match=str(port)):
        Turn("127.0.0.1", port)
    with service_at(wished(port, tmp_path), tmp_path, lambda _: None) as service:  # and goes on without
        assert service.own


def test_a_turn_is_one_launchers(port: int, tmp_path: Path) -> None:
    with closing(Turn("127.0.0.1", port)) as first, closing(Turn("127.0.0.1", port)) as second:
        assert first.take()
        first.data = tmp_path
        assert not second.take()
        first.release()
        assert second.take()
        assert second.data == tmp_path


def test_the_last_one_leaves_no_file(port: int, tmp_path: Path) -> None:
    def left() -> list[str]:
        return sorted(path.name.rpartition("-")[2] for path in tmp_path.glob("*.lock"))

    selection = ["1.lock", "3.lock", "4.lock", "4.lock", "x4.lock"]
    other, link = free_port(), tmp_path / f"steward-{os.getuid()}-{12 * 'b'}-127.0.0.1-1.lock"
    with closing(Turn("127.0.0.1", other)) as elsewhere:
        assert elsewhere.take()
        with closing(Turn("127.0.0.1", port)) as first:
            assert first.take()
            (tmp_path / f"steward-{os.getuid()}-{12 * 'a'}-127.0.0.1-2.lock").write_text("/of/a/killed/launcher")
            for foreign in ("notes-4", f"{13 * 'a'}-127.0.0.1-4", f"{12 * 'a'}-127.0.0.1-x4"):
                (tmp_path / f"steward-{os.getuid()}-{foreign}.lock").write_text("of another program")
            (tmp_path / "steward-0123-old-127.0.0.1-3.lock").write_text("of another user")
            link.symlink_to(tmp_path / "nowhere")
            assert len(left()) == 8
        assert left() == sorted([*selection, f"{other}.lock"])  # another launcher holds the last
    assert left() == selection
    assert not (tmp_path / "nowhere").exists()


def test_who_waits_goes_on_with_a_new_file(port: int, tmp_path: Path) -> None:
    with closing(Turn("127.0.0.1", port)) as second, closing(Turn("127.0.0.1", port)) as third:
        with closing(Turn("127.0.0.1", port)) as first:
            assert first.take()
            first.data = tmp_path
            assert not second.take()
        assert [*tmp_path.glob("*.lock")] == []
        assert second.take()
        assert second.data == tmp_path  # what the first one served
        assert not third.take()
        with closing(Turn("127.0.0.1", port)) as newcomer:
            assert not newcomer.take()
        assert len([*tmp_path.glob("*.lock")]) == 1
        second.release()
        assert third.take()
        assert third.data == tmp_path
    assert [*tmp_path.glob("*.lock")] == []


def test_many_that_come_and_go_never_hold_it_together(port: int, tmp_path: Path) -> None:
    semaphore, together = threading.Semaphore(1), list[int]()

    def comes_and_goes() -> None:
        for _ in range(50):
            with closing(Turn("127.0.0.1", port)) as turn:
                if turn.take():
                    if not semaphore.acquire(blocking=False):
                        together.append(1)
                        continue
                    semaphore.release()

    threads = [threading.Thread(target=comes_and_goes) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == []
    assert [*tmp_path.glob("*.lock")] == []


def test_who_gives_up_leaves_it_to_others(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "FIRST_PAUSE_SECONDS", 1e-3)
    monkeypatch.setattr(embedded, "MOST_STARTS", 1)
    with service_at(wished(port, tmp_path), tmp_path, lambda _: None), closing(Turn("127.0.0.1", port)) as turn:
        assert not turn.take()
        monkeypatch.setattr(Embedded, "_again", lambda _: None)
        (own,) = running(port)
        own.kill()
        wait_until(turn.take, 60)


def test_one_that_ends_at_once_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "FIRST_PAUSE_SECONDS", 1e-3)
    monkeypatch.setattr(embedded, "MOST_STARTS", 2)
    messages = list[str]()
    with closing(Embedded(["sh", "-c", "echo no room; exit 3"], tmp_path / "log", messages.append)) as own:
        own.keep()
        wait_until(lambda: len(messages) == 3, 60)
    assert messages[-1] == "the service ended 3 times (no room): the last decision holds"


def test_a_launcher_is_known_by_more_than_its_number() -> None:
    host, pid, began = leftovers.launcher().split(".")
    assert not leftovers._launcher_ended(f"{host}.{pid}.{began}")
    assert leftovers._launcher_ended(f"{host}.{pid}.1")
    assert not leftovers._launcher_ended(f"elsewhere.{pid}.1")
    assert not leftovers._launcher_ended("")


def test_hosts_of_one_name_are_told_from_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, pid, _ = leftovers.launcher().split(".")
    assert len(leftovers.launcher()) <= 63  # of a label
    other = tmp_path / "boot"
    other.write_text("another boot, or another machine of this name")
    monkeypatch.setattr(leftovers, "BOOT", other)
    assert not leftovers._launcher_ended(f"{host}.{pid}.1")
    assert leftovers._elsewhere(f"{host}.{pid}.1")
