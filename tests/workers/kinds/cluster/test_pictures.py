"""What pictures tell of jobs is what the clusters counted."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pytest

from app.kinds.cluster.example import SAMPLES
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.lookahead import Tolerance
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.strategies import grid, usual_seconds
from app.kinds.records import JSON
from tests.workers.kinds.cluster.estimation.test_fit import spec, workload
from workers.evaluation.arena import Bare, play
from workers.evaluation.report import page as drawing
from workers.evaluation.report.charts import definition
from workers.evaluation.statistics import Level
from workers.inputs import Conditions, Workload
from workers.kinds.cluster import KIND
from workers.kinds.cluster.evaluation import GPUS, JobRecording, given_back, pictures, record_episodes
from workers.kinds.cluster.fit import Curve, classes, fit, fit_class

SEED, EPISODES = 2, 3
SPEC = ClusterSpec.model_validate(
    {**spec().model_dump(), "convergence": {}, "interval_seconds": 300, "episode_intervals": 24}
)


@pytest.fixture(scope="module")
def known() -> Workload:
    return Workload(SPEC, model=fit(workload(SAMPLES[JSON], SPEC), 0).model)


@pytest.fixture(scope="module")
def played(known: Workload) -> dict[str, JobRecording]:
    rules = KIND.baselines(known)
    worlds = {name: KIND.world(known, Conditions(EPISODES, SEED)) for name in ("soonest", "fifo")}
    return {name: record_episodes(world, SEED, Bare(rules[name])) for name, world in worlds.items()}


def test_every_job_is_told_as_it_was_counted(known: Workload, played: Mapping[str, JobRecording]) -> None:
    for name, one in played.items():
        world = KIND.world(known, Conditions(EPISODES, SEED))
        counted = play(world, Level.SEEDS, SEED, Bare(KIND.baselines(known)[name])).outcomes
        ended = int((~np.isnan(one.completion)).sum())
        assert 0 < ended <= counted[:, 1].sum() <= len(one.completion)  # those of the last interval aren't seen
        assert (one.gpus.sum(axis=1) <= Layout(SPEC).capacity.sum()).all()
        assert not (one.waiting & (one.gpus > 0)).any()
        assert one.gpus.shape == (SPEC.episode_intervals - 1, len(one.time))
    first, second = played.values()
    np.testing.assert_array_equal(first.time, second.time)


def test_pictures_are_plain_values_and_are_drawn(known: Workload, played: Mapping[str, JobRecording]) -> None:
    model = ClusterModel.from_bytes(known.model)
    result = pictures(Layout(SPEC), model, played, list(played), EPISODES)
    assert json.loads(json.dumps(result)) == result
    headings = ["Allocation", "Queue", "Arrivals", "Completion times", "Convergence"]
    assert [plot["heading"] for plot in result["plots"]] == headings
    stacked = [np.sum([series["y"] for series in panel["series"]], axis=0) for panel in result["plots"][0]["panels"]]
    np.testing.assert_allclose(stacked, Layout(SPEC).capacity.sum())
    expected = result["plots"][2]["panels"][0]["series"][0]
    assert (np.array(expected["low"]) <= expected["y"]).all()
    assert (np.array(expected["y"]) <= expected["high"]).all()
    drawn = [definition(chart) for _, _, chart in drawing.charts_of_report(result)]
    assert len(drawn) == len(headings)
    assert "area" in json.dumps(drawn[2])


def test_every_level_is_told_in_terms_of_jobs(known: Workload) -> None:
    problem = KIND.problem(known, (), "nothing was held out")
    descriptions = [problem.description(level) for level in Level]
    assert len(set(descriptions)) == len(descriptions)
    assert all("job" in one.lower() or "As L1" in one for one in descriptions)


def test_heat_maps_tell_what_becomes_of_a_jobs_weight(known: Workload) -> None:
    problem, world = KIND.problem(known, (), ""), KIND.world(known, Conditions(EPISODES, SEED))
    world.reset()
    while not (world.situation.state.asked >= 0).all():
        world.step(np.zeros(EPISODES, np.int64))
    hours, gpus, change = problem.heat_map_points(world.situation, np.array([0, 3, 4]))
    assert change.tolist() == [0, -1, 1]  # as it is, halved, doubled
    state = world.situation.state
    for b, job in enumerate(state.asked.tolist()):
        moment = world.source.moment(state, b)
        at = state.clusters.there[b].tolist().index(job)
        assert gpus[b] == moment.jobs.gpus[at]
        assert hours[b] * 3600 == pytest.approx(
            float(usual_seconds(moment, moment.outlook.seconds_left(grid(moment)))[at]), rel=1e-3
        )
    assert problem.heat_map_points(
        world.situation._replace(state=state._replace(asked=state.asked * 0 - 1)), np.zeros(3, int)
    )[2].tolist() == pytest.approx([np.nan] * 3, nan_ok=True)
    assert "GPUs" in problem.heat_map_axes.y.name
    assert [problem.action_name(action) for action in (0, 3)] == ["the job's weight × 1", "the job's weight × 0.5"]


def test_nothing_is_given_back_without_convergence(known: Workload, played: Mapping[str, JobRecording]) -> None:
    model = ClusterModel.from_bytes(known.model)
    plain = Layout(SPEC.model_copy(update={"convergence": None}))
    result = pictures(plain, model, played, list(played), EPISODES)
    assert "Convergence" not in [plot["heading"] for plot in result["plots"]]
    grid = np.arange(1.0, 31.0)
    each = [Curve(grid, 1 - np.exp(-grid / scale) / 2) for scale in np.linspace(3, 9, 10)]
    curves = classes([0], [True], [fit_class(each, 0)])
    never = given_back(curves, 0, Tolerance(1e-9, 0.5, 1.0))
    assert never.freed == pytest.approx(0)
    assert given_back(model.curves, 0, Tolerance(0.99, 0.0, 1.0)).freed == pytest.approx(0)  # three jobs have ended
    soon = given_back(curves, 0, Tolerance(0.99, 0.0, 1.0))
    assert soon.freed > 0.5
    assert soon.kept_share[0] == 1
    assert 1 / GPUS <= soon.kept_share[-1] < 0.5  # some gain more than was expected, and are restored
    assert 0 < soon.lost < 1
