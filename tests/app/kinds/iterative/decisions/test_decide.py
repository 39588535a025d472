"""Deciding for a batch of runs: who answers, with which reason, and what happens when something fails."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from app.kinds.contract.engine import ADDED, Pending
from app.kinds.iterative import decide as decider
from app.kinds.iterative.chance import chances
from app.kinds.iterative.compiled import Compiled
from app.kinds.iterative.engine import ENGINE, CheckedReport
from app.kinds.iterative.heuristics import first_allocation
from app.kinds.iterative.observation import view
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.report import Decision, IterationRunStart
from app.kinds.iterative.state import State, begin, unpack
from tests.answers import all_answered
from tests.app.kinds.iterative.decisions.deciding import (
    NOW,
    Scripted,
    Subject,
    begun,
    compiled,
    decide,
    plain,
    reported,
    seconds,
)
from tests.planted import planted_spec

FASTER = 8
"""The action of four steps more."""


def test_an_agent_answers_with_numbers_that_a_person_accepts() -> None:
    on = compiled(policy=Scripted(FASTER))
    decision = plain(decide(on, reported(on, [6], slower=1.1), [Subject("r", 4)], NOW)[0])
    assert (decision["source"], decision["agent"], decision["policy"]) == ("agent", 3, "scripted")
    assert (decision["allocation"], decision["delta"], decision["noop"]) == ({"executors": 10}, {"executors": 4}, False)
    assert (decision["reported"], decision["iteration"], decision["valid_for_iterations"]) == (4, 5, 1)
    assert decision["reason"]["code"] == "deadline_at_risk"
    text = decision["reason"]["text"]
    assert text.startswith("10 executors: finish at ")
    assert text.endswith(" (under 1 %); target 5 min 30 s")
    assert "; 6 executors: 6 min" in text
    predicted = decision["predicted"]["iteration_seconds"]
    assert predicted["low"] < predicted["mean"] < predicted["high"]
    assert decision["decided_at"] == "2026-01-01T12:00:00.000Z"


def test_a_batch_is_decided_as_its_runs_are_one_by_one() -> None:
    on = compiled(policy=Scripted(FASTER))
    state = reported(on, [4, 6, 8, 12, 20, 32, 36], slower=1.2)
    subjects = [Subject(f"r{i}", 4) for i in range(7)]
    together = decide(on, state, subjects, NOW)
    alone = [decide(on, decider.row(state, i), [subjects[i]], NOW)[0] for i in range(7)]
    for one, other in zip(map(plain, together), map(plain, alone), strict=True):
        assert one["reason"] == other["reason"]
        assert one["allocation"] == other["allocation"]
        assert one["predicted"]["iteration_seconds"] == pytest.approx(other["predicted"]["iteration_seconds"])


def test_every_decision_is_as_documented() -> None:
    for on in (compiled(), compiled(policy=Scripted(FASTER)), compiled(table=None)):
        for answer in decide(on, reported(on, [4, 16]), [Subject("r", 4), Subject(None, 4)], NOW):
            assert set(plain(answer)) == set(Decision.model_fields) - set(ADDED)
            assert Decision.model_validate_json(answer.decision, strict=False).workload == "planted"


@pytest.mark.parametrize(
    ("on", "source", "code", "words"),
    [
        (compiled(), "heuristic", "no_agent", "no agent promoted, model_predictive decides: "),
        (compiled(table=None), "heuristic", "no_model", "no domain model yet, model_predictive decides: "),
        (compiled(problem="agent 3 can't be loaded: x"), "fallback", "fallback", "agent 3 can't be loaded: x; "),
    ],
)
def test_without_an_agent_the_heuristic_answers_and_says_why(on: Compiled, source: str, code: str, words: str) -> None:
    decision = plain(decide(on, reported(on, [8]), [Subject("r", 4)], NOW)[0])
    assert (decision["source"], decision["reason"]["code"]) == (source, code)
    assert decision["reason"]["text"].startswith(words)


def test_a_policy_that_fails_is_replaced_by_the_heuristic_for_each_run() -> None:
    on, healthy = compiled(policy=Scripted(0, failing=True)), compiled()
    state = reported(on, [6, 20])
    failed = [plain(d) for d in decide(on, state, [Subject("a", 4), Subject("b", 4)], NOW)]
    well = [plain(d) for d in decide(healthy, state, [Subject("a", 4), Subject("b", 4)], NOW)]
    for one, other in zip(failed, well, strict=True):
        assert (one["source"], one["policy"], one["reason"]["code"]) == ("fallback", "model_predictive", "fallback")
        assert "RuntimeError: the network is broken" in one["reason"]["text"]
        assert one["allocation"] == other["allocation"]


def test_when_all_fails_the_allocation_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise FloatingPointError("no numbers today")

    on = compiled()
    state = reported(on, [8])
    monkeypatch.setattr(decider, "view", broken)
    decision = plain(decide(on, state, [Subject("r", 4)], NOW)[0])
    assert (decision["source"], decision["policy"], decision["noop"]) == ("fallback", "hold", True)
    assert decision["allocation"] == {"executors": 8}
    assert "FloatingPointError: no numbers today" in decision["reason"]["text"]
    assert set(decision) == set(Decision.model_fields) - set(ADDED)


def test_one_run_that_can_not_be_decided_leaves_its_neighbours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    on = compiled()

    def choosy(projector: Projector, state: State, *values: Any) -> object:
        if (state.cost == -1).any():
            raise ValueError("a poisoned run")
        return view(projector, state, *values)

    state = reported(on, [6, 8, 6])
    state = state._replace(cost=np.array([0.0, -1.0, 0.0]))
    monkeypatch.setattr(decider, "view", choosy)
    decisions = [plain(d) for d in decide(on, state, [Subject(str(i), 4) for i in range(3)], NOW)]
    assert [d["source"] for d in decisions] == ["heuristic", "fallback", "heuristic"]
    assert "a poisoned run" in decisions[1]["reason"]["text"]


def test_a_gain_within_the_noise_changes_nothing() -> None:
    on = compiled(policy=Scripted(FASTER, gain=0.0))
    decision = plain(decide(on, reported(on, [12]), [Subject("r", 4)], NOW)[0])
    assert (decision["source"], decision["reason"]["code"], decision["noop"]) == ("guard", "within_noise", True)
    assert decision["reason"]["text"].endswith("; 16 executors: no gain")


def test_what_a_change_lacks_is_told_in_numbers() -> None:
    on = compiled(policy=Scripted(FASTER, gain=2e-4))
    assert on.agent
    on.agent = replace(on.agent, experience=replace(on.agent.experience, hysteresis=1e-3))
    decision = plain(decide(on, reported(on, [12]), [Subject("r", 4)], NOW)[0])
    words = "; 16 executors: gain below threshold (return +0.0002, more than 0.001 required)"
    assert decision["reason"]["text"].endswith(words)


def test_a_run_beyond_all_samples_is_answered_by_the_heuristic() -> None:
    on = compiled(policy=Scripted(FASTER))
    decision = plain(decide(on, reported(on, [12], slower=30.0), [Subject("r", 4)], NOW)[0])
    assert (decision["source"], decision["reason"]["code"]) == ("guard", "outside_experience")
    assert decision["reason"]["text"].startswith("the run is further from the model than any sample; ")


def test_the_last_report_leaves_nothing_to_decide() -> None:
    on = compiled(policy=Scripted(FASTER))
    decision = plain(decide(on, reported(on, [12], iterations=30), [Subject("r", 29)], NOW)[0])
    assert (decision["reason"]["code"], decision["noop"], decision["valid_for_iterations"]) == ("complete", True, 0)
    assert (decision["iteration"], decision["predicted"]) == (30, {})


def test_the_first_decision_is_the_models_allocation() -> None:
    on = compiled()
    state = begin(on.projector, on.layout.start_levels[None])
    decision, levels = begun(on, state), first_allocation(on.projector, state)[0]
    assert unpack(on.layout, decider.begin(on, state).state.row[None]).levels.tolist() == [levels.tolist()]
    assert decision["allocation"] == on.layout.allocation_dict(levels)
    assert (decision["reported"], decision["iteration"], decision["reason"]["code"]) == (None, 0, "initial")
    assert ", the best trade-off: finish at" in decision["reason"]["text"]


def test_the_first_decision_without_samples_is_as_workloads_are_in_general() -> None:
    on = compiled(table=None)
    state = begin(on.projector, on.layout.start_levels[None])
    decision = begun(on, state)
    assert decision["allocation"] == on.layout.allocation_dict(first_allocation(on.projector, state)[0])
    assert decision["predicted"]["iteration_seconds"]["low"] > 0
    reason = decision["reason"]
    assert reason["code"] == "no_model"
    assert ", the best trade-off: finish at" in reason["text"]
    assert reason["text"].endswith("; no domain model yet: predicted from workloads in general")


def test_the_first_decision_without_a_deadline_or_a_model_is_the_specs() -> None:
    metrics = [{"name": "iteration_seconds", "unit": "s"}]
    on = compiled(table=None, spec=planted_spec(metrics=metrics))
    decision = begun(on, begin(on.projector, on.layout.start_levels[None]))
    assert (decision["allocation"], decision["noop"], decision["predicted"]) == ({"executors": 8}, True, {})
    assert decision["reason"] == {
        "code": "no_model",
        "text": "start with 8 executors, the workload's initial allocation; no domain model yet",
    }


def test_without_any_target_the_reason_is_the_cost() -> None:
    spec = planted_spec(metrics=[{"name": "iteration_seconds", "unit": "s"}])
    on = compiled(spec, policy=Scripted(0))
    decision = plain(decide(on, reported(on, [20]), [Subject("r", 4)], NOW)[0])
    assert decision["reason"]["code"] == "slack_to_save_cost"
    assert decision["reason"]["text"].startswith("16 executors: remaining time ")


def notices(on: Compiled, state: State, known: frozenset[int] = frozenset()) -> tuple[str, frozenset[int]]:
    answer = decide(on, state, [Subject("r", 4, notices=known)], NOW)[0]
    return plain(answer)["reason"]["text"], answer.state.state.notices


def test_why_no_agent_answers_is_said_once() -> None:
    on = compiled()
    text, codes = notices(on, reported(on, [8]))
    again, same = notices(on, reported(on, [8], iterations=6), codes)
    assert text.startswith("no agent promoted, model_predictive decides: 9 executors: finish at ")
    assert again.startswith("9 executors: finish at ")
    assert same == codes


def test_why_no_agent_answers_is_not_said_again_after_the_guard_spoke() -> None:
    on = compiled()
    heuristics = reported(on, [8])
    first, codes = notices(on, heuristics)
    guards, selection = notices(on, reported(on, [8], iterations=7), codes)
    assert guards.endswith("more than 0.001 required)")
    again, same = notices(on, heuristics, selection)
    assert first == f"no agent promoted, model_predictive decides: {again}"
    assert same == selection == codes


def test_a_warning_is_said_once_and_again_when_it_changes() -> None:
    on = compiled(policy=Scripted(FASTER))
    strange = reported(on, [12], slower=30.0)
    text, codes = notices(on, strange)
    assert text.startswith("the run is further from the model than any sample; model_predictive decides: ")
    assert notices(on, strange, codes) == (text.partition(": ")[2], codes)
    other = strange._replace(targets=strange.targets * 9)
    assert notices(on, other, codes)[0].startswith("the run is further from the model than any sample, the targets are")
    calm, none = notices(on, reported(on, [12]), codes)
    assert (calm.startswith("16 executors: finish at "), none) == (True, frozenset())
    assert notices(on, strange, none)[0] == text


def test_an_allocation_outside_of_what_was_measured_says_so_once() -> None:
    on = compiled(policy=Scripted(FASTER))
    table = replace(on.projector.table, seen_low=np.array([10.0]), seen_high=np.array([14.0]))
    on = compiled(policy=Scripted(FASTER), table=table)
    text, codes = notices(on, reported(on, [12]))
    assert text.endswith("; outside the measured range (10 to 14 executors)")
    assert "measured" not in notices(on, reported(on, [12]), codes)[0]
    assert "measured" not in notices(on, reported(on, [10]))[0]


def test_an_engine_keeps_what_was_said_from_report_to_report() -> None:
    on = compiled()
    state: Any = ENGINE.begin(on, "r", IterationRunStart(workload="planted"), NOW).state
    texts = []
    for iteration in range(3):
        stored = ENGINE.restore(json.loads(bytes(ENGINE.serialise(state))))
        body = json.dumps({"allocation": {"executors": 8}, "metrics": {"iteration_seconds": seconds(8)}})
        report = ENGINE.read(on, stored, iteration, ENGINE.decode(body.encode()))
        [answered] = all_answered(ENGINE.answer(on, [Pending("r", iteration, stored, report, {}, None)], NOW))
        state = answered.state
        texts.append(json.loads(answered.decision)["reason"]["text"])
    assert [text.startswith("no agent promoted, ") for text in texts] == [True, False, False]


def test_a_run_whose_allocation_keeps_changing_says_so() -> None:
    """A run beside it never follows what the policy recommends: nothing changes there. A failure forgets nothing."""
    for others, flagged in (((9, 8), ["", "", "", "3", "", "5", "5", "5"]), ((8, 8), [""] * 8)):
        on = compiled(policy=Scripted(FASTER))
        state: Any = ENGINE.begin(on, "r", IterationRunStart(workload="planted"), NOW).state
        texts = []
        for iteration, units in enumerate((*others, *others, *others, *others)):
            stored = ENGINE.restore(json.loads(bytes(ENGINE.serialise(state))))
            body = json.dumps({"allocation": {"executors": units}, "metrics": {"iteration_seconds": seconds(units)}})
            report = ENGINE.read(on, stored, iteration, ENGINE.decode(body.encode()))
            pending = Pending("r", iteration, stored, report, {}, None)
            [answered] = all_answered(ENGINE.answer(on, [pending], NOW))
            state = answered.state
            text = json.loads(answered.decision)["reason"]["text"].rpartition("; changed ")[2]
            texts.append(text[0] if text.endswith(" times in the last 5 iterations") else "")
            if iteration == 4:
                current = ENGINE.serving.hold(on, pending, "it failed")
                state, texts[-1] = msgspec.structs.replace(state, state=current.state), ""
        assert texts == flagged


def test_a_run_that_began_without_a_model_goes_on_under_one_as_if_it_had_begun_under_it() -> None:
    """What a run showed against the prior is no run effect under a model of the workload's samples."""
    metrics = [{"name": "iteration_seconds", "unit": "s", "target": 600.0, "scope": "run"}]  # twice what it takes
    spec = planted_spec(metrics=metrics)
    before, after = compiled(table=None, spec=spec), compiled(spec=spec)
    expected = {}
    for name, first in (("switched", before), ("always", after)):
        state: Any = ENGINE.begin(first, "r", IterationRunStart(workload="planted"), NOW).state
        for iteration in range(5):
            on = first if iteration < 4 else after
            report = CheckedReport([8], [seconds(12)], [])  # 12 executors
            (answer,) = all_answered(ENGINE.answer(on, [Pending("r", iteration, state, report, {}, None)], NOW))
            state = answer.state
        expected[name] = plain(answer)["predicted"]["iteration_seconds"]["mean"] / seconds(
            plain(answer)["allocation"]["executors"]
        )
    assert expected["switched"] == pytest.approx(expected["always"], rel=1e-3)


