"""Caps on cost and duration of runs, workloads and tenants: on both databases, two runs, two workloads, two tenants."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.caps import service as caps
from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import MonthlySpending
from tests.app.both import on_both
from tests.app.domain_models.published import publish_model
from tests.app.runs.test_outcomes import ended, outcome, started

PRICE = 3600.0
"""Per gpu and hour: 1 a second."""
SPEC: dict[str, Any] = {
    "resources": [{"name": "gpus", "minimum": 1, "maximum": 8, "max_steps": 7, "price_per_hour": PRICE}],
    "metrics": [{"name": "iteration_seconds", "unit": "s"}],
    "iterations": 10,
}


@pytest.fixture
def two(client: TestClient) -> tuple[str, str]:
    """Two workloads without a model, whose runs keep one gpu."""
    for name in ("first", "second"):
        assert client.post("/workloads", json={"name": name, **SPEC}).status_code == 201
    return "first", "second"


def put(client: TestClient, run: str, number: int, seconds: float = 10.0, gpus: int = 1) -> dict[str, Any]:
    body = {"allocation": {"gpus": gpus}, "metrics": {"iteration_seconds": seconds}}
    answer = client.put(f"/runs/{run}/iterations/{number}", json=body)
    assert answer.status_code == 201, answer.text
    response: dict[str, Any] = answer.json()
    assert client.put(f"/runs/{run}/iterations/{number}", json=body).json() == response
    assert client.get("/decision", params={"run": run}).json() == response
    return response


@on_both
@pytest.mark.parametrize(("of", "limit"), [("cost", 35.0), ("seconds", 35.0)])
def test_a_run_is_announced_to_stop_and_stops_before_it_passes_its_cap(
    client: TestClient, two: tuple[str, str], of: str, limit: float
) -> None:
    capped, free = started(client, two[0], caps={of: limit}), started(client, two[0])
    for number in range(2):
        assert "caps" not in put(client, free, number)
        response = put(client, capped, number)
        assert "stop" not in response
        (entry,) = response["caps"]
        assert (entry["scope"], entry["of"], entry["limit"]) == ("run", of, limit)
        assert (entry["spent"], entry["left"]) == (10.0 * (number + 1), limit - 10.0 * (number + 1))
        assert entry["projected"] == pytest.approx(100.0, rel=0.1)
        assert entry["state"] == "near"  # nine more don't fit
        assert "projected to use" in response["reason"]["text"]
        assert outcome(client, capped)[0] == "at_risk"
        assert f"the run's {'cost' if of == 'cost' else 'duration'} cap of" in str(outcome(client, capped)[1])
    home = client.get("/").text
    assert "raise the cap" in home  # a later deadline would not help
    assert "Change targets" not in home
    response = put(client, capped, 2)
    assert (response["stop"], response["reason"]["code"], response["source"], response["noop"]) == (
        True,
        "cap_reached",
        "guard",
        True,
    )
    assert response["allocation"] == {"gpus": 1.0}
    assert response["reason"]["text"].startswith("stop: ")
    assert response["caps"][0]["state"] == "reached"
    assert "stop" not in put(client, free, 2)
    done = ended(client, capped, "cancelled", reason="the launcher's words")
    assert (done["state"], done["outcome"]) == ("cancelled", "cap_reached")
    assert "and the next iteration takes about" in done["outcome_reason"]
    assert ended(client, free, "cancelled", reason="by hand")["outcome"] == "cancelled"
    listed = client.get("/runs", params={"outcome": "cap_reached"}).json()["items"]
    assert [one["id"] for one in listed] == [capped]
    assert 'steward_runs{outcome="cap_reached"} 1.0' in client.get("/metrics").text
    stopped = [client.get(f"/workloads/{name}/savings").json()["stopped"] for name in two]
    assert stopped == [[{"month": f"{utc_now():%Y-%m}", "runs": 1, "cost": 30.0}], []]
    home = client.get("/").text
    assert "was stopped at a cap" in home
    assert "raise the cap" in home


@on_both
def test_within_a_cap_nothing_is_announced_until_four_fifths_are_used_and_the_last_iteration_ends(
    client: TestClient, two: tuple[str, str]
) -> None:
    run = started(client, two[0], caps={"cost": 110.0, "seconds": 1e6})
    texts = []
    for number in range(10):
        response = put(client, run, number)
        assert "stop" not in response
        texts.append(response["reason"]["text"])
        assert [one["of"] for one in response["caps"]] == ["cost", "seconds"]
        assert outcome(client, run)[0] == "on_track"  # it is projected to end within
    assert ["cap" in text for text in texts] == [False] * 8 + [True, False]
    assert response["caps"][0]["spent"] == response["caps"][0]["projected"] == 100.0
    assert ended(client, run)["outcome"] == "completed"


@on_both
def test_runs_of_a_workload_share_its_cap_of_a_month(
    client: TestClient, backend: Database, two: tuple[str, str]
) -> None:
    assert client.patch(f"/workloads/{two[0]}", json={"caps": {"cost": 51}}).json()["spec"]["caps"]["cost"] == 51.0
    earlier = started(client, two[0])
    put(client, earlier, 0)
    ended(client, earlier)
    with backend.session() as session:  # it counts in the month before
        month = utc_now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        (sums,) = session.scalars(select(MonthlySpending))
        assert (sums.month, sums.cost, sums.seconds) == (f"{month:%Y-%m}", 10.0, 10.0)
        sums.month = f"{month - timedelta(seconds=1):%Y-%m}"
    first, second, other = started(client, two[0]), started(client, two[0]), started(client, two[1])
    response = put(client, first, 0)
    assert (response["caps"][0]["scope"], response["caps"][0]["spent"]) == ("workload", 10.0)
    put(client, other, 0)
    response = put(client, second, 0)
    assert "stop" not in response
    assert response["caps"][0]["spent"] == pytest.approx(10 + 10 + 10, rel=0.01)  # with the iteration that is under way
    assert outcome(client, second)[0] == "at_risk"
    assert "stop" not in put(client, first, 1)  # it may use up the rest
    response = put(client, second, 1)
    assert response["stop"]
    assert "the workload's monthly cost cap of" in response["reason"]["text"]
    assert ended(client, second, "cancelled")["outcome"] == "cap_reached"
    put(client, first, 2)
    refused = client.post("/runs", json={"workload": two[0]})
    assert (refused.status_code, "monthly cost cap" in refused.json()["detail"]) == (409, True), refused.text
    assert "stop" not in put(client, other, 1)
    assert client.patch(f"/workloads/{two[0]}", json={"caps": None}).json()["spec"]["caps"] is None
    assert "caps" not in put(client, first, 3)


@on_both
def test_a_tenants_cap_is_for_all_its_workloads_and_for_no_other_tenant(
    client: TestClient, backend: Database, two: tuple[str, str]
) -> None:
    assert client.get("/caps").json()["caps"] == {"cost": None, "seconds": None}
    runs = [started(client, name) for name in two]
    for run in runs:
        assert "caps" not in put(client, run, 0)
    body = client.put("/caps", json={"seconds": 45}).json()
    assert (body["caps"]["seconds"], body["month"]) == (45.0, f"{utc_now():%Y-%m}")
    assert body["seconds"] == pytest.approx(40.0, rel=0.01)
    body = put(client, runs[0], 1)
    assert [(one["scope"], one["of"]) for one in body["caps"]] == [("tenant", "seconds")]
    assert body["stop"]
    assert "the tenant's monthly duration cap of 45 s" in body["reason"]["text"]
    ended(client, runs[0], "cancelled")
    assert client.get("/caps").json()["seconds"] == pytest.approx(
        20 + 20, rel=0.01
    )  # the other's second iteration is under way
    with backend.session() as session:
        assert caps.spent(session, "elsewhere", None, utc_now()) == {"cost": 0.0, "seconds": 0.0}
    assert client.put("/caps", json={}).json()["caps"] == {"cost": None, "seconds": None}
    assert "caps" not in put(client, runs[1], 1)


@on_both
def test_what_was_used_stays_used_when_runs_and_workloads_are_deleted(client: TestClient, two: tuple[str, str]) -> None:
    selection, gone, other = started(client, two[0]), started(client, two[0]), started(client, two[1])
    for number, run in enumerate((selection, gone, other)):
        put(client, run, 0, 10.0 + number)
        ended(client, run, "cancelled")
        ended(client, run, "cancelled")  # a repetition counts once
    assert client.get("/caps").json()["cost"] == 33.0
    assert client.delete(f"/runs/{gone}").status_code == 204
    assert client.delete(f"/workloads/{two[1]}").status_code == 204
    assert client.get("/caps").json()["cost"] == 33.0
    client.patch(f"/workloads/{two[0]}", json={"caps": {"cost": 22}})
    assert put(client, started(client, two[0]), 0, 0.1)["caps"][0]["spent"] == pytest.approx(21.1)


@on_both
def test_a_failure_where_stopping_was_only_recommended_is_a_failure(client: TestClient, two: tuple[str, str]) -> None:
    result = {}
    for mode in ("control", "advise"):
        run = started(client, two[0], caps={"cost": 15.0}, mode=mode)
        assert put(client, run, 0)["stop"]
        result[mode] = ended(client, run, "failed", reason="MemoryError")
    assert result["control"]["outcome"] == "cap_reached"
    assert result["control"]["outcome_reason"].startswith("stop: $10.00 of the run's cost cap of $15.00 is used")
    assert result["control"]["outcome_reason"].endswith("; MemoryError")
    assert (result["advise"]["outcome"], result["advise"]["outcome_reason"]) == ("failed", "MemoryError")


@on_both
def test_two_runs_that_race_for_a_cap_pass_it_by_one_iteration_each_at_most(
    client: TestClient, two: tuple[str, str]
) -> None:
    assert client.patch(f"/workloads/{two[0]}", json={"caps": {"cost": 65}}).status_code == 200
    runs, live = [started(client, two[0]), started(client, two[0])], {0, 1}
    for number in range(10):
        live -= {one for one in live if put(client, runs[one], number).get("stop")}
        if not live:
            break
    with_all = client.get("/caps").json()["cost"]
    assert 45 <= with_all <= 65 + 2 * 10


@on_both
def test_caps_of_a_running_run_can_change_also_in_another_process(client: TestClient, two: tuple[str, str]) -> None:
    run, other = started(client, two[0], caps={"cost": 1000}), started(client, two[0])
    put(client, run, 0)
    put(client, other, 0)
    answer = client.patch(f"/runs/{run}", json={"caps": {"cost": 25}})
    assert (answer.status_code, answer.json()["start"]["caps"]) == (200, {"cost": 25.0})
    assert put(client, run, 1)["stop"]
    assert client.patch(f"/runs/{run}", json={"caps": None}).json()["start"] == {}
    assert "caps" not in put(client, run, 2)
    assert "caps" not in put(client, other, 1)
    ended(client, run)
    assert client.patch(f"/runs/{run}", json={"caps": {"cost": 25}}).status_code == 409
    for body in ({}, {"state": "finished", "caps": {"cost": 1}}):
        assert client.patch(f"/runs/{other}", json=body).status_code == 422


@pytest.mark.parametrize("value", [0, -1, "NaN", "Infinity", "10 EUR", {"amount": 10, "currency": "EUR"}, 1e101])
@pytest.mark.parametrize("field", ["cost", "seconds"])
def test_a_cap_is_a_number_above_0(client: TestClient, two: tuple[str, str], field: str, value: Any) -> None:
    values = {field: value}
    calls = [
        client.post("/runs", json={"workload": two[0], "caps": values}),
        client.post("/workloads", json={"name": "third", **SPEC, "caps": values}),
        client.patch(f"/workloads/{two[0]}", json={"caps": values}),
        client.patch(f"/runs/{started(client, two[0])}", json={"caps": values}),
        client.put("/caps", json=values),
    ]
    for answer in calls:
        assert answer.status_code == 422, answer.text
        assert any(field in error["pointer"] for error in answer.json()["errors"]), answer.text


def test_kinds_that_do_not_state_costs_refuse_caps_by_name(client: TestClient) -> None:
    from app.kinds.registry import KINDS

    others = {name: kind for name, kind in KINDS.items() if not kind.engine.serving.metered}
    assert others
    for name, kind in others.items():
        spec = {**kind.example.spec, "name": f"of-{name}"}
        assert client.post("/workloads", json=spec).status_code == 201
        refused = [
            client.post("/workloads", json={**spec, "name": "more", "caps": {"cost": 1}}),
            client.post("/runs", json={"workload": f"of-{name}", **kind.example.start, "caps": {"cost": 1}}),
        ]
        run = started(client, f"of-{name}", **kind.example.start)
        refused.append(client.patch(f"/runs/{run}", json={"caps": {"cost": 1}}))
        for answer in refused:
            assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/caps"), answer.text


@on_both
def test_decisions_prefer_an_allocation_that_completes_within_the_cap(client: TestClient, backend: Database) -> None:
    """Seconds double with each gpu in the published model: one gpu is cheapest and quickest."""
    for name in ("modelled", "other"):
        spec = {
            "name": name,
            **SPEC,
            "metrics": [{"name": "iteration_seconds", "target": 9000, "goal": "at_least", "scope": "run"}],
        }
        assert client.post("/workloads", json=spec).status_code == 201
        publish_model(backend, name)
    free, capped = started(client, "modelled"), started(client, "other", caps={"cost": 2000})
    first, second = (client.get(f"/runs/{run}").json()["decision"] for run in (free, capped))
    assert first["allocation"]["gpus"] > second["allocation"]["gpus"]
    assert second["caps"][0]["projected"] <= 2000
    small = client.post("/runs", json={"workload": "other", "caps": {"cost": 1e-6}})
    assert (small.status_code, "cost cap" in small.json()["detail"]) == (409, True)
    response = put(client, capped, 0, 30.0, 8)
    assert (response["source"], response["reason"]["code"]) == ("guard", "cap"), response
    assert response["allocation"]["gpus"] < 8
