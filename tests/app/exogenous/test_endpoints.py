"""Exogenous series over HTTP: issues are put, read, listed and deleted."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from app.database.engine import Database
from app.database.tables import ExogenousRow
from app.exogenous import endpoints
from app.exogenous.endpoints import MAX_ROWS_PER_REQUEST
from tests.app.both import on_both

MORNING, NOON = "2026-01-01T06:00:00Z", "2026-01-01T12:00:00Z"


def at(hour: int) -> str:
    """The start of an hour of the day after."""
    return f"2026-01-02T{hour:02d}:00:00Z"


def issue(issued_at: str, **means: float) -> dict[str, Any]:
    """An issue: ``h3=12.5`` says 12.5 of 3 o'clock, with an interval of 1 about it."""
    rows = [
        {"time": at(int(name[1:])), "mean": mean, "low": mean - 1, "high": mean + 1} for name, mean in means.items()
    ]
    return {"issued_at": issued_at, "rows": rows}


@pytest.fixture
def path(workload: str) -> str:
    return f"/workloads/{workload}/exogenous"


def means(client: TestClient, path: str, **query: Any) -> list[float]:
    """What is read of a series, over all pages."""
    answer = client.get(path, params=query).json()
    means = [row["mean"] for row in answer["items"]]
    while answer["next"]:
        answer = client.get(answer["next"]).json()
        means += [row["mean"] for row in answer["items"]]
    return means


@on_both
def test_of_each_time_the_newest_issue_is_read(client: TestClient, path: str) -> None:
    series = f"{path}/arrivals"
    assert client.put(series, json=issue(MORNING, h3=30, h1=10, h2=20)).status_code == 200
    answer = client.put(series, json=issue(NOON, h2=21, h3=31, h4=41)).json()
    assert answer == {
        "workload": "resnet18",
        "series": "arrivals",
        "rows": 6,
        "since": at(1),
        "until": at(4),
        "issued_at": NOON,
    }
    assert means(client, series) == means(client, series, limit=1) == [10, 21, 31, 41]
    assert means(client, series, issued_at=MORNING) == [10, 20, 30]
    assert means(client, series, since=at(2), until=at(4)) == [21, 31]
    assert means(client, series, since="2026-01-02T04:00:00+02:00", until=at(3), issued_at=MORNING) == [20]
    assert means(client, series, issued_at=at(1)) == []
    first = client.get(series).json()["items"][0]
    assert first == {"time": at(1), "issued_at": MORNING, "mean": 10, "low": 9, "high": 11}


@on_both
def test_the_same_issue_again_replaces_its_rows(client: TestClient, path: str, backend: Database) -> None:
    series = f"{path}/price"
    answers = [client.put(series, json=issue(MORNING, h1=10, h2=20)).json() for _ in range(2)]
    assert answers[0] == answers[1]
    client.put(series, json={"issued_at": "2026-01-01T08:00:00+02:00", "rows": [{"time": at(1), "mean": 5}]})
    rows = client.get(series).json()["items"]
    assert [(row["low"], row["mean"], row["high"]) for row in rows] == [(5, 5, 5), (19, 20, 21)]
    with backend.reading() as session:
        assert session.scalar(select(func.count()).select_from(ExogenousRow)) == 2


@on_both
def test_series_are_listed_and_deleted(client: TestClient, path: str, workload: str, backend: Database) -> None:
    assert client.get(path).json() == {"items": [], "next": None}
    for name in ("price", "arrivals", "rain"):
        client.put(f"{path}/{name}", json=issue(MORNING, h1=1, h2=2, h3=3))
    page = client.get(path, params={"limit": 2}).json()
    assert [(one["series"], one["rows"]) for one in page["items"]] == [("arrivals", 3), ("price", 3)]
    assert [one["series"] for one in client.get(page["next"]).json()["items"]] == ["rain"]
    assert client.delete(f"{path}/rain", params={"before": at(3)}).status_code == 204
    assert means(client, f"{path}/rain") == [3]
    assert client.delete(f"{path}/rain").status_code == 204
    for answer in (client.get(f"{path}/rain"), client.delete(f"{path}/rain")):
        assert (answer.status_code, f"PUT {path}/rain" in answer.json()["detail"]) == (404, True)
    assert client.delete(f"/workloads/{workload}").status_code == 204
    with backend.reading() as session:
        assert session.scalar(select(func.count()).select_from(ExogenousRow)) == 0
    assert client.get(path).status_code == 404
    assert client.put(f"{path}/rain", json=issue(MORNING, h1=1)).status_code == 404


