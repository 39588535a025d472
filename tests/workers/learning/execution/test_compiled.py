"""The compiled loop against the agents on torch, update by update, and as a whole on a planted problem."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from gymnasium import spaces

from tests.contracts.executor import BATCH, CONFIGS, ROLLOUTS, VALUES, assert_as_good, finish, simulator
from workers.learning.agent import make_agent
from workers.learning.algorithms.config import DQN, ActorCritic, Memory, Network, QTable
from workers.learning.algorithms.config.shared import Place
from workers.learning.execution import ExecutionError, Plan, make_executor
from workers.learning.execution.checkpoint import CheckpointError
from workers.learning.execution.choice import settled
from workers.learning.spaces import reals, sample

jax = pytest.importorskip("jax")

SEEN, ACTIONS, EXAMPLES = spaces.Box(-np.inf, np.inf, (7,), np.float32), spaces.Discrete(3), 40
VALUE = msgspec.structs.replace(VALUES, batch=EXAMPLES, average_from=0.0)
VALUE_VARIANTS = {
    "dqn": msgspec.structs.replace(VALUE, double=False, target_share=1.0, target_every=2),
    "dueling_double": msgspec.structs.replace(VALUE, network=Network(layers=(16, 8), dueling=True)),
    "quantiles": msgspec.structs.replace(VALUE, quantiles=5),
}
POLICY_VARIANTS = {
    "a2c": ROLLOUTS,
    "ppo": msgspec.structs.replace(ROLLOUTS, surrogate="clipped", stop=0.02, value_clip=0.2),
}


@pytest.fixture(scope="module", autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Programs are compiled once for all tests of this module."""
    from workers.learning.backends.loop import keep_programs

    folder = tmp_path_factory.mktemp("programs")
    keep_programs(folder)
    yield folder
    keep_programs(None)


def on(config: Any, backend: str) -> Any:
    return msgspec.structs.replace(config, place=Place(backend=backend, device="cpu"))  # type: ignore[arg-type]


def family(config: DQN | ActorCritic, batch: int) -> Any:
    from workers.learning.execution.compiled import FAMILIES

    return FAMILIES[type(config)](on(config, "jax"), SEEN, ACTIONS, None, batch, np.random.default_rng(3))


def torch_agent(config: DQN | ActorCritic) -> Any:
    return make_agent(on(config, "torch"), SEEN, ACTIONS, None, np.random.default_rng(3))


def transitions(rng: np.random.Generator) -> dict[str, np.ndarray]:
    mask = spaces.MultiBinary(3)
    drawn = {
        "observation": sample(SEEN, EXAMPLES, rng),
        "mask": sample(mask, EXAMPLES, rng),
        "action": sample(ACTIONS, EXAMPLES, rng),
        "reward": sample(reals(), EXAMPLES, rng),
        "discount": (rng.random(EXAMPLES) < 0.9).astype(np.float32),
        "next_observation": sample(SEEN, EXAMPLES, rng),
        "next_mask": sample(mask, EXAMPLES, rng),
    }
    return {**drawn, "weight": np.ones(EXAMPLES, np.float32)}


