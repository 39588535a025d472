"""What every desk must hold: states survive freezing, answers depend on nothing else, nothing changes in place."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from pydantic import TypeAdapter, ValidationError

from app.decisions.answers import AnyDecision
from app.decisions.desks import DESKS
from app.errors import StewardError
from app.kinds.contract.base import InvalidInput
from app.kinds.contract.engine import Answered, Asked, Basis
from app.kinds.registry import layout_of, read_spec
from app.workloads.snapshot import Serving
from tests.contracts.test_registries import SPECS

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
DECISION: TypeAdapter[Any] = TypeAdapter(AnyDecision)
TASKS = [{"id": f"t{i}", "processors": 4, "estimate": 100.0 * (i + 1), "user": "ann"} for i in range(6)]
REPORTS: dict[str, list[dict[str, Any]]] = {
    "iterative": [
        {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5 + i}, "features": {"batch": 128}}
        for i in range(3)
    ],
    "workflow": [
        {"now": 0.0, "queued": TASKS},
        {"now": 5.0, "delta": True, "running": [{"id": "t0", "node": "large-0", "start": 5.0}]},
        {"now": 90.0, "delta": True, "finished": [{"id": "t0", "end": 80.0}], "queued": [{"id": "n", "processors": 1}]},
    ],
}
UNFIT: dict[str, dict[str, Any]] = {
    "iterative": {"allocation": {"gpus": 99}, "metrics": {"iteration_seconds": 1.0}, "features": {"batch": 1}},
    "workflow": {"now": 100.0, "delta": True, "queued": [{"id": "big", "processors": 1000}]},
}

each_kind = pytest.mark.parametrize("kind", DESKS)


def basis(kind: str) -> Basis:
    spec = read_spec(SPECS[kind])
    serving = Serving("w", spec.name, 1, spec, layout_of(spec), None, None, None, None, 1)
    return DESKS[kind].compile(serving)


def encoded(report: dict[str, Any]) -> bytes:
    return msgspec.json.encode(report)


def step(kind: str, on: Basis, state: Any, n: int, run: str = "r") -> Answered:
    """The answer to report n."""
    desk = DESKS[kind]
    read = desk.read(on, state, n, desk.decode(encoded(REPORTS[kind][n])))
    return desk.answer(on, [Asked(run, n, state, read, {}, None)], NOW)[0]


def walked(kind: str, on: Basis, reports: int) -> Any:
    """The state after so many reports."""
    state = DESKS[kind].begin(on, "r", {}, None, NOW).state
    for n in range(reports):
        state = step(kind, on, state, n).state
    return state


@each_kind
def test_every_answer_is_a_decision_of_the_schema_with_its_fields_in_order(kind: str) -> None:
    desk, on = DESKS[kind], basis(kind)
    begun = desk.begin(on, "r", {}, None, NOW)
    answers = [begun.decision]
    state = begun.state
    for n in range(3):
        answered = step(kind, on, state, n)
        answers.append(answered.decision)
        state = answered.state
    for n, answer in enumerate(answers):
        plain = msgspec.json.decode(answer)
        DECISION.validate_json(answer)
        assert list(plain) == list(desk.fields)
        assert (plain["run"], plain["reported"], plain["iteration"]) == ("r", None if n == 0 else n - 1, n)
        assert plain["reason"]["text"]


@each_kind
def test_a_frozen_state_goes_on_as_if_nothing_had_happened(kind: str) -> None:
    desk, on = DESKS[kind], basis(kind)
    for reports in range(3):
        state = walked(kind, on, reports)
        frozen = bytes(desk.freeze(state))
        thawed = desk.thaw(msgspec.json.decode(frozen))
        assert bytes(desk.freeze(thawed)) == frozen
        assert step(kind, on, thawed, reports).decision == step(kind, on, state, reports).decision


@each_kind
def test_no_state_changes_in_place(kind: str) -> None:
    desk, on = DESKS[kind], basis(kind)
    state = walked(kind, on, 2)
    before = bytes(desk.freeze(state))
    step(kind, on, state, 2)
    assert bytes(desk.freeze(state)) == before


@each_kind
def test_a_report_that_does_not_fit_names_its_field_and_leaves_the_state(kind: str) -> None:
    desk, on = DESKS[kind], basis(kind)
    state = walked(kind, on, 3 if kind == "workflow" else 2)
    before = bytes(desk.freeze(state))
    with pytest.raises((InvalidInput, StewardError)) as caught:
        desk.read(on, state, 3, desk.decode(encoded(UNFIT[kind])))
    errors = getattr(caught.value, "errors")  # noqa: B009 - both families have it
    assert errors[0].pointer.startswith("/")
    assert bytes(desk.freeze(state)) == before


@each_kind
@pytest.mark.parametrize("body", [b"{", b"[]", b'{"colour": 1}', b'"x"', b"\xff"])
def test_what_is_no_report_is_refused(kind: str, body: bytes) -> None:
    with pytest.raises(ValidationError):
        DESKS[kind].decode(body)


@each_kind
def test_reports_that_say_the_same_are_the_same_bytes(kind: str) -> None:
    report = REPORTS[kind][0]
    turned = dict(reversed(copy.deepcopy(report).items()))
    one, other = (DESKS[kind].decode(encoded(body)) for body in (report, turned))
    assert msgspec.json.encode(one, order="deterministic") == msgspec.json.encode(other, order="deterministic")


@each_kind
def test_several_runs_are_answered_as_each_by_itself(kind: str) -> None:
    desk, on = DESKS[kind], basis(kind)
    states = [walked(kind, on, reports) for reports in range(3)]
    asked = []
    for n, state in enumerate(states):
        read = desk.read(on, state, n, desk.decode(encoded(REPORTS[kind][n])))
        asked.append(Asked(f"r{n}", n, state, read, {}, None))
    together = desk.answer(on, asked, NOW)
    for n, state in enumerate(states):
        alone = step(kind, on, state, n, f"r{n}")
        assert together[n].decision == alone.decision
