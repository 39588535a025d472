"""The ready-made serving half, on the thermostat of the examples: what goes wrong is told, and nothing is lost."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from pydantic import ValidationError

from app.kinds.contract.engine import Pending, Shadow, Snapshot
from app.kinds.contract.inputs import IncompatibleModel, InvalidInput, Refused
from app.kinds.contract.policy import Choice, Situation
from app.kinds.engine import RunMemory
from app.policies.artifact import Artifact
from tests.answers import all_answered

sys.path.append(str(Path(__file__).parents[3] / "examples" / "thermostat"))
from thermostat import EXAMPLE, KIND, HeatLoss, Layout, ThermostatSpec

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = ThermostatSpec.model_validate(EXAMPLE.spec)
LAYOUT = Layout(SPEC)


class Warm:
    """Always the same action; it breaks where that is none."""

    name = "warm"

    def __init__(self, action: int) -> None:
        self.action = action

    def act(self, situation: Situation) -> Choice:
        if self.action < 0:
            raise RuntimeError("out of order")
        return Choice(np.full(len(situation.view.mask), self.action))


def artifact(action: int) -> Artifact:
    return Artifact(Warm(action), tuple(LAYOUT.entries), LAYOUT.actions, {}, "thermostat")


def decided(answers: Artifact | None, shadow: Shadow | None = None, problem: str = "") -> dict[str, Any]:
    """The decision that answers the example's first report: a room that is far too cold."""
    snapshot = Snapshot("w", "bedroom", 1, SPEC, LAYOUT, None, None, 1 if answers else None, answers, 1, problem)
    engine, on = KIND.engine, KIND.engine.compile(snapshot)
    begun = engine.begin(on, "r", KIND.start(workload="bedroom"), NOW)
    report = engine.read(on, begun.state, 0, engine.decode(msgspec.json.encode(EXAMPLE.reports[0])))
    [answered] = all_answered(engine.answer(on, [Pending("r", 0, begun.state, report, {}, shadow)], NOW))
    plain: dict[str, Any] = msgspec.json.decode(answered.decision)
    return plain


def test_the_first_baseline_answers_where_no_agent_does_and_says_why() -> None:
    decision = decided(None)
    assert (decision["source"], decision["policy"], decision["power"]) == ("heuristic", "hysteresis", 2)
    assert decision["reason"]["code"] == "no_model"
    decision = decided(None, problem="agent 3 can't be used")
    assert (decision["source"], decision["reason"]["code"]) == ("fallback", "fallback")
    assert decision["reason"]["text"].startswith("agent 3 can't be used; hysteresis decides: ")


def test_an_agent_answers_and_where_it_breaks_the_baseline_does() -> None:
    decision = decided(artifact(1))
    assert (decision["source"], decision["policy"], decision["power"]) == ("agent", "warm", 1)
    assert decision["reason"]["code"] == "too_cold"
    decision = decided(artifact(-1))
    assert (decision["source"], decision["policy"], decision["power"]) == ("fallback", "hysteresis", 2)
    assert "RuntimeError: out of order" in decision["reason"]["text"]


class Counting:
    """Recurrent: it remembers how often it was asked of a run."""

    name = "counting"

    def act(self, situation: Situation) -> Choice:
        batch = len(situation.view.mask)
        before = np.zeros((batch, 1), np.float32) if situation.memory is None else situation.memory
        return Choice(np.zeros(batch, np.int64), memory=before + 1)


