"""What reports say of drifts: noticed once, told in the decision and the run, over restarts and several processes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.domain_models import service as domain_models
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.runs import service
from app.runs.outcomes import Staleness
from app.workloads import service as workloads
from tests.app.both import on_both
from tests.app.kinds.inference.runs import model
from tests.app.kinds.inference.workloads import QUALITY, spec
from tests.app.runs.reporting import TENANT, compiled_workloads, reporter, start

NAME, FIRST, LAST = "faces", 12, 40


def registered(database: Database) -> str:
    """A workload whose model says that the small variant's batches of one take 20 ms."""
    wanted = spec(
        batches=[1],
        variants=[{"name": "small", "accuracy": 0.7}],
        servers=[{"name": "cpu", "maximum": 1}],
        users=[{"name": "web", "quality": QUALITY}],
    )
    known = model(Layout(wanted))
    belief = ServiceModel(known.log_seconds, np.full(1, 0.1), known.rate, known.variation, known.measured)
    workloads.register(database, TENANT, wanted)
    with database.session() as session:
        row = workloads.require(session, TENANT, NAME)
        domain_models.publish(session, row.id, 1, {}, belief.to_bytes())
    return NAME


def bodies(slower: float) -> list[bytes]:
    """A request in each report, served alone by the only server at work before the next one; later they take longer."""
    results: list[dict[str, Any]] = []
    for number in range(LAST):
        at = 0.25 * number
        took = {"variant": "small", "batch": 1, "seconds": 0.02 * (slower if number > FIRST else 1.0)}
        results.append({"at": at, "arrived": [{"user": "web", "at": at}]})
        results.append({"at": at + 0.2, "finished": [{"server": "cpu-0", "at": at + 0.2, **took}]})
    return [json.dumps(one).encode() for one in results]


def decided(database: Database, run: str, first: int, reports: list[bytes]) -> list[dict[str, Any]]:
    """The decisions of a process that has just started."""
    taker = reporter(database)

    async def go() -> list[bytes]:
        return [(await taker.report(TENANT, run, first + i, body))[1] for i, body in enumerate(reports)]

    return [json.loads(decision) for decision in asyncio.run(go())]


@on_both
def test_a_drift_is_told_once_in_a_decision_and_stays_in_the_runs_record(client: TestClient, backend: Database) -> None:
    workload = registered(backend)
    run = start(backend, workload)
    reports = bodies(1.8)
    decisions = decided(backend, run, 0, reports[:40]) + decided(backend, run, 40, reports[40:])
    noticed = [decision for decision in decisions if "drift" in decision]
    assert len(noticed) == 1
    [notice] = noticed[0]["drift"]
    assert (notice["stream"], notice["direction"], notice["model"]) == ("seconds.small", "up", 1)
    assert notice["iteration"] == noticed[0]["reported"] > 2 * FIRST
    assert notice["statistic"] >= notice["threshold"]
    assert 1.5 < notice["factor"] < 2.1
    read = client.get(f"/runs/{run}").json()
    assert [(one["stream"], one["iteration"]) for one in read["drift"]] == [("seconds.small", notice["iteration"])]
    assert service.get(backend, TENANT, run, Staleness(10, 300)).drift[0].text == notice["text"]
    again = client.get("/decision", params={"run": run, "iteration": notice["iteration"]})
    assert again.json() == noticed[0]
    later = client.get("/decision", params={"run": run, "iteration": notice["iteration"] + 1})
    assert "drift" not in later.json()


def test_a_process_that_takes_over_counts_on_from_what_is_stored(database: Database) -> None:
    workload, reports = registered(database), bodies(1.8)
    runs = [start(database, workload) for _ in range(2)]
    alone = decided(database, runs[0], 0, reports)
    shared = [one for i in range(len(reports)) for one in decided(database, runs[1], i, reports[i : i + 1])]
    entries = [
        [(i, one["drift"][0]["statistic"]) for i, one in enumerate(d) if "drift" in one] for d in (alone, shared)
    ]
    assert entries[0] == entries[1] != []


def test_a_repeated_report_is_answered_with_the_same_notice(database: Database) -> None:
    workload, reports = registered(database), bodies(1.8)
    run = start(database, workload)
    decisions = decided(database, run, 0, reports)
    [number] = [i for i, one in enumerate(decisions) if "drift" in one]
    assert decided(database, run, number, reports[number : number + 1]) == [decisions[number]]


def test_what_is_noticed_is_counted(client: TestClient, database: Database) -> None:
    workload, reports = registered(database), bodies(1.8)
    run = start(database, workload)
    for number, body in enumerate(reports):
        assert client.put(f"/runs/{run}/iterations/{number}", content=body, headers=JSON).status_code == 201
    counted = 'steward_drifts_total{direction="up",stream="seconds.small",workload="faces"} 1.0'
    assert counted in client.get("/metrics").text


def test_a_run_in_which_all_is_as_expected_has_noticed_nothing(database: Database) -> None:
    workload = registered(database)
    run = start(database, workload)
    assert not any("drift" in decision for decision in decided(database, run, 0, bodies(1.0)))
    assert service.get(database, TENANT, run, Staleness(10, 300)).drift == []
    assert compiled_workloads(database).fetch(workload, TENANT).snapshot.model_version == 1


JSON = {"content-type": "application/json"}
