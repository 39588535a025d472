"""Agents over HTTP: asking for a training, reading, promoting, rolling back, downloading."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app import installed, queue
from app.agents import combinations
from app.agents import service as agents
from app.agents.evidence import JUDGE
from app.agents.repository import AGENTS
from app.agents.schemas import PromotionRequest, TrainRequest
from app.agents.service import TrainingResult
from app.database.engine import Database
from app.database.tables import Agent, Job, Promotion
from app.domain_models import service as domain_models
from app.errors import Invalid
from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.inference.example import SPEC as SERVED
from app.kinds.inference.layout import Layout
from app.kinds.inference.spec import InferenceSpec
from app.kinds.iterative import policies
from app.kinds.iterative.heuristics import HeuristicPolicy
from app.policies.artifact import by_role
from app.samples.service import layout_of
from app.workloads import service as workloads
from tests.app.both import on_both
from tests.app.domain_models.published import TENANT, publish_agent, publish_model
from tests.app.kinds.inference.runs import model
from tests.app.samples.bodies import csv_of, upload_csv
from tests.roles import with_roles


def champion(client: TestClient, workload: str) -> int | None:
    count: int | None = client.get(f"/workloads/{workload}").json()["champion"]
    return count


@on_both
def test_a_training_is_a_job_on_the_newest_model(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    publish_model(backend, workload)
    answer = client.post(f"/workloads/{workload}/agents", json={"algorithm": "dqn", "budget": 50_000, "seed": 3})
    job = answer.json()
    assert (answer.status_code, job["type"], job["state"]) == (202, "train", "queued")
    with backend.reading() as session:
        request = session.get_one(Job, job["id"]).request
    expected = {"algorithm": "dqn", "budget": 50_000, "seed": 3, "model": 2, "promote": True}
    assert {name: request[name] for name in expected} == expected


def test_all_of_a_training_is_optional(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    assert client.post(f"/workloads/{workload}/agents").status_code == 202
    assert client.post(f"/workloads/{workload}/agents", json={}).status_code == 202


def test_a_training_before_any_sample_says_what_to_do(client: TestClient, workload: str) -> None:
    answer = client.post(f"/workloads/{workload}/agents")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (409, "/samples")
    assert f"POST /workloads/{workload}/samples" in answer.json()["detail"]


def test_a_training_before_any_model_says_what_to_do(client: TestClient, workload: str) -> None:
    upload_csv(client, workload, csv_of({"a": 3}))
    answer = client.post(f"/workloads/{workload}/agents")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (409, "/model")
    assert f"POST /workloads/{workload}/models" in answer.json()["detail"]
    assert client.post(f"/workloads/{workload}/agents", json={"model": 4}).status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"algorithm": "alchemy"}, "/algorithm"),
        ({"budget": 0}, "/budget"),
        ({"budget": -5}, "/budget"),
        ({"budget": "many"}, "/budget"),
        ({"seed": -1}, "/seed"),
        ({"seed": 0.5}, "/seed"),
        ({"model": 0}, "/model"),
        ({"colour": "red"}, "/colour"),
        ({"seeds": 0}, "/seeds"),
        ({"seeds": 1000}, "/seeds"),
        ({"executor": "threads"}, "/executor"),
        ({"device": "tpu"}, "/device"),
        ({"backend": "torch"}, "/backend"),
        ({"imitate": "oracle"}, "/imitate"),
        ({"start_from": 0}, "/start_from"),
        ({"start_from": 3}, "/start_from"),
        ({"algorithm": "planner", "seeds": 3}, "/seeds"),
        ({"algorithm": "planner", "imitate": "pid"}, "/imitate"),
        ({"algorithm": "tabular_q", "device": "cuda"}, "/device"),
        ({"algorithm": "tabular_q", "executor": "processes"}, "/executor"),
        ({"start_from": 1, "imitate": "pid"}, "/imitate"),
        ({"algorithm": "online"}, "/algorithm"),
        ({"algorithm": "ppo", "online": {"steps": 2_000}}, "/online"),
        ({"algorithm": "online", "online": {"window_seconds": 0}}, "/online/window_seconds"),
        ({"algorithm": "online", "online": {"steps": 10}}, "/online/steps"),
        ({"algorithm": "online", "online": {"windows": 0}}, "/online/windows"),
        ({"algorithm": "online", "budget": 5_000}, "/budget"),
        ({"algorithm": "online", "promote": False}, "/promote"),
    ],
)
def test_a_strange_training_is_refused_by_field(
    client: TestClient, workload: str, backend: Database, body: Any, pointer: str
) -> None:
    publish_model(backend, workload)
    answer = client.post(f"/workloads/{workload}/agents", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


@on_both
def test_versions_are_listed_newest_first(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    assert [publish_agent(backend, workload, promote=i == 1) for i in range(3)] == [1, 2, 3]
    body = client.get(f"/workloads/{workload}/agents?limit=2").json()
    assert [(item["version"], item["champion"]) for item in body["items"]] == [(3, False), (2, True)]
    assert [item["version"] for item in client.get(body["next"]).json()["items"]] == [1]
    one = client.get(f"/workloads/{workload}/agents/2").json()
    assert (one["champion"], one["promoted"], one["model_version"]) == (True, True, 1)
    fields = {"algorithm": "dqn", "version": 2, "promoted": True, "reason": "good enough", "judge": JUDGE}
    assert one["report"] == fields


@on_both
def test_pictures_are_left_out_of_lists(client: TestClient, workload: str, backend: Database) -> None:
    pictures = {"schedules": [{"name": "agent"}], "points": []}
    with backend.session() as session:
        result = workloads.require(session, TENANT, workload)
        save = policies.save(HeuristicPolicy({"heuristic": "hold"}), layout_of(result))
        report = {"algorithm": "dqn", "pictures": pictures}
        agents.publish(session, result.id, TrainingResult(1, 1, "dqn", 0, report, save, False, "worse"))
    path = f"/workloads/{workload}/agents"
    fields = {"algorithm": "dqn", "version": 1, "promoted": False, "reason": "worse", "judge": JUDGE}
    assert client.get(f"{path}/1").json()["report"] == {**fields, "pictures": pictures}
    assert [item["report"] for item in client.get(path).json()["items"]] == [fields]


@on_both
def test_promotion_and_rollback_walk_back_through_history(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    for version in (1, 2, 3):
        assert publish_agent(backend, workload) == version
        answer = client.post(f"/workloads/{workload}/agents/{version}/promote", json={"reason": "because"})
        assert answer.status_code == 200
        assert (answer.json()["champion"], answer.json()["previous"]) == (version, version - 1 or None)
    for version, restored in ((3, 2), (2, 1), (1, None)):
        answer = client.post(f"/workloads/{workload}/agents/{version}/rollback")
        assert (answer.status_code, answer.json()["champion"]) == (200, restored)
        assert champion(client, workload) == restored
    with backend.reading() as session:
        assert session.query(Promotion).count() == 6


def test_each_change_of_champion_raises_the_revision(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    publish_agent(backend, workload)
    before = client.get(f"/workloads/{workload}").json()["revision"]
    path = f"/workloads/{workload}/agents/1"
    revisions = [client.post(f"{path}/{verb}").json()["revision"] for verb in ("promote", "promote", "rollback")]
    assert revisions == [before + 1, before + 1, before + 2]


def test_only_the_champion_can_be_rolled_back(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    publish_agent(backend, workload)
    answer = client.post(f"/workloads/{workload}/agents/1/rollback")
    assert (answer.status_code, "a heuristic is the current policy" in answer.json()["detail"]) == (409, True)
    publish_agent(backend, workload, promote=True)
    answer = client.post(f"/workloads/{workload}/agents/1/rollback")
    assert (answer.status_code, "agent 2 is the current policy" in answer.json()["detail"]) == (409, True)
    for verb in ("promote", "rollback"):
        assert client.post(f"/workloads/{workload}/agents/9/{verb}").status_code == 404
    assert champion(client, workload) == 2


def test_the_policy_is_downloaded_with_its_tag(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    publish_agent(backend, workload, heuristic="pid")
    answer = client.get(f"/workloads/{workload}/agents/1/policy")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/octet-stream")
    assert policies.load(answer.content).policy.name == "pid"
    tag = answer.headers["etag"]
    for values in (tag, f'W/{tag}, "other"', "*"):
        again = client.get(f"/workloads/{workload}/agents/1/policy", headers={"If-None-Match": values})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    changed = client.get(f"/workloads/{workload}/agents/1/policy", headers={"If-None-Match": '"other"'})
    assert changed.status_code == 200


def test_an_agent_is_gone_on_from_by_its_own_algorithm(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    publish_agent(backend, workload)
    path = f"/workloads/{workload}/agents"
    for body in ({"start_from": 1}, {"start_from": 1, "algorithm": "dqn", "seeds": 2}):
        assert client.post(path, json=body).status_code == 202
    other = client.post(path, json={"start_from": 1, "algorithm": "ppo"})
    assert (other.status_code, other.json()["errors"][0]["pointer"]) == (422, "/algorithm")
    assert "'dqn', which trained agent 1" in other.json()["detail"]
    missing = client.post(path, json={"start_from": 2})
    assert (missing.status_code, "the newest is 1" in missing.json()["detail"]) == (422, True)


@pytest.mark.parametrize("algorithm", ["planner", "tuned_rule", "improved_rule"])
def test_an_agent_that_cannot_be_trained_further_is_no_start(algorithm: str) -> None:
    with pytest.raises(Invalid, match=f"agent 7 is of '{algorithm}'"):
        combinations.check_start(TrainRequest(start_from=7), Agent(version=7, algorithm=algorithm))


@on_both
def test_a_training_that_goes_on_is_had_where_the_kind_can_do_it(client: TestClient, backend: Database) -> None:
    for name, more in (("served", {}), ("fair", {"policies": "per_user"})):
        assert client.post("/workloads", json={**SERVED, "name": name, **more}).status_code == 201
        with backend.session() as session:
            workload = workloads.require(session, TENANT, name)
            layout = Layout(InferenceSpec.model_validate(workload.spec))
            domain_models.publish(session, workload.id, 1, {"family": "none"}, model(layout).to_bytes())
    answer = client.post("/workloads/served/agents", json={"algorithm": "online", "online": {"windows": 3}})
    assert (answer.status_code, answer.json()["not_before"]) == (202, None)
    refused = client.post("/workloads/fair/agents", json={"algorithm": "online"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/algorithm")
    assert "several roles" in refused.json()["detail"]


def test_what_a_kind_can_be_trained_by_is_told_without_what_it_cannot(
    client: TestClient, workload: str, backend: Database
) -> None:
    publish_model(backend, workload)
    problem = client.post(f"/workloads/{workload}/agents", json={"algorithm": "online"}).json()["errors"][0]
    assert "for a workload of kind iterative" in problem["message"]
    assert "online" not in problem["message"]
    assert "ppo" in problem["message"]


def test_everything_that_contradicts_is_named_at_once(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    body = {"algorithm": "planner", "seeds": 2, "executor": "ray", "device": "cuda"}
    errors = client.post(f"/workloads/{workload}/agents", json=body).json()["errors"]
    assert [(error["pointer"], error["value"]) for error in errors] == [
        ("/seeds", 2),
        ("/executor", "ray"),
        ("/device", "cuda"),
    ]


def test_an_extra_that_this_hosts_workers_lack_is_refused_at_once(
    client: TestClient, workload: str, backend: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_model(backend, workload)
    monkeypatch.setattr(installed, "missing", lambda extra: [extra])
    body = {"algorithm": "dqn", "executor": "ray"}
    answer = client.post(f"/workloads/{workload}/agents", json=body)
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["pointer"], error["value"]) == (422, "/executor", "ray")
    assert installed.command("ray") in error["message"]
    monkeypatch.setattr(queue, "reaches_this_host_alone", lambda: False)  # workers elsewhere may well have it
    assert client.post(f"/workloads/{workload}/agents", json=body).status_code == 202


@pytest.fixture
def two_roles(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The example's kind with a second role."""
    roles = (DEFAULT_ROLE, "standby")
    with_roles(monkeypatch, "iterative", roles)
    return roles


