"""Traces over HTTP: Standard Workload Format and WfFormat come in, are listed, and go out again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.samples import SWF, WFFORMAT
from app.kinds.workflow.trace import Trace
from app.main import create_app
from app.samples import service
from app.settings import Settings
from app.workloads import service as workloads
from tests.app.both import on_both
from tests.app.kinds.workflow.traces import same

LOG = """; Computer: Toy
; UnixStartTime: 1000000000
; MaxProcs: 8
1 0 -1 100 4 -1 -1 4 200 -1 1 7 1 -1 -1 -1 -1 -1
2 60 -1 300 8 -1 -1 8 200 -1 1 3 1 -1 -1 -1 -1 -1
3 90 -1 -1 1 -1 -1 1 200 -1 0 3 1 -1 -1 -1 -1 -1
"""
FLOW: dict[str, Any] = {
    "name": "toy-flow",
    "schemaVersion": "1.4",
    "workflow": {
        "tasks": [
            {"name": "a", "runtimeInSeconds": 10, "files": [{"name": "x", "link": "output", "sizeInBytes": 5}]},
            {"name": "b", "runtimeInSeconds": 20, "parents": ["a"], "cores": 2,
             "files": [{"name": "x", "link": "input", "sizeInBytes": 5}]},
        ]
    },
}  # fmt: skip


@pytest.fixture
def cluster(client: TestClient) -> str:
    """Name of a registered workload of kind ``workflow`` with one node of 8 processors."""
    node = {"name": "big", "processors": 8, "memory_gb": 64, "minimum": 1, "maximum": 1}
    answer = client.post("/workloads", json={"name": "cluster", "kind": "workflow", "nodes": [node]})
    assert answer.status_code == 201, answer.text
    return "cluster"


def upload(client: TestClient, body: str | bytes, media: str, execution: str | None = None, **headers: str) -> Any:
    query = {} if execution is None else {"execution": execution}
    path = "/workloads/cluster/samples"
    return client.post(path, params=query, content=body, headers={"Content-Type": media, **headers})


def items(client: TestClient, **query: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.get("/workloads/cluster/samples", params=query).json()["items"]
    return items


def exported(client: TestClient, media: str, **query: str) -> Any:
    return client.get("/workloads/cluster/samples", params=query, headers={"Accept": media})


@pytest.mark.usefixtures("cluster")
def test_bad_lines_are_left_out_where_that_is_asked_for(client: TestClient) -> None:
    """Without it the log is refused, with line and field; a workflow has no line to spare."""
    path, spoiled = "/workloads/cluster/samples", LOG + "4 95 -1 -7 1 -1 -1 1 200 -1 1 3 1 -1 -1 -1 -1 -1\n5 6\n"
    refused = upload(client, spoiled, SWF)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/lines/8"

    def skipping(body: str, media: str) -> Any:
        query = {"skip_bad": "true", "execution": "log"}
        return client.post(path, params=query, content=body, headers={"Content-Type": media})

    taken = skipping(spoiled, SWF)
    assert taken.status_code == 201, taken.text
    assert (taken.json()["accepted"], taken.json()["iterations"]) == (1, 2)
    assert taken.json()["skipped"] == [
        {"field": "", "reason": "must have 18 columns", "count": 1, "lines": [8]},
        {"field": "runtime", "reason": ANY, "count": 1, "lines": [7]},
    ]
    flow = skipping(json.dumps(FLOW), WFFORMAT)
    assert flow.status_code == 422
    assert flow.json()["errors"][0]["pointer"] == "/query/skip_bad"
    assert SWF in flow.json()["errors"][0]["message"]


def stored(database: Database) -> dict[str, Trace]:
    with database.reading() as session:
        return dict(service.executions(session, workloads.require(session, "default", "cluster")))


@on_both
@pytest.mark.usefixtures("cluster")
def test_a_log_becomes_an_execution_and_what_is_odd_in_it_is_told(client: TestClient, backend: Database) -> None:
    answer = upload(client, LOG, SWF, "toy")
    assert answer.status_code == 201, answer.text
    document = answer.json()
    assert (document["accepted"], document["duplicate"], document["rejected"], document["iterations"]) == (1, 0, 0, 2)
    assert document["lacks"] == ["no job has memory: memory does not limit them"]
    assert [(w["execution"], w["pointer"], w["value"]) for w in document["warnings"]] == [
        ("toy", "/lines/6/runtime", -1.0),
        ("toy", "/lines/5/runtime", 300.0),
    ]
    same(read_swf(LOG.splitlines()).trace, stored(backend)["toy"])
    [item] = items(client)
    assert (item["execution"], item["iterations"], item["seconds"], item["source"]) == ("toy", 2, 400, "upload")
    assert item["trace"] == {
        "tasks": 2,
        "edges": 0,
        "users": 2,
        "workflows": 0,
        "with_run_time": 2,
        "with_estimate": 2,
        "with_memory": 0,
        "span_seconds": 60,
        "critical_path_seconds": None,
        "processor_seconds": 2800,
        "run_time_seconds": {"smallest": 100, "median": 200, "mean": 200, "largest": 300},
        "processors": {"smallest": 4, "median": 6, "mean": 6, "largest": 8},
        "edge_bytes": 0,
    }


@on_both
@pytest.mark.usefixtures("cluster")
def test_a_workflow_is_called_what_its_file_says(client: TestClient, backend: Database) -> None:
    assert upload(client, json.dumps(FLOW), WFFORMAT).status_code == 201
    [item] = items(client)
    assert (item["execution"], item["trace"]["edges"], item["trace"]["critical_path_seconds"]) == ("toy-flow", 1, 30)
    same(read_wfformat([json.dumps(FLOW)]).trace, stored(backend)["toy-flow"])


@pytest.mark.usefixtures("cluster")
def test_the_same_trace_again_is_a_duplicate_and_another_under_its_name_is_refused(client: TestClient) -> None:
    first = upload(client, LOG, SWF).json()
    again = upload(client, LOG.replace("\n", "\r\n"), SWF).json()  # what it says counts, not how it is written
    assert (first["accepted"], again["accepted"], again["duplicate"]) == (1, 0, 1)
    [item] = items(client)
    assert item["execution"].startswith("trace-")
    other = upload(client, LOG.replace(" 60 ", " 61 "), SWF, item["execution"])
    assert other.status_code == 422
    assert other.json()["errors"][0]["message"] == "is stored with other content"


@pytest.mark.parametrize("reported", [True, False])
@pytest.mark.usefixtures("cluster")
def test_gzip_is_unpacked_whether_it_is_told_or_not(client: TestClient, reported: bool) -> None:
    headers = {"Content-Encoding": "gzip"} if reported else {}
    for body, media in ((LOG, SWF), (json.dumps(FLOW), WFFORMAT)):
        assert upload(client, gzip.compress(body.encode()), media, **headers).status_code == 201
    assert [item["iterations"] for item in items(client)] == [2, 2]


@pytest.mark.parametrize(
    ("body", "media", "pointer", "message"),
    [
        (LOG.replace("60 -1 300", "60 -1 -300"), SWF, "/lines/5/runtime", "must be a number of seconds from 0"),
        (LOG.replace("2 60", "1 60"), SWF, "/lines/5/job", "job 1 has been given on line 4 already"),
        (LOG.replace("1 0 ", "1 70 "), SWF, "/lines/5/submit", "submit times must ascend"),
        (LOG.replace("8 -1 -1 8", "9 -1 -1 9"), SWF, "/lines/5/processors", "must be at most 8, the processors of the"),
        (LOG.replace(" -1 -1 4 200 -1", " -1 -1 4 200 20000000"), SWF, "/lines/4/memory", "must be at most 64 GB"),
        (LOG[:90], SWF, "/lines/4", "must have 18 columns"),
        (json.dumps(FLOW).replace('["a"]', '["z"]'), WFFORMAT, "/workflow/tasks/1/parents/0", "must be the id of a"),
        (json.dumps(FLOW).replace('["a"]', '["b"]'), WFFORMAT, "/workflow/tasks/1/parents", "the tasks wait for each"),
        (json.dumps(FLOW).replace('"cores": 2', '"cores": 9'), WFFORMAT, "/workflow/tasks/1/cores", "must be at most"),
        (json.dumps(FLOW)[:-3], WFFORMAT, "/workflow/tasks", "is not valid JSON: line 1"),
        ("", SWF, "", "holds no job"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("cluster")
def test_a_bad_trace_is_refused_with_line_or_pointer(
    client: TestClient, body: str, media: str, pointer: str, message: str
) -> None:
    answer = upload(client, body, media)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    [error] = answer.json()["errors"]
    assert error["pointer"] == pointer
    assert error["message"].startswith(message)
    assert message[:20] in answer.json()["detail"]
    assert items(client) == []


@pytest.mark.usefixtures("cluster")
def test_one_trace_is_exported_by_accept(client: TestClient, backend: Database) -> None:
    upload(client, LOG, SWF, "log")
    as_swf = exported(client, SWF)
    assert as_swf.headers["content-type"].partition(";")[0] == SWF
    again = read_swf(as_swf.text.splitlines())
    same(stored(backend)["log"], again.trace)
    assert (again.name, again.machines) == ("log", (8,))
    as_flow = exported(client, f"{WFFORMAT}, application/json;q=0.5")
    assert read_wfformat([as_flow.text]).trace.runtime.tolist() == [100, 300]


@pytest.mark.usefixtures("cluster")
def test_of_several_traces_one_is_named(client: TestClient) -> None:
    nothing = exported(client, SWF)
    assert (nothing.status_code, nothing.json()["errors"][0]["pointer"]) == (422, "/query/execution")
    upload(client, LOG, SWF, "log")
    upload(client, json.dumps(FLOW), WFFORMAT)
    many = exported(client, SWF)
    assert many.status_code == 422
    assert "the workload has 2" in many.json()["detail"]
    assert [json.loads(exported(client, WFFORMAT, execution="toy-flow").text)["name"]] == ["toy-flow"]
    assert [item["execution"] for item in items(client, execution="log")] == ["log"]
    assert exported(client, SWF, execution="none").status_code == 404


@pytest.mark.usefixtures("cluster")
def test_each_kind_has_its_own_formats(client: TestClient, workload: str) -> None:
    wrong = upload(client, "execution\n", "text/csv")
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (415, "/header/content-type")
    assert "application/x-swf, application/vnd.wfformat+json for a workload of kind workflow" in wrong.json()["detail"]
    other = client.post(f"/workloads/{workload}/samples", content=LOG, headers={"Content-Type": SWF})
    assert other.status_code == 415
    assert exported(client, "text/csv").status_code == 406
    path = f"/workloads/{workload}/samples"
    assert client.get(path, headers={"Accept": SWF}).status_code == 406
    named = client.post(path, params={"execution": "x"}, content="a", headers={"Content-Type": "text/csv"})
    assert (named.status_code, named.json()["errors"][0]["pointer"]) == (422, "/query/execution")


def test_a_trace_larger_than_the_limit_is_refused(settings: Settings, database: Database) -> None:
    small = TestClient(create_app(settings.model_copy(update={"trace_limit_bytes": 400}), database))
    node = {"name": "big", "processors": 8, "maximum": 1}
    small.post("/workloads", json={"name": "cluster", "kind": "workflow", "nodes": [node]})
    assert upload(small, LOG, SWF).status_code == 201
    for body in (LOG + ";" * 300, gzip.compress((LOG + ";" * 4000).encode())):
        answer = upload(small, body, SWF)
        assert (answer.status_code, "400 bytes" in answer.text or "at most 400" in answer.text) == (413, True)


def test_a_real_log_goes_in_and_out(client: TestClient, backend: Database, shared_data: Path) -> None:
    node = {"name": "sp2", "processors": 100, "maximum": 1}
    client.post("/workloads", json={"name": "cluster", "kind": "workflow", "nodes": [node]})
    path = shared_data / "swf/KTH-SP2-1996-2.swf.gz"
    answer = upload(client, path.read_bytes(), SWF, "kth")
    assert (answer.status_code, answer.json()["iterations"]) == (201, 28_481)
    trace = read_swf(path).trace
    same(trace, stored(backend)["kth"])
    same(trace, read_swf(exported(client, SWF).text.splitlines()).trace)
