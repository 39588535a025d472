import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kinds.cluster import jobs as table
from app.kinds.cluster.lookahead import rolled_out
from app.kinds.cluster.placement import Rule, Situation, place
from app.kinds.cluster.policies import LEVELLED, rules
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.strategies import LATE, completing, in_levels, urgency
from tests.app.kinds.cluster.situations import Planted, situations

AGEING, PATIENCE = [np.inf, 3600.0], 1.5e4
SPEC = ClusterSpec.model_validate(
    {
        "name": "c",
        "kind": "cluster",
        "nodes": [{"name": "n", "count": 1, "gpus": 4}],
        "queues": [{"name": "urgent", "weight": 4}, {"name": "rest", "ageing_seconds": 3600}],
        "patience_seconds": 3600,
    }
)


WITHIN = {name: in_levels(rule, AGEING, PATIENCE) for name, rule in LEVELLED.items()}
WEIGHTS = [4.0, 1.0]
BEYOND = {"soonest": completing(WEIGHTS, AGEING, PATIENCE), "rollout": rolled_out(WEIGHTS, AGEING, PATIENCE)}
PRIORITISED = {**BEYOND, **WITHIN}


@pytest.mark.parametrize("rule", PRIORITISED.values(), ids=[*PRIORITISED])
@given(situation=situations())
def test_no_rule_lets_anybody_run_in_the_stead_of_who_is_more_urgent(rule: Rule, situation: Situation) -> None:
    jobs, wanted = situation.jobs, rule(situation)
    assert wanted.gpus.sum() <= situation.gpus
    assert sorted(wanted.order.tolist()) == [*range(len(jobs.queue))]
    level = urgency(jobs, situation.now, np.array(AGEING), PATIENCE)
    for one in np.flatnonzero((wanted.gpus == 0) & (jobs.minimum <= situation.gpus)).tolist():
        assert (level[np.flatnonzero(wanted.gpus)] <= level[one]).all()
    late = level == LATE
    assert (wanted.gpus[late] <= jobs.minimum[late]).all()


@pytest.mark.parametrize("name", [*rules(SPEC)])
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_whoever_waits_runs_at_last_however_many_come(name: str, seed: int) -> None:
    """On four GPUs: urgent short jobs come for ever, and one that is long, least urgent and asks for all of them."""
    rule, numbers, minute = rules(SPEC)[name], np.random.default_rng(seed), 60.0
    jobs, left, now = table.none(1), np.zeros(0), 0.0
    for step in range(240):
        came = 1 if step == 0 else int(numbers.integers(1, 3))
        request = np.array([4]) if step == 0 else numbers.integers(1, 5, came)
        queue, ones = np.full(came, 1 if step == 0 else 0), np.ones(came, np.int64)
        jobs = table.arrive(jobs, np.full(came, now), queue, request, (request, 4 * ones))
        left = np.concatenate([left, np.array([600.0]) if step == 0 else numbers.integers(1, 3, came) * minute])
        situation = Situation(now, np.array([4]), jobs, Planted(4, left, left / 99, left, jobs.maximum), 0.0)
        jobs = table.move(jobs, place(situation, rule(situation)), 0.0)
        left = left - minute * jobs.allocation.any(axis=1)
        now += minute
        jobs = table.pass_time(jobs, now, minute, np.inf)
        if left[0] <= 0:
            return
        keep = left > 0
        jobs, left = table.keep(jobs, keep), left[keep]
    pytest.fail("it still waits after four hours")
