"""The value-based family on planted problems with exact solutions."""

import msgspec
import numpy as np
import pytest

from tests.workers.learning import environments
from workers.learning.algorithms.config import (
    DQN,
    Exploration,
    Memory,
    Network,
    Optimiser,
    QTable,
    decode,
    encode,
    named,
)
from workers.learning.build import BuildError
from workers.learning.execution.serial import Plan, Serial

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
    "tanh": msgspec.structs.replace(SMALL, network=Network(layers=(32,), activation="tanh")),
}
TABLE = QTable(warm_up=128, rate=0.1, exploration=Exploration(start=1.0, end=0.5))


def trained(
    config: DQN | QTable, environment: environments.Planted, slabs: int, seed: int = 0, chunks: int = 2
) -> Serial:
    steps = environment.batch * slabs
    runner = Serial(config, environment, Plan(steps, steps // chunks), seed)
    while not runner.done:
        runner.advance()
    return runner


def greedy_return(runner: Serial, environment: environments.Planted) -> float:
    """Exact value of the greedy policy, mean over starts."""
    states = np.eye(len(environment.rewards), dtype=np.float32)
    policy = runner.agent.greedy(states, environment.legal)
    rows, value = np.arange(len(states)), np.zeros(len(states))
    for _ in range(100):
        value = np.where(environment.ends, 0.0, (environment.rewards + environment.transitions @ value)[rows, policy])
    return float(value[environment.starts].mean())


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "n_step"])
def test_the_grids_golden_values(name: str) -> None:
    environment = environments.grid(32, 0)
    runner = trained(VARIANTS[name], environment, 500)
    values = runner.agent.values(np.eye(4, dtype=np.float32), environment.legal)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.round(values[:2]), [[-1, -5, 0, -1], [-1, 1, 0, 0]])


def test_the_grids_golden_values_in_a_table() -> None:
    environment = environments.grid(32, 0)
    runner = trained(msgspec.structs.replace(TABLE, entries=(0, 1)), environment, 400)
    values = runner.agent.values(np.eye(4, dtype=np.float32))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.round(values[:2]), [[-1, -5, 0, -1], [-1, 1, 0, 0]])


@pytest.mark.parametrize("name", VARIANTS)
def test_identity(name: str) -> None:
    environment = environments.identity(32, 0)
    runner = trained(VARIANTS[name], environment, 300)
    assert greedy_return(runner, environment) == 1.0


@pytest.mark.parametrize("name", VARIANTS)
def test_within_two_percent_of_exact_value_iteration(name: str) -> None:
    environment = environments.finite_horizon(64, 0)
    exact = environment.exact()[environment.starts].max(axis=1).mean()
    runner = trained(VARIANTS[name], environment, 600)
    assert greedy_return(runner, environment) >= exact - 0.02 * abs(exact)


def test_a_table_reaches_exact_value_iteration() -> None:
    environment = environments.identity(32, 0)
    runner = trained(msgspec.structs.replace(TABLE, at_most=5), environment, 200)
    assert greedy_return(runner, environment) == 1.0


def test_a_too_small_memory_does_not_learn() -> None:
    environment = environments.finite_horizon(64, 0)
    exact = environment.exact()[environment.starts].max(axis=1).mean()
    forgetful = msgspec.structs.replace(SMALL, memory=Memory(capacity=2, warm_up=2))
    assert greedy_return(trained(forgetful, environment, 300), environment) < exact - 0.1 * abs(exact)


@pytest.mark.parametrize("config", [*VARIANTS.values(), TABLE], ids=[*VARIANTS, "q_table"])
def test_same_seed_same_result_and_another_seed_another(config: DQN | QTable) -> None:
    def parameters(seed: int) -> np.ndarray:
        runner = trained(config, environments.finite_horizon(32, seed), 40, seed)
        return np.concatenate([value.ravel() for value in runner.agent.export()[2].values()])

    np.testing.assert_array_equal(parameters(1), parameters(1))
    assert (parameters(1) != parameters(2)).any()


@pytest.mark.parametrize("keep_memory", [True, False])
@pytest.mark.parametrize("config", [*VARIANTS.values(), TABLE], ids=[*VARIANTS, "q_table"])
def test_resumed_from_a_checkpoint_is_bit_equal(config: DQN | QTable, keep_memory: bool) -> None:
    plan = Plan(32 * 60, 32 * 20, keep_memory=keep_memory)
    straight = Serial(config, environments.finite_horizon(32, 5), plan, 3)
    straight.advance()
    saved = straight.checkpoint()
    resumed = Serial(config, environments.finite_horizon(32, 99), plan, 77)
    resumed.restore(saved)
    assert resumed.progress == straight.progress
    while not straight.done:
        one, other = straight.advance(), resumed.advance()
        assert (one.episode_return, one.loss, one.updates) == (other.episode_return, other.loss, other.updates)
    assert resumed.done
    for name, value in straight.agent.export()[2].items():
        np.testing.assert_array_equal(resumed.agent.export()[2][name], value)


def test_a_time_limit_ends_the_training_and_its_schedules() -> None:
    ticks = iter(range(10_000))
    runner = Serial(
        SMALL, environments.grid(8, 0), Plan(8 * 10_000, 8 * 10, seconds=50.0), 0, clock=lambda: float(next(ticks))
    )
    chunks = 0
    while not runner.done:
        runner.advance()
        chunks += 1
    assert runner.steps < 8 * 100
    assert chunks > 2
    assert runner.eta_seconds == 0.0


def test_export_is_what_the_learner_would_do() -> None:
    environment = environments.finite_horizon(64, 0)
    environment.advice = slice(0, 3)
    runner = trained(
        msgspec.structs.replace(SMALL, double=True, network=Network(layers=(32, 16), dueling=True)), environment, 60
    )
    kind, config, arrays = runner.agent.export()
    assert kind == "network"
    assert config == {"layers": [32, 16], "activation": "relu", "dueling": True, "advice": [0, 3]}
    assert arrays["trunk.0.weight"].shape == (32, len(environment.rewards))
    from app.policies.network import NetworkPolicy

    policy = NetworkPolicy.build({"algorithm": "dueling_double_dqn", **config}, dict(arrays))
    states = np.eye(len(environment.rewards), dtype=np.float32)
    served = policy.q_values(states, environment.legal)
    learner = runner.agent.values(states, environment.legal)  # type: ignore[attr-defined]
    np.testing.assert_allclose(served[environment.legal], learner[environment.legal], rtol=1e-5, atol=1e-6)


def test_an_advice_that_does_not_fit_is_a_build_error() -> None:
    environment = environments.grid(8, 0)
    environment.advice = slice(0, 3)
    with pytest.raises(BuildError, match="Advice"):
        Serial(SMALL, environment, Plan(80, 80), 0)


@pytest.mark.parametrize(
    "name", ["tabular_q", "dqn", "double_dqn", "dueling_dqn", "dueling_double_dqn", "n_step_dqn", "prioritised_dqn"]
)
def test_configs_go_to_json_and_back(name: str) -> None:
    config = named(name)
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
