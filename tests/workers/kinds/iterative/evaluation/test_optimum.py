import itertools
from dataclasses import replace

import numpy as np
import pytest

from app.kinds.contract.policy import Situation
from app.kinds.iterative.heuristics import HEURISTICS, first_allocation
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import begin
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.optimum import Grid, NoOptimum, plan, solve, why_not
from workers.kinds.iterative.simulator import TRAINING, IterativeSimulator

TIMED = {"name": "iteration_seconds", "scope": "run"}
SMALL = planted_spec(
    resources=[{"name": "executors", "minimum": 4, "maximum": 12, "step": 4, "max_steps": 1, "change_seconds": 2.0}],
    metrics=[{"name": "iteration_seconds", "target": 52.0, "scope": "run"}],
    iterations=5,
)


def by_search(spec: Spec, table: ModelTable) -> float:
    """The best return of all sequences of allocations when nothing is uncertain."""
    layout = Layout(spec)
    seconds = np.exp(table.log_mean[0, :, 0, 0]).astype(float)
    values = layout.allocations[:, 0]
    whole = spec.iterations * seconds[-1] * values[-1]
    target = spec.metrics[0].target or 0
    projector = Projector(layout, table)
    first = int(first_allocation(projector, begin(projector, layout.start_levels[None]))[0, 0])
    best = -np.inf
    for levels in itertools.product(range(3), repeat=spec.iterations):
        moves = np.abs(np.diff(levels))
        if (moves > 1).any():
            continue
        taken = seconds[list(levels)] + np.append(0, 2.0 * (moves > 0))
        cost = (taken * values[list(levels)]).sum() / whole
        late = max(taken.sum() / target - 1, 0)
        if levels[0] == first:
            best = max(best, -(late + 0.1 * cost + 0.01 * moves.sum() / spec.iterations))
    return best


def test_without_uncertainty_it_is_exhaustive_search() -> None:
    table = planted_table(SMALL, effect=1e-3, noise=1e-3)
    solution = solve(Layout(SMALL), table, Grid(401, 5, 5), with_error=False)
    assert solution.expected == pytest.approx(by_search(SMALL, table), rel=0.01)


def test_it_knows_which_iterations_are_noisy() -> None:
    """What a loud stage says counts for little: with that known, its policy earns what it promises, and more."""
    spec = planted_spec(iterations=12, metrics=[{"name": "iteration_seconds", "target": 140.0, "scope": "run"}])
    alike = planted_table(spec, effect=0.3, noise=0.05)
    bins = np.repeat(np.arange(2, dtype=np.int32), 6)
    loud = np.array([[0.6, 0.02]])
    table = replace(alike, log_mean=np.repeat(alike.log_mean, 2, axis=3), iteration_bin=bins, noise_by_bin=loud)
    solution, ignorant = solve(Layout(spec), table), solve(Layout(spec), replace(table, noise_by_bin=None))
    evaluator = Evaluator(spec, table, seed=11, episodes=8192)
    earned, other = (evaluator.score(plan.policy).returns for plan in (solution, ignorant))
    assert abs(earned.mean() - solution.expected) <= 4 * earned.std() / len(earned) ** 0.5 + solution.error
    ahead = earned - other
    assert ahead.mean() > 4 * ahead.std() / len(ahead) ** 0.5


@pytest.mark.parametrize("spread", [{"effect": 0.15, "noise": 0.15}, {"effect": 0.3, "noise": 0.1, "drift": 0.03}])
def test_what_it_promises_is_what_its_policy_earns(spread: dict[str, float]) -> None:
    """Within four standard errors plus the grid's own stated error."""
    spec = planted_spec(iterations=12, metrics=[{"name": "iteration_seconds", "target": 140.0, "scope": "run"}])
    table = planted_table(spec, **spread)
    solution = solve(Layout(spec), table)
    evaluator = Evaluator(spec, table, seed=11, episodes=8192)
    returns = evaluator.score(solution.policy).returns
    error = returns.std() / len(returns) ** 0.5
    assert abs(returns.mean() - solution.expected) < 4 * error + solution.error


def test_an_iteration_target_is_solved_too() -> None:
    spec = planted_spec(iterations=8, metrics=[{"name": "iteration_seconds", "target": 9.0}])
    table = planted_table(spec, effect=0.2, noise=0.05)
    solution = solve(Layout(spec), table)
    evaluator = Evaluator(spec, table, seed=3, episodes=4096)
    scores = evaluator.score(solution.policy).returns
    best = max(evaluator.score(rule).returns.mean() for rule in HEURISTICS.values())
    assert scores.mean() > best - 4 * scores.std() / 64


def test_what_can_not_be_had_says_why() -> None:
    two = planted_spec(metrics=[{"name": "loss", "target": 1.0}])
    assert "loss" in (why_not(Layout(two), planted_table(two)) or "")
    long = planted_spec(iterations=3000)
    assert "state-actions" in (why_not(Layout(long), planted_table(long)) or "")
    with pytest.raises(NoOptimum, match="state-actions"):
        solve(Layout(long), planted_table(long))


def test_a_changed_target_is_obeyed_without_solving_again() -> None:
    spec = planted_spec()
    table = planted_table(spec)
    policy = solve(Layout(spec), table, Grid(81, 9, 7), with_error=False).policy
    late = planted_spec(metrics=[{"name": "iteration_seconds", "target": 280.0, "scope": "run"}])
    evaluator = Evaluator(late, table, seed=5, episodes=2048)
    own = solve(Layout(late), table, Grid(81, 9, 7), with_error=False).policy
    returns, fresh = evaluator.score(policy).returns.mean(), evaluator.score(own).returns.mean()
    assert returns == pytest.approx(fresh, rel=0.03)


def test_its_policy_is_legal_wherever_it_is_asked() -> None:
    spec = planted_spec()
    policy = solve(Layout(spec), planted_table(spec), Grid(21, 5, 5), with_error=False).policy
    simulator = IterativeSimulator(Layout(spec), planted_table(spec), 512, 1, TRAINING)
    simulator.reset()
    choice = policy.act(Situation(simulator.projector, simulator.state, simulator.view))
    assert simulator.view.mask[np.arange(512), choice.action].all()
    assert choice.values is not None
    assert np.isfinite(choice.values[simulator.view.mask]).all()


@pytest.mark.slow
def test_a_plan_on_a_coarser_grid_still_beats_every_heuristic() -> None:
    """Two resources: no yardstick can be had, but a policy that is better with 95 % confidence."""
    resource = {"minimum": 1, "maximum": 12, "max_steps": 2, "change_seconds": 1.0}
    resources = [resource | {"name": "gpus"}, resource | {"name": "cpus", "price_per_hour": 0.1}]
    spec = planted_spec(resources=resources, iterations=20, metrics=[{**TIMED, "target": 230.0}])
    table = planted_table(spec, effect=0.3, noise=0.2)
    with pytest.raises(NoOptimum):
        solve(Layout(spec), table)
    evaluator = Evaluator(spec, table, seed=5, episodes=2048)
    planned = evaluator.score(plan(Layout(spec), table).policy).returns
    for rule in HEURISTICS.values():
        ahead = planned - evaluator.score(rule).returns
        assert ahead.mean() > 1.96 * ahead.std() / 2048**0.5, rule.name
