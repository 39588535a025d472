"""Service times: laws, members, spreads; planted batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.estimators.base import Floats, Integers
from workers.kinds.inference.estimation.fit import held_out
from workers.kinds.inference.estimation.service import (
    BATCH_LAWS,
    CORE_LAWS,
    MOST_ALIKE,
    Rows,
    ServiceTime,
    cells,
    thin_rows,
)

LEVELS = np.array([0.02, 0.08])


def planted(
    batches: list[float], cores: list[float], repeats: int, noise: float, seed: int = 0, servers: int = 1
) -> Rows:
    """Two variants whose time is a third fixed, two thirds by request, with a tenth that no cores shorten."""
    grid = np.meshgrid([0, 1], range(servers), batches, cores, range(repeats), indexing="ij")
    variant, server, batch, core, _ = (part.ravel() for part in grid)
    rng = np.random.default_rng(seed)
    seconds = truth(variant, batch, core) * np.exp(noise * rng.standard_normal(len(variant)))
    return Rows(variant, server, batch.astype(float), core.astype(float), seconds)


def truth(variant: Integers, batch: Floats, cores: Floats) -> Floats:
    return LEVELS[variant] * (1 + 2 * batch) / 3 * (0.1 + 0.9 / cores)


def at(variant: list[int], batch: list[float], cores: list[float], server: int = 0) -> Rows:
    count = len(variant)
    return Rows(np.array(variant), np.full(count, server), np.array(batch), np.array(cores), np.ones(count))


class TestLaws:
    """Whatever their share, larger batches take longer, more cores less."""

    @given(st.floats(-12, 12), st.lists(st.floats(0.01, 100), min_size=2, max_size=20))
    def test_they_are_monotone_and_finite(self, logit: float, values: list[float]) -> None:
        ascending = np.array(sorted(values))
        shares = np.full(len(ascending), logit)
        for law in BATCH_LAWS.values():
            assert (np.diff(law(ascending, shares)) >= -1e-9).all()
            assert np.isfinite(law(ascending, shares)).all()
        for law in CORE_LAWS.values():
            assert (np.diff(law(ascending, shares)) <= 1e-9).all()
            assert np.isfinite(law(ascending, shares)).all()

    @pytest.mark.parametrize("logit", [-3.0, 0.0, 3.0])
    def test_they_are_1_at_what_is_usual(self, logit: float) -> None:
        for law in (*BATCH_LAWS.values(), *CORE_LAWS.values()):
            assert law(np.ones(1), np.array([logit])) == pytest.approx(0.0)


class TestServiceTime:
    """What is fitted to planted batches."""

    def test_what_was_measured_is_met_within_its_error(self) -> None:
        rows = planted([1, 2, 4, 8], [1, 4], 20, 0.05)
        known = cells(rows).points
        predictions = ServiceTime(2, 1, 0).fit(rows).predict(known)
        expected = truth(known.variant, known.batch, known.cores)
        assert np.abs(predictions.mean / expected - 1).max() < 4 * 0.05 / np.sqrt(20)

    def test_the_noise_of_one_batch_is_found(self) -> None:
        rows = planted([1, 2, 4, 8], [1, 4], 40, 0.1)
        noise = ServiceTime(2, 1, 0).fit(rows).noise_sd_
        degrees = 8 * 39
        assert np.abs(noise / 0.1 - 1).max() < 4 / np.sqrt(2 * degrees) + 0.05  # shrunk towards one another

    def test_batch_sizes_and_cores_that_were_left_out_are_predicted_and_covered(self) -> None:
        inside, errors = [], []
        for seed in range(6):
            told_at = at([0, 1, 0, 1], [6, 16, 3, 8], [2, 2, 8, 3])
            predictions = ServiceTime(2, 1, seed).fit(planted([1, 2, 4, 8], [1, 4], 5, 0.03, seed)).predict(told_at)
            expected = truth(told_at.variant, told_at.batch, told_at.cores)
            inside += ((predictions.low <= expected) & (expected <= predictions.high)).tolist()
            errors += np.abs(predictions.mean / expected - 1).tolist()
        assert np.mean(errors) < 0.08
        assert np.mean(inside) > 0.9 - 3 * np.sqrt(0.09 / len(inside))

    def test_members_agree_where_was_measured_and_differ_most_where_nothing_is_known(self) -> None:
        fitted = ServiceTime(2, 2, 0).fit(planted([1, 2], [4], 10, 0.02))
        apart = fitted.logs(at([0, 0], [1, 64], [4, 4])).std(axis=0)
        elsewhere = fitted.logs(at([0], [1], [4], server=1)).std(axis=0)
        fewer = fitted.logs(at([0], [1], [1])).std(axis=0)
        assert apart[0] < 0.03
        assert min(apart[1], elsewhere[0], fewer[0]) > 4 * apart[0]

    def test_a_variant_of_few_batches_borrows_the_shape_of_the_others(self) -> None:
        rows = planted([1, 2, 4, 8], [4], 10, 0.02)
        few = rows.take(np.flatnonzero((rows.variant == 0) | (rows.batch == 1)))
        predictions = ServiceTime(2, 1, 0).fit(few).predict(at([1], [8], [4]))
        expected = truth(np.array([1]), np.array([8]), np.array([4]))
        assert predictions.low < expected < predictions.high
        assert abs(predictions.mean / expected - 1) < 0.35

    def test_one_wild_batch_does_not_move_the_rest(self) -> None:
        rows = planted([1, 2, 4, 8], [1, 2, 4], 1, 0.02)
        wild = rows._replace(seconds=np.where(np.arange(len(rows.seconds)) == 5, 10 * rows.seconds, rows.seconds))
        there = at([0, 1], [3, 3], [3, 3])
        plain, shaken = (ServiceTime(2, 1, 0).fit(one).predict(there).mean for one in (rows, wild))
        assert np.abs(shaken / plain - 1).max() < 0.1

    def test_the_same_seed_gives_the_same_members_and_another_gives_others(self) -> None:
        rows, there = planted([1, 4], [4], 3, 0.05), at([0, 1], [2, 8], [4, 8])
        one, same, other = (ServiceTime(2, 1, seed).fit(rows).logs(there) for seed in (0, 0, 1))
        assert (one == same).all()
        assert not (one == other).any()

    @settings(max_examples=6, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 64), st.floats(1e-4, 1e3)), min_size=1, max_size=12))
    def test_any_batches_give_finite_predictions(self, rows: list[tuple[int, int, float]]) -> None:
        variant, batch, seconds = (np.array(column) for column in zip(*rows, strict=True))
        given_rows = Rows(variant, 0 * variant, batch.astype(float), np.ones(len(rows)), seconds)
        predictions = ServiceTime(2, 1, 0).fit(given_rows).predict(at([0, 1], [1, 1000], [1, 64]))
        assert all(np.isfinite(part).all() for part in predictions)
        assert (predictions.low <= predictions.mean).all()
        assert (predictions.mean <= predictions.high).all()


class TestHeldOut:
    """Batch sizes, classes and cores left out in turn."""

    def test_errors_are_below_those_of_a_mean_and_intervals_cover(self) -> None:
        report = held_out(planted([1, 2, 4, 8], [1, 2, 4], 5, 0.05), 2, 1, 0).report
        assert report["mape"] < 0.12
        assert report["mape"] < report["naive_mape"] / 3
        assert report["coverage"] > 0.8
        assert report["left_out"].keys() == {"batch", "cores"}
        assert report["held_out"] == 2 * (2 * 4 * 3 * 5)

    def test_nothing_can_be_held_out_where_all_was_measured_alike(self) -> None:
        result = held_out(planted([4], [4], 5, 0.05), 2, 1, 0)
        assert (result.factor, result.report["mape"], result.report["held_out"]) == (1.0, None, 0)


def test_rows_are_thinned_by_what_was_measured_alike() -> None:
    rows = planted([1, 2], [4], 3 * MOST_ALIKE, 0.05)
    few = thin_rows(rows, np.random.default_rng(0))
    assert cells(few).number.tolist() == [MOST_ALIKE] * 4
    assert set(few.seconds) <= set(rows.seconds)