@on_both
@pytest.mark.usefixtures("two_roles")
def test_each_role_has_a_champion_and_a_history_of_its_own(
    client: TestClient, workload: str, backend: Database
) -> None:
    publish_model(backend, workload)
    for heuristic in ("hold", "threshold", "pid"):
        publish_agent(backend, workload, heuristic=heuristic)
    path, standby = f"/workloads/{workload}/agents", {"role": "standby"}
    assert client.post(f"{path}/1/promote").json()["role"] == DEFAULT_ROLE
    for version, previous in ((1, None), (2, 1)):
        answer = client.post(f"{path}/{version}/promote", json=standby).json()
        assert (answer["role"], answer["champion"], answer["previous"]) == ("standby", version, previous)
    body = client.get(f"/workloads/{workload}").json()
    assert (body["champion"], body["champions"]) == (1, {DEFAULT_ROLE: 1, "standby": 2})
    assert [one["champion"] for one in client.get(path).json()["items"]] == [False, True, True]
    refused = client.post(f"{path}/2/rollback")
    assert (refused.status_code, "agent 1 is the current policy" in refused.json()["detail"]) == (409, True)
    for version, restored in ((2, 1), (1, None)):
        assert client.post(f"{path}/{version}/rollback", json=standby).json()["champion"] == restored
    assert client.get(f"/workloads/{workload}").json()["champions"] == {DEFAULT_ROLE: 1}
    refused = client.post(f"{path}/1/rollback", json=standby)
    assert (
        refused.status_code,
        "in role 'standby': a heuristic is the current policy" in refused.json()["detail"],
    ) == (409, True)


