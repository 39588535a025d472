"""``steward_client.Run``: against the application in this process, and against a service that is away at times."""

import copy
import json
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
import steward_client as steward
from fastapi.testclient import TestClient
from steward_client import Client, QueueRun, Retry, Run, StewardError, Unreachable
from steward_client.answers import PROBLEM, document

from app.kinds.workflow.example import SPEC as CLUSTER_EXAMPLE
from tests.batched import SPEC as EXAMPLE

Handler = Callable[[httpx.Request], httpx.Response]


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now, self.pauses = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)

    def retry(self, patience_seconds: float = 60.0) -> Retry:
        return Retry(patience_seconds=patience_seconds, sleep=self.sleep, clock=lambda: self.now)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def workload(client: TestClient) -> str:
    answer = client.post("/workloads", json=EXAMPLE)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["name"])


def through(handler: Handler) -> Client:
    """A generated client that sends everything to ``handler``."""
    client = Client(base_url="http://steward")
    return client.set_httpx_client(httpx.Client(base_url="http://steward", transport=httpx.MockTransport(handler)))


@pytest.fixture
def forwarded(client: TestClient) -> Handler:
    """Hands requests on to the application in this process."""

    def forward(request: httpx.Request) -> httpx.Response:
        request.read()
        headers = {k: v for k, v in request.headers.items() if k not in ("host", "content-length")}
        answer = client.request(request.method, request.url.raw_path.decode(), content=request.content, headers=headers)
        return httpx.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)

    return forward


def refused(status: int, detail: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """A problem document of the service's."""
    body = {"type": f"/problems/http-{status}", "title": "no", "status": status, "detail": detail}
    return httpx.Response(status, headers={**(headers or {}), "content-type": PROBLEM}, content=json.dumps(body))


class Flaky:
    """Loses requests, answers or asks to come again, as ``plan`` says, before it passes requests on."""

    def __init__(self, handler: Handler, *plan: str) -> None:
        self.handler, self.plan, self.requests = handler, list(plan), list[httpx.Request]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        event = self.plan.pop(0) if self.plan else "pass"
        if event == "refuse":
            raise httpx.ConnectError("connection refused", request=request)
        if event == "lose the answer":
            self.handler(request)
            raise httpx.ReadError("connection lost", request=request)
        if event == "in flight":
            return refused(409, "in flight", {"retry-after": "1"})
        if event == "come at a time":
            times = {"date": "Sun, 06 Nov 1994 08:49:37 GMT", "retry-after": "Sun, 06 Nov 1994 08:49:49 GMT"}
            return httpx.Response(503, headers=times)
        if event == "busy":
            return refused(503, "restarting", {"retry-after": "7"})
        return self.handler(request)


def metrics(seconds: float) -> dict[str, float]:
    return {"iteration_seconds": seconds}


def state_of(client: TestClient, run: str) -> dict[str, Any]:
    body: dict[str, Any] = client.get(f"/runs/{run}").json()
    return body


def test_a_run_may_ask_for_a_probability_of_its_own(client: TestClient, workload: str, forwarded: Handler) -> None:
    request = {"iteration_seconds": 0.9}
    with Run(through(forwarded), workload, probabilities=request) as run:
        assert state_of(client, run.id)["start"]["probabilities"] == request


def outcome(client: TestClient, run: Run) -> tuple[str, str | None]:
    state = state_of(client, run.id)
    return state["outcome"], state["outcome_reason"]


def test_a_run_is_started_reported_and_finished(client: TestClient, workload: str, forwarded: Handler) -> None:
    with Run(through(forwarded), workload, features={"batch": 128}) as run:
        allocation = run.allocation
        for iteration in range(3):
            assert run.iteration == iteration
            allocation = run.report(iteration, allocation, metrics(30.0 + iteration), {"batch": 128})
            assert set(allocation) == {"gpus"}
            assert run.decision.reason.text
    state = state_of(client, run.id)
    assert (state["state"], state["iterations"]) == ("finished", 3)


def test_an_exception_fails_the_run_and_comes_through(client: TestClient, workload: str, forwarded: Handler) -> None:
    run = Run(through(forwarded), workload)
    with pytest.raises(ZeroDivisionError), run:
        raise ZeroDivisionError
    assert outcome(client, run) == ("failed", "ZeroDivisionError")


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (ValueError("loss is NaN"), ("failed", "ValueError: loss is NaN")),
        (ValueError("\ud800\0" + "x" * 1_000), ("failed", "ValueError: ?\N{REPLACEMENT CHARACTER}" + "x" * 485 + "…")),
        (KeyboardInterrupt(), ("cancelled", "interrupted (KeyboardInterrupt)")),
        (CancelledError(), ("cancelled", "interrupted (CancelledError)")),
        (SystemExit(3), ("failed", "SystemExit: 3")),
        (SystemExit(0), ("completed", "no iteration was reported")),
    ],
    ids=repr,
)
def test_a_run_ends_by_what_happened_in_its_block(
    client: TestClient, workload: str, forwarded: Handler, error: BaseException, ends: tuple[str, str]
) -> None:
    run, beside = Run(through(forwarded), workload), Run(through(forwarded), workload).start()
    with pytest.raises(type(error)), run:
        raise error
    assert outcome(client, run) == ends
    assert state_of(client, beside.id)["state"] == "running"


