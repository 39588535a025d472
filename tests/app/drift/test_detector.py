"""The sequential test: seldom wrong while the model holds, soon right when it does not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from math import log

import msgspec
import numpy as np
import pytest

from app.drift.detector import (
    LARGEST,
    MOST_NOTICES,
    NOTHING,
    REPORTS,
    Drift,
    Report,
    encode_drift,
    new_notices,
    observe_residuals,
    restore_drift,
)
from app.kinds.contract.engine import FACTORS, Residual, Residuals, count_residual, ratio_residual

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPREAD, TOLERATED, RATE, VARIATION = 0.1, 1.1, 100.0, 0.05


def seconds(rng: np.random.Generator, factor: float) -> Residual:
    """Four batches that take ``factor`` times as long as is expected."""
    logs = rng.normal(log(factor), SPREAD, 4)
    return ratio_residual("seconds", float(logs.sum()), 4, SPREAD, log(TOLERATED), float(np.exp(logs).sum()))


def arrivals(rng: np.random.Generator, factor: float) -> Residual:
    """Requests of an interval, ``factor`` times as many as are expected, whose rate varies."""
    rate = factor * RATE * rng.gamma(1 / VARIATION, VARIATION)
    return count_residual("arrivals", float(rng.poisson(rate)), RATE, VARIATION, TOLERATED)


MAKERS = {"seconds": seconds, "arrivals": arrivals}


def played(
    residuals: Iterator[Residual], reports: float, most: int, before: Drift = NOTHING, first: int = 0
) -> tuple[Drift, int]:
    """What is kept when something was first noticed, and after how many reports; else after ``most``."""
    selection = before
    for number in range(most):
        selection = observe_residuals(
            selection, Residuals(1, [next(residuals)]), Report(first + number, 1, NOW), reports
        )
        if selection.notices:
            return selection, number + 1
    return selection, most


def stream(name: str, seed: int, factor: float) -> Iterator[Residual]:
    rng = np.random.default_rng(seed)
    while True:
        yield MAKERS[name](rng, factor)


class TestEvidence:
    @pytest.mark.parametrize("name", MAKERS)
    @pytest.mark.parametrize("factor", [1.0, TOLERATED, 1 / TOLERATED])
    def test_e_values_are_at_most_1_in_expectation_while_the_model_holds(self, name: str, factor: float) -> None:
        result = stream(name, 7, factor)
        values = np.exp([next(result).evidence for _ in range(5_000)])[:, [0, 2]]  # the others are seldom, and huge
        errors = values.std(axis=0) / np.sqrt(len(values))
        assert (values.mean(axis=0) <= 1 + 4 * errors).all()

    @pytest.mark.parametrize("name", MAKERS)
    def test_the_factor_that_is_there_speaks_loudest(self, name: str) -> None:
        for position, factor in enumerate(FACTORS):
            beyond = factor * (TOLERATED if factor > 1 else 1 / TOLERATED)
            result = stream(name, 3, beyond)
            total = np.sum([next(result).evidence for _ in range(400)], axis=0)
            assert int(np.argmax(total)) == position
            assert total[position] > 0

    def test_a_count_that_does_not_vary_is_poissons(self) -> None:
        evidence = count_residual("x", 12.0, 10.0, 0.0, 1.0).evidence
        poisson = [12 * log(factor) - 10 * (factor - 1) for factor in FACTORS]
        assert evidence == pytest.approx(poisson, abs=1e-5)


class TestObserved:
    @pytest.mark.parametrize("name", MAKERS)
    @pytest.mark.parametrize("factor", [1.0, TOLERATED])
    def test_false_alarms_are_as_seldom_as_stated(self, name: str, factor: float) -> None:
        """The time to the first one, cut at ten times the stated number of reports, is at least that on average."""
        stated, most = 200, 2_000
        times = np.array([played(stream(name, seed, factor), stated, most)[1] for seed in range(40)])
        assert times.mean() + 3 * times.std() / np.sqrt(len(times)) >= stated

    @pytest.mark.parametrize("name", MAKERS)
    def test_nothing_is_noticed_where_the_model_is_right(self, name: str) -> None:
        assert not any(played(stream(name, seed, 1.0), REPORTS, 2_000)[0].notices for seed in range(5))

    @pytest.mark.parametrize(("name", "most"), [("seconds", 20), ("arrivals", 40)])
    @pytest.mark.parametrize("factor", [1.6, 1 / 1.6])
    def test_a_shift_is_noticed_soon_with_its_size_and_its_beginning(self, name: str, most: int, factor: float) -> None:
        before, _ = played(stream(name, 100, 1.0), REPORTS, 50)
        for seed in range(10):
            selection, reports = played(stream(name, seed, factor), REPORTS, 200, before, 50)
            [notice] = selection.notices
            assert reports <= most
            assert notice.direction == ("up" if factor > 1 else "down")
            assert log(notice.factor) == pytest.approx(log(factor), abs=0.2)
            assert notice.statistic >= notice.threshold == REPORTS
            assert 46 <= notice.since <= notice.iteration == 49 + reports
            assert (notice.stream, notice.model) == (name, 1)

    def test_no_single_report_notices_anything(self) -> None:
        huge = Residual("seconds", (1e6, 1e6, -1e6, -1e6), 9.0, 1.0)
        needed = 0
        selection = NOTHING
        while not selection.notices:
            selection = observe_residuals(selection, Residuals(1, [huge]), Report(needed, 1, NOW))
            needed += 1
        assert needed >= log(REPORTS) / log(LARGEST)

    def test_more_streams_need_more_evidence(self) -> None:
        results = [next(stream("seconds", 1, 1.6)) for _ in range(1)] * 40
        ends = [played_with(streams, results) for streams in (1, 10_000)]
        assert ends[0] < ends[1]

    def test_a_drift_is_told_once_and_again_under_another_model(self) -> None:
        source, selection = stream("seconds", 5, 2.0), NOTHING
        for number in range(100):
            selection = observe_residuals(selection, Residuals(1, [next(source)]), Report(number, 1, NOW))
        assert len(selection.notices) == 1
        for number in range(100, 200):
            selection = observe_residuals(selection, Residuals(1, [next(source)]), Report(number, 2, NOW))
        assert [notice.model for notice in selection.notices] == [1, 2]

    def test_what_is_kept_of_notices_is_bounded(self) -> None:
        source, selection = stream("seconds", 5, 2.0), NOTHING
        for model in range(MOST_NOTICES + 5):
            for number in range(15):
                before, selection = (
                    selection,
                    observe_residuals(selection, Residuals(1, [next(source)]), Report(number, model, NOW)),
                )
                assert len(new_notices(before, selection)) <= 1
        assert len(selection.notices) == MOST_NOTICES

    def test_a_report_that_says_nothing_changes_nothing(self) -> None:
        selection, _ = played(stream("seconds", 1, 1.0), REPORTS, 10)
        assert observe_residuals(selection, Residuals(1, []), Report(11, 1, NOW)) is selection

    def test_it_is_stored_and_restored(self) -> None:
        selection, _ = played(stream("seconds", 5, 2.0), REPORTS, 100)
        assert restore_drift(msgspec.json.decode(encode_drift(selection))) == selection
        assert restore_drift(msgspec.json.decode(encode_drift(NOTHING))) is NOTHING


def played_with(streams: int, residuals: list[Residual]) -> int:
    """After how many reports something was noticed."""
    selection = NOTHING
    for number, residual in enumerate(residuals):
        selection = observe_residuals(selection, Residuals(streams, [residual]), Report(number, 1, NOW))
        if selection.notices:
            return number
    return len(residuals)
