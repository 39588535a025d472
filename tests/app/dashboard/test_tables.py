"""Lists: order, search, export; comparison of runs; actions by scope; the spec as a page."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import delete, select, update

from app.charts.text import currency
from app.dashboard import export, spec_page
from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Agent, AuditEntry, Job, Run, Workload
from app.keys.access import NAME
from app.kinds.contract.views import Standing
from app.main import create_app
from app.runs import repository, standing
from app.settings import Settings
from app.workloads import search
from tests.app.both import on_both
from tests.app.dashboard.test_lists import OTHER, listed, started
from tests.app.dashboard.test_pages import REPORT, reported, shown
from tests.app.domain_models.published import publish_agent, publish_model
from tests.app.evaluations.published import publish_evaluation
from tests.app.keys.conftest import make_key

BESIDE = "other-tenant"


def ordered(client: TestClient, path: str) -> list[str]:
    """Ids of the listed runs in order."""
    results = [link.rpartition("/")[2] for link in shown(client, path).links if link.startswith("/ui/runs/")]
    return [one for one in results if len(one) == 32]


def rows(client: TestClient, path: str) -> list[dict[str, str]]:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.text)))


@pytest.fixture
def other(client: TestClient, spec: dict[str, Any], workload: str) -> str:
    """Another workload beside the first."""
    assert client.post("/workloads", json={**spec, "name": OTHER}).status_code == 201
    return OTHER


@on_both
def test_runs_are_sorted_by_what_an_index_lacks_within_the_newest(
    client: TestClient, backend: Database, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheap, dear, idle = reported(client, workload, 1), reported(client, workload, 3), *started(client, workload)
    for run, state in ((dear, "failed"), (idle, "cancelled")):
        assert client.patch(f"/runs/{run}", json={"state": state}).status_code == 200
    with backend.session() as session:  # the oldest ran for an hour
        ago = utc_now() - timedelta(hours=1)
        session.execute(update(Run).where(Run.id == cheap).values(created_at=ago))
        session.execute(update(Run).where(Run.id == idle).values(finished_at=Run.created_at))
    assert ordered(client, "/ui/runs?sort=started") == [cheap, dear, idle]
    assert ordered(client, "/ui/runs?sort=-started") == [idle, dear, cheap]
    assert ordered(client, "/ui/runs?sort=-cost") == [dear, cheap, idle]
    assert ordered(client, "/ui/runs?sort=cost") == [idle, cheap, dear]
    assert ordered(client, "/ui/runs?sort=-duration")[0] == cheap
    assert ordered(client, "/ui/runs?sort=duration")[-1] == cheap
    assert ordered(client, "/ui/runs?sort=-outcome") == [dear, cheap, idle]  # failed, at risk, cancelled
    api = [one["id"] for one in client.get("/runs?sort=-cost").json()["items"]]
    assert api == [dear, cheap, idle]
    page = client.get("/runs?sort=-cost&limit=2").json()
    assert [one["id"] for one in client.get(page["next"]).json()["items"]] == [idle]
    monkeypatch.setattr(repository, "SORTED", 2)
    assert ordered(client, "/ui/runs?sort=-cost") == [dear, idle]  # the newest two
    assert client.get("/ui/runs?sort=name").status_code == 422
    assert client.get("/runs?sort=-cost&cursor=x").status_code == 422


@on_both
def test_a_run_that_starts_meanwhile_repeats_none_on_the_next_page_of_a_ranking(
    client: TestClient, backend: Database, workload: str
) -> None:
    runs = started(client, workload, 4)
    page = client.get("/runs?sort=duration&limit=2").json()
    first = [one["id"] for one in page["items"]]
    assert first == runs[:1:-1]  # the shortest are the newest
    late = started(client, workload, 2)
    then = client.get(page["next"]).json()
    assert [one["id"] for one in then["items"]] == runs[1::-1]
    assert then["next"] is None
    assert ordered(client, "/ui/runs?sort=duration") == [*late[::-1], *runs[::-1]]


@on_both
def test_a_search_finds_workloads_beyond_those_that_are_read_one_by_one(
    client: TestClient, backend: Database, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["many-a", "many-b", "many-c", "other"]
    for name in names:
        assert client.post("/workloads", json={**spec, "name": name}).status_code == 201
        publish_model(backend, name)
        publish_agent(backend, name)
        publish_evaluation(backend, name, agent=1)
        sample = {"samples": [{"execution": "e", "reports": [REPORT] * 3}]}
        assert client.post(f"/workloads/{name}/samples", json=sample).status_code == 201
        assert client.post(f"/workloads/{name}/models").status_code == 202
    runs = [*started(client, "many-a"), *started(client, "many-b"), *started(client, "many-c", 2)]
    started(client, "other")
    for most in (2, 3):
        monkeypatch.setattr(search, "MOST_FOUND", most)
        assert ordered(client, "/ui/runs?search=many") == runs[::-1]
        assert ordered(client, "/ui/runs?search=many&sort=duration") == runs[::-1]
        for noun in ("jobs", "evaluations"):
            items = client.get(f"/{noun}?search=many&sort=started").json()["items"]
            assert [one["workload"] for one in items] == names[:3], noun


def test_every_list_is_exported_in_its_order(client: TestClient, backend: Database, workload: str, other: str) -> None:
    for name in (workload, other):
        publish_model(backend, name)
        publish_agent(backend, name)
        publish_evaluation(backend, name, agent=1)
        sample = {"samples": [{"execution": "e", "reports": [REPORT] * 3}]}
        client.post(f"/workloads/{name}/samples", json=sample)
        assert client.post(f"/workloads/{name}/models").status_code == 202
        started(client, name)
    for noun in ("runs", "jobs", "evaluations"):
        orders = []
        for sort in ("", "?sort=started"):
            links = [
                one for one in shown(client, f"/ui/{noun}{sort}").links if ".csv" in one or one == f"/{noun}{sort}"
            ]
            listed_there = client.get(links[1]).json()["items"]
            orders.append([one["id"] for one in listed_there])
            assert [one["id"] for one in rows(client, links[0])] == orders[-1], links
        assert orders[0] == orders[1][::-1], noun
        assert len(orders[0]) == 2
        assert client.get(f"/{noun}?sort=name").status_code == 422


def test_a_list_shows_the_chosen_state(client: TestClient, workload: str) -> None:
    first, second = started(client, workload, 2)
    client.patch(f"/runs/{second}", json={"state": "failed"})
    assert listed(client, "/ui/runs?state=running") == {first}
    page = client.get("/ui/runs?state=running").text
    chosen = [part.split("<")[0].rpartition(">")[2] for part in page.split('aria-current="true"')[1:]]
    assert {"running", "all outcomes"} <= set(chosen)
    assert "all states" in page
    assert "By state" not in client.get("/ui/runs").text, "outcomes say more, and in part by the same words"
    link = client.get("/").text.partition("<dt>Active runs</dt>")[2].partition('href="')[2].partition('"')[0]
    assert listed(client, link.replace("&amp;", "&")) == {first}, "whatever its outcome, an active run is on track"


def test_a_run_whose_elapsed_time_is_unknown_is_listed(
    client: TestClient, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = started(client, workload, 2)
    stands = {first: Standing(deadline=60, elapsed=None), second: Standing(deadline=60, elapsed=61)}
    monkeypatch.setattr(standing, "of_runs", lambda *_: stands)
    page = client.get("/ui/runs").text
    assert page.count(" late") == 1
    assert "None" not in page


@on_both
def test_runs_are_found_by_first_characters_and_several_outcomes(
    client: TestClient, workload: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third, beside = *started(client, workload, 3), *started(client, other)
    for run, state in ((first, "failed"), (second, "cancelled")):
        client.patch(f"/runs/{run}", json={"state": state})
    assert listed(client, f"/ui/runs?search={first[:8]}") == {first}
    assert listed(client, f"/ui/runs?search={workload[:4]}") == {first, second, third}
    assert listed(client, f"/ui/runs?search={other[:3]}&outcome=on_track&outcome=failed") == {beside}
    assert listed(client, "/ui/runs?outcome=failed&outcome=cancelled") == {first, second}
    assert listed(client, f"/ui/runs?outcome=failed&outcome=on_track&workload={workload}") == {first, third}
    assert listed(client, "/ui/runs?search=") == {first, second, third, beside}
    assert "Nothing matches." in shown(client, "/ui/runs?search=nothing").texts
    assert client.get("/ui/runs?search=%25").status_code == 422
    ids = [one["id"] for one in client.get("/runs?outcome=failed&outcome=on_track&limit=2").json()["items"]]
    assert ids == [beside, third]
    page = client.get("/runs?outcome=failed&outcome=on_track&limit=2").json()
    assert [one["id"] for one in client.get(page["next"]).json()["items"]] == [first]
    assert len(client.get(f"/runs?search={workload}&limit=2").json()["items"]) == 2


def test_a_row_tells_progress_deadline_probability_and_cost(
    client: TestClient, backend: Database, spec: dict[str, Any], workload: str
) -> None:
    publish_model(backend, workload)
    run = reported(client, workload, 3)
    texts = shown(client, "/ui/runs").texts
    assert {"3 of 90", "1\u00a0min\u00a034\u00a0s of\u00a030\u00a0min"} <= set(texts)  # lines break before “of” only
    assert any(text.endswith(" %") for text in texts)
    (row,) = rows(client, "/ui/runs.csv")
    price = next(one["price_per_hour"] for one in spec["resources"])
    assert float(row["cost"]) == pytest.approx(3 * 31.5 * 4 * price / 3600)
    assert (row["id"], row["iterations"], row["of_iterations"]) == (run, "3", "90")
    assert (float(row["elapsed_seconds"]), float(row["deadline_seconds"])) == (94.5, 1800.0)
    assert 0 < float(row["probability"]) <= 1
    client.patch(f"/runs/{run}", json={"state": "finished"})
    (row,) = rows(client, "/ui/runs.csv")
    assert (row["probability"], row["ended"] > row["started"]) == ("", True)


def test_lists_are_exported_as_filtered_and_no_cell_is_a_formula(
    client: TestClient, workload: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, beside = *started(client, workload, 2), *started(client, other)
    client.patch(f"/runs/{first}", json={"state": "failed", "reason": '=HYPERLINK("http://evil")'})
    (row,) = rows(client, f"/ui/runs.csv?workload={workload}&outcome=failed")
    assert row["id"] == first
    assert not row["outcome_reason"].startswith("=")
    assert [one["id"] for one in rows(client, "/ui/runs.csv?sort=started")] == [first, second, beside]
    monkeypatch.setattr(export, "PAGE", 1)
    assert len(rows(client, "/ui/runs.csv")) == 3  # page by page
    monkeypatch.setattr(export, "MOST_ROWS", 2)
    assert len(rows(client, "/ui/runs.csv")) == 2
    assert client.get("/ui/runs.csv?workload=none").status_code == 404


def test_iterations_jobs_and_evaluations_are_exported(client: TestClient, backend: Database, workload: str) -> None:
    publish_model(backend, workload)
    publish_agent(backend, workload)
    publish_evaluation(backend, workload, agent=1)
    run = reported(client, workload, 3)
    result = rows(client, f"/ui/runs/{run}/iterations.csv")
    assert [one["iteration"] for one in result] == ["0", "1", "2"]
    assert result[0]["report.metrics.iteration_seconds"] == "31.5"
    assert (result[0]["report.allocation.gpus"], "decision.allocation.gpus" in result[0]) == ("4.0", True)
    assert client.get("/ui/runs/none/iterations.csv").status_code == 404
    assert [one["agent"] for one in rows(client, "/ui/evaluations.csv")] == ["1"]
    client.post("/ui/examples/cluster")
    (job,) = rows(client, "/ui/jobs.csv?type=fit&state=queued")
    assert (job["type"], job["state"]) == ("fit", "queued")
    assert rows(client, "/ui/jobs.csv?type=train") == []


def test_runs_are_compared_on_shared_axes(client: TestClient, workload: str, other: str) -> None:
    first, second = reported(client, workload, 3), reported(client, other, 2)
    third = client.post("/runs", json={"workload": workload, "targets": {"iteration_seconds": 99}}).json()["id"]
    client.put(f"/runs/{third}/iterations/0", json=REPORT)
    page = shown(client, f"/ui/compare?run={first}&run={second}&run={third}")
    titles = {"iteration seconds (s)", "Allocation of GPUs", "Elapsed time"}
    assert titles <= set(page.texts)
    names = {row["name"] for chart in page.charts for row in chart["layer"][0]["data"]["values"]}
    assert names == {f"{first[:8]} ({workload})", f"{second[:8]} ({other})", f"{third[:8]} ({workload})"}
    answer = client.get(f"/ui/compare?run={first}&run={third}").text
    differing = [part for part in answer.split("<tr")[1:] if part.startswith(' class="differs"')]
    assert ["targets: iteration seconds" in part for part in differing] == [True]
    client.patch(f"/runs/{third}", json={"state": "failed"})
    facts = shown(client, f"/ui/compare?run={first}&run={third}").texts
    assert facts.count("cost") == 1, "its kind calls it “cost so far” of the one that goes on, “cost” of the other"
    assert "cost so far" not in facts


def test_what_can_not_be_compared_is_refused(client: TestClient, workload: str) -> None:
    runs = started(client, workload, 6)
    page = {"accept": "text/html"}
    assert client.get("/ui/compare", follow_redirects=False).headers["location"] == "/ui/runs"
    for few in ([runs[0]], [runs[0], runs[0]], runs):
        answer = client.get("/ui/compare?" + "&".join(f"run={one}" for one in few), headers=page)
        assert answer.status_code == 422
    client.post("/ui/examples/workflow")
    queue = client.post("/runs", json={"workload": "queue"}).json()["id"]
    answer = client.get(f"/ui/compare?run={runs[0]}&run={queue}", headers=page)
    assert answer.status_code == 422
    assert "one kind, not of iterative and workflow" in answer.text
    assert client.get(f"/ui/compare?run={runs[0]}&run=none").status_code == 404


@on_both
def test_a_failed_job_is_retried_with_its_request(client: TestClient, backend: Database) -> None:
    client.post("/ui/examples/iterative")
    (job,) = client.get("/jobs").json()["items"]
    name = job["workload"]
    refused = client.post(f"/jobs/{job['id']}/retry")
    assert (refused.status_code, "is queued" in refused.json()["detail"]) == (409, True)
    with backend.session() as session:
        session.execute(update(Job).values(state="failed", request={"seed": 7}, priority=3))
    key = {"Idempotency-Key": "twice"}
    responses = [client.post(f"/jobs/{job['id']}/retry", headers=key) for _ in range(2)]
    assert [one.status_code for one in responses] == [202, 202]
    assert responses[0].json()["id"] == responses[1].json()["id"] != job["id"]
    again, before = client.get("/jobs").json()["items"]
    assert (again["state"], again["priority"], before["state"]) == ("queued", 3, "failed")
    with backend.reading() as session:
        assert session.get_one(Job, again["id"]).request == {"seed": 7}
    assert client.post("/jobs/none/retry").status_code == 404
    audit = [one["detail"] for one in client.get("/audit?action=job.create").json()["items"]]
    assert audit[:1] == [{"type": "fit", "retry_of": job["id"]}]
    assert "retry_of" not in audit[-1]
    with backend.session() as session:
        session.execute(update(Job).values(state="failed"))
    assert client.delete(f"/workloads/{name}/samples?before=2999-01-01T00:00:00Z").status_code == 204
    refused = client.post(f"/jobs/{job['id']}/retry")
    assert (refused.status_code, "has no samples" in refused.json()["detail"]) == (409, True)


def test_a_retried_job_is_checked_as_when_it_was_made(
    client: TestClient, backend: Database, workload: str, other: str
) -> None:
    for name in (workload, other):
        publish_model(backend, name)
        publish_agent(backend, name)
    result = [
        client.post(f"/workloads/{workload}/agents", json={"start_from": 1, "budget": 5000}),
        client.post("/evaluations", json={"workload": workload, "agents": [1]}),
    ]
    ids = [one.json()["id"] for one in result]
    for job in ids:
        assert client.post(f"/jobs/{job}/cancel").status_code == 200
    again = [client.post(f"/jobs/{job}/retry") for job in ids]
    assert [one.status_code for one in again] == [202, 202]
    with backend.session() as session:
        requests = {job: session.get_one(Job, job).request for job in (*ids, *(one.json()["id"] for one in again))}
        assert [requests[job] for job in ids] == [requests[one.json()["id"]] for one in again]
        session.execute(update(Job).values(state="cancelled"))
        chosen = select(Workload.id).where(Workload.name == workload)
        session.execute(delete(Agent).where(Agent.workload_id.in_(chosen)))
    refused = [client.post(f"/jobs/{job}/retry") for job in ids]
    assert [one.status_code for one in refused] == [422, 409]
    assert "start_from" in refused[0].json()["detail"]


def test_the_spec_is_a_page_with_its_versions_for_those_who_may_see_them(client: TestClient, workload: str) -> None:
    path = f"/ui/workloads/{workload}/spec"
    assert "Unchanged since its registration on" in client.get(path).text
    for target in (1500, 1200):
        client.patch(f"/workloads/{workload}", json={"targets": {"iteration_seconds": target}})
    picture = shown(client, path)
    assert {"Resources", "Metrics", "Weights", "gpus", "1,200", "Versions"} <= set(picture.texts)
    assert {"Change time (s)", "Largest change (steps)", "missed targets (sla)"} <= set(picture.texts)
    changed = [text for text in picture.texts if "→" in text]
    assert changed == ["targets: iteration_seconds → 1,200", "targets: iteration_seconds → 1,500"]
    assert {"3", "2"} <= set(picture.texts)
    assert '"price_per_hour"' in client.get(path).text.replace("&#34;", '"')
    assert path in shown(client, f"/ui/workloads/{workload}").links
    for kind, name in (("cluster", "cluster"), ("inference", "inference"), ("workflow", "queue")):
        client.post(f"/ui/examples/{kind}")
        (listed_name,) = [w["name"] for w in client.get("/workloads").json()["items"] if w["kind"] == kind]
        assert "As JSON" in shown(client, f"/ui/workloads/{listed_name}/spec").texts, name
    assert client.get("/ui/workloads/none/spec").status_code == 404


def test_changes_of_other_specs_hide_none_and_lost_ones_are_said_to_be(
    client: TestClient, backend: Database, workload: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spec_page, "MOST_CHANGES", 2)
    for name, targets in ((workload, (1500, 1200)), (other, (900, 800, 700))):
        for target in targets:
            client.patch(f"/workloads/{name}", json={"targets": {"iteration_seconds": target}})
    changed = [text for text in shown(client, f"/ui/workloads/{workload}/spec").texts if "→" in text]
    assert changed == ["targets: iteration_seconds → 1,200", "targets: iteration_seconds → 1,500"]
    page = client.get(f"/ui/workloads/{other}/spec").text
    assert "<td>4</td>" in page
    assert "<td>3</td>" in page
    assert f"Price per hour ({currency()})" in page
    with backend.session() as session:
        session.execute(delete(AuditEntry))
    page = client.get(f"/ui/workloads/{workload}/spec").text
    assert "Its changes are no longer in the audit log." in page
    assert "It was not changed" not in page


BUTTONS = {
    "read": set(),
    "report": {"Start a run", "Finish", "Cancel", "Targets of this run", "Caps of this run"},
    "train": {
        "Or load an example",
        "Fit a model",
        "Train an agent",
        "Evaluate an agent",
        "Promote",
        "Change targets",
        "Retry",
    },
    "admin": {"Delete", "Delete the workload"},
}
"""What a scope adds to pages, by scope."""


def test_pages_offer_what_the_key_may_do_and_show_no_other_tenants(
    settings: Settings, backend: Database, spec: dict[str, Any]
) -> None:
    client, name = TestClient(create_app(settings, backend)), spec["name"]
    assert client.post("/workloads", json=spec).status_code == 201
    sample = {"samples": [{"execution": "e", "reports": [REPORT] * 3}]}
    assert client.post(f"/workloads/{name}/samples", json=sample).status_code == 201
    assert client.post(f"/workloads/{name}/models").status_code == 202
    publish_model(backend, name)
    publish_agent(backend, name)
    going, over = reported(client, name, 2), reported(client, name, 2)
    client.patch(f"/runs/{over}", json={"state": "cancelled"})
    (job,) = client.get("/jobs").json()["items"]
    client.post(f"/jobs/{job['id']}/cancel")
    home = f"/ui/workloads/{name}"
    paths = ["/", home, f"{home}/spec", f"/ui/runs/{going}", f"/ui/runs/{over}", f"/ui/jobs/{job['id']}"]
    every = set().union(*BUTTONS.values())
    keys = {scope: make_key(backend, "default", {scope, "read"}) for scope in BUTTONS}
    client = TestClient(create_app(settings, backend))  # which knows that there are keys
    for scope, added in BUTTONS.items():
        client.cookies.set(NAME, keys[scope]["Authorization"].removeprefix("Bearer "))
        texts = set().union(*(shown(client, path).texts for path in paths))
        assert texts & every == (every if scope == "admin" else added), scope
        assert ("Versions" in texts) == (scope == "admin")  # of the audit log
    client.cookies.set(NAME, make_key(backend, BESIDE, ["admin"])["Authorization"].removeprefix("Bearer "))
    for path in [*paths[1:], f"/ui/compare?run={going}&run={over}", f"/ui/runs/{going}/iterations.csv"]:
        assert client.get(path).status_code == 404, path
    assert rows(client, f"/ui/runs.csv?search={name}") == rows(client, f"/ui/runs.csv?search={going[:8]}") == []
    assert client.post(f"/jobs/{job['id']}/retry", headers={"sec-fetch-site": "same-origin"}).status_code == 404
