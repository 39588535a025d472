"""`steward doctor`: each fault is found with its remedy; nothing is made, no secret shown, 80 columns hold it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update
from typer.testing import CliRunner

from app import installed
from app.cli.main import cli
from app.cli.server import doctor, probe
from app.cli.server.doctor import Finding, examine
from app.database import leases
from app.database.engine import Database
from app.database.leases import database_time
from app.database.tables import JobEvent
from app.settings import Settings
from app.startup import without_password
from migrations import runner
from migrations.runner import head
from tests.app.jobs.test_lease import make
from tests.app.keys.test_provider import Issuer
from tests.servers import free_port

CHECKS = ["release", "extras", "settings", "disk", "database", "tables", "clock", "workers", "jobs", "keys", "broker"]
CHECKS += ["api"]
EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing is bound
SECRET = "hunter2:with@all/of?it"


@pytest.fixture(autouse=True)
def _disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with room."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: (100 << 30, 10 << 30, 90 << 30))


@pytest.fixture
def here(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """These tests' service, which listens nowhere, and whose environment has settings alone."""
    monkeypatch.delenv("STEWARD_REQUIRE_SERVERS", raising=False)  # which is of tests
    return settings.model_copy(update={"port": free_port()})


def findings_by_check(settings: Settings) -> dict[str, Finding]:
    return {one.check: one for one in examine(settings)}


def with_worker(database: Database) -> None:
    with database.session() as session:
        leases.beat(session, "host:1/23/4.5")


def test_all_is_well(here: Settings, any_database: Database) -> None:
    here = here.model_copy(update={"database_url": any_database.url.render_as_string(hide_password=False)})
    with_worker(any_database)
    checks = findings_by_check(here)
    expected = {"settings"} if not any_database.is_sqlite else set()  # whose broker is files
    assert {one.check for one in checks.values() if one.status != "ok"} == expected, checks
    assert list(checks) == CHECKS
    assert "1 alive (host:1/23/4.5)" in checks["workers"].detail


def test_extras_that_are_missing_are_told_with_what_they_are_for(
    here: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "missing", lambda extra: ["x"] if extra in ("worker", "otel") else [])
    one = findings_by_check(here)["extras"]
    assert one.status == "warn"
    assert "worker (fits, trainings, evaluations and charts), otel (traces)" in one.detail
    assert installed.command("worker") in one.remedy
    one = findings_by_check(here.model_copy(update={"workers": 0}))["extras"]  # workers are elsewhere
    assert (one.status, one.remedy, "worker (" in one.detail) == ("ok", "", True)
    model_copy = here.model_copy(update={"workers": 0, "retention_runs_days": 3})  # archives are written there, too
    monkeypatch.setattr(installed, "missing", lambda _: ["x"])
    assert "archive" not in findings_by_check(model_copy)["settings"].detail
    assert "archive" in findings_by_check(model_copy.model_copy(update={"workers": 1}))["settings"].detail
    monkeypatch.setattr(installed, "missing", lambda _: [])
    assert findings_by_check(here)["extras"].detail == "all are installed"


def test_nothing_is_there_yet_and_nothing_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    done = CliRunner().invoke(cli, ["doctor", "--data", str(folder), "--json"])
    assert done.exit_code == 1
    output = json.loads(done.stdout)
    assert output["status"] == "fail"
    (failed,) = [one for one in output["checks"] if one["status"] == "fail"]
    assert (failed["check"], "steward db upgrade" in failed["remedy"]) == ("database", True)
    assert not folder.exists()


def test_lines_hold_in_80_columns_and_say_what_helps(here: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEWARD_DATABASE_URL", here.database_url)
    monkeypatch.setenv("STEWARD_PORT", str(here.port))
    done = CliRunner().invoke(cli, ["doctor", "--data", str(here.data_dir)])
    lines = done.stdout.splitlines()
    assert done.exit_code == 1
    assert max(map(len, lines)) <= doctor.COLUMNS
    assert any(line.startswith("fail  workers") for line in lines)
    assert any("-> start one: steward worker" in line for line in lines)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{SECRET}@127.0.0.1:1/x",
        "postgresql://u:hunter2%3Awith@127.0.0.1:1/x?sslpassword=hunter2",
        "mysql://u:hunter2@h/x",
        "hunter2:hunter2@",
    ],
)
def test_no_secret_is_shown(url: str, here: Settings) -> None:
    broker = "redis://:hunter2@127.0.0.1:1/0" if SECRET in url else "nonsense://:hunter2@h/0"  # which takes no time
    checks = examine(here.model_copy(update={"database_url": url, "broker_url": broker}))
    result = doctor.document(checks)
    if "://" in url:
        assert "hunter2" not in result
    assert {one.check for one in checks if one.status == "fail"} >= {"database", "broker"}
    assert all(one.remedy for one in checks if one.status == "fail")


