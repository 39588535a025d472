"""Learning from what every action would lead to."""

import msgspec
import numpy as np
import pytest

from tests.workers.learning import environments, suite
from tests.workers.learning.test_value_agents import SMALL, on_workload
from workers.learning.algorithms.config import DQN, Foresight, Imitation, Network
from workers.learning.backends import get_backend
from workers.learning.components.foresight import EveryHuber, Taught
from workers.learning.execution.serial import Plan, Serial
from workers.learning.imitation import demonstrate
from workers.learning.spaces import reals, unit

FORESEEING = msgspec.structs.replace(
    SMALL,
    network=Network(layers=(32,), dueling=True),
    foresight=Foresight(states=512, updates=2, batch=128, focus=1.0),
)


def test_the_grids_golden_values() -> None:
    environment = environments.grid(32, 0)
    runner = suite.trained(FORESEEING, environment, 400)
    values = runner.agent.values(np.eye(4, dtype=np.float32), environment.legal)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.round(values[:2]), [[-1, -5, 0, -1], [-1, 1, 0, 0]])


def test_identity() -> None:
    suite.check_identity(FORESEEING, 100)


def test_exact_values_of_a_random_process() -> None:
    """Every backup is exact here, so not only is the policy the optimum, the values of its actions are right."""
    environment = environments.finite_horizon(64, 0)
    runner = suite.trained(FORESEEING, environment, 600)
    assert suite.greedy_return(runner, environment) == pytest.approx(environment.best())
    states, exact = np.eye(len(environment.rewards), dtype=np.float32), environment.exact()[:-1].max(axis=1)
    learned = runner.agent.values(states, environment.legal)[:-1].max(axis=1, where=environment.legal[:-1], initial=-9)  # type: ignore[attr-defined]
    np.testing.assert_allclose(learned, exact, atol=0.25)


def test_within_two_percent_of_a_workloads_optimum_in_half_the_slabs() -> None:
    config = on_workload(FORESEEING)
    suite.check_workload(
        msgspec.structs.replace(config, foresight=Foresight(states=512, updates=4, batch=128, focus=0.3)), 150
    )


def test_same_seed_and_resumed_from_a_checkpoint() -> None:
    suite.check_same_seed(FORESEEING)
    suite.check_resumed(FORESEEING, keep_memory=True)
    suite.check_resumed(FORESEEING, keep_memory=False)


def test_where_nothing_can_be_foreseen_it_learns_from_what_happens() -> None:
    class Blind(environments.Planted):
        foresee = None  # type: ignore[assignment]

    def made(kind: type[environments.Planted]) -> environments.Planted:
        sighted = environments.identity(32, 0)
        return kind(32, 0, sighted.transitions, sighted.rewards, sighted.ends, sighted.starts)

    blind = suite.trained(FORESEEING, made(Blind), 300)
    assert suite.greedy_return(blind, made(Blind)) == 1.0
    assert blind.agent.taught.size == 0  # type: ignore[attr-defined]


def test_demonstrations_go_along_with_it() -> None:
    config = msgspec.structs.replace(FORESEEING, imitation=Imitation(margin=0.3, updates=50, share=0.5))

    def shown(runner: Serial) -> None:
        environment = environments.finite_horizon(32, 11)
        runner.agent.imitate(demonstrate(environment, environments.Expert(environment), 20), runner.rng)  # type: ignore[attr-defined]

    suite.check_finite_horizon(config, 300, prepare=shown)


def test_an_agent_without_foresight_takes_none() -> None:
    environment = environments.identity(8, 0)
    runner = Serial(SMALL, environment, Plan(8, 8), 0)
    observation, mask = environment.reset()
    with pytest.raises(ValueError, match="foresight"):
        runner.agent.foresee(observation, mask, environment.foresee(2))  # type: ignore[attr-defined]


@pytest.mark.parametrize("focus", [0.7, None])
def test_the_loss_equals_the_loop(focus: float | None) -> None:
    rng, delta = np.random.default_rng(0), 0.5
    values, targets = rng.normal(size=(2, 30, 4))
    mask = rng.random((30, 4)) < 0.6
    mask[:, 2] = True
    given = {"values": values, "targets": targets, "mask": mask}
    found = EveryHuber(delta, focus).run(get_backend("numpy").xp, {}, given)["loss"]
    for b in range(30):
        legal = [a for a in range(4) if mask[b, a]]
        best, total, weights = max(targets[b, a] for a in legal), 0.0, 0.0
        for a in legal:
            error = abs(values[b, a] - targets[b, a])
            weight = 0.1 + np.exp((targets[b, a] - best) / focus) if focus else 1.0
            total += weight * (0.5 * error**2 if error <= delta else delta * (error - 0.5 * delta))
            weights += weight
        assert found[b] == pytest.approx(total / weights)


@pytest.mark.parametrize("count", [3, 8, 13, 30])
def test_the_latest_states_are_kept_with_their_targets(count: int) -> None:
    ring = Taught(8)
    ring.allocate({"observation": reals(1), "mask": unit(2), "targets": reals(2)}, np.random.default_rng(0))
    number = np.arange(count, dtype=np.float32)
    for part in (slice(0, count // 2), slice(count // 2, count)):
        one = number[part, None]
        ring.insert({"observation": one, "mask": np.ones((len(one), 2)), "targets": np.repeat(one, 2, 1)})
    assert set(ring.state()["observation"][:, 0]) == set(range(max(0, count - 8), count))
    drawn = ring.sample(100)
    np.testing.assert_array_equal(drawn["targets"][:, 1], drawn["observation"][:, 0])


def test_a_workload_is_foreseen_as_it_is_paid() -> None:
    """The reward that is foreseen of an action is the one that its step pays, and the same allocation follows."""
    workload = suite.workload()
    for action in range(len(workload.layout.deltas)):
        simulator = workload.simulator(64, 5)
        _, mask = simulator.reset()
        for _ in range(3):
            ahead = simulator.foresee(3)
            actions = np.where(mask[:, action], action, workload.layout.noop)
            last = simulator.state.iteration + 1 >= workload.layout.iterations
            step = simulator.step(actions)
            np.testing.assert_allclose(ahead.reward[actions, np.arange(64)], step.reward, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(ahead.weight.sum(axis=0)[action] == 0, last)
            middle = ahead.observation.reshape(3, len(workload.layout.deltas), 64, -1)[1][actions, np.arange(64)]
            np.testing.assert_allclose(middle[:, 0], step.final_observation[:, 0], atol=1e-6)
            mask = step.mask


def test_configs_with_foresight_go_to_json_and_back() -> None:
    assert msgspec.json.decode(msgspec.json.encode(FORESEEING), type=DQN) == FORESEEING
