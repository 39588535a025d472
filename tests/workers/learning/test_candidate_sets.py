"""Networks over candidate sets: any number, any order, and both families learn with them."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from app.policies.functions import attend, encode_candidates, masked_mean, scores
from tests.workers.learning import games
from tests.workers.learning.suite import run_alone, trained
from workers.learning.agent import make_agent
from workers.learning.algorithms.config import (
    DQN,
    ActorCritic,
    Config,
    Entropy,
    Exploration,
    Memory,
    Network,
    Optimiser,
    Scorer,
    encode,
)
from workers.learning.algorithms.registry import decode
from workers.learning.backends import get_backend
from workers.learning.components import network as components
from workers.learning.components.base import reals

Context = Literal["none", "mean", "attention"]
CONTEXTS: tuple[Context, ...] = ("none", "mean", "attention")
replace = msgspec.structs.replace


def network(context: Context = "mean") -> Network:
    return Network(scorer=Scorer(layers=(16,), context=context, joint=(16,)))


ACTOR = ActorCritic(
    network=network(),
    surrogate="clipped",
    epochs=3,
    batch=128,
    rollout=2,
    optimiser=Optimiser(rate=1e-2, clip=0.5),
    entropy=Entropy(start=0.05),
)
VALUE = DQN(
    network=network(),
    memory=Memory(capacity=4096, warm_up=256),
    batch=128,
    updates_per_slab=2,
    optimiser=Optimiser(rate=5e-3),
    exploration=Exploration(schedule="apex"),
    target_share=0.05,
)


def weights(context: Context, wide: int = 3, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """A scorer's arrays and config; no head is zero."""
    encoder = components.SetEncoder((8, 5), context, (6,), "relu")
    inputs = {"observation": reals(4, wide), "mask": spaces.MultiBinary(4)}
    rng = np.random.default_rng(seed)
    wanted = components.Scorer(encoder).variables(inputs)
    arrays = {name: rng.normal(0.0, 0.7, variable.shape).astype(np.float32) for name, variable in wanted.items()}
    return arrays, {**encoder.config, "advice": None}


