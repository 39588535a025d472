"""The belief before any samples."""

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.contract.kind import MOST_EARLIER, Earlier
from app.kinds.iterative.heuristics import MODEL_PREDICTIVE, best_allocation, default_heuristic
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.prior import (
    BESIDE,
    LAWS,
    MIDDLE,
    MOST_OWN,
    NOISE_SD,
    SPARE,
    own_prior,
    population,
    prior_table,
    shares,
    similarity,
)
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reasons import forecast
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import advance, begin, member_weights, noise_scale

DEADLINE = {"name": "iteration_seconds", "unit": "s", "target": 600.0, "scope": "run"}
GPUS = {"name": "gpus", "minimum": 1, "maximum": 64, "max_steps": 63, "price_per_hour": 1.0}
CORES = {"name": "cores", "minimum": 2, "maximum": 32, "step": 2, "max_steps": 2, "price_per_hour": 0.1}


def _layout(**changed: Any) -> Layout:
    spec = {"name": "new", "resources": [GPUS], "metrics": [DEADLINE], "iterations": 20}
    return Layout(Spec.model_validate(spec | changed))


def _seconds(layout: Layout, table: ModelTable) -> np.ndarray:
    """Seconds of a run at each allocation by each member, [K, A]."""
    assert table.members is not None
    logs = (table.log_mean + table.members)[:, layout.seconds, :, 0, 0]
    return np.exp(logs) * layout.iterations


@pytest.mark.parametrize("resources", [[GPUS], [GPUS, CORES]])
def test_every_member_meets_the_deadline_at_the_middle_of_the_allocations(resources: list[dict[str, Any]]) -> None:
    layout = _layout(resources=resources)
    seconds = _seconds(layout, prior_table(layout))
    assert len(seconds) == len(population())
    low, high = layout.allocations.min(axis=0), layout.allocations.max(axis=0)
    middle = np.exp((1 - MIDDLE) * np.log(low) + MIDDLE * np.log(high))
    at = np.abs(np.log(layout.allocations / middle)).sum(axis=1).argmin()
    np.testing.assert_allclose(seconds[:, at], 600 / SPARE, rtol=0.1)


def test_members_scale_differently_and_most_of_them_fall_as_allocations_grow() -> None:
    layout = _layout()
    seconds = _seconds(layout, prior_table(layout))
    falls = seconds[:, 0] / seconds[:, -1]  # from 1 GPU to 64
    assert falls.min() < 2
    assert falls.max() > 30
    assert (falls > 1 - 1e-6).all()
    assert (falls > 2).sum() > len(falls) / 2


def test_a_rate_rises_as_the_duration_falls() -> None:
    rate = {"name": "rate", "unit": "1/s", "target": 50.0, "goal": "at_least"}
    layout = _layout(metrics=[rate, {**DEADLINE, "scope": "iteration", "target": 30.0}])
    table = prior_table(layout)
    assert table.members is not None
    logs = (table.log_mean + table.members)[..., 0, 0]
    np.testing.assert_allclose(logs[:, 0] - np.log(50), -(logs[:, 1] - np.log(30)), atol=1e-4)


@pytest.mark.parametrize(
    "changed",
    [
        {"metrics": [{"name": "iteration_seconds", "unit": "s"}]},
        {"metrics": [{"name": "rate", "target": 50.0, "goal": "at_least"}, {"name": "iteration_seconds"}]},
        {"features": [{"name": "batch", "minimum": 1, "maximum": 512}]},
    ],
    ids=["no target", "no target of the duration", "features"],
)
def test_where_no_scale_is_known_nothing_is_predicted(changed: dict[str, Any]) -> None:
    table = prior_table(_layout(**changed))
    assert not table.informed
    assert not table.prior


def test_it_is_planned_with_but_does_not_count_as_fitted_also_after_its_file() -> None:
    layout = _layout()
    table = ModelTable.from_bytes(prior_table(layout).to_bytes())
    assert (table.informed, table.fitted, table.prior, table.noise_weight) == (True, False, True, 2.0)
    assert default_heuristic(Projector(layout, table)).name == MODEL_PREDICTIVE


def test_a_tighter_deadline_begins_with_more() -> None:
    first = []
    for minutes in (1.0, 0.5):  # of a run; the workload's deadline stays
        layout = _layout()
        projector = Projector(layout, prior_table(layout))
        state = begin(projector, layout.start_levels[None], targets=np.array([600.0 * minutes]))
        first.append(int(best_allocation(projector, state)[0, 0]))
    assert first[0] < first[1]


