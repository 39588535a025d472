"""What became of each request, as pictures tell it, is what the simulator counted."""

import json

import numpy as np
import pytest

from tests.workers.kinds.inference.systems import layout, service
from workers.evaluation.arena import Bare, play
from workers.evaluation.report import page as drawing
from workers.evaluation.report.charts import definition
from workers.evaluation.statistics import Level
from workers.inputs import Conditions, Workload
from workers.kinds.inference import KIND
from workers.kinds.inference.evaluation.pictures import MOST_LINES, delay, pictures, policy_map, quality
from workers.kinds.inference.evaluation.problem import GIVEN_UP, ServedRequests, record_requests
from workers.kinds.inference.simulator.world import InferenceWorld
from workers.kinds.simulated.training import SimulatedTraining, WindowTraining

MADE = layout(
    users=2,
    variants=2,
    servers=[{"name": "cpu", "minimum": 1, "maximum": 2}],
    episode_seconds=12,
    control_seconds=4,
    batches=[1, 4],
    queue_limit=8,
    quality={"full_until": 0.05, "zero_at": 0.6},
)
MODEL = service(MADE, np.array([[[0.1, 0.2], [0.2, 0.4]]]), [6.0, 5.0], 0.2, 0.3)
EPISODES, SEED = 6, 4


def build_world() -> InferenceWorld:
    return InferenceWorld(MADE, [MODEL], Conditions(EPISODES, SEED))


@pytest.fixture(scope="module")
def played() -> dict[str, ServedRequests]:
    rules = KIND.baselines(Workload(MADE.spec))
    return {name: record_requests(build_world(), SEED, Bare(rules[name])) for name in ("largest_batch", "lookahead")}


@pytest.mark.parametrize("name", ["largest_batch", "lookahead"])
def test_every_request_is_told_as_it_was_counted(played: dict[str, ServedRequests], name: str) -> None:
    one = played[name]
    counted = play(build_world(), Level.SEEDS, SEED, Bare(KIND.baselines(Workload(MADE.spec))[name])).outcomes  # [B, O]
    episode = one.requests.episode
    total = np.bincount(episode, minlength=EPISODES)
    answered = one.variant != GIVEN_UP
    by_episode = [
        np.bincount(episode, values, EPISODES) for values in (one.quality, ~answered, np.nan_to_num(one.delay))
    ]
    np.testing.assert_allclose(np.stack(by_episode, 1) / total[:, None], counted[:, :3], atol=1e-9)
    assert (one.delay[answered] > 0).all()
    assert np.isnan(one.delay[~answered]).all()
    assert 0 < (~answered).sum() < answered.sum()
    assert (one.decisions.size.sum(), set(one.size[~answered].tolist())) == (answered.sum(), {0})


def test_all_meet_the_same_requests(played: dict[str, ServedRequests]) -> None:
    first, second = (one.requests for one in played.values())
    np.testing.assert_array_equal(first.time, second.time)
    for row in range(EPISODES):
        for user in range(2):
            own = first.time[(first.episode == row) & (first.user == user)]
            assert (np.diff(own) >= 0).all()


def test_distributions_begin_with_all_and_end_with_what_was_answered(played: dict[str, ServedRequests]) -> None:
    for series, one in zip(quality(played)["panels"][0]["series"], played.values(), strict=True):
        assert (series["y"][0], series["x"][0]) == (1.0, 0.0)
        assert series["y"][50] == pytest.approx((one.quality >= 0.5).mean(), abs=1e-5)
    for series, one in zip(delay(played)["panels"][0]["series"], played.values(), strict=True):
        assert series["y"][-1] == pytest.approx((one.variant != GIVEN_UP).mean(), abs=1e-5)
        assert series["x"] == sorted(series["x"])


def test_the_map_counts_what_is_started_most_often(played: dict[str, ServedRequests]) -> None:
    result = policy_map(MADE, played)
    assert [panel["name"] for panel in result["panels"]] == list(played)
    for panel, one in zip(result["panels"], played.values(), strict=True):
        alone = [cell for cell in panel["cells"] if cell["y"] == "1"]
        own = one.decisions.waiting == 1
        if own.any() and (one.decisions.size[own] == 1).all():
            assert {cell["text"] for cell in alone} == {"1"}
        assert {cell["name"] for cell in panel["cells"]} <= {*MADE.variants, "waits"}


def test_a_training_shows_them_and_a_window_does_not() -> None:
    workload = Workload(MADE.spec, MODEL.to_bytes())
    shown = {"largest_batch": None, "lookahead": None}
    pictures = SimulatedTraining(KIND, workload, 0)._pictures(shown)["pictures"]
    names = [series["name"] for series in pictures["plots"][0]["panels"][0]["series"]]
    assert names[:2] == [*shown]
    assert WindowTraining(KIND, workload, 0, b"")._pictures(shown) == {}


def test_all_is_plain_small_and_drawn(played: dict[str, ServedRequests]) -> None:
    many = {f"{name} {i}": one for i in range(4) for name, one in played.items()}
    result = pictures(MADE, many, ["largest_batch 0", "lookahead 0"])
    text = json.dumps(result, allow_nan=False)
    assert len(text) < 60_000
    assert len(result["plots"][0]["panels"][0]["series"]) == MOST_LINES
    charts = drawing.charts_of_report(result)
    assert len(charts) == 7
    names = {"largest_batch 0", "lookahead 0", "v0", "u0", "u1"}
    assert names <= {value for _, _, chart in charts for value in _values(definition(chart))}


def _values(part: object) -> set[object]:
    if isinstance(part, dict):
        return set().union(*map(_values, part.values()))
    if isinstance(part, list):
        return set().union(*map(_values, part))
    return {part}
