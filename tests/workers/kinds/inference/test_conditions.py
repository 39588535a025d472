"""What the evaluation protocol disturbs: parameters, speed, capacity, load, models of held-out samples."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from app.kinds.inference.layout import Layout
from tests.workers.kinds.inference.systems import first_legal, layout, service
from workers.evaluation.statistics import Level
from workers.evaluation.wrappers import applicable_wrappers, neutral, wrap_world
from workers.inputs import Conditions
from workers.kinds.inference.simulator import kernels
from workers.kinds.inference.simulator.world import InferenceWorld

BATCH = 64
SERVERS = [{"name": "cpu", "minimum": 4, "maximum": 4, "price_per_hour": 3600}]
MADE = layout(servers=SERVERS, episode_seconds=50, control_seconds=10, quality={"full_until": 0.1, "zero_at": 20.0})


class Wish:
    """Factors of parameters, a model, or conditions that hold all the time."""

    def __init__(
        self, factors: Mapping[str, float] | None = None, model: int | None = None, **conditions: float
    ) -> None:
        self.factors, self.model, self.constants = factors or {}, model, conditions

    def begin(self, world: Any) -> None:
        world.reseed(1)
        world.scale({name: np.full(world.variety, factor) for name, factor in self.factors.items()})
        if self.model is not None:
            world.compose(np.full(world.batch, self.model))

    def conditions(self, world: Any) -> Any:
        same = {name: np.full(world.batch, value) for name, value in self.constants.items()}
        return neutral(world.batch, world.channels)._replace(**same)


def outcomes(wish: Wish, layout: Layout = MADE, rate: float = 6.0) -> tuple[dict[str, float], InferenceWorld, int]:
    """Means of what users count, the world, and the most servers that worked beside one that was asked for."""
    models = [service(layout, seconds, [rate]) for seconds in (0.4, 0.8)]
    world = InferenceWorld(layout, models, Conditions(BATCH, 0))
    world.disturbances.append(wish)
    world.reset()
    counted, working = world.outcome_increments.copy(), 0
    for _ in range(world.steps):
        step = world.step(first_legal(world.view.mask))
        counted += world.outcome_increments
        working = max(working, int((world.worlds.server_count[..., kernels.STATUS] == kernels.BUSY).sum(axis=1).max()))
        if step.done.all():
            break
    names = [outcome.name for outcome in world.outcomes]
    return dict(zip(names, counted.mean(axis=0), strict=True)), world, working


def test_a_load_brings_more_requests() -> None:
    wishes = Wish(), Wish({"rate.u0": 1.5})
    usual, load = (outcomes(wish)[1].worlds.counts[:, kernels.REQUESTS] for wish in wishes)
    assert load.mean() / usual.mean() == pytest.approx(1.5, abs=4 * (1 / 300 / BATCH) ** 0.5 * 2)


def test_bursts_disperse_requests_that_come_evenly() -> None:
    usual, burst = (
        outcomes(Wish(factors))[1].worlds.counts[:, kernels.REQUESTS] for factors in ({}, {"burst.u0": 1.5})
    )
    assert usual.var() / usual.mean() < 2
    assert burst.var() / burst.mean() > 5  # 1 + 0.5 · 60 in an interval


def test_slow_servers_answer_later_and_repeat_what_fails() -> None:
    usual, slow, failing = (outcomes(wish)[0] for wish in (Wish(), Wish(slowdown=np.log(1.3)), Wish(repeated=0.3)))
    assert slow["mean_delay"] > 1.3 * usual["mean_delay"]
    assert slow["mean_delay"] == pytest.approx(failing["mean_delay"])


def test_lost_servers_start_nothing_and_show_that_they_are_not_idle() -> None:
    assert outcomes(Wish())[2] == 3
    _, world, working = outcomes(Wish(capacity=0.5))
    assert working == 1
    world.reset()
    assert (world.state.idle == 2 - world.state.busy).all()
    assert (world.state.starting == 2).all()


def test_prices_and_qualities_and_weights_count_as_they_are_scaled() -> None:
    usual, changed = outcomes(Wish())[0], outcomes(Wish({"price.cpu": 2.0, "target.u0": 1.5}))[0]
    assert changed["cost"] == pytest.approx(2 * usual["cost"])
    assert changed["server_hours"] == usual["server_hours"]
    assert changed["response_quality"] > usual["response_quality"]


def test_held_out_models_are_followed_while_policies_believe_in_their_own() -> None:
    usual, other = outcomes(Wish()), outcomes(Wish(model=0))
    assert other[0]["mean_delay"] > 1.9 * usual[0]["mean_delay"]
    np.testing.assert_array_equal(other[1].projector.seconds, usual[1].projector.seconds)


def test_every_disturbance_of_the_last_level_has_something_to_disturb() -> None:
    world = InferenceWorld(MADE, [service(MADE, 0.4), service(MADE, 0.8)], Conditions(4, 0))
    names = {wrapper.name for wrapper in applicable_wrappers(Level.ENVIRONMENT, world)}
    assert names == {"seeds", "parameters", "held_out", "noise", "drift", "capacity", "failures", "load"}
    wrap_world(world, Level.ENVIRONMENT, 3).reset()
    assert world.constants.slowdown.shape == (world.intervals, 4)
    assert np.ptp(world.constants.slowdown) > 0


def test_nobody_who_comes_is_disappointed() -> None:
    usual, quiet = outcomes(Wish())[0], outcomes(Wish(), rate=1e-6)[0]
    assert quiet["response_quality"] == 1.0
    assert quiet["dropped"] == quiet["mean_delay"] == 0.0
    assert 0.0 < usual["response_quality"] < 1.0
