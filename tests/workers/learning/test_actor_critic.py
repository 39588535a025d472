"""The actor-critic family on planted problems with exact solutions."""

import msgspec
import numpy as np
import pytest

from app.kinds.iterative.heuristics import HEURISTICS
from app.policies.network import NetworkPolicy
from tests.workers.learning import environments, suite
from tests.workers.learning.suite import greedy_return, trained
from workers.learning.agent import Agent, make_agent
from workers.learning.algorithms.config import (
    ActorCritic,
    Cloning,
    Entropy,
    Network,
    Optimiser,
    built_in_config,
    encode,
)
from workers.learning.algorithms.network import NetworkLearner
from workers.learning.algorithms.registry import decode
from workers.learning.execution.serial import Collector, Plan, Serial
from workers.learning.simulator import demonstrate

SMALL = ActorCritic(
    network=Network(layers=(32,), activation="tanh"),
    optimiser=Optimiser(rate=1e-2, clip=0.5),
    entropy=Entropy(start=0.2),
    rollout=6,
)
replace = msgspec.structs.replace
VARIANTS = {
    "a2c": SMALL,
    "a3c": replace(SMALL, asynchronous=True, rollout=5),
    "ppo": replace(SMALL, surrogate="clipped", epochs=3, batch=192, stop=0.03),
    "vtrace": replace(SMALL, estimator="vtrace", trace=1.0, epochs=2),
}
SWITCHES = {
    **VARIANTS,
    "value_clip": replace(VARIANTS["ppo"], value_clip=0.5, average=0.1),
    "plain": replace(SMALL, normalise=False, trace=0.8, optimiser=Optimiser(rate=5e-3)),
}


