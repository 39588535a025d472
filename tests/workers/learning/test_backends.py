"""Backends: gradients against finite differences, and who may know which one runs."""

import ast
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest
import torch
from gymnasium import spaces

import workers.learning
from workers.learning.agent import Agent, choose_device, make_agent
from workers.learning.algorithms.base import Experience
from workers.learning.algorithms.config import A2C, DQN, PPO, ActorCritic, Config, DeviceConfig, Memory, Network, Scorer
from workers.learning.backends import Backend, BackendError, backend_of, get_backend, resolve
from workers.learning.build import Bound, bind, complete, compose
from workers.learning.components.base import Arrays, Component, Node, Spaces, reals
from workers.learning.components.network import DuelingHead, QNetwork, Trunk

ROOT = Path(workers.learning.__file__).parent
BACKEND_MODULES = {"torch", "tensorflow", "array_api_compat"}


class Square(Component):
    takes: ClassVar = ("values",)

    def output_spaces(self, inputs: Spaces) -> Spaces:
        return {"values": inputs["values"]}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        return {"values": inputs["values"] ** 2}


def imported(path: Path) -> set[str]:
    result = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            result |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            result.add(node.module.split(".")[0])
    return result


def test_a_backend_is_imported_in_its_module_alone() -> None:
    files = [path for path in ROOT.rglob("*.py") if path.name != "torch_backend.py"]
    assert len(files) > 10
    assert {
        str(path.relative_to(ROOT)): imported(path) & BACKEND_MODULES
        for path in files
        if imported(path) & BACKEND_MODULES
    } == {}


ASKING = {"get_backend", "backend_of", "is_torch_array", "is_numpy_array"}


def test_no_component_asks_for_its_backend() -> None:
    for path in (ROOT / "components").glob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        assert names & ASKING == set(), path.name
        attributes = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
        requests = [
            attribute for attribute in attributes if attribute.endswith("backend.name") or attribute.startswith("xp.__")
        ]
        assert requests == [], path.name


def squared(backend: Backend) -> tuple[Bound, dict[str, Any]]:
    """The squares of a small network's values, and what to feed."""
    rng = np.random.default_rng(0)
    network = QNetwork(Trunk((5,), "tanh"), DuelingHead(3))
    shapes = {"observation": reals(4), "mask": spaces.MultiBinary(3)}
    square = Node("square", Square(), {"values": "q.values"})
    completed = complete(compose([*shapes], [Node("q", network, {name: name for name in shapes}), square]), shapes)
    bound = bind(completed, backend, rng)
    start = rng.normal(0, 0.5, bound.report.parameters).astype(np.float32)
    store = bound.stores["online"]
    store.flat = backend.asarray(start)
    store.views = backend.cut(store.layout, store.flat)
    feeds = {
        "observation": backend.asarray(rng.normal(size=(6, 4)).astype(np.float32)),
        "mask": backend.asarray(np.ones((6, 3), np.bool_)),
    }
    return bound, feeds


def test_gradient_equals_finite_differences() -> None:
    backend = get_backend("torch")
    bound, feeds = squared(backend)
    start = backend.to_numpy(bound.stores["online"].flat).copy()

    def value(flat: np.ndarray) -> float:
        views = backend.cut(bound.stores["online"].layout, backend.asarray(flat.astype(np.float32)))
        with backend.without_gradient():
            return float((bound.run(("square.values",), feeds, {"online": views})["square.values"]).mean())

    _, gradient = bound.gradient("square.values", (), feeds)
    slopes = backend.to_numpy(gradient)
    steps = np.eye(len(start), dtype=np.float32) * 1e-2
    differences = [(value(start + step) - value(start - step)) / 2e-2 for step in steps]
    np.testing.assert_allclose(slopes, differences, rtol=0.02, atol=2e-3)


def learner(config: Config, backend: Backend, slabs: int = 3) -> Agent:
    """An agent that has learned from a few slabs of the same random transitions, whatever its backend."""
    draws, rng = np.random.default_rng(5), np.random.default_rng(6)
    agent = make_agent(config, reals(6), spaces.Discrete(3), slice(0, 3), rng, backend)
    for _ in range(slabs):
        observation, mask = draws.standard_normal((32, 6), np.float32), np.ones((32, 3), np.bool_)
        acted = agent.act(observation, mask, 0.2, np.random.default_rng(7))
        reward, done = draws.standard_normal(32, np.float32), draws.random(32) < 0.1
        agent.remember(Experience(observation, mask, acted.action, reward, done, observation, mask, acted.log_prob))
        agent.learn(0.2, rng)
    return agent


TINY = Network(layers=(8,))
LEARNERS: list[DQN | ActorCritic] = [
    DQN(network=TINY, memory=Memory(capacity=96, warm_up=32), batch=16, double=True),
    DQN(network=Network(layers=(8,), dueling=True), memory=Memory(96, 32, prioritised=True), batch=16, n_step=2),
    ActorCritic(network=TINY, rollout=2, epochs=2, batch=32),
]


WAYS: list[ActorCritic] = [
    A2C,
    msgspec.structs.replace(PPO, batch=32, value_clip=0.1),
    msgspec.structs.replace(
        PPO, batch=16, network=Network((8, 5), "tanh", centre=(0.5,) * 6, scale=(2.0, 0.5) * 3), stop=0.01
    ),
    msgspec.structs.replace(A2C, estimator="vtrace", trace=1.0, epochs=2, batch=32),
]