@pytest.mark.parametrize(("spread", "low", "high"), [(0.02, 0.05, 0.4), (1.5, 2.0, 9.0)])
def test_the_noise_becomes_the_runs_own(spread: float, low: float, high: float) -> None:
    layout = _layout()
    projector = Projector(layout, prior_table(layout))
    state, random = begin(projector, layout.start_levels[None]), np.random.default_rng(3)
    usual = np.exp(projector.table.log_mean[:, int(layout.index(state.levels)[0]), 0, 0])[None]
    for _ in range(12):
        measured = usual * np.exp(spread * random.standard_normal((1, 1)))
        state = advance(projector, state, state.levels, measured, np.zeros((1, 0)))
    assert low < float(noise_scale(projector, state)[0, 0]) < high


@pytest.mark.parametrize("required", [None, 0.9])
def test_what_is_projected_for_a_quiet_run_is_what_it_takes(required: float | None) -> None:
    layout = _layout(metrics=[{**DEADLINE, "probability": required}])
    projector = Projector(layout, prior_table(layout))
    levels = np.array([[11]])
    state, at = begin(projector, levels), layout.index(levels)
    each = float(np.exp(projector.table.log_mean[0, int(at[0]), 0, 0]))
    for _ in range(12):
        state = advance(projector, state, state.levels, np.array([[each]]), np.zeros((1, 0)))
    forecast_values = forecast(projector, state, at, at, np.zeros(1))
    assert forecast_values.projected[0, 0, 0] == pytest.approx(20 * each, rel=0.02)  # with the prior's noise: 5 % more
    assert forecast_values.mean[0, 0] == pytest.approx(each, rel=0.04)  # 13 % more
    spread = replace(projector.table, noise_weight=0.0)
    loud = forecast(Projector(layout, spread), state, at, at, np.zeros(1))
    assert loud.chance[0, 0, 0] < forecast_values.chance[0, 0, 0]


def test_reports_tell_which_law_holds() -> None:
    layout = _layout()
    table = prior_table(layout)
    projector, scales = Projector(layout, table), population().index(("amdahl", 1.0))
    state = begin(projector, layout.start_levels[None])
    for step, levels in enumerate([0, 63, 0, 63, 7, 31]):
        at = np.array([[levels]])
        assert table.members is not None
        level = int(layout.index(at)[0])
        measured = np.exp(table.log_mean + table.members[scales])[:, level, 0, 0][None]
        state = advance(projector, state._replace(iteration=np.array([step])), at, measured, np.zeros((1, 0)))
    weights = member_weights(state)[0]
    falls = np.log(_seconds(layout, table)[:, 0] / _seconds(layout, table)[:, -1])
    assert abs(float(weights @ falls) - np.log(64)) < abs(float(falls.mean()) - np.log(64)) / 3


def test_laws_are_one_at_their_reference_and_shares_a_lattice() -> None:
    for law in LAWS.values():
        np.testing.assert_allclose(law(np.ones((1, 2)), shares(2)), 0, atol=1e-12)
    assert shares(2).sum(axis=1).max() == 1
    assert len(np.unique(shares(2), axis=0)) == len(shares(2)) == 66


def test_only_where_its_noise_has_a_weight_it_becomes_the_runs_own() -> None:
    layout = _layout()
    variances = {}
    for weight in (0.0, 2.0):
        projector = Projector(layout, replace(prior_table(layout), noise_weight=weight))
        state = begin(projector, layout.start_levels[None])
        usual = np.exp(projector.table.log_mean[:, int(layout.index(state.levels)[0]), 0, 0])[None]
        for _ in range(6):
            state = advance(projector, state, state.levels, usual, np.zeros((1, 0)))
        variances[weight] = float(state.variance[0, 0])
    assert variances[2.0] < 0.7 * variances[0.0]  # quiet runs are known sooner


@pytest.mark.parametrize("resources", [[{**GPUS, "minimum": 0, "maximum": 8, "max_steps": 8}]])
def test_an_allocation_of_nothing_leaves_the_others_as_they_are(resources: list[dict[str, Any]]) -> None:
    layout = _layout(resources=resources)
    seconds = _seconds(layout, prior_table(layout))
    assert seconds[:, 1:].max() < 600 * 10
    assert seconds[:, 1:].min() > 600 / 10
    assert (seconds[:, 0] >= seconds[:, 1] * (1 - 1e-5)).all()


