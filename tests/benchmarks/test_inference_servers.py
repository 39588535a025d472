"""What the reference of planted bursts is told: the law, and the burst that is on, never the next one."""

import numpy as np
import pytest

from benchmarks.inference_agents import SHARE, bursts, planted
from benchmarks.inference_servers import HIGH, KEPT, LASTS, LOW, LULL, Lawful

SPANS = [(0.0, 8.0), (8.0, 30.0), (0.0, 4_000.0)]


def test_a_burst_that_is_on_lasts_as_long_as_bursts_do_and_the_next_one_is_not_told() -> None:
    begins, other = (100.0, 300.0), (100.0, 205.0)
    now = np.array([50.0, 110.0, 119.0, 200.0])
    reported = Lawful(begins).rates(now, SPANS)
    assert reported.shape == (4, 3, 2, 32)
    assert (reported[1, 0].sum(axis=0) == HIGH).all()  # for ten more seconds
    share = (reported[2, 0].sum(axis=0) == HIGH).mean()
    assert 1 / 8 <= share < 0.5  # for one more
    assert (reported[0, 0].sum(axis=0) == LOW).mean() > 0.5  # before the first
    assert reported == pytest.approx(Lawful(other).rates(now, SPANS))  # what begins later changes nothing
    assert reported[:, :, 0] == pytest.approx(SHARE * reported.sum(axis=2))


def test_in_the_long_run_scenarios_have_the_mean_rate_of_planted_requests() -> None:
    long = Lawful((0.0,)).rates(np.full(40, 1_000.0), SPANS)[:, 2].sum(axis=1)
    share = LASTS / (LASTS + LULL)
    sigma = (HIGH - LOW) * np.sqrt(share * (1 - share) / long.size)
    assert abs(long.mean() - (share * HIGH + (1 - share) * LOW)) < 4 * sigma


def test_bursts_begin_when_the_planted_requests_say() -> None:
    counts = planted("bursty", 5_000, 3)
    on = np.zeros(5_000, np.bool_)
    for begin in bursts(5_000, np.random.default_rng(3)):
        on[begin : begin + int(LASTS)] = True
    assert counts[on].mean() * KEPT == pytest.approx(HIGH, rel=0.02)
    assert counts[~on].mean() * KEPT == pytest.approx(LOW, rel=0.02)
