"""The headroom as text and as a reason not to learn."""

from __future__ import annotations

import numpy as np
import pytest

from workers.evaluation.headroom import Headroom

NONE, EPISODES = np.zeros(12), np.linspace(-1.1, -0.9, 12)


def test_returns_of_nothing_are_told_as_such() -> None:
    room = Headroom.of("rule", NONE, NONE, NONE, beyond=NONE)
    assert "0 %" in room.text()
    assert room.nothing_to_win() == ""  # the margin is 0, too
    assert room.report()["margin"] == 0


@pytest.mark.parametrize(("published", "rule"), [(True, "the tuned rule"), (False, "served")])
def test_nothing_is_to_win_over_what_is_published_without_learning(published: bool, rule: str) -> None:
    near = np.full(12, 1e-4)
    same = Headroom.of("served", EPISODES, EPISODES, EPISODES, beyond=near, published=published)
    assert f"{rule} loses at most" in same.nothing_to_win()
    worse = Headroom.of("served", EPISODES - 0.05, EPISODES, EPISODES, beyond=near, published=published)
    assert bool(worse.nothing_to_win()) is published
