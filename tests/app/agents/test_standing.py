"""Verdicts of the past: what they are worth now, what pages and readings say of them, and who is evaluated again."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app import queue
from app.agents import service as agents
from app.agents.service import Trained
from app.agents.standing import JUDGE, trained_for
from app.database.engine import Database
from app.database.tables import Agent, DomainModel, Evaluation, Job
from app.domain_models import service as models
from app.evaluations.renewal import Renewal
from app.kinds.iterative.policies.artifact import save
from app.kinds.iterative.policies.heuristic import HeuristicPolicy
from app.kinds.registry import KINDS, parse_spec, read_spec
from app.samples.service import layout_of
from app.workloads import service as workloads
from tests.app.both import on_both
from tests.app.dashboard.test_pages import shown
from tests.app.domain_models.published import TENANT, doubling, publish_model
from tests.app.evaluations.published import publish_evaluation

NAMES = ("resnet18", "resnet50")
OTHER = "other"
MEAN = {"mean": -0.5, "low": -0.6, "high": -0.4}
REPORT = {
    "return": MEAN,
    "heuristics": {"hold": MEAN, "model_predictive": {**MEAN, "mean": -0.45}},
    "best_heuristic": "model_predictive",
    "incumbent": "hold",
    "gain": {"mean": 0.001, "low": -0.002, "high": 0.004},
    "equivalence_margin": 0.01,
}


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "enqueue", lambda _task, _identifier: None)


@pytest.fixture
def two(spec: dict[str, Any], backend: Database) -> Database:
    """Two workloads, with a model and two agents each."""
    for name in NAMES:
        register(backend, TENANT, {**spec, "name": name})
    return backend


def register(database: Database, tenant: str, spec: dict[str, Any], *, promote: bool = False) -> None:
    """A workload with a model and two agents, of which none is the champion, or the second."""
    workloads.register(database, tenant, parse_spec(spec))
    with database.session() as session:
        workload = workloads.require(session, tenant, spec["name"])
        layout, terms = layout_of(workload), trained_for(read_spec(workload.spec))
        models.publish(session, workload.id, 1, {"family": "none"}, doubling(layout).to_bytes())
        for name, promoted in (("first", False), ("second", promote)):
            artifact = save(HeuristicPolicy({"heuristic": "hold"}), layout)
            report = {**REPORT, "trained_for": terms}
            agents.publish(
                session, workload.id, Trained(1, 1, name, 0, report, artifact, promoted, f"verdict of {name}")
            )


def of_the_first_judge(database: Database, *versions: int, bare: bool = False) -> None:
    """Agents as an earlier version published them; `bare`: and before reports told what they were trained for."""
    with database.session() as session:
        for agent in session.query(Agent).filter(Agent.version.in_(versions or (1, 2))):
            gone = {"judge", *(["trained_for"] if bare else [])}
            agent.report = {name: part for name, part in agent.report.items() if name not in gone}


def standings(client: TestClient, name: str) -> list[str]:
    """Of a workload's agents, by version."""
    listed = client.get(f"/workloads/{name}/agents").json()["items"]
    assert listed == sorted(listed, key=lambda one: -one["version"])
    for one in listed:
        read = client.get(f"/workloads/{name}/agents/{one['version']}").json()
        members = ("standing", "standing_reason", "instead")
        assert [one[member] for member in members] == [read[member] for member in members]
    return [one["standing"] for one in reversed(listed)]


def page(client: TestClient, path: str) -> str:
    """All texts of a page."""
    return " ".join(text for text in shown(client, f"/ui/workloads/{path}").texts if text)