def test_what_agents_remember_is_kept_with_the_run() -> None:
    counting = Artifact(Counting(), tuple(LAYOUT.entries), LAYOUT.actions, {}, "thermostat")
    snapshot = Snapshot("w", "bedroom", 1, SPEC, LAYOUT, None, None, 1, counting, 1)
    engine, on = KIND.engine, KIND.engine.compile(snapshot)
    selection, late = (engine.begin(on, "r", KIND.start(workload="bedroom"), NOW).state for _ in range(2))
    for number in range(3):
        report = engine.read(on, selection, number, engine.decode(msgspec.json.encode(EXAMPLE.reports[0])))
        runs = [Pending("r", number, selection, report, {}, Shadow(2, counting if number < 2 else None))]
        runs += [Pending("s", 0, late, report, {}, None)] if number == 2 else []
        selection, *others = (answered.state for answered in all_answered(engine.answer(on, runs, NOW)))
        selection = engine.restore(msgspec.json.decode(engine.serialise(selection)))
    assert {version: memory.tolist() for version, memory in selection.memories.items()} == {1: [3.0], 2: [2.0]}
    assert {version: memory.tolist() for version, memory in others[0].memories.items()} == {1: [1.0]}
    assert engine.weight(selection) == engine.weight(RunMemory(selection.state)) + 8


@pytest.mark.parametrize(
    ("shadow", "action", "agrees", "problem"),
    [
        (Shadow(2, artifact(1)), 1, True, None),
        (Shadow(2, artifact(0)), 0, False, None),
        (Shadow(2, artifact(-1)), None, False, "RuntimeError: out of order"),
        (Shadow(2, None, "it is gone"), None, False, "it is gone"),
    ],
)
def test_a_shadow_is_written_down_and_changes_nothing(
    shadow: Shadow, action: int | None, agrees: bool, problem: str | None
) -> None:
    decision = decided(artifact(1), shadow)
    fields = {"agent": 2, "action": action, "agrees": agrees, "gain": None, "problem": problem}
    assert decision["shadow"] == fields
    assert decision | {"shadow": None} == decided(artifact(1))


def test_no_more_iterations_are_taken_than_the_spec_has() -> None:
    on = KIND.engine.compile(Snapshot("w", "bedroom", 1, SPEC, LAYOUT, None, None, None, None, 1))
    state = KIND.engine.begin(on, "r", KIND.start(workload="bedroom"), NOW).state
    report = KIND.engine.decode(msgspec.json.encode(EXAMPLE.reports[0]))
    KIND.engine.read(on, state, SPEC.iterations - 1, report)
    with pytest.raises(InvalidInput, match="less than 24"):
        KIND.engine.read(on, state, SPEC.iterations, report)


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        (b'"power": 5', "/reports/0/power"),
        (b'"power": "2"', "/reports/0/power"),
        (b'"power": NaN', "/reports/0/power"),
        (b'"power": 1, "colour": 1', "/reports/0/colour"),
        (b'"power": ', ""),
    ],
)
def test_a_sample_that_does_not_fit_names_its_field(changed: bytes, pointer: str) -> None:
    line = b'{"execution": "a", "reports": [{"outside": 1, "room": 2.5, %s}]}' % changed
    (result,) = KIND.samples.formats["application/x-ndjson"].reader(KIND.samples(LAYOUT), None).read(iter([line]))
    assert isinstance(result, Refused)
    assert result.issue.pointer == pointer


@pytest.mark.parametrize("count", [0, 25])
def test_a_sample_has_at_least_one_report_and_no_more_than_a_run(count: int) -> None:
    body = {"execution": "a", "reports": [dict(EXAMPLE.reports[0])] * count}
    codec: Any = KIND.samples(LAYOUT)
    result = codec.sample(msgspec.json.encode(body), 1)
    assert isinstance(result, Refused)
    assert result.issue.message == "must be 1 to 24, the workload's iterations"


def test_a_domain_model_is_read_back_and_what_is_none_is_refused() -> None:
    model = HeatLoss(4.0, 0.2, 0.1, 3.0, 1.0)
    assert KIND.model(msgspec.json.encode(model)) == model
    for data in (b"", b"[1, 2]", b'{"gain": 1}'):
        with pytest.raises(IncompatibleModel, match="no domain model of kind thermostat"):
            KIND.model(data)


def test_a_patch_that_makes_no_spec_is_refused() -> None:
    with pytest.raises(ValidationError, match="lowest must be less than highest"):
        KIND.apply_patch(SPEC, KIND.patch.model_validate({"lowest": 30}))