def candidates(batch: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    mask = rng.random((batch, count)) < 0.7
    mask[:, 0] = True
    return rng.normal(size=(batch, count, 3)).astype(np.float32), mask


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(CONTEXTS), st.integers(1, 40), st.integers(0, 2**16))
def test_permuting_candidates_permutes_scores(context: Context, count: int, seed: int) -> None:
    """Whatever their number: the same arrays score one candidate or forty."""
    arrays, config = weights(context)
    observation, mask = candidates(3, count, seed)
    order = np.random.default_rng(seed + 1).permutation(count)
    straight = scores(observation, mask, arrays, config)
    permuted = scores(observation[:, order], mask[:, order], arrays, config)
    assert straight.shape == (3, count)
    np.testing.assert_allclose(permuted, straight[:, order], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("context", CONTEXTS)
def test_absent_candidates_change_nothing(context: Context) -> None:
    arrays, config = weights(context)
    observation, mask = candidates(5, 9, 3)
    other = np.where(mask[:, :, None], observation, 77.0).astype(np.float32)
    wider = np.concatenate([other, np.full((5, 4, 3), -9.0, np.float32)], axis=1)
    padded = np.concatenate([mask, np.zeros((5, 4), np.bool_)], axis=1)
    wanted = scores(observation, mask, arrays, config)
    np.testing.assert_allclose(scores(wider, padded, arrays, config)[:, :9][mask], wanted[mask], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("context", ["mean", "attention"])
def test_a_context_looks_at_the_others(context: Context) -> None:
    arrays, config = weights(context)
    observation, mask = candidates(5, 9, 3)
    mask[:] = True
    other = observation.copy()
    other[:, 1:] += 1.0
    moved = scores(other, mask, arrays, config)[:, 0] - scores(observation, mask, arrays, config)[:, 0]
    assert (moved != 0.0).all()
    arrays, config = weights("none")
    np.testing.assert_array_equal(
        scores(other, mask, arrays, config)[:, 0], scores(observation, mask, arrays, config)[:, 0]
    )


def test_pooling_and_attention_equal_their_loops() -> None:
    rng = np.random.default_rng(0)
    hidden, mask = rng.normal(size=(4, 6, 3)), rng.random((4, 6)) < 0.6
    mask[3] = False
    query, key, value = rng.normal(size=(3, 3, 3))
    mean, array = masked_mean(hidden, mask), attend(hidden, mask, query, key, value)
    for b in range(4):
        legal = hidden[b, mask[b]]
        np.testing.assert_allclose(mean[b, 0], legal.mean(axis=0) if len(legal) else 0.0)
        for k in range(6):
            weight = np.exp((legal @ key.T) @ (query @ hidden[b, k]) / 3**0.5)
            wanted = (weight / weight.sum()) @ (legal @ value.T) if len(legal) else np.zeros(3)
            np.testing.assert_allclose(array[b, k], wanted, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("context", CONTEXTS)
def test_networks_over_sets_agree_across_backends(context: Context) -> None:
    encoder = components.SetEncoder((8,), context, (6,), "tanh")
    inputs = {"observation": reals(7, 3), "mask": spaces.MultiBinary(7)}
    for component in (encoder, components.Scorer(encoder, advice=1, temperature=0.5), components.SetCritic(encoder)):
        (_, oracle), (_, result) = (
            run_alone(component, inputs, get_backend(name), 5, 2) for name in ("numpy", "torch")
        )
        for port, value in oracle.items():
            np.testing.assert_allclose(result[port], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "config", [pytest.param(ACTOR, id="actor_critic", marks=pytest.mark.slow), pytest.param(VALUE, id="dqn")]
)
def test_both_families_learn_to_choose(config: Config) -> None:
    """To within a twelfth of what a random choice loses, on sets twice as large as those that were trained on.

    Without context it can't be learned: what is best depends on the others.
    """
    runner = trained(config, games.Choosing(128, 0), 150)
    blind = trained(
        replace(config, network=network("none")),
        games.Choosing(128, 0),
        150,
    )
    test = games.Choosing(2_000, 9, candidates=12)
    chance = float(np.mean([test.regret(np.array([_legal(row, k) for row in test.mask])).mean() for k in range(3)]))
    kind, described, arrays = runner.agent.export()
    assert kind == "scorer"
    best = served(described, arrays, test).argmax(axis=1)
    assert test.regret(best).mean() <= chance / 12
    assert test.regret(blind.agent.greedy(test.observation, test.mask)).mean() > chance / 3


def served(config: Mapping[str, Any], arrays: Mapping[str, Any], shown: games.Choosing) -> np.ndarray:
    """Scores of exported arrays in NumPy, [B, K]; −∞ where a candidate is illegal."""
    result = scores(shown.observation.astype(np.float32), shown.mask, arrays, config)
    return np.where(shown.mask, result, -np.inf)


def _legal(mask: np.ndarray, seed: int) -> int:
    return int(np.random.default_rng(seed).choice(np.flatnonzero(mask)))


@pytest.mark.parametrize("config", [ACTOR, VALUE], ids=["actor_critic", "dqn"])
def test_what_is_exported_scores_as_the_learner_does(config: Config) -> None:
    environment = games.Choosing(64, 0)
    environment.advice = slice(1, 2)
    runner = trained(config, environment, 30)
    _, described, arrays = runner.agent.export()
    assert described["advice"] == [1, 2]
    own, result = runner.agent.values(environment.observation, environment.mask), served(described, arrays, environment)
    np.testing.assert_allclose(result[environment.mask], own[environment.mask], rtol=1e-4, atol=1e-5)


def test_an_untrained_scorer_says_what_the_advice_says() -> None:
    agent = make_agent(ACTOR, reals(6, 3), spaces.Discrete(6), slice(1, 2), np.random.default_rng(0))
    observation, mask = candidates(50, 6, 0)
    wanted = np.where(mask, observation[:, :, 1], -np.inf).argmax(axis=1)
    np.testing.assert_array_equal(agent.greedy(observation, mask), wanted)


def test_what_does_not_fit_a_set_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"one of their features, not \[0, 3\)"):
        make_agent(ACTOR, reals(6, 3), spaces.Discrete(6), slice(0, 3), rng)
    with pytest.raises(ValueError, match="one plain head"):
        make_agent(replace(VALUE, network=replace(network(), dueling=True)), reals(6, 3), spaces.Discrete(6), None, rng)
    with pytest.raises(Exception, match="the features of 6 candidates"):
        make_agent(ACTOR, reals(18), spaces.Discrete(6), None, rng)


def test_features_are_as_wide_as_they_are_said_to_be() -> None:
    arrays, config = weights("attention")
    observation, mask = candidates(2, 5, 0)
    assert encode_candidates(observation, mask, arrays, config).shape == (2, 5, 6)


def test_configs_with_a_scorer_go_to_json_and_back() -> None:
    for config in (ACTOR, VALUE):
        assert decode(encode(config)) == config
