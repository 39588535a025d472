import numpy as np
import pytest

from app.kinds.cluster.arrivals import Arrivals, none
from workers.estimators.base import TooLittleData
from workers.kinds.cluster.episodes import draw


def test_jobs_without_durations_are_refused_with_what_is_missing() -> None:
    came = np.array([[0, 0, 4, np.nan, np.nan]] * 3)
    untold = Arrivals(np.ones((1, 24)), np.zeros(1), came)
    with pytest.raises(TooLittleData, match=r"`duration`.*has 3 jobs that came, none of them with its duration"):
        draw(untold, 0, 3600.0, 1.0, 8, np.random.default_rng(0))
    with pytest.raises(TooLittleData, match="has no job that came"):
        draw(none(1), 0, 3600.0, 1.0, 8, np.random.default_rng(0))