@on_both
@pytest.mark.parametrize("bare", [False, True], ids=["report", "artifact"])
def test_an_agent_is_outdated_while_the_workload_is_not_what_it_was_trained_for(
    client: TestClient, two: Database, bare: bool
) -> None:
    if bare:
        of_the_first_judge(two, bare=True)
    known = "re_evaluate" if bare else "current"
    one, other = (f"/workloads/{name}" for name in NAMES)
    assert client.patch(one, json={"prices": {"gpus": 4.0}}).status_code == 200
    assert (standings(client, NAMES[0]), standings(client, NAMES[1])) == (["outdated"] * 2, [known] * 2)
    read = client.get(f"{one}/agents/1").json()
    assert read["standing_reason"] == (
        "outdated: retrain (the price of gpus is 4, and it was trained for " + f"{client_price(client, other):g})"
    )
    assert client.patch(one, json={"prices": {"gpus": 1.05 * client_price(client, other)}}).status_code == 200
    assert standings(client, NAMES[0]) == [known] * 2  # within what agents are trained for
    target = client.get(one).json()["spec"]["metrics"][0]["target"]
    assert client.patch(other, json={"targets": {"iteration_seconds": 3 * target}}).status_code == 200
    assert standings(client, NAMES[1]) == ["outdated"] * 2
    assert client.patch(other, json={"targets": {"iteration_seconds": 1.5 * target}}).status_code == 200
    assert standings(client, NAMES[1]) == [known] * 2
    assert client.patch(other, json={"targets": {"iteration_seconds": None}}).status_code == 200
    assert "which is gone" in client.get(f"{other}/agents/2").json()["standing_reason"]


def client_price(client: TestClient, workload: str) -> float:
    """What a GPU costs."""
    return float(client.get(workload).json()["spec"]["resources"][0]["price_per_hour"])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_tells_what_its_agents_are_trained_for(client: TestClient, kind: str) -> None:
    example = KINDS[kind].example
    assert client.post("/workloads", json=dict(example.spec)).status_code == 201
    name = example.spec["name"]
    spec = read_spec(client.get(f"/workloads/{name}").json()["spec"])
    terms = trained_for(spec)
    priced = [term for term in terms if term.startswith("price of ")]
    assert priced
    changed = KINDS[kind].changed(
        spec, KINDS[kind].patch.model_validate({"prices": {priced[0].removeprefix("price of "): 9.0}})
    )
    assert [term for term, value in trained_for(changed).items() if value != terms[term]] == priced[:1]


@on_both
def test_verdicts_of_an_earlier_judge_are_no_present_state(client: TestClient, two: Database) -> None:
    name = NAMES[0]
    evaluation = publish_evaluation(two, name, agent=1)
    assert "L2" in page(client, f"{name}/agents/1")
    with two.session() as session:
        row = session.get_one(Evaluation, evaluation)
        assert row.verdicts[0]["judge"] == JUDGE
        row.verdicts = [{part: value for part, value in row.verdicts[0].items() if part != "judge"}]
    of_the_first_judge(two)
    assert standings(client, name) == ["re_evaluate"] * 2
    agent = page(client, f"{name}/agents/1")
    assert "Re-evaluate: an earlier version of the judge made its verdict" in agent
    assert "class re-evaluate –" in agent
    assert "by an earlier judge" in agent
    workload = page(client, name)
    assert "re-evaluate" in workload
    assert "– – verdict of first" in workload  # neither a return nor a class
    assert client.get(f"/evaluations/{evaluation}").json()["verdicts"][0]["current"] is False
    publish_evaluation(two, name, agent=2)
    assert standings(client, name) == ["re_evaluate", "current"]
    assert standings(client, NAMES[1]) == ["re_evaluate"] * 2


def test_an_outdated_agent_is_said_to_be_so_wherever_it_is_shown(client: TestClient, two: Database) -> None:
    name = NAMES[0]
    publish_evaluation(two, name, agent=1)
    client.post(f"/workloads/{name}/agents/1/promote")
    client.patch(f"/workloads/{name}", json={"weights": {"cost": 9.0}})
    agent = page(client, f"{name}/agents/1")
    assert "Outdated: retrain (the weight of cost is 9, and it was trained for 0.1)" in agent
    assert "class outdated: retrain –" in agent
    assert page(client, name).count("outdated: retrain") == 2
    assert "outdated" not in page(client, NAMES[1])


@on_both
def test_what_answers_is_said_beside_who_was_not_promoted_and_why_that_is_as_good(
    client: TestClient, two: Database
) -> None:
    one, other = (f"/workloads/{name}/agents" for name in NAMES)
    told = (
        "the heuristic hold, which is as good: on the same episodes the agent's return differs by +0.00100 (95 % "
        "interval -0.00200 to +0.00400), not more than the margin of 0.00450"
    )
    assert client.get(f"{one}/1").json()["instead"] == told
    assert f"Answers now: {told}" in page(client, f"{NAMES[0]}/agents/1")
    assert f"Answers now: {told}" in page(client, NAMES[0])
    client.post(f"{other}/2/promote", json={"reason": "it is better by far"})
    instead = client.get(f"{other}/1").json()["instead"]
    assert instead.startswith("agent 2, since 20")
    assert instead.endswith(" UTC: it is better by far")
    assert client.get(f"{other}/2").json()["instead"] == ""
    client.patch(f"/workloads/{NAMES[0]}", json={"prices": {"gpus": 99.0}})
    said = "the heuristic hold; no verdict that holds now says that the agent is better"
    assert client.get(f"{one}/2").json()["instead"] == said