def test_a_run_that_was_ended_inside_stays_so(client: TestClient, workload: str, forwarded: Handler) -> None:
    with Run(through(forwarded), workload) as failed:
        failed.fail("no space left")
    assert outcome(client, failed) == ("failed", "no space left")
    with Run(through(forwarded), workload) as cancelled:
        cancelled.cancel()
    assert outcome(client, cancelled) == ("cancelled", None)


def test_a_run_is_resumed_by_another_launcher(workload: str, forwarded: Handler) -> None:
    first = Run(through(forwarded), workload).start()
    decision = first.report(0, first.allocation, metrics(30), {"batch": 1})
    again = Run.resume(through(forwarded), first.id)
    assert (again.iteration, again.allocation, again.workload) == (1, decision, workload)
    assert set(again.report(1, decision, metrics(29), {"batch": 1})) == {"gpus"}


def test_a_lost_answer_costs_no_report_and_starts_no_second_run(
    client: TestClient, workload: str, forwarded: Handler, clock: Clock
) -> None:
    flaky = Flaky(forwarded, "lose the answer", "pass", "lose the answer", "lose the answer", "pass")
    with Run(through(flaky), workload, retry=clock.retry()) as run:
        run.report(0, run.allocation, metrics(30), {"batch": 1})
    keys = {request.headers["idempotency-key"] for request in flaky.requests if request.method == "POST"}
    assert len(keys) == 1
    assert [e["iteration"] for e in client.get(f"/runs/{run.id}/iterations").json()["items"]] == [0]
    assert len(clock.pauses) == 3


def test_pauses_grow_and_retry_after_is_obeyed(workload: str, forwarded: Handler, clock: Clock) -> None:
    flaky = Flaky(forwarded, "refuse", "refuse", "refuse", "refuse", "busy")
    Run(through(flaky), workload, retry=clock.retry()).start()
    *growing, requested = clock.pauses
    assert growing == sorted(growing)
    assert 0.05 <= growing[0] <= 0.1
    assert requested == 7


def test_a_start_that_is_still_in_flight_is_waited_for(workload: str, forwarded: Handler, clock: Clock) -> None:
    flaky = Flaky(forwarded, "lose the answer", "in flight", "in flight", "pass")
    run = Run(through(flaky), workload, retry=clock.retry()).start()
    assert run.id
    assert len({request.headers["idempotency-key"] for request in flaky.requests}) == 1
    assert all(pause >= 1 for pause in clock.pauses[1:])


def test_another_conflict_is_final(workload: str, forwarded: Handler, clock: Clock) -> None:
    run = Run(through(forwarded), workload, retry=clock.retry(), refusals="raise").start()
    with pytest.raises(StewardError, match="gap") as raised:
        run.report(5, run.allocation, metrics(30), {"batch": 1})
    assert (raised.value.status, clock.pauses) == (409, [])


def test_retry_after_may_be_a_time(workload: str, forwarded: Handler, clock: Clock) -> None:
    Run(through(Flaky(forwarded, "come at a time")), workload, retry=clock.retry()).start()
    assert clock.pauses == [12]


def test_patience_ends_with_the_reason(clock: Clock) -> None:
    flaky = Flaky(lambda _: httpx.Response(200), *["busy"] * 100)
    with pytest.raises(Unreachable, match="restarting") as raised:
        Run(through(flaky), "w", retry=clock.retry(patience_seconds=20)).start()
    assert isinstance(raised.value.__cause__, StewardError)
    assert clock.now <= 20


