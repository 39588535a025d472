"""Backups made while reports come, restored elsewhere: all that was acknowledged before is there, and it serves."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self
from unittest import mock
from uuid import uuid4

import httpx
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner, Result

from app.cli.main import cli
from app.main import create_app
from app.settings import Settings
from migrations.runner import upgrade
from tests.conftest import StartSteward
from tests.integration.caller import SPEC, WORKLOAD
from tests.servers import PostgresServer, StewardServer, clean_environment, wait_until

REPORT = {"allocation": {"executors": 8}, "metrics": {"iteration_seconds": 3.0}}
RUNS = 3


class Reporting:
    """Reports of some runs that never stop coming; how many of each were acknowledged."""

    def __init__(self, url: str) -> None:
        self.acknowledged: dict[str, int] = {}
        self.failed: list[str] = []
        self._url, self._ended = url, threading.Event()
        self._threads = [threading.Thread(target=self._report, daemon=True) for _ in range(RUNS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        wait_until(lambda: sum(self.acknowledged.values()) > 60, 120, "reports to be acknowledged")
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(60)

    def _report(self) -> None:
        with httpx.Client(base_url=self._url, timeout=60) as http:
            run = http.post("/runs", json={"workload": WORKLOAD}).json()["id"]
            number = 0
            while not self._ended.is_set():
                answer = http.put(f"/runs/{run}/iterations/{number}", json=REPORT)
                if answer.status_code != 201:
                    self.failed.append(answer.text)
                    return
                number += 1
                self.acknowledged[run] = number


def steward(*arguments: str, data: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """`steward db …` in a process of its own."""
    environment = clean_environment({f"STEWARD_{name.upper()}": value for name, value in settings.items()})
    command = [sys.executable, "-m", "app.cli", "db", *arguments, "--data", str(data)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)


def run_command(*arguments: str, data: Path) -> Result:
    """`steward db …` in this process."""
    with mock.patch.dict(os.environ, clean_environment({}), clear=True):
        return CliRunner().invoke(cli, ["db", *arguments, "--data", str(data)])


@contextmanager
def serving(url: str, folder: Path) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(data_dir=folder, database_url=url))) as client:
        yield client


def check_restored(url: str, folder: Path, before: dict[str, int], after: dict[str, int]) -> None:
    """All reports that were acknowledged before the backup, none that came after it, none twice; and it goes on."""
    with serving(url, folder) as client:
        for run, acknowledged in before.items():
            read = client.get(f"/runs/{run}").json()["iterations"]
            assert acknowledged <= read <= after[run] + 1
            numbers, link = [], f"/runs/{run}/iterations?limit=500"
            while link:
                page = client.get(link).json()
                numbers += [one["iteration"] for one in page["items"]]
                link = page["next"]
            assert numbers == list(range(read))
            assert client.put(f"/runs/{run}/iterations/{read - 1}", json=REPORT).status_code == 200
            assert client.put(f"/runs/{run}/iterations/{read}", json=REPORT).status_code == 201


@pytest.fixture
def embedded(steward_factory: StartSteward) -> StewardServer:
    return steward_factory(None, "--workers", "0", wait="alive")


def prepared(server: StewardServer) -> None:
    answer = httpx.post(f"{server.url}/workloads", json={**SPEC, "iterations": 100_000})
    assert answer.status_code == 201, answer.text


@pytest.mark.slow
def test_sqlite_is_backed_up_under_load_and_restored(embedded: StewardServer, tmp_path: Path) -> None:
    prepared(embedded)
    file, other = tmp_path / "backup.db", tmp_path / "other"
    with Reporting(embedded.url) as reporting:
        before = dict(reporting.acknowledged)
        done = steward("backup", str(file), data=embedded.data_dir)
        after = dict(reporting.acknowledged)
        assert done.returncode == 0, done.stderr
        wait_until(lambda: sum(reporting.acknowledged.values()) > sum(after.values()), what="reports to go on")
    assert reporting.failed == []
    assert "iterations" in done.stdout
    assert "is there already" in steward("backup", str(file), data=embedded.data_dir).stderr
    refused = steward("restore", str(file), "--force", data=embedded.data_dir)
    assert (refused.returncode, f"process {embedded.process.pid}" in refused.stderr) == (2, True), refused.stderr
    done = steward("restore", str(file), data=other)
    assert done.returncode == 0, done.stderr
    check_restored(f"sqlite:///{other / 'steward.db'}", other, before, after)
    again = steward("restore", str(file), data=other)
    assert (again.returncode, "not empty" in again.stderr) == (2, True)
    assert steward("restore", str(file), "--force", data=other).returncode == 0
    check_restored(f"sqlite:///{other / 'steward.db'}", other, before, after)


@pytest.mark.slow
@pytest.mark.servers
def test_postgresql_is_backed_up_under_load_and_restored(
    steward_factory: StartSteward, postgres: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    server = steward_factory(None, "--workers", "0", wait="alive", database_url=postgres_url)
    prepared(server)
    file, name = tmp_path / "backup.dump", f"restored_{uuid4().hex}"
    postgres.execute(f"CREATE DATABASE {name}")
    with Reporting(server.url) as reporting:
        before = dict(reporting.acknowledged)
        done = steward("backup", str(file), data=tmp_path / "none", database_url=postgres_url)
        after = dict(reporting.acknowledged)
        assert done.returncode == 0, done.stderr
        served = steward("restore", str(file), "--force", data=tmp_path / "none", database_url=postgres_url)
        assert (served.returncode, "connections use the database" in served.stderr) == (2, True)
    assert reporting.failed == []
    there = {"data": tmp_path / "other", "database_url": postgres.url(name)}
    done = steward("restore", str(file), **there)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    check_restored(postgres.url(name), tmp_path, before, after)
    again = steward("restore", str(file), **there)  # type: ignore[arg-type]
    assert (again.returncode, "not empty" in again.stderr) == (2, True)
    assert steward("restore", str(file), "--force", **there).returncode == 0  # type: ignore[arg-type]
    check_restored(postgres.url(name), tmp_path, before, after)
    other = steward("restore", str(file), data=tmp_path / "embedded")
    assert (other.returncode, "is a backup of PostgreSQL" in other.stderr) == (2, True)
    postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_what_is_no_backup_or_of_another_version_or_damaged_changes_nothing(tmp_path: Path) -> None:
    file, data = tmp_path / "steward.db", tmp_path / "data"
    upgrade(f"sqlite:///{file}")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '2031_01_01_later'")
    later = run_command("restore", str(file), data=data)
    assert (later.exit_code, "another version of Steward" in later.stderr) == (2, True), later.stderr
    whole = file.read_bytes()
    for content, result in ((b"", "not a backup"), (b"hello", "not a backup"), (whole[: len(whole) // 2], "")):
        file.write_bytes(content)
        refused = run_command("restore", str(file), data=data)
        assert (refused.exit_code, "nothing was restored" in refused.stderr) == (2, True), refused.stderr
        assert result in refused.stderr
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as connection, connection:
        connection.execute("CREATE TABLE kept (id)")
    assert "none of Steward's" in run_command("restore", str(tmp_path / "foreign.db"), data=data).stderr
    assert not (data / "steward.db").exists()
    assert run_command("restore", str(tmp_path / "nowhere.db"), data=data).exit_code == 2
    assert run_command("backup", str(tmp_path / "no" / "folder"), data=data).exit_code == 2
