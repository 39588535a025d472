"""What a release has left is read by this one, and what this one leaves by a later one: on SQLite and on PostgreSQL."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from fastapi.testclient import TestClient
from sqlalchemy import inspect, text
from typer.testing import CliRunner

from app.cli.main import cli
from app.database.base import utc_now
from app.database.engine import Database
from app.kinds.registry import KINDS
from migrations.runner import HERE, configuration, head, upgrade
from tests.filled import contents
from tests.servers import PostgresServer
from tests.upgrades.dump import ENGINES, OTHERS, Answers, ask, opened, restore, serving

FROZEN = {"2026_11_28_first_tables.py": "c841fd9225d6b0b933c042ed54fbf7f34fa77bb8739ca12a12a4032e5908f089"}
"""Migrations by their SHA-256: databases stand at them, so what they do is never changed again. A later change of the
tables is a migration of its own, and is added here with its release."""
RELEASES = ("2026_11_28",)
"""Revisions at which releases have left databases; see `dump`."""
OF_KINDS = ("2026_11_28.kinds",)
"""Databases with workloads of the other kinds."""
AS_TIME_PASSES = {"outcome", "outcome_reason", "problem"}
"""What the service says of a run that goes on depends on when it is asked: one that reports nothing is stale."""
OF_A_MONTH = {"month", "cost", "seconds"}
"""What a tenant's runs have used of its caps: in another month they have used nothing."""
LATER = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "later", "{head}", None, None


def upgrade():
    with op.batch_alter_table("runs") as table:
        table.add_column(sa.Column("note", sa.String(16), nullable=False, server_default="none"))
"""


class Left:
    """A database as a release left it, and what the service answered then."""

    def __init__(self, url: str, answers: Answers) -> None:
        self.url, self.answers = url, answers

    def check_read(self) -> None:
        """Raise AssertionError unless the service answers as it did; answers may have more members than then."""
        with opened(self.url) as database:
            for key, before in self.answers.items():
                now = ask(database, key, list(before))
                assert {path: _common(now[path], answer) for path, answer in before.items()} == before


def _common(now: Any, before: Any) -> Any:
    """What ``before`` has, as it is now, but as it was where it depends on the time."""
    if isinstance(now, dict) and isinstance(before, dict):
        passing = AS_TIME_PASSES if before.get("state") == "running" else set[str]()
        passing |= OF_A_MONTH if now.get("month") != before.get("month") else set()
        return {name: value if name in passing else _common(now.get(name), value) for name, value in before.items()}
    if isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        return [_common(*pair) for pair in zip(now, before, strict=True)]
    return now


def restored(request: pytest.FixtureRequest, folder: Path) -> Iterator[Left]:
    """The database of a test's parameters, a name and an engine."""
    name, engine = request.param
    if engine == "sqlite":
        url = f"sqlite:///{folder / 'steward.db'}"
        yield Left(url, restore(name, engine, url))
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    server.execute("CREATE DATABASE left_by_a_release")
    url = server.url("left_by_a_release")
    yield Left(url, restore(name, engine, url))
    server.execute("DROP DATABASE left_by_a_release WITH (FORCE)")


@pytest.fixture(params=[(release, engine) for release in RELEASES for engine in ENGINES], ids="-".join)
def left(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Left]:
    yield from restored(request, tmp_path)


@pytest.fixture(params=[(name, engine) for name in OF_KINDS for engine in ENGINES], ids="-".join)
def left_kinds(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Left]:
    yield from restored(request, tmp_path)


def later(url: str, folder: Path) -> Config:
    """Alembic's configuration of a later release, whose migration adds a column."""
    settings = configuration(url)
    (folder / "later.py").write_text(LATER.format(head=head()))
    settings.set_main_option("version_locations", f"{HERE / 'versions'}{os.pathsep}{folder}")
    return settings


def columns(database: Database) -> set[str]:
    return {column["name"] for column in inspect(database.engine).get_columns("runs")}


def steward(url: str, *arguments: str) -> tuple[int, str]:
    """Exit status and errors of a command on a database."""
    done = CliRunner().invoke(cli, arguments, env={"STEWARD_DATABASE_URL": url, "COLUMNS": "1000"})
    return done.exit_code, done.stderr


def test_released_migrations_do_not_change() -> None:
    folder = HERE / "versions"
    assert {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FROZEN} == FROZEN
    scripts = list(ScriptDirectory.from_config(configuration("")).walk_revisions())
    named = {script.revision: Path(script.path).name for script in scripts}
    assert set(named.values()) == {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    assert scripts[-1].down_revision is None
    assert named[scripts[-1].revision] == next(iter(FROZEN))
    assert set(RELEASES) <= set(named)
    assert [script.revision for script in scripts if "downgrade" in vars(script.module)] == []


def test_a_database_of_two_tenants_is_in_the_files(left: Left) -> None:
    assert len(left.answers) == 2
    for answers in left.answers.values():
        assert [one["name"] for one in answers["/workloads"]["items"]] == ["bert", "resnet18"]
        assert [one["spec_version"] for one in answers["/workloads"]["items"]] == [2, 2]
        assert [one["state"] for one in answers["/runs"]["items"]] == ["running", "finished"] * 2
    with opened(left.url) as database, database.engine.connect() as connection:
        assert connection.scalar(text("SELECT version_num FROM alembic_version")) in RELEASES


def test_it_is_read_as_it_was_after_an_upgrade_to_this_release(left: Left) -> None:
    upgrade(left.url)
    left.check_read()
    with opened(left.url) as database:
        key, before = next(iter(left.answers.items()))
        run = next(one["id"] for one in before["/runs"]["items"] if one["state"] == "running")
        report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 22.0}, "features": {"batch": 128}}
        with TestClient(serving(database), headers={"Authorization": f"Bearer {key}"}) as client:
            assert client.put(f"/runs/{run}/iterations/2", json=report).status_code == 201
            assert client.patch(f"/runs/{run}", json={"state": "finished"}).json()["iterations"] == 3


