"""Each estimator against its closed form, written as plain loops or taken from torch."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from workers.learning.backends import get_backend
from workers.learning.components.base import reals, unit
from workers.learning.components.exploration import ApeX, EpsilonGreedy, GeometricSchedule, Linear, Softmax
from workers.learning.components.network import Adam, Synchroniser
from workers.learning.components.replay import PrioritisedReplay, Replay, SumTree
from workers.learning.components.value import Huber, NStep, Target

XP = get_backend("numpy").xp


def slab(rng: np.random.Generator, batch: int, number: int) -> dict[str, np.ndarray]:
    return {
        "observation": np.full((batch, 1), number, np.float32),
        "mask": np.ones((batch, 2), np.bool_),
        "action": rng.integers(0, 2, batch),
        "reward": rng.normal(size=batch).astype(np.float32),
        "done": rng.random(batch) < 0.3,
        "next_observation": np.full((batch, 1), number + 1, np.float32),
        "next_mask": np.ones((batch, 2), np.bool_),
    }


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_n_step_return_equals_the_loop(steps: int) -> None:
    rng, batch, gamma = np.random.default_rng(0), 50, 0.9
    component, slabs = NStep(steps, gamma), [slab(np.random.default_rng(n), batch, n) for n in range(12)]
    space = {
        "observation": reals(1),
        "mask": spaces.MultiBinary(2),
        "action": spaces.Discrete(2),
        "reward": reals(),
        "done": spaces.MultiBinary(()),
        "next_observation": reals(1),
        "next_mask": spaces.MultiBinary(2),
    }
    component.allocate(space, rng)
    emitted = [component.run(None, {}, one) for one in slabs]
    assert [len(result["reward"]) for result in emitted] == [0] * (steps - 1) + [batch] * (12 - steps + 1)
    for start, match in enumerate(emitted[steps - 1 :]):
        for b in range(batch):
            total, discount = 0.0, 1.0
            for k in range(steps):
                total += discount * slabs[start + k]["reward"][b]
                discount *= gamma * (not slabs[start + k]["done"][b])
            assert match["reward"][b] == pytest.approx(total, rel=1e-5, abs=1e-6)
            assert match["discount"][b] == pytest.approx(discount, rel=1e-5)
        assert (match["observation"] == start).all()
        assert (match["next_observation"] == start + steps).all()


def test_double_target_evaluates_the_online_choice() -> None:
    select = np.array([[1.0, 5.0, 9.0], [3.0, 2.0, 1.0]], np.float32)
    evaluate = np.array([[10.0, 20.0, 30.0], [7.0, 8.0, 9.0]], np.float32)
    mask = np.array([[True, True, False], [True, True, True]])
    values = {
        "reward": np.array([1.0, 2.0], np.float32),
        "discount": np.array([0.5, 0.0], np.float32),
        "mask": mask,
        "select": select,
        "evaluate": evaluate,
    }
    np.testing.assert_allclose(Target().run(XP, {}, values)["target"], [1.0 + 0.5 * 20.0, 2.0])
    plain = Target().run(XP, {}, {**values, "select": evaluate})["target"]
    np.testing.assert_allclose(plain, [1.0 + 0.5 * 20.0, 2.0])


def test_huber_equals_torchs() -> None:
    rng = np.random.default_rng(0)
    predicted, target, weight = (rng.normal(0, 2, 200).astype(np.float32) for _ in range(3))
    result = Huber(1.0).run(XP, {}, {"predicted": predicted, "target": target, "weight": weight})
    loss = torch.nn.functional.huber_loss(
        torch.from_numpy(predicted), torch.from_numpy(target), reduction="none"
    ).numpy()
    np.testing.assert_allclose(result["loss"], weight * loss, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(result["error"], np.abs(predicted - target))


def test_adam_equals_torchs_with_clipping() -> None:
    rng = np.random.default_rng(0)
    start = rng.normal(size=20).astype(np.float32)
    peer = torch.nn.Parameter(torch.from_numpy(start.copy()))
    optimiser = torch.optim.Adam([peer], lr=0.01)
    ours = {"parameters": start, "first": np.zeros(20, np.float32), "second": np.zeros(20, np.float32)}
    for count in range(1, 30):
        gradient = rng.normal(size=20).astype(np.float32)
        peer.grad = torch.from_numpy(gradient.copy())
        torch.nn.utils.clip_grad_norm_([peer], 2.0)
        optimiser.step()
        ours = dict(Adam(2.0).run(XP, {}, {**ours, "gradient": gradient, "count": count, "rate": 0.01}))
    np.testing.assert_allclose(ours["parameters"], peer.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_synchroniser_is_hard_at_one_and_soft_below() -> None:
    online, target = np.ones(3, np.float32), np.zeros(3, np.float32)
    for share in (1.0, 0.25):
        result = Synchroniser().run(XP, {}, {"online": online, "target": target, "share": share})["target"]
        np.testing.assert_allclose(result, share)


def test_ape_x_ladder() -> None:
    ladder = ApeX().epsilon(0.5, 8)
    np.testing.assert_allclose(ladder, [0.4 ** (1 + 7 * i / 7) for i in range(8)], rtol=1e-6)
    np.testing.assert_allclose(ApeX().epsilon(0.0, 1), [0.4])


def test_ladder_of_temperatures() -> None:
    np.testing.assert_allclose(GeometricSchedule(1.0, 0.01).epsilon(0.3, 3), [1.0, 0.1, 0.01], rtol=1e-5)


def test_linear_schedule_ends_where_it_says() -> None:
    schedule = Linear(1.0, 0.1, 0.5)
    assert [float(schedule.epsilon(p, 1)[0]) for p in (0.0, 0.25, 0.5, 1.0)] == pytest.approx([1.0, 0.55, 0.1, 0.1])


def test_exploration_draws_legal_actions_evenly() -> None:
    batch, rng = 60_000, np.random.default_rng(0)
    mask = np.tile([True, False, True, True], (batch, 1))
    values = {
        "values": np.tile(np.array([0, 9, 1, 0], np.float32), (batch, 1)),
        "mask": mask,
        "noise": rng.random((batch, 2), np.float32),
    }
    action = EpsilonGreedy(spaces.Discrete(4)).run(XP, {}, {**values, "epsilon": np.full(batch, 0.3, np.float32)})[
        "action"
    ]
    shares = np.bincount(action, minlength=4) / batch
    wanted = np.array([0.1, 0.0, 0.8, 0.1])
    assert (np.abs(shares - wanted) <= 4 * np.sqrt(wanted * (1 - wanted) / batch)).all()


def test_softmax_draws_by_value_over_temperature() -> None:
    batch, rng = 60_000, np.random.default_rng(0)
    values, temperature = np.array([0.0, 9.0, 0.2, -0.1], np.float32), 0.25
    inputs = {
        "values": np.tile(values, (batch, 1)),
        "mask": np.tile([True, False, True, True], (batch, 1)),
        "noise": rng.random((batch, 4), np.float32),
        "epsilon": np.full(batch, temperature, np.float32),
    }
    shares = np.bincount(Softmax(spaces.Discrete(4)).run(XP, {}, inputs)["action"], minlength=4) / batch
    wanted = np.exp(values / temperature) * np.array([1, 0, 1, 1])
    wanted /= wanted.sum()
    assert (np.abs(shares - wanted) <= 4 * np.sqrt(wanted * (1 - wanted) / batch)).all()


def test_sum_tree_finds_what_a_cumulative_sum_finds() -> None:
    rng = np.random.default_rng(0)
    tree, priorities = SumTree(100), np.zeros(100)
    for _ in range(5):
        places = rng.integers(0, 100, 60)
        values = rng.random(60)
        tree.set(places, values)
        for place, value in zip(places, values, strict=True):
            priorities[place] = value
    assert tree.total == pytest.approx(priorities.sum())
    mass = rng.random(1000) * tree.total * 0.999999
    np.testing.assert_array_equal(tree.find(mass), np.searchsorted(priorities.cumsum(), mass, side="right"))


def filled(memory: Replay, count: int) -> Replay:
    space = {
        "observation": reals(1),
        "mask": spaces.MultiBinary(2),
        "action": spaces.Discrete(2),
        "reward": reals(),
        "discount": unit(),
        "next_observation": reals(1),
        "next_mask": spaces.MultiBinary(2),
    }
    memory.allocate(space, np.random.default_rng(1))
    mask = np.ones((count, 2), np.bool_)
    number = np.arange(count, dtype=np.float32)
    memory.insert(
        {
            "observation": number[:, None],
            "mask": mask,
            "action": np.zeros(count, np.int64),
            "reward": number,
            "discount": np.ones(count, np.float32),
            "next_observation": number[:, None] + 1,
            "next_mask": mask,
        }
    )
    return memory


@pytest.mark.parametrize(("progress", "beta"), [(0.0, 0.4), (0.25, 0.55), (1.0, 1.0)])
def test_priorities_and_weights_follow_their_formulas(progress: float, beta: float) -> None:
    memory = filled(PrioritisedReplay(8, alpha=0.6, beta=0.4), 8)
    errors = np.linspace(0.1, 3.0, 8).astype(np.float32)
    memory.reprioritise(np.arange(8), errors)
    priority = (errors.astype(np.float64) + 1e-3) ** 0.6
    chance = priority / priority.sum()
    batch, places = memory.sample(80_000, progress)
    shares = np.bincount(places, minlength=8) / 80_000
    np.testing.assert_allclose(shares, chance, atol=4 * np.sqrt(chance * (1 - chance) / 80_000).max())
    weight = (8 * chance[places]) ** -beta
    np.testing.assert_allclose(batch["weight"], weight / weight.max(), rtol=1e-5)


@pytest.mark.parametrize("count", [3, 8, 13, 30])
def test_a_ring_keeps_the_last_of_what_came(count: int) -> None:
    memory = filled(Replay(8), count)
    assert memory.size == min(count, 8)
    assert set(memory.state()["reward"]) == set(range(max(0, count - 8), count))


def test_uniform_samples_are_transitions_that_belong_together() -> None:
    batch, _ = filled(Replay(64), 50).sample(500)
    assert (batch["observation"][:, 0] == batch["reward"]).all()
    assert (batch["next_observation"][:, 0] == batch["reward"] + 1).all()
    assert (batch["weight"] == 1.0).all()
