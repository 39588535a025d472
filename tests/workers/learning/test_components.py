"""Every component, built and run alone from samples of its input spaces, on every backend."""

from collections.abc import Callable

import numpy as np
import pytest
from gymnasium import spaces

from workers.learning.backends import BACKENDS, get_backend
from workers.learning.build import run_alone
from workers.learning.components.base import Component, Memory, SpaceError
from workers.learning.components.exploration import EpsilonGreedy, Softmax
from workers.learning.components.n_step import STEP, NStep
from workers.learning.components.network import Advice, DuelingHead, LinearHead, Pick, QNetwork, Trunk
from workers.learning.components.optimiser import Adam, Synchroniser
from workers.learning.components.replay import TRANSITION, PrioritisedReplay, Replay
from workers.learning.components.value import Huber, Target
from workers.learning.spaces import Spaces, reals, unit

ACTIONS = spaces.Discrete(4)
MASK = spaces.MultiBinary(4)
SPACES: Spaces = {
    "observation": reals(7),
    "features": reals(5),
    "values": reals(4),
    "select": reals(4),
    "evaluate": reals(4),
    "mask": MASK,
    "next_mask": MASK,
    "next_observation": reals(7),
    "action": ACTIONS,
    "done": spaces.MultiBinary(()),
    "noise": unit(2),
    "discount": unit(),
    "weight": unit(),
    "epsilon": unit(),
    "share": unit(),
    "second": unit(),
    "rate": unit(),
    "count": spaces.Box(1.0, 9.0, (), np.float32),
    **{name: reals() for name in ("reward", "predicted", "target", "parameters", "gradient", "first", "online")},
}


MAKERS: dict[str, Callable[[], Component]] = {
    "trunk": lambda: Trunk((16, 5)),
    "trunk_tanh": lambda: Trunk((16,), "tanh"),
    "no_trunk": lambda: Trunk(()),
    "linear_head": lambda: LinearHead(4),
    "dueling_head": lambda: DuelingHead(4),
    "advice": lambda: Advice(3, 7),
    "q_network": lambda: QNetwork(Trunk((16,)), LinearHead(4)),
    "q_network_dueling_advice": lambda: QNetwork(Trunk((16, 8)), DuelingHead(4), Advice(0, 4)),
    "pick": Pick,
    "target": Target,
    "huber": lambda: Huber(0.7),
    "softmax": lambda: Softmax(spaces.Discrete(2)),
    "epsilon_greedy": lambda: EpsilonGreedy(ACTIONS),
    "adam": lambda: Adam(clip=0.5),
    "synchroniser": Synchroniser,
    "n_step_1": lambda: NStep(1, 0.9),
    "n_step_3": lambda: NStep(3, 0.9),
    "replay": lambda: Replay(32),
    "prioritised_replay": lambda: PrioritisedReplay(32),
}


def spaces_of(name: str, component: Component) -> Spaces:
    """`softmax` wants as many values and bits as noise."""
    two = {"values": reals(2), "mask": spaces.MultiBinary(2)} if name == "softmax" else {}
    return {port: two.get(port, SPACES[port]) for port in component.takes}


def make(name: str) -> Component:
    return MAKERS[name]()


@pytest.mark.parametrize("name", MAKERS)
def test_alone_gives_the_declared_spaces_and_agrees_across_backends(name: str) -> None:
    component = make(name)
    inputs = spaces_of(name, component)
    declared = component.gives(inputs)
    results = {backend: run_alone(make(name), inputs, get_backend(backend), batch=8, seed=3)[1] for backend in BACKENDS}
    oracle = results["numpy"]
    assert set(oracle) == set(declared)
    for port, space in declared.items():
        assert oracle[port].shape[1:] == space.shape, port
        for found in results.values():
            np.testing.assert_allclose(found[port], oracle[port], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "port", "space"),
    [
        ("trunk", "observation", spaces.Discrete(3)),
        ("linear_head", "mask", spaces.MultiBinary(3)),
        ("advice", "values", reals(3)),
        ("pick", "action", spaces.Discrete(5)),
        ("target", "evaluate", reals(5)),
        ("huber", "target", reals(2)),
        ("epsilon_greedy", "mask", spaces.MultiBinary(5)),
        ("epsilon_greedy", "noise", reals(3)),
    ],
)
def test_a_wrong_space_is_refused_naming_the_input(name: str, port: str, space: spaces.Space[object]) -> None:
    component = make(name)
    inputs = {port: SPACES[port] for port in component.takes} | {port: space}
    with pytest.raises(SpaceError, match=r"component '\w+': input '\w+' has space"):
        component.gives(inputs)


def test_an_untrained_network_says_what_its_advice_says() -> None:
    network = QNetwork(Trunk((16, 8)), DuelingHead(4), Advice(2, 6))
    inputs, outputs = run_alone(network, {"observation": reals(7), "mask": MASK}, get_backend("numpy"))
    np.testing.assert_array_equal(outputs["values"], inputs["observation"][:, 2:6])


def test_memories_go_on_from_their_state() -> None:
    rng = np.random.default_rng(0)
    for name, ports in (("n_step_3", STEP), ("replay", TRANSITION), ("prioritised_replay", TRANSITION)):
        inputs = {port: SPACES[port] for port in ports}
        one, other = make(name), make(name)
        assert isinstance(one, Memory)
        assert isinstance(other, Memory)
        run_alone(one, inputs, get_backend("numpy"), batch=20)
        other.allocate(inputs, rng)
        other.restore(one.state())
        for key, value in one.state().items():
            np.testing.assert_array_equal(other.state()[key], value, err_msg=f"{name} {key}")
