"""``steward import``: what it prints, writes and uploads, and its exit status."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from rich.console import Console
from typer.testing import CliRunner

from app.cli.main import cli
from app.kinds.workflow.commands.import_traces import Options, run
from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.formats.wfformat import read_wfformat
from tests.app.kinds.workflow.traces import same
from tests.app.samples.test_traces import FLOW, LOG, items

Invoke = Callable[..., tuple[int, str, str]]


@pytest.fixture
def invoke() -> Invoke:
    """Runs ``steward import …``; exit status, output, complaints."""

    def call(*arguments: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(cli, ["import", *map(str, arguments)])
        return result.exit_code, result.stdout, result.stderr

    return call


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "toy.swf.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    return path


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    path = tmp_path / "flow.json"
    path.write_text(json.dumps(FLOW))
    return path


@pytest.fixture
def service(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """The application behind every address; with a workload ``cluster`` of 8 processors."""
    node = {"name": "big", "processors": 8, "minimum": 1, "maximum": 1}
    client.post("/workloads", json={"name": "cluster", "kind": "workflow", "nodes": [node]})

    monkeypatch.setattr(client, "close", lambda: None)  # it serves several commands
    monkeypatch.setattr("app.cli.remote.service.httpx.Client", lambda **_: client)
    return client


def test_people_are_told_what_is_in_a_log(invoke: Invoke, log: Path) -> None:
    status, output, complaints = invoke("swf", log)
    assert (status, complaints) == (0, "")
    for words in (
        "toy.swf.gz (Toy)",
        "2 jobs of 2 users; 1 left out",
        "from 2001-09-09 01:46:40 UTC",
        "median 200 s, mean 200 s, largest 300 s",
        "recorded on 1 machine with 8 processors; load 583.3%",
        "lacks: no job has memory",
        "warning: line 6, runtime: 1 line of jobs without a run time left out; this is the first (-1.0)",
    ):
        assert words in output


def test_programs_are_told_the_same_of_every_file(invoke: Invoke, log: Path, flow: Path) -> None:
    status, output, _ = invoke("swf", log, log, "--json", "--clip")
    first, again = json.loads(output)
    assert status == 0
    assert first == again
    assert (first["tasks"], first["dropped"], first["users"], first["machines"]) == (2, 1, 2, [8])
    assert first["run_time_seconds"]["largest"] == 200  # cut to its estimate
    assert first["warnings"][0] == {
        "pointer": "/lines/6/runtime",
        "message": "1 line of jobs without a run time left out; this is the first",
        "value": -1.0,
    }
    [reported] = json.loads(invoke("wfformat", flow, "--json")[1])
    assert (reported["edges"], reported["critical_path_seconds"], reported["name"]) == (1, 30, "toy-flow")


def test_a_bad_file_is_named_with_its_line_and_the_others_are_read(invoke: Invoke, log: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.swf"
    bad.write_text(LOG.replace("1 0 ", "1 70 "))
    status, output, complaints = invoke("swf", bad, log)
    assert status == 1
    assert "bad.swf: line 5, submit: submit times must ascend, but line 4" in complaints
    assert "--sort sorts them" in complaints
    assert "2 jobs" in output
    assert invoke("swf", bad, "--sort")[0] == 0
    status, output, _ = invoke("swf", bad, log, "--json")
    assert status == 1
    assert [[error["pointer"] for error in reported.get("errors", [])] for reported in json.loads(output)] == [
        ["/lines/5/submit"],
        [],
    ]


def test_a_task_larger_than_the_largest_node_is_refused(invoke: Invoke, log: Path, flow: Path) -> None:
    assert invoke("swf", log, "--processors", 8)[0] == 0
    status, _, complaints = invoke("swf", log, "--processors", 7)
    assert status == 1
    assert "line 5, processors: must be at most 7, the processors of the largest node (8)" in complaints
    status, _, complaints = invoke("wfformat", flow, "--processors", 1)
    assert "/workflow/tasks/1/cores: must be at most 1" in complaints


def test_what_was_read_is_written_in_either_format(invoke: Invoke, log: Path, flow: Path, tmp_path: Path) -> None:
    same_again, turned = tmp_path / "out" / "again.swf.gz", tmp_path / "flow.swf"
    assert invoke("swf", log, "--export", same_again)[0] == 0
    same(read_swf(log).trace, read_swf(same_again).trace)
    status, output, _ = invoke("wfformat", flow, "--export", turned, "--to", "swf")
    assert status == 0
    assert "without names of tasks: jobs are numbered from 1; the bytes that go along edges" in output
    assert "; Note: left out: the bytes that go along edges" in turned.read_text()
    assert read_swf(turned, preceding=True).trace.parents.tolist() == [0]
    back = tmp_path / "log.json"
    assert invoke("swf", log, "--export", back, "--to", "wfformat")[0] == 0
    assert read_wfformat(back).trace.names == ("1", "2")
    assert json.loads(back.read_text())["description"].startswith("Left out: submit times")


def test_what_was_read_is_uploaded(invoke: Invoke, service: TestClient, log: Path, flow: Path) -> None:
    status, output, _ = invoke("swf", log, "--workload", "cluster", "--clip")
    assert status == 0
    assert "uploaded: execution toy of workload cluster" in output
    assert "was there already: execution toy" in invoke("swf", log, "--workload", "cluster", "--clip")[1]
    [reported] = json.loads(invoke("wfformat", flow, "--workload", "cluster", "--name", "f", "--json")[1])
    assert reported["uploaded"] == {"workload": "cluster", "execution": "f", "duplicate": False}
    assert [(item["execution"], item["seconds"]) for item in items(service)] == [("toy", 300), ("f", 30)]


def test_what_the_service_refuses_is_told(invoke: Invoke, service: TestClient, log: Path) -> None:
    status, _, complaints = invoke("swf", log, "--workload", "nobody")
    assert status == 5
    assert "no workload 'nobody'" in complaints
    status, _, complaints = invoke("swf", log, "--workload", "cluster", "--name", "x" * 300)
    assert status == 1


def test_what_is_in_a_file_is_told_before_what_was_refused(service: TestClient, log: Path) -> None:
    both = Console(record=True, width=200, file=io.StringIO())
    options = Options("swf", [log], {}, None, None, "swf", "nobody", None, "http://127.0.0.1:1")
    assert run(options, both, both) == 5
    export_text = both.export_text()
    assert export_text.index("lacks:") < export_text.index("no workload 'nobody'")


def test_a_workflow_is_no_batch_log(invoke: Invoke, flow: Path) -> None:
    for options in ((), ("--skip-bad",)):
        status, _, complaints = invoke("swf", flow, *options)
        assert status == 1
        reported = (
            "is JSON, not a log in Standard Workload Format; `steward import wfformat` reads workflows in WfFormat"
        )
        assert complaints.strip().splitlines() == [f"{flow}: {reported}"]


def test_without_a_service_the_status_is_3(invoke: Invoke, log: Path) -> None:
    status, output, complaints = invoke("swf", log, log, "--workload", "w", "--url", "http://127.0.0.1:1", "--json")
    assert status == 3
    assert "no answer from http://127.0.0.1:1" in complaints
    assert len(json.loads(output)) == 1  # the second file is not tried


@pytest.mark.parametrize(
    "arguments", [["swf"], ["swf", "nowhere.swf"], ["swf", "LOG", "--to", "x"], ["swf", "LOG", "LOG", "--name", "x"]]
)
def test_misuse_has_a_status_of_its_own(invoke: Invoke, log: Path, arguments: list[str]) -> None:
    assert invoke(*[log if word == "LOG" else word for word in arguments])[0] == 2


def test_a_real_workflow_is_summed_up(invoke: Invoke, shared_data: Path) -> None:
    status, output, _ = invoke("wfformat", shared_data / "wfinstances/makeflow/blast-chameleon-small-001.json.gz")
    assert status == 0
    assert "43 tasks" in output
    assert "critical path 10.4 s of 382.9 processor seconds" in output


def test_bad_lines_are_left_out_and_told(invoke: Invoke, log: Path, service: TestClient) -> None:
    log.write_text(LOG + "3 4\n4 5\n")
    status, _, complaints = invoke("swf", log)
    assert status == 1
    assert "must have 18 columns, has 2 (3 4); --skip-bad leaves it out" in complaints
    status, output, _ = invoke("swf", log, "--skip-bad")
    assert status == 0
    assert "; 3 left out" in output
    assert "skipped: 2 lines (7, 8): must have 18 columns" in output
    [reported] = json.loads(invoke("swf", log, "--skip-bad", "--json", "--workload", "cluster")[1])
    assert reported["skipped"] == [{"field": "", "reason": "must have 18 columns", "count": 2, "lines": [7, 8]}]
    assert reported["uploaded"]["duplicate"] is False
