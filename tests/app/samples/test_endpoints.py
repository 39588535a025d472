"""Samples over HTTP: what is accepted, what is refused with line and field, listing and export."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.main import create_app
from app.samples.body import FORMATS
from app.settings import Settings
from app.workloads import service as workloads
from tests.app.both import on_both
from tests.app.samples.bodies import HEADER, csv_of, report, sample, upload_csv


def upload(client: TestClient, workload: str, text: str | bytes, media_type: str, **headers: str) -> Any:
    return client.post(f"/workloads/{workload}/samples", content=text, headers={"Content-Type": media_type, **headers})


def ndjson(client: TestClient, workload: str, *samples: Any) -> Any:
    lines = [line if isinstance(line, str) else json.dumps(line) for line in samples]
    return upload(client, workload, "\n".join(lines), "application/x-ndjson")


def counts(answer: Any) -> tuple[int, int, int, int]:
    body = answer.json()
    return body["accepted"], body["duplicate"], body["rejected"], body["iterations"]


def names(client: TestClient, workload: str) -> list[str]:
    return [item["execution"] for item in client.get(f"/workloads/{workload}/samples?limit=500").json()["items"]]


@on_both
def test_csv_is_stored_and_listed(client: TestClient, workload: str) -> None:
    answer = upload_csv(client, workload, csv_of({"a": 3, "b": 90}))
    assert (answer.status_code, counts(answer)) == (201, (2, 0, 0, 93))
    listed = client.get(f"/workloads/{workload}/samples").json()["items"]
    assert [(item["execution"], item["iterations"], item["source"]) for item in listed] == [
        ("a", 3, "upload"),
        ("b", 90, "upload"),
    ]
    assert listed[0]["seconds"] == pytest.approx(3 * 31.5 + 3)
    assert listed[0]["reports"] is None


@on_both
def test_the_same_again_is_a_duplicate(client: TestClient, workload: str) -> None:
    body = csv_of({"a": 3, "b": 4})
    assert counts(upload_csv(client, workload, body)) == (2, 0, 0, 7)
    again = upload_csv(client, workload, body)
    assert (again.status_code, counts(again)) == (201, (0, 2, 0, 0))
    mixed = upload_csv(client, workload, csv_of({"b": 4, "c": 1}))
    assert counts(mixed) == (1, 1, 0, 1)
    assert names(client, workload) == ["a", "b", "c"]


@on_both
def test_other_content_under_a_stored_name_is_refused(client: TestClient, workload: str) -> None:
    upload_csv(client, workload, csv_of({"a": 3}))
    answer = upload_csv(client, workload, csv_of({"x": 1}) + csv_of({"a": 3}, seconds=9.0).removeprefix(HEADER))
    assert counts(answer) == (1, 0, 1, 1)
    assert answer.json()["rejections"] == [
        {"execution": "a", "line": 3, "field": "/execution", "reason": "is stored with other content", "value": "a"}
    ]
    stored = client.get(f"/workloads/{workload}/samples?reports=true").json()["items"][0]
    assert stored["reports"][0]["metrics"] == {"iteration_seconds": 31.5}


def test_columns_may_stand_in_any_order(client: TestClient, workload: str) -> None:
    body = (
        "\ufefffeature.batch,iteration,execution,metric.iteration_seconds,allocation.gpus\r\n"
        '64,0,"run, the first",12.5,2\r\n\r\n64,1,"run, the first",12.25,3\r\n'
    )
    assert counts(upload_csv(client, workload, body)) == (1, 0, 0, 2)
    item = client.get(f"/workloads/{workload}/samples?reports=true").json()["items"][0]
    assert item["execution"] == "run, the first"
    assert item["reports"][1] == {
        "iteration": 1,
        "allocation": {"gpus": 3},
        "metrics": {"iteration_seconds": 12.25},
        "features": {"batch": 64},
        "segments": [],
        "change_seconds": 0.0,
    }


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ("a,1,4,nan,128", "/metrics/iteration_seconds"),
        ("a,1,4,inf,128", "/metrics/iteration_seconds"),
        ("a,1,4,-1,128", "/metrics/iteration_seconds"),
        ("a,1,4,0,128", "/metrics/iteration_seconds"),
        ("a,1,4,fast,128", "/metrics/iteration_seconds"),
        ("a,1,4,1_000,128", "/metrics/iteration_seconds"),
        ("a,1,4,,128", "/metrics/iteration_seconds"),
        ("a,1,4.5,31,128", "/allocation/gpus"),
        ("a,1,17,31,128", "/allocation/gpus"),
        ("a,1,-inf,31,128", "/allocation/gpus"),
        ("a,1,4,31,0", "/features/batch"),
        ("a,1,4,31,1e9", "/features/batch"),
        ("a,3,4,31,128", "/iteration"),
        ("a,0,4,31,128", "/iteration"),
        ("a,1.5,4,31,128", "/iteration"),
        ("a,1,4,31", ""),
        ("a,1,4,31,128,7", ""),
        ('a,1,4,31,"128', ""),
    ],
)
def test_a_bad_row_refuses_its_execution_with_line_and_field(
    client: TestClient, workload: str, row: str, field: str
) -> None:
    answer = upload_csv(client, workload, csv_of({"z": 2}) + f"a,0,4,31,128\n{row}\na,2,4,31,128\nb,0,4,31,128\n")
    assert (answer.status_code, counts(answer)) == (201, (2, 0, 1, 3))
    rejection = answer.json()["rejections"][0]
    assert (rejection["execution"], rejection["line"], rejection["field"]) == ("a", 5, field)
    assert rejection["reason"]
    assert names(client, workload) == ["z", "b"]


def test_when_nothing_can_be_accepted_the_problem_names_lines_and_fields(client: TestClient, workload: str) -> None:
    answer = upload_csv(client, workload, HEADER + "a,0,4,nan,128\nb,0,99,1,128\n")
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    result = {error["pointer"]: error["value"] for error in answer.json()["errors"]}
    assert result == {"/lines/2/metrics/iteration_seconds": "nan", "/lines/3/allocation/gpus": 99}
    assert "/lines/2/metrics/iteration_seconds" in answer.json()["detail"]
    document = json.dumps({"samples": [sample("a"), sample("a", report(), report(allocation={"gpus": 99}))]})
    refused = upload(client, workload, document.replace('"a"', '""'), "application/json").json()
    assert [error["pointer"] for error in refused["errors"]] == ["/samples/0/execution", "/samples/1/execution"]


@pytest.mark.parametrize(
    ("media", "body", "pointer"),
    [
        ("application/json", '{"samples": [], "samples": [' + json.dumps(sample("a")) + "]}", "/samples"),
        ("application/json", '{"samples": [{"execution": "b", ' + json.dumps(sample("a"))[1:] + "]}",
         "/samples/0/execution"),
        ("application/x-ndjson", json.dumps(sample("a")).replace('"gpus": 4', '"gpus": 4, "gpus": 8'),
         "/lines/1/reports/0/allocation/gpus"),
    ],
)  # fmt: skip
def test_what_is_named_twice_is_refused(client: TestClient, workload: str, media: str, body: str, pointer: str) -> None:
    answer = upload(client, workload, body, media)
    assert (answer.status_code, [error["pointer"] for error in answer.json()["errors"]]) == (422, [pointer])
    assert names(client, workload) == []


@pytest.mark.parametrize(
    ("header", "pointer"),
    [
        ("execution,iteration,allocation.gpus,metric.iteration_seconds", "/header/feature.batch"),
        ("execution,iteration,allocation.cpus,metric.iteration_seconds,feature.batch", "/header/allocation.cpus"),
        (HEADER.strip() + ",metric.loss", "/header/metric.loss"),
        (HEADER.strip() + ",iteration", "/header/iteration"),
        ("", "/header/execution"),
        ('"execution', "/header/execution"),
        ("run-1,0,4,31.5,128", "/header/run-1"),
    ],
)
def test_a_malformed_header_is_422(client: TestClient, workload: str, header: str, pointer: str) -> None:
    answer = upload_csv(client, workload, f"{header}\na,0,4,31.5,128\n")
    assert answer.status_code == 422
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]
    assert names(client, workload) == []


@on_both
def test_an_execution_in_two_blocks_is_refused_and_nothing_of_it_kept(client: TestClient, workload: str) -> None:
    body = csv_of({"a": 3, "b": 2}) + "a,3,4,31,128\n" + "c,0,4,31,128\na,0,4,31,128\n"
    answer = upload_csv(client, workload, body)
    assert counts(answer) == (2, 0, 1, 3)
    assert answer.json()["rejections"][0]["line"] == 7
    assert names(client, workload) == ["b", "c"]


@on_both
def test_blocks_far_apart_are_still_taken_back(client: TestClient, workload: str) -> None:
    between = {f"between-{i:04}": 1 for i in range(1200)}
    body = csv_of({"a": 3, **between}) + "a,0,4,99,128\n"
    answer = upload_csv(client, workload, body)
    assert counts(answer) == (1200, 0, 1, 1200)
    assert "contiguous" in answer.json()["rejections"][0]["reason"]
    assert "a" not in names(client, workload)


def test_executions_that_begin_later_come_back_as_they_were_exported(client: TestClient, workload: str) -> None:
    late = csv_of({"a": 3}).replace("a,0,", "a,40,").replace("a,1,", "a,41,").replace("a,2,", "a,42,")
    assert counts(upload_csv(client, workload, late)) == (1, 0, 0, 3)
    exported = client.get(f"/workloads/{workload}/samples", headers={"Accept": "text/csv"}).text
    assert counts(upload_csv(client, workload, exported)) == (0, 1, 0, 0)
    reports = [report(iteration=50), report(), report(iteration=52)]
    assert counts(ndjson(client, workload, {"execution": "b", "reports": reports})) == (1, 0, 0, 3)
    items = client.get(f"/workloads/{workload}/samples?reports=true").json()["items"]
    assert [[one["iteration"] for one in item["reports"]] for item in items] == [[40, 41, 42], [50, 51, 52]]


@pytest.mark.parametrize(
    ("iterations", "field"),
    [((88, 89, 90), "/iteration"), ((90,), "/reports/0/iteration"), ((5, 7), "/reports/1/iteration")],
)
def test_iterations_beyond_the_workload_and_gaps_are_refused(
    client: TestClient, workload: str, iterations: tuple[int, ...], field: str
) -> None:
    reports = [report(iteration=one) for one in iterations]
    answer = ndjson(client, workload, {"execution": "b", "reports": reports}, {"execution": "c", "reports": [report()]})
    assert answer.json()["rejections"][0]["field"] == field
    assert names(client, workload) == ["c"]


def test_more_iterations_than_the_workload_has_are_refused(client: TestClient, workload: str) -> None:
    answer = upload_csv(client, workload, csv_of({"long": 91, "right": 90}))
    assert counts(answer) == (1, 0, 1, 90)
    rejection = answer.json()["rejections"][0]
    assert (rejection["line"], rejection["field"], rejection["execution"]) == (92, "/iteration", "long")


@on_both
@pytest.mark.parametrize("name", ["Größe 1", "実行 №7", "run;drop table", "🚀", "x" * 255])
def test_any_printable_unicode_names_an_execution(client: TestClient, workload: str, name: str) -> None:
    assert counts(upload_csv(client, workload, csv_of({name: 2}))) == (1, 0, 0, 2)
    assert names(client, workload) == [name]
    assert counts(ndjson(client, workload, sample(f"{name[:-1]}+"))) == (1, 0, 0, 1)


@on_both
@pytest.mark.parametrize("name", ["", "x" * 256, "a\u0000b", "tab\there", "\u202e"])
def test_a_name_that_cannot_be_is_refused(client: TestClient, workload: str, name: str) -> None:
    for answer in (upload_csv(client, workload, csv_of({name: 1})), ndjson(client, workload, sample(name))):
        assert (answer.status_code, answer.json()["errors"][0]["pointer"][-10:]) == (422, "/execution")


@on_both
def test_bytes_that_are_no_unicode_refuse_their_execution_alone(client: TestClient, workload: str) -> None:
    body = HEADER.encode() + b"\xff\xfe,0,4,31,128\nb,0,4,31,128\n"
    answer = upload_csv(client, workload, body)
    assert counts(answer) == (1, 0, 1, 1)
    assert answer.json()["rejections"][0]["field"] == "/execution"


@on_both
def test_ndjson_is_stored(client: TestClient, workload: str) -> None:
    answer = ndjson(client, workload, sample("a", report(), report(iteration=1)), "", sample("b"))
    assert (answer.status_code, counts(answer)) == (201, (2, 0, 0, 3))
    assert names(client, workload) == ["a", "b"]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (sample("a", report(), report(metrics={"iteration_seconds": -1})), "/reports/1/metrics/iteration_seconds"),
        (sample("a", report(metrics={"iteration_seconds": float("nan")})), "/reports/0/metrics/iteration_seconds"),
        (sample("a", report(metrics={"iteration_seconds": float("inf")})), "/reports/0/metrics/iteration_seconds"),
        (sample("a", report(metrics={"iteration_seconds": 1, "loss": 2})), "/reports/0/metrics/loss"),
        (sample("a", report(metrics={})), "/reports/0/metrics/iteration_seconds"),
        (sample("a", report(allocation={"gpus": 4.5})), "/reports/0/allocation/gpus"),
        (sample("a", report(allocation={"gpus": 64})), "/reports/0/allocation/gpus"),
        (sample("a", report(allocation={"tpus": 4})), "/reports/0/allocation/tpus"),
        (sample("a", report(features={"batch": 9999})), "/reports/0/features/batch"),
        (sample("a", report(), report(iteration=2)), "/reports/1/iteration"),
        (sample("a", report(speed=1)), "/reports"),
        (sample("a", report(metrics={"iteration_seconds": "fast"})), "/reports"),
        ({"execution": "a", "reports": []}, "/reports"),
        ({"execution": "a"}, ""),
        ({"execution": 7, "reports": [report()]}, "/execution"),
        ('{"execution": "a", "reports": [', ""),
        ("[]", ""),
        ("nonsense", ""),
        ("[" * 100_000, ""),
        ('{"execution": "a", "reports": [{"allocation": {"gpus": 1e999}}]}', "/reports/0/allocation/gpus"),
    ],
)
def test_a_bad_line_of_ndjson_is_refused_with_its_number_and_field(
    client: TestClient, workload: str, bad: Any, field: str
) -> None:
    answer = ndjson(client, workload, sample("before"), bad, sample("after"))
    assert (answer.status_code, counts(answer)) == (201, (2, 0, 1, 2))
    rejection = answer.json()["rejections"][0]
    assert rejection["line"] == 2
    assert rejection["field"].startswith(field)
    assert names(client, workload) == ["before", "after"]


def test_json_holds_many_samples(client: TestClient, workload: str) -> None:
    body = json.dumps({"samples": [sample("a"), sample("b", report(allocation={"gpus": 99})), sample("c")]})
    answer = upload(client, workload, body, "application/json; charset=utf-8")
    assert (answer.status_code, counts(answer)) == (201, (2, 0, 1, 2))
    assert answer.json()["rejections"][0]["line"] == 2


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ("{", ""),
        ("[]", ""),
        ('{"samples": 7}', "/samples"),
        ('{"sample": []}', ""),
        ('{"samples": [' + "[" * 100_000, ""),
        ('{"samples": [' + "[" * 100_000 + "]" * 100_000 + "]}", ""),
        ('{"samples": [{"execution": "a", "reports": [{"allocation": {"gpus": NaN}}]}]}', "/samples/0/reports/0"),
    ],
)
def test_json_that_is_no_list_of_samples_is_422(client: TestClient, workload: str, body: str, pointer: str) -> None:
    answer = upload(client, workload, body, "application/json")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith(pointer)


@pytest.mark.parametrize("media_type", ["text/csv", "application/x-ndjson", "application/json"])
def test_an_empty_body_is_422(client: TestClient, workload: str, media_type: str) -> None:
    empty = {"text/csv": HEADER, "application/json": '{"samples": []}'}.get(media_type, "\n")
    for body in ("", empty):
        assert upload(client, workload, body, media_type).status_code == 422


@pytest.mark.parametrize("media_type", ["application/xml", "text/plain", "multipart/form-data", ""])
def test_another_content_type_is_415(client: TestClient, workload: str, media_type: str) -> None:
    answer = upload(client, workload, csv_of({"a": 1}), media_type)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (415, "/header/content-type")
    assert "text/csv" in answer.json()["detail"]


def test_gzip_is_unpacked_also_in_several_members(client: TestClient, workload: str) -> None:
    body = gzip.compress(csv_of({"a": 3}).encode()) + gzip.compress(csv_of({"b": 2}).removeprefix(HEADER).encode())
    answer = upload_csv(client, workload, body, **{"Content-Encoding": "gzip"})
    assert (answer.status_code, counts(answer)) == (201, (2, 0, 0, 5))
    packed = gzip.compress(json.dumps(sample("c")).encode())
    again = upload(client, workload, packed, "application/x-ndjson", **{"Content-Encoding": "gzip"})
    assert counts(again) == (1, 0, 0, 1)
    untold = gzip.compress(json.dumps({"samples": [sample("d")]}).encode())
    assert counts(upload(client, workload, untold, "application/json")) == (1, 0, 0, 1)


def test_gzip_that_ends_early_keeps_only_whole_executions(client: TestClient, workload: str) -> None:
    packed = gzip.compress(csv_of({f"run-{i}": 90 for i in range(300)}).encode(), compresslevel=0)
    answer = upload_csv(client, workload, packed[: len(packed) // 2], **{"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    items = client.get(f"/workloads/{workload}/samples?limit=500").json()["items"]
    assert 100 < len(items) < 200
    assert {item["iterations"] for item in items} == {90}
    assert f"the {len(items)} executions accepted before it are kept" in answer.json()["detail"]


def test_what_is_no_gzip_is_refused(client: TestClient, workload: str) -> None:
    answer = upload_csv(client, workload, csv_of({"a": 1}), **{"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/header/content-encoding")
    other = upload_csv(client, workload, csv_of({"a": 1}), **{"Content-Encoding": "br"})
    assert other.status_code == 415


def test_a_hundred_megabytes_of_json_are_413(client: TestClient, workload: str) -> None:
    def body() -> Iterator[bytes]:
        yield b'{"samples": ['
        for _ in range(100):
            yield b" " * (1 << 20)

    for content in (body(), b" " * (100 << 20)):
        headers = {"Content-Type": "application/json"}
        answer = client.post(f"/workloads/{workload}/samples", content=content, headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")


def test_a_packed_body_is_measured_unpacked(settings: Settings, client: TestClient, workload: str) -> None:
    settings.upload_limit_bytes = 100_000
    answer = upload_csv(
        client,
        workload,
        gzip.compress(csv_of({f"run-{i}": 90 for i in range(500)}).encode()),
        **{"Content-Encoding": "gzip"},
    )
    assert answer.status_code == 413
    assert "100,000" in answer.json()["detail"]


def test_a_line_without_end_is_refused(client: TestClient, workload: str) -> None:
    answer = upload_csv(client, workload, csv_of({"a": 2, "b": 1}) + "9" * 100_000)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/lines/5")
    assert names(client, workload) == ["a"]


def test_an_idempotency_key_is_bound_to_its_body(client: TestClient, workload: str) -> None:
    body = csv_of({f"run-{i}": 90 for i in range(500)})
    first, again = (upload_csv(client, workload, body, **{"Idempotency-Key": "up-1"}) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert counts(first) == counts(again) == (500, 0, 0, 45_000)
    assert again.headers["idempotent-replayed"] == "true"
    other = upload_csv(client, workload, csv_of({"other": 1}), **{"Idempotency-Key": "up-1"})
    assert (other.status_code, other.json()["errors"][0]["pointer"]) == (422, "/header/Idempotency-Key")
    refused = upload_csv(client, workload, HEADER + "a,0,99,1,1\n", **{"Idempotency-Key": "up-2"})
    assert refused.status_code == 422
    assert counts(upload_csv(client, workload, csv_of({"a": 1}), **{"Idempotency-Key": "up-2"})) == (1, 0, 0, 1)


@on_both
def test_samples_page_through_in_order(client: TestClient, workload: str) -> None:
    expected = [f"run-{i:03}" for i in range(23)]
    upload_csv(client, workload, csv_of(dict.fromkeys(expected, 2)))
    visited, link = [], f"/workloads/{workload}/samples?limit=10&reports=true"
    while link:
        page = client.get(link).json()
        assert all(len(item["reports"]) == 2 for item in page["items"])
        visited += [item["execution"] for item in page["items"]]
        link = page["next"]
    assert visited == expected


@on_both
def test_an_export_can_be_uploaded_again(client: TestClient, workload: str, spec: dict[str, Any]) -> None:
    awkward = {"plain": 3, "with, comma": 2, "Größe": 1, **{f"run-{i}": 1 for i in range(247)}}
    body = "".join(f'"{name}",{i},4,{0.1 + i / 3},128\n' for name, n in awkward.items() for i in range(n))
    assert counts(upload_csv(client, workload, HEADER + body))[0] == 250
    formulas = ["=1+1", "a;@b", "'-1"]
    samples = [sample(name, report(metrics={"iteration_seconds": 3})) for name in formulas]
    assert client.post(f"/workloads/{workload}/samples", json={"samples": samples}).json()["accepted"] == 3
    answer = client.get(f"/workloads/{workload}/samples", headers={"Accept": "text/csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.text.count("\n") == 257
    assert [line for line in answer.text.split("\n") if line.startswith(("=", "+", "-", "@"))] == []
    assert "\n'=1+1,0,4,3,128\na;'@b,0,4,3,128\n''-1,0,4,3,128\n" in answer.text
    assert counts(upload_csv(client, workload, answer.text)) == (0, 253, 0, 0)
    client.post("/workloads", json={**spec, "name": "copy"})
    assert counts(upload_csv(client, "copy", answer.text))[0] == 253


def test_json_is_answered_unless_csv_is_preferred(client: TestClient, workload: str) -> None:
    for accept in ("*/*", "application/json, text/csv;q=0.5", "text/html", "application/json, text/csv;q=0\u00b2"):
        answer = client.get(f"/workloads/{workload}/samples", headers=[(b"Accept", accept.encode("latin-1"))])
        assert answer.headers["content-type"] == "application/json"
    empty = client.get(f"/workloads/{workload}/samples", headers={"Accept": "text/csv, */*;q=0.1"})
    assert empty.text == HEADER


@on_both
def test_an_upload_whose_workload_goes_meanwhile_is_404(backend: Database, client: TestClient, workload: str) -> None:
    def body() -> Iterator[bytes]:
        yield csv_of({"a": 2}).encode()
        workloads.delete(backend, "default", workload)
        yield csv_of({"b": 2}).removeprefix(HEADER).encode()

    answer = client.post(f"/workloads/{workload}/samples", content=body(), headers={"Content-Type": "text/csv"})
    assert answer.status_code == 404


def test_the_application_documents_all_formats(settings: Settings) -> None:
    operation = create_app(settings).openapi()["paths"]["/workloads/{workload}/samples"]["post"]
    assert set(operation["requestBody"]["content"]) == set(FORMATS)
    assert {"201", "400", "404", "413", "415", "422", "503"} <= set(operation["responses"])