@pytest.mark.parametrize("config", WAYS)
def test_numpy_learns_what_torch_learns(config: ActorCritic) -> None:
    config = msgspec.structs.replace(config, rollout=2, network=msgspec.structs.replace(config.network, layers=(8, 5)))
    ours, theirs = (learner(config, get_backend(name), slabs=12) for name in ("numpy", "torch"))
    started = learner(config, get_backend("numpy"), slabs=1).parameters()
    assert np.abs(ours.parameters() - started).max() > 1e-3
    np.testing.assert_allclose(ours.parameters(), theirs.parameters(), rtol=1e-3, atol=1e-4)
    assert {value.dtype for value in ours.learned.arrays.values()} == {np.dtype(np.float32)}


def test_numpy_learns_where_all_components_have_gradients_of_their_own() -> None:
    """Not on a GPU, compiled, or with a core with memory, a scorer or values."""
    place = DeviceConfig(device="cpu")

    def chosen(config: Config) -> str:
        agent = make_agent(config, reals(6), spaces.Discrete(3), None, np.random.default_rng(0))
        return agent.learner.backend.name

    plain = [msgspec.structs.replace(config, place=place) for config in (A2C, PPO)]
    assert [chosen(config) for config in plain] == ["numpy", "numpy"]
    others = [msgspec.structs.replace(PPO, recurrent=4, place=place), msgspec.structs.replace(LEARNERS[0], place=place)]
    assert [chosen(config) for config in others] == ["torch", "torch"]
    assert backend_of(place, own_gradients=True).name == "numpy"
    assert not msgspec.structs.replace(PPO, network=Network(scorer=Scorer())).own_gradients
    for config, missing in zip(others, (r"'core' \(GRU\)", r"'\w+' \(Pick\)"), strict=True):
        with pytest.raises(BackendError, match=f"the numpy backend records no operations, and component {missing}"):
            learner(config, get_backend("numpy"), slabs=40)


def test_what_may_not_be_written_is_copied() -> None:
    """As what other processes share is."""
    shared = np.arange(3.0)
    shared.flags.writeable = False
    tensor = get_backend("torch").asarray(shared)
    tensor[0] = 7.0
    assert shared.tolist() == [0.0, 1.0, 2.0]


def test_compiled_gives_what_eager_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way of torch.compile but its last step, code for the machine, which takes a minute."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager", fullgraph=True))
    results = []
    for compiled in (False, True):
        backend = get_backend("torch", compiled=compiled)
        bound, feeds = squared(backend)
        wires, gradient = bound.gradient("square.values", ("square.values",), feeds)
        results.append((backend.to_numpy(wires["square.values"]), backend.to_numpy(gradient)))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-6)


def test_a_missing_compiler_is_told_before_anything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> object:
        raise RuntimeError("InvalidCxxCompiler: No working C++ compiler found")

    monkeypatch.setattr(torch, "compile", broken)
    with pytest.raises(BackendError, match=r"needs a C\+\+ compiler.*It said: InvalidCxxCompiler"):
        get_backend("torch", compiled=True)


def test_what_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendError, match=r"unknown backend 'jax'; known are numpy, torch"):
        get_backend("jax")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(BackendError, match=r"device is 'cuda', but torch sees no GPU here"):
        get_backend("torch", "cuda")


def test_without_a_choice_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    def trial(place: DeviceConfig) -> Callable[[], None]:
        raise AssertionError(place.device)

    assert resolve(DeviceConfig(), trial) == DeviceConfig(device="cpu")


@pytest.mark.parametrize(("costs", "chosen"), [({"cpu": 1.0, "cuda": 3.0}, "cpu"), ({"cpu": 3.0, "cuda": 1.0}, "cuda")])
def test_the_faster_place_is_chosen_by_measurement(
    costs: dict[str, float], chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [DeviceConfig(device="cpu"), DeviceConfig(device="cuda")]
    now, done = [0.0], []
    monkeypatch.setattr("workers.learning.backends.candidates", lambda _: places)

    def trial(place: DeviceConfig) -> Callable[[], None]:
        def work() -> None:
            done.append(place.device)
            # the first warms up, and is not counted
            now[0] += costs[place.device] if done.count(place.device) > 1 else 100.0

        return work

    assert resolve(DeviceConfig(), trial, lambda: now[0]).device == chosen


def test_an_agent_is_timed_where_it_may_run_on_more_than_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [DeviceConfig(device="cpu"), DeviceConfig(device="cpu", compiled=False)]
    monkeypatch.setattr("workers.learning.backends.candidates", lambda _: places)
    for config in LEARNERS:
        any_config = choose_device(config, reals(6), spaces.Discrete(3), None, slab=32)
        assert any_config.place in places
        assert msgspec.structs.replace(any_config, place=config.place) == config


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_learns_what_the_cpu_learns() -> None:
    ours, theirs = (learner(LEARNERS[0], get_backend("torch", device)).parameters() for device in ("cpu", "cuda"))
    np.testing.assert_allclose(theirs, ours, rtol=1e-3, atol=1e-4)
