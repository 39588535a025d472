"""Verdicts of the past: what they are worth now, what pages and readings say of them, and who is evaluated again."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app import queue
from app.agents import service as agents
from app.agents.evidence import JUDGE, Present, VerdictValidity, trained_for
from app.agents.repository import AGENTS
from app.agents.service import TrainingResult
from app.database.engine import Database
from app.database.tables import Agent, DomainModel, Evaluation, Job, Workload
from app.domain_models import service as models
from app.evaluations import renewal
from app.evaluations.renewal import PAUSE_SECONDS, Renewal
from app.kinds.iterative.heuristics import HeuristicPolicy
from app.kinds.iterative.policies import save
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
                session, workload.id, TrainingResult(1, 1, name, 0, report, artifact, promoted, f"verdict of {name}")
            )


def of_the_first_judge(database: Database, *versions: int) -> None:
    """Agents as an earlier version of the judge published them."""
    with database.session() as session:
        for agent in session.query(Agent).filter(Agent.version.in_(versions or (1, 2))):
            agent.report = {name: part for name, part in agent.report.items() if name != "judge"}


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
def test_an_agent_is_outdated_while_the_workload_is_not_what_it_was_trained_for(
    client: TestClient, two: Database
) -> None:
    one, other = (f"/workloads/{name}" for name in NAMES)
    assert client.patch(one, json={"prices": {"gpus": 4.0}}).status_code == 200
    assert (standings(client, NAMES[0]), standings(client, NAMES[1])) == (["outdated"] * 2, ["current"] * 2)
    read = client.get(f"{one}/agents/1").json()
    assert read["standing_reason"] == (
        "outdated: retrain (the price of gpus is 4, and it was trained for " + f"{client_price(client, other):g})"
    )
    assert client.patch(one, json={"prices": {"gpus": 1.05 * client_price(client, other)}}).status_code == 200
    assert standings(client, NAMES[0]) == ["current"] * 2  # within what agents are trained for
    target = client.get(one).json()["spec"]["metrics"][0]["target"]
    assert client.patch(other, json={"targets": {"iteration_seconds": 3 * target}}).status_code == 200
    assert standings(client, NAMES[1]) == ["outdated"] * 2
    assert client.patch(other, json={"targets": {"iteration_seconds": 1.5 * target}}).status_code == 200
    assert standings(client, NAMES[1]) == ["current"] * 2
    assert client.patch(other, json={"targets": {"iteration_seconds": None}}).status_code == 200
    assert "which was removed" in client.get(f"{other}/agents/2").json()["standing_reason"]


@on_both
def test_while_a_probability_is_required_nobody_is_to_be_trained(client: TestClient, two: Database) -> None:
    one, other = NAMES
    client.post(f"/workloads/{one}/agents/2/promote")
    request = client.patch(f"/workloads/{one}", json={"probabilities": {"iteration_seconds": 0.9}})
    assert request.status_code == 200, request.text
    text = "model_predictive decides while a probability is required; set it to null to train agents"
    read = client.get(f"/workloads/{one}/agents/1").json()
    assert (read["standing"], read["standing_reason"]) == ("outdated", f"outdated: {text}")
    assert read["instead"] == f"no agent; {text}"
    assert "retrain" not in page(client, one) + page(client, f"{one}/agents/1")
    assert standings(client, other) == ["current"] * 2
    client.patch(f"/workloads/{one}", json={"probabilities": {"iteration_seconds": None}})
    assert standings(client, one) == ["current"] * 2


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
    changed = KINDS[kind].apply_patch(
        spec, KINDS[kind].patch.model_validate({"prices": {priced[0].removeprefix("price of "): 9.0}})
    )
    assert [term for term, value in trained_for(changed).items() if value != terms[term]] == priced[:1]


@on_both
def test_verdicts_of_an_earlier_judge_are_no_present_state(client: TestClient, two: Database) -> None:
    name = NAMES[0]
    evaluation = publish_evaluation(two, name, agent=1)
    publish_evaluation(two, name, agent=1, outdated=True)  # which judged nothing
    figures = ("over hold", "Agent 1 vs. baselines", "robustness level L2")
    assert [text in page(client, f"{name}/agents/1") for text in figures] == [True] * 3
    with two.session() as session:
        row = session.get_one(Evaluation, evaluation)
        assert row.verdicts[0]["judge"] == JUDGE
        row.verdicts = [{part: value for part, value in row.verdicts[0].items() if part != "judge"}]
    of_the_first_judge(two)
    assert standings(client, name) == ["re_evaluate"] * 2
    agent = page(client, f"{name}/agents/1")
    assert "Re-evaluate: an earlier version of the judge made its verdict" in agent
    assert "robustness level re-evaluate –" in agent
    assert "by an earlier judge" in agent
    workload = page(client, name)
    assert "re-evaluate" in workload
    assert "– – verdict of first" in workload  # neither a return nor a class
    assert client.get(f"/evaluations/{evaluation}").json()["verdicts"][0]["current"] is False
    publish_evaluation(two, name, agent=1, outdated=True)
    publish_evaluation(two, name, agent=2)
    assert standings(client, name) == ["re_evaluate", "current"]
    judged = page(client, f"{name}/agents/2")
    assert "robustness level L2" in judged
    assert "over hold" not in judged  # that is of the judge before, as all figures of its report are
    assert "vs. baselines" not in judged
    assert "vs. baselines" not in page(client, name)
    assert "– L2 verdict of second" in page(client, name)
    assert standings(client, NAMES[1]) == ["re_evaluate"] * 2


def test_an_outdated_agent_is_said_to_be_so_wherever_it_is_shown(client: TestClient, two: Database) -> None:
    name = NAMES[0]
    publish_evaluation(two, name, agent=1)
    client.post(f"/workloads/{name}/agents/1/promote")
    client.patch(f"/workloads/{name}", json={"weights": {"cost": 9.0}})
    agent = page(client, f"{name}/agents/1")
    assert "Outdated: retrain (the weight of cost is 9, and it was trained for 0.1)" in agent
    assert "robustness level outdated: retrain –" in agent
    assert page(client, name).count("outdated: retrain") == 2
    assert "outdated" not in page(client, NAMES[1])


@on_both
def test_what_answers_is_said_beside_who_was_not_promoted_and_how_that_compares(
    client: TestClient, two: Database
) -> None:
    one, other = (f"/workloads/{name}/agents" for name in NAMES)
    text = (
        "the built-in policy (hold when the agent was trained); hold is at least as good: difference of the agent's "
        "return on the same episodes +0.00100 (95 % interval -0.00200 to +0.00400; differences up to 0.00450 count as "
        "equal)"
    )
    assert client.get(f"{one}/1").json()["instead"] == text
    assert f"Current policy: {text}" in page(client, f"{NAMES[0]}/agents/1")
    assert f"Current policy: {text}" in page(client, NAMES[0])
    client.post(f"{other}/2/promote", json={"reason": "it is better by far"})
    instead = client.get(f"{other}/1").json()["instead"]
    assert instead.startswith("agent 2, since 20")
    assert instead.endswith(" UTC: it is better by far")
    assert client.get(f"{other}/2").json()["instead"] == ""
    client.patch(f"/workloads/{NAMES[0]}", json={"prices": {"gpus": 99.0}})
    answer = client.get(f"{one}/2").json()["instead"]
    assert answer.endswith("when the agent was trained); no current verdict shows that the agent is better")


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-0.002, 0.02, "the agent is not shown to be better: "),
        (0.01, 0.02, "the agent is better: "),
        (-0.02, 0.004, "hold is at least as good: "),
        (-0.02, -0.004, "hold is at least as good: "),
        (-0.02, -0.005, "hold is better: "),
    ],
)
def test_a_heuristic_is_as_good_only_where_no_gain_beyond_the_margin_is_possible(
    client: TestClient, two: Database, low: float, high: float, text: str
) -> None:
    with two.session() as session:
        for agent in session.query(Agent).filter_by(version=1):
            gain = {"mean": (low + high) / 2, "low": low, "high": high}
            agent.report = {**agent.report, "gain": gain, "confidence": 0.99955}
    instead = client.get(f"/workloads/{NAMES[0]}/agents/1").json()["instead"]
    assert f"; {text}" in instead
    assert "(99.955 % interval " in instead
    assert "; hold is at least as good: " in client.get(f"/workloads/{NAMES[0]}/agents/2").json()["instead"]


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
    end(two, "cancelled")
    assert "evaluates it" not in client.get(f"/workloads/{NAMES[0]}/agents/1").json()["standing_reason"]
    assert step(two) == {**queued, "tenant": OTHER, "agents": [2]}
    end(two, "succeeded")
    assert step(two) is None  # each once, and of the outdated one nothing can be assessed
    client.patch(f"/workloads/{NAMES[1]}", json={"prices": {"gpus": 2.5}})
    price = client.get(f"/workloads/{NAMES[0]}").json()["spec"]["resources"][0]["price_per_hour"]
    client.patch(f"/workloads/{NAMES[1]}", json={"prices": {"gpus": price}})
    assert step(two) == {**queued, "tenant": TENANT, "workload": NAMES[1], "agents": [1]}


@on_both
def test_an_evaluation_that_failed_is_queued_three_times(client: TestClient, two: Database) -> None:
    agent = f"/workloads/{NAMES[0]}/agents/1"
    client.post(f"{agent}/promote")
    of_the_first_judge(two)
    for _ in range(3):
        assert "evaluates it" not in client.get(agent).json()["standing_reason"]
        assert step(two) is not None
        read = client.get(agent).json()
        assert f"; job {read['report']['reevaluation']['job']} evaluates it" in read["standing_reason"]
        end(two, "failed")
    assert step(two) is None


def test_an_evaluation_that_assessed_nothing_is_queued_again_under_another_spec(
    client: TestClient, two: Database
) -> None:
    client.post(f"/workloads/{NAMES[0]}/agents/1/promote")
    of_the_first_judge(two)
    assert step(two) is not None
    end(two, "succeeded")
    publish_evaluation(two, NAMES[0], agent=1, outdated=True)
    assert step(two) is None
    client.patch(f"/workloads/{NAMES[0]}", json={"prices": {"gpus": 99.0}})
    assert step(two) is None
    price = client_price(client, f"/workloads/{NAMES[1]}")
    client.patch(f"/workloads/{NAMES[0]}", json={"prices": {"gpus": price}})
    assert step(two) is not None


def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The workloads whose champions are read from now on, one by one."""
    read, find = list[str](), AGENTS.find

    def counted(session: Session, workload_id: str, version: int) -> Agent | None:
        read.append(session.get_one(Workload, workload_id).name)
        return find(session, workload_id, version)

    monkeypatch.setattr(AGENTS, "find", counted)
    return read