@pytest.mark.parametrize("name", VALUE_VARIANTS)
def test_updates_of_the_value_family_are_those_of_torch(name: str) -> None:
    config, rng = VALUE_VARIANTS[name], np.random.default_rng(0)
    compiled, agent = family(config, 8), torch_agent(config)
    learner, update = compiled.learner(), jax.jit(compiled.updated)
    for _ in range(4):
        batch = transitions(rng)
        agent.memory.sample = lambda count, batch=batch: (batch, np.arange(count))
        feeds = {f"memory.{port}": value for port, value in batch.items()}
        told = agent._update(config.optimiser.rate, 0.7, 0)
        learner, loss = update(learner, feeds, config.optimiser.rate, 0.7)
        assert float(loss) == pytest.approx(told, rel=1e-4)
    compiled.settle(learner)
    for wanted, found in zip(agent.state(memory=False), compiled.agent.state(memory=False), strict=True):
        assert wanted.keys() == found.keys()
    for part, wanted in agent.state(memory=False)[0].items():
        np.testing.assert_allclose(compiled.agent.state(memory=False)[0][part], wanted, rtol=1e-4, atol=2e-6)
    assert compiled.agent.updates == agent.updates == 4
    for part, wanted in agent.export()[2].items():
        np.testing.assert_allclose(compiled.agent.export()[2][part], wanted, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("name", POLICY_VARIANTS)
def test_updates_of_the_actor_critic_family_are_those_of_torch(name: str) -> None:
    from workers.learning.execution.loops import Told, nothing
    from workers.learning.execution.policy_loop import Going

    config, rng = POLICY_VARIANTS[name], np.random.default_rng(0)
    compiled, agent = family(config, EXAMPLES // config.rollout), torch_agent(config)
    told = Told(*np.array([0.3, 5e-3, 0.01], np.float32))
    going = Going(compiled.learner(), np.True_, nothing(jax.numpy))
    update = jax.jit(compiled.updated)
    for _ in range(4):
        batch = {port: value for port, value in transitions(rng).items() if port in {"observation", "mask", "action"}}
        for port in ("advantage", "target", "old"):
            batch[port] = sample(reals(), EXAMPLES, rng)
        batch["log_prob"] = -rng.random(EXAMPLES, np.float32)
        found, gradient = agent._gradient("loss.loss", {k: agent.backend.asarray(v) for k, v in batch.items()}, 0.01)
        before = float(going.stats.loss)
        going = update(going._replace(on=np.True_), batch, told)
        assert float(going.stats.loss) - before == pytest.approx(float(found["loss.loss"].mean()), rel=1e-3)
        agent._step(gradient, 5e-3)
    np.testing.assert_allclose(going.learner.online, agent.parameters(), rtol=1e-4, atol=2e-6)


def test_estimates_are_those_of_torch() -> None:
    from workers.learning.execution.loops import Slab

    rng, config = np.random.default_rng(0), ROLLOUTS
    batch, steps = EXAMPLES // config.rollout, config.rollout
    compiled, agent = family(config, batch), torch_agent(config)
    slabs = [transitions(rng) for _ in range(steps)]
    stacked = {port: np.stack([slab[port][:batch] for slab in slabs]) for port in ("observation", "mask", "action")}
    reward, done = rng.normal(size=(steps, batch)).astype(np.float32), rng.random((steps, batch)) < 0.2
    chance = -rng.random((steps, batch), np.float32)
    following = slabs[0]["next_observation"][:batch]
    for step in range(steps):
        slab = {port: value[step] for port, value in stacked.items()}
        told = {**slab, "reward": reward[step], "done": done[step], "log_prob": chance[step]}
        agent.rollout.push({**told, "next_observation": following, "next_mask": slabs[0]["next_mask"][:batch]})
    taken = agent._taken()
    wanted = agent._estimated(taken)
    rolled = Slab(**stacked, reward=reward, done=done, log_prob=chance)
    flat = {port: compiled._flat(value) for port, value in rolled._asdict().items()}
    for port in ("observation", "action", "reward", "done"):
        np.testing.assert_array_equal(flat[port], taken[port])
    standing: Any = type("Standing", (), {"observation": following, "mask": slabs[0]["next_mask"][:batch]})
    for port, value in compiled._estimated(compiled.learner(), flat, standing).items():
        np.testing.assert_allclose(value, wanted[port], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("steps", "slabs"), [(1, 3), (3, 9)])
def test_what_is_drawn_was_remembered(steps: int, slabs: int) -> None:
    """Every transition drawn is one that the NumPy window gives, and only those still kept; with 4 slabs kept."""
    from workers.learning.backends.loop import Draws, luck
    from workers.learning.execution.loops import Slab

    config = msgspec.structs.replace(VALUE, n_step=steps, gamma=0.9, memory=Memory(capacity=32, warm_up=8), batch=900)
    batch, rng = 8, np.random.default_rng(1)
    compiled, agent = family(config, batch), torch_agent(config)
    seen = [sample(SEEN, batch, rng) for _ in range(slabs + 1)]
    masks = [sample(spaces.MultiBinary(3), batch, rng) for _ in range(slabs + 1)]
    ring = compiled.memory(seen[0], masks[0], luck(0))
    for k in range(slabs):
        action, done = sample(ACTIONS, batch, rng), rng.random(batch) < 0.3
        reward, zeros = rng.normal(size=batch).astype(np.float32), np.zeros(batch, np.float32)
        standing: Any = type("Standing", (), {"observation": seen[k + 1], "mask": masks[k + 1]})
        ring = compiled._pushed(ring, Slab(seen[k], masks[k], action, reward, done, zeros), standing)
        names = ("observation", "mask", "action", "reward", "done", "next_observation", "next_mask")
        slab = dict(zip(names, (seen[k], masks[k], action, reward, done, seen[k + 1], masks[k + 1]), strict=True))
        agent.memory.insert(agent.n_step.run(None, {}, slab))
    size = min(slabs - steps + 1, 4)
    drawn = compiled._drawn(ring, jax.numpy.asarray(size), Draws(ring.luck, 2))
    kept = agent.memory.rings
    places = [int(np.flatnonzero((kept["observation"] == row).all(axis=1))[0]) for row in drawn["memory.observation"]]
    assert set(places) == {int(place) for place in np.arange(32) if kept["observation"][place].any()}
    assert len(set(places)) == size * batch
    for port, value in drawn.items():
        if port != "memory.weight":
            wanted = kept[port.removeprefix("memory.")][places]
            np.testing.assert_allclose(np.where(_alive(port, drawn), value, wanted), wanted, rtol=1e-5, atol=1e-6)


def _alive(port: str, drawn: Any) -> Any:
    """What follows an end counts for nothing, and is not compared."""
    if not port.startswith("memory.next"):
        return True
    return np.asarray(drawn["memory.discount"])[:, None] > 0


MADE: dict[str, Any] = {
    "double": msgspec.structs.replace(VALUES, n_step=2),
    "ppo": CONFIGS["ppo"],
}


def made(name: str, slabs: int, seed: int = 0, chunk: int = 50, **more: Any) -> Any:
    plan = Plan(BATCH * slabs, BATCH * chunk, **more)
    return make_executor("compiled", on(MADE[name], "jax"), simulator(seed), plan, seed)


def exported(executor: Any) -> np.ndarray:
    return np.concatenate([value.ravel() for value in executor.agent.export()[2].values()])


@pytest.mark.parametrize("name", MADE)
def test_it_learns_what_serial_learns_and_the_same_from_the_same_seed(name: str) -> None:
    one, other, third = (made(name, 300, seed) for seed in (0, 0, 1))
    for executor in (one, other, third):
        executor.advance()
    np.testing.assert_array_equal(exported(one), exported(other))
    assert not np.array_equal(exported(one), exported(third))
    assert_as_good(finish(one), name)
    assert one.live.steps == one.steps
    assert np.isfinite(one.live.loss)
    assert 0 < one.live.exploration < 1.5
    assert -33 < one.live.episode_return < 1
    assert one.agent.export()[0] == "network"


@pytest.mark.parametrize("keep_memory", [True, False])
@pytest.mark.parametrize("name", MADE)
def test_paused_and_resumed_is_the_same_as_not_paused(name: str, keep_memory: bool) -> None:
    straight, resumed = (made(name, 150, seed, keep_memory=keep_memory) for seed in (0, 7))
    straight.advance()
    resumed.restore(straight.checkpoint())
    assert (resumed.steps, resumed.updates, resumed.live) == (straight.steps, straight.updates, straight.live)
    for executor in (straight, resumed):
        while not executor.done:
            executor.advance()
    np.testing.assert_array_equal(exported(straight), exported(resumed))
    assert straight.live.episode_return == resumed.live.episode_return
    with pytest.raises(CheckpointError):
        resumed.restore(b"no checkpoint at all")


def test_a_chunk_ends_at_a_pause_and_the_training_in_time() -> None:
    executor = made("double", 60, pauses=(0.3,))
    executor.advance()
    assert 0.3 <= executor.progress < 0.4
    executor.advance()
    assert executor.done
    hurried = made("double", 10**7, seconds=0.3)
    while not hurried.done:
        hurried.advance()
    assert hurried.elapsed >= 0.3
    assert hurried.steps < BATCH * 10**6


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (msgspec.structs.replace(VALUES, memory=Memory(prioritised=True)), "prioritised"),
        (msgspec.structs.replace(ROLLOUTS, recurrent=8), "recurrent"),
        (QTable(), "QTable"),
    ],
)
def test_what_is_not_compiled_is_refused(config: Any, told: str) -> None:
    with pytest.raises(ExecutionError, match=told):
        make_executor("compiled", config, simulator(), Plan(1000), 0)