def test_a_refusal_is_not_repeated_and_names_the_field(workload: str, forwarded: Handler, clock: Clock) -> None:
    flaky = Flaky(forwarded)
    run = Run(through(flaky), workload, retry=clock.retry(), refusals="raise").start()
    with pytest.raises(StewardError, match="gpus") as raised:
        run.report(0, {"gpus": 99}, metrics(30), {"batch": 1})
    assert raised.value.status == 422
    assert raised.value.errors[0]["pointer"] == "/allocation/gpus"
    assert clock.pauses == []


@pytest.mark.parametrize("refusals", ["raise", "log"])
def test_what_an_older_service_does_not_have_is_left_out_and_said_once(
    client: TestClient, workload: str, forwarded: Handler, caplog: pytest.LogCaptureFixture, refusals: Any
) -> None:
    bodies = list[set[str]]()

    def older(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.read() or b"{}")
        if request.method == "PUT":
            bodies.append(set(body))
            if "requested" in body:
                error = {"pointer": "/requested", "message": "extra field; known: allocation, metrics", "value": {}}
                problem = {"type": "/problems/invalid", "title": "Invalid input", "status": 422, "errors": [error]}
                return httpx.Response(422, headers={"content-type": PROBLEM}, content=json.dumps(problem))
        return forwarded(request)

    requested = {"allocation": {"gpus": 8}, "state": "refused", "since": "2026-01-01T12:00:00Z", "reason": "Resources"}
    with Run(through(older), workload, refusals=refusals) as run, Run(through(forwarded), workload) as newer:
        for iteration in range(2):
            for one in (run, newer):
                one.report(iteration, {"gpus": 4}, metrics(10.0), {"batch": 128}, requested=requested)
        assert ["requested" in body for body in bodies] == [True, False, False]
        assert [len(client.get(f"/runs/{one.id}/iterations").json()["items"]) for one in (run, newer)] == [2, 2]
        granted = [state_of(client, one.id)["decision"].get("granted") for one in (run, newer)]
        assert [one and one["state"] for one in granted] == [None, "refused"]
    getMessages = [record.getMessage() for record in caplog.records if "requested" in record.getMessage()]
    assert getMessages == [f"run {run.id}: requested is not sent: the service's version has no such"]


def test_a_proxys_page_is_waited_out_and_named(clock: Clock) -> None:
    with pytest.raises(Unreachable, match="404 Not Found: <h1>nothing"):
        Run(through(lambda _: httpx.Response(404, text="<h1>nothing here</h1>")), "w", retry=clock.retry()).start()
    assert 30.0 < clock.now <= 60.0


def test_a_run_that_was_not_started_says_so(forwarded: Handler) -> None:
    with pytest.raises(RuntimeError, match="not been started"):
        _ = Run(through(forwarded), "w").allocation


def test_failing_a_run_hides_no_error_while_the_service_is_away(
    workload: str, forwarded: Handler, clock: Clock
) -> None:
    flaky = Flaky(forwarded, "pass", *["refuse"] * 100)
    with pytest.raises(KeyError), Run(through(flaky), workload, retry=clock.retry(patience_seconds=600)):
        raise KeyError("mine")
    assert clock.now <= 5


def test_the_generated_core_calls_the_application(forwarded: Handler) -> None:
    from steward_client.generated.api.workloads import read_workload, register_workload
    from steward_client.generated.models import IterativeSpec, Problem, WorkloadRead

    core = through(forwarded)
    spec = IterativeSpec.from_dict(copy.deepcopy(EXAMPLE))
    registered = register_workload.sync(client=core, body=spec)
    assert isinstance(registered, WorkloadRead)
    assert registered.spec.to_dict()["resources"][0]["maximum"] == 16
    missing = read_workload.sync("nobody", client=core)
    assert isinstance(missing, Problem)
    assert missing.status == 404
    assert json.dumps(missing.to_dict())


def test_the_generated_core_uploads_files_of_every_format(
    client: TestClient, workload: str, forwarded: Handler
) -> None:
    from steward_client.generated.api.samples import upload_samples
    from steward_client.generated.models import UploadRead
    from steward_client.generated.types import File

    csv = b"execution,iteration,allocation.gpus,metric.iteration_seconds,feature.batch\na,0,4,31.5,128\n"
    report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 9.5}, "features": {"batch": 1}}
    sample = {"execution": "b", "reports": [report]}
    lines = File(BytesIO(json.dumps(sample).encode() + b"\n"), mime_type="application/x-ndjson")
    for body in (File(BytesIO(csv)), lines):
        sync = upload_samples.sync(workload, client=through(forwarded), body=body, idempotency_key=str(body.mime_type))
        assert isinstance(sync, UploadRead), sync
        assert sync.accepted == 1


