"""Contingencies in the client: applied by time in a thread, and reported as segments."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
import steward_client
from fastapi.testclient import TestClient
from steward_client import Run
from steward_client.reaction import Contingency, Reaction, Timetable
from steward_client.spool import Origin, Spool, StoredReport

from tests.clients.test_run import Handler, forwarded, metrics, through, workload
from tests.servers import wait_until

__all__ = ["forwarded", "workload"]
FIRST, SECOND = Contingency(40.0, {"gpus": 8}, "late"), Contingency(60.0, {"gpus": 16}, "later")


def test_contingencies_are_due_by_time_and_the_latest_of_several_counts() -> None:
    timetable = Timetable({"gpus": 4}, [FIRST, SECOND], began=100.0)
    assert timetable.next_at == 140.0
    assert timetable.due(139.9) is None
    assert timetable.due(140.0) == FIRST
    assert timetable.next_at == 160.0
    late = Timetable({"gpus": 4}, [FIRST, SECOND], began=100.0)
    assert late.due(500.0) == SECOND
    assert late.next_at is None


def test_segments_are_those_until_the_iterations_end() -> None:
    timetable = Timetable({"gpus": 4}, [FIRST, SECOND], began=100.0)
    assert timetable.segments(10.0) == []
    timetable.changed({"gpus": 4}, 130.0)  # nothing changes
    timetable.changed({"gpus": 8}, 140.5)
    timetable.changed({"gpus": 16}, 161.0)
    assert timetable.segments(30.0) == []
    assert timetable.allocation_at_end(30.0) == {"gpus": 4}
    assert [part["seconds"] for part in timetable.segments(50.0)] == [40.5, 9.5]
    assert timetable.allocation_at_end(50.0) == {"gpus": 8}
    whole = timetable.segments(80.0)
    assert [part["allocation"]["gpus"] for part in whole] == [4, 8, 16]
    assert sum(part["seconds"] for part in whole) == pytest.approx(80.0)


def test_an_iteration_that_begins_later_than_the_report_before_it_has_what_was_set_until_then() -> None:
    timetable = Timetable({"gpus": 4}, [FIRST], began=100.0)
    timetable.changed({"gpus": 8}, 112.0)
    assert timetable.segments(10.0, ended=130.0) == []  # 20 s of validation, then 10 s
    assert timetable.allocation_at_end(10.0, ended=130.0) == {"gpus": 8}
    assert [part["seconds"] for part in timetable.segments(25.0, ended=130.0)] == [7.0, 18.0]


def test_the_next_iteration_has_what_was_changed_since_its_beginning() -> None:
    timetable = Timetable({"gpus": 2}, [FIRST], began=100.0)
    timetable.changed({"gpus": 4}, 110.0)
    timetable.changed({"gpus": 8}, 130.0)
    following = timetable.next([SECOND], 120.0)  # its predecessor's end is read at 130 s
    assert following.segments(20.0, 140.0) == [
        {"allocation": {"gpus": 4}, "seconds": 10.0},
        {"allocation": {"gpus": 8}, "seconds": 10.0},
    ]
    assert following.next_at == 180.0
    assert timetable.next([], 130.0).segments(20.0) == []
    assert timetable.next([], 90.0).allocation_at_end(15.0) == {"gpus": 2}, "nothing is known of before"


def test_what_is_due_is_applied_in_a_thread_until_the_iteration_is_over() -> None:
    applied, done = list[Mapping[str, float]](), threading.Event()

    def apply(allocation: Mapping[str, float]) -> None:
        applied.append(allocation)
        done.set()

    soon, never = Contingency(0.05, {"gpus": 8}, "late"), Contingency(3_600.0, {"gpus": 16}, "never")
    with Reaction({"gpus": 4}, [soon, never], apply) as reaction:
        assert done.wait(60)
        wait_until(lambda: reaction.allocation == {"gpus": 8})
    assert applied == [{"gpus": 8}]
    assert [part["allocation"]["gpus"] for part in reaction.segments] == [4, 8]
    assert sum(part["seconds"] for part in reaction.segments) == pytest.approx(reaction.seconds)
    assert not [one for one in threading.enumerate() if one.name == "steward-contingencies"]
    with Reaction({"gpus": 4}, [never], apply) as quick:
        pass
    assert (quick.allocation, quick.segments) == ({"gpus": 4}, [])


def test_what_cannot_be_applied_is_no_segment_and_the_next_is_tried(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    def apply(allocation: Mapping[str, float]) -> None:
        if allocation["gpus"] == 8:
            raise OSError("no room")
        done.set()

    with Reaction(
        {"gpus": 4}, [Contingency(0.01, {"gpus": 8}, ""), Contingency(0.05, {"gpus": 16}, "")], apply
    ) as reaction:
        assert done.wait(60)
        wait_until(lambda: reaction.allocation == {"gpus": 16})
    assert [part["allocation"]["gpus"] for part in reaction.segments] == [4, 16]
    assert "no room" in caplog.text


def with_contingencies(handler: Handler, *result: dict[str, Any]) -> Handler:
    """Adds contingencies to each decision of a service."""

    def answer(request: httpx.Request) -> httpx.Response:
        answered = handler(request)
        if not answered.headers.get("content-type", "").startswith("application/json"):
            return answered
        body = answered.json()
        decision = body.get("decision", body) if isinstance(body, dict) else {}
        if "contingencies" in decision:
            decision["contingencies"] = list(result)
        return httpx.Response(answered.status_code, json=body)

    return answer


def contingency(after: float, **allocation: float) -> dict[str, Any]:
    reason = {"code": "takes_long", "text": "not over"}
    return {"after_seconds": after, "allocation": allocation, "reason": reason}


def test_a_run_reacts_and_reports_its_segments(client: TestClient, workload: str, forwarded: Handler) -> None:
    handler = with_contingencies(forwarded, contingency(0.05, gpus=8), contingency(3_600, gpus=16))
    with Run(through(handler), workload, features={"batch": 128}) as run:
        assert [one.after_seconds for one in run.contingencies] == [0.05, 3_600]
        assert run.allocation != {"gpus": 8}
        with run.react(lambda _: None) as reaction:
            wait_until(lambda: reaction.allocation == {"gpus": 8})
        seconds = metrics(reaction.seconds)
        run.report(0, reaction.allocation, seconds, {"batch": 128}, segments=reaction.segments)
        with run.react(lambda _: None) as quick:
            pass
        run.report(1, quick.allocation, metrics(quick.seconds), {"batch": 128}, segments=quick.segments)
    items = client.get(f"/runs/{run.id}/iterations").json()["items"]
    assert not items[1]["report"].get("segments")
    parts = items[0]["report"]["segments"]
    assert parts[-1]["allocation"] == {"gpus": 8}
    assert sum(part["seconds"] for part in parts) == pytest.approx(items[0]["report"]["metrics"]["iteration_seconds"])


def test_a_training_loop_applies_contingencies_within_its_epochs(
    client: TestClient, workload: str, forwarded: Handler
) -> None:
    handler = with_contingencies(forwarded, contingency(0.05, gpus=8))
    applied = list[Mapping[str, float]]()
    with steward_client.run(workload, through(handler), features={"batch": 128}) as run:
        for epoch in run.epochs(2, apply=applied.append, wait_share=1_000.0):
            epoch.describe(batch=128)
            if epoch.number == 0:
                wait_until(lambda: bool(applied))
    assert applied[0] == {"gpus": 8}
    items = client.get(f"/runs/{run.id}/iterations").json()["items"]
    assert items[0]["report"]["segments"][-1]["allocation"] == {"gpus": 8}
    assert items[0]["report"]["allocation"] == {"gpus": 8}


def test_an_epoch_that_is_left_applies_nothing_any_more(workload: str, forwarded: Handler) -> None:
    handler = with_contingencies(forwarded, contingency(3_600, gpus=8))
    with steward_client.run(workload, through(handler), features={"batch": 128}) as run:
        for epoch in run.epochs(2, apply=lambda _: None):
            assert epoch.number == 0
            assert [one for one in threading.enumerate() if one.name == "steward-contingencies"]
            break
        wait_until(lambda: not [one for one in threading.enumerate() if one.name == "steward-contingencies"])


def test_segments_outlive_the_process(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    origin = Origin("run", "workload", "http://127.0.0.1:8080", True)
    spool = Spool.of(origin)
    parts = [{"allocation": {"gpus": 4}, "seconds": 2.0}, {"allocation": {"gpus": 8}, "seconds": 1.0}]
    spool.keep(StoredReport(0, {"gpus": 4}, {"iteration_seconds": 3.0}, {}))
    spool.keep(StoredReport(1, {"gpus": 8}, {"iteration_seconds": 3.0}, {}, parts))
    spool.close()
    assert [list(one.segments) for one in Spool.of(origin).stored_reports(0)] == [[], parts]