def test_passwords_of_urls_are_hidden_whatever_is_in_them() -> None:
    assert without_password(f"x://u:{SECRET}@h:1/x?a=b&password=p") == "x://u:***@h:1/x?a=b&password=***"
    assert without_password("sqlite:////data/a:b.db") == "sqlite:////data/a:b.db"
    assert without_password("redis://:pw@h/0") == "redis://:***@h/0"


CONTRADICTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"host": EVERYWHERE}, "fail", "steward key create"),
    ({"host": EVERYWHERE, "authentication": "required"}, "warn", "STEWARD_TLS_CERTIFICATE"),
    ({"broker_url": "redis://h/0"}, "warn", "PostgreSQL"),
    ({"database_url": "postgresql://h/x"}, "warn", "Redis"),
    ({"lease_seconds": 5.0}, "warn", "8 or more"),
    ({"worker_seen_seconds": 5.0}, "warn", "8 or more"),
    ({"idempotency_claim_seconds": 1.0}, "warn", "30 or more"),
    ({"tls_certificate": Path("/none.pem"), "tls_key": Path("/none.pem")}, "fail", "PEM"),
]


@pytest.mark.parametrize(("change", "status", "remedy"), CONTRADICTIONS)
def test_settings_that_contradict(change: dict[str, Any], status: str, remedy: str, here: Settings) -> None:
    one = next(doctor.findings(here.model_copy(update=change), {}))
    assert one.status == status
    assert remedy in one.remedy


def test_a_variable_that_is_no_setting_is_named() -> None:
    values = {"STEWARD_LOG_FORMT": "json", "STEWARD_API_KEY": "k", "STEWARD_PORT": "1", "STEWARD_XYZZY": "", "HOME": ""}
    first, second = doctor.unknown_variables(values)
    assert (first.remedy, "XYZZY" in second.detail) == ("did you mean STEWARD_LOG_FORMAT?", True)


def test_a_certificate_that_ends(tmp_path: Path) -> None:
    key, chain = tmp_path / "key.pem", tmp_path / "chain.pem"
    options = ["-newkey", "ed25519", "-nodes", "-subj", "/CN=localhost", "-days", "30", "-keyout", key, "-out", chain]
    subprocess.run(["openssl", "req", "-x509", *map(str, options)], check=True, capture_output=True)
    now = datetime.now(UTC)
    ages = [(0, []), (20, ["warn"]), (31, ["fail"])]
    for days, statuses in ages:
        result = doctor.certificate(chain, key, now + timedelta(days=days))
        assert [one.status for one in result] == statuses


@pytest.mark.parametrize(
    ("revision", "status", "remedy"),
    [
        (head(), "fail", "steward db upgrade"),
        ("2099_01_01", "warn", "end the upgrade"),
        (None, "fail", "db"),
    ],
)
def test_tables_of_another_release(
    revision: str | None,
    status: str,
    remedy: str,
    here: Settings,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "head", lambda: "2099_12_31")
    with database.engine.begin() as connection:
        if revision is None:
            connection.execute(text("DROP TABLE alembic_version"))
        else:
            connection.execute(text("UPDATE alembic_version SET version_num=:to"), {"to": revision})
    one = findings_by_check(here)["tables"]
    assert one.status == status
    assert remedy in one.remedy


def test_a_database_without_its_tables_is_told_and_not_raised(here: Settings, database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("DROP TABLE workers"))
    assert "no such table" in findings_by_check(here)["workers"].detail


