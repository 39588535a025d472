"""What a new workload has from the tenant's earlier ones: whose, when it is made, and when it stays as it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal
from fastapi.testclient import TestClient
from sqlalchemy import update

from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import DomainModel, Run, Workload
from app.domain_models import service as domain_models
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.prior import population, prior_table
from app.kinds.registry import KINDS, layout_of, parse_spec
from app.main import create_app
from app.runs.outcomes import Staleness
from app.settings import Settings
from app.workloads import members, priors, service
from tests.app.both import on_both

OURS, THEIRS = "default", "theirs"
GPUS = {"name": "gpus", "unit": "gpu", "minimum": 1, "maximum": 16, "max_steps": 3, "price_per_hour": 2.0}
SPEC: dict[str, Any] = {
    "kind": "iterative",
    "resources": [GPUS],
    "metrics": [{"name": "iteration_seconds", "unit": "s", "target": 600, "scope": "run"}],
    "iterations": 20,
}
CORES = {**SPEC, "resources": [{**GPUS, "name": "cores"}]}
MEMBERS = [i for i, (law, _) in enumerate(population()) if law == "amdahl"]


def table_of(spec: Any, member: int) -> ModelTable:
    """A fitted domain model: one member of the population."""
    return replace(prior_table(layout_of(spec)).member(member), prior=False)


def fit(database: Database, name: str, member: int = 0, tenant: str = OURS) -> None:
    """Publish a domain model of a registered workload."""
    with database.session() as session:
        workload = service.require(session, tenant, name)
        table = table_of(parse_spec(workload.spec), MEMBERS[member]).to_bytes()
        domain_models.publish(session, workload.id, workload.spec_version, {"family": "none"}, table)


def fitted(database: Database, name: str, tenant: str = OURS, spec: dict[str, Any] = SPEC, member: int = 0) -> None:
    """Register a workload and publish a domain model of it."""
    service.register(database, tenant, parse_spec({**spec, "name": name}))
    fit(database, name, member, tenant)


def similar(database: Database, name: str, tenant: str = OURS) -> list[str]:
    """Names of the workloads that a registered one is predicted from."""
    return service.get(database, tenant, name).similar_workloads


def registered(database: Database, name: str, tenant: str = OURS, **changed: Any) -> list[str]:
    """Register a workload, and return what it is predicted from."""
    return service.register(database, tenant, parse_spec({**SPEC, "name": name, **changed})).similar_workloads


def stored(database: Database, name: str, tenant: str = OURS) -> Any:
    """The stored prior of a workload."""
    with database.reading() as session:
        return priors.prior_of(service.require(session, tenant, name))


def renew(database: Database, name: str, tenant: str = OURS) -> bool:
    """Renew a prior, as when a run starts."""
    return priors.renew(database, tenant, name, Staleness(20.0, 300.0))


def start(client: TestClient, name: str = "new") -> dict[str, Any]:
    """Start a run, and return it."""
    answer = client.post("/runs", json={"workload": name})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def report(client: TestClient, run: dict[str, Any], n: int, seconds: float = 30.0) -> dict[str, Any]:
    """Report an iteration at the allocation of the last decision, and return the next one."""
    body = {"allocation": run["decision"]["allocation"], "metrics": {"iteration_seconds": seconds}}
    answer = client.put(f"/runs/{run['id']}/iterations/{n}", json=body)
    assert answer.status_code == 201, answer.text
    run["decision"] = answer.json()
    decision: dict[str, Any] = run["decision"]
    return decision


@on_both
def test_a_new_workload_is_predicted_from_similar_ones_and_says_so(client: TestClient, backend: Database) -> None:
    fitted(backend, "bert-base")
    fitted(backend, "bert-large", member=1)
    fitted(backend, "etl", spec=CORES)
    registered(backend, "unfitted")
    assert client.post("/workloads", json={**SPEC, "name": "new"}).json()["similar_workloads"] == [
        "bert-large",
        "bert-base",
    ]
    run = start(client)
    assert run["decision"]["reason"]["text"].endswith("; no domain model yet: predicted from 2 similar workloads")
    text = report(client, run, 0)["reason"]["text"]
    assert "no domain model yet, predicted from 2 similar workloads, model_predictive decides: " in text
    page = client.get("/ui/workloads/new").text
    assert "predicted from 2 similar workloads: " in page
    assert '<a href="/ui/workloads/bert-large">bert-large</a>' in page
    assert start(client, "bert-base")["decision"]["reason"]["code"] == "initial"


@on_both
def test_each_tenant_has_its_own(client: TestClient, backend: Database) -> None:
    fitted(backend, "mine")
    fitted(backend, "same-name")
    fitted(backend, "theirs", THEIRS)
    fitted(backend, "same-name", THEIRS, member=1)
    assert sorted(registered(backend, "new")) == ["mine", "same-name"]
    assert sorted(registered(backend, "new", THEIRS)) == ["same-name", "theirs"]
    assert stored(backend, "new")["members"] != stored(backend, "new", THEIRS)["members"]


def test_a_deleted_workload_is_left_out_as_is_one_of_its_name(any_database: Database) -> None:
    fitted(any_database, "old")
    fitted(any_database, "kept")
    service.delete(any_database, OURS, "old")
    registered(any_database, "old")  # the name is used again
    assert registered(any_database, "new") == ["kept"]
    service.delete(any_database, OURS, "kept")
    assert similar(any_database, "new") == ["kept"]
    assert renew(any_database, "new")
    assert similar(any_database, "new") == []
    assert stored(any_database, "new") is None


def test_a_workload_can_opt_out_both_ways(any_database: Database) -> None:
    fitted(any_database, "open")
    fitted(any_database, "private", spec={**SPEC, "use_earlier_workloads": False})
    assert registered(any_database, "new") == ["open"]
    assert registered(any_database, "alone", use_earlier_workloads=False) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"resources": [{**GPUS, "name": "tpus"}]},
        {"resources": [{**GPUS, "unit": "rack"}]},
        {"resources": [GPUS, {**GPUS, "name": "cores"}]},
        {"resources": [{**GPUS, "minimum": 64, "maximum": 128}]},
        {"metrics": [*SPEC["metrics"], {"name": "loss", "target": 1.0}]},
        {"metrics": [{**SPEC["metrics"][0], "scope": "iteration"}]},
        {"features": [{"name": "batch", "minimum": 1, "maximum": 8}]},
        {"metrics": []},
    ],
    ids=["resource", "unit", "more resources", "range", "more targets", "scope", "features", "no target"],
)
def test_nothing_is_taken_from_workloads_that_are_not_similar(database: Database, changed: dict[str, Any]) -> None:
    fitted(database, "one")
    fitted(database, "two", member=1)
    assert registered(database, "other", **changed) == []
    assert registered(database, "alike") == ["two", "one"]


@on_both
def test_a_run_keeps_its_prior_whatever_is_fitted_meanwhile(
    client: TestClient, backend: Database, settings: Settings, portal: BlockingPortal
) -> None:
    fitted(backend, "one")
    fitted(backend, "two", member=1)
    registered(backend, "new")
    registered(backend, "twin")
    runs, before = [start(client), start(client, "twin")], stored(backend, "new")
    for n in range(3):
        assert report(client, runs[0], n)["predicted"] == report(client, runs[1], n)["predicted"]
    fit(backend, "one", member=2)  # a second version
    fitted(backend, "three", member=2)
    fitted(backend, "four")
    service.delete(backend, OURS, "two")
    other = start(client)  # beside a run that is running
    assert stored(backend, "new") == before
    elsewhere = TestClient(create_app(settings, backend))  # another process, which loads all that is stored
    elsewhere.portal = portal
    for n in range(3, 6):
        ours, theirs = report(elsewhere, runs[0], n), report(client, runs[1], n)
        assert (ours["predicted"], ours["allocation"]) == (theirs["predicted"], theirs["allocation"])
    for run in (runs[0], other):
        assert client.patch(f"/runs/{run['id']}", json={"state": "cancelled"}).status_code == 200
    assert start(client)["decision"]["reason"]["text"].endswith(": predicted from 3 similar workloads")
    assert similar(backend, "new") == ["four", "three", "one"]
    assert stored(backend, "new")["members"] != before["members"]


@on_both
def test_a_second_version_of_a_model_changes_the_next_runs_prior(client: TestClient, backend: Database) -> None:
    fitted(backend, "one")
    registered(backend, "new")
    before = stored(backend, "new")
    assert not renew(backend, "new")
    fit(backend, "one", member=-1)
    start(client)
    assert similar(backend, "new") == ["one"]
    assert stored(backend, "new")["members"] != before["members"]


@on_both
def test_its_own_model_takes_the_place_of_the_prior(client: TestClient, backend: Database) -> None:
    fitted(backend, "one")
    registered(backend, "new")
    fit(backend, "new")
    fitted(backend, "two")
    assert similar(backend, "new") == []
    assert start(client)["decision"]["reason"]["code"] == "initial"
    assert similar(backend, "new") == []
    assert "similar workload" not in client.get("/ui/workloads/new").text


def test_without_its_target_nothing_is_predicted_from_others(client: TestClient, backend: Database) -> None:
    fitted(backend, "one")
    registered(backend, "new")
    assert client.patch("/workloads/new", json={"targets": {"iteration_seconds": None}}).status_code == 200
    assert "similar" not in start(client)["decision"]["reason"]["text"]


def test_a_model_that_cannot_be_read_is_left_out(client: TestClient, backend: Database) -> None:
    fitted(backend, "broken")
    fitted(backend, "sound", member=1)
    with backend.session() as session:
        workload = members.find(session, OURS, "broken")
        assert workload is not None
        session.execute(update(DomainModel).where(DomainModel.workload_id == workload.id).values(table=b"none"))
    registered(backend, "new")
    assert similar(backend, "new") == ["sound"]
    assert start(client)["decision"]["reason"]["text"].endswith("predicted from 1 similar workload")


def test_the_work_is_bounded(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priors, "CONSIDERED", 2)
    for n in range(3):
        fitted(database, f"w{'abc'[n]}")
    assert registered(database, "new") == ["wc", "wb"]


def refuse(*_: Any) -> Any:
    """Fail as nothing that is about one model does."""
    raise RuntimeError("no memory")


@on_both
def test_a_failure_keeps_what_is_stored_and_is_made_good(
    client: TestClient, backend: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fitted(backend, "one")
    registered(backend, "older")
    before = stored(backend, "older")
    fitted(backend, "two", member=1)
    with monkeypatch.context() as failing:
        failing.setattr("app.kinds.iterative.prior._fitted_laws", refuse)
        assert registered(backend, "new") == []
        run = start(client)
        assert run["decision"]["reason"]["text"].endswith(": predicted from workloads in general")
        assert not renew(backend, "older")
        assert stored(backend, "older") == before is not None
        assert "workload new: no prior can be made" in caplog.text
    assert client.patch(f"/runs/{run['id']}", json={"state": "cancelled"}).status_code == 200
    assert start(client)["decision"]["reason"]["text"].endswith(": predicted from 2 similar workloads")
    assert renew(backend, "older")
    assert similar(backend, "older") == ["two", "one"]


def test_one_odd_model_is_skipped(backend: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted(backend, "odd")
    fitted(backend, "sound", member=1)
    with backend.session() as session:
        odd = service.require(session, OURS, "odd")
        table = table_of(parse_spec(odd.spec), 0)
        bad = replace(table, log_mean=table.log_mean * float("nan")).to_bytes()
        domain_models.publish(session, odd.id, odd.spec_version, {"family": "none"}, bad)
    assert registered(backend, "new") == ["sound"]


@on_both
def test_a_target_that_is_added_makes_another_prior(client: TestClient, backend: Database) -> None:
    both = [*SPEC["metrics"], {"name": "loss"}]
    fitted(backend, "one")
    fitted(backend, "two", spec={**SPEC, "metrics": [both[0], {"name": "loss", "target": 1.0}]}, member=1)
    assert registered(backend, "new", metrics=both) == ["two", "one"]
    assert client.patch("/workloads/new", json={"targets": {"loss": 2.0}}).status_code == 200
    start(client)
    assert similar(backend, "new") == ["two"]
    assert registered(backend, "late", metrics=[{**both[0], "target": None}]) == []
    assert client.patch("/workloads/late", json={"targets": {"iteration_seconds": 60}}).status_code == 200
    assert start(client, "late")["decision"]["reason"]["text"].endswith("predicted from 2 similar workloads")


def test_another_algorithm_makes_another_prior(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted(database, "one")
    registered(database, "new")
    assert not renew(database, "new")
    monkeypatch.setattr(priors, "ALGORITHM", priors.ALGORITHM + 1)
    assert renew(database, "new")


def test_models_that_are_too_large_are_not_read(backend: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted(backend, "one")
    fitted(backend, "two", member=1)
    fitted(backend, "large", spec={**SPEC, "resources": [{**GPUS, "maximum": 64}]})
    assert sorted(registered(backend, "all")) == ["large", "one", "two"]
    with backend.reading() as session:
        sizes = {w.name: len(m.table) for w, m in session.query(Workload, DomainModel).join(DomainModel)}
    monkeypatch.setattr(priors, "LARGEST_TABLE", sizes["one"])
    assert registered(backend, "each") == ["two", "one"]
    monkeypatch.setattr(priors, "LARGEST_TABLES", 2 * sizes["one"] - 1)
    assert registered(backend, "sum") == ["two"]


def test_nothing_is_read_for_what_has_no_prior_and_specs_only_if_something_changed(
    backend: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(backend, "one")
    registered(backend, "new")
    monkeypatch.setattr(priors, "read_spec", lambda _: 1 / 0)  # of the earlier ones
    with backend.reading() as session:
        known = service.require(session, OURS, "new").prior
    spec = parse_spec({**SPEC, "name": "new"})
    assert priors.make(backend, OURS, spec, known) is known
    monkeypatch.setattr(priors, "_fitted", lambda *_: 1 / 0)
    assert priors.make(backend, OURS, parse_spec({**SPEC, "name": "new", "use_earlier_workloads": False})) is None
    assert priors.make(backend, OURS, parse_spec(dict(KINDS["workflow"].example.spec))) is None


@on_both
def test_an_abandoned_run_does_not_keep_the_prior_as_it_was(client: TestClient, backend: Database) -> None:
    fitted(backend, "one")
    registered(backend, "new")
    registered(backend, "other")
    run = start(client)
    start(client, "other")
    fitted(backend, "two", member=1)
    start(client)
    assert similar(backend, "new") == ["one"]
    with backend.session() as session:
        old = utc_now() - timedelta(days=2)
        workload = service.require(session, OURS, "new")
        session.execute(update(Run).where(Run.workload_id == workload.id).values(created_at=old))
    assert client.get(f"/runs/{run['id']}").json()["outcome"] == "stale"
    start(client)
    assert similar(backend, "new") == ["two", "one"]
    start(client, "other")
    assert similar(backend, "other") == ["one"]


@on_both
def test_a_run_starts_with_the_prior_that_another_process_has_made(
    client: TestClient, backend: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(backend, "one")
    registered(backend, "new")
    fitted(backend, "two", member=1)
    really = priors.renew

    def as_another(*values: Any) -> bool:
        really(*values)  # another process, between our look at the workload and our own attempt
        return really(*values)

    monkeypatch.setattr(priors, "renew", as_another)
    assert start(client)["decision"]["reason"]["text"].endswith("predicted from 2 similar workloads")


@on_both
def test_the_page_links_what_is_still_there_and_is_silent_where_nothing_is_predicted(
    client: TestClient, backend: Database
) -> None:
    for name in ("gone", "closed", "kept"):
        fitted(backend, name)
    registered(backend, "new")
    for name in ("gone", "closed"):
        service.delete(backend, OURS, name)
    fitted(backend, "closed", spec={**SPEC, "use_earlier_workloads": False})  # the name is used again
    page = client.get("/ui/workloads/new").text
    assert "predicted from 3 similar workloads: " in page
    assert '<a href="/ui/workloads/kept">kept</a>' in page
    assert '<a href="/ui/workloads/gone">' not in page
    assert '<a href="/ui/workloads/closed">closed</a>, ' not in page
    assert client.patch("/workloads/new", json={"targets": {"iteration_seconds": None}}).status_code == 200
    assert "similar workload" not in client.get("/ui/workloads/new").text
