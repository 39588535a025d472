"""What compiled agents see equals what the service sees: `app.kinds.workflow.scheduling.observation` in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.workflow.scheduling.dispatch import EASY, NONE, RLS
from app.kinds.workflow.scheduling.observation import Waiting, features, survey, visible
from app.kinds.workflow.scheduling.rules import FCFS
from app.kinds.workflow.trace import Trace, independent
from workers.kinds.workflow.simulator.compiling import kernel
from workers.kinds.workflow.simulator.observation import Room, described, look, room_for
from workers.kinds.workflow.simulator.pool import NOW, QUEUED, RUNNING, Play, advance, choose, opened

MACHINE = 32


def crowded(tasks: int, seed: int) -> Trace:
    """Jobs that come faster than they are served, of three users and of nobody."""
    rng = np.random.default_rng(seed)
    submit, runtime = np.cumsum(rng.exponential(40.0, tasks)).round(), np.exp(rng.uniform(0.0, 9.0, tasks)).round()
    return independent(
        submit,
        runtime,
        runtime * rng.uniform(1.0, 3.0, tasks),
        rng.integers(1, MACHINE + 1, tasks),
        rng.integers(-1, 3, tasks),
    )


@kernel
def compiled(play: Play, mechanism: int, room: Room) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The candidates [Q] and their features [Q, F]."""
    found = look(play, mechanism, MACHINE, room)
    return found.task.copy(), described(found.seen, 0, len(found.task))


def plain(play: Play, mechanism: int) -> NDArray[np.float64]:
    """Features of the candidates, [Q, F], without a compiler."""
    tasks, pool, now = play.tasks, play.pool, float(play.clock[NOW])
    queue = play.queue[: play.counts[QUEUED]]
    task = queue[visible(tasks.expected[queue], tasks.processors[queue])]
    waiting = Waiting(
        now - tasks.submit[task],
        tasks.expected[task],
        tasks.processors[task],
        play.recent[tasks.user[task]].mean(axis=1),
    )
    running = pool.level[RUNNING]
    return features(
        survey(mechanism, now, waiting, MACHINE, int(pool.level[0]), pool.ends[:running], pool.held[:running])
    )


@pytest.mark.parametrize("mechanism", [NONE, RLS, EASY])
@pytest.mark.parametrize(("tasks", "longest"), [(60, range(10, 61)), (400, range(128, 129))])
def test_the_compiled_features_are_those_of_the_service(tasks: int, longest: range, mechanism: int) -> None:
    play, rng, most = opened(crowded(tasks, 0), MACHINE), np.random.default_rng(0), 0
    room = room_for(len(play.pool.ends))
    while advance(play, mechanism, FCFS):
        task, table = compiled(play, mechanism, room)
        np.testing.assert_allclose(table, plain(play, mechanism), rtol=1e-12, atol=1e-12)
        most = max(most, len(task))
        choose(play, mechanism, FCFS, int(rng.choice(task)))
    assert most in longest  # of a long queue a part is shown
    assert not np.isnan(play.begun).any()
