"""A database that the release before wrote goes on: it decides, lists, promotes, rolls back.

``previous_release.json`` holds the rows of such a database at revision ``2026_11_21_shadows``: a workload of each kind,
one of them with samples, a model, three agents of which the second answers, a run with targets of its own and a shadow,
and one that failed.
"""

from __future__ import annotations

import base64
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import MetaData, insert

from app.database.engine import Database
from app.main import create_app
from app.settings import Settings
from migrations.runner import downgrade, upgrade
from tests.filled import contents

WRITTEN = Path(__file__).with_name("previous_release.json")
REVISION = "2026_11_21_shadows"
REPORT = {"allocation": {"gpus": 2}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}


def read(value: Any) -> Any:
    """A value as it was written: bytes and times are marked."""
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return base64.b64decode(value["base64"])
    if isinstance(value, dict) and value.keys() == {"time"}:
        return datetime.fromisoformat(value["time"])
    return value


def fill(database: Database) -> None:
    """The rows of the release before."""
    rows = json.loads(WRITTEN.read_text())
    metadata = MetaData()
    metadata.reflect(database.engine)
    with database.engine.begin() as connection:
        for table in metadata.sorted_tables:
            for row in rows.get(table.name, []) if table.name != "alembic_version" else []:
                connection.execute(insert(table).values({name: read(value) for name, value in row.items()}))


@pytest.fixture
def older(any_database: Database) -> Database:
    """The database of the release before."""
    downgrade(any_database.url.render_as_string(hide_password=False), REVISION)
    fill(any_database)
    return any_database


@pytest.fixture
def client(older: Database, tmp_path: Path) -> TestClient:
    """This release's service on it."""
    url = older.url.render_as_string(hide_password=False)
    upgrade(url)
    return TestClient(create_app(Settings(data_dir=tmp_path, database_url=url), older))


def runs() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(WRITTEN.read_text())["runs"]
    return found


def answered(answer: Any) -> Any:
    assert answer.status_code in (200, 201, 204), answer.text
    return answer.json() if answer.content else None


def test_what_was_promoted_answers_and_is_told(client: TestClient) -> None:
    found = answered(client.get("/workloads/resnet18"))
    assert (found["champion"], found["champions"]) == (2, {"default": 2})
    assert [one["name"] for one in answered(client.get("/workloads"))["items"]] == ["pool", "resnet18"]
    agents = answered(client.get("/workloads/resnet18/agents"))["items"]
    assert [(one["version"], one["champion"], one["promoted"]) for one in agents] == [
        (3, False, False),
        (2, True, True),
        (1, False, True),
    ]


def test_history_is_walked_back(client: TestClient) -> None:
    path = "/workloads/resnet18/agents"
    assert answered(client.post(f"{path}/3/promote"))["previous"] == 2
    assert [answered(client.post(f"{path}/{version}/rollback"))["champion"] for version in (3, 2, 1)] == [2, 1, None]
    assert answered(client.get("/workloads/resnet18"))["champions"] == {}


def test_a_run_that_was_under_way_goes_on_with_its_targets(client: TestClient) -> None:
    running = next(run for run in runs() if run["state"] == "running")
    found = answered(client.get(f"/runs/{running['id']}"))
    assert running["targets"] == {"iteration_seconds": 900.0}
    assert found["start"]["targets"] == running["targets"]
    path = f"/runs/{running['id']}/iterations"
    before = answered(client.get("/decision", params={"run": running["id"], "iteration": 1}))
    again = answered(client.put(f"{path}/1", json=REPORT))
    assert {**again, "kind": before["kind"]} == before  # which decisions did not tell then
    decision = answered(client.put(f"{path}/2", json=REPORT))
    assert (decision["iteration"], decision["agent"], decision["source"]) == (3, 2, "agent")
    assert len(answered(client.get(path))["items"]) == 3


def test_new_runs_start_and_samples_are_summed_up(client: TestClient) -> None:
    assert answered(client.post("/runs", json={"workload": "resnet18"}))["agent"] == 2
    assert answered(client.post("/runs", json={"workload": "pool"}))["agent"] is None
    listed = answered(client.get("/workloads/resnet18/samples"))["items"]
    assert sorted(one["iterations"] for one in listed) == [1, 6]
    assert client.delete("/workloads/resnet18?force=true").status_code == 204


def test_it_can_be_taken_back(older: Database) -> None:
    url, before = older.url.render_as_string(hide_password=False), contents(older)
    upgrade(url)
    downgrade(url, REVISION)
    assert contents(older) == before
