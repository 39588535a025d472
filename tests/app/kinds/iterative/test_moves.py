import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import initial_table
from app.kinds.iterative.observation import outlook, preferences_of, reachable, terms, view
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, advance, begin, expect
from tests.planted import planted_spec, planted_table

SPEC = planted_spec(
    resources=[
        {"name": "gpus", "minimum": 1, "maximum": 8, "max_steps": 2},
        {"name": "cpus", "minimum": 1, "maximum": 4, "change_seconds": 1.0},
    ],
    features=[{"name": "batch", "minimum": 1, "maximum": 512}],
    metrics=[
        {"name": "iteration_seconds", "target": 330.0, "scope": "run"},
        {"name": "loss", "target": 1.0, "goal": "track"},
        {"name": "items", "target": 40.0, "goal": "at_least", "scope": "run"},
        {"name": "memory"},
    ],
)
LAYOUT = Layout(SPEC)


def anywhere(projector: Projector, seed: int = 1) -> State:
    """Runs at every iteration, with targets, weights and prices of their own."""
    random, count = np.random.default_rng(seed), 8 * (LAYOUT.iterations + 1)
    state = begin(
        projector,
        np.stack([random.integers(0, n, count) for n in LAYOUT.levels], axis=1),
        targets=LAYOUT.targets * random.uniform(0.5, 2, (count, 1)),
        weights=random.random((count, 3)),
        prices=random.random((count, 2)),
        features=random.uniform(1, 512, (count, 1)),
    )
    iteration = (np.arange(count) % (LAYOUT.iterations + 1)).astype(np.int32)
    spent = random.uniform(0, 400, state.elapsed.shape) * (iteration / LAYOUT.iterations)[:, None]
    return state._replace(iteration=iteration, elapsed=spent, effect=random.normal(0, 0.3, spent.shape), measured=spent)


@pytest.mark.parametrize("informed", [True, False])
def test_tables_of_moves_hold_what_is_computed_without_them(monkeypatch: pytest.MonkeyPatch, informed: bool) -> None:
    table = planted_table(SPEC) if informed else initial_table(LAYOUT)
    with_tables = Projector(LAYOUT, table)
    state = anywhere(with_tables)
    fast = view(with_tables, state)
    monkeypatch.setattr("app.kinds.iterative.moves.LARGEST_TABLE", 0)
    slow = view(Projector(LAYOUT, table), state)
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_view_is_the_outlook_of_what_can_be_reached() -> None:
    projector = Projector(LAYOUT, planted_table(SPEC))
    state = anywhere(projector)
    observation = view(projector, state)
    legal = LAYOUT.legal(state.levels).T
    np.testing.assert_array_equal(observation.mask, legal)
    expected = np.where(legal, outlook(projector, state, reachable(projector, state, legal)).T, -np.inf)
    np.testing.assert_allclose(observation.outlook, expected, rtol=1e-9)


def test_single_precision_differs_by_rounding_only() -> None:
    wide, narrow = (Projector(LAYOUT, planted_table(SPEC), dtype) for dtype in (np.float64, np.float32))
    state = anywhere(wide)
    single = State(*(f if f.dtype.kind == "i" else f.astype(np.float32) for f in state))
    one, other = view(wide, state), view(narrow, single)
    assert other.observation.dtype == np.float32
    np.testing.assert_allclose(one.outlook, other.outlook, rtol=1e-5, atol=1e-5)


def test_what_is_kept_of_a_run_is_what_would_be_computed_again() -> None:
    projector = Projector(LAYOUT, planted_table(SPEC))
    state = anywhere(projector)
    state = state._replace(iteration=np.minimum(state.iteration, LAYOUT.iterations - 1))
    preferences = preferences_of(projector, state)
    levels = np.minimum(state.levels + 1, np.array(LAYOUT.levels) - 1)
    expected = expect(projector, state, levels, state.features)
    metrics = np.exp(expected.logs)
    after = advance(projector, state, levels, metrics, state.features)
    for one, other in zip(after, advance(projector, state, levels, metrics, state.features, expected), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(terms(projector, state, after), terms(projector, state, after, preferences))
    for one, other in zip(view(projector, after), view(projector, after, preferences), strict=True):
        np.testing.assert_array_equal(one, other)