def test_a_queue_is_reported_and_placed(client: TestClient, forwarded: Handler) -> None:
    assert client.post("/workloads", json=CLUSTER_EXAMPLE).status_code == 201
    with QueueRun(through(forwarded), str(CLUSTER_EXAMPLE["name"])) as run:
        decision = run.report(0.0, queued=[{"id": "align", "processors": 4, "estimate": 600.0}])
        assert decision.iteration == 1
        for node in decision.nodes.start:
            run.report(1.0, nodes=[{"name": node, "state": "on"}])
        (placement,) = run.decision.placements or decision.placements
        assert placement.task == "align"
        again = QueueRun.resume(through(forwarded), run.id)
        assert (again.iteration, again.decision) == (run.iteration, run.decision)
        run.report(2.0, running=[{"id": "align", "node": placement.node, "start": 1.0}])
        with pytest.raises(StewardError, match="now"):
            run.report(1.0)
    assert client.get(f"/runs/{run.id}").json()["state"] == "finished"


def test_a_run_announces_the_features_of_the_iterations_ahead(
    client: TestClient, workload: str, forwarded: Handler
) -> None:
    ahead = [{"batch": 64.0}, {"batch": 256.0}]
    with Run(through(forwarded), workload, features={"batch": 128}, upcoming=ahead, refusals="raise") as run:
        run.report(0, run.allocation, metrics(30.0), {"batch": 128}, upcoming=ahead)
        run.report(1, run.allocation, metrics(30.0), {"batch": 64})
        with pytest.raises(StewardError, match="/upcoming/1/features/batch"):
            run.report(2, run.allocation, metrics(30.0), {"batch": 256}, upcoming=[{"batch": 1}, {"batch": 9999}])
        pages = client.get(f"/runs/{run.id}/iterations").json()["items"]
    assert pages[0]["report"]["upcoming"] == [{"features": one} for one in ahead]
    assert "upcoming" not in pages[1]["report"]


def test_who_waits_for_a_service_that_is_away_is_told_so_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    nobody = through(Flaky(lambda request: httpx.Response(500, request=request), *["refuse"] * 99))
    with pytest.raises(Unreachable):
        clock.retry(patience_seconds=5).call(nobody.get_httpx_client(), "GET", "/", document)
    assert caplog.messages == []  # whoever waits for so little says it himself
    with pytest.raises(Unreachable):
        clock.retry().call(nobody.get_httpx_client(), "GET", "/", document)
    assert caplog.messages == ["no answer of http://steward yet (connection refused); asked for 60 s"]


def test_errors_are_one_tree() -> None:
    own = (steward.StewardError, steward.Unreachable, steward.JobFailed, steward.RejectedRows, steward.JournalError)
    assert all(issubclass(error, steward.ClientError) for error in own)


def test_an_error_tells_each_field_once() -> None:
    field = {"pointer": "/targets/loss", "message": "no target", "value": 2}
    sentence = "/targets/loss: no target (got 2)"
    for detail in (sentence, "2 fields are wrong"):
        text = str(steward.StewardError(422, {"title": "Invalid input", "detail": detail, "errors": [field]}))
        assert text.count(sentence) == 1


def test_a_spec_is_registered_once_however_often(forwarded: Handler, tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    file.write_text(json.dumps({**EXAMPLE, "name": "second"}))
    for _ in range(2):
        assert steward.register(EXAMPLE, through(forwarded)) == EXAMPLE["name"]
        assert steward.register(file, through(forwarded)) == steward.register(str(file), through(forwarded)) == "second"
    with pytest.raises(StewardError, match="registered with another spec") as refused:
        steward.register({**EXAMPLE, "iterations": 7}, through(forwarded))
    assert refused.value.status == 409
    with pytest.raises(OSError, match="nowhere"):
        steward.register(tmp_path / "nowhere.json", through(forwarded))
    file.write_text("{")
    with pytest.raises(ValueError, match="line 1"):
        steward.register(file, through(forwarded))


def test_a_registration_waits_for_a_service_that_is_away(forwarded: Handler, clock: Clock) -> None:
    attempts: list[httpx.Request] = []

    def away(request: httpx.Request) -> httpx.Response:
        attempts.append(request)
        return httpx.Response(503) if len(attempts) < 3 else forwarded(request)

    assert steward.register(EXAMPLE, through(away), retry=clock.retry()) == EXAMPLE["name"]
    assert (len(attempts), len(clock.pauses)) == (3, 2)
