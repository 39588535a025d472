"""What rollouts play is what the simulator does; and they are better than the rule that they play by."""

import numpy as np
import pytest

from app.kinds.cluster.jobs import NEVER, Floats, Integers, Jobs
from app.kinds.cluster.lookahead import AFTERWARDS, MOST_JOBS, SimulationInputs, costs, rolled_out
from app.kinds.cluster.placement import Rule, Situation
from app.kinds.cluster.strategies import soonest
from tests.app.kinds.cluster.test_completion import cluster
from tests.pollux.tables import TabledOutlook
from workers.kinds.cluster.kernels import ENDED, THERE, Clusters, Rules, allocate_gpus, apply_allocation, pass_interval
from workers.kinds.cluster.world import empty

GPUS, JOBS, INTERVAL, RESTART, SYSTEMS = 4, 3, 60.0, 30.0, 6
SIZES = np.arange(GPUS + 1)
SPEED = np.sqrt(SIZES * np.array([[1.0], [0.5], [0.9]]))


def of_jobs(need: Floats, weight: Floats) -> Rules:
    """Each job an application of its own, all in a queue of its own level's weight."""
    return Rules(
        sizes=SIZES,
        rate=SPEED[:, :, None],
        ends=need[:, None],
        epochs=np.ones(JOBS, np.int64),
        most=np.full(JOBS, GPUS),
        interval=INTERVAL,
        restart=RESTART,
        growth=0,
        weight=weight,
        ageing=np.full(len(weight), np.inf),
        patience=np.inf,
        constants=AFTERWARDS,
    )


def began(rules: Rules, queue: Integers) -> Clusters:
    result = empty(np.zeros((1, JOBS)), np.array([GPUS]))
    result.application[:], result.queue[:] = np.arange(JOBS), queue
    pass_interval(rules, result, 0)
    return result


def played(rules: Rules, queue: Integers, first: Integers) -> float:
    """The weighted sum of seconds from the first decision on, where ``first`` is held until a job has ended."""
    many, ended = began(rules, queue), 0
    apply_allocation(rules, many, 0, first)
    while many.counts[0, ENDED] < JOBS:
        pass_interval(rules, many, 0)
        if many.counts[0, ENDED] > ended and many.counts[0, THERE]:
            apply_allocation(rules, many, 0, allocate_gpus(rules, many, 0))
        ended = many.counts[0, ENDED]
    return float(((many.completed[0] - INTERVAL) * rules.weight[queue]).sum())


@pytest.mark.parametrize("queue", [[0, 0, 0], [1, 0, 1]])
def test_it_plays_as_the_simulator(queue: list[int]) -> None:
    numbers, of = np.random.default_rng(0), np.array(queue)
    sizes = np.tile(SIZES, (JOBS, 1))
    every = np.array([one for one in np.ndindex((GPUS + 1,) * JOBS) if 0 < sum(one) <= GPUS])
    for _ in range(SYSTEMS):
        rules = of_jobs(numbers.uniform(100, 900, JOBS).round(), np.array([4.0, 1.0]))
        with np.errstate(divide="ignore"):
            seconds = rules.ends / SPEED
        none, late = np.zeros(JOBS, np.int64), np.zeros(JOBS)
        ahead = SimulationInputs(sizes, seconds, rules.weight[of], of, none, late, GPUS, RESTART, INTERVAL, AFTERWARDS)
        known = [played(rules, of, one) for one in every]
        np.testing.assert_allclose(costs(ahead, every), known, atol=0.5 * 4 * JOBS)  # ends are whole seconds there


def total(rules: Rules, rule: Rule) -> float:
    """The sum of completion times where ``rule`` is asked at each interval."""
    many, zeros = began(rules, np.zeros(JOBS, np.int64)), np.zeros(JOBS)
    while many.counts[0, THERE]:
        there = many.there[0, : many.counts[0, THERE]]
        one, never = np.ones(len(there), np.int64), np.full(len(there), NEVER)
        request, current, trained = one, many.held[0, there], many.running[0, there]
        limits, waits = (one, GPUS * one), many.restarting[0, there]
        jobs = Jobs(zeros[there], 0 * one, request, *limits, current, trained, never, many.restarts[0, there], waits)
        outlook = TabledOutlook(rules, many, 0, zeros)
        situation = Situation(float(many.now[0]), many.capacity[0], jobs, outlook, RESTART)
        apply_allocation(rules, many, 0, rule(situation).gpus)
        pass_interval(rules, many, 0)
    return float(many.completed[0].sum())


def test_it_is_better_than_its_rule() -> None:
    numbers, ahead = np.random.default_rng(0), rolled_out([1.0], [np.inf])
    systems = [of_jobs(numbers.uniform(100, 900, JOBS).round(), np.ones(1)) for _ in range(SYSTEMS)]
    result = np.array([[total(rules, rule) for rule in (ahead, soonest)] for rules in systems])
    assert (result[:, 0] <= 1.01 * result[:, 1]).all(), result
    assert result[:, 0].sum() < 0.99 * result[:, 1].sum(), result


def test_where_jobs_are_many_the_rule_answers() -> None:
    situation = cluster([1.0] * (MOST_JOBS + 1), [float(1_000 + 9 * one) for one in range(MOST_JOBS + 1)], [0] * 9)
    np.testing.assert_array_equal(rolled_out([1.0], [np.inf])(situation).gpus, soonest(situation).gpus)


def test_where_jobs_came_one_by_one_the_rule_answers_for_others_may_follow() -> None:
    together = cluster([1.0] * JOBS, [786.0, 127.0, 684.0], [0] * JOBS)
    in_turn = together._replace(jobs=together.jobs._replace(submitted=np.array([0.0, 1.0, 62.0])))
    rule = rolled_out([1.0], [np.inf], interval=INTERVAL)
    assert rule(together).gpus.tolist() != soonest(together).gpus.tolist()
    np.testing.assert_array_equal(rule(in_turn).gpus, soonest(in_turn).gpus)
