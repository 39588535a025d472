"""Trace ids: the caller's are taken over where they are well-formed, and go with a job to its worker."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.database.engine import Database
from app.database.tables import Job
from app.settings import Settings
from app.telemetry.logs import JsonFormatter, began, current, working
from workers.tasks.base import RunningJob, perform

TOUR = Path(__file__).parents[3] / "docs/tour"
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize("sampled", [True, False])
def test_a_callers_trace_goes_on(sampled: bool) -> None:
    result = began(f"00-{TRACE}-{SPAN}-0{int(sampled)}")
    assert (result.trace_id, result.parent_id, result.sampled) == (TRACE, SPAN, sampled)
    assert result.span_id != SPAN
    assert began(result.traceparent).parent_id == result.span_id


def test_a_later_versions_trace_is_read_as_far_as_it_is_known() -> None:
    assert began(f"cc-{TRACE}-{SPAN}-01-what-comes").trace_id == TRACE


@pytest.mark.parametrize(
    "header",
    [
        "",
        None,
        TRACE,
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{TRACE}-{SPAN}-0١",
        "x" * 100_000,
    ],
)
def test_what_is_malformed_begins_a_new_trace(header: str | None) -> None:
    result = began(header)
    assert result.trace_id != TRACE
    assert (len(result.trace_id), len(result.span_id), result.parent_id) == (32, 16, "")


def test_ids_hold_within_and_not_beyond() -> None:
    with working(began(None), "a job"):
        context = current()
        assert context is not None
        assert context.job == "a job"
    assert current() is None


def test_a_jobs_worker_goes_on_with_the_trace_of_who_asked_for_it(
    client: TestClient, database: Database, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    client.post("/workloads", json=json.loads((TOUR / "workload.json").read_text()))
    samples = (TOUR / "samples.csv").read_bytes()
    client.post("/workloads/resnet18/samples", content=samples, headers={"Content-Type": "text/csv"})
    header = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
    answer = client.post("/workloads/resnet18/models", json={}, headers=header)
    assert answer.status_code == 202, answer.text
    job_id = answer.json()["id"]
    with database.reading() as session:
        traceparent = session.scalar(select(Job.traceparent).where(Job.id == job_id))
    assert traceparent is not None
    assert traceparent.split("-")[1] == TRACE
    formatter, lines = JsonFormatter(), list[dict[str, object]]()

    class Reading(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(formatter.format(record)))

    reading = Reading()
    logging.getLogger("workers").addHandler(reading)
    caplog.set_level(logging.INFO, "workers")
    try:
        perform(database, settings, job_id, _refused)
    finally:
        logging.getLogger("workers").removeHandler(reading)
    assert {(line["trace_id"], line["job"]) for line in lines} == {(TRACE, job_id)}
    assert [line["step"] for line in lines if "step" in line] == ["begun", "failed"]
    assert lines[-1]["type"] == "fit"
    assert len({line["span_id"] for line in lines}) == 1


def _refused(_: RunningJob) -> None:
    raise LookupError("nothing to fit")
