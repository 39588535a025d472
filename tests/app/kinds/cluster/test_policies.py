"""Agents weigh jobs: whatever they say, no more is given than there is, and who has learned nothing is the rule."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.kinds.cluster import jobs as table
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.placement import Situation, place
from app.kinds.cluster.policies import ENTRIES, FACTORS, Network, factors, load
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.strategies import Part, soonest
from app.policies.artifact import save
from app.policies.base import Arrays
from tests.app.kinds.cluster.situations import Planted, situations

LAYOUT = Layout(
    ClusterSpec.model_validate(
        {
            "name": "c",
            "kind": "cluster",
            "nodes": [{"name": "n", "count": 5, "gpus": 4}],
            "queues": [{"name": "a"}, {"name": "b", "ageing_seconds": 3600}],
        }
    )
)


def network(scale: float, seed: int = 0) -> Network:
    random = np.random.default_rng(seed)
    shape = (len(FACTORS), len(ENTRIES))
    arrays: Arrays = {
        "advantage.weight": scale * random.standard_normal(shape),
        "advantage.bias": np.zeros(len(FACTORS)),
    }
    config = {"algorithm": "ppo", "layers": [], "activation": "relu", "dueling": False}
    return Network.build(config, arrays)


@given(situations(), st.integers(0, 9))
def test_whatever_an_agent_says_no_more_is_given_than_there_is(situation: Situation, seed: int) -> None:
    wanted = LAYOUT.weighing(network(3.0, seed), 2.0)(situation)
    placement = place(situation, wanted)
    assert (placement.sum(axis=0) <= situation.capacity).all()
    np.testing.assert_array_equal(placement.sum(axis=1), wanted.gpus)
    runs = wanted.gpus > 0
    assert (wanted.gpus[runs] >= situation.jobs.minimum[runs]).all()
    assert (wanted.gpus <= situation.jobs.maximum).all()


@given(situations())
def test_who_has_learned_nothing_is_the_rule(situation: Situation) -> None:
    rule = LAYOUT.rules["soonest"](situation)
    np.testing.assert_array_equal(LAYOUT.weighing(network(0.0), 0.0)(situation).gpus, rule.gpus)


@given(situations(), st.randoms(use_true_random=False))
def test_the_order_of_jobs_changes_nothing_that_is_seen_of_them(situation: Situation, random: object) -> None:
    count = len(situation.jobs.requested)
    order = np.array(sorted(range(count), key=lambda _: random.random()))  # type: ignore[attr-defined]
    other = Part(situation.outlook, count, order)
    mixed = situation._replace(jobs=table.keep(situation.jobs, order), outlook=other)
    observation = LAYOUT.observe(situation, 1.0)
    assert np.isfinite(observation).all()
    apart = [at for at, name in enumerate(ENTRIES) if name != "place"]  # of equal ones the first counts
    np.testing.assert_allclose(LAYOUT.observe(mixed, 1.0)[:, apart], observation[order][:, apart], atol=1e-12)


def test_a_heavier_job_has_more() -> None:
    ones = np.ones(2, np.int64)
    jobs = table.arrive(table.none(2), np.zeros(2), 0 * ones, ones, (ones, 8 * ones))
    outlook = Planted(8, np.ones(2), np.zeros(2), np.full(2, 1_000.0), 8 * ones)
    situation = Situation(100.0, np.array([4, 4]), jobs, outlook, 30.0)
    gpus = soonest(situation._replace(factor=np.array([0.25, 2.0]))).gpus
    assert gpus[1] > gpus[0]


def test_a_published_agent_answers_as_before() -> None:
    policy, observation = network(2.0), np.random.default_rng(1).standard_normal((6, len(ENTRIES)))
    result = load(save(policy, "cluster", LAYOUT.entries, LAYOUT.actions, {}))
    result.check("cluster", LAYOUT.entries, LAYOUT.actions)
    outcome = factors(result.policy, observation)
    np.testing.assert_array_equal(outcome, factors(policy, observation))
    assert ((outcome >= FACTORS.min()) & (outcome <= FACTORS.max())).all()
    assert len(set(outcome.tolist())) == 6
