"""What a domain model answers: batches, arrivals, forecasts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kinds.contract.inputs import InvalidInput
from app.kinds.inference.model import DAY_SECONDS, BatchPrediction, ServiceModel, forecast, predict, usual_rate
from tests.app.kinds.inference.workloads import layout, single

ROUND = (30.0, 0.05, -1.645, 1.645, 1.0, 0.0, 0.0, 30.0, *[1.0] * 8)


def model(members: int = 4) -> ServiceModel:
    """Members 10 % apart; the second user comes at night alone."""
    base = np.log(0.01 * (1 + np.arange(2))[:, None] * (1 + np.array([1, 2, 4, 8])))
    apart = 0.1 * np.linspace(-1, 1, members)
    return ServiceModel(
        log_seconds=base + apart[:, None, None, None] + np.zeros((1, 2, 1, 1)),
        spread=np.array([0.05, 0.2]),
        rate=np.array([[2.0] * 4, [4.0, 0.0, 0.0, 0.0]]),
        variation=np.zeros(2),
        measured=np.array([[True, True], [False, True]]),
        forecast=np.tile([[0.9, *ROUND], [0.1, *ROUND]], (2, 1, 1)),
    )


def predict_batch(**query: str) -> BatchPrediction:
    answer = predict(layout(), model(), {name: [value] for name, value in query.items()})
    return BatchPrediction(workload="faces", model=1, **answer)


class TestPredict:
    """Answers to queries."""

    def test_a_batch_has_a_mean_an_interval_and_says_whether_it_was_measured(self) -> None:
        result = predict_batch(variant="large", batch="4", server="cpu")
        expected = 0.02 * 5 * np.exp(0.1 * np.linspace(-1, 1, 4)).mean() * np.exp(0.02)
        assert result.seconds.mean == pytest.approx(expected)
        assert result.seconds.low < result.seconds.mean < result.seconds.high
        assert (result.measured, result.arrivals, result.seconds.level) == (True, None, 0.9)
        assert not predict_batch(variant="small", batch="4", server="big-cpu").measured

    def test_arrivals_are_told_at_a_time_of_day(self) -> None:
        arrivals = predict_batch(variant="small", batch="1", server="cpu", at=str(0.125 * DAY_SECONDS)).arrivals
        assert arrivals is not None
        assert (arrivals["web"].mean, arrivals["mobile"].mean) == (2.0, 4.0)
        assert arrivals["web"].low < 2.0 < arrivals["web"].high

    def test_the_only_server_class_need_not_be_said(self) -> None:
        known = model()
        small = ServiceModel(
            known.log_seconds[:, :1, :1], known.spread[:1], known.rate[:1], known.variation[:1], known.measured[:1, :1]
        )
        answer: Any = predict(single(), small, {"batch": ["2"], "at": ["0"]})
        assert (answer["server"], answer["variant"]) == ("cpu", "small")

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ({"batch": "1", "server": "cpu"}, "variant"),
            ({"variant": "tiny", "batch": "1", "server": "cpu"}, "variant"),
            ({"variant": "small", "server": "cpu"}, "batch"),
            ({"variant": "small", "batch": "3", "server": "cpu"}, "batch"),
            ({"variant": "small", "batch": "1e100", "server": "cpu"}, "batch"),
            ({"variant": "small", "batch": "-1", "server": "cpu"}, "batch"),
            ({"variant": "small", "batch": "1"}, "server"),
            ({"variant": "small", "batch": "1", "server": "tpu"}, "server"),
            ({"variant": "small", "batch": "1", "server": "cpu", "at": "noon"}, "at"),
            ({"variant": "small", "batch": "1", "server": "cpu", "at": "-1"}, "at"),
            ({"variant": "small", "batch": "1", "server": "cpu", "at": "nan"}, "at"),
            ({"variant": "small", "batch": "1", "server": "cpu", "at": "1e300"}, "at"),
        ],
    )
    def test_a_query_that_can_not_be_answered_names_its_parameter(self, query: dict[str, str], field: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            predict_batch(**query)
        error = caught.value.errors[0]
        assert error.pointer == f"/query/{field}"
        assert field != "batch" or error.message == "must be given once, one of 1, 2, 4, 8"


class TestForecast:
    """Usual rates, corrected by recent ones."""

    @given(st.lists(st.floats(0, 1e3), min_size=1, max_size=48), st.floats(0, 1e10))
    def test_usual_rates_lie_between_those_of_the_day(self, rate: list[float], at: float) -> None:
        values = usual_rate(np.array(rate), at)
        assert min(rate) - 1e-9 <= values <= max(rate) + 1e-9

    def test_the_mean_over_a_day_is_that_of_its_parts(self) -> None:
        rate = np.array([1.0, 5.0, 2.0])
        assert usual_rate(rate, np.arange(0, DAY_SECONDS, 60) + 30).mean() == pytest.approx(rate.mean())

    def test_what_is_usual_has_an_interval(self) -> None:
        result = forecast(model(), 0, 600.0, 10.0)
        assert float(result.mean) == pytest.approx(2.0)
        assert 0 <= result.low < result.mean < result.high

    def test_without_numbers_the_interval_is_wide(self) -> None:
        known = model()
        bare = ServiceModel(known.log_seconds, known.spread, known.rate, known.variation, known.measured)
        result = forecast(bare, 0, 600.0, 10.0)
        assert result.mean == pytest.approx(2.0)
        assert result.high > 5.0
        assert ServiceModel.from_bytes(bare.to_bytes()).forecast.shape == (0, 2, 17)
