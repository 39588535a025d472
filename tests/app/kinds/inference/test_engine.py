"""Events in, decisions out: the rules of the run's book, what is refused, and what is said."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.kinds.contract.engine import EncodedDecision, Pending, Shadow
from app.kinds.contract.inputs import InvalidInput
from app.kinds.contract.policy import Choice, Situation
from app.kinds.inference.awarding import Client
from app.kinds.inference.dynamics import CONTROL
from app.kinds.inference.kind import KIND
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.spec import InferenceSpec
from app.policies.artifact import Artifact
from tests.answers import all_answered
from tests.app.kinds.inference.runs import NOW, Live, arrivals, compiled
from tests.app.kinds.inference.workloads import spec


class Scripted:
    """A policy that takes an action by what it is asked for."""

    name = "scripted"

    def __init__(self, dispatch: int = WAIT, control: int = WAIT) -> None:
        self.dispatch, self.control = dispatch, control

    def act(self, situation: Situation) -> Choice:
        action = self.control if situation.state.context[0] == CONTROL else self.dispatch
        legal: NDArray[np.bool_] = situation.view.mask
        action = action if legal[0, action] or action < 0 else WAIT
        return Choice(np.array([action]))


def agent(policy: Any, layout: Layout | Client) -> Artifact:
    return Artifact(policy, tuple(layout.entries), layout.actions, {}, "inference")


def answered_by(policy: Any, **changed: Any) -> Live:
    wanted = spec(**changed)
    return Live(compiled(wanted, {"default": agent(policy, KIND.layout(wanted))}))


def one_server(**changed: Any) -> Live:
    return Live(compiled(spec(servers=[{"name": "cpu", "maximum": 1}], **changed)))


def test_what_starts_is_the_oldest_of_one_user_on_a_free_server() -> None:
    run = answered_by(Scripted(dispatch=1 + 2))  # web, small, a batch of 4
    decision = run.report(1.0, arrived=[*arrivals("web", 0.9), {"user": "web", "at": 0.95, "id": "x"}])
    assert decision.noop  # two wait, and four are needed
    assert (decision.reason.code, decision.waiting) == ("waiting", {"web": 2, "mobile": 0})
    decision = run.report(1.1, arrived=arrivals("web", 1.02, 1.04, 1.06))
    [start] = decision.start
    assert (start.server, start.user, start.variant, start.batch) == ("cpu-0", "web", "small", 4)
    assert start.requests == ["#0", "x", "#2", "#3"]
    assert start.expected_seconds == pytest.approx(0.02 * 2.5)
    assert (decision.source, decision.agent, decision.waiting["web"]) == ("agent", 3, 1)


def test_the_reason_says_what_is_expected_and_what_else_would_be() -> None:
    run = answered_by(Scripted(dispatch=1 + 1))
    text = run.report(0.3, arrived=arrivals("web", 0.2, 0.25, 0.28)).reason.text
    assert text.startswith(
        "start 2 of 3 requests of web on cpu-0: small, batch 2, 30 ms, longest wait 100 ms, "
        "expected quality 0.86 (large 0.96); 1 request waiting (1 of web)"
    )


def test_a_batch_that_ends_gives_quality_by_its_delay() -> None:
    run = one_server()
    run.report(0.0, arrived=arrivals("web", 0.0))
    quality = run.report(0.55, finished=[{"server": "cpu-0", "at": 0.55}]).quality
    assert quality["web"] == pytest.approx(0.5 * (1 if run.state.quality[0] > 0.45 else 0.7 / 0.8))
    assert quality["mobile"] == 1.0


def test_a_server_that_works_takes_nothing_until_it_ends() -> None:
    run = one_server()
    assert len(run.report(0.0, arrived=arrivals("web", 0.0)).start) == 1
    busy = run.report(0.01, arrived=arrivals("web", 0.01))
    assert (busy.start, busy.reason.code, busy.wake_at) == ([], "busy", 1.01)
    assert len(run.report(0.02, finished=[{"server": "cpu-0", "at": 0.015}]).start) == 1


def test_requests_are_given_up_when_an_answer_is_worth_nothing_and_where_too_many_wait() -> None:
    run = answered_by(Scripted(), queue_limit=3)
    decision = run.report(0.5, arrived=arrivals("web", 0.1, 0.2, 0.3, 0.4, 0.5))
    assert [(drop.requests, drop.why) for drop in decision.drop] == [(["#0", "#1"], "queue limit of 3 exceeded")]
    decision = run.report(1.35)
    assert [(drop.requests, drop.why) for drop in decision.drop] == [(["#2"], "quality is zero after 1 s")]
    assert decision.quality["web"] == 0
    assert run.report(1.4).wake_at == pytest.approx(1.5)


def test_control_is_asked_for_once_an_interval_and_servers_start() -> None:
    servers = [{"name": "cpu", "minimum": 1, "maximum": 3, "startup_seconds": 5}]
    layout = KIND.layout(spec(servers=servers))
    run = answered_by(Scripted(control=layout.scaling(0, on=True)), servers=servers)
    first = run.report(0.0)
    assert (first.servers, first.reason.code, first.wake_at) == ({"cpu": 3}, "started", 10.0)
    assert "turn on cpu-1, cpu-2" in first.reason.text
    assert (first.turn_on, first.turn_off) == (["cpu-1", "cpu-2"], [])
    run.on = compiled(spec(servers=servers), {"default": agent(Scripted(control=layout.scaling(0, on=False)), layout)})
    assert run.report(5.0, servers=[{"server": "cpu-1", "state": "up"}]).servers == {"cpu": 3}
    assert sorted(run.state.servers) == [0, 1, 2]
    last = run.report(10.0)
    assert (last.servers, last.turn_on, last.turn_off) == ({"cpu": 1}, [], ["cpu-2", "cpu-1"])
    assert sorted(run.state.servers) == [0]  # what is being started goes first, then idle ones


def test_the_requests_of_a_lost_server_wait_again_in_their_places() -> None:
    run = one_server()
    run.report(0.0, arrived=arrivals("web", 0.0))
    run.report(0.1, arrived=arrivals("web", 0.1))
    lost = run.report(0.2, servers=[{"server": "cpu-0", "state": "down"}])
    assert (lost.waiting["web"], lost.servers, lost.reason.code) == (2, {"cpu": 0}, "busy")
    back = run.report(0.3, servers=[{"server": "cpu-0", "state": "up"}])
    assert back.start[0].requests[0] == "#0"


REFUSED = [
    ({"at": 2, "arrived": [{"user": "nobody", "at": 1.5}]}, "/arrived/0/user"),
    ({"at": 2, "finished": [{"server": "gpu-0", "at": 1.5}]}, "/finished/0/server"),
    ({"at": 2, "finished": [{"server": "cpu-1", "at": 1.5}]}, "/finished/0/server"),
    ({"at": 2, "finished": [{"server": "cpu-0", "at": 1.5}, {"server": "cpu-0", "at": 1.6}]}, "/finished/1/server"),
    ({"at": 2, "finished": [{"server": "cpu-0", "at": 1.5, "variant": "huge"}]}, "/finished/0/variant"),
    ({"at": 2, "finished": [{"server": "cpu-0", "at": 1.5, "batch": 9}]}, "/finished/0/batch"),
    ({"at": 2, "servers": [{"server": "cpu-2", "state": "up"}]}, "/servers/0/server"),
    ({"at": 2, "servers": [{"server": "cpu-1", "state": "up", "at": 3}]}, "/servers/0/at"),
    ({"at": 0.5}, "/at"),
    ({"at": 2, "arrived": arrivals("web", 0.5)}, "/arrived/0/at"),
    ({"at": 2, "arrived": arrivals("web", 1.5, 1.4)}, "/arrived/1/at"),
    ({"at": 2, "arrived": arrivals("web", 2.5)}, "/arrived/0/at"),
    ({"at": 2, "arrived": [{"user": "web", "at": 1.5, "id": "known"}]}, "/arrived/0/id"),
    ({"at": 2, "arrived": [{"user": user, "at": 1.5, "id": "a"} for user in ("web", "mobile")]}, "/arrived/1/id"),
    ({"at": 2, "started": [{"server": "cpu-0", "user": "web", "variant": "small", "batch": 1, "at": 1.5}]}, "/started"),
]  # fmt: skip


@pytest.mark.parametrize(("report", "pointer"), REFUSED)
def test_what_can_not_be_is_refused_and_changes_nothing(report: dict[str, Any], pointer: str) -> None:
    run = Live(compiled(spec()))
    run.report(1.0, arrived=[{"user": "web", "at": 1.0, "id": "known"}])
    before = bytes(KIND.engine.serialise(run.memory))
    with pytest.raises(InvalidInput) as caught:
        run.report(**report)
    assert caught.value.errors[0].pointer == pointer
    assert caught.value.errors[0].message
    assert bytes(KIND.engine.serialise(run.memory)) == before


@pytest.mark.parametrize(
    "report",
    [
        {"at": 4e9 + 1},
        {"at": 2, "arrived": arrivals("web", 1e15)},
        {"at": 2, "finished": [{"server": "cpu-0", "at": 2, "seconds": 2e9}]},
    ],
)
def test_no_report_says_what_no_sample_can_hold(report: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="less than or equal to"):
        KIND.engine.decode(json.dumps(report).encode())


@pytest.mark.parametrize(("message", "refused"), [({"batch": 2}, "batch"), ({"seconds": 1.2}, "seconds")])
def test_a_batch_takes_no_more_requests_and_no_longer_than_since_its_start(
    message: dict[str, Any], refused: str
) -> None:
    run = one_server()
    run.report(3.0, arrived=arrivals("web", 3.0))
    measured = {"server": "cpu-0", "at": 4.0, "variant": "small", "batch": 1, "seconds": 1.05}
    with pytest.raises(InvalidInput) as caught:
        run.report(4.0, finished=[measured | message])
    [issue] = caught.value.errors
    assert (issue.pointer, issue.value) == (f"/finished/0/{refused}", message[refused])
    assert issue.message.startswith("must be 1 to 1" if refused == "batch" else "must be at most 1.11:")
    run.report(4.0, finished=[measured])


def test_the_smallest_size_is_said_of_fewer_requests_too() -> None:
    run = one_server(batches=[4, 8])
    assert run.report(3.0, arrived=arrivals("web", 3.0)).start[0].batch == 4
    run.report(4.0, finished=[{"server": "cpu-0", "at": 4.0, "batch": 4}])


def test_where_a_policy_fails_or_breaks_the_rules_the_heuristic_answers() -> None:
    for policy in (Scripted(dispatch=-5), object()):
        named = policy if isinstance(policy, Scripted) else type("Broken", (), {"name": "broken"})()
        decision = answered_by(named).report(0.1, arrived=arrivals("web", 0.05))
        assert (decision.source, decision.reason.code, len(decision.start)) == ("fallback", "fallback", 1)
        assert "lookahead+expected_return decides" in decision.reason.text


def test_where_all_fails_nothing_starts_until_the_next_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise FloatingPointError("overflow")

    run = one_server()
    with monkeypatch.context() as patch:
        patch.setattr(KIND.engine.serving, "choose", broken)
        report = run.report(0.1, arrived=arrivals("web", 0.05))
    assert (report.source, report.policy, report.noop, report.waiting["web"]) == ("fallback", "hold", True, 1)
    assert report.reason.text == "lookahead+expected_return failed (FloatingPointError: overflow); nothing starts"
    assert run.report(0.11).start[0].requests == ["#0"]


def test_without_a_domain_model_requests_are_served_as_they_come() -> None:
    decision = Live(compiled(spec(), known=False)).report(
        0.2, arrived=[*arrivals("mobile", 0.1), *arrivals("web", 0.2)]
    )
    assert decision.start[0].user == "mobile"
    assert decision.start[0].expected_seconds is None
    assert (decision.source, decision.policy) == ("heuristic", "first_come_first_served")


def test_a_shadow_is_consulted_and_changes_nothing() -> None:
    wanted = spec()
    layout = KIND.layout(wanted)
    alone = Live(compiled(wanted)).report(0.1, arrived=arrivals("web", 0.05))
    run = Live(compiled(wanted), shadow=Shadow(7, agent(Scripted(), layout)))
    decision = run.report(0.1, arrived=arrivals("web", 0.05))
    assert decision.start == alone.start
    assert decision.shadow is not None
    assert (decision.shadow.agent, decision.shadow.start, decision.shadow.agrees) == (7, [], False)


EVENTS = st.lists(
    st.tuples(st.floats(0, 0.4), st.sampled_from(["web", "mobile", None]), st.integers(0, 2), st.booleans()),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(EVENTS)
def test_every_request_is_answered_dropped_working_or_waiting_once(events: list[Any]) -> None:
    run, now, came, started, dropped = Live(compiled(spec(queue_limit=4))), 0.0, 0, list[str](), list[str]()
    for elapsed, user, server, lost in events:
        now += elapsed
        report: dict[str, Any] = {"arrived": arrivals(user, now, now) if user else []}
        came += len(report["arrived"])
        current = run.state.servers.get(server)
        if current is not None and current.batch is not None and not lost:
            report["finished"] = [{"server": run.on.fleet.names[server], "at": now}]
        decision = run.report(now, **report)
        started += [name for start in decision.start for name in start.requests]
        dropped += [name for drop in decision.drop for name in drop.requests]
    waiting = [name for queue in run.state.queues for name in queue.ids]
    assert sorted([*started, *dropped, *waiting]) == sorted(f"#{n}" for n in range(came))


@pytest.mark.parametrize("known", [True, False])
def test_a_decision_makes_few_calls_however_many_requests_wait(known: bool) -> None:
    def calls(waiting: int) -> int:
        """Calls of functions, Python's and others, in the last of several decisions while so many wait."""
        run, count = Live(compiled(spec(queue_limit=1000), known=known)), 0
        run.report(0.9, arrived=arrivals("web", *np.linspace(0.5, 0.9, waiting // 2)))

        def called(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event in {"call", "c_call"}

        for number in range(4):
            now = 0.9 + 0.001 * (number + 1)
            works = [place for place, server in run.state.servers.items() if server.batch is not None]
            ends = [{"server": run.on.fleet.names[place], "at": now} for place in works]
            more = arrivals("mobile", *[now] * (waiting // 2)) if number == 0 else []
            count = 0
            sys.setprofile(called)
            try:
                decision = run.report(now, finished=ends, arrived=more)
            finally:
                sys.setprofile(None)
            assert decision.start
        return count

    assert calls(1_000) < 3 * calls(100)  # ten times as many wait


@pytest.mark.parametrize("policies", ["one", "per_user"])
def test_users_or_all_have_a_role(policies: str) -> None:
    assert KIND.roles(spec(policies=policies)) == (("default",) if policies == "one" else ("web", "mobile"))


def test_runs_that_are_decided_together_get_what_each_gets_by_itself() -> None:
    wanted = spec(servers=[{"name": "cpu", "minimum": 1, "maximum": 3}])
    together = [Live(compiled(wanted)) for _ in range(4)]
    on = together[0].on
    pending, alone = [], list[EncodedDecision]()
    for number, run in enumerate(together):
        times = np.linspace(0.1, 0.2, 1 + 3 * number)
        report = KIND.engine.decode(json.dumps({"at": 0.2, "arrived": arrivals("web", *times)}).encode())
        read = KIND.engine.read(on, run.memory, 0, report)
        pending.append(Pending(f"r{number}", 0, run.memory, read, {}, None))
        alone += all_answered(KIND.engine.answer(on, [pending[-1]], NOW))
    answered = all_answered(KIND.engine.answer(on, pending, NOW))
    assert [one.decision for one in answered] == [one.decision for one in alone]
    assert [one.state for one in answered] == [one.state for one in alone]


def test_one_run_whose_policy_fails_does_not_disturb_the_others() -> None:
    class Moody(Scripted):
        def act(self, situation: Situation) -> Choice:
            if (situation.state.waiting == 7).any():
                raise RuntimeError("seven")
            rows = len(situation.state.context)
            return Choice(np.where(situation.view.mask[:, 1], 1, WAIT)[:rows])

    wanted = spec(servers=[{"name": "cpu", "maximum": 1}])
    on = compiled(wanted, {"default": agent(Moody(), KIND.layout(wanted))})
    pending = []
    for number in (3, 7, 5):
        body = json.dumps({"at": 0.2, "arrived": arrivals("web", *[0.2] * number)}).encode()
        state = Live(on).memory
        read = KIND.engine.read(on, state, 0, KIND.engine.decode(body))
        pending.append(Pending(str(number), 0, state, read, {}, None))
    decisions = [json.loads(one.decision) for one in all_answered(KIND.engine.answer(on, pending, NOW))]
    assert [one["source"] for one in decisions] == ["agent", "fallback", "agent"]
    assert "seven" in decisions[1]["reason"]["text"]


@pytest.mark.parametrize(("users", "limit", "accepted"), [(2, 5_000, True), (3, 3_333, True), (3, 3_334, False)])
def test_what_all_queues_hold_together_is_bounded(users: int, limit: int, accepted: bool) -> None:
    quality = {"full_until": 1, "zero_at": 2}
    wanted = {
        **spec().model_dump(),
        "users": [{"name": f"u{i}", "quality": quality} for i in range(users)],
        "queue_limit": limit,
    }
    if accepted:
        assert InferenceSpec.model_validate(wanted).queue_limit == limit
        return
    with pytest.raises(ValueError, match="queue_limit must be at most 10,000 over 3 users, 3,333: queue_limit 3,334"):
        InferenceSpec.model_validate(wanted)
