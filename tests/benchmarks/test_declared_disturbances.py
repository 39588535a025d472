"""The benchmark of declared shifts of pace: its workloads, its episodes, and its control."""

import numpy as np
import pytest

from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.spec import Disturbances
from benchmarks import declared_disturbances as benchmark
from benchmarks.declared_disturbances import Arena
from benchmarks.drawn_workloads import Generated, draw_shift, generate
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.judge import Evaluator

DEADLINE = [{"name": "iteration_seconds", "target": 110.0, "scope": "run"}]
SHIFT = Disturbances.model_validate({"pace_shift": {"probability": 0.6, "factor": [1.4, 2.0]}})
PLAIN = planted_spec(iterations=10, metrics=DEADLINE)
SHIFTING = PLAIN.model_copy(update={"disturbances": SHIFT})


def test_drawn_workloads_are_broad_and_their_own() -> None:
    drawn = [generate(seed) for seed in range(12)]
    assert {len(one.spec.resources) for one in drawn} >= {1, 2}
    assert len({one.spec.iterations for one in drawn}) > 5
    assert all(one.table.fitted and one.table.log_mean.shape[1] == one.truth.log_mean.shape[1] for one in drawn)
    again = generate(4)
    assert again.spec == drawn[4].spec
    assert np.array_equal(again.table.log_mean, drawn[4].table.log_mean)
    shifts = [draw_shift(seed).pace_shift for seed in (4, 5, 4)]
    assert shifts[0] == shifts[2] != shifts[1]


def test_an_arena_plays_as_the_evaluator_does() -> None:
    """Where what is true is what is believed, both return the same on average."""
    table = planted_table(SHIFTING, effect=0.1, noise=0.1)
    mine = Arena(Generated(SHIFTING, table, table), SHIFT).play(SHIFTING, 1, 4_096)
    other = Evaluator(SHIFTING, table, 5, 4_096).score(HEURISTICS["model_predictive"]).returns
    assert abs(mine.mean() - other.mean()) < 4 * np.hypot(mine.std(), other.std()) / 64


def test_what_is_declared_gains_where_it_happens() -> None:
    table = planted_table(SHIFTING, effect=0.1, noise=0.1)
    arenas = [Arena(Generated(PLAIN, table, table), happens) for happens in (SHIFT, Disturbances())]
    happens, control = (arena.gain(SHIFTING, 3, 1_024) for arena in arenas)
    assert happens > 0.01
    assert control < happens
    assert arenas[0].gain(PLAIN, 3, 64) == 0


@pytest.mark.parametrize("seed", [4, 5])
def test_other_specs_are_unchanged(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "EPISODES", 64)
    assert benchmark._gain("unchanged", seed) == 0
    assert benchmark._gain("drawn", seed) != 0
