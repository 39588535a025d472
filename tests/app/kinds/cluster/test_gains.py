from itertools import product

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from app.kinds.cluster.allocation.gains import Steps, greatest_gain, grid, grow, seconds_on, steps
from app.kinds.cluster.allocation.priority import urgency
from app.kinds.cluster.allocation.situation import Situation
from tests.app.kinds.cluster.situations import situations

AGEING, WEIGHTS = [np.inf, 3600.0], [4.0, 1.0]
RULE = greatest_gain(AGEING, WEIGHTS)


@given(situations())
def test_sums_and_limits_hold(situation: Situation) -> None:
    jobs, gpus = situation.jobs, RULE(situation).gpus
    assert gpus.sum() <= situation.gpus
    assert ((gpus == 0) | ((gpus >= jobs.minimum) & (gpus <= jobs.maximum))).all()


@given(situations())
def test_nobody_runs_in_the_stead_of_who_is_more_urgent(situation: Situation) -> None:
    jobs, gpus = situation.jobs, RULE(situation).gpus
    rank = list(zip(urgency(jobs, situation.now, np.array(AGEING)).tolist(), jobs.submitted.tolist(), strict=True))
    for one in np.flatnonzero((gpus == 0) & (jobs.minimum <= situation.gpus)).tolist():
        assert all(rank[other] < rank[one] for other in np.flatnonzero(gpus).tolist())


@given(situations(most=4), st.integers(0, 5))
def test_no_other_numbers_that_are_as_many_together_are_worth_more(situation: Situation, count: int) -> None:
    """Steps by what they bring for each GPU are the best at each sum that they reach."""
    sizes = grid(situation)
    value = -seconds_on(situation, sizes)
    assume(np.isfinite(value).all())
    wanted = Steps._make(column[:count] for column in steps(sizes, value))
    gpus = sizes[:, 0].copy()
    grow(gpus, wanted, 1_000)
    worth = [dict(zip(*(row.tolist() for row in pair), strict=True)) for pair in zip(sizes, value, strict=True)]
    own = sum(of_job[has] for of_job, has in zip(worth, gpus.tolist(), strict=True))
    for other in product(*worth):
        if sum(other) <= gpus.sum():
            assert sum(of_job[has] for of_job, has in zip(worth, other, strict=True)) <= own + 1e-6 * abs(own)


@given(st.integers(0, 2**32 - 1))
def test_steps_of_a_job_stand_in_their_order_and_bring_less_and_less(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    sizes = np.sort(numbers.integers(1, 20, (5, 6)), axis=1)
    value = np.sort(numbers.uniform(0, 1, (5, 20)), axis=1)[np.arange(5)[:, None], sizes - 1]
    wanted = steps(sizes, value)
    for job in range(5):
        own = wanted.job == job
        start, end = wanted.start[own], wanted.end[own]
        assert (end > start).all()
        assert (start[1:] == end[:-1]).all()
