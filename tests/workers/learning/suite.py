"""What every learner is put through: checks by config, for whatever family it is of."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.policies import FAMILIES
from tests.workers.learning import environments
from workers.learning.algorithms.config import Config
from workers.learning.backends import Backend, flatten
from workers.learning.build import bind, complete, compose
from workers.learning.components.base import Component, Memory, Node, Spaces, sample
from workers.learning.execution.serial import Plan, Serial
from workers.learning.simulator import Simulator

Prepare = Callable[[Serial], None]


@cache
def workload() -> environments.Workload:
    return environments.Workload()


def trained(
    config: Config, environment: Simulator, slabs: int, seed: int = 0, chunks: int = 2, prepare: Prepare | None = None
) -> Serial:
    """A learner after so many slabs; `prepare` is called before the first."""
    steps = environment.batch * slabs
    runner = Serial(config, environment, Plan(steps, steps // chunks), seed)
    if prepare is not None:
        prepare(runner)
    while not runner.done:
        runner.advance()
    return runner


def greedy_return(runner: Serial, environment: environments.Planted) -> float:
    """Exact value of the greedy policy, mean over starts."""
    states = np.eye(len(environment.rewards), dtype=np.float32)
    return environment.worth(runner.agent.greedy(states, environment.legal))


def exported_gap(runner: Serial, problem: environments.Workload) -> float:
    """What the exported policy leaves of the workload's exact optimum, as a share."""
    kind, described, arrays = runner.agent.export()
    return problem.gap(FAMILIES[kind].build({"algorithm": "tested", **described}, dict(arrays)))


def exported(runner: Serial) -> NDArray[np.float32]:
    """All that is exported, in one vector."""
    return np.concatenate([value.ravel() for value in runner.agent.export()[2].values()])


def check_the_grids_way(config: Config, slabs: int = 250) -> None:
    """Down, then right: the optimum of the 2×2 grid, which is worth 0."""
    environment = environments.grid(32, 0)
    runner = trained(config, environment, slabs)
    greedy = runner.agent.greedy(np.eye(4, dtype=np.float32), environment.legal)
    assert greedy[:2].tolist() == [2, 1]
    assert greedy_return(runner, environment) == 0.0


def check_identity(config: Config, slabs: int = 300) -> None:
    """Every state's own action, and so the return 1."""
    environment = environments.identity(32, 0)
    assert greedy_return(trained(config, environment, slabs), environment) == 1.0


def check_finite_horizon(config: Config, slabs: int = 600, prepare: Prepare | None = None) -> None:
    """A random MDP's exact optimum, but for 2 %: everything is exact, so there is no error of measurement."""
    environment = environments.finite_horizon(64, 0)
    runner = trained(config, environment, slabs, prepare=prepare)
    assert greedy_return(runner, environment) >= environment.best() - 0.02 * abs(environment.best())


def check_workload(config: Config, slabs: int, batch: int = 128, seed: int = 0) -> None:
    """A planted workload's exact optimum, but for 2 %, by the policy that is exported.

    Both are played on the same 1,024 episodes; the gap's standard error is about 0.2 %.
    """
    runner = trained(config, workload().simulator(batch, seed), slabs, seed)
    gap = exported_gap(runner, workload())
    assert gap <= 0.02, f"{gap:.4f} of the optimum's return is left"


def check_same_seed(config: Config, slabs: int = 20, prepare: Prepare | None = None) -> None:
    """The same seed gives the same parameters to the bit, another seed others."""

    def parameters(seed: int) -> NDArray[np.float32]:
        return exported(trained(config, environments.finite_horizon(32, seed), slabs, seed, prepare=prepare))

    first = parameters(1)
    np.testing.assert_array_equal(first, parameters(1))
    assert (first != parameters(2)).any()


def check_resumed(config: Config, *, prepare: Prepare | None = None) -> None:
    """From a checkpoint with its memory, another run goes on as the first one does, to the bit."""
    plan = Plan(32 * 40, 32 * 20)
    straight = Serial(config, environments.finite_horizon(32, 5), plan, 3)
    if prepare is not None:
        prepare(straight)
    straight.advance()
    saved = straight.checkpoint()
    resumed = Serial(config, environments.finite_horizon(32, 99), plan, 77)
    resumed.restore(saved)
    assert resumed.progress == straight.progress
    while not straight.done:
        one, other = straight.advance(), resumed.advance()
        assert (one.episode_return, one.loss, one.updates) == (other.episode_return, other.loss, other.updates)
    assert resumed.done
    np.testing.assert_array_equal(exported(straight), exported(resumed))


def run_alone(
    component: Component, spaces: Spaces, backend: Backend, batch: int = 8, seed: int = 0, spread: float = 0.0
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Build one component alone and run it on samples of its input spaces; return inputs and outputs as NumPy arrays.

    The same seed gives the same inputs and variables on every backend. `spread` is the standard deviation of what is
    added to the variables' starting values: with it, a head that starts at zero says something too.
    """
    rng = np.random.default_rng(seed)
    inputs = {port: sample(spaces[port], batch, rng) for port in component.takes}
    node = Node("alone", component, {port: port for port in component.takes})
    bound = bind(complete(compose(component.takes, [node]), spaces), backend, rng)
    start = flatten({name: backend.to_numpy(view) for name, view in bound.stores["online"].views.items()})
    drawn = (start + spread * rng.standard_normal(len(start))).astype(np.float32)
    own = {"online": backend.cut(bound.stores["online"].layout, backend.asarray(drawn))}
    ports = tuple(component.results()) or tuple(component.output_spaces(spaces))
    on_host = isinstance(component, Memory)
    feeds = {port: value if on_host else backend.asarray(value) for port, value in inputs.items()}
    with backend.without_gradient():
        outputs = bound.run(tuple(f"alone.{port}" for port in ports), feeds, own)
    values = {port: outputs[f"alone.{port}"] for port in ports}
    return inputs, {port: value if on_host else backend.to_numpy(value) for port, value in values.items()}
