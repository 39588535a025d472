"""Where a value-based agent starts: from demonstrations, or from a published agent."""

import msgspec
import numpy as np
import pytest

from tests.workers.learning import environments, suite
from tests.workers.learning.test_value_agents import SMALL, TABLE, VARIANTS
from workers.learning.algorithms.buffers import ReplayBuffer
from workers.learning.algorithms.config import DQN, Config, Imitation, Network
from workers.learning.execution.serial import Plan, Serial
from workers.learning.simulator import demonstrate

SHOWN = msgspec.structs.replace(SMALL, imitation=Imitation(margin=0.3, weight=1.0, updates=300))

BRIEFLY = msgspec.structs.replace(SHOWN, imitation=Imitation(margin=0.3, updates=50))


def shown(runner: Serial, slabs: int = 30) -> None:
    """Let the exact expert demonstrate."""
    environment = environments.finite_horizon(32, 11)
    runner.agent.imitate(demonstrate(environment, environments.Expert(environment), slabs), runner.rng)


def shown_to(runner: Serial) -> int:
    """How many demonstrations are kept."""
    buffer = runner.agent.buffer
    assert isinstance(buffer, ReplayBuffer)
    assert buffer.demonstrations is not None
    return buffer.demonstrations.size


def agreement(config: DQN) -> float:
    """The share of states in which a learner that has only watched does as the exact expert would."""
    environment = environments.finite_horizon(32, 0)
    runner = Serial(config, environment, Plan(32, 32), 0)
    shown(runner)
    greedy = runner.agent.greedy(np.eye(len(environment.rewards), dtype=np.float32), environment.legal)
    return float((greedy == environment.exact().argmax(axis=1))[:-1].mean())


@pytest.mark.parametrize(
    "switches",
    [
        pytest.param({}, id="plain"),
        pytest.param({"quantiles": 4, "double": True}, id="quantiles", marks=pytest.mark.slow),
        pytest.param({"n_step": 2}, id="n_step", marks=pytest.mark.slow),
    ],
)
def test_who_watches_an_expert_does_as_the_expert_does(switches: dict[str, object]) -> None:
    config = msgspec.structs.replace(SHOWN, **switches)
    plain = msgspec.structs.replace(config, imitation=Imitation(margin=0.0, weight=0.0, updates=300))
    assert agreement(config) >= 0.9
    assert agreement(plain) <= agreement(config) - 0.2, "it is the margin that tells about what was never tried"


@pytest.mark.slow
def test_a_start_from_demonstrations_and_then_ones_own_experience() -> None:
    suite.check_finite_horizon(SHOWN, prepare=shown)


def test_demonstrations_are_kept_beside_ones_own_experience() -> None:
    runner = Serial(BRIEFLY, environments.finite_horizon(32, 0), Plan(32 * 140, 32 * 70), 0)
    shown(runner)
    selection = shown_to(runner)
    while not runner.done:
        runner.advance()
    assert runner.steps > runner.agent.buffer.size
    assert selection == shown_to(runner) == 32 * 30


def test_a_start_from_demonstrations_resumes_to_the_bit() -> None:
    suite.check_resumed(BRIEFLY, prepare=shown)


def test_a_start_from_demonstrations_by_the_same_seed() -> None:
    suite.check_same_seed(BRIEFLY, prepare=shown)


def test_demonstrations_need_a_place() -> None:
    runner = Serial(SMALL, environments.finite_horizon(32, 0), Plan(32, 32), 0)
    with pytest.raises(ValueError, match="no imitation"):
        shown(runner)
    runner = Serial(SHOWN, environments.finite_horizon(32, 0), Plan(32, 32), 0)
    with pytest.raises(ValueError, match="nothing was shown"):
        shown(runner, 0)


def test_a_table_learns_from_demonstrations() -> None:
    config = msgspec.structs.replace(TABLE, warm_up=32, entries=(0, 1, 2, 3))
    runner = Serial(config, environments.finite_horizon(32, 0), Plan(32, 32), 0)
    shown(runner, 20)
    assert runner.agent.learned.arrays["visits"].sum() > 32 * 10


STARTED: dict[str, Config] = {
    **{name: VARIANTS[name] for name in ("dqn", "quantile_dueling_double")},
    "table": TABLE,
}


@pytest.mark.parametrize("name", STARTED)
def test_a_published_agent_goes_on_from_where_it_was(name: str) -> None:
    environment = environments.finite_horizon(64, 0)
    first = suite.trained(STARTED[name], environment, 120)
    _, described, arrays = first.agent.export()
    second = Serial(STARTED[name], environments.finite_horizon(64, 1), Plan(64 * 80, 64 * 40), 9)
    second.agent.start_from(arrays, described)
    states = np.eye(len(environment.rewards), dtype=np.float32)
    np.testing.assert_array_equal(
        second.agent.greedy(states, environment.legal), first.agent.greedy(states, environment.legal)
    )
    before = suite.greedy_return(second, environment)
    assert before == suite.greedy_return(first, environment)
    while not second.done:
        second.advance()
    assert suite.greedy_return(second, environment) >= before - 0.1 * abs(before)


def test_another_network_is_refused_and_told_from() -> None:
    def agent(config: DQN, environment: environments.Planted) -> Serial:
        return Serial(config, environment, Plan(64, 64), 0)

    here = environments.finite_horizon(8, 0)
    _, described, arrays = agent(SMALL, here).agent.export()
    dueling = agent(msgspec.structs.replace(SMALL, network=Network(layers=(32,), dueling=True)), here).agent
    with pytest.raises(ValueError, match=r"'dueling': False.*'dueling': True"):
        dueling.start_from(arrays, described)
    with pytest.raises(ValueError, match=r"value\.weight: none for \(1, 32\)"):
        dueling.start_from(arrays)
    elsewhere = agent(SMALL, environments.identity(8, 0)).agent
    with pytest.raises(ValueError, match=r"trunk\.0\.weight: \(32, 25\) for \(32, 6\)"):
        elsewhere.start_from(arrays, described)
    table = Serial(TABLE, here, Plan(64, 64), 0).agent
    with pytest.raises(ValueError, match="config"):
        table.start_from({"q": np.zeros((3, 3))})
    cells = {"entries": [0], "low": [0.0], "high": [1.0], "bins": [2]}
    with pytest.raises(ValueError, match=r"\(3, 3\).*\(2, 3\)"):
        table.start_from({"q": np.zeros((3, 3))}, cells)
