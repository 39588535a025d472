"""A client that carries its policy is killed in the middle, and so is the service: each event counts once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.kinds.inference.example import SPEC
from tests.journeys.test_kill_api import Connection
from tests.servers import StewardServer, wait_until

Start = Callable[..., StewardServer]
LAUNCHER = """
import sys, time
from pathlib import Path
from steward_client import CarriedRun, Policy, Retry

url, folder, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
policy = Policy.load(url, "vision")
with CarriedRun(url, policy, journal=folder / "journal", retry=Retry(patience_seconds=120)) as run:
    told = folder / "told"
    number = int(told.read_text()) if told.exists() else 0
    for server in list(run.working):
        run.finished(server, run.now)
    while number < count:
        (folder / "next").write_text(str(number))
        (folder / "next").replace(told)  # before: one that is told of twice is the rule after a kill
        run.arrived("shop" if number % 2 else "archive", run.now + 0.01, f"r{number}")
        for start in run.decide(run.now).start:
            run.finished(start.server, run.now + 0.005)
        number += 1
        if number % 10 == 0:
            run.flush()
        time.sleep(0.01)
"""


@pytest.mark.slow
def test_a_client_and_its_service_are_killed_and_each_event_counts_once(steward_factory: Start, tmp_path: Path) -> None:
    count, marker = 400, tmp_path / "told"
    server = steward_factory(tmp_path / "data", "--workers", "0", wait="alive")
    with Connection(server.url) as caller:
        assert caller.call("POST", "/workloads", SPEC)[0] == 201
    command = [sys.executable, "-c", LAUNCHER, server.url, str(tmp_path), str(count)]

    def reached(least: int) -> Callable[[], bool]:
        return lambda: marker.exists() and int(marker.read_text()) >= least

    for least in (30, 80):
        launcher = subprocess.Popen(command)
        wait_until(reached(least), 120, f"{least} requests")
        launcher.kill()
        launcher.wait()
    launcher = subprocess.Popen(command)
    wait_until(reached(150), 120, "150 requests")
    server.kill()
    time.sleep(0.5)
    steward_factory(tmp_path / "data", "--workers", "0", "--port", server.url.rpartition(":")[2], wait="")
    assert launcher.wait(240) == 0
    with Connection(server.url) as caller:
        status, samples = caller.call("GET", "/workloads/vision/samples")
    assert status == 200
    assert [one["requests"]["count"] for one in samples["items"]] == [count]
    assert not (tmp_path / "journal").exists()
