"""Features of the iterations ahead: as announced, else as past executions had them, never the last one for ever."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest

from app.kinds.contract.engine import Pending
from app.kinds.contract.inputs import InvalidInput
from app.kinds.engine import RunMemory
from app.kinds.iterative.announced import MOST_UPCOMING, pad_announced
from app.kinds.iterative.engine import ENGINE, CheckedReport
from app.kinds.iterative.heuristics import best_allocation
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.observation import view
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reasons import forecast
from app.kinds.iterative.report import IterationRunStart
from app.kinds.iterative.state import RunState, State, advance, begin
from tests.answers import all_answered
from tests.app.kinds.iterative.decisions.deciding import compiled
from tests.planted import planted_spec, planted_table

ITERATIONS = 30
SPEC = planted_spec(features=[{"name": "batch", "minimum": 32, "maximum": 512}], iterations=ITERATIONS)
LAYOUT = Layout(SPEC)
NODES = np.array([32.0, 64.0, 128.0, 256.0, 512.0])
GROWING = 64.0 * 4 ** (np.arange(ITERATIONS) / ITERATIONS)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def table(courses: Any = None, members: int = 0) -> ModelTable:
    """Seconds as in the planted table at a batch of 128, and in proportion to the batch."""
    plain = planted_table(SPEC)
    logs = (plain.log_mean + np.log(NODES / 128)[:, None]).astype(np.float32)
    offsets = np.random.default_rng(1).normal(0, 0.05, (members, *logs.shape)).astype(np.float32)
    course = None if courses is None else np.asarray(courses, np.float32)[:, :, None]
    return replace(plain, log_mean=logs, feature_nodes=(NODES,), courses=course, members=offsets if members else None)


def after_one(projector: Projector, batch: float, upcoming: Sequence[float] = ()) -> State:
    """A run at 8 executors whose first iteration took what the model says."""
    state = begin(projector, np.array([[4]]))
    seconds = (2 + 60 / 8 + 0.8) * batch / 128
    state = advance(projector, state, np.array([[4]], np.int16), np.array([[seconds]]), np.array([[batch]]))
    return state._replace(upcoming=pad_announced([np.array(upcoming).reshape(-1, 1)], 1))


def rest(state: State, projector: Projector) -> float:
    """Projected seconds at the end of the run, less those so far, at 8 executors."""
    here = LAYOUT.index(state.levels)
    return float(forecast(projector, state, here, here, np.zeros(1)).projected[0, 0, 0] - state.elapsed[0, 0])


def exact(projector: Projector, state: State, batches: Any) -> float:
    """The same by hand: the model's seconds under ``batches``, with noise and the run effect's posterior."""
    spread = projector.noise_variance[0] / 2 + state.effect[0, 0] + state.variance[0, 0] / 2
    return float((10.3 * np.asarray(batches) / 128).sum() * np.exp(spread))


@pytest.mark.parametrize("members", [0, 3])
def test_without_announcement_the_rest_is_what_past_executions_had_whatever_was_reported_last(members: int) -> None:
    believed = table([GROWING], members)
    if members:
        believed = replace(believed, members=np.zeros_like(believed.members))
    projector = Projector(LAYOUT, believed)
    for last in (32.0, 512.0):
        state = after_one(projector, last)
        assert rest(state, projector) == pytest.approx(exact(projector, state, GROWING[1:]), rel=1e-3)


def test_where_executions_differ_the_rest_is_their_distributions() -> None:
    courses = np.exp(np.random.default_rng(0).uniform(np.log(64), np.log(256), (400, ITERATIONS)))
    projector = Projector(LAYOUT, table(courses))
    state = after_one(projector, 512.0)
    assert rest(state, projector) == pytest.approx(exact(projector, state, courses[:, 1:].mean(axis=0)), rel=0.01)


def test_what_no_execution_changed_stays_as_it_was_reported() -> None:
    projector = Projector(LAYOUT, table())
    for last in (32.0, 200.0, 512.0):
        state = after_one(projector, last)
        assert rest(state, projector) == pytest.approx(exact(projector, state, [last] * 29), rel=1e-6)


@pytest.mark.parametrize("courses", [None, [GROWING]])
@pytest.mark.parametrize("count", [1, 10, 29])
def test_what_is_announced_is_projected_and_the_course_goes_on_after_it(courses: Any, count: int) -> None:
    projector = Projector(LAYOUT, table(courses))
    entries = [512.0, 32.0] * 15
    state = after_one(projector, 100.0, entries[:count])
    after = GROWING[1 + count :] if courses else [100.0] * (29 - count)
    assert rest(state, projector) == pytest.approx(exact(projector, state, [*entries[:count], *after]), rel=1e-3)


def test_the_outlook_of_every_action_follows_what_is_announced() -> None:
    projector = Projector(LAYOUT, table([GROWING], members=3))
    light, heavy, silent = (after_one(projector, 128.0, result) for result in ([32.0] * 29, [512.0] * 29, []))
    best = [int(best_allocation(projector, state)[0, 0]) for state in (light, silent, heavy)]
    assert best == sorted(best)
    assert best[0] < best[2]
    outlooks = [view(projector, state).outlook[0].max() for state in (light, silent, heavy)]
    assert outlooks == sorted(outlooks, reverse=True)


def test_a_batch_of_runs_is_each_run_by_itself() -> None:
    projector = Projector(LAYOUT, table([GROWING], members=3))
    entries = [[], [64.0] * 29, [512.0, 256.0]]
    alone = [after_one(projector, 128.0, one) for one in entries]
    upcoming = pad_announced([state.upcoming[0] for state in alone], 1)
    fields = zip(*(state[:-1] for state in alone), strict=True)
    together = State(*[*(np.concatenate(parts) for parts in fields), upcoming])
    observation = view(projector, together)
    here = LAYOUT.index(together.levels)
    promised = forecast(projector, together, here, here + 1, np.zeros(3))
    for i, state in enumerate(alone):
        one = view(projector, state)
        np.testing.assert_allclose(observation.outlook[i], one.outlook[0], rtol=1e-9)
        np.testing.assert_allclose(observation.observation[i], one.observation[0], rtol=1e-9)
        mine = forecast(projector, state, here[:1], here[:1] + 1, np.zeros(1))
        for name in ("mean", "low", "high"):
            np.testing.assert_allclose(getattr(promised, name)[i], getattr(mine, name)[0], rtol=1e-9)
        np.testing.assert_allclose(promised.projected[:, i], mine.projected[:, 0], rtol=1e-9)
        np.testing.assert_allclose(promised.cost[:, i], mine.cost[:, 0], rtol=1e-9)


def test_the_band_of_the_next_iteration_is_at_its_own_features_and_wider_where_nobody_knows_them() -> None:
    courses = np.exp(np.random.default_rng(0).uniform(np.log(64), np.log(256), (400, ITERATIONS)))
    projector = Projector(LAYOUT, table(courses))
    silent, result = after_one(projector, 512.0), after_one(projector, 512.0, [256.0])
    here = LAYOUT.index(silent.levels)
    unknown, known = (forecast(projector, state, here, here, np.zeros(1)) for state in (silent, result))
    assert known.mean[0, 0] / (10.3 * 2) == pytest.approx(np.exp(result.effect[0, 0] + 0.15**2 / 2), rel=1e-6)
    drawn = np.random.default_rng(1).choice(courses[:, 1], 4000)
    seconds = 10.3 * drawn / 128 * np.exp(silent.effect[0, 0] + 0.16 * np.random.default_rng(2).normal(size=4000))
    current = ((unknown.low[0, 0] < seconds) & (seconds < unknown.high[0, 0])).mean()
    assert 0.87 < current < 0.95
    assert np.log(unknown.high / unknown.low)[0, 0] > 1.5 * np.log(known.high / known.low)[0, 0]


def test_the_observation_tells_of_announced_iterations() -> None:
    projector = Projector(LAYOUT, table([GROWING]))
    names = LAYOUT.observation_names
    lengths = [names.index(f"length.{i}") for i in range(4)]
    silent, result = (view(projector, after_one(projector, 128.0, t)).observation[0] for t in ([], [32.0, 512.0]))
    np.testing.assert_allclose(result[lengths[1]] - result[lengths[0]], np.log(16), rtol=1e-5)
    np.testing.assert_allclose(result[lengths[2:]], silent[lengths[2:]])


def engine_run(on: Any, start: dict[str, Any]) -> Any:
    return ENGINE.begin(on, "r", IterationRunStart(workload="w", **start), NOW).state


def reported(on: Any, state: Any, iteration: int, **message: Any) -> Any:
    body = {
        "allocation": {"executors": 8},
        "metrics": {"iteration_seconds": 10.0},
        "features": {"batch": 100},
        **message,
    }
    report = ENGINE.read(on, state, iteration, ENGINE.decode(msgspec.json.encode(body)))
    return all_answered(ENGINE.answer(on, [Pending("r", iteration, state, report, {}, None)], NOW))[0]


def announcement(*batches: float) -> list[dict[str, Any]]:
    return [{"features": {"batch": batch}} for batch in batches]


def test_an_announcement_holds_until_another_one_replaces_or_withdraws_it() -> None:
    on = compiled(SPEC, table([GROWING]))
    state = engine_run(on, {"features": {"batch": 64}, "upcoming": announcement(70, 80, 90)})
    assert state.state.upcoming[:, 0].tolist() == [64, 70, 80, 90]
    state = reported(on, state, 0).state
    assert state.state.upcoming[:, 0].tolist() == [70, 80, 90]
    assert reported(on, state, 1, upcoming=None).state.state.upcoming[:, 0].tolist() == [80, 90]
    assert reported(on, state, 1, upcoming=[]).state.state.upcoming.tolist() == []
    state = reported(on, state, 1, upcoming=announcement(33)).state
    assert state.state.upcoming.tolist() == [[33]]
    assert reported(on, state, 2).state.state.upcoming.tolist() == []


def test_an_announcement_survives_a_restart() -> None:
    on = compiled(SPEC, table([GROWING], members=3))
    state = reported(on, engine_run(on, {}), 0, upcoming=announcement(*[500.0] * 20)).state
    again = ENGINE.restore(msgspec.json.decode(ENGINE.serialise(state)))
    own: RunState = state.state
    np.testing.assert_array_equal(again.state.upcoming, own.upcoming)
    np.testing.assert_array_equal(again.state.row, own.row)
    assert reported(on, again, 1).decision == reported(on, state, 1).decision
    assert ENGINE.weight(again) >= own.row.nbytes + 160
    forgetful = RunMemory(RunState(own.row, own.upcoming[:0], own.notices))
    assert reported(on, forgetful, 1).decision != reported(on, state, 1).decision


def test_a_state_without_announcement_is_restored_without() -> None:
    on = compiled(SPEC, table())
    stored = msgspec.json.decode(ENGINE.serialise(reported(on, engine_run(on, {}), 0).state))
    assert ENGINE.restore(stored).state.upcoming.size == 0
    assert reported(on, ENGINE.restore(stored), 1).state.state.upcoming.size == 0


@pytest.mark.parametrize(
    ("iteration", "upcoming", "pointer", "accepted"),
    [
        (28, announcement(64, 64), "/upcoming", "must hold at most 1 iterations: 1 iterations remain"),
        (29, announcement(64), "/upcoming", "must hold at most 0 iterations: 0 iterations remain"),
        (0, [*announcement(64), {"features": {"batch": 64, "depth": 1}}], "/upcoming/1/features/depth", "known: batch"),
        (0, announcement(64, 600), "/upcoming/1/features/batch", "must be between 32 and 512"),
    ],
)
def test_an_announcement_that_does_not_fit_is_refused(
    iteration: int, upcoming: Any, pointer: str, accepted: str
) -> None:
    on = compiled(SPEC, table())
    with pytest.raises(InvalidInput) as refused:
        reported(on, engine_run(on, {}), iteration, upcoming=upcoming)
    (issue,) = refused.value.errors
    assert issue.pointer == pointer
    assert accepted in issue.message


def test_more_than_can_be_announced_at_once_is_refused() -> None:
    long = planted_spec(features=[{"name": "batch", "minimum": 32, "maximum": 512}], iterations=5_000)
    on = compiled(long, None)
    with pytest.raises(InvalidInput, match=f"at most {MOST_UPCOMING} items"):
        reported(on, engine_run(on, {}), 0, upcoming=announcement(*[64.0] * (MOST_UPCOMING + 1)))


def test_a_workload_without_features_announces_none() -> None:
    on = compiled()
    with pytest.raises(InvalidInput, match="has no features"):
        ENGINE.read(
            on,
            RunMemory(None),
            0,
            ENGINE.decode(
                b'{"allocation": {"executors": 8}, "metrics": {"iteration_seconds": 1}, "upcoming": [{"features": {}}]}'
            ),
        )


def test_a_start_announces_only_after_its_first_iteration() -> None:
    on = compiled(SPEC, table())
    with pytest.raises(InvalidInput, match="/features: is required with upcoming"):
        engine_run(on, {"upcoming": announcement(64)})


@pytest.mark.parametrize("body", [b'{"upcoming": [{"batch": 1}]}', b'{"upcoming": 3}', b'{"upcoming": [{}]}'])
def test_what_is_no_announcement_is_refused_by_field(body: bytes) -> None:
    with pytest.raises(ValueError, match="upcoming"):
        ENGINE.decode(body)


def test_an_empty_announcement_reads_as_one() -> None:
    on = compiled(SPEC, table())
    report = ENGINE.decode(
        b'{"allocation": {"executors": 8}, "metrics": {"iteration_seconds": 1}, "features": {"batch": 64}}'
    )
    assert ENGINE.read(on, RunMemory(None), 0, report) == CheckedReport([4], [1.0], [64.0], None)
