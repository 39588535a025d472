import json
from typing import Any

import numpy as np
import pytest
from safetensors import numpy as safetensors_numpy

from app.kinds.contract.policy import Situation
from app.kinds.iterative.heuristics import HeuristicPolicy, ImprovedRulePolicy, TunedNumbers, TunedPolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.policies import FAMILIES, check, load, save
from app.policies import artifact
from app.policies.artifact import TablePolicy
from app.policies.base import IncompatibleArtifact, Published
from app.policies.network import NetworkPolicy
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.optimum import Grid, solve
from workers.kinds.iterative.simulator import TRAINING, IterativeSimulator

SPEC = planted_spec(iterations=6)
LAYOUT = Layout(SPEC)


def recurrent(units: int = 5) -> NetworkPolicy:
    random, size, actions = np.random.default_rng(6), LAYOUT.observation_size, len(LAYOUT.deltas)
    shapes = {"trunk.0": (8, size + units), "advantage": (actions, 8)}
    shapes |= {"core.input": (3 * units, size), "core.memory": (3 * units, units)}
    arrays: dict[str, Any] = {f"{n}.weight": random.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    arrays |= {f"{n}.bias": random.normal(size=s[0]).astype(np.float32) for n, s in shapes.items()}
    config = {"layers": [8], "activation": "tanh", "dueling": False, "recurrent": units}
    return NetworkPolicy.build({"algorithm": "recurrent_ppo", **config}, arrays)


def network(*, dueling: bool = True) -> NetworkPolicy:
    random, size, actions = np.random.default_rng(4), LAYOUT.observation_size, len(LAYOUT.deltas)
    shapes = {"trunk.0": (8, size), "trunk.1": (8, 8), "advantage": (actions, 8)} | (
        {"value": (1, 8)} if dueling else {}
    )
    arrays: dict[str, Any] = {f"{n}.weight": random.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    arrays |= {f"{n}.bias": random.normal(size=s[0]).astype(np.float32) for n, s in shapes.items()}
    config = {"algorithm": "dqn", "layers": [8, 8], "activation": "relu", "dueling": dueling}
    return NetworkPolicy.build(config, arrays)


def table() -> TablePolicy:
    config = {"algorithm": "q_table", "entries": [0, 2], "low": [0.0, -1.0], "high": [1.0, 1.0], "bins": [4, 3]}
    return TablePolicy.build(config, {"q": np.random.default_rng(2).normal(size=(12, len(LAYOUT.deltas)))})


def improved() -> ImprovedRulePolicy:
    random, actions = np.random.default_rng(3), len(LAYOUT.deltas)
    size = LAYOUT.observation_size + actions + 3 * len(LAYOUT.metrics)
    shapes = {"hidden.0": (8, size), "hidden.1": (6, 8), "correction": (actions, 6)}
    arrays: dict[str, Any] = {f"{n}.weight": random.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    arrays |= {f"{n}.bias": random.normal(size=s[0]).astype(np.float32) for n, s in shapes.items()}
    arrays |= {"centre": random.normal(size=size).astype(np.float32), "scale": np.full(size, 2, np.float32)}
    numbers = TunedNumbers(0.9, 2.0, 0.5, 0.3)._asdict()
    return ImprovedRulePolicy.build({"algorithm": "improved_rule", "numbers": numbers, "hysteresis": 0.001}, arrays)


EVERY: dict[str, Published] = {
    "network": network(),
    "table": table(),
    "planner": solve(LAYOUT, planted_table(SPEC), Grid(21, 5, 5), with_error=False).policy,
    "heuristic": HeuristicPolicy({"heuristic": "pid"}),
    "tuned": TunedPolicy({"algorithm": "tuned_rule", "numbers": TunedNumbers(0.9, 2.0, 0.5, 0.3)._asdict()}),
    "improved": improved(),
}


def test_every_kind_of_policy_is_tried() -> None:
    assert EVERY.keys() == FAMILIES.keys()


@pytest.mark.parametrize("kind", EVERY)
def test_a_policy_answers_the_same_after_its_file(kind: str) -> None:
    policy = EVERY[kind]
    result = load(save(policy, LAYOUT))
    check(result, LAYOUT)
    simulator = IterativeSimulator(LAYOUT, planted_table(SPEC), 128, seed=5, ranges=TRAINING)
    simulator.reset()
    situation = Situation(simulator.projector, simulator.state, simulator.view)
    before, after = policy.act(situation), result.policy.act(situation)
    np.testing.assert_array_equal(before.action, after.action)
    assert simulator.view.mask[np.arange(128), before.action].all()
    assert result.policy.name == policy.name
    if before.values is not None and after.values is not None:
        np.testing.assert_array_equal(before.values, after.values)
        assert before.values.shape == simulator.view.mask.shape


def test_a_recurrent_policy_goes_on_from_what_it_remembers_after_its_file() -> None:
    policy, artifact = recurrent(), load(save(recurrent(), LAYOUT))
    simulator = IterativeSimulator(LAYOUT, planted_table(SPEC), 64, seed=5)
    simulator.reset()
    first = policy.act(simulator.situation)
    simulator.step(first.action)
    there = simulator.situation._replace(memory=first.memory)
    before, after, anew = policy.act(there), artifact.policy.act(there), policy.act(simulator.situation)
    assert before.memory is not None
    assert before.values is not None
    assert anew.values is not None
    np.testing.assert_array_equal(before.memory, after.memory)
    np.testing.assert_array_equal(before.values, after.values)
    assert not np.array_equal(before.values, anew.values)


def test_a_recurrent_policy_without_its_core_is_refused() -> None:
    policy = recurrent()
    arrays = {name: array for name, array in policy.arrays.items() if name != "core.memory.bias"}
    with pytest.raises(IncompatibleArtifact, match=r"core\.memory\.bias"):
        NetworkPolicy.build(policy.config, arrays)


def test_an_artifact_of_another_spec_is_refused() -> None:
    result = load(save(network(), LAYOUT))
    other = Layout(planted_spec(features=[{"name": "batch", "minimum": 1, "maximum": 2}]))
    with pytest.raises(IncompatibleArtifact, match="another spec"):
        check(result, other)


@pytest.mark.parametrize("data", [b"", b"not a file at all", safetensors_numpy.save({"q": np.zeros(2)})])
def test_what_is_no_artifact_is_refused(data: bytes) -> None:
    with pytest.raises(IncompatibleArtifact, match="not a policy artifact"):
        load(data)


def test_a_newer_format_and_an_unknown_policy_are_refused() -> None:
    header = json.dumps({"policy": "oracle", "config": {}})
    with pytest.raises(IncompatibleArtifact, match="format 9, policy 'oracle'"):
        load(safetensors_numpy.save({}, {"format": "9", "header": header}))


def test_a_network_without_its_arrays_is_refused() -> None:
    arrays = {k: v for k, v in network().arrays.items() if k != "value.bias"}
    with pytest.raises(IncompatibleArtifact, match=r"value\.bias"):
        NetworkPolicy.build(network().config, arrays)


@pytest.mark.parametrize("dueling", [True, False])
def test_a_network_is_its_formula(dueling: bool) -> None:
    policy = network(dueling=dueling)
    simulator = IterativeSimulator(LAYOUT, planted_table(SPEC), 4, seed=5)
    observation, mask = simulator.reset()
    a, hidden = policy.arrays, observation[0].astype(float)
    for i in range(2):
        hidden = np.maximum(a[f"trunk.{i}.weight"] @ hidden + a[f"trunk.{i}.bias"], 0)
    q = a["advantage.weight"] @ hidden + a["advantage.bias"]
    if dueling:
        q = q - q[mask[0]].mean() + a["value.weight"] @ hidden + a["value.bias"]
    got = policy.q_values(observation, mask)[0]
    np.testing.assert_allclose(got[mask[0]], q[mask[0]], rtol=1e-5, atol=1e-5)
    assert np.isneginf(got[~mask[0]]).all()


def test_policies_that_were_trained_together_are_one_artifact_and_come_apart_as_they_were() -> None:
    parts = {"a": save(network(), LAYOUT), "b": save(network(dueling=False), LAYOUT)}
    together = artifact.save_roles(parts)
    assert artifact.by_role(together) == parts
    assert artifact.by_role(parts["a"]) == {}
    loaded = artifact.load(together)
    assert (loaded.policy, list(loaded.roles), loaded.kind) == (None, ["a", "b"], "iterative")
    assert all(isinstance(one.policy, NetworkPolicy) for one in loaded.roles.values())
    other = artifact.save(network(), "another", ["x"], 2, {})
    with pytest.raises(ValueError, match="one kind"):
        artifact.save_roles({"a": parts["a"], "b": other})
