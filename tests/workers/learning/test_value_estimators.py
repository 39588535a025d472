"""What quantiles and demonstrations are taught by, against plain loops."""

import numpy as np
import pytest

from workers.learning.backends import get_backend
from workers.learning.components.value import (
    Joined,
    LargeMargin,
    QuantileHuber,
    QuantileTarget,
    mean_of_quantiles,
    spread,
)

XP = get_backend("numpy").xp
RNG_SEED, BATCH, ACTIONS, QUANTILES = 3, 40, 4, 6


def huber(error: float, delta: float) -> float:
    return 0.5 * error * error if abs(error) <= delta else delta * (abs(error) - 0.5 * delta)


@pytest.mark.parametrize("delta", [0.3, 1.0])
def test_quantile_huber_equals_the_loop(delta: float) -> None:
    rng = np.random.default_rng(RNG_SEED)
    predicted, target = rng.normal(size=(2, BATCH, QUANTILES))
    weight = rng.random(BATCH)
    result = QuantileHuber(delta).run(XP, {}, {"predicted": predicted, "target": target, "weight": weight})
    for b in range(BATCH):
        loss = 0.0
        for i in range(QUANTILES):
            tau = (2 * i + 1) / (2 * QUANTILES)
            for j in range(QUANTILES):
                error = target[b, j] - predicted[b, i]
                loss += abs(tau - (error < 0)) * huber(error, delta) / delta / QUANTILES
        assert result["loss"][b] == pytest.approx(weight[b] * loss, rel=1e-6)
        assert result["error"][b] == pytest.approx(abs(predicted[b].mean() - target[b].mean()), rel=1e-6)


def test_quantiles_are_what_minimises_it() -> None:
    """Of 2,000 samples, the empirical quantiles cost less than any of them moved by a little."""
    samples = np.random.default_rng(RNG_SEED).lognormal(size=2_000)
    truth = np.quantile(samples, (np.arange(QUANTILES) + 0.5) / QUANTILES)

    def cost(predicted: np.ndarray) -> float:
        values = {"target": np.repeat(samples[:, None], QUANTILES, 1), "weight": np.ones(2_000)}
        values["predicted"] = np.tile(predicted, (2_000, 1))
        return float(QuantileHuber(1e-3).run(XP, {}, values)["loss"].mean())

    for index in range(QUANTILES):
        for moved in (-0.1, 0.1):
            assert cost(truth + moved * (np.arange(QUANTILES) == index)) > cost(truth)


def test_quantile_target_equals_the_loop() -> None:
    rng = np.random.default_rng(RNG_SEED)
    evaluate, select = rng.normal(size=(BATCH, ACTIONS, QUANTILES)), rng.normal(size=(BATCH, ACTIONS))
    reward, discount = rng.normal(size=BATCH), rng.choice([0.0, 0.9], BATCH)
    mask = rng.random((BATCH, ACTIONS)) < 0.6
    mask[:, 1] = True
    values = {"reward": reward, "discount": discount, "mask": mask, "select": select, "evaluate": evaluate}
    target = QuantileTarget().run(XP, {}, values)["target"]
    for b in range(BATCH):
        best = max((a for a in range(ACTIONS) if mask[b, a]), key=lambda a: select[b, a])
        np.testing.assert_allclose(target[b], reward[b] + discount[b] * evaluate[b, best])


def test_large_margin_equals_the_loop() -> None:
    rng = np.random.default_rng(RNG_SEED)
    values, margin = rng.normal(size=(BATCH, ACTIONS)), 0.4
    mask = rng.random((BATCH, ACTIONS)) < 0.6
    action = rng.integers(0, ACTIONS, BATCH)
    mask[np.arange(BATCH), action] = True
    expert = (rng.random(BATCH) < 0.7).astype(np.float64)
    result = LargeMargin(margin).run(XP, {}, {"values": values, "mask": mask, "action": action, "expert": expert})
    for b in range(BATCH):
        best = max(values[b, a] + (margin if a != action[b] else 0.0) for a in range(ACTIONS) if mask[b, a])
        assert result["loss"][b] == pytest.approx(expert[b] * (best - values[b, action[b]]), abs=1e-12)
    assert (result["loss"] >= 0).all()
    joined = Joined(0.5).run(XP, {}, {"loss": np.ones(BATCH), "other": result["loss"]})["loss"]
    np.testing.assert_allclose(joined, 1.0 + 0.5 * result["loss"])


def test_the_mean_of_quantiles_is_a_linear_layer() -> None:
    rng = np.random.default_rng(RNG_SEED)
    views = {"trunk.0.weight": rng.normal(size=(5, 3)), "advantage.weight": rng.normal(size=(ACTIONS * QUANTILES, 5))}
    features = rng.normal(size=(BATCH, 5))
    mean = (features @ views["advantage.weight"].T).reshape(BATCH, ACTIONS, QUANTILES).mean(axis=2)
    plain = mean_of_quantiles(views, QUANTILES)
    np.testing.assert_allclose(features @ plain["advantage.weight"].T, mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(plain["trunk.0.weight"], views["trunk.0.weight"])
    again = mean_of_quantiles(spread(plain, QUANTILES), QUANTILES)
    np.testing.assert_allclose(again["advantage.weight"], plain["advantage.weight"], rtol=1e-6)
