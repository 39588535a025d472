"""From a drift that was noticed to an agent that answers, or does not: every step once, with its reasons."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.database.engine import Database
from app.database.tables import Adaptation, Execution, Iteration, Job, Run
from app.drift import service, steps
from app.drift.detector import restore_drift
from app.drift.realised import means
from app.kinds.inference.spec import InferenceSpec
from app.samples import service as samples
from app.workloads import service as workloads
from tests.app.both import on_both
from tests.app.drift.serving import EACH, NAME, SPEC, Served, finish, publish_agent, publish_model, registered
from tests.app.runs.reporting import TENANT, decide_anew, start
from workers.tasks import inputs

RESPONSE: dict[str, Any] = {"respond": "retrain", "shadow_decisions": 20, "window_reports": 200, "budget": 5_000}
USUAL, DRIFTED = 130, 130  # reports before a drift and until the answer to it begins
PROMISED = [
    {"name": "response_quality", "unit": "share", "policies": {"agent": {"mean": 0.9, "low": 0.88, "high": 0.92}}}
]


def noticed(client: TestClient, database: Database, spec: InferenceSpec = SPEC, **changed: Any) -> Served:
    """A run of a workload that answers drifts, which has noticed one."""
    registered(database, spec)
    assert client.put(f"/workloads/{NAME}/drift", json=RESPONSE | changed).status_code == 200
    served = Served(database, start(database, NAME))
    served.go(USUAL)
    assert any("drift" in decision for decision in served.go(DRIFTED, 1.8))
    return served


def state(client: TestClient) -> dict[str, Any]:
    """The last adaptation."""
    adaptation: dict[str, Any] = client.get(f"/workloads/{NAME}/drift").json()["adaptations"][0]
    return adaptation


def tried(
    client: TestClient, database: Database, *, waits: bool = False, spec: InferenceSpec = SPEC, **more: Any
) -> None:
    """From the notice to an agent that is a shadow."""
    assert service.step(database) == 1
    finish(database, state(client)["job"], model=publish_model(database, 1.8, spec))
    assert service.step(database) == 1
    finish(database, state(client)["job"], agent=publish_agent(database, 2, waits=waits, spec=spec, **more))
    assert service.step(database) == 1
    assert state(client)["state"] == "shadow"


def refused(client: TestClient, database: Database) -> None:
    """From the notice to an agent that is no better in the simulator."""
    service.step(database)
    finish(database, state(client)["job"], model=publish_model(database, 1.8))
    service.step(database)
    finish(database, state(client)["job"], agent=publish_agent(database, 2, good=False))
    service.step(database)


def promoted_and_watched(client: TestClient, database: Database, served: Served, slower: float) -> dict[str, Any]:
    """From the shadow to the end of the window; the adaptation."""
    served.go(25, slower)
    service.step(database)
    assert champion(client) == 1
    served.go(320, slower)
    service.step(database)
    return state(client)


def champion(client: TestClient) -> int | None:
    count: int | None = client.get(f"/workloads/{NAME}").json()["champion"]
    return count


@on_both
def test_decisions_of_before_the_shadow_was_known_are_not_waited_on(client: TestClient, backend: Database) -> None:
    """A process looks for a new shadow now and then; what it decides until then has none."""
    served = noticed(client, backend)
    tried(client, backend)
    served.go(RESPONSE["shadow_decisions"] + 10, 1.8)
    with backend.session() as session:
        for row in session.scalars(select(Iteration).where(Iteration.run_id == served.run)):
            decide_anew(row, shadow=None)
    assert service.step(backend) == 0
    served.go(RESPONSE["shadow_decisions"] - 1, 1.8)
    assert service.step(backend) == 0
    served.go(1, 1.8)
    assert service.step(backend) == 1
    assert state(client)["state"] == "watched"


@on_both
def test_a_drift_leads_to_a_fit_a_training_a_shadow_and_a_promotion(client: TestClient, backend: Database) -> None:
    served = noticed(client, backend)
    assert service.step(backend) == 1
    begun = state(client)
    assert (begun["state"], begun["run"], begun["notice"]["stream"]) == ("fitting", served.run, "seconds.small")
    with backend.reading() as session:
        fit = session.get_one(Job, begun["job"])
        parts = session.scalars(select(Execution.name).order_by(Execution.created_at)).all()
    assert (fit.type, fit.state) == ("fit", "queued")
    assert parts == [f"{served.run}@0", f"{served.run}@{begun['notice']['since']}"]
    figures = begun["steps"][0]["figures"]
    assert figures["drifts"] == [figures["factors"]] == [{"seconds.small": pytest.approx(1.8, rel=0.05)}]
    assert service.step(backend) == 0

    finish(backend, fit.id, model=publish_model(backend, 1.8))
    assert service.step(backend) == 1
    with backend.reading() as session:
        training = session.get_one(Job, state(client)["job"])
    assert (training.type, training.request["model"], training.request["promote"]) == ("train", 2, False)
    assert training.request["budget"] == 5_000

    finish(backend, training.id, agent=publish_agent(backend, 2, outcomes=PROMISED))
    assert service.step(backend) == 1
    decisions = served.go(25, 1.8)
    assert {decision["shadow"]["agent"] for decision in decisions} == {1}
    assert service.step(backend) == 1
    assert champion(client) == 1
    [promotion] = client.get(f"/workloads/{NAME}/agents/promotions").json()["items"]
    assert (promotion["made_by"], promotion["champion"], promotion["rollback_to"]) == ("drift", 1, None)
    assert promotion["figures"] == {"decisions": 20, "failures": 0, "agreement": promotion["figures"]["agreement"]}

    decisions = served.go(270, 1.8)
    assert {decision["agent"] for decision in decisions} == {1}
    assert all(decision["shadow"] is None for decision in decisions)
    assert service.step(backend) == 1
    done = state(client)
    assert (done["state"], champion(client)) == ("kept", 1)
    assert [step["state"] for step in done["steps"]] == ["fitting", "training", "shadow", "watched", "kept"]
    assert done["steps"][-1]["figures"]["realised"]["mean"] > 0.9
    assert service.step(backend) == 0


def test_a_bad_agent_is_taken_back(client: TestClient, database: Database) -> None:
    served = noticed(client, database)
    tried(client, database, waits=True)
    done = promoted_and_watched(client, database, served, 1.8)
    assert (done["state"], champion(client)) == ("rolled_back", None)
    figures = done["steps"][-1]["figures"]
    assert figures["difference"]["high"] < 0 < figures["before"]
    changes = client.get(f"/workloads/{NAME}/agents/promotions").json()["items"]
    assert [(change["made_by"], change["champion"]) for change in changes] == [("drift", None), ("drift", 1)]
    assert "response_quality" in changes[0]["reason"]
    assert {decision["agent"] for decision in served.go(2, 1.8)} == {None}


def test_an_agent_that_reaches_less_than_it_promised_is_taken_back(client: TestClient, database: Database) -> None:
    promised = {"name": "response_quality", "policies": {"agent": {"mean": 1.3, "low": 1.2, "high": 1.4}}}
    served = noticed(client, database)
    tried(client, database, outcomes=[promised])
    served.go(25, 1.8)
    service.step(database)
    served.go(270, 1.8)
    service.step(database)
    assert state(client)["state"] == "rolled_back"
    assert "expected at least" in state(client)["steps"][-1]["why"]


def test_an_agent_that_is_no_better_in_the_simulator_goes_no_further(client: TestClient, database: Database) -> None:
    noticed(client, database)
    refused(client, database)
    assert (state(client)["state"], champion(client)) == ("rejected", None)
    assert service.step(database) == 0


@pytest.mark.parametrize("ended", ["failed", "cancelled"])
def test_a_job_that_comes_to_nothing_ends_it(client: TestClient, database: Database, ended: str) -> None:
    noticed(client, database)
    service.step(database)
    finish(database, state(client)["job"], ended)
    assert service.step(database) == 1
    assert state(client)["state"] == "failed"
    assert ended in state(client)["steps"][-1]["why"]
    assert service.step(database) == 0  # within the pause it is not tried again


def test_another_is_begun_once_the_pause_is_over(client: TestClient, database: Database) -> None:
    served = noticed(client, database, pause_seconds=0)
    service.step(database)
    finish(database, state(client)["job"], "failed")
    service.step(database)
    assert service.step(database) == 0  # the notice is older
    again = Served(database, start(database, NAME))
    again.go(60, 1.8)
    assert service.step(database) == 1
    assert (state(client)["run"], state(client)["state"]) == (again.run, "fitting")
    assert served.run != again.run


def test_who_is_promoted_by_hand_meanwhile_stays(client: TestClient, database: Database) -> None:
    served = noticed(client, database)
    tried(client, database)
    other = publish_agent(database, 2)
    assert client.post(f"/workloads/{NAME}/agents/{other}/promote").status_code == 200
    served.go(25, 1.8)
    service.step(database)
    assert (state(client)["state"], champion(client)) == ("superseded", other)


def test_a_workload_that_asks_for_nothing_only_notices(client: TestClient, database: Database) -> None:
    noticed(client, database, respond="off")
    assert service.step(database) == 0
    assert client.get(f"/workloads/{NAME}/drift").json()["adaptations"] == []


def test_a_workload_that_trains_on_line_needs_no_answer(client: TestClient, database: Database) -> None:
    noticed(client, database)
    with database.session() as session:
        owner = session.scalar(select(Job.workload_id)) or client.get(f"/workloads/{NAME}").json()["id"]
        session.add(Job(type="train", workload_id=owner, request={"algorithm": "online"}, state="running"))
    assert service.step(database) == 0


def test_many_processes_take_each_step_once(client: TestClient, any_database: Database) -> None:
    from app.main import create_app
    from app.settings import Settings

    del client
    own = TestClient(
        create_app(Settings(database_url=any_database.url.render_as_string(hide_password=False)), any_database)
    )
    noticed(own, any_database)
    taken: list[int] = []
    threads = [threading.Thread(target=lambda: taken.append(service.step(any_database))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(taken) == 1
    with any_database.reading() as session:
        assert len(session.scalars(select(Adaptation.id)).all()) == len(session.scalars(select(Job.id)).all()) == 1


def test_a_step_that_is_broken_off_leaves_nothing_and_is_taken_again(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    noticed(client, database)

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(steps.Context, "go_on", killed)
        with pytest.raises(KeyboardInterrupt):
            service.step(database)
    with database.reading() as session:
        assert session.scalars(select(Job.id)).all() == session.scalars(select(Execution.id)).all() == []
    assert service.step(database) == 1


def requests_of(database: Database, run: str) -> dict[str, int]:
    """By sample of a run, oldest first, the requests that it holds."""
    with database.reading() as session:
        workload = workloads.require(session, TENANT, NAME)
        executions = samples.executions(session, workload)
    return {name: len(content.requests.time) for name, content in executions if name.startswith(run)}


def test_a_run_is_cut_where_it_drifts_and_its_last_part_grows_until_it_ends(
    client: TestClient, database: Database
) -> None:
    """Two drifts of one run: three samples, each request in one of them; what was measured when is followed.

    Another run, which has noticed nothing, is cut where it is.
    """
    served = noticed(client, database, pause_seconds=0)
    refused(client, database)
    first, cut = state(client), state(client)["notice"]["since"]
    again = Served(database, start(database, NAME))
    again.go(USUAL, 1.8)
    assert not any("drift" in decision for decision in served.go(20, 1.8))
    assert any("drift" in decision for decision in served.go(DRIFTED, 0.9))
    assert service.step(database) == 1
    second = state(client)
    assert (second["id"] != first["id"], second["run"]) == (True, served.run)
    came, went = first["steps"][0]["figures"]["factors"], second["steps"][0]["figures"]["factors"]
    assert went["seconds.small"] == pytest.approx(0.5, rel=0.1)
    assert second["steps"][0]["figures"]["drifts"] == [came, went]
    names = [f"{served.run}@0", f"{served.run}@{cut}", f"{served.run}@{second['notice']['since']}"]
    assert list(requests_of(database, served.run)) == names
    assert requests_of(database, again.run) == {f"{again.run}@0": USUAL // 2}
    with database.reading() as session:
        workload = workloads.require(session, TENANT, NAME)
        drifts = inputs.workload(session, workload, with_samples=True).drifts
    assert drifts.now == [came, went]
    assert [list(drifts.then[name]) for name in names] == [[], [came], [came, went]]
    served.go(11, 0.9)
    assert client.patch(f"/runs/{served.run}", json={"state": "finished"}).status_code == 200
    assert client.patch(f"/runs/{served.run}", json={"state": "finished"}).status_code == 200
    requests = requests_of(database, served.run)
    assert list(requests) == names
    assert sum(requests.values()) == -(-served.number // 2)
    again.go(10, 0.9)
    assert client.patch(f"/runs/{again.run}", json={"state": "finished"}).status_code == 200
    assert requests_of(database, again.run) == {f"{again.run}@0": USUAL // 2, f"{again.run}@{USUAL}": 5}


def test_what_was_noticed_against_the_same_model_before_is_not_forgotten(
    client: TestClient, database: Database
) -> None:
    """An answer came to nothing, so decisions go by the first model still; then another stream drifts, and stops."""
    noticed(client, database)
    service.step(database)
    finish(database, state(client)["job"], "failed")
    service.step(database)
    first = state(client)["steps"][0]["figures"]["factors"]

    def chain(version: int, factors: dict[str, float]) -> list[Any]:
        with database.reading() as session:
            [adaptation] = session.scalars(select(Adaptation)).all()
            workload = workloads.require(session, TENANT, NAME)
            on = steps.Context(session, workload, adaptation, adaptation.created_at)
            return list(steps._drifts(on, version, factors))

    assert chain(1, {"arrivals.web": 2.0}) == [{**first, "arrivals.web": 2.0}]
    assert chain(1, {"seconds.small": 3.0}) == [{"seconds.small": 3.0}]
    publish_model(database, 1.8)
    assert chain(2, {"arrivals.web": 2.0}) == [first, {"arrivals.web": 2.0}]


def test_a_run_that_has_ended_begins_nothing(client: TestClient, database: Database) -> None:
    served, other = noticed(client, database), Served(database, start(database, NAME))
    other.go(10)
    assert client.patch(f"/runs/{served.run}", json={"state": "finished"}).status_code == 200
    assert service.step(database) == 0


def test_what_was_reached_before_the_drift_takes_no_agent_back(client: TestClient, database: Database) -> None:
    """Two runs, one of which has reported before the drift alone: it has reached more than anybody can since."""
    registered(database)
    assert client.put(f"/workloads/{NAME}/drift", json=RESPONSE).status_code == 200
    served, idle = (Served(database, start(database, NAME)) for _ in range(2))
    idle.go(600)
    served.go(USUAL)
    assert any("drift" in decision for decision in served.go(DRIFTED, 40.0))
    tried(client, database)
    done = promoted_and_watched(client, database, served, 40.0)
    figures = done["steps"][-1]["figures"]
    with database.reading() as session:
        blocks = [restore_drift(session.get_one(Run, run.run).drift).blocks for run in (idle, served)]
    assert means(blocks[0], None)[-1] > figures["before"] + 0.1
    assert (done["state"], champion(client)) == ("kept", 1)


def champions(client: TestClient) -> dict[str, int]:
    counts: dict[str, int] = client.get(f"/workloads/{NAME}").json()["champions"]
    return counts


@pytest.mark.parametrize(("waits", "end"), [(False, "kept"), (True, "rolled_back")])
def test_users_agents_are_tried_promoted_and_taken_back_together(
    client: TestClient, database: Database, waits: bool, end: str
) -> None:
    registered(database, EACH)
    before = publish_agent(database, 1, spec=EACH)
    assert client.post(f"/workloads/{NAME}/agents/{before}/promote", json={"role": "web"}).status_code == 200
    assert client.put(f"/workloads/{NAME}/drift", json=RESPONSE).status_code == 200
    served = Served(database, start(database, NAME))
    served.go(USUAL)
    assert any("drift" in decision for decision in served.go(DRIFTED, 1.8))
    tried(client, database, waits=waits, spec=EACH)
    assert {decision["shadow"]["agent"] for decision in served.go(25, 1.8)} == {2}
    service.step(database)
    assert champions(client) == {"web": 2, "mobile": 2}
    assert {decision["agent"] for decision in served.go(270, 1.8)} == {2}
    service.step(database)
    done = state(client)
    assert (done["state"], done["predecessor"]) == (end, before)
    assert champions(client) == ({"web": before} if waits else {"web": 2, "mobile": 2})


def test_a_user_whose_agent_is_changed_by_hand_meanwhile_keeps_it(client: TestClient, database: Database) -> None:
    served = noticed(client, database, EACH)
    tried(client, database, spec=EACH)
    other = publish_agent(database, 2, spec=EACH)
    assert client.post(f"/workloads/{NAME}/agents/{other}/promote", json={"role": "mobile"}).status_code == 200
    served.go(25, 1.8)
    service.step(database)
    assert (state(client)["state"], champions(client)) == ("superseded", {"mobile": other})


def test_what_goes_on_training_is_no_answer(client: TestClient, database: Database) -> None:
    registered(database)
    answer = client.put(f"/workloads/{NAME}/drift", json={"respond": "retrain", "algorithm": "online"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/algorithm")


def test_a_defect_in_one_workloads_step_is_no_others_trouble(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    noticed(client, database)

    def defect(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(steps, "begin", defect)
        assert service.step(database) == 0
    assert "ZeroDivisionError" in caplog.text
    assert service.step(database) == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [({"respond": "pray"}, "/respond"), ({"shadow_decisions": 0}, "/shadow_decisions"), ({"colour": 1}, "/colour")],
)
def test_what_is_no_answer_is_refused(client: TestClient, database: Database, body: Any, pointer: str) -> None:
    registered(database)
    answer = client.put(f"/workloads/{NAME}/drift", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
    assert client.get("/workloads/nobody/drift").status_code == 404