LONG, SHORT = Plan(50_000_000), Plan(100_000)


@pytest.mark.parametrize(
    ("wanted", "name", "backend", "plan", "config"),
    [
        ("compiled", "serial", "jax", SHORT, VALUES),
        ("compiled", "serial", "auto", LONG, VALUES),
        ("compiled", "serial", "auto", LONG, ROLLOUTS),
        ("serial", "serial", "auto", SHORT, VALUES),
        ("serial", "serial", "auto", Plan(50_000_000, seconds=1.0), VALUES),
        ("serial", "serial", "torch", LONG, VALUES),
        ("serial", "serial", "auto", LONG, msgspec.structs.replace(VALUES, memory=Memory(prioritised=True))),
        ("processes", "processes", "auto", LONG, VALUES),
    ],
)
def test_jax_runs_what_is_long_enough_for_it(wanted: str, name: str, backend: str, plan: Plan, config: Any) -> None:
    assert settled(name, on(config, backend), simulator(), plan) == wanted


def test_without_jax_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    absent: Callable[[], tuple[str, ...]] = lambda: ("numpy", "torch")  # noqa: E731
    monkeypatch.setattr("workers.learning.execution.choice.available", absent)
    assert settled("serial", on(VALUES, "auto"), simulator(), LONG) == "serial"