def _fitted(name: str, law: str, share: list[float], **changed: Any) -> Earlier:
    """An earlier workload whose seconds follow one law, and meet its deadline at the middle with little to spare."""
    layout = _layout(name=name, **changed)
    table = prior_table(layout, {"workloads": ["x"], "members": [[law, share, 0.05]]})
    return Earlier(layout.spec, lambda: replace(table.member(BESIDE), prior=False))


def test_a_prior_of_earlier_workloads_scales_as_they_do_beside_the_population() -> None:
    earlier = [_fitted("a", "amdahl", [0.7]), _fitted("b", "amdahl", [0.8])]
    layout = _layout()
    own = own_prior(layout, earlier)
    assert own is not None
    assert own["workloads"] == ["a", "b"]
    assert sorted({(law, *share) for law, share, _ in own["members"]}) == [("amdahl", 0.7), ("amdahl", 0.8)]
    assert msgspec.json.decode(msgspec.json.encode(own)) == own
    seconds = _seconds(layout, prior_table(layout, own))
    assert BESIDE < len(seconds) <= 16
    np.testing.assert_allclose(seconds[:BESIDE], _seconds(layout, prior_table(layout))[::2], rtol=1e-5)
    mine = np.exp(earlier[0].model().log_mean[layout.seconds, :, 0, 0]) * layout.iterations
    np.testing.assert_allclose(seconds[BESIDE], mine, rtol=1e-3)
    tight = _fitted("c", "amdahl", [0.7], metrics=[{**DEADLINE, "target": 300.0}])  # of which half the time is asked
    slower = replace(tight.model(), log_mean=tight.model().log_mean + np.float32(np.log(2)))
    prior = own_prior(layout, [Earlier(tight.spec, lambda: slower)])
    assert prior is not None
    assert {round(over - 0.05, 3) for _, _, over in prior["members"]} == {round(float(np.log(2)), 3)}


def test_a_law_that_is_not_known_any_more_is_left_out() -> None:
    layout = _layout()
    own = {"workloads": ["a"], "members": [["forgotten", [0.5], 0.0], ["amdahl", [0.5], 0.0]]}
    assert len(_seconds(layout, prior_table(layout, own))) == BESIDE + 1


def test_laws_are_read_in_another_range_and_order_of_resources() -> None:
    wide = {**GPUS, "maximum": 32}
    earlier = _fitted("a", "amdahl", [0.6, 0.3], resources=[CORES, wide])
    layout = _layout(resources=[GPUS, CORES])
    own = own_prior(layout, [earlier])
    assert own is not None
    shares_found = np.array([share for _, share, _ in own["members"]])
    assert (shares_found[:, 0] < shares_found[:, 1]).all()  # more of it is shortened by cores


def test_more_similar_workloads_have_more_members() -> None:
    narrow = [{**GPUS, "minimum": 8}]
    earlier = [_fitted("new-model", "amdahl", [0.9]), _fitted("other", "amdahl", [0.2], resources=narrow)]
    own = own_prior(_layout(name="new-data"), earlier)
    assert own is not None
    results = [share[0] for _, share, _ in own["members"]]
    assert sum(share > 0.5 for share in results) > 2 * sum(share < 0.5 for share in results) > 0


def test_similarity_counts_range_and_name_and_is_none_for_other_things() -> None:
    spec = _layout(name="resnet-small").spec
    assert similarity(spec, _layout(name="resnet-18").spec) > similarity(spec, _layout(name="etl").spec) > 0
    wide, far = ([{**GPUS, "minimum": low, "maximum": high}] for low, high in ((1, 256), (100, 163)))
    assert similarity(spec, _layout(name="etl").spec) > similarity(spec, _layout(name="etl", resources=wide).spec) > 0
    assert similarity(spec, _layout(resources=far).spec) == 0
    assert similarity(spec, _layout(resources=[CORES]).spec) == 0
    assert similarity(spec, _layout(use_earlier_workloads=False).spec) == 0


def test_at_most_so_many_earlier_workloads_are_read() -> None:
    read = 0

    def count() -> ModelTable:
        nonlocal read
        read += 1
        table: ModelTable = one.model()
        return table

    one = _fitted("a", "amdahl", [0.5])
    own = own_prior(_layout(), (Earlier(_layout(name=f"w{n}").spec, count) for n in range(100)))
    assert own is not None
    assert read == MOST_EARLIER
    assert 4 < len(own["workloads"]) == len(own["members"]) <= MOST_OWN  # those that contribute
    assert own_prior(_layout(), []) is None
    assert own_prior(_layout(features=[{"name": "batch", "minimum": 1, "maximum": 2}]), [one]) is None