def test_a_process_reads_what_is_settled_once_and_looks_again_at_another_spec(
    client: TestClient, two: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        client.post(f"/workloads/{name}/agents/1/promote")
    of_the_first_judge(two)
    for name in NAMES:
        client.patch(f"/workloads/{name}", json={"prices": {"gpus": 99.0}})
    read, now = looks(monkeypatch), [0.0]
    monkeypatch.setattr(renewal, "MOST_LOOKED_AT", 1)
    process = Renewal(lambda: now[0])
    assert [process.step(two), list(read)] == [None, [NAMES[0]]]  # no more at once
    assert [process.step(two), list(read)] == [None, list(NAMES)]
    assert [process.step(two), list(read)] == [None, list(NAMES)]
    client.patch(f"/workloads/{NAMES[0]}", json={"prices": {"gpus": 98.0}})
    assert [process.step(two), list(read)] == [None, list(NAMES)]  # all were settled: it looks again later
    now[0] += PAUSE_SECONDS
    assert [process.step(two), list(read)] == [None, [*NAMES, NAMES[0]]]


@pytest.mark.parametrize("error", [None, ValueError("it is broken")], ids=["no model", "defect"])
def test_what_cannot_be_queued_is_left_and_the_next_is_evaluated(
    client: TestClient, two: Database, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    for name in NAMES:
        client.post(f"/workloads/{name}/agents/1/promote")
    of_the_first_judge(two)
    with two.session() as session:
        first = workloads.require(session, TENANT, NAMES[0])
        session.query(DomainModel).filter_by(workload_id=first.id).delete()
    broken(monkeypatch, error)
    process = Renewal()
    job = process.step(two) or process.step(two)
    with two.reading() as session:
        assert session.get_one(Job, job).request["workload"] == NAMES[1]


def broken(monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> None:
    """Let the standing of the first workload's agents end in an error, if any."""
    standing = Present.validity

    def failing(present: Present, agent: Agent) -> VerdictValidity:
        if error is not None and present.workload.name == NAMES[0]:
            raise error
        return standing(present, agent)

    monkeypatch.setattr(Present, "validity", failing)


def test_an_error_of_the_database_settles_nothing(
    client: TestClient, two: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post(f"/workloads/{NAMES[0]}/agents/1/promote")
    of_the_first_judge(two)
    process = Renewal()
    with monkeypatch.context() as patched:
        broken(patched, SQLAlchemyError("gone"))
        with pytest.raises(SQLAlchemyError):
            process.step(two)
    assert process.step(two) is not None


def test_a_champion_that_somebody_has_evaluated_is_settled(client: TestClient, two: Database) -> None:
    client.post(f"/workloads/{NAMES[0]}/agents/1/promote")
    of_the_first_judge(two)
    publish_model(two, NAMES[0])
    publish_evaluation(two, NAMES[0], agent=1)
    assert step(two) is None
