"""Targets with a probability: what the chance of meeting one is, and what is done about it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from app.kinds.contract.inputs import InvalidInput
from app.kinds.contract.policy import Situation
from app.kinds.iterative.chance import chances, meets_targets, student_cdf, sums_ahead
from app.kinds.iterative.heuristics import HEURISTICS, best_allocation
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.moves import step
from app.kinds.iterative.observation import everywhere, outlook, view
from app.kinds.iterative.policies import Verdict, decide
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.report import IterationRunStart
from app.kinds.iterative.spec import IterativePatch, Metric, Spec, apply_patch
from app.kinds.iterative.state import State, begin
from tests.app.kinds.iterative.decisions.deciding import Scripted, compiled
from tests.planted import planted_spec, planted_table

DEADLINE = {"name": "iteration_seconds", "unit": "s", "target": 330.0, "scope": "run"}


def sure(probability: float, **changes: Any) -> Spec:
    return planted_spec(metrics=[DEADLINE | {"probability": probability} | changes])


def tilted(spec: Spec, *elasticities: float) -> ModelTable:
    """The planted model, and members with further elasticities about the middle allocation."""
    table, units = planted_table(spec), Layout(spec).allocations[:, 0]
    offsets = np.array(elasticities)[:, None] * np.log(units / units[len(units) // 2])
    shape = (len(elasticities), *table.log_mean.shape)
    return replace(table, members=np.broadcast_to(offsets[:, None, :, None, None], shape).astype(np.float32))


def fresh(projector: Projector, level: int = 8, **changes: Any) -> State:
    return begin(projector, np.array([[level]]), **changes)


def grid_chances(projector: Projector, state: State) -> Any:
    return chances(projector, state, *everywhere(projector, state)[:2])[projector.layout.seconds, :, 0]


@pytest.mark.parametrize("value", [-30.0, -2.1, 0.0, 0.3, 1.5, 4.0, 200.0])
def test_the_distribution_is_students(value: float) -> None:
    assert student_cdf(np.array(value)) == pytest.approx(stats.t(4).cdf(value), abs=1e-12)


def test_the_chance_is_that_of_the_runs_end() -> None:
    """Ends are drawn: the chance is right in the middle, and promises no more than there is in the tails."""
    spec, random = planted_spec(), np.random.default_rng(0)
    projector = Projector(Layout(spec), planted_table(spec, effect=0.15, noise=0.3))
    logs = projector.table.log_mean[0, :, 0, 0]
    factors = np.exp(0.15 * random.standard_normal((20_000, 1)) + 0.3 * random.standard_normal((20_000, 30)))
    ends = factors.sum(axis=1)[:, None] * np.exp(logs)  # [runs, A]
    for quantile in (0.02, 0.5, 0.95):
        target = float(np.quantile(ends[:, 12], quantile))
        chances = grid_chances(projector, fresh(projector, targets=[[target]]))
        current = (ends <= target).mean(axis=0)
        assert (
            chances[12] == pytest.approx(0.5, abs=0.02)
            if quantile == 0.5
            else (chances[12] - current[12]) * (quantile - 0.5) < 0
        )
        assert np.all(np.where(current > 0.5, chances <= current + 0.02, chances >= current - 0.02))


@pytest.mark.parametrize("elasticities", [(), (-1.0, 0.0, 1.0)])
def test_projected_sums_end_where_the_chances_say(elasticities: tuple[float, ...]) -> None:
    spec, shares = planted_spec(), (0.05, 0.3, 0.5, 0.95)
    table = planted_table(spec, effect=0.15, noise=0.3)
    if elasticities:
        table = replace(table, members=tilted(spec, *elasticities).members)
    projector = Projector(Layout(spec), table)
    begun = fresh(projector, 12, targets=[[300.0]])
    state = begun._replace(iteration=np.array([10], np.int32), elapsed=np.array([[90.0]]))
    seconds, until = projector.layout.seconds, [11, 15, 20, 30]
    array = sums_ahead(projector, state, 12, seconds, until, shares)
    assert (np.diff(array, axis=0) > 0).all()
    assert (np.diff(array, axis=1) > 0).all()
    assert (array > 90).all()
    for share, end in zip(shares, array[:, -1], strict=True):
        at_end = state._replace(targets=np.array([[end]]))
        assert grid_chances(projector, at_end)[12] == pytest.approx(share, abs=1e-6)
    other = sums_ahead(projector, state, 3, seconds, until, shares)
    assert (other[2:] > array[2:]).all()  # on fewer units it takes longer, at least in the middle and above


def test_what_members_disagree_on_is_less_sure() -> None:
    spec = planted_spec()
    alone, apart = Projector(Layout(spec), planted_table(spec)), Projector(Layout(spec), tilted(spec, -1.0, 0.0, 1.0))
    known, unsure = (grid_chances(p, fresh(p, targets=[[300.0]])) for p in (alone, apart))
    middle, far = len(known) // 2, 10
    assert unsure[middle] == pytest.approx(known[middle], abs=1e-6)
    assert known[far] > 0.9
    assert unsure[far] < known[far] - 0.05


@pytest.mark.parametrize("goal", ["at_most", "at_least"])
def test_a_target_of_each_iteration_is_held_against_the_next_one(goal: str) -> None:
    metric = {"name": "latency", "target": 1.2, "goal": goal}
    projector = Projector(
        Layout(planted_spec(metrics=[metric, DEADLINE])), planted_table(planted_spec(metrics=[metric, DEADLINE]))
    )
    state = fresh(projector)
    result = chances(projector, state, *everywhere(projector, state)[:2])[0, :, 0]
    below = stats.t(4).cdf(np.log(1.2) / np.sqrt(projector.effect_variance[0] + projector.noise_variance[0]))
    assert result == pytest.approx(below if goal == "at_most" else 1 - below)


@pytest.mark.parametrize("probability", [0.6, 0.9, 0.95])
def test_the_smallest_cost_that_is_sure_enough_is_taken(probability: float) -> None:
    spec = sure(probability, target=420.0, weight=0.001)  # the weights alone would never be in time
    projector = Projector(Layout(spec), tilted(spec, -0.2, 0.0, 0.1))
    state = fresh(projector)
    options = everywhere(projector, state)
    seconds = np.exp(projector.table.log_mean[0, :, 0, 0].astype(float))
    money = projector.layout.allocations[:, 0] * seconds * projector.layout.prices[0]
    cheapest = np.where(grid_chances(projector, state) >= probability, money, np.inf).argmin()
    assert best_allocation(projector, state)[0, 0] == cheapest
    free = state._replace(probabilities=state.probabilities * np.nan)
    assert best_allocation(projector, free)[0, 0] == outlook(projector, free, options)[:, 0].argmax() < cheapest


def test_more_certainty_never_takes_less() -> None:
    spec = sure(0.5, target=420.0)
    projector = Projector(Layout(spec), planted_table(spec))
    taken = [best_allocation(projector, fresh(projector, probabilities=[[p]]))[0, 0] for p in (0.3, 0.6, 0.9, 0.97)]
    assert taken == sorted(taken)
    assert taken[0] < taken[-1]


def test_where_no_allocation_is_sure_enough_the_weights_decide() -> None:
    spec = sure(0.95, target=200.0)
    projector = Projector(Layout(spec), planted_table(spec))
    state = fresh(projector)
    assert not meets_targets(projector, state, everywhere(projector, state)).any()
    observation = view(projector, state)
    choice = HEURISTICS["model_predictive"].act(Situation(projector, state, observation))
    assert choice.action[0] == observation.outlook[0].argmax()


def test_a_sure_allocation_out_of_reach_is_gone_towards() -> None:
    spec = sure(0.95, target=400.0)
    projector = Projector(Layout(spec), planted_table(spec))
    state = fresh(projector, level=0)
    situation = Situation(projector, state, view(projector, state))
    assert not meets_targets(projector, state, everywhere(projector, state))[:5].any()
    decided = decide(situation, None)
    assert decided.verdict[0] == Verdict.FOLLOWED
    assert step(projector.layout, state.levels, decided.action)[0, 0] == 4  # as far as one action goes


def test_a_run_at_the_border_stays_until_less_is_surely_enough() -> None:
    spec = sure(0.9, target=420.0)
    projector = Projector(Layout(spec), planted_table(spec))
    chances = grid_chances(projector, fresh(projector))
    lower = int((chances >= 0.9).argmax())
    for probability, taken in ((chances[lower] - 1e-4, 0), (chances[lower] - 0.05, -1)):  # by a hair, and by more
        state = fresh(projector, level=lower + 1, probabilities=[[probability]])
        assert meets_targets(projector, state, everywhere(projector, state))[lower, 0]
        decided = decide(Situation(projector, state, view(projector, state)), None)
        assert np.sign(projector.layout.deltas[decided.action[0], 0]) == taken


def test_runs_with_and_without_a_probability_are_decided_together() -> None:
    spec = planted_spec()
    projector = Projector(Layout(spec), tilted(spec, -0.2, 0.2))
    both = begin(projector, np.array([[8], [8]]), targets=[[420.0], [420.0]], probabilities=[[0.97], [np.nan]])
    together = HEURISTICS["model_predictive"].act(Situation(projector, both, view(projector, both))).action
    for row in (0, 1):
        one = State(*(field[row : row + 1] for field in both))
        alone = HEURISTICS["model_predictive"].act(Situation(projector, one, view(projector, one))).action
        assert together[row] == alone[0]
    assert together[0] > together[1]


def test_no_agent_answers_for_a_target_with_a_probability() -> None:
    on = compiled(policy=Scripted(0))
    state = fresh(on.projector, probabilities=[[0.95]])
    decided = decide(Situation(on.projector, state, view(on.projector, state)), on.agent)
    assert decided.verdict[0] == Verdict.OUTSIDE_EXPERIENCE
    assert decided.outside["probabilities"].tolist() == [True]
    plain = fresh(on.projector)
    followed = decide(Situation(on.projector, plain, view(on.projector, plain)), on.agent)
    assert followed.verdict[0] == Verdict.FOLLOWED


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": None}, "needs a target to be met"),
        ({"goal": "track"}, "needs goal at_most or at_least"),
        ({"probability": 1.0}, "less than 1"),
        ({"probability": 0.0}, "greater than 0"),
    ],
)
def test_a_spec_says_which_targets_can_have_one(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Metric.model_validate(DEADLINE | {"probability": 0.95} | changes)


def test_a_patch_sets_takes_and_checks_it() -> None:
    spec = planted_spec()
    requested = apply_patch(spec, IterativePatch(probabilities={"iteration_seconds": 0.9}))
    assert requested.metrics[0].probability == 0.9
    assert apply_patch(requested, IterativePatch(targets={"iteration_seconds": 300})).metrics[0].probability == 0.9
    assert apply_patch(requested, IterativePatch(targets={"iteration_seconds": None})).metrics[0].probability is None
    assert apply_patch(requested, IterativePatch(probabilities={"iteration_seconds": None})) == spec
    with pytest.raises(InvalidInput, match="/probabilities/iteration_seconds: needs a target"):
        apply_patch(spec, IterativePatch(targets={"iteration_seconds": None}, probabilities={"iteration_seconds": 0.9}))
    with pytest.raises(InvalidInput, match="/probabilities/latency: unknown name; known: iteration_seconds"):
        apply_patch(spec, IterativePatch(probabilities={"latency": 0.9}))


def test_a_start_takes_what_a_spec_does() -> None:
    assert IterationRunStart(workload="w", probabilities={"iteration_seconds": None}).probabilities
    with pytest.raises(ValidationError, match="less than 1"):
        IterationRunStart(workload="w", probabilities={"iteration_seconds": 1.5})