def _found(layout: Layout, *earlier: Earlier) -> list[Any]:
    """Members of the prior that is made of earlier workloads."""
    own = own_prior(layout, earlier)
    assert own is not None
    members: list[Any] = own["members"]
    return members


@pytest.mark.parametrize("minimum", [0, 1])
def test_an_allocation_of_nothing_tells_no_law(minimum: int) -> None:
    few = [{**GPUS, "minimum": minimum, "maximum": 8, "max_steps": 8}]
    one = _fitted("a", "amdahl", [0.7], resources=few)
    table = one.model()
    table.log_mean[:, 0] += np.float32(20.0 * (minimum == 0))  # as a model extrapolates to nothing
    result = _found(_layout(resources=few), Earlier(one.spec, lambda: replace(table, seen_low=np.array([minimum]))))
    assert {(law, *share) for law, share, _ in result} == {("amdahl", 0.7)}
    np.testing.assert_allclose([over for _, _, over in result], 0.05, atol=0.01)


def test_laws_are_those_of_the_measured_range_if_there_is_one() -> None:
    one = _fitted("a", "amdahl", [0.7])
    table = one.model()
    table.log_mean[:, 32:] += np.float32(1.0)  # beyond 32 GPUs nothing was measured
    measured = replace(table, seen_low=np.array([2.0]), seen_high=np.array([32.0]))
    assert {tuple(share) for _, share, _ in _found(_layout(), Earlier(one.spec, lambda: measured))} == {(0.7,)}
    at_one = replace(one.model(), seen_low=np.array([4.0]), seen_high=np.array([4.0]))
    assert {tuple(share) for _, share, _ in _found(_layout(), Earlier(one.spec, lambda: at_one))} == {(0.7,)}


@pytest.mark.parametrize("goal", ["at_most", "at_least"])
def test_time_to_spare_and_noise_of_the_seconds_are_theirs_alone(goal: str) -> None:
    other = {"name": "other", "target": 50.0, "goal": goal, "scope": "iteration"}
    layout = _layout(metrics=[other, DEADLINE])
    own = {"workloads": ["a", "b"], "members": [["amdahl", [0.5], 0.7], ["power", [0.5], -0.4]]}
    table = prior_table(layout, own)
    assert table.members is not None
    logs = (table.log_mean + table.members)[BESIDE:, ..., 0, 0]
    middle = np.abs(np.log(layout.allocations[:, 0] / 64**MIDDLE)).argmin()
    shipped = prior_table(layout)
    assert shipped.members is not None
    usual = (shipped.log_mean + shipped.members)[:, 0, middle, 0, 0] - np.log(50)
    spare = np.log(SPARE) * (1 if goal == "at_least" else -1)
    np.testing.assert_allclose(logs[:, 0, middle] - np.log(50), spare, atol=0.02)
    np.testing.assert_allclose(usual, spare, atol=0.03)
    seconds = np.array([0.7, -0.4]) - NOISE_SD["run"] ** 2 / 2
    np.testing.assert_allclose(logs[:, layout.seconds, middle] - np.log(600 / 20), seconds, atol=0.02)


def test_a_prior_in_iterations_that_have_a_target_each() -> None:
    each = {**DEADLINE, "scope": "iteration", "target": 30.0}
    one, layout = _fitted("a", "power", [0.6], metrics=[each]), _layout(metrics=[each])
    result = _found(layout, one)
    assert {(law, *share) for law, share, _ in result} == {("power", 0.6)}
    np.testing.assert_allclose([over for _, _, over in result], 0.05, atol=1e-3)
    table = prior_table(layout, {"workloads": ["a"], "members": result})
    assert table.members is not None
    logs = (table.log_mean + table.members)[BESIDE, layout.seconds, :, 0, 0]
    np.testing.assert_allclose(logs, one.model().log_mean[layout.seconds, :, 0, 0], atol=1e-3)


