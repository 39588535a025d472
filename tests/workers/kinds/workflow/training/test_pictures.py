"""What a training shows: the sequence in the middle, played as it was judged, in the form that evaluations use."""

import json
from typing import Any

import numpy as np
import pytest

from app.kinds.workflow.policies.artifact import Scheduler, save
from app.kinds.workflow.scheduling.dispatch import EASY, RLS
from app.kinds.workflow.scheduling.rules import RULES
from tests.workers.kinds.workflow.training.test_schedulers import FAMILIES, MACHINE, SJF, sequences, spec, trace
from workers.evaluation.report.plot import drawn
from workers.kinds.workflow.training.judge import compiled
from workers.kinds.workflow.training.pictures import middle, pictures
from workers.kinds.workflow.training.sequences import Sequence, loss

PORTFOLIO = FAMILIES[2]
PRICED = {"name": "big", "processors": MACHINE, "minimum": 1, "maximum": 1, "price_per_hour": 2.0, "speed": 4.0}
SMALL = {"name": "small", "processors": 2, "maximum": 3}


def shown(policy: Scheduler, mechanism: int = EASY, *, champion: bool = False, price: float = 2.0) -> dict[str, Any]:
    own = spec(nodes=[SMALL, {**PRICED, "price_per_hour": price}])
    found = pictures(own, sequences(mechanism, 3), save(policy), "f4", save(SJF) if champion else None)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    return found


@pytest.mark.parametrize("policy", FAMILIES, ids=lambda policy: policy.name)
def test_what_is_shown_is_what_was_judged(policy: Scheduler) -> None:
    for mechanism in (RLS, EASY):
        played, found = middle(sequences(mechanism, 3)), shown(policy, mechanism, champion=True)
        told = [one["figures"]["slowdown"] for one in found["schedules"][:2]]
        assert told == pytest.approx([loss(played, compiled(policy)), loss(played, compiled(SJF))], rel=1e-12)


def test_agent_champion_best_rule_and_cheapest_are_beside_each_other() -> None:
    found = shown(PORTFOLIO, champion=True)
    names = [one["name"] for one in found["schedules"]]
    cheapest = min(found["points"], key=lambda point: (point["cost"], point["makespan"]))["name"]
    assert names == ["agent", "champion", *dict.fromkeys(["f4+easy-sjf", cheapest])]
    assert [point["name"] for point in found["points"]] == [f"{rule}+easy-sjf" for rule in RULES]
    assert found["schedules"][0]["gantt"]["nodes"] == [{"name": "big-0", "first": 0, "lanes": MACHINE}]
    costs = {one["name"]: one["figures"]["cost"] for one in found["schedules"]}
    assert all(costs[point["name"]] == point["cost"] for point in found["points"] if point["name"] in costs)


def test_where_nothing_costs_anything_nobody_is_the_cheapest() -> None:
    assert [one["name"] for one in shown(SJF, price=0.0)["schedules"]] == ["agent", "f4+easy-sjf"]


def test_the_choices_of_a_gate_are_shown_and_only_those() -> None:
    first, *others = shown(PORTFOLIO, champion=True)["schedules"]
    assert set(first["choices"]) <= {"sjf", "scorer"}
    assert 0 < sum(map(sum, first["choices"].values())) <= first["tasks"]
    assert [one["choices"] for one in others] == [None] * len(others)


def test_what_draws_evaluations_draws_all_of_it() -> None:
    found = shown(PORTFOLIO)
    headings = [heading for heading, _, _ in drawn(found["schedules"], found["points"])]
    charts = [
        "Ranks",
        "Ranks",
        *("Utilisation", "Queue", "Slowdown", "Cost", "What the gate chose"),
        *["Gantt chart"] * 3,
    ]
    assert headings == charts[: 7 + len(found["schedules"])]


def test_the_middle_is_neither_short_nor_idle() -> None:
    usual = [Sequence(trace(seed, 60), MACHINE, RLS) for seed in range(5)]
    short = Sequence(trace(9, 8), MACHINE, RLS)
    idle = Sequence(trace(10)._replace(submit=np.linspace(0.0, 6e7, 60)), MACHINE, RLS)
    assert middle([short, idle, *usual]) is middle([idle, *usual, short])
    assert any(middle([short, idle, *usual]) is one for one in usual)
