"""What the demo derives from its profile."""

import pytest

from app.demo import plan
from app.demo.plan import Execution, Measured
from app.kinds.iterative.spec import Spec


def execution(percent: float, seconds: float, name: str = "e") -> Execution:
    rows = tuple(Measured(i, percent, seconds, seconds * percent / 100, 1.5, 0.9) for i in range(2))
    return Execution(f"{name}-{percent:g}", rows)


PROFILE = [execution(40, 1.75), execution(100, 0.7), execution(200, 0.5), execution(100, 0.8, "again")]


def test_the_grid_holds_every_profiled_allocation() -> None:
    grid = plan.GRID
    (cpu,) = Spec.model_validate(plan.spec(grid, 24)).resources
    assert all(cpu.level(percent) is not None for percent in grid.profiled)
    assert grid.profiled[0] == grid.minimum
    assert grid.profiled[-1] == grid.maximum < 100, "every machine has a core"
    assert grid.reference in grid.profiled


def test_a_core_for_a_second_costs_one() -> None:
    (cpu,) = Spec.model_validate(plan.spec(plan.GRID, 24)).resources
    assert 100 * cpu.price_per_hour / 3600 == pytest.approx(1)


def test_seconds_are_those_of_the_quickest_run_at_an_allocation() -> None:
    assert plan.seconds_by_percent(PROFILE) == pytest.approx({40: 1.75, 100: 0.7, 200: 0.5})
    assert list(plan.seconds_by_percent(PROFILE[::-1])) == [40, 100, 200]


def test_the_deadline_leaves_slack_over_the_reference() -> None:
    deadline = plan.deadline_seconds(PROFILE, 24, 100)
    assert deadline == pytest.approx(20.5)
    assert 1.2 * 24 * 0.7 <= deadline <= 1.2 * 24 * 0.7 + 0.5


@pytest.mark.parametrize(("deadline", "chosen"), [(100.0, 40.0), (20.5, 100.0), (14.0, 200.0), (1.0, 200.0)])
def test_a_careful_person_takes_the_smallest_that_meets_the_deadline_with_margin(
    deadline: float, chosen: float
) -> None:
    assert plan.static_choice(PROFILE, 24, deadline) == chosen
