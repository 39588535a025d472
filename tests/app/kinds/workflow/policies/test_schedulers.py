"""Schedulers as files, and as what answers."""

import numpy as np
import pytest

from app.kinds.workflow.policies import SHIPPED, PriorityPolicy, Scheduler, StrategyPolicy, Waiting, load, save
from app.kinds.workflow.scheduling.dispatch import CONSERVATIVE, EASY, NONE, RLS
from app.kinds.workflow.scheduling.planning import AGEING, PREDICTION, SAF, WEIGHTS
from app.policies.base import IncompatibleArtifact

SMALLEST_AREA = np.array(SAF)
RULE = StrategyPolicy({"rule": "saf"})


def priority(**changed: float) -> PriorityPolicy:
    """The smallest area first, with other weights by place, the same under every mechanism."""
    weights = SMALLEST_AREA.copy()
    for place, value in changed.items():
        weights[int(place.removeprefix("w"))] = value
    return PriorityPolicy(np.tile(weights, (3, 1)))


def waiting(seed: int = 0, count: int = 12, mechanism: int = EASY) -> Waiting:
    rng = np.random.default_rng(seed)
    requested = rng.uniform(20, 5000, count).round()
    submit, share = np.sort(rng.uniform(0, 900, count)), -rng.uniform(0, 2, count)
    return Waiting(1000.0, submit, requested, requested, share, rng.integers(1, 9, count), 8, mechanism)


@pytest.mark.parametrize("policy", [RULE, priority(w2=0.4, w6=0.7)])
def test_what_is_read_back_orders_the_same(policy: Scheduler) -> None:
    again = load(save(policy))
    before, after = policy.orders(waiting()), again.orders(waiting())
    np.testing.assert_array_equal(before.scores, after.scores)
    assert (before.overtaking is None) == (after.overtaking is None)


def test_what_ships_are_priorities() -> None:
    shipped = load(SHIPPED.read_bytes())
    assert isinstance(shipped, PriorityPolicy)
    assert np.isfinite(shipped.orders(waiting()).scores).all()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"nothing", "not a policy artifact"),
        (save(StrategyPolicy({"rule": "best"})), "no rule is called 'best'"),
        (save(PriorityPolicy(np.zeros((2, WEIGHTS)))), "for each of 3"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(data: bytes, message: str) -> None:
    with pytest.raises(IncompatibleArtifact, match=message):
        load(data)


def test_the_smallest_area_is_a_member_of_the_family() -> None:
    for seed in range(20):
        observation = waiting(seed)
        np.testing.assert_array_equal(
            np.argsort(priority().orders(observation).scores, kind="stable"),
            np.argsort(RULE.orders(observation).scores, kind="stable"),
        )


def test_a_predicted_share_counts_as_much_as_its_weight_says() -> None:
    observation = waiting()
    believed, predicted = (
        priority().orders(observation).scores,
        priority(**{f"w{PREDICTION}": 0.5}).orders(observation).scores,
    )
    np.testing.assert_allclose(predicted - believed, 0.5 * observation.share)


def test_who_waits_longer_comes_first_where_ageing_counts() -> None:
    queue = waiting()._replace(
        requested=np.full(12, 600.0), share=np.zeros(12), processors=np.full(12, 2), submit=np.arange(12.0)
    )
    assert np.ptp(priority().orders(queue).scores) == 0.0
    assert (np.diff(priority(**{f"w{AGEING}": 0.5}).orders(queue).scores) > 0.0).all()


def test_each_mechanism_has_weights_of_its_own() -> None:
    policy = PriorityPolicy(np.arange(3.0)[:, None] + np.zeros((3, WEIGHTS)))
    values = [float(policy.under(mechanism)[0]) for mechanism in (NONE, RLS, EASY, CONSERVATIVE)]
    assert values == [0.0, 1.0, 2.0, 2.0]
