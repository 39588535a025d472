"""What every kind must hold, over specs that differ in every way a spec can. A new kind adds its specs to ``SPECS``."""

import json
from typing import Any

import numpy as np
import pytest

from app.kinds.contract.policy import Situation
from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.moves import step
from app.kinds.iterative.observation import terms, view
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, advance, begin, pack, unpack
from tests.planted import planted_spec, planted_table

GPUS = {"name": "gpus", "minimum": 1, "maximum": 8, "max_steps": 2, "change_seconds": 3.0}
CPUS = {"name": "cpus", "minimum": 0, "maximum": 4, "step": 0.5, "price_per_hour": 0.0}
SECONDS = {"name": "iteration_seconds", "target": 330.0, "scope": "run"}
BATCH = {"name": "batch", "minimum": 1, "maximum": 512}
SPECS: dict[str, dict[str, Any]] = {
    "deadline": {},
    "no target": {"metrics": []},
    "two resources and a feature": {"resources": [GPUS, CPUS], "features": [BATCH]},
    "three metrics": {
        "metrics": [
            SECONDS,
            {"name": "loss", "target": 1.0, "goal": "track"},
            {"name": "speed", "target": 2.0, "goal": "at_least", "scope": "run"},
            {"name": "memory"},
        ]
    },
    "one allocation": {"resources": [GPUS | {"minimum": 8}]},
    "nothing costs": {"resources": [GPUS | {"price_per_hour": 0.0}]},
    "one iteration": {"iterations": 1},
    "many iterations": {"iterations": 5000, "resources": [GPUS, CPUS | {"maximum": 50}]},
}


@pytest.fixture(params=SPECS)
def projector(request: pytest.FixtureRequest) -> Projector:
    spec = planted_spec(**SPECS[request.param])
    return Projector(Layout(spec), planted_table(spec))


def walk(projector: Projector, seed: int, batch: int = 16, reports: int = 5) -> tuple[State, State]:
    """Runs somewhere in the middle, and the same one legal step later."""
    layout, random = projector.layout, np.random.default_rng(seed)
    levels = np.stack([random.integers(0, n, batch) for n in layout.levels], axis=1)
    state = before = begin(projector, levels)
    for _ in range(min(reports, layout.iterations)):
        before = state
        legal = view(projector, state).mask
        action = np.array([random.choice(np.flatnonzero(row)) for row in legal])
        metrics = np.exp(random.normal(2, 1, (batch, len(layout.metrics))))
        features = np.array([[random.uniform(f.minimum, f.maximum) for f in layout.spec.features]] * batch)
        state = advance(projector, state, step(layout, state.levels, action), metrics, features)
    return before, state


def test_observations_have_the_declared_space(projector: Projector) -> None:
    layout = projector.layout
    observation = view(projector, walk(projector, 1)[1])
    assert observation.observation.shape == (16, layout.observation_size)
    assert layout.observation_space.contains(observation.observation[0].astype(np.float32))
    assert np.isfinite(observation.observation).all()
    assert observation.mask.shape == observation.outlook.shape == (16, layout.action_space.n)


def test_staying_is_always_legal_and_the_outlook_is_closed_exactly_where_the_mask_is(projector: Projector) -> None:
    observation = view(projector, walk(projector, 2)[1])
    assert observation.mask[:, projector.layout.noop].all()
    np.testing.assert_array_equal(np.isneginf(observation.outlook), ~observation.mask)
    assert np.isfinite(observation.outlook[observation.mask]).all()


def test_a_run_does_not_depend_on_its_neighbours(projector: Projector) -> None:
    _, state = walk(projector, 3)
    together = view(projector, state)
    for row in (0, 7, 15):
        alone = view(projector, State(*(field[row : row + 1] for field in state)))
        np.testing.assert_allclose(alone.observation[0], together.observation[row], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(alone.outlook[0], together.outlook[row], rtol=1e-9, atol=1e-12)


def test_a_state_goes_to_json_and_back(projector: Projector) -> None:
    _, state = walk(projector, 4)
    rows = np.array(json.loads(json.dumps(pack(state).tolist())))
    for before, after in zip(state, unpack(projector.layout, rows), strict=True):
        np.testing.assert_array_equal(before, after)


def test_nothing_changes_what_it_was_given(projector: Projector) -> None:
    _, state = walk(projector, 5)
    before = pack(state).copy()
    view(projector, state)
    advance(projector, state, state.levels, np.ones_like(state.elapsed), state.features)
    np.testing.assert_array_equal(pack(state), before)


def test_single_precision_sees_the_same(projector: Projector) -> None:
    _, state = walk(projector, 6)
    single = Projector(projector.layout, projector.table, np.float32)
    rounded = State(*(f if f.dtype.kind == "i" else f.astype(np.float32) for f in state))
    rough, exact = view(single, rounded), view(projector, state)
    assert rough.observation.dtype == np.float32
    np.testing.assert_allclose(rough.observation, exact.observation, rtol=2e-3, atol=2e-2)


def test_terms_are_finite_and_never_negative(projector: Projector) -> None:
    before, after = walk(projector, 7)
    paid = terms(projector, before, after)
    assert paid.shape == (16, 3)
    assert np.isfinite(paid).all()
    assert (paid >= 0).all()


@pytest.mark.parametrize("name", HEURISTICS)
def test_heuristics_choose_legally_and_repeatably(projector: Projector, name: str) -> None:
    _, state = walk(projector, 8)
    situation = Situation(projector, state, view(projector, state))
    action = HEURISTICS[name].act(situation).action
    assert situation.view.mask[np.arange(16), action].all()
    np.testing.assert_array_equal(action, HEURISTICS[name].act(situation).action)
