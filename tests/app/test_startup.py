"""What may be wrong at a start is told in one line that names the setting, its value and a remedy."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest
from typer.testing import CliRunner

from app import installed, startup
from app.cli.main import cli
from app.settings import Settings
from app.startup import StartupError
from tests.servers import PostgresServer, clean_environment, free_port

FAR_BUT_CLOSED = "127.0.0.1:1"
REFUSED = {
    "setting": ({"STEWARD_PORT": "99999"}, ["STEWARD_PORT='99999'", "65535", "0 takes a free one"]),
    "level": ({"STEWARD_LOG_LEVEL": "loud"}, ["STEWARD_LOG_LEVEL='loud'", "'debug', 'info', 'warning' or 'error'"]),
    "age": ({"STEWARD_RETENTION_RUNS_DAYS": "100000"}, ["STEWARD_RETENTION_RUNS_DAYS='100000'", "36500"]),
    "folder": ({"STEWARD_DATA_DIR": "/dev/null/x"}, ["STEWARD_DATA_DIR='/dev/null/x'", "Not a directory", "--data"]),
    "nonsense": (
        {"STEWARD_DATABASE_URL": "foo"},
        ["STEWARD_DATABASE_URL='foo'", "is not a database URL", "postgresql://"],
    ),
    "other": ({"STEWARD_DATABASE_URL": "mysql://u:secret@h/x"}, ["'mysql://u:***@h/x'", "knows no 'mysql'", "sqlite"]),
    "half": ({"STEWARD_TLS_KEY": "key.pem"}, ["STEWARD_TLS_CERTIFICATE and STEWARD_TLS_KEY go together"]),
    "plain": ({"STEWARD_OIDC_ISSUER": "http://id.example"}, ["STEWARD_OIDC_ISSUER='http://id.example'", "https://"]),
    "proxy": ({"STEWARD_TRUSTED_PROXIES": "me"}, ["STEWARD_TRUSTED_PROXIES", "'me'"]),
    "down": (
        {"STEWARD_DATABASE_URL": f"postgresql://u:secret@{FAR_BUT_CLOSED}/x"},
        [f"STEWARD_DATABASE_URL='postgresql://u:***@{FAR_BUT_CLOSED}/x'", "refused", "start PostgreSQL"],
    ),
}
COMMANDS = (("serve", "--workers", "0"), ("worker",), ("db", "upgrade"))
CASES = [(command, name) for name in ("setting", "down") for command in COMMANDS]
CASES += [(COMMANDS[-1], name) for name in REFUSED if name not in ("setting", "down")]  # which look at the same place


class Ended(NamedTuple):
    """Of a command: its exit status and what it wrote."""

    returncode: int
    stderr: str


def environment_of(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    return clean_environment({"STEWARD_DATA_DIR": str(folder / "data"), "STEWARD_PORT": "0", **environment})


def process(folder: Path, *arguments: str, **environment: str) -> Ended:
    """The command as a process, run to its end in a folder of its own."""
    env = {**environment_of(folder, environment), "PYTHONPATH": str(Path.cwd())}
    kwargs: dict[str, Any] = {"capture_output": True, "text": True, "cwd": folder, "timeout": 120, "check": False}
    ended = subprocess.run([sys.executable, "-m", "app.cli", *arguments], env=env, **kwargs)
    return Ended(ended.returncode, ended.stderr)


def steward(folder: Path, *arguments: str, **environment: str) -> Ended:
    """The command in this process; it must end before it serves or becomes another program."""
    with mock.patch.dict(os.environ, environment_of(folder, environment), clear=True):
        result = CliRunner().invoke(cli, arguments)
    return Ended(result.exit_code, result.stderr)


def stderr_of(ended: Ended) -> str:
    """The one line on standard error."""
    lines = ended.stderr.splitlines()
    assert (ended.returncode, len(lines)) == (startup.EXIT_STATUS, 1), ended.stderr
    return lines[0]


@pytest.mark.parametrize(("command", "name"), CASES)
def test_what_is_wrong_is_one_line(command: tuple[str, ...], name: str, tmp_path: Path) -> None:
    environment, expected = REFUSED[name]
    run = process if name == "down" and command[0] != "db" else steward  # those begin by starting something
    line = stderr_of(run(tmp_path, *command, **environment))
    assert all(part in line for part in expected), line
    assert "secret" not in line


def test_an_option_is_named_as_it_was_given(tmp_path: Path) -> None:
    assert "--port=99999" in stderr_of(steward(tmp_path, "serve", "--port", "99999"))


def test_a_broker_that_is_none_is_refused(tmp_path: Path) -> None:
    line = stderr_of(steward(tmp_path, "serve", STEWARD_BROKER_URL="carrier://pigeon"))
    assert "STEWARD_BROKER_URL='carrier://pigeon'" in line
    assert "redis://" in line


def test_a_worker_needs_a_database_and_makes_none(tmp_path: Path) -> None:
    assert "steward db upgrade" in stderr_of(process(tmp_path, "worker"))
    assert not (tmp_path / "data" / "steward.db").exists()


def test_a_worker_needs_its_broker(tmp_path: Path) -> None:
    assert steward(tmp_path, "db", "upgrade").returncode == 0
    line = stderr_of(process(tmp_path, "worker", STEWARD_BROKER_URL=f"redis://{FAR_BUT_CLOSED}/0"))
    assert f"STEWARD_BROKER_URL='redis://{FAR_BUT_CLOSED}/0'" in line
    assert "start Redis" in line


def test_looking_for_a_worker_creates_nothing(tmp_path: Path) -> None:
    ended = steward(tmp_path, "worker", "--check")
    assert ended.returncode == 1
    assert "the file does not exist" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_another_version_is_told(tmp_path: Path) -> None:
    assert steward(tmp_path, "db", "upgrade").returncode == 0
    with closing(sqlite3.connect(tmp_path / "data" / "steward.db")) as database:
        database.execute("UPDATE alembic_version SET version_num = 'later'")
        database.commit()
    line = stderr_of(steward(tmp_path, "db", "upgrade"))
    assert "'later'" in line
    assert "another version of Steward" in line


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "steward.db").write_text("no database" * 100)
    assert "file is not a database" in stderr_of(steward(tmp_path, "db", "upgrade"))


def test_a_database_without_an_encoding_is_told_by_every_command(tmp_path: Path, postgres: PostgresServer) -> None:
    encodings = {"ascii": "SQL_ASCII", "unicode": "UTF8"}
    for name, encoding in encodings.items():
        postgres.execute(f"CREATE DATABASE new_{name} ENCODING '{encoding}' TEMPLATE template0")
    url = postgres.url("new_ascii")
    try:
        for command in (("db", "upgrade"), ("db", "backup", "b"), ("serve", "--workers", "0")):
            ended = steward(tmp_path, *command, STEWARD_DATABASE_URL=url)
            assert "its encoding is SQL_ASCII, UTF8 is needed; make it by CREATE DATABASE" in stderr_of(ended)
        new, kept = {"STEWARD_DATABASE_URL": postgres.url("new_unicode")}, str(tmp_path / "kept")
        assert [steward(tmp_path, "db", *one, **new).returncode for one in (("upgrade",), ("backup", kept))] == [0, 0]
        told = stderr_of(steward(tmp_path, "db", "restore", kept, STEWARD_DATABASE_URL=url))
        assert "its encoding is SQL_ASCII, UTF8 is needed" in told
    finally:
        for name in encodings:
            postgres.execute(f"DROP DATABASE new_{name}")


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, _content: bytes) -> int:
        path.touch()
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StartupError, match=r"STEWARD_DATA_DIR='.*': No space left on device; free some space"):
        startup.check_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Have distributions not be installed."""

    def version(name: str) -> str:
        if name in names:
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(installed, "version", version)


def test_what_workers_need_and_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    startup.check_learning("steward worker")
    without(monkeypatch, "torch", "scikit-learn")
    message = r"worker needs packages .* \(scikit-learn, torch\): .*pip install .*\[worker\]'$"
    with pytest.raises(StartupError, match=message):
        startup.check_learning("steward worker")


@pytest.mark.parametrize("command", [("serve", "--workers", "0"), ("serve",), ("worker",), ("mcp",)])
def test_an_installation_under_an_earlier_name_is_told_in_one_line(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "DISTRIBUTION", "steward-of-another-name")
    done = steward(tmp_path, *command)
    assert "steward-of-another-name is not installed here: `pip uninstall steward`" in stderr_of(done)


def test_a_port_that_is_taken_is_told_before_anything_is_made(tmp_path: Path) -> None:
    from app.cli.server.serve import bind

    port = free_port()
    (listener,) = bind(Settings(port=port))
    with listener:
        listener.listen()
        assert f"STEWARD_PORT={port}" in stderr_of(steward(tmp_path, "serve", "--port", str(port)))
    assert list(tmp_path.iterdir()) == []
