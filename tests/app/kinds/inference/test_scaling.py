"""Expected return by number of servers: as many as are worth their price, before they are needed."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.contract.policy import Situation
from app.kinds.inference.dynamics import (
    BATCHES,
    CONTROL,
    NONE,
    PARTS,
    PARTS_OF_INTERVAL,
    Projector,
    State,
    Transitions,
    view_of,
)
from app.kinds.inference.heuristics import Composed, scale_by_pace
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.model import LASTING, ServiceModel, spread
from app.kinds.inference.scaling import (
    Arriving,
    ExpectedReturn,
    Lookahead,
    candidates,
    expected_quality,
    foreseen,
    periods,
    waits,
)
from app.kinds.inference.spec import InferenceSpec

SECONDS = np.array([[[0.02, 0.03, 0.05, 0.09], [0.06, 0.10, 0.17, 0.30]]])  # [C, V, K]
UNTIL = np.full(1, 1.0)
USERS = ("waiting", "oldest", "newest", "quality")


def layout(price: float = 0.1, servers: Any = None, **weights: float) -> Layout:
    values = {
        "name": "vision",
        "kind": "inference",
        "variants": [{"name": "small", "accuracy": 0.7}, {"name": "large", "accuracy": 0.8}],
        "servers": servers or [{"name": "cpu", "maximum": 4, "price_per_hour": 1, "startup_seconds": 5}],
        "users": [{"name": "ann", "quality": {"full_until": 0.1, "zero_at": 1}}],
        "weights": {"cost": price, **weights},
    }
    return Layout(InferenceSpec.model_validate(values))


def state(layout: Layout, rate: float, on: int = 1, waiting: int = 0) -> State:
    """Where control is asked for: ``on`` servers of the first class are idle, one of each other."""
    nothing = np.zeros((1, len(layout.servers)), np.int64)
    idle = nothing + 1
    idle[0, 0] = on
    count, some = np.full((1, 1), waiting), np.zeros((1, 1))
    ages = some + 0.2 * (waiting > 0)
    return State(
        count,
        ages,
        ages,
        some + rate,
        some + 1,
        idle,
        nothing,
        nothing,
        np.zeros(1),
        np.array([CONTROL]),
        -UNTIL.astype(int),
    )


def repeated(one: State, count: int) -> State:
    """The same state in ``count`` runs."""
    return one._replace(**{name: np.repeat(part, count, axis=0) for name, part in one._asdict().items()})


def recent_goes_on(layout: Layout, users: int = 1, variation: float = 0.0) -> Projector:
    """What came of late comes, times a gamma variable."""
    seconds = np.repeat(SECONDS, len(layout.servers), axis=0)
    return Projector(layout, seconds, varying=np.full((users, 1), variation))


def wanted(layout: Layout, rate: float, on: int = 1, waiting: int = 0, variation: float = 0.0) -> int:
    projector = recent_goes_on(layout, variation=variation)
    return int(ExpectedReturn().target_servers(projector, state(layout, rate, on, waiting))[0, 0])


def test_more_servers_are_wanted_the_more_comes_waits_or_may_come() -> None:
    result = layout()
    by_rate = [wanted(result, rate, on=2) for rate in (0.1, 20.0, 60.0, 300.0)]
    assert by_rate == sorted(by_rate)
    assert (by_rate[0], by_rate[-1]) == (1, 4)
    assert wanted(result, 30.0, on=2, waiting=90) > wanted(result, 30.0, on=2)
    assert wanted(result, 25.0, on=2, variation=1.0) > wanted(result, 25.0, on=2)


def test_the_price_decides() -> None:
    assert wanted(layout(0.0), 40.0, on=2) > wanted(layout(0.2), 40.0, on=2) >= wanted(layout(5.0), 40.0, on=2)
    assert wanted(layout(5.0), 2.0, on=4) < 4


def test_turning_servers_costs_what_the_workload_says() -> None:
    assert wanted(layout(), 0.1, on=4) == wanted(layout(switching=0.0), 0.1, on=4) < 4  # less than the servers
    assert wanted(layout(switching=1_000.0), 0.1, on=4) == 4
    assert wanted(layout(switching=1_000.0), 40.0, on=1) == 1


def with_start(seconds: float, usual: float, late: float, on: int, lasts: int = 2) -> int:
    """Where the rate varies by a factor that lasts for ``LASTING[lasts]`` control intervals of 10 s."""
    result = layout(servers=[{"name": "cpu", "maximum": 4, "price_per_hour": 1, "startup_seconds": seconds}])
    varying = 0.5 * (np.arange(len(LASTING) + 1) == lasts)[None]
    projector = Projector(result, SECONDS, np.array([usual]), varying)
    return int(ExpectedReturn().target_servers(projector, state(result, late, on))[0, 0])


def test_a_server_that_takes_long_to_start_is_started_for_the_usual_rates_and_kept_for_them() -> None:
    assert with_start(60, usual=80.0, late=80.0, on=1) > 1  # worth its start, over the time that it is kept
    assert with_start(60, usual=80.0, late=1.0, on=3) >= 3  # a lull is over before a server would be back
    assert with_start(0, usual=80.0, late=1.0, on=3) < 3
    assert with_start(60, usual=1.0, late=1.0, on=3) < 3
    assert with_start(60, usual=80.0, late=1.0, on=3, lasts=len(LASTING)) < 3  # what lasts all day is no lull


@pytest.mark.parametrize("lasts", [1, 2])
def test_forecasts_are_those_of_a_fit_to_requests_whose_rates_vary_in_the_same_way(lasts: int) -> None:
    random, result, usual, variation = np.random.default_rng(lasts), layout(), 30.0, 0.3
    step = result.spec.control_seconds / PARTS_OF_INTERVAL / 5
    current = int(LASTING[lasts] * PARTS_OF_INTERVAL * 5) + 1  # longer by a step, so that parts end anywhere in it
    rate = np.repeat(usual * random.gamma(1 / variation, variation, 400_000 // current), current)
    begin, end = (int(edge / step) for edge in periods(result)[0])
    each = np.lib.stride_tricks.sliding_window_view(random.poisson(rate * step), 5 * PARTS)[:-end]
    came = each.reshape(len(each), PARTS, 5).sum(axis=2)
    then = np.lib.stride_tricks.sliding_window_view(rate, end - begin)[5 * PARTS + begin :][: len(came)]
    inputs = np.append(came, np.ones((len(came), 1)), axis=1)
    fitted = inputs @ np.linalg.lstsq(inputs, then.mean(axis=1), rcond=None)[0]
    shown = random.choice(len(came), 400, replace=False)
    varying = variation * (np.arange(len(LASTING) + 1) == lasts)[None]
    recent = transitions(came[shown])
    projector = Projector(result, SECONDS, np.array([usual]), varying, recent)
    outcome = foreseen(projector, repeated(state(result, 20.0), len(shown)), 0)
    assert np.std(outcome.rate[:, 0] - fitted[shown]) < 0.12 * np.std(fitted)  # a fit may be below any least rate
    left = (outcome.total.reshape(len(shown), 2, -1).mean(axis=1)).var(axis=1).mean()
    assert left == pytest.approx(np.mean((then - fitted[:, None]) ** 2), rel=0.35)  # middles of eighths: no tails


def test_requests_of_the_last_parts_tell_a_burst_that_begins_from_one_that_is_over() -> None:
    """Both have the same smoothed rate; requests that nobody counted, at a run's start, say nothing."""
    came = np.full((4, PARTS), 20)
    came[0, -2:], came[1, :2], came[2] = 200, 200, NONE
    came[3, :4] = NONE
    varying = 0.5 * (np.arange(len(LASTING) + 1) == 1)[None]
    projector = Projector(layout(), SECONDS, np.array([8.0]), varying, transitions(came))
    rate = foreseen(projector, repeated(state(layout(), 20.0), 4), 0).rate[:, 0]
    assert rate[0] > 2 * rate[1]
    assert rate[2] == pytest.approx(8.0)
    assert rate[3] == pytest.approx(8.0, rel=0.01)
    one = projector.of_runs(np.array([0]))
    assert foreseen(one, state(layout(), 20.0), 0).rate[0, 0] == pytest.approx(rate[0])


