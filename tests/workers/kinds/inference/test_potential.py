"""Learners are paid by a potential, less what is only chance: what is best stays so, noise goes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.quality import jain
from tests.workers.kinds.inference.systems import layout, random_legal, service, world
from workers.kinds.inference.simulator.arrivals import Potential
from workers.kinds.inference.simulator.kernels import DECIDED, MISSED, NOW

BATCH, STEPS, SECONDS = 256, 200, 60
NOTHING = Potential(np.zeros(2), np.zeros(2))


def crowded(variation: float = 0.0, purpose: str = "learning") -> Any:
    """Two users, one server that is too slow for both."""
    small = layout(users=2, variants=2, queue_limit=8, batches=[1, 2], episode_seconds=SECONDS)
    return world(small, service(small, 0.5, (1.5, 1.0), 0.2, variation), BATCH, purpose=purpose)


def met(result: Any, potential: Potential) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Random play under a potential: what is paid [T, B] beside its differences, and errors of it as values [T, B]."""
    result.potential = potential
    choose, left, errors, worth = random_legal(3), [], [], crowded()
    worth.reset()
    slope = worth.potential.slope
    _, mask = result.reset()
    for _ in range(STEPS):
        before = result.state.waiting
        step = result.step(choose(mask))
        mask = step.mask
        own = step.discount * ((result.state.waiting - potential.usual) @ potential.slope)
        left.append(step.reward - own + (before - potential.usual) @ potential.slope)
        errors.append(left[-1] + step.discount * (result.state.waiting @ slope) - before @ slope)
    return np.array(left), np.array(errors)


def fitted() -> Potential:
    result = crowded()
    result.reset()
    assert result.potential is not None
    return result.potential


def test_requests_that_wait_are_worth_less_than_nothing() -> None:
    assert (fitted().slope < -0.05).all()


def test_decisions_are_paid_as_much_on_average_through_less_noise() -> None:
    ours, errors = met(crowded(), fitted())
    plain, others = met(crowded(), NOTHING)
    difference = (ours - plain).mean(axis=0)  # of each world, independent of the others
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(BATCH)
    assert np.abs(ours - plain).mean() > 0.01
    assert errors.var() < 0.7 * others.var()


def test_where_rates_vary_only_the_potential_is_paid() -> None:
    ours, _ = met(crowded(variation=0.5), fitted())
    plain, _ = met(crowded(variation=0.5), NOTHING)
    np.testing.assert_allclose(ours, plain, atol=1e-5)


def test_every_world_of_a_problem_finds_the_same() -> None:
    small = layout(users=2, variants=2, queue_limit=8, batches=[1, 2], episode_seconds=SECONDS)
    results = []
    for seed in (1, 2):
        result = world(small, service(small, 0.5, (1.5, 1.0), 0.2), BATCH, seed, purpose="learning")
        result.reset()
        results.append(result.potential.slope)
    np.testing.assert_array_equal(*results)


def test_a_resumed_world_pays_as_it_would_have() -> None:
    result, other, choose = crowded(), crowded(), random_legal(1)
    _, mask = result.reset()
    for _ in range(40):
        mask = result.step(choose(mask)).mask
    other.reset()
    other.potential = None
    other.set_state(result.get_state())
    for _ in range(3):
        action = choose(mask)
        ours, theirs = result.step(action), other.step(action)
        np.testing.assert_array_equal(ours.reward, theirs.reward)
        mask = ours.mask


def test_only_learners_are_paid_so() -> None:
    result = crowded(purpose="evaluation")
    result.reset()
    assert result.potential is None


def test_learners_never_see_what_follows_the_last_request() -> None:
    """Where none comes any more, waiting would seem to cost nothing."""
    result, choose = crowded(), random_legal(5)
    _, mask = result.reset()
    ended = 0
    for _ in range(STEPS):
        step = result.step(choose(mask))
        mask = step.mask
        ended += int(step.done.sum())
        assert (result.worlds.clock[:, NOW] < SECONDS).all()
        np.testing.assert_array_equal(step.done, step.truncated)
    assert ended >= BATCH


def unfair(result: Any) -> NDArray[np.float64]:
    """What Jain's index of the requests decided so far lacks of 1, times the share of the episode that is over, [B]."""
    lost, decided = result.worlds.user_time[:, :, MISSED], result.worlds.user_count[:, :, DECIDED]
    share = np.minimum(result.worlds.clock[:, NOW] / SECONDS, 1.0)
    values: NDArray[np.float64] = share * (1.0 - jain(1.0 - lost / np.maximum(decided, 1)))
    return values


def unequal(purpose: str) -> Any:
    """Two users of one server, who ask for unequally much, with a weight on fairness."""
    weights = {"quality": 1, "fairness": 0.5, "cost": 0, "switching": 0}
    small = layout(
        users=2, quality={"full_until": 0.3, "zero_at": 2.0}, batches=[1, 2], episode_seconds=SECONDS, weights=weights
    )
    return world(small, service(small, 0.5, (2.0, 0.5), 0.2), 16, purpose=purpose)


def test_learners_are_paid_for_fairness_by_the_differences_of_a_potential() -> None:
    result, choose = unequal("learning"), random_legal(7)
    _, mask = result.reset()
    total, often, episodes = np.zeros(16), np.zeros(16), 0
    for _ in range(300):
        before = unfair(result)
        step = result.step(choose(mask))
        mask, paid = step.mask, result.terms[:, 1]
        total, often = total + paid, often + (paid != 0)
        on = ~step.done
        np.testing.assert_allclose(paid[on], (unfair(result) - before)[on], atol=1e-12)
        np.testing.assert_allclose(total[on], unfair(result)[on], atol=1e-12)
        # a whole episode is paid what it would be paid at its end alone
        np.testing.assert_allclose(total[~on], 1.0 - jain(result.after.quality)[~on], atol=1e-12)
        assert (often[~on] > 20).all()
        total[~on], often[~on], episodes = 0.0, 0.0, episodes + int(step.done.sum())
    assert episodes >= 16
    assert jain(result.after.quality).min() < 0.95


def test_policies_are_judged_by_fairness_at_the_end_of_an_episode() -> None:
    result, choose = unequal("evaluation"), random_legal(7)
    _, mask = result.reset()
    total = np.zeros(16)
    for _ in range(result.steps):
        step = result.step(choose(mask))
        mask = step.mask
        assert (result.terms[~step.done, 1] == 0).all()
        total += result.terms[:, 1]
        if step.done.all():
            break
    np.testing.assert_allclose(total, 1.0 - jain(result.state.quality), atol=1e-12)
    assert total.max() > 0.05
