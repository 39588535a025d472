"""The judge of held-out decisions: its worlds, its return, its rule, its verdicts."""

from dataclasses import replace

import numpy as np
import pytest

from app.kinds.contract.inputs import Sample
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import initial_table
from app.kinds.iterative.observation import reference_cost, terms
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.samples import Checker, CsvReader
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import advance, begin
from benchmarks.held_out.compare import compare
from benchmarks.held_out.ellis import EXECUTORS, judge
from benchmarks.held_out.goals import rows
from benchmarks.held_out.planted import planted
from benchmarks.held_out.planted_suite import PLANTED, plant
from benchmarks.held_out.play import Advice, Learner, Played, Report, play
from benchmarks.held_out.rules import Static, plain_rule
from benchmarks.held_out.served import as_csv
from benchmarks.held_out.table import best_static, coverage, difference, missed, verdict
from benchmarks.held_out.world import Floats
from workers.evaluation.statistics import Interval
from workers.kinds.iterative.grid import Executions

STAGES = 4
SPARK = Spec.model_validate(
    {
        "name": "spark",
        "resources": [EXECUTORS],
        "metrics": [{"name": "iteration_seconds", "target": 60, "scope": "run"}],
        "iterations": STAGES,
    }
)


def run(executors: float, effect: float) -> Floats:
    stages = np.arange(STAGES)
    seconds = effect * (1 + stages + 10 * (stages + 1) / executors)
    return np.stack([stages, np.full(STAGES, executors), seconds], axis=1)


def static(executors: float) -> Learner:
    return lambda _: Static(np.array([executors]))


class Wanderer:
    """Up and down by chance, with bands that hold half of the time."""

    name = "wanderer"

    def __init__(self, layout: Layout, seed: int) -> None:
        self._layout, self._random = layout, np.random.default_rng(seed)

    def begin(self, features: Floats, upcoming: Floats) -> Advice:
        start = [r.start for r in self._layout.spec.resources]
        return self._banded(np.tile(start, (len(features), 1)))

    def next(self, report: Report) -> Advice:
        low, high, step = (
            [getattr(r, name) for r in self._layout.spec.resources] for name in ("minimum", "maximum", "step")
        )
        moved = report.allocation + np.array(step) * self._random.integers(-1, 2, report.allocation.shape)
        return self._banded(np.clip(moved, low, high))

    def _banded(self, allocation: Floats) -> Advice:
        shape = (len(allocation), len(self._layout.metrics))
        return Advice(allocation, np.zeros(shape), np.where(np.arange(len(allocation))[:, None] % 2, np.inf, 0.0))


def test_the_judge_finds_the_law_and_the_effects_of_runs_without_noise() -> None:
    later = [run(executors, effect) for executors in (5, 10, 20) for effect in (0.5, 1.5)]
    world = judge("spark", SPARK, Executions((("1", later[0]),)), later)
    at = np.array([[8.0]])
    law = np.concatenate([world.law(i, at, np.zeros((1, 0)))[0] for i in range(STAGES)])
    factors = world.episodes(50, 0).factors
    assert law == pytest.approx(run(8, 1.0)[:, 2])
    assert set(np.round(factors.ravel(), 9)) == {0.5, 1.5}
    assert np.ptp(factors, axis=1) == pytest.approx(0)


@pytest.mark.parametrize("name", PLANTED)
def test_a_return_is_the_services_own_but_for_what_costs_are_relative_to(name: str) -> None:
    world = plant(name, 7)
    layout, count = Layout(world.spec), 3
    played = play(world, lambda profile: Wanderer(Layout(profile.spec), 1), count, 5)
    features = world.episodes(count, 5).features
    projector = Projector(layout, initial_table(layout))
    levels = np.rint((played.allocations - projector.minima) / projector.steps).astype(np.int16)
    state, total = (
        begin(projector, levels[:, 0], features=features[:, 0] if layout.features else None),
        np.zeros((count, 3)),
    )
    expected = reference_cost(projector, state)
    for i in range(layout.iterations):
        after = advance(projector, state, levels[:, i], played.metrics[:, i], features[:, i])
        state = state._replace(features=features[:, 0])  # the reference is that of the run's first features
        total += terms(projector, state, after)
        state = after
    assert played.terms[:, [0, 2]] == pytest.approx(total[:, [0, 2]])
    assert played.terms[:, 1] * world.reference(world.episodes(count, 5)) == pytest.approx(total[:, 1] * expected)


def test_what_is_uploaded_is_what_was_profiled() -> None:
    profile = plant("varying-features", 7).profile
    read = list(CsvReader(Checker(Layout(profile.spec))).read(iter([as_csv(profile).encode()])))
    assert [one.execution for one in read] == profile.executions.names
    for one, (_, data) in zip(read, profile.executions.items, strict=True):
        assert isinstance(one, Sample)
        assert np.array_equal(np.frombuffer(one.data, "<f8").reshape(data.shape), data)


def test_everyone_is_judged_on_the_same_episodes() -> None:
    world = plant("deadline", 7)
    one, other = (play(world, static(12.0), 20, 3) for _ in range(2))
    assert np.array_equal(one.metrics, other.metrics)
    assert not np.array_equal(one.metrics, play(world, static(12.0), 20, 4).metrics)