def on_workload(config: ActorCritic) -> ActorCritic:
    """With the same switches."""
    return replace(
        config,
        network=Network(layers=(32,), activation="tanh"),
        optimiser=Optimiser(rate=5e-3, clip=0.5, hold=0.3),
        entropy=Entropy(start=0.4),
        rollout=3,
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_the_grids_way(name: str) -> None:
    suite.check_the_grids_way(VARIANTS[name], 300)


@pytest.mark.parametrize("name", [name for name in SWITCHES if name not in VARIANTS])
def test_identity(name: str) -> None:
    suite.check_identity(SWITCHES[name], 180)


@pytest.mark.parametrize(
    "name", ["a2c", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ppo", "vtrace", "value_clip"))]
)
def test_within_two_percent_of_exact_value_iteration(name: str) -> None:
    suite.check_finite_horizon(SWITCHES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "a2c"])
def test_within_two_percent_of_a_workloads_optimum(name: str) -> None:
    suite.check_workload(on_workload(VARIANTS[name]), 450)


@pytest.mark.parametrize("config", SWITCHES.values(), ids=SWITCHES)
def test_same_seed_same_result_and_another_seed_another(config: ActorCritic) -> None:
    suite.check_same_seed(config)


@pytest.mark.parametrize("config", SWITCHES.values(), ids=SWITCHES)
def test_resumed_from_a_checkpoint_is_bit_equal(config: ActorCritic) -> None:
    suite.check_resumed(config)


@pytest.mark.parametrize("name", ["a2c", "ppo"])
def test_who_is_paid_for_the_wrong_thing_does_the_wrong_thing(name: str) -> None:
    paid, meant = environments.identity(32, 0), environments.identity(32, 0)
    paid.rewards = -paid.rewards
    assert greedy_return(trained(VARIANTS[name], paid, 120), meant) == 0.0


def test_a_policy_that_may_not_move_does_not_learn() -> None:
    environment = environments.finite_horizon(64, 0)
    current = replace(VARIANTS["ppo"], optimiser=Optimiser(rate=1e-9))
    assert greedy_return(trained(current, environment, 120), environment) < environment.best() - 0.1


def test_the_first_step_too_far_leaves_the_rollout() -> None:
    environment = environments.finite_horizon(64, 0)
    eager = replace(VARIANTS["ppo"], stop=1e-6, optimiser=Optimiser(rate=0.05))
    patient = replace(eager, stop=None)
    assert trained(eager, environment, 6).updates <= 2
    assert trained(patient, environments.finite_horizon(64, 0), 6).updates == 6


def agent_for(environment: environments.Planted, config: ActorCritic, seed: int = 0) -> Agent:
    return make_agent(
        config,
        environment.observation_space,
        environment.action_space,
        environment.advice,
        np.random.default_rng(seed),
    )


def test_a_gradient_applied_is_what_learning_does() -> None:
    """A3C's two halves, one after the other, are A2C's one step, to the bit."""
    agents, rng = [], np.random.default_rng(3)
    for _ in range(2):
        environment = environments.finite_horizon(32, 5)
        agent, collector, draws = (
            agent_for(environment, VARIANTS["a3c"]),
            Collector(environment),
            np.random.default_rng(9),
        )
        assert agent.differentiate(0.0) == ([], None)
        for _ in range(VARIANTS["a3c"].rollout):
            agent.remember(collector.step(agent, 0.0, draws))
        agents.append(agent)
    one, other = agents
    stats = one.learn(0.2, rng)
    before, third = other.parameters(), agent_for(environments.finite_horizon(32, 5), VARIANTS["a3c"])
    (gradient,), result = other.differentiate(0.2)
    assert gradient.shape == before.shape
    assert result == stats
    assert (other.parameters() != before).any()
    third.apply(gradient, 0.2)
    np.testing.assert_array_equal(third.parameters(), one.parameters())
    np.testing.assert_array_equal(other.parameters(), one.parameters())


def test_an_actor_that_takes_the_learners_parameters_acts_as_it_does() -> None:
    environment = environments.finite_horizon(64, 0)
    learner = trained(VARIANTS["a2c"], environment, 60).agent
    actor = agent_for(environment, VARIANTS["a2c"], seed=8)
    observation, mask = environment.reset()
    before = actor.act(observation, mask, 0.0, np.random.default_rng(1))
    actor.load(learner.parameters())
    one, other = (agent.act(observation, mask, 0.0, np.random.default_rng(1)) for agent in (actor, learner))
    np.testing.assert_array_equal(one.action, other.action)
    np.testing.assert_array_equal(one.log_prob, other.log_prob)
    assert (before.log_prob != one.log_prob).any()


def test_rollouts_of_other_actors_are_refused_where_they_do_not_fit() -> None:
    environment = environments.finite_horizon(32, 0)
    agent, collector = agent_for(environment, SMALL), Collector(environment)
    agent.remember(collector.step(agent, 0.0, np.random.default_rng(0)))
    smaller = environments.finite_horizon(8, 0)
    with pytest.raises(ValueError, match="8 environments follows one of 32"):
        agent.remember(Collector(smaller).step(agent, 0.0, np.random.default_rng(0)))


def test_export_is_what_the_learner_would_do_in_the_rewards_unit() -> None:
    environment = environments.finite_horizon(64, 0)
    runner = trained(replace(VARIANTS["ppo"], network=Network(layers=(32, 16)), average=0.2), environment, 60)
    kind, config, arrays = runner.agent.export()
    assert (kind, config) == (
        "network",
        {"layers": [32, 16], "activation": "relu", "dueling": False},
    )
    policy = NetworkPolicy.build({"algorithm": "ppo", **config}, dict(arrays))
    states = np.eye(len(environment.rewards), dtype=np.float32)
    served = policy.q_values(states, environment.legal)
    own = runner.agent.values(states, environment.legal)
    np.testing.assert_allclose(served[environment.legal], own[environment.legal], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(served.argmax(axis=1), runner.agent.greedy(states, environment.legal))


def test_a_clone_does_what_its_expert_does_and_is_the_better_start() -> None:
    environment = environments.finite_horizon(64, 0)
    rng, agent = np.random.default_rng(0), agent_for(environment, SMALL)
    shown = demonstrate(environment, environments.Expert(environment), 62)
    stats = agent.imitate(shown, rng)
    assert stats.updates == SMALL.cloning.epochs * 10 * 1  # whole rollouts of 6 slabs, of one minibatch each
    states = np.eye(len(environment.rewards), dtype=np.float32)
    assert environment.worth(agent.greedy(states, environment.legal)) >= environment.best() - 0.02
    with pytest.raises(ValueError, match="nothing was shown"):
        agent.imitate([], rng)


def test_a_clone_of_a_heuristic_on_a_workload() -> None:
    """It ends up near what it was shown: between it and the optimum, but for 2 % (standard error 0.2 %)."""
    workload, rule = suite.workload(), HEURISTICS["threshold"]
    config = replace(on_workload(VARIANTS["a2c"]), cloning=Cloning(epochs=6, rate=1e-2))
    runner = Serial(config, workload.simulator(128, 0), Plan(128, 128), 0)
    untrained = suite.exported_gap(runner, workload)
    runner.agent.imitate(demonstrate(workload.simulator(128, 4), rule, 90), runner.rng)
    shown, exported_gap = workload.gap(rule), suite.exported_gap(runner, workload)
    assert exported_gap <= shown + 0.02
    assert exported_gap < untrained / 2


def test_a_published_agent_goes_on_where_it_was() -> None:
    environment = environments.finite_horizon(64, 0)
    first = trained(VARIANTS["ppo"], environment, 120)
    _, config, arrays = first.agent.export()
    second = agent_for(environment, VARIANTS["ppo"], seed=5)
    second.start_from(arrays, config)
    states = np.eye(len(environment.rewards), dtype=np.float32)
    before: np.ndarray = first.agent.values(states, environment.legal)
    np.testing.assert_allclose(second.values(states, environment.legal), before, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="layers"):
        second.start_from(arrays, {**config, "layers": [64]})
    with pytest.raises(ValueError, match=r"trunk\.0\.bias"):
        second.start_from({**arrays, "trunk.0.bias": np.zeros(7, np.float32)})


@pytest.mark.parametrize("name", ["a2c", "a3c", "ppo", "vtrace"])
def test_configs_go_to_json_and_back(name: str) -> None:
    config = built_in_config(name)
    assert isinstance(config, ActorCritic)
    assert decode(encode(config)) == config
    assert config.asynchronous == (name == "a3c")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"type": "actor_critic", "clip": 1.5}', r"\$\.clip"),
        ('{"type": "actor_critic", "estimator": "td"}', r"\$\.estimator"),
        ('{"type": "actor_critic", "entropy": {"start": -1}}', r"\$\.entropy\.start"),
        ('{"type": "actor_critic", "network": {"scorer": {"joint": []}}}', r"\$\.network\.scorer\.joint"),
    ],
)
def test_a_bad_config_is_refused_naming_the_field(text: str, place: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=place):
        decode(text)