ROW = {"time": at(1), "mean": 1.0}


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        ({"rows": [ROW]}, "/issued_at", "required"),
        ({"issued_at": MORNING, "rows": []}, "/rows", "at least 1"),
        (
            {"issued_at": MORNING, "rows": [ROW] * (MAX_ROWS_PER_REQUEST + 1)},
            "/rows",
            f"at most {MAX_ROWS_PER_REQUEST}",
        ),
        ({"issued_at": MORNING, "rows": [ROW, ROW]}, "/rows/1/time", "must be given once"),
        ({"issued_at": "2026-01-01T06:00:00", "rows": [ROW]}, "/issued_at", "timezone"),
        ({"issued_at": 1_767_225_600, "rows": [ROW]}, "/issued_at", "RFC 3339"),
        ({"issued_at": "1767225600", "rows": [ROW]}, "/issued_at", "RFC 3339"),
        ({"issued_at": "2026-01-01", "rows": [ROW]}, "/issued_at", "RFC 3339"),
        ({"issued_at": "0001-01-01T00:00:00+23:00", "rows": [ROW]}, "/issued_at", "RFC 3339"),
        ({"issued_at": "9999-12-31T23:59:59-23:00", "rows": [ROW]}, "/issued_at", "RFC 3339"),
        ({"issued_at": MORNING, "rows": [{"time": "noon", "mean": 1}]}, "/rows/0/time", "RFC 3339"),
        ({"issued_at": MORNING, "rows": [{**ROW, "mean": "NaN"}]}, "/rows/0/mean", "finite"),
        ({"issued_at": MORNING, "rows": [{**ROW, "mean": 10**400}]}, "/rows/0/mean", "number"),
        ({"issued_at": MORNING, "rows": [{**ROW, "low": 2}]}, "/rows/0", "low 2, mean 1 and high 1"),
        ({"issued_at": MORNING, "rows": [{**ROW, "high": 0}]}, "/rows/0", "high 0"),
        ({"issued_at": MORNING, "rows": [{**ROW, "colour": "red"}]}, "/rows/0/colour", "extra"),
    ],
)
def test_a_strange_issue_is_refused_by_field(
    client: TestClient, path: str, body: dict[str, Any], pointer: str, message: str
) -> None:
    answer = client.put(f"{path}/price", json=body)
    error = answer.json()["errors"][0]
    assert (answer.status_code, error["pointer"]) == (422, pointer)
    assert message in error["message"]
    assert client.get(path).json()["items"] == []


@pytest.mark.parametrize("name", ["since", "until", "issued_at"])
@pytest.mark.parametrize("value", ["yesterday", "2026-01-01", "0001-01-01T00:00:00+23:00", "2026-01-01T06:00:00"])
def test_a_strange_time_is_refused_by_parameter(client: TestClient, path: str, name: str, value: str) -> None:
    client.put(f"{path}/price", json=issue(MORNING, h1=1))
    answer = client.get(f"{path}/price", params={name: value})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["pointer"], error["value"]) == (422, f"/query/{name}", value)


def test_a_series_has_a_plain_name(client: TestClient, path: str) -> None:
    answer = client.put(f"{path}/Not Plain", json=issue(MORNING, h1=1))
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/path/series")


@on_both
def test_a_workload_keeps_a_bounded_number_of_rows(
    client: TestClient, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MAX_ROWS_PER_WORKLOAD", 3)
    client.put(f"{path}/price", json=issue(MORNING, h1=1, h2=2))
    answer = client.put(f"{path}/rain", json=issue(MORNING, h1=1, h2=2))
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (409, "/rows")
    assert "at most 3 rows" in answer.json()["detail"]
    assert [one["series"] for one in client.get(path).json()["items"]] == ["price"]
    assert client.put(f"{path}/price", json=issue(MORNING, h1=7, h2=8)).status_code == 200


@on_both
def test_a_whole_request_of_rows_is_stored(client: TestClient, path: str) -> None:
    rows = [
        {"time": f"2026-01-{1 + n // 1440:02d}T{n // 60 % 24:02d}:{n % 60:02d}:00Z", "mean": n}
        for n in range(MAX_ROWS_PER_REQUEST)
    ]
    answer = client.put(f"{path}/price", json={"issued_at": MORNING, "rows": rows})
    assert (answer.status_code, answer.json()["rows"]) == (200, MAX_ROWS_PER_REQUEST)
    assert means(client, f"{path}/price", limit=500) == [float(n) for n in range(MAX_ROWS_PER_REQUEST)]
