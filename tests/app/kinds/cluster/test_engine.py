from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from app.kinds.cluster.decide import Compiled
from app.kinds.cluster.engine import ENGINE
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.report import ClusterDecision
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.views import ClusterViews
from app.kinds.contract.engine import ADDED, EncodedDecision, Pending, Snapshot
from app.kinds.contract.inputs import InvalidInput
from app.kinds.contract.kind import RunStart
from app.kinds.contract.views import RunHistory
from app.kinds.engine import DecidedBy, RunMemory
from tests.answers import all_answered

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SPEC = ClusterSpec.model_validate(
    {
        "name": "training",
        "kind": "cluster",
        "nodes": [{"name": "a", "count": 2, "gpus": 4}],
        "queues": [{"name": "urgent"}, {"name": "rest", "ageing_seconds": 3600}],
    }
)
REPORTS: list[dict[str, Any]] = [
    {"at": 10, "submitted": [{"job": "bert", "gpus": 4, "at": 4}, {"job": "yolo", "gpus": 4}]},
    {"at": 70, "submitted": [{"job": "late", "gpus": 2, "queue": "urgent"}]},
    {"at": 130, "ended": [{"job": "bert"}], "nodes": [{"node": "a-1", "gpus": 2}]},
    {"at": 190},
]


def compiled() -> Compiled:
    pattern: Compiled = ENGINE.compile(Snapshot("w", SPEC.name, 1, SPEC, Layout(SPEC), None, None, None, None, 1))
    return pattern


def step(on: Compiled, state: RunMemory, n: int) -> EncodedDecision:
    read = ENGINE.read(on, state, n, ENGINE.decode(msgspec.json.encode(REPORTS[n])))
    return all_answered(ENGINE.answer(on, [Pending("r", n, state, read, {}, None)], NOW))[0]


def test_every_answer_is_a_decision_whose_allocations_add_up() -> None:
    on = compiled()
    answered = ENGINE.begin(on, "r", RunStart(workload="training"), NOW)
    assert msgspec.json.decode(answered.decision)["reason"]["code"] == "begun"
    gpus: dict[str, int] = {}
    for n in range(len(REPORTS)):
        answered = step(on, answered.state, n)
        decision = ClusterDecision.model_validate_json(answered.decision)
        assert list(msgspec.json.decode(answered.decision)) == [
            f for f in ClusterDecision.model_fields if f not in ADDED
        ]
        for change in decision.changes:
            assert change.before == gpus.get(change.job, 0)
            assert change.gpus == sum(change.nodes.values())
            gpus[change.job] = change.gpus
        state = answered.state.state
        gpus = {job: count for job, count in gpus.items() if job in state.names}
        assert gpus == dict(zip(state.names, state.jobs.gpus.tolist(), strict=True))
        assert sum(gpus.values()) + decision.free == int(state.capacity.sum())
        assert (decision.noop, decision.running + decision.waiting) == (not decision.changes, len(gpus))
        assert ClusterDecision.model_validate(decision.model_dump()).wake_at == REPORTS[n]["at"] + 60
    assert decision.reason.text == "rule soonest"


def test_a_stored_state_goes_on_as_if_nothing_had_happened() -> None:
    on = compiled()
    state = ENGINE.begin(on, "r", RunStart(workload="training"), NOW).state
    for n in range(len(REPORTS)):
        stored = bytes(ENGINE.serialise(state))
        restored = ENGINE.restore(msgspec.json.decode(stored))
        answered = step(on, state, n)
        assert step(on, restored, n).decision == answered.decision
        assert bytes(ENGINE.serialise(state)) == stored
        state = answered.state


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"colour": 1}', b'"x"', b"\xff", b'{"at": NaN}', b'{"at": "1"}'])
def test_what_is_no_report_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        ENGINE.decode(body)


def test_what_is_too_deep_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nested"):
        ENGINE.decode(b'{"at": 1, "nodes": ' + b"[" * 80 + b"]" * 80 + b"}")


def test_reports_that_say_the_same_are_the_same_bytes() -> None:
    values = REPORTS[0]
    same = [values, dict(reversed(values.items())), {"kind": "cluster", **values}]
    encoded = {msgspec.json.encode(ENGINE.decode(msgspec.json.encode(one)), order="deterministic") for one in same}
    assert len(encoded) == 1


def test_a_page_says_what_is_free_of_the_gpus_that_are_left() -> None:
    on = compiled()
    state = ENGINE.begin(on, "r", RunStart(workload="training"), NOW).state
    body = b'{"at": 1, "submitted": [{"job": "k", "gpus": 1}], "nodes": [{"node": "a-1", "gpus": 0}]}'
    read = ENGINE.read(on, state, 0, ENGINE.decode(body))
    [answered] = all_answered(ENGINE.answer(on, [Pending("r", 0, state, read, {}, None)], NOW))
    decision = msgspec.json.decode(answered.decision)
    assert decision["reason"]["text"] == "1 started; rule soonest"
    shown = RunHistory({}, decision, answered.state.state, 1, [], 1)
    free = next(fact for fact in ClusterViews().facts(on, shown) if fact.name == "free")
    assert (free.value, free.hint) == ("3 of 4 GPUs", "4 more reported lost")


class Failing:
    """An agent whose policy raises."""

    name = "failing"


@pytest.mark.parametrize("everything", [False, True])
def test_an_agent_that_fails_is_replaced_by_the_rule_and_that_by_holding(
    everything: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Compiled.rule

    def rule(on: Compiled, policy: Any, now: datetime) -> Any:
        if policy is not None or broken:
            raise FloatingPointError("overflow")
        return usual(on, policy, now)

    monkeypatch.setattr(Compiled, "rule", rule)
    on, other, broken = compiled(), compiled(), False
    on.agent, on.decided_by = Failing(), DecidedBy("agent", "failing")  # type: ignore[assignment]
    states = {one: ENGINE.begin(one, "r", RunStart(workload="training"), NOW).state for one in (on, other)}
    values = {on: dict[str, dict[str, int]](), other: dict[str, dict[str, int]]()}
    for n in range(len(REPORTS)):
        broken = everything and n > 0
        for one in (on, other):
            answered = step(one, states[one], n)
            states[one] = answered.state
            decision = ClusterDecision.model_validate_json(answered.decision)
            assert decision.source == ("fallback" if one is on or broken else "heuristic")
            assert decision.policy == ("hold" if broken else one.heuristic)
            assert ("failing failed (FloatingPointError: overflow)" in decision.reason.text) == (one is on)
            values[one] |= {change.job: change.nodes for change in decision.changes}
            state = states[one].state
            for node, gpus in zip(one.layout.nodes, state.capacity.tolist(), strict=True):
                there = state.jobs.allocation[:, one.layout.node_index[node]].sum()
                assert there <= gpus
    assert values[on] == values[other]
    assert values[on]["bert"] or values[on]["yolo"]