def test_the_entropys_weight_follows_its_schedule() -> None:
    """Paid for nothing but entropy, a policy stays even; paid for nothing at all, it need not."""
    environment = environments.identity(32, 0)
    environment.rewards[:] = 0.0
    broad = replace(SMALL, entropy=Entropy(start=1.0, end=1.0), normalise=False)
    runner = trained(broad, environment, 60)
    assert runner.live.exploration == pytest.approx(np.log(5), rel=1e-3)


def test_what_is_exported_after_few_updates_is_a_plain_mean_of_them() -> None:
    """Of parameters 1, 2, 3, 4: those with which it begins don't outweigh the later ones; earlier ones are out."""
    learner = agent_for(environments.identity(8, 0), replace(VARIANTS["ppo"], average=0.02, average_from=0.5)).learner
    assert isinstance(learner, NetworkLearner)
    state = learner.init(np.random.default_rng(0))
    for number, progress in enumerate((0.4, 0.5, 0.6, 0.7, 0.8)):
        state = learner.update_average(state.but({"online": state.arrays["online"] * 0 + number}), progress)
    np.testing.assert_allclose(learner.backend.to_numpy(state.arrays["average"]), 2.5, rtol=1e-6)


def test_an_average_of_many_updates_forgets_the_first() -> None:
    learner = agent_for(environments.identity(8, 0), replace(VARIANTS["ppo"], average=0.5, average_from=0.0)).learner
    assert isinstance(learner, NetworkLearner)
    state = learner.init(np.random.default_rng(0))
    for number in (0, 0, 0, 0, 1):
        state = learner.update_average(state.but({"online": state.arrays["online"] * 0 + number}), 1.0)
    np.testing.assert_allclose(learner.backend.to_numpy(state.arrays["average"]), 0.5, rtol=1e-6)
