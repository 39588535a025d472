"""`steward key` and `steward audit`, on the database itself; and where the API may listen because of them."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner, Result

from app.cli.main import cli
from app.cli.server.serve import check_address
from app.database.engine import Database
from app.main import create_app
from app.settings import Settings
from app.startup import StartupError


@pytest.fixture
def folder(settings: Settings) -> Path:
    """A data folder with the database of this test in it."""
    return settings.data_dir


def steward(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--data", str(folder)])


def test_the_first_key_opens_the_service_to_its_holder(folder: Path, settings: Settings, database: Database) -> None:
    process = steward(
        folder, "key", "create", "--tenant", "blue", "--scopes", "train,read", "--name", "CI", "--expires", "2d"
    )
    assert process.exit_code == 0, process.output
    client = TestClient(create_app(settings, database))
    assert client.get("/workloads").status_code == 401
    headers = {"Authorization": f"Bearer {process.stdout.strip()}"}
    assert client.get("/workloads", headers=headers).status_code == 200
    assert client.get("/keys", headers=headers).status_code == 403
    (listed,) = [json.loads(line) for line in steward(folder, "key", "list", "--json").stdout.splitlines()]
    assert (listed["tenant"], listed["scopes"], listed["name"]) == ("blue", ["read", "train"], "CI")
    left = datetime.fromisoformat(listed["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=1.9) < left < timedelta(days=2)
    output = steward(folder, "key", "list").stdout
    assert process.stdout.strip() not in output
    assert all(len(line) <= 80 for line in output.splitlines())
    assert output.splitlines()[1].startswith(f"{listed['id']}  blue")
    assert steward(folder, "key", "delete", listed["id"]).exit_code == 0
    assert "revoked" in steward(folder, "key", "list").stdout
    assert json.loads(steward(folder, "key", "show", listed["id"], "--json").stdout)["revoked_at"]
    shown = steward(folder, "key", "show", listed["id"])
    assert "name: CI" in shown.stdout
    assert process.stdout.strip() not in shown.stdout
    for verb in ("show", "delete"):
        absent = steward(folder, "key", verb, "nothing")
        assert absent.exit_code == 5
        assert "`steward key list` lists them" in absent.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--scopes", "everything"],
        ["--scopes", ""],
        ["--tenant", "No Tenant"],
        ["--tenant", "x" * 64],
        ["--expires", "soon"],
        ["--expires", "2020-01-01"],
        ["--expires", "99999999999d"],
        ["--name", "x" * 121],
    ],
)
def test_what_makes_no_key_is_refused(folder: Path, options: list[str]) -> None:
    refused = steward(folder, "key", "create", *options)
    assert refused.exit_code == 2
    assert steward(folder, "key", "list", "--json").stdout == ""


def test_the_audit_is_printed(folder: Path) -> None:
    processes = [steward(folder, "key", "create", "--tenant", tenant, "--name", "=1+1") for tenant in ("blue", "green")]
    assert all(one.exit_code == 0 for one in processes)
    entries = [json.loads(line) for line in steward(folder, "audit", "--json").stdout.splitlines()]
    assert [(entry["tenant"], entry["actor"], entry["action"]) for entry in entries] == [
        ("green", "steward", "key.create"),
        ("blue", "steward", "key.create"),
    ]
    rows = list(csv.DictReader(io.StringIO(steward(folder, "audit", "--tenant", "blue", "--csv").stdout)))
    assert [row["tenant"] for row in rows] == ["blue"]
    assert steward(folder, "audit", "--action", "workload").stdout == "none\n"
    head, *result, more = steward(folder, "audit", "--limit", "1").stdout.splitlines()
    assert [line.split()[-3:] for line in result] == [["key.create", "key", entries[0]["target"].split()[-1]]]
    assert (head.split(), "--limit" in more) == (["age", "tenant", "by", "action", "target"], True)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104
def test_anywhere_but_on_loopback_keys_are_asked_for(folder: Path, settings: Settings, host: str) -> None:
    requested = settings.model_copy(update={"host": host})
    with pytest.raises(StartupError, match="no API keys"):
        check_address(requested)
    for update in ({"authentication": "required"}, {"oidc_issuer": "https://issuer.example"}):
        assert check_address(requested.model_copy(update=update)).authentication == "required"
    assert steward(folder, "key", "create").exit_code == 0
    assert check_address(requested).authentication == "required"
    assert check_address(settings).authentication == "auto"
    nowhere = requested.model_copy(update={"database_url": f"sqlite:///{folder}/none.db"})
    with pytest.raises(StartupError, match="no API keys"):
        check_address(nowhere)
    assert not (folder / "none.db").exists()


@pytest.mark.parametrize(
    "wrong", [{"tls_key": "x"}, {"tls_certificate": "x"}, {"trusted_proxies": "*"}, {"trusted_proxies": "10.0.0.0/99"}]
)
def test_settings_that_open_too_much_or_half_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Settings.model_validate(wrong)
