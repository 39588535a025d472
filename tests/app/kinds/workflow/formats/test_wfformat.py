"""Workflows in WfFormat: what is read of each version, what is said of it, and what is refused."""

from __future__ import annotations

import copy
import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from app.kinds.contract.inputs import InvalidInput
from app.kinds.workflow.formats.reading import Reading
from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.formats.writing import critical_path, wfformat_omits, write_wfformat
from app.kinds.workflow.trace import Trace
from tests.app.kinds.workflow.traces import same, workflows

Json = dict[str, Any]

SPLIT: Json = {
    "name": "toy",
    "schemaVersion": "1.5",
    "workflow": {
        "specification": {
            "tasks": [
                {"name": "split", "id": "t1", "parents": [], "children": ["t2"], "inputFiles": ["in"],
                 "outputFiles": ["a", "b"]},
                {"name": "work", "id": "t2", "parents": ["t1"], "children": [], "inputFiles": ["a"],
                 "outputFiles": ["c"]},
                {"name": "work", "id": "t3", "parents": ["t1"], "children": [], "inputFiles": ["a", "b"]},
                {"name": "join", "id": "t4", "parents": ["t2", "t3"], "children": [], "inputFiles": ["c"]},
            ],
            "files": [{"id": "in", "sizeInBytes": 5}, {"id": "a", "sizeInBytes": 100}, {"id": "b", "sizeInBytes": 20},
                      {"id": "c", "sizeInBytes": 3}],
        },
        "execution": {
            "makespanInSeconds": 90.5,
            "executedAt": "2020-03-20T15:19:28-08:00",
            "tasks": [
                {"id": "t2", "runtimeInSeconds": 20.5, "coreCount": 1.5, "memoryInBytes": 4_000_000},
                {"id": "t1", "runtimeInSeconds": 10, "coreCount": 4, "command": {"program": "split"}},
                {"id": "t3", "runtimeInSeconds": 0.0},
            ],
            "machines": [{"nodeName": "n1", "cpu": {"coreCount": 8}}, {"nodeName": "n2"}],
        },
    },
}  # fmt: skip
FLAT: Json = {
    "name": "toy",
    "schemaVersion": "1.4",
    "workflow": {
        "makespanInSeconds": 90.5,
        "executedAt": "20200320T231928Z",
        "machines": [{"nodeName": "n1", "cpu": {"count": 8, "speed": 1200}}],
        "tasks": [
            {"name": "split", "type": "compute", "runtimeInSeconds": 10, "cores": 4, "files": [
                {"name": "in", "link": "input", "sizeInBytes": 5}, {"name": "a", "link": "output", "sizeInBytes": 100},
                {"name": "b", "link": "output", "sizeInBytes": 20}]},
            {"name": "work_1", "id": "ID2", "parents": ["split"], "runtimeInSeconds": 20.5, "cores": 1.5,
             "memoryInBytes": 4_000_000, "files": [{"name": "a", "link": "input", "sizeInBytes": 100},
                                                   {"name": "c", "link": "output", "sizeInBytes": 3}]},
            {"name": "work_2", "id": "ID3", "parents": ["split"], "runtimeInSeconds": 0.0, "files": [
                {"name": "a", "link": "input", "sizeInBytes": 100}, {"name": "b", "link": "input", "sizeInBytes": 20}]},
            {"name": "join", "id": "ID4", "parents": ["ID2", "work_2"],
             "files": [{"name": "c", "link": "input", "sizeInBytes": 3}]},
        ],
    },
}  # fmt: skip


def read(document: Json) -> Reading:
    return read_wfformat([json.dumps(document)])


def changed(document: Json, *path: str | int, value: Any) -> Json:
    """A document with another value in one place."""
    fresh = copy.deepcopy(document)
    place: Any = fresh
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return fresh


def refused(document: Json) -> list[tuple[str, str, object]]:
    with pytest.raises(InvalidInput) as caught:
        read(document)
    return [tuple(issue) for issue in caught.value.errors]


TASKS = ("workflow", "specification", "tasks")
RUNS = ("workflow", "execution", "tasks")


@pytest.mark.parametrize(("document", "names"), [(SPLIT, "t1 t2 t3 t4"), (FLAT, "split ID2 ID3 ID4")])
def test_both_forms_come_to_the_same_trace(document: Json, names: str) -> None:
    reading = read(document)
    trace = reading.trace
    assert trace.names == tuple(names.split())
    np.testing.assert_array_equal(trace.runtime, [10, 20.5, 0, np.nan])
    assert trace.processors.tolist() == [4, 2, 1, 1]
    np.testing.assert_array_equal(trace.memory, [np.nan, 4e6, np.nan, np.nan])
    assert trace.parent_start.tolist() == [0, 0, 1, 2, 4]
    assert trace.parents.tolist() == [0, 0, 1, 2]
    assert trace.data.tolist() == [100, 120, 3, 0]
    assert trace.submit.tolist() == [0] * 4
    assert trace.group.tolist() == [0] * 4
    assert trace.origin == 1584746368
    assert (reading.name, reading.machines, reading.warnings) == ("toy", (8,), ())
    assert reading.lacks == (
        "1 task of 4 without a run time: they can't be simulated",
        "no task has an estimate: exact run times are planned with",
        "2 tasks of 4 without a core count: they take one processor",
        "3 tasks of 4 without memory: memory does not limit them",
        "1 edge of 4 without data: transfers along it take no time",
        "no task has a user or a submit time: all are submitted at once",
    )


