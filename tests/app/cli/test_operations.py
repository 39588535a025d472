"""Each operation of the API is called by its command line, or has a reason for having none."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from app.cli.main import cli
from app.cli.operations import DOCUMENT, Operation, document, operations
from app.cli.remote.service import Service

ROOT = Path(__file__).parents[3]
WITHOUT = {
    "health": "`steward health` asks for it where the service runs",
    "readiness": "orchestrators ask; `steward doctor` examines the same",
    "metrics": "Prometheus asks",
    "follow_job": "`steward job watch` and whatever waits for a job read it",
    "create_key": "`steward key` works on the database itself, so that there can be a first key",
    "list_keys": "`steward key`, too",
    "revoke_key": "`steward key`, too",
    "list_audit": "`steward audit` reads the database itself",
}
"""Operations without a command line, and why."""
ARGUMENTS = {
    "run update": "r --target iteration_seconds=5",
    "workload create": "w.json",
    "workload recommend": "w iteration=3 allocation.gpus=4",
    "series create": "w price issued_at=2026-01-01T00:00:00Z",
    "series show": "w price",
    "series delete": "w price",
    "samples show": "w one",
    "samples create": "w log.csv",
    "samples export": "w --out log.csv",
    "samples delete": "w --execution one",
    "model predict": "w 1 allocation.gpus=4",
    "agent promote": "w 1 --require shadow --reason good",
    "agent create": "w --seed 3",
    "train": "w --seed 3",
    "run report": "r 0 allocation.gpus=4",
    "evaluate create": "w",
    "forecast": "w --model 1",
}
"""What follows a command line where it is more than the names of its path."""
NAMES = {"workload": "w", "version": "1", "id": "j", "run": "r", "series": "price", "iteration": "0"}


def entries(schema: Any) -> Iterator[tuple[str, str, Any]]:
    for path, methods in schema["paths"].items():
        for method, entry in methods.items():
            yield method.upper(), path, entry


def test_the_package_carries_the_document_of_the_api() -> None:
    assert DOCUMENT.read_text() == (ROOT / "openapi.json").read_text()


def test_an_operation_has_a_command_line_or_a_reason() -> None:
    assert {entry["operationId"] for _, _, entry in entries(document()) if "x-cli" not in entry} == WITHOUT.keys()


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[httpx.Request]:
    """What commands send to a service that agrees to all."""
    sent: list[httpx.Request] = []
    answer: dict[str, Any] = {"id": "j", "items": [], "next": None, "champion": 1, "promoted": True}
    answer |= {"type": "fit", "state": "succeeded", "result": {"agent": 1, "model": 1, "evaluation": "j"}}

    def send(request: httpx.Request) -> httpx.Response:
        request.read()
        sent.append(request)
        return httpx.Response(200, json=answer)

    client = httpx.Client(transport=httpx.MockTransport(send), base_url="http://service")
    monkeypatch.setattr("app.cli.remote.service.httpx.Client", lambda **_: client)
    monkeypatch.setattr(Service, "follow", lambda _self, _job: iter([answer]))
    monkeypatch.setattr("app.cli.remote.train.show", lambda *_, **__: None)
    monkeypatch.setattr("app.cli.remote.agent_report.show", lambda *_, **__: None)
    monkeypatch.setattr("app.cli.remote.evaluate.show", lambda *_, **__: None)
    monkeypatch.setattr("app.cli.remote.forecast.forecast_table", lambda _: "")
    monkeypatch.chdir(tmp_path)
    Path("w.json").write_text("{}")
    Path("log.csv").write_text("execution\n")
    return sent


@pytest.mark.parametrize("operation", operations().values(), ids=lambda operation: operation.line)
def test_a_command_line_calls_its_operation(operation: Operation, requests: list[httpx.Request]) -> None:
    arguments = ARGUMENTS.get(operation.line, " ".join(NAMES[name] for name in operation.parameters))
    if operation.arguments and operation.line not in ARGUMENTS:
        arguments += " ".join(NAMES[name] for name in operation.arguments)
    result = CliRunner().invoke(cli, [*operation.line.split(), *shlex.split(arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    pattern = re.sub(r"{\w+}", "[^/]+", operation.path)
    called = [one for one in requests if one.method == operation.method and re.fullmatch(pattern, one.url.path)]
    assert len(called) == 1, [str(one.url) for one in requests]
    (request,) = called
    for name in operation.arguments:
        sent = json.loads(request.content) if operation.body else dict(request.url.params)
        assert sent[name] in ("w", "one")


@pytest.mark.parametrize("operation", [one for one in operations().values() if one.columns], ids=lambda one: one.line)
def test_columns_are_members_of_the_response(operation: Operation) -> None:
    (entry,) = (e for m, p, e in entries(document()) if (m, p) == (operation.method, operation.path))
    page = entry["responses"]["200"]["content"]["application/json"]["schema"]
    items = [item for one in resolved(page) for item in resolved(one["properties"]["items"]["items"])]
    for column in operation.columns:
        result = items
        for name in column.member.split("."):
            result = [deeper for item in result for deeper in within(item, name)]
        assert result, column
        assert all(column.until in item["properties"] for item in items if column.until)


def within(schema: Any, name: str) -> list[Any]:
    """What a member of an object may be; of an object that may have any, anything."""
    if schema.get("additionalProperties") is True:
        return [schema]
    return resolved(schema.get("properties", {}).get(name, {}))


def resolved(schema: Any) -> list[Any]:
    """What a schema may be: without references, alternatives one by one, of a list its items."""
    if "$ref" in schema:
        schema = document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    parts = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if schema.get("type") == "array":
        parts = [schema["items"]]
    return [match for part in parts for match in resolved(part)] if parts else [schema][: len(schema)]


def test_a_command_line_offers_what_its_operation_takes() -> None:
    context = typer.Context(get_command(cli))
    group: Any = context.command
    promote = {one.name: one for one in group.commands["agent"].commands["promote"].params}
    assert {"reason", "require", "role", "fields", "file"} <= promote.keys()
    listed = {one.name: one for one in group.commands["run"].commands["list"].params}
    assert [*listed["state"].type.choices] == ["running", "finished", "failed", "cancelled"]
    assert "Filter by outcome." in listed["outcome"].help


@pytest.mark.parametrize(
    ("line", "values", "text"),
    [
        ("model delete", {"workload": "w", "version": "2"}, "model 2 of w is deleted"),
        ("samples delete", {"workload": "w"}, "samples of w are deleted"),
        ("series delete", {"workload": "w", "series": "price"}, "series price of w is deleted"),
        ("evaluate delete", {"id": "e"}, "evaluation e is deleted"),
        ("workload delete", {"workload": "w"}, "workload w is deleted"),
    ],
)
def test_a_deletion_is_told_by_what_its_path_names(line: str, values: dict[str, str], text: str) -> None:
    assert operations()[line].deletion_message(values) == text
