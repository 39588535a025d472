"""``steward import requests``: what it tells, what it hands over, and its exit status."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from app.cli.main import cli
from app.database.engine import Database
from app.kinds.inference.example import BATCHES, SPEC
from app.kinds.inference.layout import Layout
from app.kinds.inference.spec import InferenceSpec
from tests.app.cli.remote.fitting_worker import FittingWorker, played_service
from tests.app.kinds.inference.runs import model

Invoke = Callable[..., tuple[int, str, str]]
LOG = "time,user\n" + "".join(f"{1_700_000_000 + i / 4},{'shop' if i % 4 else 'archive'}\n" for i in range(240))
ROWS = ["variant,batch,server,seconds", *(",".join(map(str, one.values())) for one in BATCHES)]
REPORT = {
    "family": "affine",
    "metrics": {"seconds": {"mape": 0.042, "naive_mape": 0.61, "coverage": 0.93}},
    "arrivals": {"shop": {"per_second": 3.0, "index_of_dispersion": 1.1}},
}


@pytest.fixture
def invoke(tmp_path: Path) -> Invoke:
    """Runs ``steward import requests …`` on the example's spec; exit status, output, complaints."""
    (tmp_path / "vision.json").write_text(json.dumps(SPEC))

    def call(*arguments: object, spec: str = "vision.json") -> tuple[int, str, str]:
        values = ["import", "requests", *map(str, arguments), "--spec", str(tmp_path / spec)]
        result = CliRunner().invoke(cli, values)
        return result.exit_code, result.stdout, result.stderr

    return call


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    log, batches = tmp_path / "monday.csv.gz", tmp_path / "measured.csv"
    log.write_bytes(gzip.compress(LOG.encode()))
    batches.write_text("\n".join(ROWS))
    return [log, batches]


@pytest.fixture
def service(client: TestClient, backend: Database, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """The application behind every address, and a worker that fits at once."""
    data = model(Layout(InferenceSpec.model_validate(SPEC))).to_bytes()
    return played_service(client, FittingWorker(backend, data, REPORT), monkeypatch)


def test_people_are_told_what_is_in_their_files(invoke: Invoke, files: list[Path]) -> None:
    status, output, complaints = invoke(*files, "--check")
    assert (status, complaints) == (0, "")
    for words in (
        "240 requests over 59.8 seconds from 2023-11-14 22:13:20 UTC",
        "shop: 180, 3.01 a second",
        "32 measured batches",
        "resnet18: 16, of 1, 2, 4, 8 on cpu",
    ):
        assert words in output


def test_all_is_registered_uploaded_and_fitted_and_once_only(
    invoke: Invoke, files: list[Path], service: TestClient
) -> None:
    status, output, complaints = invoke(*files)
    assert status == 0, output + complaints
    assert "registered: workload vision" in output
    assert "uploaded: execution monday\nuploaded: execution measured" in output
    assert "off by 4.2% (the mean of their variant by 61.0%); 93% within the 90 % interval" in " ".join(output.split())
    selection = {one["execution"]: one for one in service.get("/workloads/vision/samples").json()["items"]}
    assert selection["monday"]["requests"]["count"] == 240
    assert selection["measured"]["batches"]["count"] == 32
    status, output, _ = invoke(*files)
    assert status == 0
    assert "workload vision is there already\nthere already: execution monday" in output
    assert "nothing new: model 1 stands" in output
    assert len(service.get("/workloads/vision/models").json()["items"]) == 1


def test_another_spec_of_that_name_is_told_and_not_taken(
    invoke: Invoke, files: list[Path], service: TestClient
) -> None:
    assert service.post("/workloads", json={**SPEC, "queue_limit": 7}).status_code == 201
    status, output, _ = invoke(*files)
    assert (status, "is there already, with another spec: that one is kept" in output) == (0, True)
    assert service.get("/workloads/vision").json()["spec"]["queue_limit"] == 7


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.csv", "time,user\n1,shop\n2,nobody\n", "line 3, user: unknown user; known: shop, archive, not 'nobody'"),
        ("a.csv", "time,user\n2,shop\n1,shop\n", "line 3, time: must not be less than the time before it, not"),
        ("a.csv", "when,user\n", "line 1, when: unknown column"),
        ("a.csv", "variant,batch,seconds\nresnet18,1,0\n", "line 2, seconds: "),
        ("a.csv", "time,user\n1,shop,3\n", "line 2: must have 2 cells, as the header, not 3"),
        ("a.csv", "", "line 1: the body is empty"),
        ("a.ndjson", '{"time": 1, "user": "shop"}\n{"time": }\n', "line 2"),
        ("a.txt", "time,user\n", "the name must end in .csv, .ndjson, .jsonl"),
        ("a.csv.gz", "\x1f\x8bno", "is broken gzip"),
    ],
)
def test_what_cannot_be_right_is_told_with_its_line(
    invoke: Invoke, tmp_path: Path, name: str, text: str, complaint: str
) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    status, _, complaints = invoke(tmp_path / name)
    assert status == 1
    assert complaint in complaints
    assert complaints.startswith(str(tmp_path / name))


def test_two_files_of_one_name_are_told_before_anything_is_sent(invoke: Invoke, files: list[Path]) -> None:
    other = files[0].with_name("measured.ndjson")
    other.write_text('{"time": 1, "user": "shop"}')
    status, _, complaints = invoke(*files, other, "--check")
    assert status == 1
    assert complaints == f"{other}: would be execution 'measured', as {files[1]} would: rename one of them\n"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("{", "Invalid JSON: EOF while parsing an object at line 1 column 1"),
        (json.dumps({**SPEC, "batches": [4, 2]}), "/batches: Value error, batch sizes must ascend"),
        (json.dumps({**SPEC, "kind": "workflow"}), "/kind: Input should be 'inference', not 'workflow'"),
        (json.dumps({k: v for k, v in SPEC.items() if k != "users"}), "/users: Field required"),
    ],
)
def test_a_spec_that_is_none_is_told(
    invoke: Invoke, files: list[Path], tmp_path: Path, spec: str, complaint: str
) -> None:
    (tmp_path / "other.json").write_text(spec)
    status, output, complaints = invoke(*files, spec="other.json")
    assert (status, output) == (1, "")
    assert complaint in complaints


def test_without_a_service_what_is_in_the_files_is_told_all_the_same(
    invoke: Invoke, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused", request=request)

    client = httpx.Client(base_url="http://there", transport=httpx.MockTransport(refused))
    monkeypatch.setattr("app.cli.remote.service.httpx.Client", lambda **_: client)
    status, output, complaints = invoke(*files)
    assert (status, "240 requests" in output, "start one with `steward serve`" in complaints) == (3, True, True)


def test_a_file_that_is_not_there_is_misuse(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke(tmp_path / "none.csv")[0] == 2
