import numpy as np
import pytest

from tests.pollux.simulator import Submission, draw

LOGS = [[Submission(f"a-{n}", 600.0 * n, app, 1, 8) for n in range(40)] for app in ("x", "y")]


@pytest.mark.parametrize("load", [0.5, 1.0, 2.0])
def test_a_drawn_log_has_the_load_that_is_asked_for(load: float) -> None:
    logs = [draw(LOGS, load, np.random.default_rng(seed)) for seed in range(200)]
    counts = np.array([len(log) for log in logs])
    assert abs(counts.mean() - 40 * load) <= 4 * counts.std() / np.sqrt(200)
    for log in logs[:20]:
        assert [job.time for job in log] == sorted(job.time for job in log)
        assert len({job.name for job in log}) == len(log)


def test_whole_hours_come_from_one_log() -> None:
    for job_hour in range(6):
        log = draw(LOGS, 1.0, np.random.default_rng(job_hour))
        for hour in range(7):
            assert len({job.application for job in log if job.time // 3600 == hour}) <= 1
