"""The demo's processes: the real training, and that nothing outlives the demo."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import psutil
import pytest
from steward_demos import service
from steward_demos.iterative_run import trainer
from steward_demos.processes import CgroupLimit, Child, ChildError, DutyCycleLimit
from steward_demos.service import RefusedError, Steward

DEMO_PARENT = """
import sys, time
from steward_demos.processes import Child
with Child("steward_demos.training", ["neighbour"]) as child:
    child.read()
    child.call(spin=True)
    print(child.process.pid, flush=True)
    time.sleep(60)
"""


def gone(pid: int, seconds: float = 10.0) -> bool:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_the_training_learns_and_tells_its_times() -> None:
    with trainer(simulated=False) as own:
        own.begin(seed=3)
        first, *_, last = [own.iteration(100) for _ in range(7)]
        own.begin(seed=3)
        again = own.iteration(100)
        own.disturb(on=True)
        beside = own.iteration(100)
        own.disturb(on=False)
    assert not own.simulated
    assert (last.phase, last.disturbed, beside.disturbed) == ("train", False, True)
    assert last.loss < first.loss
    assert last.accuracy > 0.3
    assert 0 < first.cpu_seconds <= 2.2 * first.seconds
    assert again.iteration == 0
    assert again.loss == pytest.approx(first.loss, rel=1e-3)


@pytest.mark.slow
def test_where_the_limit_has_no_effect_the_training_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CgroupLimit, "set", lambda *_: None)
    monkeypatch.setattr(DutyCycleLimit, "set", lambda *_: None)
    with trainer(simulated=False) as own:
        assert own.simulated
        assert "SIMULATED" in own.how


def test_a_child_that_has_ended_is_an_error() -> None:
    with Child("steward_demos.training", ["neighbour"]) as child:
        child.read()
        child.process.kill()
        child.process.wait()
        with pytest.raises(ChildError, match="ended"):
            child.call(spin=True)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread of the child watches its parent")
def test_no_child_outlives_a_killed_demo() -> None:
    with subprocess.Popen([sys.executable, "-c", DEMO_PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
        assert gone(child)


def test_a_service_that_ends_early_is_told_with_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [sys.executable, "-c", "raise SystemExit('no such broker')"]
    monkeypatch.setattr(service, "child_command", lambda *_: failing)
    with pytest.raises(ChildError, match="no such broker"), service.own_service():
        pytest.fail("it became ready")


class Events(BaseHTTPRequestHandler):
    """A job whose event stream breaks off after two events, and goes on after the last one that was received."""

    queries: ClassVar[list[str | None]] = []
    state = "succeeded"

    def do_GET(self) -> None:
        if self.path.endswith("/events"):
            after = self.headers["last-event-id"]
            self.queries.append(after)
            numbers = [1, 2] if after is None else [3]
            frames = [f'id: {n}\nevent: running\ndata: {{"state": "running", "progress": 0.{n}}}\n\n' for n in numbers]
            self._send("text/event-stream", ": still there\n\n" + "".join(frames))
        else:
            state = "running" if len(self.queries) < 2 else self.state
            error = '{"title": "too little data", "detail": "needs 3 executions"}'
            self._send("application/json", f'{{"state": "{state}", "progress": 1.0, "error": {error}}}')

    def _send(self, media: str, body: str) -> None:
        self.send_response(200)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@pytest.fixture
def job_url() -> Iterator[str]:
    Events.queries, Events.state = [], "succeeded"
    with HTTPServer(("127.0.0.1", 0), Events) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_broken_event_stream_is_resumed(job_url: str) -> None:
    with Steward(job_url) as steward:
        events = list(steward.follow("1"))
    assert [event["progress"] for event in events] == [0.1, 0.2, 0.3, 1.0]
    assert Events.queries == [None, "2"]


def test_a_failed_job_says_why(job_url: str) -> None:
    Events.state = "failed"
    with Steward(job_url) as steward, pytest.raises(RefusedError, match="too little data: needs 3 executions"):
        list(steward.follow("1"))


def test_a_service_that_is_not_there_is_not_ready(tmp_path: Path) -> None:
    assert tmp_path.exists()
    with Steward(f"http://127.0.0.1:{service.free_port()}") as steward:
        assert not steward.ready()
