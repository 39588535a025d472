import numpy as np
import pytest
from hypothesis import given

from app.kinds.cluster import jobs as table
from app.kinds.cluster.jobs import NEVER
from app.kinds.cluster.placement import Rule, Situation, in_order, place
from app.kinds.cluster.strategies import SECONDS, equal_share, fifo, optimus, slaq, srtf, tiresias
from tests.app.kinds.cluster.situations import Planted, situations

RULES = [equal_share, fifo, optimus, slaq, srtf, tiresias]


@pytest.mark.parametrize("rule", RULES)
@given(situations())
def test_no_node_gives_more_than_it_has_and_no_job_gets_less_than_it_can_use(rule: Rule, situation: Situation) -> None:
    wanted = rule(situation)
    placement = place(situation, wanted)
    assert (placement >= 0).all()
    assert (placement.sum(axis=0) <= situation.capacity).all()
    np.testing.assert_array_equal(placement.sum(axis=1), wanted.gpus)
    runs = wanted.gpus > 0
    assert (wanted.gpus[runs] >= situation.jobs.minimum[runs]).all()
    assert (wanted.gpus <= situation.jobs.maximum).all()
    assert sorted(wanted.order.tolist()) == list(range(len(wanted.gpus)))


@pytest.mark.parametrize("rule", RULES)
@given(situations())
def test_who_keeps_a_number_keeps_its_nodes_while_they_are_there(rule: Rule, situation: Situation) -> None:
    before = situation.jobs.allocation
    wanted = rule(situation)
    after = place(situation, wanted)
    same = before.sum(axis=1) == wanted.gpus
    crowded = (before * same[:, None]).sum(axis=0) > situation.capacity
    undisturbed = same & ~(before[:, crowded] > 0).any(axis=1)
    np.testing.assert_array_equal(after[undisturbed], before[undisturbed])


@given(situations())
def test_equal_shares_differ_by_one_where_nothing_binds(situation: Situation) -> None:
    gpus, jobs = equal_share(situation).gpus, situation.jobs
    free = (gpus > jobs.minimum) & (gpus < jobs.maximum)
    if free.any():
        assert gpus[free].max() - gpus[free].min() <= 1


@given(situations())
def test_nobody_passes_in_first_come_first_served(situation: Situation) -> None:
    runs = fifo(situation).gpus > 0
    assert (runs == np.sort(runs)[::-1]).all()


@given(situations())
def test_of_those_that_ask_alike_the_undemoted_run_first(situation: Situation) -> None:
    gpus, jobs = tiresias(situation).gpus, situation.jobs
    for one in np.flatnonzero((jobs.demoted == NEVER) & (gpus == 0)):
        assert not ((gpus > 0) & (jobs.demoted < NEVER) & (jobs.requested >= jobs.requested[one])).any()


@given(situations())
def test_no_gpu_saves_more_elsewhere_under_optimus(situation: Situation) -> None:
    gpus, most = optimus(situation).gpus, situation.gpus
    with np.errstate(invalid="ignore"):
        saved = -np.diff(situation.outlook.update_seconds(), axis=1) * situation.outlook.updates()[:, None]
    moved = gpus > situation.jobs.minimum
    last = [saved[job, gpus[job] - 1] for job in np.flatnonzero(moved)]
    open_ = np.flatnonzero((gpus > 0) & (gpus < np.minimum(situation.jobs.maximum, most)))
    following = [saved[job, gpus[job]] for job in open_]
    if last and following:
        assert min(last) >= max(following)
    if int(gpus.sum()) < most:
        assert not following or max(following) <= 0


@given(situations())
def test_more_than_there_is_is_refused(situation: Situation) -> None:
    with pytest.raises(ValueError, match="are wanted of"):
        place(situation, in_order(situation.jobs.requested + situation.gpus))


@given(situations())
def test_no_gpu_makes_the_loss_fall_faster_elsewhere_under_slaq(situation: Situation) -> None:
    jobs, gpus = situation.jobs, slaq(situation).gpus
    fall = situation.outlook.loss_reduction(np.arange(situation.gpus + 1), SECONDS)
    saved = np.diff(fall, axis=1)
    assert int(gpus.sum()) <= situation.gpus
    last = [saved[job, gpus[job] - 1] for job in np.flatnonzero(gpus > jobs.minimum)]
    open_ = np.flatnonzero((gpus > 0) & (gpus < np.minimum(jobs.maximum, situation.gpus)))
    following = [saved[job, gpus[job]] for job in open_]
    if last and following:
        assert min(last) >= max(following)
    if int(gpus.sum()) < situation.gpus:
        assert not following or max(following) <= 0


def test_slaq_gives_to_jobs_whose_loss_still_falls() -> None:
    queue, ones = np.zeros(2, np.int64), np.ones(2, np.int64)
    jobs = table.arrive(table.none(1), np.zeros(2), queue, ones, (ones, 4 * ones))
    outlook = Planted(4, np.array([9.0, 9.0]), np.zeros(2), np.array([5.0, 500.0]), 4 * ones)
    gpus = slaq(Situation(0.0, np.array([4]), jobs, outlook, 0.0)).gpus
    assert gpus.tolist() == [3, 1]
