"""First layers that are learned in other coordinates than they are published in."""

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from app.policies.artifact import SHARED
from tests.workers.learning.suite import trained
from tests.workers.learning.test_centring import Endless
from workers.learning.algorithms.buffers import Coordinates
from workers.learning.algorithms.config import NAMED, ActorCritic, Network, QTable, Scorer
from workers.learning.backends import get_backend, layout
from workers.learning.simulator import LEAST, with_standardisation

OUT, WIDE = 4, 2
NETWORK = Network(centre=(1.0, -2.0), scale=(0.5, 3.0))
VARIABLES = {
    "before": np.zeros(3),
    "policy.trunk.0.weight": np.zeros((OUT, WIDE)),
    "policy.trunk.0.bias": np.zeros(OUT),
    "between": np.zeros(2),
    "critic.trunk.0.weight": np.zeros((OUT, WIDE)),
    "critic.trunk.0.bias": np.zeros(OUT),
}
PLACES = layout(VARIABLES)


class Faint(Endless):
    """What is seen differs from state to state by a hundredth, around 3; one entry never changes."""

    def observe(self) -> NDArray[np.float32]:
        observation = 3.0 + 0.1 * super().observe()
        observation[:, 2] = 1.0
        return observation.astype(np.float32)


def numbers(seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(sum(np.size(one) for one in VARIABLES.values()), np.float32)


def build() -> Coordinates:
    return Coordinates(NETWORK, PLACES, get_backend("numpy"))


def test_what_is_published_says_of_observations_what_was_learned_of_standard_ones() -> None:
    learned, observation = numbers(0), np.random.default_rng(1).standard_normal((7, WIDE))
    published = build().published(learned)
    standard = (observation - np.array(NETWORK.centre)) / np.array(NETWORK.scale)
    for name in ("policy.trunk.0", "critic.trunk.0"):
        (weight, shape), (bias, _) = PLACES[f"{name}.weight"], PLACES[f"{name}.bias"]
        expected = standard @ learned[weight].reshape(shape).T + learned[bias]
        np.testing.assert_allclose(
            observation @ published[weight].reshape(shape).T + published[bias], expected, atol=1e-5
        )
    for name in ("before", "between"):
        np.testing.assert_array_equal(published[PLACES[name][0]], learned[PLACES[name][0]])


def test_there_and_back_changes_nothing() -> None:
    np.testing.assert_allclose(build().learned(build().published(numbers(0))), numbers(0), atol=1e-5)


def test_gradients_are_those_by_what_is_learned() -> None:
    """Of a loss that is linear in what is published, along any direction."""
    slope, direction = numbers(1), numbers(2)
    through = slope @ build().published(direction)  # the map is linear: this is its derivative along the direction
    assert build().gradient(slope) @ direction == pytest.approx(through, rel=1e-4)


def test_without_coordinates_vectors_stay_as_they_are() -> None:
    plain, flat = Coordinates(Network(), PLACES, get_backend("numpy")), numbers(0)
    assert plain.published(flat) is plain.learned(flat) is plain.gradient(flat) is flat


def test_what_observations_are_like_is_found_in_play() -> None:
    standardisation = with_standardisation(NAMED["ppo"], Faint(64, 0), 0)
    assert isinstance(standardisation, ActorCritic)
    np.testing.assert_allclose(standardisation.network.centre, [3 + 0.1 / 3, 3 + 0.1 / 3, 1], atol=0.01)
    assert standardisation.network.scale == (
        LEAST,
        LEAST,
        1.0,
    )  # what hardly varies is stretched a little, and what never does, not
    assert msgspec.json.decode(msgspec.json.encode(standardisation), type=ActorCritic) == standardisation


@pytest.mark.parametrize(
    "config",
    [
        NAMED["tabular_q"],
        NAMED["recurrent_ppo"],
        msgspec.structs.replace(NAMED["ppo"], network=Network(scorer=Scorer())),
    ],
)
def test_what_has_no_plain_network_stays_as_it_is(config: Any) -> None:
    assert with_standardisation(config, Faint(8, 0), 0) is config
    assert isinstance(config, ActorCritic | QTable)


@pytest.mark.parametrize("name", ["a2c", "dueling_double_dqn"])
def test_what_is_exported_says_what_the_learner_says(name: str) -> None:
    world = Faint(32, 0)
    runner = trained(with_standardisation(NAMED[name], Faint(32, 1), 0), world, 40)
    kind, described, arrays = runner.agent.export()
    policy: Any = SHARED[kind].build({"algorithm": name, **described}, dict(arrays))
    world.state = np.arange(3)
    expected = runner.agent.values(world.observe(), world.legal)
    np.testing.assert_allclose(policy.q_values(world.observe(), world.legal), expected, atol=1e-4)


@pytest.mark.parametrize("standard", [True, False])
def test_faint_differences_are_learned_in_a_budget_that_is_too_short_without(standard: bool) -> None:
    world = Faint(64, 0)
    config = msgspec.structs.replace(NAMED["ppo"], centred=True)
    runner = trained(with_standardisation(config, Faint(64, 1), 0) if standard else config, world, 96)
    world.state = np.arange(3)
    actions = runner.agent.greedy(world.observe(), world.legal)
    assert (actions.tolist() == world.solved().argmax(axis=1).tolist()) is standard