def test_a_probability_that_no_allocation_gives_is_said_to_be_out_of_reach() -> None:
    on = compiled()
    state = reported(on, [8])._replace(probabilities=np.array([[0.95]]), targets=np.array([[200.0]]))
    decision = plain(decide(on, state, [Subject("r", 4)], NOW)[0])
    assert decision["reason"]["text"].endswith("; target 3 min 20 s at 95 % can't be met")
    first = begun(on, begin(on.projector, np.array([[4]]), targets=[[100.0]], probabilities=[[0.9]]))
    assert first["reason"]["text"].endswith("; target 1 min 40 s at 90 % can't be met")


def test_a_decision_tells_the_chance_of_its_allocation() -> None:
    on = compiled()
    state = reported(on, [8])._replace(probabilities=np.array([[0.9]]))
    decision = plain(decide(on, state, [Subject("r", 4)], NOW)[0])
    after = np.array([[on.layout.spec.resources[0].level(decision["allocation"]["executors"])]])
    pause = on.pause(after - state.levels, np.array([True]))
    result = chances(on.projector, state, on.layout.index(after)[None], pause[None])[0, 0, 0]
    assert decision["chances"] == {"iteration_seconds": pytest.approx(result, abs=1e-4)}
    assert result >= 0.9
    assert plain(decide(compiled(table=None), reported(on, [8]), [Subject("r", 4)], NOW)[0])["chances"] == {}
