"""The estimators and losses of the actor-critic family against closed forms, as plain loops or from torch."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from tests.workers.learning import environments
from workers.learning.backends import get_backend
from workers.learning.components.policy import (
    GAE,
    ActorCriticLoss,
    ClippedSurrogate,
    Draw,
    LogProbability,
    NegativeLogLikelihood,
    Normalise,
    Surrogate,
    ValueLoss,
    VTrace,
)

XP = get_backend("numpy").xp
BATCH, STEPS = 40, 7
Arrays = dict[str, NDArray[Any]]


def trajectories(seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    numbers = {
        name: rng.normal(size=(BATCH, STEPS)).astype(np.float32)
        for name in ("reward", "value", "log_prob", "behaviour")
    }
    return {**numbers, "done": rng.random((BATCH, STEPS)) < 0.2, "last": rng.normal(size=BATCH).astype(np.float32)}


@pytest.mark.parametrize(("gamma", "trace"), [(1.0, 0.95), (0.9, 0.5), (0.9, 0.0), (1.0, 1.0)])
def test_gae_equals_its_definition(gamma: float, trace: float) -> None:
    """A_t = Σ_l (γλ)^l·δ_{t+l}, as a double sum that stops at the first end."""
    arrays = trajectories()
    result = GAE(gamma, trace).run(XP, {}, arrays)
    for b in range(BATCH):
        value = [*arrays["value"][b], arrays["last"][b]]
        alive = [0.0 if done else 1.0 for done in arrays["done"][b]]
        delta = [arrays["reward"][b, t] + gamma * alive[t] * value[t + 1] - value[t] for t in range(STEPS)]
        for t in range(STEPS):
            wanted, weight = 0.0, 1.0
            for k in range(t, STEPS):
                wanted += weight * delta[k]
                weight *= gamma * trace * alive[k]
            assert result["advantage"][b, t] == pytest.approx(wanted, rel=1e-4, abs=1e-5)
            assert result["target"][b, t] == pytest.approx(wanted + value[t], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("trace", "rho", "cut"), [(1.0, 1.0, 1.0), (0.9, 2.0, 0.5), (1.0, 1e9, 1e9)])
def test_vtrace_equals_its_definition(trace: float, rho: float, cut: float) -> None:
    """v_s = V_s + Σ_{t≥s} γ^{t−s}·(Π_{s≤i<t} c_i)·δ_t (Espeholt et al., 2018, eq. 1), as a double sum."""
    arrays, gamma = trajectories(1), 0.9
    result = VTrace(gamma, trace, rho, cut).run(XP, {}, arrays)
    for b in range(BATCH):
        value = [*map(float, arrays["value"][b]), float(arrays["last"][b])]
        ratio = np.exp(arrays["log_prob"][b].astype(np.float64) - arrays["behaviour"][b])
        alive = [0.0 if done else 1.0 for done in arrays["done"][b]]
        reward = arrays["reward"][b]
        delta = [min(rho, ratio[t]) * (reward[t] + gamma * alive[t] * value[t + 1] - value[t]) for t in range(STEPS)]
        target = []
        for s in range(STEPS):
            total, weight = value[s], 1.0
            for t in range(s, STEPS):
                total += weight * delta[t]
                weight *= gamma * alive[t] * trace * min(cut, ratio[t])
            target.append(total)
        following = [*target[1:], value[STEPS]]
        for t in range(STEPS):
            advantage = min(rho, ratio[t]) * (reward[t] + gamma * alive[t] * following[t] - value[t])
            assert result["target"][b, t] == pytest.approx(target[t], rel=1e-3, abs=1e-4)
            assert result["advantage"][b, t] == pytest.approx(advantage, rel=1e-3, abs=1e-4)


def test_on_policy_vtrace_is_the_n_step_return() -> None:
    arrays = trajectories(2)
    arrays["behaviour"] = arrays["log_prob"]
    target = VTrace(0.9).run(XP, {}, arrays)["target"]
    wanted = GAE(0.9, 1.0).run(XP, {}, arrays)["target"]
    np.testing.assert_allclose(target, wanted, rtol=1e-4, atol=1e-5)


def test_vtrace_values_the_policy_and_gae_the_behaviour() -> None:
    """Data of a uniform behaviour: V-trace's mean target at the start is V of another policy, GAE's is not.

    Without cuts the target is unbiased whatever the values are; four standard errors are allowed.
    """
    batch, horizon = 40_000, 4
    environment = environments.finite_horizon(batch, 0, horizon=horizon, places=2)
    environment.legal[:] = True
    rng, states = np.random.default_rng(1), len(environment.rewards)
    policy = rng.dirichlet([1.0, 1.0, 1.0], states)
    worth = np.zeros(states)
    for _ in range(horizon):
        q = environment.rewards + environment.transitions @ np.where(environment.ends, 0.0, worth)
        worth = (policy * q).sum(axis=1)
    environment.starts = np.array([0])
    environment.reset()
    rows: dict[str, list[NDArray[Any]]] = {name: [] for name in ("reward", "done", "log_prob", "behaviour")}
    for _ in range(horizon):
        action, state = rng.integers(0, 3, batch), environment.state.copy()
        step = environment.step(action)
        result = (step.reward, step.done, np.log(policy[state, action]), np.full(batch, -np.log(3.0)))
        for name, value in zip(rows, result, strict=True):
            rows[name].append(value)
    inputs = {name: np.stack(values, axis=1) for name, values in rows.items()}
    inputs.update(value=np.full((batch, horizon), 0.3), last=np.zeros(batch))
    corrected = VTrace(1.0, 1.0, 1e9, 1e9).run(XP, {}, inputs)["target"][:, 0]
    plain = GAE(1.0, 1.0).run(XP, {}, inputs)["target"][:, 0]
    error = 4 * corrected.std() / batch**0.5
    assert abs(corrected.mean() - worth[0]) <= error
    assert abs(plain.mean() - worth[0]) > error


def logits_and_mask(batch: int = 30, actions: int = 5) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    rng = np.random.default_rng(4)
    mask = rng.random((batch, actions)) < 0.6
    mask[:, 2] = True
    return rng.normal(0, 3, (batch, actions)).astype(np.float32), mask


def test_log_probability_and_entropy_equal_torchs() -> None:
    logits, mask = logits_and_mask()
    action = np.full(len(mask), 2)
    result = LogProbability().run(XP, {}, {"logits": logits, "mask": mask, "action": action})
    peer: Any = torch.distributions.Categorical(
        logits=torch.where(torch.from_numpy(mask), torch.from_numpy(logits), torch.tensor(-1e30))
    )
    np.testing.assert_allclose(result["log_prob"], peer.log_prob(torch.from_numpy(action)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result["entropy"], peer.entropy(), rtol=1e-4, atol=1e-5)


def test_illegal_actions_have_no_chance_and_no_gradient() -> None:
    logits, mask = logits_and_mask()
    leaf = torch.from_numpy(logits).requires_grad_()
    backend = get_backend("torch")
    result = LogProbability().run(
        backend.xp, {}, {"logits": leaf, "mask": torch.from_numpy(mask), "action": torch.full((len(mask),), 2)}
    )
    (gradient,) = torch.autograd.grad((result["log_prob"] + 0.3 * result["entropy"]).sum(), leaf)
    assert torch.isfinite(gradient).all()
    assert (gradient[~torch.from_numpy(mask)] == 0.0).all()
    assert (gradient[torch.from_numpy(mask)] != 0.0).any()
    noise = np.random.default_rng(0).random((200, *mask.shape), np.float32)
    space = spaces.Discrete(mask.shape[1])
    for one in noise:
        action = Draw(space).run(XP, {}, {"logits": logits, "mask": mask, "noise": one})["action"]
        assert mask[np.arange(len(mask)), action].all()


def test_what_is_drawn_follows_the_softmax() -> None:
    batch, rng = 60_000, np.random.default_rng(0)
    logits = np.array([0.0, 9.0, 0.8, -0.4], np.float32)
    values = {
        "logits": np.tile(logits, (batch, 1)),
        "mask": np.tile([True, False, True, True], (batch, 1)),
        "noise": rng.random((batch, 4), np.float32),
    }
    result = Draw(spaces.Discrete(4)).run(XP, {}, values)
    wanted = np.exp(logits) * [1, 0, 1, 1]
    wanted /= wanted.sum()
    shares = np.bincount(result["action"], minlength=4) / batch
    assert (np.abs(shares - wanted) <= 4 * np.sqrt(wanted * (1 - wanted) / batch)).all()  # four standard errors
    np.testing.assert_allclose(np.exp(result["log_prob"]), wanted[result["action"]], rtol=1e-4)


def numbers(*names: str) -> Arrays:
    rng = np.random.default_rng(6)
    return {name: rng.normal(0.0, 0.7, 200).astype(np.float32) for name in names}


def test_the_surrogates_equal_their_formulas() -> None:
    values = numbers("log_prob", "behaviour", "advantage")
    ratio = np.exp(values["log_prob"] - values["behaviour"])
    plain = Surrogate().run(XP, {}, values)
    np.testing.assert_allclose(plain["loss"], -values["log_prob"] * values["advantage"], rtol=1e-5)
    assert (plain["divergence"] >= -1e-6).all()
    clipped = ClippedSurrogate(0.2).run(XP, {}, values)
    wanted = np.minimum(ratio * values["advantage"], np.clip(ratio, 0.8, 1.2) * values["advantage"])
    np.testing.assert_allclose(clipped["loss"], -wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(clipped["divergence"], ratio - 1 - np.log(ratio), rtol=1e-3, atol=1e-5)
    outside = ((ratio > 1.2) & (values["advantage"] > 0)) | ((ratio < 0.8) & (values["advantage"] < 0))
    np.testing.assert_array_equal(clipped["cut"] > 0, outside)
    np.testing.assert_allclose(NegativeLogLikelihood().run(XP, {}, values)["loss"], -values["log_prob"])


def test_the_value_loss_and_its_clip() -> None:
    values = numbers("value", "target", "old")
    free = (values["value"] - values["target"]) ** 2
    np.testing.assert_allclose(ValueLoss().run(XP, {}, values)["loss"], free / 2, rtol=1e-5)
    near = (values["old"] + np.clip(values["value"] - values["old"], -0.3, 0.3) - values["target"]) ** 2
    clipped = ValueLoss(0.3).run(XP, {}, values)["loss"]
    np.testing.assert_allclose(clipped, np.maximum(free, near) / 2, rtol=1e-5)


def test_the_losses_are_summed_with_their_weights() -> None:
    values = numbers("policy", "value", "entropy")
    loss = ActorCriticLoss(0.5).run(XP, {}, {**values, "entropy_weight": 0.1})["loss"]
    np.testing.assert_allclose(loss, values["policy"] + 0.5 * values["value"] - 0.1 * values["entropy"], rtol=1e-5)


def test_advantages_are_centred_and_scaled() -> None:
    advantage = Normalise().run(XP, {}, {"advantage": np.array([3.0, 5.0, 7.0, 9.0], np.float32)})["advantage"]
    assert advantage.mean() == pytest.approx(0.0, abs=1e-6)
    assert advantage.std() == pytest.approx(1.0, rel=1e-5)
    even = Normalise().run(XP, {}, {"advantage": np.full(5, 2.0, np.float32)})["advantage"]
    np.testing.assert_array_equal(even, 0.0)
