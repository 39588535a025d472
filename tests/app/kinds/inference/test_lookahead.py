"""What looking ahead compares, beside the same written out start by start."""

from typing import Any

import numpy as np
import pytest

from app.kinds.inference.dynamics import NOTHING_LOADED, Projector, State, view_of
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.scaling import CHANGES, DECIMALS, HORIZON, MOST_SIZES_AHEAD, POINTS, Lookahead
from app.kinds.inference.spec import InferenceSpec

RUNS = 200


def workload(shape: str, switching: float) -> Layout:
    """Two classes of servers, three users and variants; qualities fall in one way or the other."""
    values = {
        "name": "x",
        "kind": "inference",
        "variants": [{"name": f"v{i}", "accuracy": 0.6 + 0.1 * i} for i in range(3)],
        "servers": [{"name": f"c{i}", "minimum": 1, "maximum": 3, "switch_seconds": 0.02 * i} for i in range(2)],
        "users": [
            {"name": f"u{i}", "weight": 1 + i, "quality": {"full_until": 0.1, "zero_at": 0.5 + i, "shape": shape}}
            for i in range(3)
        ],
        "batches": [1, 2, 4, 8, 16],
        "weights": {"switching": switching},
    }
    return Layout(InferenceSpec.model_validate(values))


def seconds_of(layout: Layout) -> np.ndarray:
    """Larger variants and batches take longer, the second class half as long, [C, V, K]."""
    each = 0.02 * 1.7 ** np.arange(3)[:, None] * (0.5 + 0.5 * layout.batches)
    return np.stack([each, each / 2])


def planted(layout: Layout) -> State:
    """Runs in all states: nobody waits, few do, very many do."""
    rng, users, classes = np.random.default_rng(3), (RUNS, len(layout.users)), (RUNS, len(layout.servers))
    waiting = rng.poisson(rng.choice([0, 1, 6, 50], users))
    oldest = np.where(waiting > 0, rng.exponential(0.4, users), 0.0)
    idle, busy, starting = (rng.integers(0, 3, classes) for _ in range(3))
    return State(
        waiting,
        oldest,
        np.where(waiting > 1, oldest * rng.random(users), oldest),
        rng.exponential(8.0, users),
        rng.random(users),
        idle,
        busy,
        starting,
        rng.random(RUNS),
        rng.integers(0, len(layout.servers), RUNS),
        rng.integers(-1, len(layout.variants), RUNS),
    )


def worth(layout: Layout, state: State, run: int, start: tuple[int, int, int]) -> float:
    """Of one start in one run, by the words of the module."""
    user, variant, size = start
    quality, weights, table = layout.quality, layout.spec.weights, seconds_of(layout)
    server, loaded = state.context[run], state.loaded[run]
    switching = [layout.switch[server] * (other != loaded) for other in range(len(layout.variants))]
    took = table[server, variant, size] + switching[variant]
    taken = min(layout.batches[size], state.waiting[run, user])

    def age(whose: int, place: float) -> float:
        between = place / max(state.waiting[run, whose] - 1, 1)
        return float(state.oldest[run, whose] + between * (state.newest[run, whose] - state.oldest[run, whose]))

    own = [quality.by_delay(user, age(user, point * max(taken - 1, 0)) + took) for point in POINTS]
    now = taken * quality.weight[user] * quality.accuracy[variant] * np.mean(own)
    left = state.waiting[run].astype(float)
    left[user] -= taken
    servers = max(state.idle[run].sum() + state.busy[run].sum(), 1)
    pause, span = took / servers, HORIZON * quality.zero_at.mean()
    sizes = np.unique(np.linspace(0, len(layout.batches) - 1, MOST_SIZES_AHEAD).round().astype(int))
    ways = []
    for other in range(len(layout.variants)):
        for one in sizes:
            batch = table[server, other, one] + switching[other]
            rate, selection = servers * layout.batches[one] / batch, 0.0
            for whose in range(len(layout.users)):
                first, arriving = taken if whose == user else 0, state.rate[run].sum()
                waited, came = [], []
                for point in POINTS:
                    delay = left.sum() / rate * point + batch + pause
                    waited.append(quality.by_delay(whose, age(whose, first + point * max(left[whose] - 1, 0)) + delay))
                    at = point * span
                    served = max(at - pause, 0.0)
                    queue = max(left.sum() + arriving * (at - served) + (arriving - rate) * served, 0.0)
                    came.append(quality.by_delay(whose, max(pause - at, 0.0) + queue / rate + batch))
                remaining = left[whose] * np.mean(waited) + span * state.rate[run, whose] * np.mean(came)
                selection += quality.weight[whose] * remaining
            ways.append(quality.accuracy[other] * selection)
    changed = loaded not in (NOTHING_LOADED, variant)
    return float(np.round(weights.quality * (now + max(ways)) - CHANGES * weights.switching * changed, DECIMALS))


@pytest.mark.parametrize(("shape", "switching"), [("linear", 0.0), ("exponential", 0.1)])
def test_many_runs_at_once_are_decided_as_start_by_start(shape: str, switching: float) -> None:
    layout = workload(shape, switching)
    state = planted(layout)
    legal = view_of(layout, state).mask
    projector = Projector(layout, seconds_of(layout))
    chosen = Lookahead().start(projector, state, legal)
    for run in range(0, RUNS, 12):
        starts = [a for a in range(1, 1 + layout.dispatches) if legal[run, a]]
        values = [worth(layout, state, run, np.unravel_index(a - 1, layout.shape)) for a in starts]  # type: ignore[arg-type]
        assert chosen[run] == (starts[int(np.argmax(values))] if starts else WAIT)


def test_a_run_is_decided_alike_alone_and_among_others() -> None:
    layout = workload("linear", 0.1)
    state = planted(layout)
    projector, legal = Projector(layout, seconds_of(layout)), view_of(layout, state).mask
    chosen = Lookahead().start(projector, state, legal)
    for run in range(RUNS):
        rows: list[Any] = [part[run : run + 1] for part in state]
        alone = State(*rows)
        assert Lookahead().start(projector, alone, legal[run : run + 1]).tolist() == [chosen[run]]
