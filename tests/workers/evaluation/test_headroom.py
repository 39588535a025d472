"""The headroom of any kind: the search for a rule's numbers, the comparison, and the share that was won."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from workers.evaluation.headroom import FIRST, MOST, TUNED, Headroom, Search, cross_entropy, share_won

Floats = NDArray[np.float64]
BEST = np.array([0.7, -0.4])


def search(best: Floats, affordable: int = MOST, **more: int) -> Search:
    """Returns −1 − |point − best|², with the noise of the generation's episodes."""
    noise = np.random.default_rng(5).normal(0, 0.3, MOST)

    def play(points: Floats, generation: int) -> Floats:
        return np.asarray(noise[generation] - ((points - best) ** 2).sum(axis=1))

    zero = np.zeros(2)
    return Search(
        zero, zero, np.ones(2), play, lambda point: -1 - float(((point - best) ** 2).sum()), affordable, **more
    )


@pytest.mark.parametrize("best", [BEST, -BEST])
def test_the_search_finds_the_best_numbers_and_knows_when(best: Floats) -> None:
    result = cross_entropy(search(best), np.random.default_rng(1))
    assert np.abs(result.point - best).max() < 0.1
    assert result.converged
    assert FIRST < result.generations <= MOST
    again = cross_entropy(search(best), np.random.default_rng(1))
    assert (again.point == result.point).all()


def test_a_search_that_is_cut_short_says_so_and_is_never_worse_than_what_is_served() -> None:
    for seed, generations in ((1, 2), (2, 3)):
        short = cross_entropy(search(BEST, generations, first=2, population=8), np.random.default_rng(seed))
        assert (short.generations, short.converged) == (generations, False)
    at_best = search(np.zeros(2))
    result = cross_entropy(at_best, np.random.default_rng(3))
    assert at_best.validated(result.point) >= at_best.validated(np.zeros(2))


NOISE = np.random.default_rng(0).normal(0, 0.1, 64)


def test_parts_are_paired_and_a_rule_need_not_use_what_it_knows() -> None:
    served, tuned = NOISE - 1.0, NOISE - 0.9
    room = Headroom.of("fifo", served, tuned, NOISE - 0.8, knows="the lengths", why="none is cheap")
    assert room.gain["mean"] == pytest.approx(0.1)
    assert room.left["high"] == pytest.approx(0.1)
    assert room.margin == pytest.approx(0.01 * abs(tuned.mean()))
    assert "tuned by 11" in room.text()
    assert "over fifo; knowing the lengths would give" in room.text()
    assert room.text().endswith("no bound in hindsight: none is cheap")
    worse = Headroom.of("fifo", served, tuned, NOISE - 2.0)
    assert (worse.left["mean"], worse.knowable) == (0.0, worse.tuned)
    assert room.report()["best"] == TUNED


def test_the_best_of_rules_without_numbers_is_told_by_its_name() -> None:
    room = Headroom.of("fifo", NOISE - 1.0, NOISE - 0.9, NOISE - 0.8, best="smallest_area", why="none")
    assert room.text().startswith("smallest_area, the best of rules without numbers to tune, is 1")


def test_a_bound_below_the_margin_leaves_nothing_to_win() -> None:
    tuned = NOISE - 0.9
    near, far = (Headroom.of("fifo", tuned, tuned, tuned, beyond=np.full(64, above)) for above in (0.005, 0.05))
    assert near.nothing_to_win().startswith("nothing to gain here: with all noise known, the tuned rule loses at most")
    assert far.nothing_to_win() == ""
    assert "knowing all noise at most 5" in far.text()


def test_the_share_won_is_told_only_where_knowing_gains_something() -> None:
    tuned, known = NOISE - 1.0, NOISE - 0.8
    won = share_won(NOISE - 0.9, tuned, known)
    assert won is not None
    assert won["mean"] == pytest.approx(0.5)
    assert share_won(NOISE - 0.9, tuned, tuned) is None


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