def test_nobody_leaves_the_grid_or_moves_too_far() -> None:
    world = plant("deadline", 7)

    class Jumper(Static):
        def next(self, report: Report) -> Advice:
            return Advice(report.allocation + 9)

    with pytest.raises(ValueError, match="may move 8 steps"):
        play(world, lambda _: Jumper(np.array([12.0])), 2, 0)
    with pytest.raises(ValueError, match="on its grid"):
        play(world, static(12.5), 2, 0)


def test_without_chance_the_rule_takes_the_least_that_meets_the_deadline() -> None:
    plan = PLANTED["deadline"](np.random.default_rng(7))
    world = planted("certain", replace(plan, effect_sd=0.0, noise_sd=0.0), 0)
    played = play(world, plain_rule(1.0), 2, 0)
    current = {x: play(world, static(x), 1, 0) for x in np.arange(8.0, 31.0)}
    least = min(x for x, one in current.items() if one.terms[0, 0] == 0)
    assert (played.allocations[:, 0] == least).all()
    assert (played.terms[:, 0] == 0).all()
    assert (played.money <= current[least].money + 1e-12).all()


def test_the_rule_stays_within_what_was_sampled() -> None:
    world = plant("drift", 7)
    sampled = world.profile.allocations
    allocations = play(world, plain_rule(1.0), 20, 0).allocations
    assert allocations.min() >= sampled.min()
    assert allocations.max() <= sampled.max()


def test_bands_are_counted_by_iterations_and_by_time_inside_and_outside() -> None:
    world = plant("deadline", 7)
    played = play(world, lambda profile: Wanderer(Layout(profile.spec), 1), 10, 0)
    current = coverage(played, world.profile, inside=True)
    seconds = played.metrics[:, :, 0]
    assert current.iterations == pytest.approx(0.5)
    assert current.time == pytest.approx(seconds[1::2].sum() / seconds.sum())
    assert np.isnan(coverage(played, world.profile, inside=False).time)


def test_a_verdict_needs_the_whole_interval() -> None:
    peer = play(plant("deadline", 7), static(12.0), 5, 0)
    margin = 0.01 * abs(peer.returns.mean())
    words = [
        verdict(Interval(0.0, bounds[0] * margin, bounds[1] * margin), peer)
        for bounds in ((1.1, 9.0), (0.9, 9.0), (-0.9, 9.0), (-1.1, 9.0), (-9.0, -0.9), (-9.0, -1.1))
    ]
    assert words == ["ahead", "level", "level", "undecided", "undecided", "behind"]


def test_the_best_static_is_the_best_on_the_very_episodes() -> None:
    world = plant("deadline", 7)
    every: list[Played] = [play(world, static(x), 20, 0) for x in (8.0, 14.0, 30.0)]
    best = best_static(every)
    assert all(difference(best, one).mean >= 0 for one in every)


def test_what_is_recorded_says_whether_both_were_matched() -> None:
    wanderer, *_, static_line = compare(plant("deadline", 7), [lambda p: Wanderer(Layout(p.spec), 1)], episodes=20)
    returns, *bands, changes = rows("deadline-7", wanderer)
    assert returns["value"] == pytest.approx(wanderer.played.returns.mean())
    assert returns["peer_value"] >= static_line.played.returns.mean()
    assert "missed" in returns["goal"]  # half of the time it is far from what the deadline needs
    assert len(bands) == 4  # of iterations and of time, inside and outside
    assert all("missed" in band["goal"] for band in bands if not 0.85 <= band["value"] <= 0.95)
    assert bands[0]["value"] == coverage(wanderer.played, wanderer.profile, inside=True).iterations
    assert changes["value"] == pytest.approx(wanderer.played.changes.mean())
    assert static_line.punctual is not None
    assert static_line.punctual.money.mean() <= static_line.played.money.mean()


def test_where_a_probability_is_asked_for_misses_and_cost_are_what_counts() -> None:
    world = plant("probability-deadline", 7)
    assert [metric.probability for metric in world.spec.metrics] == [0.95]
    few, many = (compare(world, [static(executors)], episodes=60, seed=3)[0] for executors in (36, 4))
    misses, cost = rows("probability-deadline-7", few)[:2]
    assert (misses["value"], "at most 5% + 0.0% of noise: met" in misses["goal"]) == (0.0, True)
    assert cost["value"] == pytest.approx(few.played.money.mean())
    assert few.least == 0
    assert few.punctual is not None
    assert cost["peer_value"] == pytest.approx(few.punctual.money.mean())
    assert "missed (behind" in cost["goal"]  # a static between is punctual too, and costs less
    misses, cost = rows("probability-deadline-7", many)[:2]
    assert misses["value"] > 0.5
    assert ": missed" in misses["goal"]
    assert ": met (" in cost["goal"]


def test_the_noise_of_a_share_is_that_of_its_episodes() -> None:
    world = plant("probability-iteration-target", 7)
    played = play(world, static(15), 80, 3)
    (one,) = missed(played)
    late = (played.metrics[:, :, 0] > (world.spec.metrics[0].target or 0)).mean(axis=1)
    assert one.allowed == pytest.approx(0.1)
    assert one.share == pytest.approx(late.mean())
    assert one.noise == pytest.approx(1.96 * late.std() / np.sqrt(80))
    assert one.noise is not None
    assert one.noise > 1.96 * np.sqrt(one.share * (1 - one.share) / (80 * 30))  # a run's iterations stand together
