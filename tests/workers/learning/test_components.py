"""Every component, built and run alone from samples of its input spaces, on every backend."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules
from typing import Literal

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.workers.learning.suite import run_alone
from workers.learning import components
from workers.learning.backends import BACKENDS, get_backend
from workers.learning.components.base import Component, Memory, SpaceError, Spaces, reals, sample, unit
from workers.learning.components.exploration import EpsilonGreedy, Softmax
from workers.learning.components.network import (
    GRU,
    Adam,
    Critic,
    DuelingHead,
    LinearHead,
    Pick,
    PolicyNetwork,
    QNetwork,
    Scorer,
    SetCritic,
    SetEncoder,
    Synchroniser,
    Trunk,
    ValueHead,
)
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
from workers.learning.components.replay import TRANSITION, PrioritisedReplay, RecurrentRollout, Replay, Rollout
from workers.learning.components.value import (
    STEP,
    DuelingQuantileHead,
    Huber,
    Joined,
    LargeMargin,
    Mean,
    NStep,
    PickQuantiles,
    QuantileHead,
    QuantileHuber,
    QuantileNetwork,
    QuantileTarget,
    Target,
)

ACTIONS = spaces.Discrete(4)
MASK = spaces.MultiBinary(4)
NUMBERS = (
    *(
        "reward",
        "predicted",
        "target",
        "parameters",
        "gradient",
        "first",
        "online",
        "log_prob",
        "behaviour",
        "advantage",
    ),
    *("value", "old", "last", "policy", "entropy", "entropy_weight", "loss", "other"),
)
SPACES: Spaces = {
    "observation": reals(7),
    "features": reals(5),
    "values": reals(4),
    "logits": reals(4),
    "select": reals(4),
    "evaluate": reals(4),
    "targets": reals(4),
    "quantiles": reals(4, 6),
    "mask": MASK,
    "next_mask": MASK,
    "next_observation": reals(7),
    "action": ACTIONS,
    "done": spaces.MultiBinary(()),
    "noise": unit(4),
    "discount": unit(),
    "weight": unit(),
    "epsilon": unit(),
    "share": unit(),
    "second": unit(),
    "rate": unit(),
    "expert": unit(),
    "count": spaces.Box(1.0, 9.0, (), np.float32),
    **{name: reals() for name in NUMBERS},
}
TRAJECTORY: Spaces = {
    **{name: reals(6) for name in ("reward", "value", "log_prob", "behaviour")},
    "done": spaces.MultiBinary(6),
}
SEQUENCE: Spaces = {"sequence": reals(5, 3), "begins": spaces.MultiBinary(5), "memory": reals(8)}
CANDIDATES: Spaces = {"observation": reals(4, 3)}
QUANTILES: Spaces = {"predicted": reals(6), "target": reals(6)}


@dataclass(frozen=True)
class Case:
    """How a component is made, and which inputs have other spaces than `SPACES` says."""

    make: Callable[[], Component]
    spaces: Spaces = field(default_factory=dict)

    def inputs(self) -> Spaces:
        return {port: self.spaces.get(port) or SPACES[port] for port in self.make().takes}


def encoder(context: Literal["none", "mean", "attention"]) -> SetEncoder:
    return SetEncoder((8,), context, (5,), "tanh")


CASES: dict[str, Case] = {
    "trunk": Case(lambda: Trunk((16, 5))),
    "trunk_tanh": Case(lambda: Trunk((16,), "tanh")),
    "no_trunk": Case(lambda: Trunk(())),
    "linear_head": Case(lambda: LinearHead(4)),
    "dueling_head": Case(lambda: DuelingHead(4)),
    "quantile_head": Case(lambda: QuantileHead(4, 6)),
    "dueling_quantile_head": Case(lambda: DuelingQuantileHead(4, 6)),
    "value_head": Case(ValueHead),
    "q_network": Case(lambda: QNetwork(Trunk((16,)), LinearHead(4))),
    "q_network_dueling": Case(lambda: QNetwork(Trunk((16, 8)), DuelingHead(4))),
    "policy_network": Case(lambda: PolicyNetwork(Trunk((16,)), LinearHead(4))),
    "quantile_network": Case(lambda: QuantileNetwork(Trunk((16,)), DuelingQuantileHead(4, 6))),
    "critic": Case(lambda: Critic(Trunk((16,), "tanh"))),
    "gru": Case(lambda: GRU(8), SEQUENCE),
    **{f"set_encoder_{c}": Case(partial(encoder, c), CANDIDATES) for c in ("none", "mean", "attention")},
    "scorer": Case(lambda: Scorer(encoder("attention"), advice=2, temperature=0.5), CANDIDATES),
    "set_critic": Case(lambda: SetCritic(encoder("mean")), CANDIDATES),
    "pick": Case(Pick),
    "pick_quantiles": Case(PickQuantiles),
    "mean": Case(Mean),
    "target": Case(Target),
    "quantile_target": Case(QuantileTarget, {"evaluate": reals(4, 6)}),
    "huber": Case(lambda: Huber(0.7)),
    "quantile_huber": Case(lambda: QuantileHuber(0.7), QUANTILES),
    "large_margin": Case(lambda: LargeMargin(0.8)),
    "joined": Case(lambda: Joined(0.4)),
    "softmax": Case(lambda: Softmax(ACTIONS)),
    "epsilon_greedy": Case(lambda: EpsilonGreedy(ACTIONS), {"noise": unit(2)}),
    "draw": Case(lambda: Draw(ACTIONS)),
    "log_probability": Case(LogProbability),
    "gae": Case(lambda: GAE(0.9, 0.8), TRAJECTORY),
    "v_trace": Case(lambda: VTrace(0.9, 0.8), TRAJECTORY),
    "normalise": Case(Normalise),
    "surrogate": Case(Surrogate),
    "surprise": Case(NegativeLogLikelihood),
    "clipped_surrogate": Case(lambda: ClippedSurrogate(0.2)),
    "value_loss": Case(ValueLoss),
    "clipped_value_loss": Case(lambda: ValueLoss(0.3)),
    "actor_critic_loss": Case(lambda: ActorCriticLoss(0.5)),
    "adam": Case(lambda: Adam(clip=0.5)),
    "synchroniser": Case(Synchroniser),
    "n_step_1": Case(lambda: NStep(1, 0.9)),
    "n_step_3": Case(lambda: NStep(3, 0.9)),
    "replay": Case(lambda: Replay(32)),
    "prioritised_replay": Case(lambda: PrioritisedReplay(32)),
    "rollout": Case(lambda: Rollout(1)),
    "recurrent_rollout": Case(lambda: RecurrentRollout(1), {"memory": reals(8)}),
}


def make(name: str) -> Component:
    return CASES[name].make()


def classes() -> Iterator[type[Component]]:
    """Every component class of the package that can be made."""
    for module in iter_modules(components.__path__):
        for value in vars(import_module(f"{components.__name__}.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Component) and not isabstract(value):
                yield value


def test_every_component_is_in_the_table() -> None:
    tested = {type(case.make()) for case in CASES.values()}
    assert {match.__name__ for match in classes()} - {match.__name__ for match in tested} == set()


@pytest.mark.parametrize("name", CASES)
def test_alone_gives_the_declared_spaces_and_agrees_across_backends(name: str) -> None:
    component, inputs = make(name), CASES[name].inputs()
    declared = component.output_spaces(inputs)
    results = {b: run_alone(make(name), inputs, get_backend(b), batch=8, seed=3, spread=0.3)[1] for b in BACKENDS}
    oracle = results["numpy"]
    assert set(oracle) == set(declared)
    for port, space in declared.items():
        assert oracle[port].shape[1:] == space.shape, port
        for backend, match in results.items():
            np.testing.assert_allclose(match[port], oracle[port], rtol=1e-5, atol=2e-6, err_msg=f"{backend} {port}")
            assert match[port].dtype == oracle[port].dtype, (backend, port)


def test_what_has_gradients_of_its_own() -> None:
    """Whoever changes `run` of a component that has some, and not them, loses them: a dueling head has none."""
    result = {name for name, case in CASES.items() if case.make().differentiable}
    trunks, heads = {"trunk", "trunk_tanh", "no_trunk"}, {"linear_head", "value_head"}
    losses = {"surrogate", "surprise", "clipped_surrogate", "value_loss", "clipped_value_loss", "actor_critic_loss"}
    assert result == trunks | heads | losses | {"log_probability"}
    with pytest.raises(NotImplementedError, match=r"'DuelingHead'"):
        Component.differentiate(DuelingHead(4), {}, {})


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.make().differentiable])
def test_own_gradients_equal_torchs(name: str, seed: int) -> None:
    component, values = make(name), CASES[name].inputs()
    rng = np.random.default_rng(seed)
    inputs = {port: sample(values[port], 64, rng) for port in component.takes}
    variables = {
        key: rng.standard_normal(variable.shape, np.float32) for key, variable in component.variables(values).items()
    }
    outputs, pull = component.differentiate(variables, inputs)
    for port, value in component.run(np, variables, inputs).items():
        np.testing.assert_array_equal(outputs[port], value, err_msg=port)
    slopes = {port: rng.standard_normal(value.shape, np.float32) for port, value in outputs.items()}

    backend = get_backend("torch")
    leaves = {key: torch.from_numpy(value.copy()).requires_grad_() for key, value in variables.items()}
    wires = {port: torch.from_numpy(value.copy()) for port, value in inputs.items()}
    pulled = {port: wires[port].requires_grad_() for port in component.pulls}
    result = component.run(backend.xp, leaves, wires)
    for chosen in ([*result], *([port] for port in result)):  # of a sum over all outputs, and of each alone
        scalar = sum((result[port] * torch.from_numpy(slopes[port])).sum() for port in chosen)
        wanted = {**leaves, **pulled}
        if not wanted or not scalar.requires_grad:
            continue
        oracle = torch.autograd.grad(scalar, [*wanted.values()], retain_graph=True, allow_unused=True)
        own = pull({port: slopes[port] for port in chosen})
        assert set(own) == set(wanted)
        for (key, leaf), gradient in zip(wanted.items(), oracle, strict=True):
            expected = torch.zeros_like(leaf) if gradient is None else gradient
            assert own[key].dtype == np.float32, key
            np.testing.assert_allclose(own[key], expected, rtol=1e-4, atol=2e-5, err_msg=f"{chosen} {key}")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.make().calls()])
def test_a_composite_by_itself_is_what_the_build_makes_of_it(name: str) -> None:
    component, inputs = CASES[name].make(), CASES[name].inputs()
    drawn, built = run_alone(component, inputs, get_backend("numpy"), seed=3)
    rng = np.random.default_rng(3)
    for port in component.takes:
        sample(inputs[port], 8, rng)
    variables = {key: variable.initial(rng) for key, variable in component.variables(inputs).items()}
    alone = component.run(get_backend("numpy").xp, variables, drawn)
    assert set(alone) == set(component.results())
    for port, value in alone.items():
        np.testing.assert_array_equal(value, built[port], err_msg=port)


@pytest.mark.parametrize(
    ("name", "port", "space"),
    [
        ("trunk", "observation", spaces.Discrete(3)),
        ("linear_head", "mask", spaces.MultiBinary(3)),
        ("pick", "action", spaces.Discrete(5)),
        ("target", "evaluate", reals(5)),
        ("huber", "target", reals(2)),
        ("epsilon_greedy", "mask", spaces.MultiBinary(5)),
        ("epsilon_greedy", "noise", reals(3)),
    ],
)
def test_a_wrong_space_is_refused_naming_the_input(name: str, port: str, space: spaces.Space[object]) -> None:
    component = make(name)
    inputs = {**CASES[name].inputs(), port: space}
    with pytest.raises(SpaceError, match=r"component '\w+': input '\w+' has space"):
        component.output_spaces(inputs)


def test_an_untrained_network_values_nothing_whatever_it_sees() -> None:
    """What a model projects is an input among others: no value begins from it."""
    network = QNetwork(Trunk((16, 8)), DuelingHead(4))
    _, outputs = run_alone(network, {"observation": reals(7), "mask": MASK}, get_backend("numpy"))
    np.testing.assert_array_equal(outputs["values"], 0.0)


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