def test_no_history_forecasts_less_than_one_without_requests() -> None:
    """As on Azure's load: many requests until the last quarter of an interval, and hardly any in it."""
    came = np.array([[15, 15, 11, 5, 12, 24, 20, 1], [0, 0, 0, 0, 10, 13, 0, 0], [0] * PARTS])
    varying = np.array([[0.0, 0.5, 3.0, 1.0, 0.0]])
    projector = Projector(layout(), SECONDS, np.array([1.2]), varying, transitions(came))
    many, few, none = foreseen(projector, repeated(state(layout(), 1.0), len(came)), 0).rate[:, 0]
    assert 0.0 < none < 0.5
    assert few >= none
    assert many >= none


def transitions(came: NDArray[np.int64]) -> Transitions:
    """What is known of runs of one user with these requests in the last parts of intervals, [B, PARTS]."""
    shape = (len(came), BATCHES)
    return Transitions(np.full(shape, NONE), np.ones(shape), came[:, None])


def test_a_burst_outweighs_the_lull_before_it() -> None:
    """Quality is counted by request and cost by time: while many more than usual come, a server answers more of them.

    Told the same rates, it is worth its price where the whole episode's rate is lower, and not where it is the same."""
    result = layout(0.5)
    reported = np.full((2, len(periods(result)) + 1, 1, 4), 40.0)
    reported[0, -1] = 10.0
    both = repeated(state(result, 40.0, on=2), 2)
    outcome = ExpectedReturn().target_servers(recent_goes_on(result)._replace(rates_ahead=reported), both)[:, 0]
    assert outcome[0] > outcome[1]


