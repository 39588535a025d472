"""What is left to gain: by a job's own curve, and by those of others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.lengths import ALIKE, CurvePoints, LearningCurves, ahead, parametric, thinned_indices
from workers.kinds.cluster.fit import Curve, classes, fit_class, none

EPOCHS = np.arange(1, 41.0)


def planted(count: int, seed: int, noise: float = 0.002) -> Floats:
    """Curves that rise as Optimus has it, and leap at epoch 25, [count, 40]."""
    rng = np.random.default_rng(seed)
    slope, offset = rng.uniform(0.3, 0.6, (count, 1)), rng.uniform(1, 3, (count, 1))
    leap = 0.1 * (EPOCHS >= 25)
    return 0.9 - 1 / (slope * EPOCHS + offset) + leap + rng.normal(0, noise, (count, 40))


def observe(table: Floats, epochs: int) -> CurvePoints:
    """The first epochs of curves."""
    there = epochs >= EPOCHS
    return CurvePoints(np.where(there, EPOCHS, np.nan) * np.ones_like(table), np.where(there, table, np.nan))


def test_a_curve_of_the_family_is_foretold_without_others() -> None:
    values = 2 - 1 / (0.4 * EPOCHS + 1)
    result = parametric(observe(values[None], 15), np.array([40.0]))
    assert_allclose(result.gain[0], values[-1] - values[14], rtol=0.2)
    assert_allclose(result.level[0], values[14], rtol=0.01)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_units_do_not_matter(scale: float) -> None:
    table = planted(5, 0)
    one, other = (parametric(observe(table * factor, 12), np.full(5, 40.0)) for factor in (1.0, scale))
    assert_allclose(other.gain, one.gain * scale, rtol=1e-6)


def test_nothing_is_said_of_three_points() -> None:
    assert np.isnan(parametric(observe(planted(1, 0), 3), np.array([40.0])).gain).all()


def test_curves_of_an_application_say_what_its_own_curve_cannot() -> None:
    others, request = planted(60, 1), planted(200, 2)
    known = classes([0], [True], [fit_class([Curve(EPOCHS, one) for one in others], 0)])
    assert known.family[0] == ALIKE
    until, which = np.full(200, 40.0), np.zeros(200, np.int64)
    result = ahead(known, which, observe(request, 20), until)
    end = request[:, -1]
    alone = parametric(observe(request, 20), until)
    assert np.abs(result.level + result.gain - end).mean() < 0.1 * np.abs(alone.level + alone.gain - end).mean()
    inside = (np.abs(result.level + result.gain - end) <= result.half).mean()
    assert inside > 0.9 - 4 * np.sqrt(0.09 / 200)


def test_jobs_of_unknown_classes_are_foretold_alone_and_together_as_each_by_itself() -> None:
    known = classes([0], [True], [fit_class([Curve(EPOCHS, one) for one in planted(60, 1)], 0)])
    request, which, until = planted(4, 3), np.array([0, -1, 0, -1]), np.full(4, 40.0)
    together = ahead(known, which, observe(request, 20), until)
    for job in range(4):
        own = ahead(known, which[job : job + 1], observe(request[job : job + 1], 20), until[:1])
        assert_allclose([part[0] for part in own], [part[job] for part in together])
    alone = ahead(none(), np.full(4, -1), observe(request, 20), until)
    assert_allclose(alone.gain[[1, 3]], together.gain[[1, 3]])


def ended(jobs: int, seed: int) -> LearningCurves:
    """What jobs that ended say of two applications, of which the second has had but two jobs."""
    each = [[Curve(EPOCHS, one) for one in planted(count, seed)] for count in (jobs, 2)]
    return classes([0, 1], [True, True], [fit_class(one, 0) for one in each])


def test_how_far_off_a_gain_may_be_is_not_known_before_enough_jobs_of_the_application_have_ended() -> None:
    request, which, until = planted(3, 3), np.array([0, 1, -1]), np.full(3, 40.0)
    for jobs, known in ((5, False), (8, False), (9, True), (30, True)):
        result = ahead(ended(jobs, 1), which, observe(request, 20), until)
        assert np.isfinite(result.gain).all()
        assert np.isfinite(result.half).tolist() == [known, False, False]


def test_a_model_that_knew_other_ages_says_nothing_of_how_far_off_gains_may_be() -> None:
    known = ended(30, 1)
    old = known._replace(factor=known.factor[:, :, :4])
    result = ahead(old, np.array([0]), observe(planted(1, 3), 20), np.array([40.0]))
    assert np.isfinite(result.gain[0])
    assert np.isnan(result.half[0])


@pytest.mark.parametrize("jobs", [9, 12, 25])
def test_intervals_hold_from_the_first_jobs_that_ended_on(jobs: int) -> None:
    request, inside = planted(60, 99), []
    for seed in range(12):
        known = ended(jobs, seed)
        for epochs in (1, 4, 9, 18, 30, 38):
            result = ahead(known, np.zeros(60, np.int64), observe(request, epochs), np.full(60, 40.0))
            inside.append((np.abs(result.level + result.gain - request[:, -1]) <= result.half).mean())
    assert np.mean(inside) > 0.87


def test_intervals_of_jobs_alone_hold_though_curves_leave_their_shape() -> None:
    rng = np.random.default_rng(5)
    leap = np.abs(rng.normal(0, 0.03, (200, 1))) * (rng.uniform(5, 40, (200, 1)) <= EPOCHS)
    request = planted(200, 5) - 0.1 * (EPOCHS >= 25) + leap
    for epochs in (6, 12, 20, 30):
        result = parametric(observe(request, epochs), np.full(200, 40.0))
        assert (np.abs(result.level + result.gain - request[:, -1]) <= result.half).mean() > 0.87


def test_of_a_long_curve_the_service_keeps_its_last_points_and_ever_fewer_of_those_before() -> None:
    assert thinned_indices(24).tolist() == [*range(24)]
    assert thinned_indices(25).tolist() == [*range(0, 24, 2), 24]
    assert thinned_indices(1000)[-1] == 999
    assert len(thinned_indices(1000)) <= 24


@pytest.mark.parametrize("count", [3, 12])
def test_curves_that_report_late_leave_their_errors_unknown(count: int) -> None:
    """At no age do they have the points that a curve needs; an unknown error is none, not a number that is none."""
    late = np.array([1.0, 2.0, 90.0, 95.0, 100.0])
    curves = [Curve(late, 0.1 * n + np.array([0.1, 0.2, 0.7, 0.75, 0.8])) for n in range(count)]
    report = fit_class(curves, 0).report
    results = [report["error"], report["naive_error"], report["coverage"]]
    assert all(one is None or np.isfinite(one) for one in results)
    assert (results == [None, None, None]) is (count == 3)
    assert report["curves"] == count
