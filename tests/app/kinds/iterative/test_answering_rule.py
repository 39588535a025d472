"""Which heuristic answers while no agent does: the one that the domain model names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.kinds.contract.policy import Situation
from app.kinds.iterative import policies
from app.kinds.iterative.heuristics import HEURISTICS, default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable, initial_table
from app.kinds.iterative.observation import view
from app.kinds.iterative.policies import in_force, terms
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, begin
from tests.app.kinds.iterative.decisions.deciding import NOW, Scripted, Subject, compiled, decide, plain, reported
from tests.planted import planted_spec, planted_table

WHY = "on executions that its models had not seen it returns −0.07 against −0.08 of model_predictive"
SPEC = planted_spec()
UNDER = {name: list(term[:3]) for name, term in terms(SPEC).items()}
HOLDS = replace(planted_table(SPEC), rule="hold", evidence=WHY, terms=UNDER)
SURE = planted_spec(
    metrics=[{"name": "iteration_seconds", "unit": "s", "target": 330.0, "scope": "run", "probability": 0.9}]
)


def subjects(*runs: str) -> list[Subject]:
    return [Subject(run, 4) for run in runs]


def test_the_rule_that_the_domain_model_names_answers_and_says_why() -> None:
    on, usual = compiled(SPEC, HOLDS), compiled(SPEC)
    state = reported(on, [8, 8], slower=2.0)
    one, two = map(plain, decide(on, state, subjects("a", "b"), NOW))
    assert (one["policy"], one["source"], one["noop"]) == ("hold", "heuristic", True)
    assert f"no agent promoted, hold decides ({WHY})" in one["reason"]["text"]
    assert two["noop"]
    other = plain(decide(usual, reported(usual, [8], slower=2.0), subjects("a"), NOW)[0])
    assert (other["policy"], other["noop"]) == ("model_predictive", False)
    assert WHY not in other["reason"]["text"]


def test_it_answers_in_place_of_an_agent_that_fails() -> None:
    on = compiled(SPEC, HOLDS, Scripted(0, failing=True))
    answer = plain(decide(on, reported(on, [8], slower=2.0), subjects("a"), NOW)[0])
    assert (answer["policy"], answer["source"], answer["noop"]) == ("hold", "fallback", True)


def test_a_probability_of_the_workload_has_the_one_rule_that_knows_it() -> None:
    projector = Projector(Layout(SURE), replace(planted_table(SURE), rule="hold", evidence=WHY))
    assert default_heuristic(projector).name == "model_predictive"
    assert default_heuristic(Projector(Layout(SPEC), HOLDS)).name == "hold"
    nothing = replace(initial_table(Layout(SPEC)), rule="hold")
    assert default_heuristic(Projector(Layout(SPEC), nothing)).name == "threshold"


def test_a_probability_of_one_run_has_that_rule_for_this_run_alone() -> None:
    on = compiled(SPEC, HOLDS)
    free = reported(on, [8, 8], slower=2.0)
    state = free._replace(probabilities=np.array([[0.97], [np.nan]]))
    usual = compiled(SPEC)
    wanted = policies.decide(situation(usual.projector, state), None).action
    assert wanted[0] != usual.layout.noop
    decided = policies.decide(situation(on.projector, state), None)
    assert decided.action.tolist() == [wanted[0], on.layout.noop]
    sure, other = map(plain, decide(on, state, subjects("a", "b"), NOW))
    assert (sure["policy"], sure["noop"]) == ("model_predictive", False)
    assert (other["policy"], other["noop"]) == ("hold", True)
    assert WHY not in sure["reason"]["text"]


def test_a_run_with_a_target_far_from_the_workload_s_has_model_predictive_control() -> None:
    on = compiled(SPEC, HOLDS)
    state = reported(on, [8, 8], slower=2.0)._replace(targets=np.array([[330.0 / 2.1], [330.0 / 1.9]]))
    far, near = map(plain, decide(on, state, subjects("a", "b"), NOW))
    assert (far["policy"], near["policy"], near["noop"]) == ("model_predictive", "hold", True)


@pytest.mark.parametrize(
    ("change", "policy"),
    [
        ({"price_per_hour": 1.05}, "hold"),  # within a tenth
        ({"price_per_hour": 2.0}, "model_predictive"),
        ({"price_per_hour": 1.0}, "hold"),
    ],
)
def test_a_rule_that_was_chosen_under_other_terms_does_not_answer(change: dict[str, float], policy: str) -> None:
    """Prices change at once, and the next fit may be far off."""
    resources = [{**SPEC.model_dump()["resources"][0], **change}]
    patched = planted_spec(resources=resources)
    on = compiled(patched, HOLDS)
    answer = plain(decide(on, reported(on, [8], slower=2.0), subjects("a"), NOW)[0])
    assert answer["policy"] == policy
    assert (WHY in answer["reason"]["text"]) is (policy == "hold")
    table = in_force(HOLDS, patched)
    assert (table.rule, table.evidence) == (("hold", WHY) if policy == "hold" else (None, ""))


def situation(projector: Projector, state: State) -> Situation:
    return Situation(projector, state, view(projector, state))


def test_other_rules_keep_their_choice_beside_a_run_with_a_probability() -> None:
    table = replace(planted_table(SPEC), rule="threshold", evidence=WHY, terms=UNDER)
    on = compiled(SPEC, table)
    both = reported(on, [8, 8], slower=2.0)._replace(probabilities=np.array([[0.5], [np.nan]]))
    alone = HEURISTICS["threshold"].act(situation(on.projector, both)).action
    assert alone[1] != on.layout.noop
    assert policies.decide(situation(on.projector, both), None).action[1] == alone[1]


def test_the_rule_survives_the_file_and_an_earlier_file_has_none() -> None:
    again = ModelTable.from_bytes(HOLDS.to_bytes())
    assert (again.rule, again.evidence, again.terms) == ("hold", WHY, UNDER)
    assert ModelTable.from_bytes(planted_table(SPEC).to_bytes()).rule is None
    assert begin(Projector(Layout(SPEC), again), np.array([[3]])).iteration[0] == 0