def test_a_request_in_the_quiet_of_a_night_is_no_burst() -> None:
    result = layout()
    varying = 0.5 * (np.arange(len(LASTING) + 1) == len(LASTING))[None]
    projector = Projector(result, SECONDS, np.array([80.0]), varying)
    assert ExpectedReturn().target_servers(projector, state(result, 0.01, on=1, waiting=1)).tolist() == [[1]]


def test_of_a_user_without_a_usual_rate_what_came_of_late_goes_on() -> None:
    fields = layout().spec.model_dump()
    result = Layout(
        InferenceSpec.model_validate({**fields, "users": [fields["users"][0], {**fields["users"][0], "name": "bob"}]})
    )
    rate, one = np.array([[30.0], [0.0]]), state(result, 20.0)
    known = np.zeros((2, len(LASTING)))
    model = ServiceModel(np.log(SECONDS)[None], np.zeros(2), rate, np.zeros(2), np.ones((1, 2), np.bool_), parts=known)
    both = one._replace(**{name: np.repeat(getattr(one, name), 2, axis=1) for name in (*USERS, "rate")})
    assert foreseen(Projector.of(result, model), both, 0).rate.tolist() == [[pytest.approx(30.0), 20.0]]


def test_what_is_told_of_the_requests_to_come_is_believed() -> None:
    result, count = layout(), len(periods(layout())) + 1
    reported = np.stack([np.full((count, 1, 4), 1.0), np.full((count, 1, 4), 80.0)])
    one = state(result, 20.0, on=2)
    both = repeated(one, 2)
    projector = recent_goes_on(result)._replace(rates_ahead=reported)
    outcome = ExpectedReturn().target_servers(projector, both)[:, 0]
    assert outcome[0] == 1
    assert outcome[1] > 2
    assert ExpectedReturn().target_servers(projector.of_runs(np.array([1])), one)[:, 0] == outcome[1]


def test_servers_that_have_been_slow_are_expected_to_be() -> None:
    result = layout()
    count = 3
    batch, pace = np.full((count, BATCHES), NONE), np.ones((count, BATCHES))
    batch[1:, -8:], pace[1, -8:], pace[2, -8:] = 0, 2.0, 0.5
    recent = Transitions(batch, pace, np.full((count, 1, PARTS), NONE))
    projector = recent_goes_on(result)._replace(recent=recent)
    factor = np.asarray(scale_by_pace(projector).seconds)[:, 0, 0, 0] / SECONDS[0, 0, 0]
    assert factor[0] == 1
    assert factor[1] == pytest.approx(2.0 ** (8 / (8 + 1 / 9)))
    assert factor[2] == pytest.approx(1 / factor[1])
    one = state(result, 20.0, on=2)
    counts = ExpectedReturn().target_servers(scale_by_pace(projector), repeated(one, count))[:, 0]
    assert counts[1] > counts[0] > counts[2]
    assert scale_by_pace(projector._replace(recent=None)).seconds is projector.seconds


