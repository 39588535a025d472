"""`steward serve` as a user starts it: one command, one data folder, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import psutil
import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from tests.batched import SPEC as EXAMPLE
from tests.conftest import StartSteward
from tests.integration.conftest import Call
from tests.integration.processes import all_gone, family, worker_main
from tests.servers import StewardServer, clean_environment, free_port, start_steward, wait_until

API_BYTES = 150 * 1024 * 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StewardServer]:
    """One that goes on, for several tests."""
    process = start_steward(tmp_path_factory.mktemp("lasting"))
    yield process
    process.stop()


@pytest.mark.slow
def test_everything_is_under_one_folder_and_stops_cleanly(steward_factory: StartSteward, tmp_path: Path) -> None:
    server = steward_factory(tmp_path / "here")
    processes = family(server)
    assert (tmp_path / "here" / "steward.db").exists()
    assert (tmp_path / "here" / "broker").is_dir()
    assert server.stop() == 0
    assert all_gone(processes)
    assert "Traceback" not in server.log.read_text()


def test_the_api_stays_small(server: StewardServer, call: Call) -> None:
    call(server, "small").prepare()
    assert psutil.Process(server.process.pid).memory_info().rss < API_BYTES


def test_a_file_without_a_message_harms_no_worker(server: StewardServer, call: Call) -> None:
    first = worker_main(server)
    broker = server.data_dir / "broker"
    broken = {"empty": "", "half": '{"body": "W1', "no-message": "{}"}
    for name, content in broken.items():
        (broker / f"0_{name}.celery.msg").write_text(content)
    wait_until(lambda: len(list(broker.glob("*.unreadable"))) == len(broken), 60, "the files to be put aside")
    caller = call(server, "unharmed")
    caller.prepare()
    assert caller.wait(caller.fit())["state"] == "succeeded"
    assert worker_main(server).pid == first.pid


@pytest.mark.slow
def test_a_worker_that_dies_is_started_again(server: StewardServer) -> None:
    first = family(server)
    first[0].kill()
    wait_until(lambda: all_gone(first), 60, "the worker's children to end with it")
    assert worker_main(server, other_than=first[0].pid).is_running()


@pytest.mark.slow
def test_without_redis_it_serves_and_has_said_so_in_a_line(steward_factory: StartSteward) -> None:
    away = f"redis://:secret@127.0.0.1:{free_port()}/0"
    server = steward_factory(None, "--workers", "0", wait="alive", broker_url=away)
    output = server.log.read_text()
    (line,) = (line for line in output.splitlines() if "steward serve: warning:" in line)
    assert f"STEWARD_BROKER_URL={away.replace('secret', '***')!r}" in line
    assert "refused" in line
    assert "start Redis" in line
    assert "secret" not in output
    assert not server.ready()


@pytest.mark.slow
def test_without_workers_a_stop_answers_what_is_under_way_takes_no_more_and_tells_of_it(
    steward_factory: StartSteward,
) -> None:
    server = steward_factory(None, "--workers", "0", wait="alive", log_format="json", log_requests="true")
    assert psutil.Process(server.process.pid).children() == []
    assert not server.ready()
    body, port = json.dumps(EXAMPLE).encode(), int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as under_way:
        head = ["POST /workloads HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
        head += [f"Content-Length: {len(body)}", "", ""]
        under_way.sendall("\r\n".join(head).encode() + body[:10])
        assert server.alive()  # which is answered after that was read
        server.process.terminate()
        wait_until(lambda: not server.alive(), 30, "the server to take no more")
        under_way.sendall(body[10:])
        answer = under_way.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert server.stop() == 0
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if not line.startswith("Steward ")]
    assert ("POST", "/workloads", 201) in {
        (line.get("method"), line.get("route"), line.get("status")) for line in lines
    }


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.invalid"])  # noqa: S104
def test_an_open_address_is_refused(host: str, tmp_path: Path) -> None:
    with mock.patch.dict(os.environ, clean_environment({}), clear=True):
        ended = CliRunner().invoke(cli, ["serve", "--host", host, "--data", str(tmp_path / "x")])
    assert ended.exit_code == 2
    assert host in ended.stderr
    assert "no API keys" in ended.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_ctrl_c_stops_it_too(steward_factory: StartSteward) -> None:
    server = steward_factory()
    processes = family(server)
    os.kill(server.process.pid, signal.SIGINT)
    assert server.process.wait(60) == 0
    assert all_gone(processes)


def test_help_is_instant() -> None:
    command = [sys.executable, "-X", "importtime", "-c", "import app.cli.main"]
    stderr = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    loaded = {line.rpartition("|")[2].strip() for line in stderr.splitlines()}
    heavy = {"numpy", "torch", "sqlalchemy", "fastapi", "pydantic", "celery", "uvicorn", "vl_convert", "alembic"}
    assert loaded & heavy == set()


@pytest.mark.slow
def test_a_second_service_on_a_folder_is_refused_until_the_first_was_killed_which_leaves_no_orphan(
    steward_factory: StartSteward, tmp_path: Path
) -> None:
    server = steward_factory(tmp_path / "data")
    processes = family(server)
    assert len(processes) >= 2  # the worker and its prefork children
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--data", str(tmp_path / "data")]
    environment = clean_environment({})
    second = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert (second.returncode, f"process {server.process.pid} serves it already" in second.stderr) == (2, True)
    server.kill()
    wait_until(lambda: all_gone(processes), 60, "the worker and its children to end with their parent")
    assert not server.alive()
    assert steward_factory(tmp_path / "data", wait="alive").alive()
