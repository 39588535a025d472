from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kinds.cluster import jobs as table
from app.kinds.cluster.lookahead import rolled_out
from app.kinds.cluster.placement import Rule, Situation, place
from app.kinds.cluster.strategies import completing, fitting, marginal, places, soonest, urgency, values
from tests.app.kinds.cluster.situations import Planted, situations

AGEING = np.array([np.inf, 5_000.0])
RULES = [soonest, completing([4.0, 1.0], AGEING.tolist()), rolled_out([4.0, 1.0], AGEING.tolist())]


def cluster(seconds: list[float], left: list[float], current: list[int], queue: list[int] | None = None) -> Situation:
    """Jobs of one update a second and GPU at most, on two nodes of four GPUs; ``current`` on the first nodes."""
    count, capacity = len(seconds), np.array([4, 4])
    ones = np.ones(count, np.int64)
    queues = np.array(queue or [0] * count)
    jobs = table.arrive(table.none(2), np.arange(count, dtype=np.float64), queues, ones, (ones, 8 * ones))
    outlook = Planted(8, np.array(seconds), np.zeros(count), np.array(left), 8 * ones)
    empty = Situation(100.0, capacity, jobs, outlook, 30.0)
    on = np.array([[min(gpus, 4), max(gpus - 4, 0)] for gpus in current])
    return empty._replace(jobs=jobs._replace(allocation=on))


@pytest.mark.parametrize(("rule", "queues"), [(RULES[0], 1), (RULES[1], 2), (RULES[2], 2)])
@given(situations())
def test_no_node_gives_more_than_it_has_and_no_job_gets_less_than_it_can_use(
    rule: Rule, queues: int, situation: Situation
) -> None:
    situation = situation._replace(jobs=situation.jobs._replace(queue=situation.jobs.queue % queues))
    wanted = rule(situation)
    placement = place(situation, wanted)
    assert (placement >= 0).all()
    assert (placement.sum(axis=0) <= situation.capacity).all()
    np.testing.assert_array_equal(placement.sum(axis=1), wanted.gpus)
    runs = wanted.gpus > 0
    assert (wanted.gpus[runs] >= situation.jobs.minimum[runs]).all()
    assert (wanted.gpus <= situation.jobs.maximum).all()


@given(situations())
def test_nobody_runs_while_a_more_urgent_job_waits_that_could_run(situation: Situation) -> None:
    gpus, jobs = RULES[1](situation).gpus, situation.jobs
    level = urgency(jobs, situation.now, AGEING)
    for one in np.flatnonzero((gpus == 0) & (jobs.minimum <= situation.gpus)):
        assert not ((gpus > 0) & (level > level[one])).any()


def test_of_two_alike_the_shorter_has_more() -> None:
    gpus = soonest(cluster([1.0, 1.0], [1_000.0, 9_000.0], [0, 0])).gpus
    assert gpus[0] > gpus[1]


def test_a_gain_that_a_restart_would_eat_changes_nothing() -> None:
    before = [4, 4]
    still = soonest(cluster([1.0, 1.0], [100.0, 90.0], before)).gpus
    assert still.tolist() == before
    moved = soonest(cluster([1.0, 1.0], [90_000.0, 90.0], before)).gpus
    assert moved[1] >= moved[0]


def test_a_heavier_queue_has_more() -> None:
    rule = completing([8.0, 1.0], [np.inf, np.inf])
    gpus = rule(cluster([1.0, 1.0], [1_000.0, 1_000.0], [0, 0], [1, 0])).gpus
    assert gpus[1] > gpus[0]


@given(st.lists(st.floats(1, 1e5), min_size=1, max_size=20, unique=True))
def test_a_second_less_of_a_shorter_job_is_worth_more(seconds: list[float]) -> None:
    values = places(np.array(seconds))
    assert (np.diff(values[np.argsort(seconds)]) < 0).all()
    assert values.min() == pytest.approx(1.0)


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_no_step_that_fits_is_worth_more(jobs: int, total: int, seed: int) -> None:
    sizes = np.array([0, 1, 2, 4, 8])
    worth = np.random.default_rng(seed).uniform(0, 1, (jobs, 5)).cumsum(axis=1)
    concave = np.interp(sizes, np.arange(9), np.zeros(9))[None] + np.sqrt(sizes)[None] * worth[:, -1:]
    at = marginal(concave, np.tile(sizes, (jobs, 1)), np.zeros(jobs, np.int64), total)
    free = total - sizes[at].sum()
    assert free >= 0
    for job in range(jobs):
        if at[job] < 4:
            assert sizes[at[job] + 1] - sizes[at[job]] > free
    every = [one for one in product(range(5), repeat=jobs) if sizes[list(one)].sum() <= total]
    best = max(sum(concave[job, at_] for job, at_ in enumerate(one)) for one in every)
    assert sum(concave[range(jobs), at]) >= 0.8 * best


def test_what_a_change_would_cost_is_in_its_value() -> None:
    situation = cluster([1.0, 1.0], [1_000.0, 1_000.0], [4, 0])
    sizes = np.tile(fitting(situation.capacity), (2, 1))
    result = values(situation, sizes, np.ones(2))
    stays = values(situation._replace(restart_seconds=0.0), sizes, np.ones(2))
    np.testing.assert_array_equal((result < stays)[:, 1:], [[True, True, False, True], [False] * 4])
    np.testing.assert_array_equal((result > stays)[:, 1:], [[False, False, True, False], [False] * 4])


@pytest.mark.parametrize("count", [2, 3, 7])
@given(seed=st.integers(0, 2**32 - 1))
def test_jobs_that_are_alike_do_not_take_turns(count: int, seed: int) -> None:
    """What is left of them strays as paces do, and says nothing of who ran: nobody gives way for it."""
    numbers, situation = np.random.default_rng(seed), cluster([1.0] * count, [5_000.0] * count, [0] * count)
    first = place(situation, soonest(situation))
    situation = situation._replace(jobs=situation.jobs._replace(allocation=first))
    for step in range(20):
        left = 5_000.0 * numbers.uniform(0.997, 1.003, count)
        outlook = Planted(8, np.ones(count), np.zeros(count), left, 8 * np.ones(count, np.int64))
        situation = situation._replace(outlook=outlook, now=100.0 + 60 * step)
        placement = place(situation, soonest(situation))
        np.testing.assert_array_equal(placement.any(axis=1) >= situation.jobs.allocation.any(axis=1), [True] * count)
        situation = situation._replace(jobs=situation.jobs._replace(allocation=placement))
