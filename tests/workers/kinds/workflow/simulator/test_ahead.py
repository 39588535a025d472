"""Simulating ahead: scenarios are played as the simulator plays, and only what surely pays is changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.kinds.fields import converted
from app.kinds.workflow.advance import advance
from app.kinds.workflow.ahead import KNOWN, MOST, Outlook, outlook_of
from app.kinds.workflow.queue import Layout, QueueReport, begin
from app.kinds.workflow.scheduling.dispatch import EASY, NONE
from app.kinds.workflow.scheduling.rules import SAF
from app.kinds.workflow.scheduling.situation import QueueSituation, ranking
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.trace import Trace, independent_jobs
from workers.kinds.workflow.simulator.ahead import (
    TABLE,
    Course,
    Present,
    Scenario,
    best_of,
    compare,
    cost_of,
    first_decision,
    play_ahead,
    present_of,
    simulate_ahead,
)
from workers.kinds.workflow.simulator.pool import (
    ALIVE,
    ARRIVED,
    ARRIVING,
    QUEUED,
    Play,
    initial_play,
    next_event,
    order_waiting,
    play_rules,
    settle,
)

SIZE = 8


def jobs(seed: int, count: int, gap: float = 60.0, known: bool = True) -> Trace:
    """Jobs of three users, one of them unknown; estimates are thrice the run times, or missing."""
    rng = np.random.default_rng(seed)
    runtime = rng.integers(20, 900, count).astype(np.float64)
    submit = np.cumsum(rng.exponential(gap, count)).round() if gap else np.zeros(count)
    reported = np.full(count, np.nan) if known else 3 * runtime
    return independent_jobs(submit, runtime, reported, rng.integers(1, SIZE, count), rng.integers(-1, 2, count))


@pytest.mark.parametrize("mechanism", [NONE, EASY])
def test_a_scenario_is_played_as_the_simulator_plays(mechanism: int) -> None:
    """A job holds the whole machine for 5 s; eleven come a second after its start, and wait."""
    for seed in range(20):
        trace = jobs(seed, 12, gap=0.0)
        trace.runtime[0], trace.processors[0], trace.submit[1:] = 5.0, SIZE, 1.0
        play = initial_play(trace, SIZE)
        play_rules(play, mechanism, SAF, SAF)
        area = (trace.runtime * trace.processors)[1:]
        order = 1 + np.argsort(area, kind="stable")
        run, need = trace.runtime[order], trace.processors[order]
        left, current = np.full(1, 4.0), np.full(1, SIZE)
        scenario = Scenario(np.zeros(11), need, run, run, np.sort(area), left, left, current)
        course = Course(
            np.zeros(11, np.int64), np.zeros(12), np.zeros(12), np.zeros(12, np.int64), np.zeros(12),
            np.zeros(12, np.int64), np.zeros(11), np.zeros(5, np.int64),
        )  # fmt: skip
        head = int(np.flatnonzero(order == 1)[0]) if mechanism == NONE else -1  # the first that came is committed
        first_decision(course, scenario, np.array([0, head, 11]), mechanism, -1, -1)
        cost = cost_of(course, scenario, mechanism, 11)
        np.testing.assert_array_equal(course.begun + 1.0, play.start[order])
        assert cost == pytest.approx(((play.start[order] - 1.0) / np.maximum(run, 10.0)).sum())


def outlook(lasts: tuple[float, ...], mechanism: int = EASY) -> Outlook:
    """Jobs that need the whole machine and whose run times are known, in the order given."""
    count, length = len(lasts), np.log(np.array(lasts))
    return Outlook(
        need=np.full(count, SIZE), plan=np.array(lasts), score=np.arange(float(count)), length=length,
        share=np.full(count, KNOWN), processors=np.zeros(0, np.int64), planned=np.zeros(0), ran=np.zeros(0),
        running_length=np.zeros(0), running_share=np.zeros(0), past=np.zeros(0), free=SIZE, head=-1, waiting=count,
        mechanism=mechanism, seed=3,
    )  # fmt: skip


@pytest.mark.parametrize("mechanism", [NONE, EASY])
def test_the_short_job_goes_first_if_the_order_has_it_wrong_and_nothing_changes_if_right(mechanism: int) -> None:
    wrong = simulate_ahead(outlook((10_000.0, 10.0), mechanism))
    assert (wrong.accepted, wrong.front[0], wrong.barred[0]) == (True, 1, -1)
    assert wrong.gain[0] == pytest.approx(10_000 / 10 - 10 / 10_000)
    assert wrong.error[0] == pytest.approx(0.0, abs=1e-4)
    right = simulate_ahead(outlook((10.0, 10_000.0), mechanism))
    assert not right.accepted
    assert right.gain.max() <= 0.0
    assert right.gain.min() == pytest.approx(10 / 10_000 - 10_000 / 10)


def test_what_is_uncertain_is_not_changed() -> None:
    """Two jobs with the same prediction: in each scenario either may be the shorter, and neither surely is."""
    same = outlook((3_600.0, 3_600.0))
    unsure = simulate_ahead(replace(same, share=np.full(2, -1.0)))
    assert not unsure.accepted
    assert unsure.error.min() > 0.0


def test_in_a_large_queue_only_the_best_change_is_played_to_the_end() -> None:
    """Of 40 jobs five are short, the second most; sixty more run on, and others come every five minutes."""
    lasts = (10_000.0, 10.0, 20.0, 30.0, 40.0, 50.0, *(10_000.0 for _ in range(34)), *(600.0 for _ in range(128)))
    ran = np.full(60, 1e6)
    large = replace(
        outlook(lasts), waiting=40, past=np.linspace(0.0, 38_100.0, 128), processors=np.ones(60, np.int64), planned=ran,
        ran=ran, running_length=np.log(ran), running_share=np.full(60, KNOWN),
    )  # fmt: skip
    for one, most in ((large, 1), (outlook(lasts[:12]), 5)):
        state = np.array([one.free, one.head, one.waiting])
        comparison = compare(
            Present._make([*(getattr(one, name) for name in Present._fields[:-1]), state]), TABLE, EASY, 0
        )
        assert comparison.whole[1:].sum() == most
        assert comparison.front[best_of(comparison)] == 1
        assert comparison.gain[best_of(comparison)] > 900.0


def test_the_same_decision_is_made_again() -> None:
    request = replace(outlook((3_600.0, 1_800.0, 900.0)), share=np.array([-0.5, -3.0, -2.0]))
    one, two = simulate_ahead(request), simulate_ahead(request)
    np.testing.assert_array_equal(one.gain, two.gain)
    assert not np.array_equal(one.gain, simulate_ahead(replace(request, seed=4)).gain)


@pytest.mark.parametrize("mechanism", [NONE, EASY])
@pytest.mark.parametrize("known", [True, False])
def test_every_job_starts_within_capacity(mechanism: int, known: bool) -> None:
    changes = 0
    for seed in range(4):
        trace = jobs(seed, 80, known=known)
        play = initial_play(trace, SIZE, predicts=not known)
        changes += play_ahead(play, mechanism, TABLE)
        assert (play.start >= trace.submit).all()
        assert int(play.counts[ALIVE]) == 0
        times = np.concatenate((play.start, play.start + trace.runtime))
        steps = np.concatenate((trace.processors, -trace.processors))
        assert np.cumsum(steps[np.lexsort((steps, times))]).max() <= SIZE
    assert changes > 0


@pytest.mark.parametrize("mechanism", [NONE, EASY])
def test_the_order_stays_while_more_wait_than_a_scenario_holds(mechanism: int) -> None:
    """A job holds the whole machine for 5 s, and the others come a second after its start. Those that start while too
    many wait start as by the order alone; later ones do not."""
    others, later = MOST + 20, 0
    for seed in range(4):
        trace = jobs(seed, 1 + others, gap=0.0)
        trace.runtime[0], trace.processors[0], trace.submit[1:] = 5.0, SIZE, 1.0
        ahead, alone = initial_play(trace, SIZE), initial_play(trace, SIZE)
        play_ahead(ahead, mechanism, TABLE)
        play_rules(alone, mechanism, SAF, SAF)
        early = alone.start <= np.sort(alone.start)[others - MOST]
        np.testing.assert_array_equal(ahead.start[early], alone.start[early])
        later += int((ahead.start != alone.start).sum())
    assert later > 0


def test_the_service_sees_what_the_simulator_sees() -> None:
    """One queue, played event by event and reported: each decision's present is the same on both sides."""
    spec = {"name": "w", "kind": "workflow", "nodes": [{"name": "n", "processors": SIZE, "minimum": 1, "maximum": 1}]}
    layout = Layout(Spec.model_validate(spec))
    trace = jobs(5, 60, known=False)
    trace = trace._replace(submit=np.arange(60.0) * 45 + 0.5)  # no two events at one time
    play, state, compared = initial_play(trace, SIZE, predicts=True), begin(layout), 0
    while next_event(play, EASY):
        state = advance(layout, state, converted(report_of(trace, play, state.queue.names), QueueReport))
        if not play.counts[QUEUED]:
            continue
        situation = QueueSituation(layout, state)
        order = situation.ready[np.argsort(ranking("lookahead", situation), kind="stable")]
        outlook = outlook_of(situation, order, EASY)
        row = {f"t{i}": i for i in range(trace.tasks)}
        jobs_in_order = np.array([row[state.queue.names[k]] for k in order])
        present = present_of(play, jobs_in_order, EASY)
        for name in Present._fields[:-1]:
            np.testing.assert_allclose(
                getattr(outlook, name), getattr(present, name), rtol=1e-9, atol=1e-9, err_msg=name
            )
        np.testing.assert_array_equal(outlook.score, present.score)  # ties are ties on both sides
        assert [outlook.free, outlook.waiting] == present.state[[0, 2]].tolist()
        compared += len(order) > 1
        by_area = order_waiting(play, SAF).copy()
        settle(play, EASY, by_area, by_area)
    assert compared > 20


def report_of(trace: Trace, play: Play, known: list[str]) -> dict[str, Any]:
    """The delta that tells a service what the simulation has come to."""
    now, there = float(play.clock[0]), [int(name[1:]) for name in known]
    begun = play.start.tolist()
    ended = [i for i in there if begun[i] + trace.runtime[i] <= now]
    began = [i for i in there if not np.isnan(begun[i]) and i not in ended]
    report: dict[str, Any] = {"now": now, "delta": True}
    report["running"] = [{"id": f"t{i}", "node": "n-0", "start": begun[i]} for i in began]
    report["finished"] = [
        {"id": f"t{i}", "node": "n-0", "start": begun[i], "end": begun[i] + float(trace.runtime[i])} for i in ended
    ]
    if play.counts[ARRIVED]:
        i = int(play.counts[ARRIVING]) - 1
        user = trace.user[i]
        report["queued"] = [
            {
                "id": f"t{i}", "processors": int(trace.processors[i]), "estimate": float(trace.estimate[i]),
                "submit": float(trace.submit[i]), "user": f"u{user}" if user >= 0 else None,
            }
        ]  # fmt: skip
    return report
