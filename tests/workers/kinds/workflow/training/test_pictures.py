"""What a training shows: the sequence in the middle, played as it was judged, in the form that evaluations use."""

import json
from typing import Any

import numpy as np
import pytest

from app.kinds.workflow.policies import Scheduler, save
from app.kinds.workflow.scheduling.dispatch import EASY, RLS
from app.kinds.workflow.scheduling.rules import RULES
from tests.workers.kinds.workflow.training.test_schedulers import MACHINE, SHIPPED_AGENT, SJF, sequences, spec, trace
from workers.evaluation.report.plots import schedule_charts
from workers.kinds.workflow.simulator.simulate import play_agent
from workers.kinds.workflow.training.judge import middle, pictures
from workers.kinds.workflow.training.sequences import Sequence

PRICED = {"name": "big", "processors": MACHINE, "minimum": 1, "maximum": 1, "price_per_hour": 2.0, "speed": 4.0}
SMALL = {"name": "small", "processors": 2, "maximum": 3}


def shown(policy: Scheduler, mechanism: int = EASY, *, champion: bool = False, price: float = 2.0) -> dict[str, Any]:
    own = spec(nodes=[SMALL, {**PRICED, "price_per_hour": price}])
    picture = pictures(own, sequences(mechanism, 3), save(policy), "f4", save(SJF) if champion else None)
    assert json.loads(json.dumps(picture, allow_nan=False)) == picture
    return picture


def slowdown(sequence: Sequence, policy: Scheduler) -> float:
    """Of the whole sequence, as pictures tell it."""
    jobs = sequence.trace
    begun = play_agent(policy, jobs, MACHINE, sequence.mechanism, sequence.fill)
    return float(np.maximum(1.0, (begun - jobs.submit + jobs.runtime) / np.maximum(jobs.runtime, 10.0)).mean())


@pytest.mark.parametrize("policy", [SJF, SHIPPED_AGENT], ids=lambda policy: policy.name)
def test_what_is_shown_is_what_was_judged(policy: Scheduler) -> None:
    for mechanism in (RLS, EASY):
        played, picture = middle(sequences(mechanism, 3)), shown(policy, mechanism, champion=True)
        reported = [one["figures"]["slowdown"] for one in picture["schedules"][:2]]
        assert reported == pytest.approx([slowdown(played, policy), slowdown(played, SJF)], rel=1e-12)


def test_agent_champion_best_rule_and_cheapest_are_beside_each_other() -> None:
    picture = shown(SHIPPED_AGENT, champion=True)
    names = [one["name"] for one in picture["schedules"]]
    cheapest = min(picture["points"], key=lambda point: (point["cost"], point["makespan"]))["name"]
    assert names == ["agent", "champion", *dict.fromkeys(["f4+easy", cheapest])]
    assert [point["name"] for point in picture["points"]] == [f"{rule}+easy" for rule in RULES]
    assert picture["schedules"][0]["gantt"]["nodes"] == [{"name": "big-0", "first": 0, "lanes": MACHINE}]
    costs = {one["name"]: one["figures"]["cost"] for one in picture["schedules"]}
    assert all(costs[point["name"]] == point["cost"] for point in picture["points"] if point["name"] in costs)


def test_where_nothing_costs_anything_nobody_is_the_cheapest() -> None:
    assert [one["name"] for one in shown(SJF, price=0.0)["schedules"]] == ["agent", "f4+easy"]


def test_what_draws_evaluations_draws_all_of_it() -> None:
    picture = shown(SHIPPED_AGENT)
    headings = [heading for heading, _, _ in schedule_charts(picture["schedules"], picture["points"])]
    charts = ["Ranks", "Ranks", "Utilisation", "Queue", "Slowdown", "Cost", *["Gantt chart"] * 3]
    assert headings == charts[: 6 + len(picture["schedules"])]


def test_the_middle_is_neither_short_nor_idle() -> None:
    usual = [Sequence(trace(seed, 60), MACHINE, RLS) for seed in range(5)]
    short = Sequence(trace(9, 8), MACHINE, RLS)
    idle = Sequence(trace(10)._replace(submit=np.linspace(0.0, 6e7, 60)), MACHINE, RLS)
    assert middle([short, idle, *usual]) is middle([idle, *usual, short])
    assert any(middle([short, idle, *usual]) is one for one in usual)
