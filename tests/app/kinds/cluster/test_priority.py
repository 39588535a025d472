import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kinds.cluster import jobs as table
from app.kinds.cluster.placement import Situation, place
from app.kinds.cluster.strategies import by_priority, urgency
from tests.app.kinds.cluster.situations import Planted, situations

AGEING = [np.inf, 3600.0]


@given(situations())
def test_nobody_runs_in_the_stead_of_who_is_more_urgent(situation: Situation) -> None:
    jobs, gpus = situation.jobs, by_priority(AGEING)(situation).gpus
    rank = list(zip(urgency(jobs, situation.now, np.array(AGEING)).tolist(), jobs.submitted.tolist(), strict=True))
    for one in np.flatnonzero((gpus == 0) & (jobs.requested <= situation.gpus)).tolist():
        assert all(rank[other] < rank[one] for other in np.flatnonzero(gpus).tolist())


def test_a_queue_is_passed_for_each_time_of_waiting() -> None:
    empty = table.none(1)
    queue, ones = np.array([0, 2, 2, 2]), np.ones(4, np.int64)
    jobs = table.arrive(empty, np.array([0.0, 0.0, 0.0, 900.0]), queue, ones, (ones, ones))
    jobs = jobs._replace(running=np.array([0.0, 0.0, 400.0, 0.0]))
    assert urgency(jobs, 1000.0, np.array([np.inf, 500.0, 500.0])).tolist() == [0, 0, 1, 2]


@given(st.integers(0, 2**32 - 1))
def test_who_is_least_urgent_runs_at_last_however_many_come(seed: int) -> None:
    """On four GPUs: urgent jobs of one to four GPUs come for ever, each runs for a minute or two."""
    numbers, ageing, minute = np.random.default_rng(seed), 600.0, 60.0
    jobs, left, now = table.none(1), np.zeros(0), 0.0
    rule, capacity = by_priority([np.inf, ageing]), np.array([4])
    for step in range(60):
        urgent = step > 0
        came = 1 if not urgent else int(numbers.integers(1, 3))
        request = numbers.integers(1, 5, came) if urgent else np.array([4])
        ones = np.ones(came, np.int64)
        jobs = table.arrive(jobs, np.full(came, now), (1 - urgent) * ones, request, (ones, 4 * ones))
        left = np.concatenate([left, numbers.integers(1, 3, came) * minute if urgent else [10 * minute]])
        situation = Situation(now, capacity, jobs, Planted(4, left, left, left, jobs.maximum), 0.0)
        jobs = table.move(jobs, place(situation, rule(situation)), 0.0)
        left = left - minute * jobs.allocation.any(axis=1)
        now += minute
        jobs = table.pass_time(jobs, now, minute, np.inf)
        if jobs.queue[0] == 1 and left[0] <= 0:
            break
        keep = left > 0
        jobs, left = table.keep(jobs, keep), left[keep]
    else:
        pytest.fail("it still waits after an hour")
    assert now <= ageing + 30 * minute
