import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.spec import Spec
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.simulator import TRAINING, ExpectedSimulator, IterativeSimulator, Ranges

SPEC = planted_spec()
TABLE = planted_table(SPEC, effect=0.2, noise=0.15, drift=0.02)


def rewards(kind: type[IterativeSimulator], ranges: Ranges, steps: int = 29, spec: Spec = SPEC) -> np.ndarray:
    simulator = kind(Layout(spec), TABLE, 4096, 5, ranges)
    _, mask = simulator.reset()
    random, results = np.random.default_rng(0), []
    for _ in range(steps):
        step = simulator.step(np.where(mask, random.random(mask.shape), -1).argmax(axis=1))
        results.append(step.reward)
        mask = step.mask
    return np.array(results)


@pytest.mark.parametrize("ranges", [Ranges(), TRAINING])
def test_the_same_is_paid_on_average_with_less_noise(ranges: Ranges) -> None:
    drawn, expected = rewards(IterativeSimulator, ranges), rewards(ExpectedSimulator, ranges)
    difference = (drawn - expected).mean(axis=0)  # the same runs: paired
    assert abs(difference.mean()) < 4 * difference.std() / len(difference) ** 0.5
    assert expected.var() < drawn.var()


@pytest.mark.parametrize("ranges", [Ranges(), TRAINING])
def test_disturbed_runs_are_paid_for_what_happens_to_them(ranges: Ranges) -> None:
    happening = {"lost_capacity": {"probability": 0.7}, "pace_shift": {"probability": 0.7, "factor": (1.5, 2.5)}}
    spec = planted_spec(disturbances=happening)
    drawn, expected = (rewards(kind, ranges, spec=spec) for kind in (IterativeSimulator, ExpectedSimulator))
    difference = (drawn - expected).mean(axis=0)
    assert abs(difference.mean()) < 4 * difference.std() / len(difference) ** 0.5


def test_the_runs_themselves_are_the_same() -> None:
    plain, paid = (kind(Layout(SPEC), TABLE, 64, 1, TRAINING) for kind in (IterativeSimulator, ExpectedSimulator))
    plain.reset()
    paid.reset()
    for _ in range(40):
        one, other = plain.step(np.full(64, 4)), paid.step(np.full(64, 4))
        np.testing.assert_array_equal(one.observation, other.observation)
        np.testing.assert_array_equal(one.done, other.done)
