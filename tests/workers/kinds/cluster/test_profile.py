import numpy as np
import pytest

from app.kinds.cluster.throughput import ProfilePlace, ProfileTimes, fit, step_seconds
from tests.pollux.goodput import Profile

TRUE = np.array([0.1, 0.005, 0.08, 0.004, 0.02, 0.002, 1.5])


def times(place: ProfilePlace) -> ProfileTimes:
    whole = float(step_seconds(TRUE, *(np.array(float(part)) for part in place)))
    return whole, TRUE[0] + TRUE[1] * place[2]


def expected(parameters: np.ndarray, place: ProfilePlace) -> float:
    return float(step_seconds(parameters, *(np.array(float(part)) for part in place)))


def test_planted_parameters_are_found() -> None:
    places = [(1, 1, 32), (1, 1, 64), (1, 2, 64), (1, 4, 32), (2, 8, 64), (4, 16, 32), (3, 12, 48)]
    result = fit({place: times(place) for place in places})
    np.testing.assert_allclose(result, TRUE, rtol=1e-6)


def test_what_was_never_seen_to_cost_anything_costs_nothing() -> None:
    result = fit({(1, 1, 32): times((1, 1, 32))})
    assert expected(result, (8, 32, 32)) == pytest.approx(times((1, 1, 32))[0], rel=1e-3)
    result = fit({place: times(place) for place in [(1, 1, 32), (1, 2, 32)]})
    assert expected(result, (2, 8, 32)) >= expected(result, (1, 2, 32))


def test_no_parameter_is_negative() -> None:
    noisy = np.random.default_rng(0).uniform(0.5, 1.5, 40).tolist()
    places = [(1, 1, 16), (1, 1, 64), (1, 2, 32), (1, 4, 32), (2, 5, 16), (4, 16, 32), (8, 32, 64)]
    for start in range(0, 28, 7):
        measured = {p: (times(p)[0] * noisy[start + i], times(p)[1]) for i, p in enumerate(places)}
        assert (fit(measured) > 0).all()


def test_only_surprises_change_what_is_expected() -> None:
    profile = Profile({})
    assert profile.measure((1, 1, 32), times((1, 1, 32)))
    assert not profile.measure((1, 1, 32), times((1, 1, 32)))
    assert profile.measure((1, 1, 64), times((1, 1, 64)))
    assert not profile.measure((1, 1, 48), times((1, 1, 48)))
    assert profile.measure((1, 2, 48), times((1, 2, 48)))
    assert profile.most == 2
