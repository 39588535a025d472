"""Measured seconds of changes: no part of what an iteration says of the run, and a row of their own in samples."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.kinds.iterative.contingencies import Segment, advance_in_segments
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import advance, begin
from tests.planted import planted_spec, planted_table

SPEC = planted_spec()


def test_a_measured_pause_replaces_the_expected_one_for_its_run_alone() -> None:
    table = planted_table(SPEC)
    projector = Projector(Layout(SPEC), table)
    usual, after = (float(np.exp(table.log_mean[0, level, 0, 0])) for level in (5, 7))
    state = begin(projector, np.array([[5], [5], [5]]))
    state = advance(projector, state, np.array([[5]] * 3), np.full((3, 1), usual), np.zeros((3, 0)))
    took = np.array([[after + 40.0], [after + 40.0], [after + 2.0]])
    paused = np.array([40.0, np.nan, np.nan])  # the model expects 2 s
    state = advance(projector, state, np.array([[7]] * 3), took, np.zeros((3, 0)), paused=paused)
    assert state.effect[[0, 2], 0] == pytest.approx(0, abs=1e-6)
    assert state.effect[1, 0] > 0.1
    np.testing.assert_allclose(state.elapsed, took + usual)


def test_a_measured_pause_is_taken_off_the_first_segment() -> None:
    """A pause longer than all the work would last at the last allocation; a run beside it has an expected one."""
    table = planted_table(SPEC)
    projector = Projector(Layout(SPEC), table)
    usual, slow, fast = (float(np.exp(table.log_mean[0, level, 0, 0])) for level in (5, 1, 7))
    state = begin(projector, np.array([[5], [5]]))
    state = advance(projector, state, np.array([[5]] * 2), np.full((2, 1), usual), np.zeros((2, 0)))
    parts = [[Segment([1], pause + slow / 2), Segment([7], 2.0 + fast / 2)] for pause in (950.0, 2.0)]
    took = np.array([[sum(part.seconds for part in each)] for each in parts])
    levels, paused = np.array([[7]] * 2), np.array([950.0, np.nan])
    state = advance_in_segments(projector, state, levels, took, np.zeros((2, 0)), parts, paused)
    assert state.effect[:, 0] == pytest.approx([0, 0], abs=1e-6)
    np.testing.assert_allclose(state.elapsed, took + usual)
    assert paused[0] == 950.0


RESOURCE = {"name": "gpus", "minimum": 1, "maximum": 16, "max_steps": 4, "change_seconds": 60.0, "price_per_hour": 1.0}


def registered(client: TestClient, name: str) -> None:
    body = {"name": name, "kind": "iterative", "resources": [RESOURCE], "iterations": 12}
    assert client.post("/workloads", json=body).status_code == 201


def report(gpus: int, seconds: float, **more: Any) -> dict[str, Any]:
    return {"allocation": {"gpus": gpus}, "metrics": {"iteration_seconds": seconds}, **more}


def test_reports_with_measured_changes_become_samples_in_every_format(client: TestClient) -> None:
    for name in ("first", "second"):
        registered(client, name)
    run = client.post("/runs", json={"workload": "first"}).json()["id"]
    values = [report(4, 10.0), report(8, 45.5, change_seconds=40.0), report(8, 5.0, change_seconds=None)]
    for number, body in enumerate(values):
        for _ in range(2):  # again, as after a lost answer
            answer = client.put(f"/runs/{run}/iterations/{number}", json=body)
            assert answer.status_code in (200, 201), answer.text
    assert client.patch(f"/runs/{run}", json={"state": "finished"}).status_code == 200
    (sample,) = client.get("/workloads/first/samples?reports=true").json()["items"]
    reports = sample["reports"]
    assert (sample["iterations"], sample["seconds"]) == (3, 60.5)
    assert [one["metrics"]["iteration_seconds"] for one in reports] == [10.0, 45.5, 5.0]
    assert [one["change_seconds"] for one in reports] == [0.0, 40.0, 0.0]
    exported = client.get("/workloads/first/samples", headers={"accept": "text/csv"}).text
    assert [line.split(",")[1:] for line in exported.splitlines()[1:]] == [
        ["0", "4", "10"],
        ["0.5", "8", "40"],
        ["1", "8", "5.5"],
        ["2", "8", "5"],
    ]
    lines = json.dumps({"execution": "a", "reports": reports})
    document = json.dumps({"samples": [{"execution": "b", "reports": reports}]})
    for kind, content in (("text/csv", exported), ("application/x-ndjson", lines), ("application/json", document)):
        answer = client.post("/workloads/second/samples", content=content, headers={"content-type": kind})
        assert answer.status_code == 201, answer.text
    copied = client.get("/workloads/second/samples?reports=true").json()["items"]
    assert [one["reports"] for one in copied] == [reports] * 3


def test_changes_that_do_not_fit_are_refused(client: TestClient) -> None:
    registered(client, "refused")
    run = client.post("/runs", json={"workload": "refused"}).json()["id"]
    for wrong in (10.0, 12.0, -1.0):
        answer = client.put(f"/runs/{run}/iterations/0", json=report(4, 10.0, change_seconds=wrong))
        assert (answer.status_code, "/change_seconds" in answer.text) == (422, True)
    parts = [{"allocation": {"gpus": 2}, "seconds": 4.0}, {"allocation": {"gpus": 4}, "seconds": 6.0}]
    for more in ({"change_seconds": 10.0}, {"change_seconds": 1.0, "segments": parts}):
        samples = [{"execution": "x", "reports": [report(4, 10.0), report(4, 10.0, **more)]}]
        answer = client.post("/workloads/refused/samples", json={"samples": samples})
        assert "/reports/1/change_seconds" in answer.text
    head = "execution,iteration,allocation.gpus,metric.iteration_seconds\n"
    for rows in (
        "a,0,4,1\na,0.5,4,9\n",
        "a,0,4,1\na,0.5,2,9\na,1,4,1\n",
        "a,0.5,4,1\na,1,4,1\n",
        "a,0,4,1\na,.5,4,1\na,2,4,1\n",
        "a,0,4,1\na,.5,2,1\na,.5,4,1\na,1,4,1\n",
        "a,0,4,1\na,.5,4,9\na,1,4,1\na,1,8,1\n",
    ):
        answer = client.post("/workloads/refused/samples", content=head + rows, headers={"content-type": "text/csv"})
        assert (answer.status_code, "/iteration" in answer.text) == (422, True), rows
    content = head + "a,0,4,1\na,0.5,2,9\na,1,4,1\n"
    answer = client.post("/workloads/refused/samples", content=content, headers={"content-type": "text/csv"})
    assert "n - 0.5 for the change before iteration n" in answer.text
    content = head + "a,0,4,1\na,0.5,4,9\na,1,4,1\na,3,4,1\n"
    answer = client.post("/workloads/refused/samples", content=content, headers={"content-type": "text/csv"})
    assert "must be 2.0: iterations count up" in answer.text