def test_agents_that_learned_together_are_promoted_together(
    client: TestClient, workload: str, backend: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no default role: in every role, in one transaction, or in none."""
    roles = ("decode", "prefill")
    with_roles(monkeypatch, "iterative", roles)
    publish_model(backend, workload)
    path = f"/workloads/{workload}/agents"
    assert client.post(path).status_code == 202
    with pytest.raises(Invalid, match="no role 'default': role must be one of decode, prefill"):
        publish_agent(backend, workload, promote=True)
    with pytest.raises(Invalid, match="no role 'standby'"):
        publish_agent(backend, workload, promote=True, roles=("decode", "standby"))
    assert client.get(path).json()["items"] == []
    assert client.get(f"/workloads/{workload}").json()["champions"] == {}
    version = publish_agent(backend, workload, promote=True, roles=roles)
    assert client.get(f"/workloads/{workload}").json()["champions"] == dict.fromkeys(roles, version)
    assert client.post(f"{path}/{version}/rollback", json={"role": "decode"}).json()["champion"] is None
    assert client.get(f"/workloads/{workload}").json()["champions"] == {"prefill": version}


def test_who_must_be_beaten_by_agents_that_learn_together(
    workload: str, backend: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever answers in their roles, from however many trainings."""
    with_roles(monkeypatch, "iterative", ("decode", "prefill"))
    first = publish_agent(backend, workload, promote=True, roles=("decode", "prefill"))
    second = publish_agent(backend, workload, roles=("decode", "prefill"))
    agents.promote(backend, TENANT, workload, second, PromotionRequest(role="prefill"))
    with backend.reading() as session:
        row = workloads.require(session, TENANT, workload)
        assert agents.rivals(row) == {"decode": first, "prefill": second}
        selection = agents.answering(session, row)
        own = {version: by_role(AGENTS.require(session, row, version).artifact) for version in (first, second)}
    assert selection is not None
    assert by_role(selection) == {"decode": own[first]["decode"], "prefill": own[second]["prefill"]}
    agents.rollback(backend, TENANT, workload, first, PromotionRequest(role="decode"))
    agents.rollback(backend, TENANT, workload, second, PromotionRequest(role="prefill"))
    with backend.reading() as session:
        row = workloads.require(session, TENANT, workload)
        assert agents.rivals(row) == {"decode": None, "prefill": first}


def test_what_agents_that_learn_together_can_not_do_is_refused(
    client: TestClient, workload: str, backend: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_roles(monkeypatch, "iterative", ("prefill", "decode"))
    publish_model(backend, workload)
    for name, value in (("executor", "processes"), ("imitate", "planner"), ("start_from", 1)):
        answer = client.post(f"/workloads/{workload}/agents", json={name: value})
        (error,) = answer.json()["errors"]
        assert (answer.status_code, error["pointer"]) == (422, f"/{name}")
        assert "learn together" in error["message"]


@pytest.mark.parametrize("verb", ["promote", "rollback"])
def test_a_role_that_a_workload_has_not_is_refused_with_those_that_it_has(
    client: TestClient, workload: str, backend: Database, verb: str
) -> None:
    publish_model(backend, workload)
    publish_agent(backend, workload, promote=verb == "rollback")
    path = f"/workloads/{workload}/agents/1/{verb}"
    for role, message in (("standby", "must be one of default"), ("No Name", "pattern"), ("a\0", "NUL")):
        answer = client.post(path, json={"role": role})
        (error,) = answer.json()["errors"]
        assert (answer.status_code, error["pointer"], error["value"]) == (422, "/role", role)
        assert message in error["message"]
    assert client.post(path, json={"role": DEFAULT_ROLE}).status_code == 200