def test_where_users_are_to_be_served_alike_more_servers_are_wanted() -> None:
    """Both wait alike, and the one's answers lose by it."""
    quick, patient = {"full_until": 0.1, "zero_at": 1}, {"full_until": 5, "zero_at": 10}
    results = []
    for fairness in (0.0, 5.0):
        fields = layout(3.0, fairness=fairness).spec.model_dump()
        users = [{"name": "ann", "quality": quick}, {"name": "bob", "quality": patient}]
        result = Layout(InferenceSpec.model_validate({**fields, "users": users}))
        shown, each = state(result, 50.0, on=1), np.full((1, 2), 50.0)
        shown = shown._replace(**{name: np.repeat(getattr(shown, name), 2, axis=1) for name in USERS}, rate=each)
        projector = recent_goes_on(result, 2)
        results.append(int(ExpectedReturn().target_servers(projector, shown)[0, 0]))
    assert results[0] < results[1]


def test_all_servers_are_on_without_a_domain_model_and_turns_are_legal() -> None:
    result = layout()
    shown = state(result, 5.0, on=4)
    assert ExpectedReturn().target_servers(Projector(result, None), shown).tolist() == [[4]]
    policy = Composed(Lookahead(), ExpectedReturn())
    projector = recent_goes_on(result)
    down = policy.act(Situation(projector, shown._replace(rate=shown.rate * 0), view_of(result, shown))).action
    assert down[0] == result.scaling(0, on=False)
    least = state(result, 0.0, on=1)
    assert policy.act(Situation(projector, least, view_of(result, least))).action[0] == WAIT


def test_of_two_classes_the_cheaper_is_taken() -> None:
    dear = {"name": "dear", "maximum": 4, "price_per_hour": 5}
    cheap = {"name": "cheap", "maximum": 4, "price_per_hour": 1}
    result = layout(servers=[dear, cheap])
    projector = recent_goes_on(result)
    assert ExpectedReturn().target_servers(projector, state(result, 60.0)).tolist()[0][1] > 1


@pytest.mark.parametrize("most", [1, 3, 1_000])
def test_candidates_are_few_and_reach_all_the_way(most: int) -> None:
    result = layout(servers=[{"name": "cpu", "minimum": 0, "maximum": most}])
    outcome = candidates(result, np.array([[most // 2]]))[0, :, 0]
    assert len(outcome) <= 3 + 2 * np.log2(most)
    assert set(outcome) >= {most // 2, max(most // 2 - 1, 0), most // 2 + 1}


@pytest.mark.parametrize("variation", [0.0, 0.05, 0.3])
def test_the_spread_has_the_mean_and_nearly_the_variation(variation: float) -> None:
    values = spread(np.array([variation]))[0]
    assert values.mean() == pytest.approx(1.0)
    assert values.var() == pytest.approx(variation, rel=0.3)  # middles of eighths leave out the tails


def test_waits_of_one_server_are_those_of_pollaczek_and_khinchine() -> None:
    """Fixed seconds, Poisson arrivals: mean wait ρ·s/(2(1 − ρ)); four quarters of an exponential hold 90 % of it."""
    for load in (0.3, 0.6, 0.9):
        mean = waits(np.array(load), np.array(1), np.array(0.1), 10.0).mean()
        assert mean == pytest.approx(load * 0.1 / (2 * (1 - load)), rel=0.35)


def test_what_is_lost_falls_with_servers_and_rises_with_arrivals() -> None:
    result = layout()
    tried = np.arange(1, 5)[None, :, None]
    lost = [
        expected_quality(result, SECONDS, tried, Arriving(np.array([[rate]]), rate * spread(np.array([0.05])))).lost[0]
        for rate in (5.0, 40.0, 150.0, 400.0)
    ]
    assert (np.diff(lost, axis=1) <= 1e-9).all()
    assert (np.diff(lost, axis=0) >= -1e-9).all()
    assert 0 <= np.min(lost) <= 0.05
    assert np.max(lost) <= 1
