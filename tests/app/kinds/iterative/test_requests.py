"""Requests that are not granted: exclusion with back-off, projections of what is there, and what decisions say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.kinds.contract.caps import Cap
from app.kinds.contract.engine import EncodedDecision, Pending
from app.kinds.contract.inputs import InvalidInput
from app.kinds.engine import RunMemory
from app.kinds.iterative.engine import ENGINE, IterativeServing
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.report import IterationRunStart
from app.kinds.iterative.requests import MOST_DOUBLINGS, MOST_REQUESTS, Request, after_report, excluded, outcome
from tests.answers import all_answered
from tests.app.kinds.iterative import test_phases as phases
from tests.app.kinds.iterative.decisions.deciding import NOW, Scripted, compiled, seconds
from tests.planted import planted_spec

SINCE = "2026-01-01T11:59:00Z"
SPEC = planted_spec(metrics=[{"name": "iteration_seconds", "unit": "s", "target": 230.0, "scope": "run"}])


def request(levels: tuple[int, ...], moved: tuple[int, ...], state: Any = "refused", **more: Any) -> Request:
    return Request(levels, moved, state, SINCE, "quota", **more)


def test_what_asks_for_as_much_of_the_same_resources_is_excluded_until_the_back_off_ends() -> None:
    grid = np.array([[4, 0], [8, 0], [8, 5], [12, 0], [12, 5]])
    more_gpus, less_memory = request((8, 5), (1, 0), until=7), request((8, 1), (0, -1), until=9)
    assert excluded([more_gpus], 6, grid).tolist() == [False, True, True, True, True]
    assert excluded([more_gpus], 7, grid).tolist() == [False] * 5
    assert excluded([less_memory], 8, grid).tolist() == [True, True, False, True, False]
    both = request((8, 1), (1, -1), until=9)
    assert excluded([both], 8, grid).tolist() == [False, True, False, True, False]
    awaits = request((8, 5), (1, 0), "requested", until=9)
    assert excluded([awaits], 8, grid).tolist() == [False] * 5
    assert excluded([more_gpus, less_memory], 6, grid).tolist() == [True, True, True, True, True]


def test_each_refusal_doubles_the_back_off_and_one_that_is_only_repeated_does_not() -> None:
    known: tuple[Request, ...] = ()
    waits, following = list[int](), 1
    for number in range(MOST_DOUBLINGS + 3):
        known, reached = after_report(known, request((8,), (1,)), [4], following, 100.0)
        assert reached == "refused"
        again, reached = after_report(known, request((8,), (1,)), [4], following + 1, 100.0)
        assert (again, reached) == (known, "") or number == 0  # of one iteration: it may have been asked again
        waits.append(known[0].until - following)
        following = known[0].until + 1
    assert waits == [1, 2, 4, 8, 16, 32, 64, 64, 64]
    assert known[0].times == MOST_DOUBLINGS + 3
    (quick,), _ = after_report((), request((8,), (1,)), [4], 1, 2.0)
    assert quick.until == 1 + 30  # a minute of iterations of two seconds
    assert after_report((), request((8,), (1,), "timed_out"), [4], 1, 100.0)[1] == "timed_out"


def test_what_is_there_is_forgotten_and_others_stay() -> None:
    known = (request((8,), (1,), times=2, until=9), request((12,), (1,), times=1, until=5))
    assert after_report(known, None, [4], 3, 1.0) == (known, "")
    assert after_report(known, None, [8], 3, 1.0) == (known[1:], "granted")
    assert after_report(known, None, [12], 3, 1.0) == ((), "granted")
    (waits,), reached = after_report((), request((8,), (1,), "requested"), [4], 1, 1.0)
    assert (reached, waits.times) == ("requested", 0)
    assert after_report((waits,), request((8,), (1,), "requested"), [4], 2, 1.0) == ((waits,), "")
    assert after_report((waits,), None, [8], 2, 1.0) == ((), "granted")
    (refused,), reached = after_report((waits,), request((8,), (1,)), [4], 2, 100.0)
    assert (reached, refused.times, refused.until) == ("refused", 1, 3)
    many: tuple[Request, ...] = ()
    for level in range(20):
        many, _ = after_report(many, request((level + 5,), (1,)), [4], 1, 1.0)
    assert [one.levels for one in many] == [(level + 5,) for level in range(20)][-MOST_REQUESTS:]
    beyond = after_report((request((8,), (1,), until=9),), request((8,), (-1,)), [10], 3, 100.0)
    assert beyond == ((request((8,), (-1,), times=1, until=4),), "refused")  # it was there meanwhile: another refusal


def test_what_decisions_give_up_again_and_again_is_requested_with_back_off() -> None:
    """Near a tie of two allocations decisions change their mind with each measurement."""
    known: tuple[Request, ...] = (request((12,), (1,), until=3, times=1),)
    blocked, following = list[int](), 1
    for _ in range(4):
        known, reached = after_report(known, request((8,), (1,), "requested"), [4], following, 20.0)
        assert reached == "requested"
        known, reached = after_report(known, None, [4], following, 20.0)
        assert reached == ""
        blocked.append(known[-1].until - following)
        assert excluded(known, following, np.array([[8]])).tolist() == [blocked[-1] > 0]
        following += 20
    assert blocked == [0, 3, 6, 12]  # the first time is free, then a minute
    assert known[0] == request((12,), (1,), until=3, times=1)
    assert after_report(known, None, [8], following, 20.0) == (known[:1], "granted"), "it was granted meanwhile"
    (_, refused), reached = after_report(known, request((8,), (1,)), [4], 61, 20.0)
    assert (reached, refused.times, refused.withdrawals, refused.until) == ("refused", 1, 0, 64)


def test_what_was_given_up_is_no_refusal_and_what_earlier_versions_stored_is_read() -> None:
    on = compiled(SPEC)
    given_up = request((10,), (1,), "timed_out", until=5, withdrawals=2)
    text = on.allocation_text
    said = outcome([given_up], np.array([0]), text(0), lambda levels: text(levels[0]), 4, 30)
    assert said.granted is None
    assert said.text == f"{text(10).words} isn't requested before iteration 5"
    stored = msgspec.to_builtins(request((8,), (1,), until=5))
    del stored["withdrawals"]
    assert msgspec.convert(stored, Request) == request((8,), (1,), until=5)


class Launched:
    """A run below a launcher with room for ``most`` executors; ``pending``: more is awaited, not refused."""

    def __init__(self, on: Any, most: float = math.inf, pending: bool = False) -> None:
        self.on, self.most, self.pending, self.granted = on, most, pending, 8.0
        answer = ENGINE.begin(on, "run", IterationRunStart(workload="planted"), NOW)
        self.state, self.decision, self.iteration = answer.state, msgspec.json.decode(answer.decision), 0
        self.requests: list[tuple[int, float]] = []
        self.reached: list[str] = []

    def report(self) -> Pending:
        """The report of the next iteration, at what is granted."""
        wanted, body = self.decision["allocation"]["executors"], dict[str, Any]()
        if wanted <= self.most:
            self.granted = wanted
        elif wanted != self.granted:
            self.requests.append((self.iteration, wanted))
            state = "requested" if self.pending else "refused"
            body = {"requested": {"allocation": {"executors": wanted}, "state": state, "since": SINCE}}
            body["requested"]["reason"] = "quota"
        took = 1.05 * seconds(self.granted)
        body |= {"allocation": {"executors": self.granted}, "metrics": {"iteration_seconds": took}}
        decoded = ENGINE.decode(msgspec.json.encode(body))
        read = ENGINE.read(self.on, self.state, self.iteration, decoded)
        return Pending("run", self.iteration, self.state, read, {}, None)

    def answered(self, answer: EncodedDecision) -> None:
        """Take the decision; the state is stored and restored on the way."""
        stored = msgspec.json.decode(ENGINE.serialise(answer.state))
        self.state, self.decision = ENGINE.restore(stored), msgspec.json.decode(answer.decision)
        self.iteration += 1
        self.risk, self.spending = answer.risk, answer.spending
        if answer.requested:
            self.reached.append(answer.requested)


def drive(runs: list[Launched], iterations: int) -> None:
    """Report this many iterations of all runs, decided together."""
    for _ in range(iterations):
        answers = all_answered(ENGINE.answer(runs[0].on, [one.report() for one in runs], NOW))
        for one, answer in zip(runs, answers, strict=True):
            one.answered(answer)


def test_a_run_plans_with_what_is_there_and_asks_again_with_back_off_while_another_has_all() -> None:
    on = compiled(SPEC)
    bound, free = Launched(on, most=10), Launched(on)
    drive([bound, free], 1)
    result = bound.decision["granted"]
    requested = bound.requests[0][1]
    assert bound.decision["allocation"]["executors"] < requested
    assert result | {"allocation": {"executors": 8.0}, "requested": {"executors": requested}} == result
    assert (result["state"], result["refusals"], result["reason"], result["since"][:19]) == (
        "refused",
        1,
        "quota",
        SINCE[:19],
    )
    again = result["next_request"]
    assert again == 1 + math.ceil(60 / (1.05 * seconds(8)))
    text = f"not granted: {requested:g} executors (refused 1 time, quota); plans with 12 executors, "
    assert bound.decision["reason"]["text"].endswith(f"{text}asks again after iteration {again - 1}")
    assert "granted" not in free.decision
    assert "not granted" not in free.decision["reason"]["text"]
    assert free.granted > 10
    drive([bound, free], 28)
    assert bound.granted == 10, "it settles for what can be had"
    for level in {wanted for _, wanted in bound.requests}:
        times = [iteration for iteration, wanted in bound.requests if wanted == level]
        gaps = np.diff(times)
        assert all(later >= 2 * earlier for earlier, later in pairwise(gaps)), (level, times)
        assert all(gaps >= again), (level, times)
    assert len(bound.requests) < 12, "it hammers"
    assert bound.reached == ["refused"] * len(bound.requests)
    assert bound.risk is not None
    assert "not granted" in bound.risk
    assert free.requests == []
    assert free.risk == ""


def test_what_is_awaited_is_asked_for_on_and_what_is_there_is_projected_and_charged() -> None:
    on = compiled(SPEC)
    waits, free = Launched(on, most=8, pending=True), Launched(on)
    drive([waits, free], 3)
    wanted = waits.decision["allocation"]["executors"]
    assert wanted > 8
    assert waits.decision["granted"]["state"] == "requested"
    assert waits.decision["granted"]["next_request"] is None
    assert waits.decision["delta"]["executors"] == wanted - 8
    assert not waits.decision["noop"]
    predicted = waits.decision["predicted"]["iteration_seconds"]["mean"]
    assert predicted == pytest.approx(1.05 * seconds(8), rel=0.1)
    assert waits.spending is not None
    assert waits.spending.next_seconds == pytest.approx(predicted)
    assert "plans with 8 executors" in waits.decision["reason"]["text"]
    assert "requested since 2026-01-01 11:59:00 UTC, quota" in waits.decision["reason"]["text"]
    assert waits.risk is not None
    assert "not granted" in waits.risk
    assert waits.reached == ["requested"] * 2  # the first, which no step leads to, and the one of the decision
    assert waits.decision["chances"]["iteration_seconds"] < 0.1 < free.decision["chances"]["iteration_seconds"]
    waits.most = math.inf  # room came
    drive([waits, free], 1)
    assert waits.reached[2:] == ["granted"]
    assert f"; granted by now: {wanted:g} executors" in waits.decision["reason"]["text"]
    assert "granted" not in waits.decision
    assert waits.granted == wanted
    assert "not granted" not in waits.risk


def test_what_is_granted_late_after_its_refusal_is_planned_with_and_said() -> None:
    """Such as a resize that Kubernetes could not do, nor anybody take back, until its node grew."""
    on = compiled(SPEC)
    late, bound = Launched(on, most=8), Launched(on, most=8)
    drive([late, bound], 1)
    wanted = late.decision["granted"]["requested"]["executors"]
    assert late.decision["granted"]["next_request"] > 2
    late.granted = late.most = wanted
    late.decision["allocation"]["executors"] = wanted
    drive([late, bound], 1)
    assert late.reached == ["refused", "granted"]
    text = late.decision["reason"]["text"]
    assert f"; granted by now: {wanted:g} executors" in text
    assert "granted" not in late.decision
    assert late.decision["delta"]["executors"] == late.decision["allocation"]["executors"] - wanted
    assert "granted by now" not in bound.decision["reason"]["text"]
    drive([late, bound], 1)
    assert "granted by now" not in late.decision["reason"]["text"], "it is said once"


@pytest.mark.parametrize("policy", [Scripted(8), None])
@pytest.mark.parametrize("rule", ["planted", None])
def test_no_policy_takes_what_is_refused(policy: Scripted | None, rule: str | None) -> None:
    if policy is not None and rule is None:
        pytest.skip("an agent has a model")
    on = compiled(SPEC, rule, policy)
    bound = Launched(on, most=8)
    drive([bound, Launched(on)], 20)
    assert bound.requests
    for level in {wanted for _, wanted in bound.requests}:
        times = [iteration for iteration, wanted in bound.requests if wanted == level]
        assert all(np.diff(times) > 4), (level, times)


def answered_once(on: Any, *bodies: dict[str, Any], caps: Sequence[Cap] = ()) -> list[tuple[EncodedDecision, Any]]:
    """The answers to the first reports of runs that are decided together."""
    pending = []
    for body in bodies:
        state = ENGINE.begin(on, "run", IterationRunStart(workload="planted"), NOW).state
        read = ENGINE.read(on, state, 0, ENGINE.decode(msgspec.json.encode(body)))
        pending.append(Pending("run", 0, state, read, {}, None, caps))
    answers = all_answered(ENGINE.answer(on, pending, NOW))
    return [(one, msgspec.json.decode(one.decision)) for one in answers]


def body_of(state: str, wanted: float, granted: bool = False, **more: Any) -> dict[str, Any]:
    wanted_request = {"allocation": {"executors": wanted}, "state": state, "since": SINCE, **more}
    body = {"allocation": {"executors": 8}, "metrics": {"iteration_seconds": 1.05 * seconds(8)}}
    return {**body, "requested": None if granted else wanted_request}


def test_a_refused_run_plans_with_the_allocation_that_it_asks_for_instead() -> None:
    (_, result), (_, other) = answered_once(compiled(SPEC), body_of("refused", 12), body_of("refused", 9))
    assert result["allocation"] == {"executors": 11}
    assert "plans with 11 executors" in result["reason"]["text"]
    assert other["allocation"] == {"executors": 8}
    assert "plans with 8 executors" in other["reason"]["text"]


def test_a_run_that_waits_is_projected_at_what_is_there_also_where_its_iterations_differ() -> None:
    layout = Layout(phases.spec())
    on = compiled(phases.spec(), phases.table(layout))
    report: dict[str, Any] = {
        "allocation": {"cpu": 40},
        "metrics": {"iteration_seconds": 0.4},
        "features": {"waits": 0},
    }
    report["upcoming"] = [{"features": {"waits": i % 2}} for i in range(23)]
    (_, free), _ = answered_once(on, report, report)
    body = {"allocation": free["allocation"], "state": "requested", "since": SINCE}
    (waits, result), (other, planned) = answered_once(on, {**report, "requested": body}, report)
    assert result["allocation"] == free["allocation"] != report["allocation"]
    assert ", then cpu" in planned["reason"]["text"]
    assert ", then cpu" not in result["reason"]["text"]
    assert waits.spending is not None
    assert other.spending is not None
    ahead = 12 * 0.9 + 11 * (0.03 + 13 / 40)  # of 23 iterations at what is there, of which the first is the next one
    assert waits.spending.next_seconds + waits.spending.rest_seconds == pytest.approx(ahead, rel=0.1)
    assert other.spending.rest_seconds < waits.spending.rest_seconds - 1


def test_what_falls_short_of_a_required_probability_is_asked_for_where_more_is_refused() -> None:
    metric = {"name": "iteration_seconds", "unit": "s", "target": 260.0, "scope": "run", "probability": 0.9}
    on = compiled(planted_spec(metrics=[metric]))
    (_, free), (_, refused) = answered_once(on, body_of("refused", 12, granted=True), body_of("refused", 12))
    assert free["allocation"] == {"executors": 12}
    assert refused["allocation"] == {"executors": 11}


def test_a_run_whose_cap_would_need_what_is_refused_keeps_what_is_there() -> None:
    bodies = body_of("refused", 7), body_of("refused", 7, granted=True)
    (_, result), (_, free) = answered_once(compiled(SPEC), *bodies, caps=[Cap("run", "cost", 0.3)])
    assert free["allocation"] == {"executors": 4}
    assert result["allocation"] == {"executors": 8}
    assert result["reason"]["code"] == free["reason"]["code"] == "cap"
    assert ", then " not in result["reason"]["text"]
    assert "projected to use" in result["reason"]["text"]


def test_a_reason_is_one_printable_line() -> None:
    (answer, result), _ = answered_once(
        compiled(SPEC), body_of("refused", 12, reason="quota\0:\nused\x1b[31m"), body_of("refused", 9)
    )
    assert result["granted"]["reason"] == "quota : used [31m"
    assert answer.risk is not None
    assert answer.risk.isprintable()


def test_where_no_policy_decides_the_decision_says_what_is_not_granted() -> None:
    on, serving = compiled(SPEC), IterativeServing()
    state = serving.begin(on, IterationRunStart(workload="planted"), NOW).state
    for granted in (False, True):
        report = serving.decode(msgspec.json.encode(body_of("refused", 12, granted=granted)))
        read = serving.read(on, state, 0, report)
        result = serving.hold(on, Pending("run", 0, RunMemory(state), read, {}, None), "it failed")
        assert result.requested == ("" if granted else "refused")
        assert ("not granted: 12 executors" in result.reason["text"]) is not granted
        assert (result.granted is None) is granted


def test_requests_count_as_memory() -> None:
    (answer, _), (other, _) = answered_once(compiled(SPEC), body_of("refused", 12), body_of("refused", 9, granted=True))
    assert ENGINE.weight(answer.state) >= ENGINE.weight(other.state) + 500


def test_a_state_of_before_has_no_requests() -> None:
    on = compiled(SPEC)
    run = Launched(on)
    drive([run, Launched(on)], 2)
    own, *_ = stored = msgspec.json.decode(ENGINE.serialise(run.state))
    assert len(own) == 5
    assert ENGINE.restore(stored).state.requests == ()


@pytest.mark.parametrize(
    ("values", "pointer"),
    [
        ({"allocation": {"executors": 8}}, "/requested/allocation"),
        ({"allocation": {"executors": 99}}, "/requested/allocation/executors"),
        ({"allocation": {"cores": 9}}, "/requested/allocation/cores"),
        ({"state": "granted"}, "/requested/state"),
        ({"since": "yesterday"}, "/requested/since"),
        ({"since": "2026-01-01T00:00:00"}, "/requested/since"),
        ({"since": "0001-01-01T00:00:00+14:00"}, "/requested/since"),
        ({"since": "9999-12-31T23:59:59-14:00"}, "/requested/since"),
        ({"reason": "x" * 201}, "/requested/reason"),
        ({"more": 1}, "/requested"),
    ],
)
def test_a_wrong_request_names_its_field(values: dict[str, Any], pointer: str) -> None:
    on = compiled(SPEC)
    body = {"allocation": {"executors": 8}, "metrics": {"iteration_seconds": 9.0}}
    usual = {"allocation": {"executors": 12}, "state": "refused", "since": SINCE}
    run = Launched(on)
    assert isinstance(run.state, RunMemory)
    with pytest.raises(InvalidInput) as error:
        ENGINE.read(on, run.state, 0, ENGINE.decode(msgspec.json.encode({**body, "requested": usual | values})))
    assert [one.pointer for one in error.value.errors if one.pointer.startswith(pointer)], error.value.errors


def test_reports_with_requests_are_stored_and_become_samples_of_what_was_granted(client: TestClient) -> None:
    resource = {"name": "gpus", "minimum": 1, "maximum": 16, "price_per_hour": 3.6, "initial": 4}
    for name in ("first", "second"):
        body = {"name": name, "kind": "iterative", "resources": [resource], "iterations": 9}
        assert client.post("/workloads", json=body).status_code == 201
    run, other = (client.post("/runs", json={"workload": name}).json()["id"] for name in ("first", "second"))
    wanted_request = {"allocation": {"gpus": 8}, "state": "refused", "since": SINCE, "reason": "QOSMaxGRESPerUser"}
    plain = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 30.0}}
    for _ in range(2):  # again, as after a lost answer
        answer = client.put(f"/runs/{run}/iterations/0", json={**plain, "requested": wanted_request})
        assert answer.status_code in (200, 201), answer.text
    assert answer.json()["granted"]["requested"] == {"gpus": 8}
    assert client.put(f"/runs/{other}/iterations/0", json={**plain, "requested": None}).status_code == 201
    assert client.put(f"/runs/{run}/iterations/1", json=plain).status_code == 201
    result = client.get(f"/runs/{run}").json()["decision"]["granted"]
    assert (result["state"], result["refusals"], result["next_request"]) == ("refused", 1, 3)
    assert "granted" not in client.get(f"/runs/{other}").json()["decision"]
    page = client.get(f"/ui/runs/{run}").text
    assert "refused, not granted" in page
    assert "since 2026-01-01 11:59:00 UTC, QOSMaxGRESPerUser" in page
    assert "not granted" not in client.get(f"/ui/runs/{other}").text
    assert client.get("/ui/runs").text.count(">refused</span>") == 1
    first = client.get(f"/runs/{run}/iterations").json()["items"][0]
    assert first["report"]["requested"]["reason"] == "QOSMaxGRESPerUser"
    assert client.get(f"/decision?run={run}").json()["granted"] | {"since": result["since"]} == result
    assert "granted" not in client.put(f"/runs/{run}/iterations/2", json=plain).json()
    again = client.put(f"/runs/{run}/iterations/3", json={**plain, "requested": wanted_request}).json()["granted"]
    assert (again["refusals"], again["next_request"]) == (2, 4 + 4)
    counted = client.get("/metrics").text
    assert 'steward_requests_total{state="refused",workload="first"} 2.0' in counted
    assert 'workload="second"' not in "".join(line for line in counted.splitlines() if "steward_requests" in line)
    assert client.patch(f"/runs/{run}", json={"state": "finished"}).status_code == 200
    (sample,) = client.get("/workloads/first/samples?reports=true").json()["items"]
    assert [one["allocation"] for one in sample["reports"]] == [{"gpus": 4}] * 4