def test_the_order_of_a_documents_parts_does_not_matter() -> None:
    turned = {
        "workflow": {
            "execution": dict(reversed(SPLIT["workflow"]["execution"].items())),
            "specification": dict(reversed(SPLIT["workflow"]["specification"].items())),
        },
        "schemaVersion": "1.6",
        "name": "toy",
    }
    same(read(SPLIT).trace, read(turned).trace)


def test_a_document_cut_anywhere_reads_the_same(tmp_path: Path) -> None:
    text = json.dumps(SPLIT, indent=2, ensure_ascii=False).replace("toy", "тоу ☃").encode()
    whole = read_wfformat([text])
    for size in (1, 2, 3, 7, 64):
        cut = read_wfformat([text[at : at + size] for at in range(0, len(text), size)])
        same(whole.trace, cut.trace)
        assert cut.name == "тоу ☃"
    path = tmp_path / "toy"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text))
    same(whole.trace, read_wfformat(path).trace)


def test_edges_told_at_one_end_only_are_edges() -> None:
    trace = read(changed(SPLIT, *TASKS, 1, "parents", value=[])).trace  # t1 still names t2 among its children
    same(read(SPLIT).trace, trace)


def test_without_any_edge_they_are_taken_from_who_writes_and_reads_files() -> None:
    document = copy.deepcopy(SPLIT)
    for task in document["workflow"]["specification"]["tasks"]:
        task["parents"] = task["children"] = []
    reading = read(document)
    assert reading.trace.parent_start.tolist() == [0, 0, 1, 2, 3]
    assert reading.trace.parents.tolist() == [0, 0, 1]
    assert reading.warnings[0].message.startswith("no task names parents or children: 3 edges")


@pytest.mark.parametrize(
    ("document", "path", "value", "pointer", "message"),
    [
        (SPLIT, (*TASKS, 3, "parents", 1), "t9", "S/3/parents/1", "must be the id of a task"),
        (SPLIT, (*TASKS, 0, "children", 0), "t9", "S/0/children/0", "must be the id of"),
        (SPLIT, (*TASKS, 3, "id"), "t1", "S/3/id", "must be unique; /workflow/specif"),
        (SPLIT, (*TASKS, 2, "id"), 7, "S/2/id", "Input should be a valid string"),
        (SPLIT, (*RUNS, 0, "runtimeInSeconds"), -1, "E/0/runtimeInSeconds", "Input should be gr"),
        (SPLIT, (*RUNS, 0, "runtimeInSeconds"), "9", "E/0/runtimeInSeconds", "Input should be a"),
        (SPLIT, (*RUNS, 0, "coreCount"), 0, "E/0/coreCount", "Input should be greater than 0"),
        (SPLIT, (*RUNS, 0, "id"), "t9", "E/0/id", "must be the id of a task of the spec"),
        (SPLIT, (*RUNS, 0, "id"), "t3", "E/2/id", "must be unique"),
        (SPLIT, ("schemaVersion",), "1.3", "/schemaVersion", "must be one of 1.4, 1.5, 1.6"),
        (SPLIT, ("schemaVersion",), "1.4", "/schemaVersion", "must be 1.5 or 1.6 where the tasks stand in"),
        (SPLIT, ("workflow",), [], "S", "must hold at least one task"),
        (SPLIT, ("workflow",), "x", "/workflow", "must hold a workflow of WfFormat"),
        (FLAT, ("workflow", "tasks", 1, "parents", 0), "x", "F/1/parents/0", "must be the id of a task"),
        (FLAT, ("workflow", "tasks", 1, "id"), "split", "F/1/id", "must be unique; /workflow/tasks/0 has"),
        (FLAT, ("workflow", "tasks", 1, "cores"), -2, "F/1/cores", "Input should be greater than 0"),
        (FLAT, ("workflow", "tasks", 0, "files", 1, "link"), "x", "F/0/files/1/link", "must be input or"),
        (FLAT, ("workflow", "tasks", 1, "files", 0, "sizeInBytes"), 9, "F/1/files/0/sizeInBytes", "file 'a'"),
    ],
)  # fmt: skip
def test_what_no_workflow_can_have_is_refused_with_its_pointer(
    document: Json, path: tuple[str | int, ...], value: object, pointer: str, message: str
) -> None:
    [(result, text, _)] = refused(changed(document, *path, value=value))
    places = {"S": "/workflow/specification/tasks", "E": "/workflow/execution/tasks", "F": "/workflow/tasks"}
    place, _, rest = pointer.partition("/")
    assert result == f"{places.get(place, place)}/{rest}".removesuffix("/")
    assert text.startswith(message)