def step(database: Database) -> dict[str, Any] | None:
    """What a worker's timer queues when nobody waits: tenant, workload and request; None: nothing."""
    job_id = Renewal().step(database)
    if job_id is None:
        return None
    with database.reading() as session:
        job = session.get_one(Job, job_id)
        request = {name: job.request[name] for name in ("workload", "agents")}
        return {"tenant": job.tenant, **request, "type": job.type, "priority": job.priority}


def end(database: Database, state: str) -> None:
    """Every job ends so."""
    with database.session() as session:
        for job in session.query(Job):
            job.state = state


@on_both
def test_champions_of_the_first_judge_are_evaluated_one_after_another_and_once(
    client: TestClient, two: Database, spec: dict[str, Any]
) -> None:
    register(two, OTHER, {**spec, "name": NAMES[0]}, promote=True)
    for name in NAMES:
        client.post(f"/workloads/{name}/agents/1/promote")
    assert step(two) is None  # the present judge promoted them
    of_the_first_judge(two)
    client.patch(f"/workloads/{NAMES[1]}", json={"prices": {"gpus": 99.0}})
    job = client.post("/evaluations", json={"workload": NAMES[0], "agents": [2]}).json()["id"]
    assert step(two) is None  # a job waits
    client.post(f"/jobs/{job}/cancel")
    queued = {"type": "evaluate", "priority": -10, "workload": NAMES[0]}
    assert step(two) == {**queued, "tenant": TENANT, "agents": [1]}
    read = client.get(f"/workloads/{NAMES[0]}/agents/1").json()
    assert read["report"]["reevaluation"]["job"] in read["standing_reason"]
    assert step(two) is None  # that one waits
    end(two, "running")
    assert step(two) is None  # it goes on
    end(two, "failed")
    assert step(two) == {**queued, "tenant": OTHER, "agents": [2]}
    end(two, "succeeded")
    assert step(two) is None  # each once, and of the outdated one nothing can be assessed
    client.patch(f"/workloads/{NAMES[1]}", json={"prices": {"gpus": 2.5}})
    price = client.get(f"/workloads/{NAMES[0]}").json()["spec"]["resources"][0]["price_per_hour"]
    client.patch(f"/workloads/{NAMES[1]}", json={"prices": {"gpus": price}})
    assert step(two) == {**queued, "tenant": TENANT, "workload": NAMES[1], "agents": [1]}


def test_a_process_reads_what_is_settled_once_and_looks_again_at_another_spec(
    client: TestClient, two: Database
) -> None:
    client.post(f"/workloads/{NAMES[0]}/agents/1/promote")
    price = client_price(client, f"/workloads/{NAMES[0]}")
    of_the_first_judge(two)
    client.patch(f"/workloads/{NAMES[0]}", json={"prices": {"gpus": 99.0}})
    renewal = Renewal()
    assert [renewal.step(two), renewal.step(two)] == [None, None]
    client.patch(f"/workloads/{NAMES[0]}", json={"prices": {"gpus": price}})
    assert renewal.step(two) is not None


def test_what_cannot_be_queued_is_left_and_the_next_is_evaluated(client: TestClient, two: Database) -> None:
    for name in NAMES:
        client.post(f"/workloads/{name}/agents/1/promote")
    of_the_first_judge(two)
    with two.session() as session:
        first = workloads.require(session, TENANT, NAMES[0])
        session.query(DomainModel).filter_by(workload_id=first.id).delete()
    found = step(two)
    assert found is not None
    assert found["workload"] == NAMES[1]


def test_a_champion_that_somebody_has_evaluated_is_settled(client: TestClient, two: Database) -> None:
    client.post(f"/workloads/{NAMES[0]}/agents/1/promote")
    of_the_first_judge(two)
    publish_model(two, NAMES[0])
    publish_evaluation(two, NAMES[0], agent=1)
    assert step(two) is None
