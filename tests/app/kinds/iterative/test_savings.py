"""What a run saved beside allocations that are held, under a law that is known."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest

from app.kinds.contract.engine import Pending
from app.kinds.contract.savings import Estimate
from app.kinds.iterative.compiled import Compiled
from app.kinds.iterative.engine import ENGINE
from app.kinds.iterative.report import IterationRunStart
from app.kinds.iterative.savings import savings
from app.kinds.iterative.spec import Spec
from tests.answers import all_answered
from tests.app.kinds.iterative.decisions.deciding import compiled, seconds
from tests.planted import planted_spec, planted_table

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SIZES = range(4, 37)
PRICE = 3.6
QUICK = {"targets": {"iteration_seconds": 150.0}}


def priced(**changes: Any) -> Spec:
    spec = planted_spec(**changes)
    return spec.model_copy(
        update={"resources": [one.model_copy(update={"price_per_hour": PRICE}) for one in spec.resources]}
    )


def reports(sizes: list[int], slower: float = 1.0) -> list[dict[str, Any]]:
    """Iterations at ``sizes``, the pause of each change included."""
    before, reports = sizes[0], []
    for size in sizes:
        took = slower * seconds(size) + 2.0 * (size != before)
        reports.append({"allocation": {"executors": float(size)}, "metrics": {"iteration_seconds": took}})
        before = size
    return reports


def known(one: Estimate | None) -> Estimate:
    assert one is not None
    return one


def by_hand(sizes: list[int], slower: float, target: float) -> tuple[int, dict[int, tuple[float, float]]]:
    """The best size to hold, and seconds and cost of every size."""
    every = {n: slower * seconds(n) * len(sizes) for n in SIZES}
    cost = {n: took * n * PRICE / 3600 for n, took in every.items()}
    good = [n for n in SIZES if every[n] <= target]
    best = min(good, key=cost.__getitem__) if good else min(SIZES, key=every.__getitem__)
    return best, {n: (every[n], cost[n]) for n in SIZES}


@pytest.mark.parametrize(
    ("sizes", "slower", "start", "target"),
    [
        ([8] * 10 + [20] * 20, 1.0, {}, 330.0),
        ([8] * 10 + [20] * 20, 1.2, {}, 330.0),
        ([30, 12, 12], 0.9, {}, 330.0),
        ([4] * 30, 1.0, QUICK, 150.0),  # met by no size
    ],
)
def test_other_allocations_are_what_the_law_says_times_the_runs_own_effect(
    sizes: list[int], slower: float, start: dict[str, Any], target: float
) -> None:
    spec = priced()
    result = savings(compiled(spec, planted_table(spec)), start, reports(sizes, slower), None)
    assert result is not None
    best, every = by_hand(sizes, slower, target)
    spent = sum(
        (slower * seconds(n) + 2.0 * (n != before)) * n * PRICE / 3600
        for before, n in zip([sizes[0], *sizes], sizes, strict=False)
    )
    assert result.cost == pytest.approx(spent)
    assert result.largest.allocation == {"executors": 36.0}
    assert result.best_fixed.allocation == {"executors": float(best)}
    for one, size in ((result.largest, 36), (result.best_fixed, best)):
        took, cost = every[size]
        assert known(one.seconds).value == pytest.approx(took, rel=1e-4)
        assert known(one.cost).value == pytest.approx(cost, rel=1e-4)
        assert known(one.saved).value == pytest.approx(cost - spent, abs=1e-4)
        assert one.meets_targets == float(took <= target)
        assert known(one.saved).low is None  # a single model has no spread


def test_what_members_disagree_on_is_in_the_interval_and_what_was_held_is_certain() -> None:
    spec = priced()
    table = planted_table(spec)
    slope = np.linspace(-1, 1, 33)[None, None, :, None, None] * np.linspace(-0.3, 0.3, 21)[:, None, None, None, None]
    members = (slope - slope[:, :, 16:17]).astype(np.float32)  # they agree at 20 executors
    on = compiled(spec, replace(table, members=members))
    largest = [savings(on, {}, reports([size] * 30), None) for size in (20, 36)]
    assert largest[0] is not None
    assert largest[1] is not None
    unsure, sure = (one.largest for one in largest if one is not None)
    low, high = (30 * seconds(36) * np.exp(part) for part in (-0.27, 0.27))
    assert (known(unsure.seconds).low, known(unsure.seconds).high) == pytest.approx((low, high), rel=1e-3)
    assert known(sure.saved).low == pytest.approx(0.0, abs=1e-9)
    assert known(sure.saved).high == pytest.approx(0.0, abs=1e-9)
    assert unsure.meets_targets == pytest.approx(np.mean(30 * seconds(36) * np.exp(np.linspace(-0.3, 0.3, 21)) <= 330))


@pytest.mark.parametrize(
    ("low", "high", "sizes", "largest", "best"),
    [
        (4.0, 36.0, [8, 12], None, None),
        (4.0, 20.0, [8, 12], "not measured at 36 executors: samples and run have 4 to 20", None),
        (4.0, 20.0, [8, 36], None, None),  # the run itself was there
        (12.0, 12.0, [12, 12], "not measured at 36 executors: samples and run have 12", None),
        (30.0, 36.0, [30, 36], None, "not measured at 19 executors: samples and run have 30 to 36"),
        (4.0, 35.6, [8, 8], None, None),  # less than half a step
    ],
)
def test_no_figures_are_made_up_where_neither_samples_nor_the_run_have_been(
    low: float, high: float, sizes: list[int], largest: str | None, best: str | None
) -> None:
    spec = priced()
    table = replace(planted_table(spec), seen_low=np.array([low]), seen_high=np.array([high]))
    start = {"targets": {"iteration_seconds": len(sizes) * seconds(19) * 1.0001}}
    outcome = savings(compiled(spec, table), start, reports(sizes), None)
    assert outcome is not None
    if sizes == [12, 12]:
        best = "not measured at 19 executors: samples and run have 12"
    if (low, high) == (4.0, 20.0) or best is not None:
        assert outcome.best_fixed.allocation == {"executors": 19.0}
    for one, result in ((outcome.largest, largest), (outcome.best_fixed, best)):
        figures = (one.seconds, one.cost, one.saved)
        assert (one.unmeasured, [part is None for part in figures]) == (result, [result is not None] * 3)
        assert (one.meets_targets is None) == (result is not None)
    assert outcome.cost > 0


def test_recommendations_beyond_what_was_measured_have_no_figures() -> None:
    spec = priced()
    every = planted_table(spec)
    narrow = replace(every, seen_low=np.array([30.0]), seen_high=np.array([36.0]))
    entries = [savings(compiled(spec, table), {}, reports([36] * 30), NOW) for table in (every, narrow)]
    advised = [one.advised for one in entries if one is not None]
    assert [None if one is None else one.saved is None for one in advised] == [False, True]
    assert advised[1] is not None
    assert str(advised[1].unmeasured).startswith("not measured at ")


def test_segments_count_where_they_ran() -> None:
    spec = priced()
    on = compiled(spec, planted_table(spec))
    share = 0.25
    parts = [share * seconds(8), 2.0 + (1 - share) * seconds(30)]
    segments = [
        {"allocation": {"executors": units}, "seconds": took} for units, took in zip((8.0, 30.0), parts, strict=True)
    ]
    one = {"allocation": {"executors": 30.0}, "metrics": {"iteration_seconds": sum(parts)}, "segments": segments}
    result = savings(on, {}, [one], None)
    assert result is not None
    assert result.cost == pytest.approx((8 * parts[0] + 30 * parts[1]) * PRICE / 3600)
    assert known(result.largest.seconds).value == pytest.approx(
        seconds(36), rel=1e-4
    )  # a quarter of the work, and the rest


def test_iterations_before_the_first_are_not_counted_and_no_target_has_no_verdict() -> None:
    metrics = [{"name": "iteration_seconds", "unit": "s"}]
    spec = priced(metrics=metrics)
    result = savings(compiled(spec, planted_table(spec)), {"first_iteration": 25}, reports([8] * 5), None)
    assert result is not None
    assert (result.iterations, result.best_fixed.meets_targets) == (5, None)
    assert result.best_fixed.allocation == {"executors": 4.0}  # the cheapest


@pytest.mark.parametrize("model", [None, "prior"])
def test_nothing_is_claimed_without_a_fitted_model_or_reports(model: str | None) -> None:
    spec = priced()
    table = None if model is None else replace(planted_table(spec), prior=True)
    assert savings(compiled(spec, table), {}, reports([8]), None) is None
    assert savings(compiled(spec, planted_table(spec)), {}, [], None) is None


def test_what_was_recommended_is_replayed_as_if_it_had_been_applied() -> None:
    """A run that holds too little misses its deadline; the recommendations, applied, would have met it for less than
    the largest allocation costs, and exactly as a run that follows them from the beginning."""
    spec = priced()
    on = compiled(spec, planted_table(spec, noise=0.05))
    current = reports([5] * 30)
    result = savings(on, {}, current, NOW)
    assert result is not None
    assert result.advised is not None
    assert result.seconds > 330
    assert result.advised.meets_targets == 1.0
    assert known(result.advised.cost).value < known(result.largest.cost).value
    follows = followed(on)
    again = savings(on, {}, follows, NOW)
    assert again is not None
    assert again.advised is not None
    assert known(again.advised.cost).value == pytest.approx(again.cost, rel=1e-3)
    assert known(result.advised.cost).value == pytest.approx(again.cost, rel=1e-2)


def test_long_runs_are_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.kinds.iterative.savings.MOST_REPLAYED", 4)
    on = compiled(priced(), planted_table(priced()))
    result = [savings(on, {}, reports([8] * count), NOW) for count in (4, 5)]
    assert [one is not None and one.advised is not None for one in result] == [True, False]


def followed(on: Compiled) -> list[dict[str, Any]]:
    """The reports of a run without noise that applies what is decided."""
    start = IterationRunStart.model_validate({"workload": "planted"})
    answered, results = ENGINE.begin(on, "run", start, NOW), list[dict[str, Any]]()
    for number in range(30):
        size = int(msgspec.json.decode(answered.decision)["allocation"]["executors"])
        sizes = [*(int(one["allocation"]["executors"]) for one in results), size]
        results = reports(sizes)
        checked = ENGINE.read(on, answered.state, number, ENGINE.decode(msgspec.json.encode(results[-1])))
        (following,) = all_answered(ENGINE.answer(on, [Pending("run", number, answered.state, checked, {}, None)], NOW))
        answered = following
    return results


def test_the_replay_aims_at_the_runs_own_target() -> None:
    spec = priced()
    on = compiled(spec, planted_table(spec, noise=0.02))
    current = reports([20] * 30)
    loose, tight = (savings(on, {"targets": {"iteration_seconds": goal}}, current, NOW) for goal in (500.0, 215.0))
    assert loose is not None
    assert tight is not None
    assert loose.advised is not None
    assert tight.advised is not None
    assert loose.advised.meets_targets == tight.advised.meets_targets == 1.0
    assert known(loose.advised.cost).value < 0.9 * known(tight.advised.cost).value


def test_the_replay_keeps_to_the_runs_own_caps() -> None:
    spec = priced()
    on = compiled(spec, planted_table(spec, noise=0.02))
    start: dict[str, Any] = {"targets": {"iteration_seconds": 215.0}}
    free, other = (savings(on, {**start, **more}, reports([20] * 30), NOW) for more in ({}, {"caps": {"cost": 50.0}}))
    assert free is not None
    assert free.advised is not None
    assert free == other
    limit = 0.8 * known(free.advised.cost).value
    capped = savings(on, {**start, "caps": {"cost": limit}}, reports([20] * 30), NOW)
    assert capped is not None
    assert capped.advised is not None
    assert known(capped.advised.cost).value < 1.02 * limit


def test_a_measured_pause_is_taken_off_the_first_segment() -> None:
    spec = priced()
    on = compiled(spec, planted_table(spec))
    half = [seconds(size) / 2 + 2.0 for size in (8, 20)]
    one = {"allocation": {"executors": 20.0}, "metrics": {"iteration_seconds": 0.0}}
    results = []
    for pause in (0.0, 500.0):
        parts = [{"allocation": {"executors": n}, "seconds": took} for n, took in zip((8.0, 20.0), half, strict=True)]
        parts[0]["seconds"] = half[0] + pause
        last: dict[str, Any] = {**one, "metrics": {"iteration_seconds": sum(half) + pause}, "segments": parts}
        last |= {"change_seconds": pause + 2.0} if pause else {}
        results.append(savings(on, {}, [*reports([12] * 3), last], None))
    usual, paused = results
    assert usual is not None
    assert paused is not None
    assert known(paused.largest.seconds).value == pytest.approx(known(usual.largest.seconds).value)


def test_pauses_longer_than_the_work_are_left_out() -> None:
    """A change that takes longer than the rest of the iteration is no work at another allocation."""
    spec = priced()
    table = planted_table(spec)
    on = compiled(spec, replace(table, change_seconds=np.array([30.0])))
    current = reports([8, 8, 20, 20])
    current[2]["metrics"]["iteration_seconds"] = seconds(20) + 30.0
    result = savings(on, {}, current, None)
    assert result is not None
    assert known(result.largest.seconds).value == pytest.approx(4 * seconds(36), rel=1e-4)


def test_other_metrics_are_shared_by_work_and_targets_of_iterations_are_met_on_average() -> None:
    """Half of the work at each of two allocations, between which a second metric doubles."""
    names = [
        {"name": "iteration_seconds", "unit": "s"},
        {"name": "loss", "target": 1.0, "goal": "at_least", "scope": "iteration"},
    ]
    spec = priced(metrics=names)
    table = planted_table(spec)
    table.log_mean[1] = np.where(np.arange(33) < 16, 0.0, np.log(2.0))[:, None, None]
    on = compiled(spec, table)
    took = [seconds(8) / 2, 2.0 + seconds(30) / 2]
    half = [{"allocation": {"executors": n}, "seconds": part} for n, part in zip((8.0, 30.0), took, strict=True)]
    one = {
        "allocation": {"executors": 30.0},
        "metrics": {"iteration_seconds": sum(took), "loss": np.sqrt(2.0)},
        "segments": half,
    }
    result = savings(on, {}, [one], None)
    assert result is not None
    assert result.largest.meets_targets == 1.0  # twice as much there: 2.0
    assert result.best_fixed.allocation == {"executors": 4}  # 1.0 on average
    more = savings(on, {"targets": {"loss": 1.5}}, [one], None)
    assert more is not None
    assert more.best_fixed.allocation == {"executors": 20}  # the first of those at which it is twice as much


def test_what_is_too_much_to_compare_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.kinds.iterative.savings.MOST_COMPARED", 33 * 2)
    on = compiled(priced(), planted_table(priced()))
    few, many = ([8, 12] * 15, [8, 12, 16] * 10)
    assert savings(on, {}, reports(few), None) is not None
    assert savings(on, {}, reports(many), None) is None