def test_a_cycle_is_named_task_by_task() -> None:
    document = changed(SPLIT, *TASKS, 0, "parents", value=["t4"])
    [(pointer, message, value)] = refused(document)
    assert message == "the tasks wait for each other in a cycle: t1 → t2 → t4 → t1"
    assert (pointer, value) == ("/workflow/specification/tasks/0/parents", "t4")
    own = changed(FLAT, "workflow", "tasks", 1, "parents", value=["ID2"])
    assert refused(own)[0][1] == "the tasks wait for each other in a cycle: ID2 → ID2"


@pytest.mark.parametrize(
    ("text", "pointer", "message"),
    [
        ('{"name": "x",\n "workflow": {"specification": {"tasks": [{"id": }]}}}', "/workflow/specification/tasks/0",
         "is not valid JSON: line 2, column 50: Expecting value"),
        ('{"name": "x"\n"workflow": 1}', "", "is not valid JSON: line 2, column 1: expected ','"),
        ('{"name": "x"', "", "is not valid JSON: line 1, column 13: expected ','"),
        ('{"name": "x"} {}', "", "is not valid JSON: line 1, column 15: nothing may follow the document"),
        ("", "", "is not valid JSON: line 1, column 1: Expecting value"),
        ("[1, 2]", "/schemaVersion", "must be one of 1.4, 1.5, 1.6"),
        ('{"workflow": {"tasks": [{"name": "a", "cores": NaN}]}}', "/workflow/tasks/0/cores",
         "Input should be a finite number"),
        ("[" * 100_000, "/0", "must be nested at most 64 levels deep"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [3, 10**6])
def test_what_is_not_json_is_refused_with_line_and_column(text: str, pointer: str, message: str, size: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_wfformat([text[at : at + size] for at in range(0, len(text), size)])
    [issue] = caught.value.errors
    assert issue.pointer == pointer
    assert issue.message.startswith(message)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidInput, match="is not UTF-8"):
        read_wfformat([b'{"name": "\xff\xfe"}'])


def test_run_times_longer_than_the_whole_look_like_milliseconds() -> None:
    [warning] = read(changed(SPLIT, *RUNS, 0, "runtimeInSeconds", value=20500)).warnings
    assert (warning.pointer, warning.value) == ("/workflow/execution/tasks/0/runtimeInSeconds", 20500.0)
    assert "longer than the recorded makespan of 90 s: are run times in milliseconds?" in warning.message


def test_tasks_larger_than_the_recorded_machines_are_told() -> None:
    [warning] = read(changed(SPLIT, *RUNS, 1, "coreCount", value=16)).warnings
    assert (warning.pointer, warning.value) == ("/workflow/execution/tasks/1/coreCount", 16)


def test_a_date_that_is_none_is_told_and_ignored() -> None:
    reading = read(changed(SPLIT, "workflow", "execution", "executedAt", value="03-23-21T05:57:15Z"))
    assert [w.pointer for w in reading.warnings] == ["/workflow/execution/executedAt"]
    assert reading.trace.origin == 0


@hypothesis_settings(max_examples=40)
@given(trace=workflows())
def test_what_is_written_reads_back_as_it_was(trace: Trace) -> None:
    reading = read_wfformat(write_wfformat(trace, name="drawn"))
    same(trace, reading.trace)
    assert reading.name == "drawn"
    assert wfformat_omits(trace) == ()


def test_real_workflows_are_read_whole_and_written_back(shared_data: Path) -> None:
    """Tasks, edges, run times and critical paths as an independent reader counted them."""
    folder = shared_data / "wfinstances"
    index = {row["instance"]: row for row in csv.DictReader((folder / "INDEX.csv").read_text().splitlines())}
    files = sorted(folder.glob("*/*.json.gz"))
    assert len(files) >= 20
    for file in files:
        row, trace = index[file.name.removesuffix(".json.gz")], read_wfformat(file).trace
        assert (trace.tasks, len(trace.parents)) == (int(row["tasks"]), int(row["edges"]))
        assert round(trace.runtime.sum(), 1) == float(row["sum_runtime_s"])
        assert critical_path(trace) == pytest.approx(float(row["critical_path_s"]), abs=0.05001)
        same(trace, read_wfformat(write_wfformat(trace)).trace)


def test_a_memory_told_in_kilobytes_is_suspected(shared_data: Path) -> None:
    reading = read_wfformat(shared_data / "wfinstances/helloworld/helloworld-chain-5-chameleon.json.gz")
    [warning] = [w for w in reading.warnings if "kilobytes" in w.message]
    assert warning.value == [86508.0, 87316.0, 87824.0]
