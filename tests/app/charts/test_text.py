"""Figures for people: three digits, no exponent, no negative zero, units that fit, a currency."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.charts import text

PLAIN = re.compile(r"[<> ]*[+-]?[\d,]+(\.\d+)?")


@pytest.fixture
def dollars() -> Iterator[None]:
    yield
    text.use_currency("$")


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        (1234567.8, "1,234,568"),
        (100, "100"),
        (99.96, "100"),
        (12.34, "12.3"),
        (90.0, "90"),
        (0.01234, "0.0123"),
        (3.72e-05, "0.0000372"),
        (-4.2e-8, "> -0.000001"),
        (-1e-14, "0"),
        (-0.0, "0"),
        (float("inf"), "inf"),
        (1.23e60, "1.23e+60"),
    ],
)
def test_numbers_are_as_a_person_would_write_them(value: float, reported: str) -> None:
    assert text.number(value) == reported


@given(st.floats(-1e15, 1e15))
def test_no_number_has_an_exponent_or_is_a_negative_zero(value: float) -> None:
    for result in (text.number(value), text.number(value, 6), text.decimals(value, 2)):
        assert PLAIN.fullmatch(result), result
        assert result.strip("+-0.,") or not result.startswith("-"), result


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        (1912.2, "1,912 s"),
        (1.3, "1.3 s"),
        (0.9999, "1 s"),
        (0.9994, "999 ms"),
        (0.0617, "61.7 ms"),
        (0.0009999, "1 ms"),
        (0.000484, "484 µs"),
        (2e-9, "0.002 µs"),
        (0.0, "0 s"),
    ],
)
def test_short_times_have_short_units(value: float, reported: str) -> None:
    assert text.seconds(value) == text.amount(value, "s") == reported


@pytest.mark.parametrize(
    ("currency", "parts"),
    [
        ("$", ("$4.15", "$0.0372", "$1,912", "-$3.00", "$0")),
        ("EUR", ("4.15 EUR", "0.0372 EUR", "1,912 EUR", "-3.00 EUR", "0 EUR")),
        ("", ("4.15 cost units", "0.0372 cost units", "1,912 cost units", "-3 cost units", "0 cost units")),
    ],
)
@pytest.mark.usefixtures("dollars")
def test_costs_carry_the_currency(currency: str, parts: tuple[str, ...]) -> None:
    text.use_currency(currency)
    assert tuple(map(text.money, (4.154, 0.0372, 1912.3, -3.0, 0.0))) == parts
    assert text.amount(4.154, text.currency()) == parts[0]


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        (9.3591, "9.3591"),
        (1764460349.1234567, "1764460349.1234567"),
        (1_000_000, "1000000"),
        (-0.5, "-0.5"),
        (1e-6, "0.000001"),
        (0, "0"),
        (1e100, "1e+100"),
        (1.234567890123e-7, "0.0000001234567890123"),
        (12345678901234567890.0, "12345678901234567000"),
        (-0.0, "0"),
    ],
)
def test_a_number_to_be_given_back_has_all_its_digits(value: float, reported: str) -> None:
    assert text.exact(value) == reported
    assert float(reported) == value


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        (5e-7, "< $0.000001"),
        (-5e-7, "> -$0.000001"),
        (0.0995, "$0.0995"),
        (0.09996, "$0.10"),
        (0.4709, "$0.47"),
        (-0.4709, "-$0.47"),
        (0.9999, "$1.00"),
        (999.99, "$999.99"),
        (999.996, "$1,000"),
        (1_000, "$1,000"),
    ],
)
def test_costs_at_the_edges_are_rounded_before_their_form_is_chosen(value: float, reported: str) -> None:
    assert text.money(value) == reported


@pytest.mark.parametrize(("value", "places", "reported"), [(-0.5, 0, "0"), (-0.51, 0, "-1"), (-0.04, 1, "0.0")])
def test_what_rounds_to_nothing_has_no_sign(value: float, places: int, reported: str) -> None:
    assert text.decimals(value, places) == reported
    assert text.percent(value / 100, places) == f"{reported} %"


def test_shares_are_in_per_cent_and_none_is_below_nothing() -> None:
    assert (text.percent(0.0425), text.percent(-0.0001), text.amount(0.5, text.SHARE)) == ("4.2 %", "0.0 %", "50.0 %")
    assert text.interval(-0.0001, -0.02, 0.016) == "0.000 [-0.020, 0.016]"
    assert text.interval(0.0001, -0.02, 0.016, signed=True) == "0.000 [-0.020, +0.016]"
    assert text.interval(1e-10, 0, 2e-10) == "< 0.000001 [0, < 0.000001]"
    assert text.amount(1.66, "GPU-hours") == "1.66 GPU-hours"


def test_allocations_are_in_the_words_of_their_resources() -> None:
    assert text.in_words({"gpus": 6, "executors": 4}) == "6 GPUs, 4 executors"
    assert (
        text.in_words({"gpu": 1, "cpu": 125, "memory": 512}, {"gpu": "gpu", "cpu": "%"})
        == "1 GPU, cpu 125 %, memory 512"
    )
    assert (
        text.in_words({"workers": 2, "memory": 512}, {"workers": "worker", "memory": "MiB"})
        == "2 workers, memory 512 MiB"
    )
    assert text.quantity("1–8", "gpus", "gpu") == "1–8 GPUs"


@pytest.mark.parametrize(
    ("count", "most", "expected"),
    [
        (1, None, "1 node"),
        (0, None, "0 nodes"),
        (1.0, None, "1 node"),
        (28_481, None, "28,481 nodes"),
        (1, 1, "1 node"),
        (4, 4, "4 nodes"),
        (0, 1, "0–1 nodes"),
        (1, 8, "1–8 nodes"),
    ],
)
def test_a_count_of_one_has_its_noun_in_the_singular(count: float, most: float | None, expected: str) -> None:
    assert text.count_text(count, "node", most) == expected


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, "under 1 %"),
        (1e-6, "under 1 %"),
        (0.01, "1 %"),
        (0.949, "94 %"),
        (0.29, "29 %"),
        (0.9999, "99 %"),
        (1.0, "99 %"),
    ],
)
def test_a_probability_is_not_overstated_and_never_certain(share: float, expected: str) -> None:
    assert text.probability(share) == expected


def test_moments_say_that_they_are_utc() -> None:
    at = datetime(2026, 1, 31, 20, 5, tzinfo=timezone(timedelta(hours=2)))
    assert text.moment(at) == text.moment(at.astimezone(UTC)) == "2026-01-31 18:05:00 UTC"
    assert text.moment(None) == ""
    assert (text.duration(200), text.duration(0.2), text.duration(90_061)) == ("3 min 20 s", "200 ms", "1 d 01 h")


def test_figures_that_are_not_finite_are_written() -> None:
    nan, inf = float("nan"), float("inf")
    assert {text.duration(nan), text.duration(inf), text.duration(-inf), text.confidence(nan)} == {text.NOTHING}
    assert (text.interval(nan, nan, nan), text.interval(1, -inf, inf)) == ("nan [nan, nan]", "1 [-inf, inf]")
    assert (text.decimals(nan, 2), text.percent(inf)) == ("nan", "inf %")
    assert max(len(one) for one in (text.duration(1e60), text.money(1e60), text.decimals(1e60, 2))) < 20


def test_seconds_of_a_minute_and_more_are_said_as_durations_and_other_quantities_as_they_are() -> None:
    arguments = [text.amount_or_duration(value, "s") for value in (0.0617, 59.4, 59.6, 803, 1.3e6, -803, math.inf)]
    assert arguments == ["61.7 ms", "59.4 s", "1 min", "13 min 23 s", "15 d 01 h", "-803 s", "inf s"]
    assert text.amount_or_duration(803, "ms") == "803 ms"