@pytest.mark.parametrize(("seconds", "status"), [(0.1, "ok"), (-2.0, "warn"), (3600.0, "fail")])
def test_clocks_that_differ(seconds: float, status: str) -> None:
    now = datetime.now(UTC)
    one = doctor.apart(now + timedelta(seconds=seconds), now, now + timedelta(seconds=0.01), embedded=False)
    assert one.status == status
    assert bool(one.remedy) is (status != "ok")


@pytest.mark.parametrize(("free", "status"), [(90 << 30, "ok"), (4 << 30, "warn"), (1 << 20, "fail")])
def test_a_disk_that_fills(free: int, status: str, here: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: (100 << 30, 0, free))
    assert findings_by_check(here)["disk"].status == status


def test_workers_that_are_silent(here: Settings, database: Database) -> None:
    hour = timedelta(hours=1)
    with database.session() as session:
        leases.beat(session, "gone", lambda _: datetime.now(UTC) - hour)
        assert doctor.workers(session, here).status == "fail"
        leases.beat(session, "there", lambda _: datetime.now(UTC))
        result = doctor.workers(session, here)
        assert (result.status, "1 silent without having signed off (gone)" in result.detail) == ("warn", True)
        leases.beat(session, "ahead", lambda _: datetime.now(UTC) + hour)
        assert "ahead of time" in doctor.workers(session, here).detail


def test_jobs_that_wait(here: Settings, any_database: Database) -> None:
    make(any_database, "a", clock=database_time)
    with any_database.session() as session:
        assert doctor.jobs(session).detail == "1 queued"
        session.execute(update(JobEvent).values(created_at=datetime.now(UTC) - timedelta(hours=2)))
        result = doctor.jobs(session)
    assert (result.status, result.detail) == ("warn", "1 queued; the first in line has waited for 2.0 h")


def test_keys_that_are_asked_for(here: Settings, database: Database, settings: Settings) -> None:
    required = here.model_copy(update={"authentication": "required"})
    with database.reading() as session:
        assert doctor.of_keys(session, required).remedy == "steward key create --scopes admin"
    created = CliRunner().invoke(
        cli, ["key", "create", "--scopes", "read", "--expires", "2d", "--data", str(settings.data_dir)]
    )
    assert created.exit_code == 0
    with database.reading() as session:
        assert doctor.of_keys(session, required).status == "warn"


@pytest.mark.parametrize(
    ("reply", "status", "detail"),
    [
        (probe.Reply(200, b'{"ready": true, "database": "ok"}'), "ok", "is ready"),
        (probe.Reply(503, b'{"ready": false, "worker": "none seen"}'), "warn", "worker: none seen"),
        (probe.Reply(404, b"<html>"), "warn", "not as Steward does"),
        (ConnectionRefusedError("refused"), "ok", "does not run"),
    ],
)
def test_the_api_is_asked(
    reply: probe.Reply | OSError, status: str, detail: str, here: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get(_: Settings, path: str) -> probe.Reply:
        assert path == "/readyz"
        if isinstance(reply, OSError):
            raise reply
        return reply

    monkeypatch.setattr(probe, "get", get)
    one = doctor.api(here)
    assert one.status == status
    assert detail in one.detail


def test_a_port_that_something_else_has_is_told(here: Settings) -> None:
    with socket.create_server(("127.0.0.1", here.port)) as other:
        threading.Thread(target=_hang_up, args=(other,), daemon=True).start()
        one = doctor.api(here)
    assert (one.status, f"STEWARD_PORT={here.port}" in one.detail) == ("fail", True)
    assert "--port" in one.remedy
    assert doctor.api(here).status == "ok"


def _hang_up(listener: socket.socket) -> None:
    with suppress(OSError):
        listener.accept()[0].close()


def test_an_issuer_is_asked_for_its_keys(here: Settings, database: Database) -> None:
    assert database
    alive = Issuer()
    for url, status in ((alive.url, "ok"), (f"http://127.0.0.1:{free_port()}", "fail"), (f"{alive.url}/other", "fail")):
        one = findings_by_check(here.model_copy(update={"oidc_issuer": url}))["issuer"]
        assert (one.status, url in one.detail) == (status, True)
        assert ("STEWARD_OIDC_ISSUER" in one.remedy) is (status == "fail")
    assert "issuer" not in findings_by_check(here)
    alive.stop()