@pytest.mark.parametrize("noise", [0.0, 0.9])
def test_bins_of_iterations_count_by_their_length_and_noise_as_it_was_fitted(noise: float) -> None:
    one = _fitted("a", "amdahl", [0.7])
    table = one.model()
    bins = np.array([0] * 15 + [1] * 5, np.int32)
    factors = np.array([0.4, 2.8])  # of which 15 and 5 of twenty iterations make 1
    parts = replace(
        table,
        log_mean=(table.log_mean + np.log(factors)).astype(np.float32),
        iteration_bin=bins,
        noise_sd=np.full(len(table.noise_sd), noise),
    )
    result = _found(_layout(), Earlier(one.spec, lambda: parts))
    assert {(law, *share) for law, share, _ in result} == {("amdahl", 0.7)}
    expected = 0.05 - NOISE_SD["run"] ** 2 / 2 + noise**2 / 2
    np.testing.assert_allclose([over for _, _, over in result], expected, atol=2e-3)


def _strange(kind: str, table: ModelTable) -> ModelTable:
    if kind == "unreadable":
        raise IncompatibleModel("its table can't be read")
    if kind == "of another grid":
        return replace(table, log_mean=table.log_mean[:, :3])
    return replace(table, log_mean=np.full_like(table.log_mean, {"not a number": np.nan, "infinite": np.inf}[kind]))


@pytest.mark.parametrize("kind", ["unreadable", "of another grid", "not a number", "infinite"])
def test_an_odd_model_is_left_out_and_the_others_count(kind: str) -> None:
    odd, sound = _fitted("odd", "amdahl", [0.2]), _fitted("sound", "amdahl", [0.7])
    broken = Earlier(odd.spec, lambda: _strange(kind, odd.model()))
    own = own_prior(_layout(), [broken, sound, broken])
    assert own is not None
    assert own["workloads"] == ["sound"]
    assert np.isfinite([over for _, _, over in own["members"]]).all()
    assert own_prior(_layout(), [broken]) is None


def test_members_that_are_not_finite_are_left_out() -> None:
    one = _fitted("a", "amdahl", [0.7])
    table = one.model()
    apart = np.zeros((2, *table.log_mean.shape), np.float32)
    apart[1] = np.nan
    result = _found(_layout(), Earlier(one.spec, lambda: replace(table, members=apart)))
    assert {tuple(share) for _, share, _ in result} == {(0.7,)}
    assert np.isfinite([over for _, _, over in result]).all()


def test_a_failure_to_read_is_not_taken_for_an_odd_model() -> None:
    def lost() -> Any:
        raise RuntimeError("connection lost")

    with pytest.raises(RuntimeError, match="connection lost"):
        own_prior(_layout(), [Earlier(_layout(name="a").spec, lost)])


def test_the_resource_whose_ranges_have_least_in_common_counts() -> None:
    both = _layout(resources=[GPUS, CORES]).spec
    far = _layout(resources=[{**GPUS, "minimum": 60}, CORES]).spec
    fixed = _layout(resources=[{**GPUS, "minimum": 8, "maximum": 8, "max_steps": 1}, CORES]).spec
    assert similarity(both, both) == 1
    assert similarity(both, far) == 0
    assert similarity(both, fixed) == 0
    assert similarity(fixed, fixed) == 1  # where it is fixed in both, its law doesn't matter
    alone = _layout(resources=[{**GPUS, "minimum": 8, "maximum": 8, "max_steps": 1}]).spec
    near = _layout(resources=[{**GPUS, "minimum": 8, "maximum": 9, "max_steps": 1}]).spec
    assert similarity(near, alone) == 0


def test_the_most_similar_are_used_not_the_newest() -> None:
    newer = [_fitted(f"w{n}", "amdahl", [0.2], resources=[{**GPUS, "minimum": 8}]) for n in range(3)]
    many = [newer[n % 3] for n in range(MOST_EARLIER)]
    own = own_prior(_layout(name="new"), [*many, _fitted("old", "amdahl", [0.9]), _fitted("new-old", "amdahl", [0.8])])
    assert own is not None
    assert own["workloads"][0] == "new-old"


def test_few_members_of_many_are_spread_over_all() -> None:
    one = _fitted("a", "amdahl", [0.7])
    table = one.model()
    apart = np.array([0.0, 0.1, 1.0, 0.2, 0.9, 0.3, 0.8, 0.7], np.float32)[:, None, None, None, None]
    many = replace(table, members=apart + np.zeros((1, *table.log_mean.shape), np.float32))
    over = [over for _, _, over in _found(_layout(), Earlier(one.spec, lambda: many))]
    np.testing.assert_allclose(np.array(over) - 0.05, [0.1, 0.3, 0.9], atol=2e-3)
