"""Spans of requests and of their jobs have the ids of the log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app import installed, startup
from app.database.engine import Database
from app.main import create_app
from app.settings import Settings
from app.startup import StartupError
from app.telemetry import spans
from app.telemetry.attributes import ATTRIBUTES
from app.telemetry.logs import began
from tests.app.jobs.test_lease import make
from tests.batched import SPEC
from workers.tasks.base import RunningJob, perform

pytest.importorskip("opentelemetry.sdk")
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Keeps what is exported by this process."""
    exporter = InMemorySpanExporter()
    monkeypatch.setattr(spans, "BatchSpanProcessor", lambda _: SimpleSpanProcessor(exporter))
    spans.of_this_process.cache_clear()
    yield exporter
    spans.of_this_process.cache_clear()


def test_a_request_and_its_job_are_spans_of_one_trace(
    exporter: InMemorySpanExporter, settings: Settings, database: Database
) -> None:
    settings = settings.model_copy(update={"traces": True})
    caller = began(None)
    with TestClient(create_app(settings, database)) as client:
        assert client.get("/jobs", headers={"traceparent": caller.traceparent}).status_code == 200
        assert client.get("/jobs/none").status_code == 404
        job_id = make(database, "a")
        perform(database, settings, job_id, _broken)
    listed, missing, job = exporter.get_finished_spans()
    assert (listed.name, missing.name, job.name) == ("GET /jobs", "GET /jobs/{id}", "job train")
    assert listed.context is not None
    assert listed.parent is not None
    assert f"{listed.context.trace_id:032x}" == caller.trace_id
    assert f"{listed.parent.span_id:016x}" == caller.span_id
    assert missing.parent is None
    assert missing.status.status_code is StatusCode.UNSET
    assert (job.kind, job.status.status_code) == (SpanKind.CONSUMER, StatusCode.ERROR)
    assert job.attributes is not None
    assert (job.attributes["steward.job"], job.attributes["steward.outcome"]) == (job_id, "failed")
    assert job.start_time is not None
    assert job.end_time is not None
    assert job.start_time <= job.end_time


def test_spans_of_runs_carry_decisions_and_outcomes_that_are_documented(
    exporter: InMemorySpanExporter, settings: Settings, database: Database
) -> None:
    settings = settings.model_copy(update={"traces": True})
    with TestClient(create_app(settings, database)) as client:
        for name in ("first", "second"):
            assert client.post("/workloads", json=SPEC | {"name": name}).status_code == 201
        runs = [client.post("/runs", json={"workload": name}).json()["id"] for name in ("first", "second")]
        report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
        decision = client.put(f"/runs/{runs[1]}/iterations/0", json=report).json()
        client.patch(f"/runs/{runs[0]}", json={"state": "failed"})
        client.get("/runs")
    fields = {span.name: dict(span.attributes or {}) for span in exporter.get_finished_spans()}
    reported = fields["PUT /runs/{run}/iterations/{iteration}"]
    assert {name: reported[f"steward.{name}"] for name in ("workload", "run", "iteration", "tenant")} == {
        "workload": "second",
        "run": runs[1],
        "iteration": 1,
        "tenant": "default",
    }
    assert reported["steward.decision.source"] == decision["source"]
    assert reported["steward.decision.reason"] == decision["reason"]["code"]
    assert reported["steward.decision.allocation.gpus"] == decision["allocation"]["gpus"]
    assert (fields["POST /runs"]["steward.workload"], fields["POST /runs"]["steward.iteration"]) == ("second", 0)
    ended = fields["PATCH /runs/{run}"]
    assert (ended["steward.run"], ended["steward.outcome"]) == (runs[0], "failed")
    assert not any(name.startswith("steward.decision") for name in fields["GET /runs"])
    names = {name for one in fields.values() for name in one if name.startswith("steward.")}
    assert {"steward.decision.allocation.<resource>" if ".allocation." in name else name for name in names} <= set(
        ATTRIBUTES
    )


def _broken(_: RunningJob) -> None:
    raise LookupError("nothing there")


def test_a_span_that_its_caller_does_not_want_is_not_exported(exporter: InMemorySpanExporter) -> None:
    caller = began(None)._replace(sampled=False)
    spans.Spans().add("x", began(caller.traceparent), 2.0, 1.0, {})
    assert exporter.get_finished_spans() == ()


def test_a_start_without_the_extra_names_it(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "missing", lambda extra: [extra])
    startup.check_traces(settings)
    with pytest.raises(StartupError, match=r"pip install .*\[otel\]"):
        startup.check_traces(settings.model_copy(update={"traces": True}))
