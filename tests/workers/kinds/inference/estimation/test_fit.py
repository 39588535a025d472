"""The domain model of a workload, out of its samples."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from app.kinds.inference.kind import KIND
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.samples import Content, Requests
from tests.app.kinds.inference.workloads import spec
from workers.estimators.base import TooLittleData
from workers.inputs import Drifts, Workload
from workers.kinds.contract import FittedModel
from workers.kinds.inference.estimation.fit import fit

SIZES = (1, 2, 4, 8)


def batches(
    servers: tuple[int, ...] = (0, 1), variants: tuple[int, ...] = (0, 1), repeats: int = 4, sizes: Any = SIZES
) -> Any:
    rng = np.random.default_rng(0)
    return np.array(
        [
            [variant, batch, server, (4, 8)[server], seconds * np.exp(0.05 * rng.standard_normal())]
            for variant in variants
            for server in servers
            for batch in sizes
            for seconds in [0.02 * (1 + 3 * variant) * (1 + batch) / (1, 1.7)[server]] * repeats
        ]
    ).reshape(-1, 5)


def few(servers: tuple[int, ...] = (0, 1), variants: tuple[int, ...] = (0, 1)) -> Any:
    """Batches of one size: a fit to them holds out server classes alone, and of a single class nothing."""
    return batches(servers, variants, sizes=(4,))


def requests(count: int = 400) -> Requests:
    rng = np.random.default_rng(1)
    time = np.cumsum(rng.exponential(0.25, count)) * 1e6
    return Requests(time.astype(np.int64), rng.integers(0, 2, count).astype(np.uint8), np.full(count, np.nan))


def fitted(*contents: Content, seed: int = 0) -> FittedModel:
    samples = [(str(i), content) for i, content in enumerate(contents)]
    return fit(Workload(spec(), samples=samples), seed)


@pytest.fixture(scope="module")
def both() -> FittedModel:
    """Of batches and a log in executions of their own."""
    return fitted(Content(batches(), requests(0)), Content(np.zeros((0, 5)), requests()))


@pytest.fixture(scope="module")
def plain() -> FittedModel:
    """Of few batches and a log, without drifts."""
    return fitted(Content(few(), requests()))


def test_a_drift_brings_what_was_measured_before_to_where_it_is_now(plain: FittedModel) -> None:
    slower = few(servers=(0,), variants=(0,))
    slower[:, 4] *= 1.6
    old, recent = Content(few(), requests()), Content(slower, requests(0))
    chain = [{"seconds.small": 1.6, "arrivals.web": 2.0}]
    drifts = Drifts(chain, {"run@5": chain})
    shifted = fit(Workload(spec(), samples=[("old", old), ("run@5", recent)], drifts=drifts), 0)
    now, before = KIND.model(shifted.model), KIND.model(plain.model)
    assert now.seconds() / before.seconds() == pytest.approx(1.6, rel=0.08)  # also what nobody has measured since
    assert (now.rate / before.rate).mean(axis=1) == pytest.approx([2.0, 1.0])
    blind = KIND.model(fitted(old, recent).model)
    assert (blind.seconds()[1] / before.seconds()[1]).max() < 1.5


def test_drifts_add_up_and_go_back(plain: FittedModel) -> None:
    """Twice as slow, and as before again: each execution is brought from where it was measured to where it is now.

    Then one variant alone becomes twice as fast: at the first drift it had gone along with the other, unnoticed.
    """
    slower = few()
    slower[:, 4] *= 2.0
    first, second, third = {"seconds.small": 2.0}, {"seconds.small": 0.5}, {"seconds.large": 0.5, "seconds.small": 1.0}
    samples = [("old", Content(few(), requests())), ("run@5", Content(slower, requests(0)))]
    then = {"run@5": [first]}
    once, twice, thrice = (
        KIND.model(fit(Workload(spec(), samples=samples, drifts=Drifts(chain, then)), 0).model).seconds()
        for chain in ([first], [first, second], [first, second, third])
    )
    true = KIND.model(plain.model).seconds()
    assert once / true == pytest.approx(2.0, rel=0.05)
    assert twice / true == pytest.approx(1.0, rel=0.05)
    names = [variant.name for variant in spec().variants]
    small, large = names.index("small"), names.index("large")
    assert thrice[:, large] / true[:, large] == pytest.approx(0.5, rel=0.05)
    assert thrice[:, small] / true[:, small] == pytest.approx(1.0, rel=0.05)


def test_requests_are_learned_of_the_longest_logs_of_one_level() -> None:
    """Logs of twice as many requests are not mixed with those of before, and take their place once they are longer."""
    chain = [{"arrivals.web": 2.0, "arrivals.mobile": 2.0}]
    short, long = (Content(few(servers=(0,)), requests(count)) for count in (100, 400))
    samples = [("old", short), ("new", long)]
    rate = KIND.model(fit(Workload(spec(), samples=samples, drifts=Drifts(chain, {"new": chain})), 0).model).rate
    assert rate == pytest.approx(KIND.model(fitted(long).model).rate)
    back = KIND.model(fit(Workload(spec(), samples=samples, drifts=Drifts(chain, {"old": chain})), 0).model).rate
    assert back == pytest.approx(2.0 * rate)


class TestFit:
    """Model and report."""

    def test_the_model_is_of_the_layout_and_survives_storage(self, both: FittedModel) -> None:
        model = KIND.model(both.model)
        model.check(Layout(spec()))
        assert model.to_bytes() == both.model
        assert model.measured.all()
        assert model.forecast.shape == (2, 2, 17)

    def test_seconds_are_those_that_were_measured(self, both: FittedModel) -> None:
        seconds = KIND.model(both.model).seconds()
        expected = 0.02 * np.array([1, 4])[:, None] * (1 + np.array([1, 2, 4, 8])) / np.array([1, 1.7])[:, None, None]
        assert np.abs(seconds / expected - 1).max() < 4 * 0.05 / np.sqrt(4)

    def test_a_larger_batch_never_takes_less_for_any_member(self, both: FittedModel) -> None:
        assert (np.diff(KIND.model(both.model).log_seconds, axis=-1) >= 0).all()

    def test_rates_are_those_of_the_log(self, both: FittedModel) -> None:
        model, log = KIND.model(both.model), requests()
        span = log.time[-1] / 1e6
        each = np.bincount(log.user) / span
        assert (np.abs(model.rate.mean(axis=1) - each) < 4 * np.sqrt(each / span)).all()

    def test_the_report_is_plain_and_tells_errors_and_coverage_of_what_was_held_out(self, both: FittedModel) -> None:
        report = json.loads(json.dumps(both.report, allow_nan=False))
        seconds = report["metrics"]["seconds"]
        assert seconds["mape"] < seconds["naive_mape"]
        assert 0.7 <= seconds["coverage"] <= 1
        assert seconds["left_out"].keys() == {"batch", "server"}
        assert report["arrivals"].keys() == {"web", "mobile"}
        assert (report["executions"], report["observations"]) == (2, len(batches()))
        assert sum(one["weight"] for one in report["candidates"]) == pytest.approx(1)
        assert [one["family"] for one in report["candidates"] if one["chosen"]] == [report["family"]]

    def test_the_same_seed_gives_the_same_bytes(self, both: FittedModel) -> None:
        again = fitted(Content(batches(), requests(0)), Content(np.zeros((0, 5)), requests()))
        assert again == both

    def test_members_differ_on_a_class_that_was_not_measured(self) -> None:
        model: ServiceModel = KIND.model(fitted(Content(batches((0,)), requests())).model)
        assert model.measured.tolist() == [[True, True], [False, False]]
        apart = model.log_seconds.std(axis=0)
        assert (apart[1] > 3 * apart[0]).all()

    @pytest.mark.parametrize(
        ("content", "has"),
        [
            (Content(batches(variants=(0,)), requests()), "32 of small, 0 of large, and 400 requests"),
            (Content(batches(), requests(10)), "and 10 requests"),
            (Content(np.zeros((0, 5)), requests(0)), "0 of small, 0 of large, and 0 requests"),
        ],
    )
    def test_too_little_data_is_told_with_its_terms(self, content: Content, has: str) -> None:
        with pytest.raises(TooLittleData) as caught:
            fitted(content)
        assert caught.value.needs == "2 measured batches of each variant and a log of 50 requests"
        assert caught.value.has.endswith(has)

    def test_no_sample_at_all_is_too_little(self) -> None:
        with pytest.raises(TooLittleData):
            fitted()
