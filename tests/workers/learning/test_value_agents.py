"""The value-based family on planted problems with exact solutions."""

import msgspec
import numpy as np
import pytest

from app.policies.network import NetworkPolicy
from tests.workers.learning import environments, suite
from tests.workers.learning.suite import exported, greedy_return, trained
from workers.learning.algorithms.buffers import ReplayBuffer
from workers.learning.algorithms.config import (
    DQN,
    Exploration,
    Memory,
    Network,
    Optimiser,
    QTable,
    built_in_config,
    encode,
)
from workers.learning.algorithms.registry import decode
from workers.learning.components.replay import PrioritisedReplay
from workers.learning.execution.base import Plan
from workers.learning.execution.serial import Serial

SMALL = DQN(
    network=Network(layers=(32,)),
    memory=Memory(capacity=4096, warm_up=256),
    batch=128,
    optimiser=Optimiser(rate=5e-3),
    exploration=Exploration(schedule="apex"),
    target_share=0.05,
)
VARIANTS = {
    "dqn": SMALL,
    "double": msgspec.structs.replace(SMALL, double=True),
    "dueling_double": msgspec.structs.replace(SMALL, double=True, network=Network(layers=(32,), dueling=True)),
    "n_step": msgspec.structs.replace(SMALL, n_step=2, exploration=Exploration(start=1.0, end=0.02, fraction=0.3)),
    "prioritised": msgspec.structs.replace(SMALL, memory=Memory(capacity=4096, warm_up=256, prioritised=True)),
    "hard_target": msgspec.structs.replace(SMALL, target_share=1.0, target_every=25),
    "softmax": msgspec.structs.replace(SMALL, exploration=Exploration(schedule="softmax", start=2.0, end=0.1)),
    "quantile": msgspec.structs.replace(SMALL, quantiles=8),
    "quantile_dueling_double": msgspec.structs.replace(
        SMALL, quantiles=8, double=True, network=Network(layers=(32,), dueling=True)
    ),
    "apex": msgspec.structs.replace(
        SMALL,
        double=True,
        network=Network(layers=(32,), dueling=True),
        memory=Memory(capacity=4096, warm_up=256, prioritised=True),
        exploration=Exploration(schedule="apex", start=0.4),
    ),
    "tanh": msgspec.structs.replace(SMALL, network=Network(layers=(32,), activation="tanh")),
}
TABLE = QTable(warm_up=128, rate=0.1, exploration=Exploration(start=1.0, end=0.5))


def on_workload(config: DQN) -> DQN:
    """With the same switches, at the pace of a workload."""
    return msgspec.structs.replace(
        config,
        memory=msgspec.structs.replace(config.memory, capacity=8192, warm_up=1024),
        batch=256,
        updates_per_slab=2,
        optimiser=Optimiser(rate=5e-3, ramp=50),
        exploration=Exploration(schedule="softmax", start=0.3, end=0.01),
        average=0.02,
    )


def states(environment: environments.Planted) -> np.ndarray:
    return np.eye(len(environment.rewards), dtype=np.float32)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in {"n_step", "double"}])
def test_the_grids_golden_values(name: str) -> None:
    environment = environments.grid(32, 0)
    runner = trained(VARIANTS[name], environment, 240)
    values = runner.agent.values(states(environment), environment.legal)
    np.testing.assert_array_equal(np.round(values[:2]), [[-1, -5, 0, -1], [-1, 1, 0, 0]])


def test_the_grids_golden_values_in_a_table() -> None:
    environment = environments.grid(32, 0)
    runner = trained(msgspec.structs.replace(TABLE, entries=(0, 1)), environment, 400)
    values = runner.agent.values(states(environment), environment.legal)
    np.testing.assert_array_equal(np.round(values[:2]), [[-1, -5, 0, -1], [-1, 1, 0, 0]])


def test_several_steps_find_the_grids_way() -> None:
    suite.check_the_grids_way(VARIANTS["n_step"])


def test_identity_in_a_table() -> None:
    suite.check_identity(msgspec.structs.replace(TABLE, at_most=5), 200)


@pytest.mark.parametrize("name", ["dueling_double", "prioritised"])
def test_a_random_mdps_optimum_but_for_two_percent(name: str) -> None:
    suite.check_finite_horizon(VARIANTS[name], 250)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in {"dueling_double", "prioritised"}])
def test_within_two_percent_of_exact_value_iteration(name: str) -> None:
    suite.check_finite_horizon(VARIANTS[name], 1000 if name == "apex" else 600)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dqn", "n_step", "quantile_dueling_double", "apex"])
def test_within_two_percent_of_a_workloads_optimum(name: str) -> None:
    suite.check_workload(on_workload(VARIANTS[name]), 300)


@pytest.mark.slow
def test_a_table_within_two_percent_of_a_workloads_optimum() -> None:
    """By what it has tried alone: it takes many more steps than a network."""
    config = built_in_config("tabular_q")
    assert isinstance(config, QTable)
    suite.check_workload(msgspec.structs.replace(config, entries=(0, 2, 4), bins=9, warm_up=1_024), 2_000)


def test_a_too_small_memory_does_not_learn() -> None:
    environment = environments.finite_horizon(64, 0)
    forgetful = msgspec.structs.replace(SMALL, memory=Memory(capacity=2, warm_up=2))
    assert greedy_return(trained(forgetful, environment, 300), environment) < environment.best() - 0.1


