"""The compiled simulator against the NumPy one: from the same state, with the same noise, the same comes of it."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import State
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.expected import ExpectedSimulator
from workers.kinds.iterative.simulator import TRAINING, IterativeSimulator

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.filterwarnings("error")

BATCH, STEPS = 16, 5
QUICK = {"xla_backend_optimization_level": 0}  # these programs run for a moment


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    resource = {"name": "a", "minimum": 1, "maximum": draw(st.integers(2, 9)), "max_steps": draw(st.integers(1, 2))}
    other = {"name": "b", "minimum": 0, "maximum": 4, "step": 2, "change_seconds": 1.5, "price_per_hour": 3}
    metric = {
        "name": "loss",
        "target": draw(st.sampled_from([None, 1.1])),
        "goal": draw(st.sampled_from(["at_most", "at_least", "track"])),
        "scope": draw(st.sampled_from(["run", "iteration"])),
    }
    seconds = {"name": "iteration_seconds", "target": draw(st.sampled_from([None, 40.0])), "scope": "run"}
    return planted_spec(
        resources=draw(st.sampled_from([[resource], [resource, other]])),
        metrics=draw(st.sampled_from([[seconds], [metric, seconds]])),
        features=draw(st.sampled_from([[], [{"name": "size", "minimum": 1, "maximum": 5}]])),
        iterations=draw(st.integers(3, 7)),
    )


def table_of(spec: Spec, rng: np.random.Generator, drift: float) -> ModelTable:
    """A planted table with feature cells and two kinds of iterations."""
    table = planted_table(spec, drift=drift)
    cells = tuple(np.array([1.5, 4.0]) for _ in spec.features)
    logs = rng.normal(0, 0.3, (len(spec.metrics), table.log_mean.shape[1], 2 ** len(cells), 2))
    bins = np.arange(spec.iterations, dtype=np.int32) % 2
    return replace(table, log_mean=(table.log_mean + logs).astype(np.float32), feature_nodes=cells, iteration_bin=bins)


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def quick(function: Any, *like: Any) -> Any:
    return jax.jit(function).lower(*like).compile(QUICK)


def host(tree: Any) -> Any:
    return jax.tree.map(np.array, tree)


def placed(simulator: IterativeSimulator, world: Any, noise: list[np.ndarray]) -> None:
    """Put the NumPy simulator where the compiled one is, and this noise before it."""
    simulator._episodes = simulator._seen(State(*host(world.episodes.state)), np.array(world.episodes.effect))
    simulator._draw = lambda count: simulator._open(count)  # type: ignore[method-assign]
    plain = IterativeSimulator._normal
    simulator._normal = lambda shape: noise.pop(0).copy() if noise else plain(simulator, shape)  # type: ignore[method-assign]


@settings(max_examples=3, deadline=None, derandomize=True)
@given(specs(), st.booleans(), st.sampled_from([0.0, 0.05]))
def test_a_step_is_the_same(spec: Spec, expected: bool, drift: float) -> None:
    from workers.kinds.iterative.compiled import CompiledIterative

    rng = np.random.default_rng(0)
    layout, table = Layout(spec), table_of(spec, rng, drift)
    compiled = CompiledIterative(layout, table, BATCH, 1, TRAINING, expected=expected)
    family = ExpectedSimulator if expected else IterativeSimulator
    oracle = family(Layout(spec), table, BATCH, 2, TRAINING)
    constants, rows = compiled.constants(), compiled.beginnings(STEPS + 1)
    begin = quick(compiled.begin, constants, rows[0])
    world, seen = host(begin(constants, rows[0]))
    noise = rng.normal(size=(BATCH, compiled.normals)).astype(np.float32)
    step = quick(compiled.step, constants, world, np.zeros(BATCH, np.int32), noise, rows[1])
    for k in range(STEPS):
        noise = rng.normal(size=(BATCH, compiled.normals)).astype(np.float32)
        metrics = len(layout.metrics)
        parts = [noise[:, metrics:], noise[:, :metrics]] if drift else [noise]
        placed(oracle, world, parts)
        action = np.where(seen.mask, rng.random(seen.mask.shape), -1).argmax(axis=1)
        moved = host(step(constants, world, action.astype(np.int32), noise, rows[k + 1]))
        want = oracle.step(action)
        close(moved.reward, want.reward)
        np.testing.assert_array_equal(moved.done, want.done)
        on = ~want.done
        close(moved.seen.observation[on], want.observation[on])
        np.testing.assert_array_equal(moved.seen.mask[on], want.mask[on])
        fresh = host(begin(constants, rows[k + 1])[1])
        close(moved.seen.observation[~on], fresh.observation[~on])
        world, seen = moved.world, moved.seen


def test_beginnings_are_those_of_the_numpy_simulator() -> None:
    from workers.kinds.iterative.compiled import CompiledIterative

    spec = planted_spec()
    compiled = CompiledIterative(Layout(spec), planted_table(spec), 64, 1, TRAINING)
    constants, rows = compiled.constants(), compiled.beginnings(1)[0]
    world, seen = quick(compiled.begin, constants, rows)(constants, rows)
    oracle = IterativeSimulator(Layout(spec), planted_table(spec), 64, 3, TRAINING)
    told = oracle._seen(State(*host(world.episodes.state)), np.array(world.episodes.effect))
    close(seen.observation, told.view.observation)
    assert 0.2 < (host(world.episodes.state.iteration) > 1).mean() < 0.7  # half of them, anywhere


def test_what_cannot_be_traced_is_an_error() -> None:
    from workers.learning.compiled_simulator.traced import Traced

    known = Traced(jax.numpy.arange(6.0))
    with pytest.raises(TypeError, match="not known"):
        bool(known[0] > 1)
    with pytest.raises(TypeError, match="n-th"):
        known[::2] = 0
    with pytest.raises(TypeError, match="reduce"):
        np.add.reduce(cast("Any", known))


def test_writes_go_through_slices_and_in_place_operators() -> None:
    from workers.learning.compiled_simulator.traced import Traced

    def written(array: Any) -> Any:
        part = array[1:3]
        part += 10
        array.T[0, 0] = 7
        array[-1] = 5
        array[array > 100] = 0
        np.minimum(array, 50, out=array)
        return array

    plain = np.arange(12.0, dtype=np.float32).reshape(4, 3) * 20
    np.testing.assert_array_equal(written(Traced(jax.numpy.asarray(plain))).value, written(plain.copy()))