def test_it_is_read_in_a_later_month_too(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.caps.service.utc_now", lambda: utc_now() + timedelta(days=40))
    upgrade(left.url)
    left.check_read()


def test_all_other_kinds_are_in_the_files_with_all_their_nouns(left_kinds: Left) -> None:
    first, second = left_kinds.answers.values()
    for answers in (first, second):
        assert {one["kind"] for one in answers["/workloads"]["items"]} == set(OTHERS)
        assert [one["spec_version"] for one in answers["/workloads"]["items"]] == [2] * 2 * len(OTHERS)
        assert [one["state"] for one in answers["/runs"]["items"]] == ["running", "finished"] * 2 * len(OTHERS)
    assert len(first["/evaluations"]["items"]) == len(first["/jobs"]["items"]) == 2 * len(OTHERS)
    for kind in OTHERS:
        home = f"/workloads/{kind}-2"
        assert (first[f"{home}/models/1"]["version"], first[f"{home}/agents/1"]["status"]) == (1, "champion")
        assert second[f"{home}/agents"]["items"] == []
    decided = {one["decision"]["source"] for one in first["/runs"]["items"]}
    assert "agent" in decided


@pytest.mark.slow
def test_all_kinds_go_on_after_an_upgrade_in_this_month_and_later(
    left_kinds: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(left_kinds.url)
    left_kinds.check_read()
    with monkeypatch.context() as later_month:
        later_month.setattr("app.caps.service.utc_now", lambda: utc_now() + timedelta(days=40))
        left_kinds.check_read()
    with opened(left_kinds.url) as database:
        for key, before in left_kinds.answers.items():
            with TestClient(serving(database), headers={"Authorization": f"Bearer {key}"}) as client:
                for run in (one for one in before["/runs"]["items"] if one["state"] == "running"):
                    report = KINDS[run["workload"].partition("-")[0]].example.reports[2]
                    answer = client.put(f"/runs/{run['id']}/iterations/2", json=report)
                    assert answer.status_code == 201, answer.text
                    assert answer.json()["agent"] == run["decision"]["agent"]
                    ended = client.patch(f"/runs/{run['id']}", json={"state": "finished"}).json()
                    assert (ended["state"], ended["iterations"]) == ("finished", 3)
                    assert len(client.get(f"/runs/{run['id']}/iterations").json()["items"]) == 3


def test_a_later_release_upgrades_it_while_this_one_serves(left: Left, tmp_path: Path) -> None:
    upgrade(left.url)
    key, before = next(iter(left.answers.items()))
    run = next(one["id"] for one in before["/runs"]["items"] if one["state"] == "running")
    upgraded, statuses = Event(), list[int]()
    with opened(left.url) as database:
        rows = contents(database)
        with TestClient(serving(database), headers={"Authorization": f"Bearer {key}"}) as client:

            def reports() -> None:
                while not upgraded.is_set() or len(statuses) < 6:
                    path = f"/runs/{run}/iterations/{2 + len(statuses)}"
                    report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 22.0}}
                    statuses.append(client.put(path, json={**report, "features": {"batch": 128}}).status_code)

            thread = Thread(target=reports)
            thread.start()
            try:
                command.upgrade(later(left.url, tmp_path), "later")
            finally:
                upgraded.set()
                thread.join()
            assert statuses == [201] * len(statuses)
            assert len(client.get(f"/runs/{run}/iterations").json()["items"]) == 2 + len(statuses)
        assert "note" in columns(database)
        for table, match in contents(database).items():
            if table not in {"runs", "iterations", "run_states"}:
                assert match == rows[table], table
        assert {row["note"] for row in contents(database)["runs"]} == {"none"}


def test_this_release_refuses_a_later_ones_database_and_goes_back_by_a_backup(left: Left, tmp_path: Path) -> None:
    upgrade(left.url)
    backup = str(tmp_path / "steward.backup")
    assert steward(left.url, "db", "backup", backup)[0] == 0
    command.upgrade(later(left.url, tmp_path), "later")
    status, output = steward(left.url, "db", "upgrade")
    assert (status, "another version of Steward" in output) == (2, True), output
    with opened(left.url) as database:
        assert "note" in columns(database)
    with pytest.raises(AttributeError, match="downgrade"):  # there is none
        command.downgrade(later(left.url, tmp_path), "-1")
    status, output = steward(left.url, "db", "restore", backup)
    assert status == 2, output
    status, output = steward(left.url, "db", "restore", "--force", backup)
    assert status == 0, output
    with opened(left.url) as database:
        assert "note" not in columns(database)
    assert steward(left.url, "db", "upgrade")[0] == 0
    left.check_read()