def test_without_a_step_nothing_is_learned() -> None:
    environment = environments.grid(32, 0)
    idle = trained(msgspec.structs.replace(SMALL, optimiser=Optimiser(rate=1e-12)), environment, 60)
    np.testing.assert_allclose(idle.agent.values(states(environment), environment.legal), 0.0, atol=1e-6)


@pytest.mark.parametrize("name", ["dqn", "quantile"])
def test_who_is_paid_for_the_wrong_thing_does_the_wrong_thing(name: str) -> None:
    paid, meant = environments.identity(32, 0), environments.identity(32, 0)
    paid.rewards = -paid.rewards
    assert greedy_return(trained(VARIANTS[name], paid, 120), meant) == 0.0


@pytest.mark.parametrize("config", [*VARIANTS.values(), TABLE], ids=[*VARIANTS, "q_table"])
def test_same_seed_same_result_and_another_seed_another(config: DQN | QTable) -> None:
    suite.check_same_seed(config)


@pytest.mark.parametrize("config", [*VARIANTS.values(), TABLE], ids=[*VARIANTS, "q_table"])
def test_resumed_from_a_checkpoint_is_bit_equal(config: DQN | QTable) -> None:
    suite.check_resumed(config)


def test_whether_checkpoints_hold_the_memory_makes_no_difference_to_what_is_learned() -> None:
    """A training that nobody interrupts forgets nothing between its chunks."""
    results = []
    for plan in (Plan(32 * 60, 32 * 60), Plan(32 * 60, 32 * 20, keep_memory=False)):
        runner = Serial(VARIANTS["prioritised"], environments.finite_horizon(32, 5), plan, 3)
        while not runner.done:
            runner.advance()
        results.append((runner.agent.buffer.size, runner.updates, exported(runner)))
    assert results[0][:2] == results[1][:2]
    assert results[0][0] == 32 * 60
    np.testing.assert_array_equal(results[0][2], results[1][2])


def test_what_is_resumed_without_its_memory_fills_it_anew_and_loses_no_update() -> None:
    plan = Plan(32 * 60, 32 * 20, keep_memory=False)
    straight = Serial(VARIANTS["prioritised"], environments.finite_horizon(32, 5), plan, 3)
    straight.advance()
    resumed = Serial(VARIANTS["prioritised"], environments.finite_horizon(32, 99), plan, 77)
    resumed.restore(straight.checkpoint())
    again = Serial(VARIANTS["prioritised"], environments.finite_horizon(32, 5), plan, 3)
    again.restore(resumed.checkpoint())  # before it has done anything
    for runner in (resumed, again):
        assert runner.agent.buffer.size == 0, "one that has ended is filled for nothing"
        assert (runner.steps, runner.updates) == (straight.steps, straight.updates)
    updates = straight.advance().updates
    for runner in (resumed, again):
        assert runner.advance().updates == updates
        assert runner.agent.buffer.size == straight.agent.buffer.size == 32 * 40


def test_the_weights_of_priorities_are_whole_at_the_end_of_a_training() -> None:
    """(size · P)^−β over the largest: β is .4 at first, and 1 at the end."""
    runner = Serial(VARIANTS["prioritised"], environments.finite_horizon(32, 5), Plan(32 * 20, 32 * 20), 3)
    runner.advance()
    buffer = runner.agent.buffer
    assert isinstance(buffer, ReplayBuffer)
    assert isinstance(buffer.memory, PrioritisedReplay)
    for progress, beta in ((0.0, 0.4), (0.5, 0.7), (1.0, 1.0)):
        batch = next(iter(buffer.batches(progress)))
        assert batch.places is not None
        chance = buffer.memory.tree.get(batch.places) / buffer.memory.tree.total
        weight = (buffer.size * chance) ** -beta
        np.testing.assert_allclose(batch.arrays["memory.weight"], weight / weight.max(), rtol=1e-5)
        assert np.ptp(weight) > 0


def test_export_is_what_the_learner_would_do() -> None:
    environment = environments.finite_horizon(64, 0)
    runner = trained(
        msgspec.structs.replace(SMALL, double=True, network=Network(layers=(32, 16), dueling=True)), environment, 60
    )
    kind, config, arrays = runner.agent.export()
    assert kind == "network"
    assert config == {"layers": [32, 16], "activation": "relu", "dueling": True}
    assert arrays["trunk.0.weight"].shape == (32, len(environment.rewards))
    policy = NetworkPolicy.build({"algorithm": "dueling_double_dqn", **config}, dict(arrays))
    states = np.eye(len(environment.rewards), dtype=np.float32)
    served = policy.q_values(states, environment.legal)
    learner = runner.agent.values(states, environment.legal)
    np.testing.assert_allclose(served[environment.legal], learner[environment.legal], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "tabular_q",
        "dqn",
        "double_dqn",
        "dueling_dqn",
        "dueling_double_dqn",
        "n_step_dqn",
        "prioritised_dqn",
        "quantile_dqn",
        "apex_dqn",
    ],
)
def test_configs_go_to_json_and_back(name: str) -> None:
    config = built_in_config(name)
    assert decode(encode(config)) == config


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"type": "dqn", "batch": 0}', r"\$\.batch"),
        ('{"type": "dqn", "network": {"layers": [64, "x"]}}', r"\$\.network\.layers"),
        ('{"type": "dqn", "dobule": true}', "dobule"),
        ('{"type": "sarsa"}', "sarsa"),
    ],
)
def test_a_bad_config_is_refused_naming_the_field(text: str, place: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=place):
        decode(text)
