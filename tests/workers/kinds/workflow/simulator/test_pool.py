"""What holds for every schedule of batch jobs on a pool, whatever the jobs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.kinds.workflow.queue import pool
from app.kinds.workflow.scheduling.dispatch import EASY, MECHANISMS, NONE, RLS, Head, decide
from app.kinds.workflow.scheduling.rules import FCFS, RULES, SJF
from app.kinds.workflow.spec import Limits
from app.kinds.workflow.trace import Trace, independent_jobs
from workers.kinds.workflow.simulator.pool import (
    ALIVE,
    HEAD,
    NOW,
    QUEUED,
    SPARE,
    UNTIL,
    Play,
    initial_play,
    next_event,
    order_waiting,
    play_conservative,
    play_rules,
    settle,
)
from workers.kinds.workflow.simulator.simulate import schedule_by_rule

SIZE = 8
F1, WFP3 = RULES.index("f1"), RULES.index("wfp3")
JOB = st.tuples(st.integers(0, 12), st.integers(0, 30), st.integers(1, SIZE), st.integers(-1, 2))
Floats = NDArray[np.float64]


@st.composite
def logs(draw: st.DrawFn, factors: tuple[float, ...] = (0.5, 1.0, 3.0)) -> Trace:
    """Up to 40 jobs of a few users, many at the same second; estimates may be too short, exact or too long."""
    gap, runtime, processors, user = np.array(draw(st.lists(JOB, min_size=1, max_size=40))).T
    submit, length = np.cumsum(gap // 4 * 4).astype(np.float64), runtime.astype(np.float64)
    return independent_jobs(submit, length, np.ceil(length * draw(st.sampled_from(factors))), processors, user)


def most(trace: Trace, start: Floats, amount: NDArray[np.int64]) -> int:
    """The largest sum of ``amount`` [N] over the jobs that run at a time."""
    times = np.concatenate((start, start + trace.runtime))
    steps = np.concatenate((amount, -amount))
    return int(np.cumsum(steps[np.lexsort((steps, times))]).max())


@pytest.mark.parametrize("mechanism", MECHANISMS)
@given(trace=logs(), rule=st.sampled_from(RULES), order=st.sampled_from([None, "sjf", "strategy"]))
def test_never_more_than_there_is_nor_before_submission(
    mechanism: str, trace: Trace, rule: str, order: str | None
) -> None:
    start = schedule_by_rule(trace, pool(SIZE), rule, mechanism, order).start
    assert most(trace, start, trace.processors) <= SIZE
    assert (start >= trace.submit).all()
    instants = np.concatenate((trace.submit, start + trace.runtime, start if mechanism == "conservative" else []))
    assert np.isin(start, instants).all()  # nothing waits while nothing happens


@pytest.mark.parametrize("mechanism", MECHANISMS)
@given(trace=logs(), tasks=st.integers(1, 3), processors=st.integers(SIZE, SIZE + 4))
def test_users_keep_to_their_limits(mechanism: str, trace: Trace, tasks: int, processors: int) -> None:
    limits = Limits(running_tasks=tasks, processors=processors)
    start = schedule_by_rule(trace, pool(SIZE), "sjf", mechanism, None, limits).start
    for user in range(3):
        own = (trace.user == user).astype(np.int64)
        assert most(trace, start, own) <= tasks
        assert most(trace, start, own * trace.processors) <= processors


@given(trace=logs((1.0,)), fill=st.sampled_from([FCFS, SJF]))
def test_easy_never_delays_the_head_beyond_its_reservation(trace: Trace, fill: int) -> None:
    promised: dict[int, float] = {}
    play = initial_play(trace, SIZE)
    while next_event(play, EASY):
        if play.counts[QUEUED]:
            settle(play, EASY, order_waiting(play, FCFS), order_waiting(play, fill))
        if play.counts[HEAD] >= 0:
            promised.setdefault(int(play.counts[HEAD]), play.clock[UNTIL])
    assert all(play.start[task] <= until for task, until in promised.items())


def test_any_number_of_tasks_may_end_in_one_second() -> None:
    count, instant = 500, np.zeros(500)
    trace = independent_jobs(instant, instant, instant, np.ones(count, np.int64), np.full(count, -1))
    play = initial_play(trace, 2)
    play_rules(play, EASY, FCFS, FCFS)
    assert play.start.tolist() == instant.tolist()
    assert int(play.counts[ALIVE]) == 0


@given(trace=logs((1.0, 3.0)), order=st.sampled_from([FCFS, SJF, WFP3]))
def test_conservative_backfilling_never_delays_anybody(trace: Trace, order: int) -> None:
    trace = trace._replace(user=np.full(trace.tasks, -1))
    play, promised = initial_play(trace, SIZE), np.full(trace.tasks, np.nan)
    play_conservative(play, order, promised)
    assert (play.start <= promised).all()
    if (trace.estimate == trace.runtime).all() and trace.runtime.min() > 0:
        assert (play.start == promised).all()


@settings(max_examples=30)
@given(trace=logs(), mechanism=st.sampled_from([NONE, RLS, EASY]))
def test_plain_code_decides_as_compiled_code_does(trace: Trace, mechanism: int) -> None:
    limits = Limits(running_tasks=2)
    play = initial_play(trace, SIZE, limits)
    while next_event(play, mechanism):
        order, fill = order_waiting(play, F1).copy(), order_waiting(play, SJF).copy()
        tasks = play.tasks._replace(waiting=play.tasks.waiting.copy())
        room = play.pool.room_tasks.copy(), play.pool.room_processors.copy()
        machine = play.pool._replace(room_tasks=room[0], room_processors=room[1])
        chosen = np.zeros(trace.tasks + 1, np.int64)
        plain = decide(mechanism, *_before(play), order, fill, tasks, machine, chosen)
        starts = settle(play, mechanism, order, fill)
        assert plain[0] == starts
        assert plain[1] == (play.counts[HEAD], play.clock[UNTIL], play.counts[SPARE])


def _before(play: Play) -> tuple[float, Head]:
    return play.clock[NOW], Head(int(play.counts[HEAD]), play.clock[UNTIL], int(play.counts[SPARE]))


def test_what_cannot_be_played_is_refused() -> None:
    one = np.array([1.0])
    with pytest.raises(ValueError, match="task 0 needs 9 processors, of which there are 8"):
        initial_play(independent_jobs(one, one, one, np.array([9]), np.array([0])), SIZE)
    with pytest.raises(ValueError, match="task 0 has no run time"):
        initial_play(independent_jobs(one, one * np.nan, one, np.array([1]), np.array([0])), SIZE)
