"""What the demo derives from its profile: deadline, static allocations, and what was saved."""

from collections.abc import Sequence

import numpy as np
import pytest
from steward_demos import iterative_run as plan
from steward_demos.iterative import compared
from steward_demos.iterative_run import Advice, Measured, Profile, Row, Run

from app.kinds.iterative.spec import Spec


def rows(percent: float, *, beside: bool = False, noise: float = 0.0, seed: int = 0) -> list[Measured]:
    """A run of 24 iterations as the story has it, at one allocation."""
    random, rows = np.random.default_rng(seed), []
    for number in range(24):
        disturbed = beside and number in plan.disturbed_iterations(24)
        wait, work = (0.9, 0.0) if plan.phase_of(number) == "save" else (0.03, 0.13)
        seconds = (wait + work * (2 if disturbed else 1) * 100 / percent) * np.exp(random.normal(0, noise))
        rows.append(Measured(number, percent, float(seconds), work, 1.0, 0.9, disturbed))
    return rows


def total(measured: Sequence[Measured]) -> float:
    return sum(row.seconds for row in measured)


UNDISTURBED = Profile(row for percent in plan.PROFILED for row in rows(percent))
SEEN = Profile(row for percent in (20, 40, 90) for beside in (False, True) for row in rows(percent, beside=beside))


def test_every_allocation_can_be_reached_in_one_step_and_disturbances_are_declared() -> None:
    spec = Spec.model_validate(plan.spec(24))
    (cpu,) = spec.resources
    assert all(cpu.level(percent) is not None for percent in (*plan.PROFILED, *plan.GRID))
    assert cpu.max_steps == cpu.levels - 1
    assert cpu.maximum < 100, "every machine has a core"
    assert spec.disturbances.pace_shift is not None


def test_a_profile_predicts_runs_at_allocations_that_were_not_measured() -> None:
    assert UNDISTURBED.seconds(70, 24) == pytest.approx(total(rows(70)))
    assert SEEN.seconds(60, 24, plan.disturbed_iterations(24)) == pytest.approx(total(rows(60, beside=True)))


def test_a_phase_that_gets_slower_with_more_cpu_is_taken_to_be_flat() -> None:
    slower = [Measured(3, percent, seconds, 0, 1, 1) for percent, seconds in ((20, 0.88), (90, 0.92))]
    profile = Profile([*rows(40), *slower])
    assert profile.phases["save", False][1] == 0


def test_the_careful_static_meets_the_deadline_alone_and_misses_it_beside_the_neighbour() -> None:
    deadline = plan.deadline_seconds(UNDISTURBED, 24)
    careful = plan.careful_static(UNDISTURBED, 24, deadline)
    assert careful == plan.REFERENCE
    assert total(rows(careful)) < deadline < total(rows(careful, beside=True))


def test_the_best_static_is_the_smallest_that_meets_the_deadline_beside_the_neighbour() -> None:
    deadline = plan.deadline_seconds(UNDISTURBED, 24)
    best = plan.best_static(SEEN, 24, deadline)
    assert total(rows(best, beside=True)) <= deadline < total(rows(best - plan.STEP, beside=True))
    assert plan.best_static(SEEN, 24, 1.0) == plan.MAXIMUM


def test_intervals_of_what_was_saved_hold() -> None:
    """Of 400 pairs of runs with known costs, about 95 % of the intervals hold the true share."""
    true = 1 - sum(row.reserved for row in rows(40, beside=True)) / sum(row.reserved for row in rows(90, beside=True))
    current = 0
    for seed in range(400):
        result = plan.saved(
            rows(40, beside=True, noise=0.1, seed=2 * seed), rows(90, beside=True, noise=0.1, seed=2 * seed + 1)
        )
        current += result.low <= true <= result.high
    assert current >= 0.95 * 400 - 4 * (400 * 0.95 * 0.05) ** 0.5


def driven(name: str, percent: float, seconds: float) -> Run:
    """A run of one iteration, against a deadline of 5 s."""
    advice = Advice(percent, "")
    row = Row(advice, Measured(0, percent, seconds, 1.0, 0.5, 0.9), seconds, advice)
    return Run(name, name, (row,), 5.0)


@pytest.mark.parametrize(
    ("steward", "other", "text"),
    [
        (4.8, (100, 6.0), "20% less (20% to 20%) than other, which missed the deadline"),
        (4.8, (200, 3.0), "20% less (20% to 20%) than other"),
        (4.8, (100, 4.0), "20% more (20% to 20%) than other: it was as good or better"),
        (4.8, (100, 4.8), "0% less (0% to 0%) than other: it was as good or better"),
        (5.5, (200, 3.0), "8% less (8% to 8%) than other, which met the deadline: it was the better choice"),
        (5.5, (100, 6.0), "8% less (8% to 8%) than other, which missed the deadline"),
    ],
)
def test_a_run_in_which_a_static_was_as_good_says_so(steward: float, other: tuple[float, float], text: str) -> None:
    assert compared(driven("Steward", 100, steward), driven("other", *other)) == text
