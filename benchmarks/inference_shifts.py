"""Agents of kind `inference` whose load shifts at a known time: who is back to what it can reach, and how soon.

``STEWARD_DATA=… python -m benchmarks.inference_shifts [LOAD-SHIFT …] [--seeds N] [--steps N]``

The system is that of ``inference_agents``, loads: Twitter's requests, Poisson, or in bursts. At a known time the rate
grows by half, or two of three users' requests become the other user's, or batches take 1.3 times as long. Time goes in
windows of five minutes, of which one is before the shift; all players answer the same episodes of each, which begin on
a grid within it. At the end of a window players are shown what was met in it: arrivals, and some measured batches; what
they make of it answers from the next window on.

Each seed is a stretch of days of its own, and an agent of its own: intervals are of differences over seeds, paired.
Beside what the players earn stands how long it takes until they are back: the first window after the shift in which
they earn as much as they should, beside an agent that was trained anew, with the whole budget, on other days of the
shifted load. Two yardsticks: 95 % of that agent's value (1 + return, which is 1 where every answer is worth all and
costs nothing), and 95 % of what it wins over the agent that goes on as it was trained before the shift, which says
nothing where a training anew wins nothing. Who is back may be so because a heuristic answers for it: beside ``online``
stands what its learner earns unjudged, and beside all of them the rule that answers without an agent. Agents begin by
imitating it, as trainings that go on do. What adapts within a run stands in ``inference_adaptation``.
"""

import argparse
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy
from app.kinds.inference.heuristics import BASELINES
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from benchmarks.inference_agents import planted, serving, twitter
from workers.evaluation.arena import Bare, Scores, play
from workers.evaluation.statistics import Level, mean_interval
from workers.inputs import Conditions, Workload
from workers.kinds.inference.kind import KIND
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.kinds.inference.simulator.world import InferenceWorld
from workers.kinds.inference.windows import Batches, Stretch, Window, rebuilt
from workers.kinds.simulated.training import WindowTraining
from workers.learning.training.request import Request
from workers.learning.training.trial import NO_PLAN, WindowResult, learn_window

WINDOW_SECONDS = 300
BEFORE, AFTER = 1, 2  # windows
TRAINING_SECONDS = 3_600
EPISODES, EPISODE_SECONDS = 16, 20.0  # of each window
JUDGED = 32  # episodes by which a window's learner is judged, of which the service plays four times as many
SPREAD = 0.1  # of the log of a batch's seconds
MEASURED = 200  # batches of a window whose seconds are known
RECORDED_STEPS, RECORDED_SEEDS = 100_000, 10
WINDOW_STEPS = 50_000
BACK = 0.95
DAY = 86_400
ALONE = "online's learner, unjudged"
SECONDS = "processor time of one thread that learning from a window takes"
Row = dict[str, Any]


class Shift(NamedTuple):
    """What changes: factor of the rate, the first user's share of all requests, factor of batches' seconds."""

    rate: float = 1.0
    share: float = 0.6
    seconds: float = 1.0


SHIFTS = {"rate": Shift(rate=1.5), "mix": Shift(share=0.2), "service": Shift(seconds=1.3)}
LOADS = ("twitter", "poisson", "bursty")
PARTS = tuple(f"{load}-{shift}" for load in LOADS for shift in SHIFTS)


class Met(NamedTuple):
    """What was met in a window.

    Attributes:
        times: seconds of arrivals since the window's beginning, ascending, of each user.
        batches: of which the seconds were measured.
        model: the truth: what batches take.
    """

    times: Sequence[NDArray[np.float64]]
    batches: Batches
    model: ServiceModel


class Scene(NamedTuple):
    """A served system whose load shifts.

    Attributes:
        layout: of the workload.
        model: the domain model as it was fitted before the shift: what players and service believe.
        before, after: requests to train on, of earlier days, without and with the shift.
        shifted: the domain model after the shift.
        windows: in order; ``BEFORE`` of them are before the shift.
    """

    layout: Layout
    model: ServiceModel
    before: RecordedArrivals
    after: RecordedArrivals
    shifted: ServiceModel
    windows: Sequence[Met]


class Player(Protocol):
    """Answers a window, and is shown what was met in it."""

    name: str

    @property
    def policy(self) -> Policy:
        """What answers the next window."""
        ...

    def met(self, window: Met) -> None:
        """At the end of a window."""
        ...


class Constant:
    """Whatever it is, it stays as it is."""

    def __init__(self, name: str, policy: Policy) -> None:
        self.name, self.policy = name, policy

    def met(self, window: Met) -> None:
        """See ``Player``: nothing."""


def scene(data: Path, load: str, shift: Shift, seed: int) -> Scene:
    """A served system of a load and a shift; ``seed`` chooses the stretches of days, and draws."""
    served, seconds = serving(data)
    layout = Layout(served.spec.model_copy(update={"episode_seconds": EPISODE_SECONDS}))
    random = np.random.default_rng([seed, LOADS.index(load)])
    whole = (BEFORE + AFTER) * WINDOW_SECONDS
    train, test = _counts(data, load, whole, random)
    share = SHIFTS["rate"].share
    before = _recorded(_users(train, share, random), layout, random)
    after = _recorded(_users(_grown(train, shift.rate, random), shift.share, random), layout, random)
    rate = before.rate[:, None]
    measured = np.ones((1, len(layout.variants)), np.bool_)
    model = ServiceModel(np.log(seconds)[None], np.full(len(layout.variants), SPREAD), rate, np.zeros(2), measured)
    shifted = replace(model, log_seconds=model.log_seconds + np.log(shift.seconds))
    windows = []
    for number in range(BEFORE + AFTER):
        part, now = test[number * WINDOW_SECONDS :][:WINDOW_SECONDS], number >= BEFORE
        users = _users(_grown(part, shift.rate if now else 1.0, random), shift.share if now else share, random)
        truth = shifted if now else model
        windows.append(Met(_times(users, random), _batches(layout, truth, random), truth))
    return Scene(layout, model, before, after, shifted, windows)


def _counts(data: Path, load: str, whole: int, random: np.random.Generator) -> tuple[NDArray[np.int64], ...]:
    """Requests in each second, to train on and to be tested on: of Twitter an hour of the first two days, and a
    stretch of the next two."""
    if load == "twitter":
        days = twitter(data)
        train, test = random.integers(2 * DAY - TRAINING_SECONDS), 2 * DAY + random.integers(2 * DAY - whole)
        return days[train : train + TRAINING_SECONDS], days[test : test + whole]
    drawn = planted(load, TRAINING_SECONDS + whole, int(random.integers(1 << 31)))
    return drawn[:TRAINING_SECONDS], drawn[TRAINING_SECONDS:]


def _grown(counts: NDArray[np.int64], factor: float, random: np.random.Generator) -> NDArray[np.int64]:
    return counts + random.binomial(counts, factor - 1)


def _users(counts: NDArray[np.int64], share: float, random: np.random.Generator) -> list[NDArray[np.int64]]:
    first = random.binomial(counts, share)
    return [first, counts - first]


def _times(users: Sequence[NDArray[np.int64]], random: np.random.Generator) -> list[NDArray[np.float64]]:
    """Each request at any instant of its second."""
    return [np.sort(np.repeat(np.arange(len(own)), own) + random.random(int(own.sum()))) for own in users]


def _recorded(users: Sequence[NDArray[np.int64]], layout: Layout, random: np.random.Generator) -> RecordedArrivals:
    return begun(_times(users, random), layout, len(users[0]), 1.0)


def begun(times: Sequence[NDArray[np.float64]], layout: Layout, seconds: float, apart: float) -> RecordedArrivals:
    """Requests of so many seconds, from 0 on, met by episodes that begin so far apart."""
    spec = layout.spec
    last = seconds - spec.episode_seconds
    begins = np.arange(spec.control_seconds, last + 1e-9, apart)
    return RecordedArrivals(times, 0.0, last).beginning(begins, spec.control_seconds)


def _batches(layout: Layout, model: ServiceModel, random: np.random.Generator) -> Batches:
    variant = random.integers(len(layout.variants), size=MEASURED)
    size = random.integers(len(layout.batches), size=MEASURED)
    server = np.zeros(MEASURED, np.int64)
    noise = random.normal(0.0, SPREAD, MEASURED)
    seconds = np.exp(model.log_seconds[0, server, variant, size] + noise)
    return Batches(server, variant, layout.batches[size], seconds)


class Online:
    """Algorithm ``online``, as workers do it after each window: the learner goes on, and what is better answers.

    Args:
        scene: whose load shifts.
        begun: what was learned before the first window; it answers at first.
        request: the budget is that of a window.

    Attributes:
        alone: what the learner answers with, unjudged, in each window.
        look: how often what answers has been judged.
        seconds: of processor time that learning from each window took.
    """

    name = "online"

    def __init__(self, scene: Scene, begun: WindowResult, request: Request) -> None:
        self.scene, self.request = scene, request
        self.learned, self.answering = begun, begun.artifact
        self.alone, self.seconds, self.look = [self._load(begun.artifact)], list[float](), 0

    def _load(self, artifact: bytes) -> Policy:
        return KIND.load(artifact, self.scene.layout.spec)

    @property
    def policy(self) -> Policy:
        """See ``Player``: the last version that was better, or the heuristic that answers without one."""
        return self._load(self.answering) if self.answering else BASELINES[0]

    def met(self, window: Met) -> None:
        """See ``Player``."""
        stretch = Stretch(window.times, 0.0, float(WINDOW_SECONDS), window.batches)
        rebuilt_window = rebuilt(self.scene.layout, self.scene.model, [stretch]).to_bytes()
        self.look += 1
        problem = training(self.scene, rebuilt_window, self.request.seed, self.look)
        begin = time.process_time()
        self.learned = learn_window(problem, self.request, len(self.alone), self.learned.learner, lambda _: None)
        self.seconds.append(time.process_time() - begin)
        self.alone.append(self._load(self.learned.artifact))
        margin = self.request.equivalence_margin
        verdict = problem.judge(self.learned.artifact, NO_PLAN, self.answering or None, margin)
        if verdict["promoted"] or verdict["champion_worse"]:
            self.answering, self.look = self.learned.artifact if verdict["promoted"] else b"", 0


class Replayed:
    """Policies that another player had, window by window."""

    def __init__(self, name: str, policies: Sequence[Policy]) -> None:
        self.name, self._left = name, list(policies)

    @property
    def policy(self) -> Policy:
        """See ``Player``."""
        return self._left[0]

    def met(self, window: Met) -> None:
        """See ``Player``: the next one."""
        del window
        self._left.pop(0)


def learnt(scene: Scene, log: RecordedArrivals, model: ServiceModel, request: Request) -> WindowResult:
    """PPO on requests and service times."""
    slower = (model.log_seconds - scene.model.log_seconds)[0, ..., 0]
    whole = Window(log, log, slower, scene.layout.spec.episode_seconds).to_bytes()
    problem = training(scene, whole, request.seed)
    return learn_window(problem, request, 0, b"", lambda _: None)


def training(scene: Scene, window: bytes, seed: int, look: int = 1) -> WindowTraining:
    """What is learned in, and judged on."""
    problem = WindowTraining(KIND, Workload(scene.layout.spec, scene.model.to_bytes()), seed, window, look)
    problem.judged_episodes = JUDGED
    return problem


def answered(scene: Scene, window: Met, policy: Policy, number: int) -> Scores:
    """A policy's episodes of a window: the same for everybody."""
    span = (WINDOW_SECONDS - scene.layout.spec.episode_seconds - scene.layout.spec.control_seconds) / EPISODES
    log = begun(window.times, scene.layout, WINDOW_SECONDS, span)
    world = InferenceWorld(scene.layout, [window.model], Conditions(EPISODES, number), log, scene.model)
    return play(world, Level.SEEDS, number, Bare(policy))


def players(scene: Scene, steps: int, window_steps: int, seed: int) -> Iterator[Player]:
    """All that are compared, made ready before the shift; each comes when the one before it is through."""
    request = Request("online", steps, seed)
    frozen = learnt(scene, scene.before, scene.model, request)
    fresh = learnt(scene, scene.after, scene.shifted, request)
    spec = scene.layout.spec
    yield Constant("the rule", BASELINES[0])
    yield Constant("trained before", KIND.load(frozen.artifact, spec))
    yield Constant("trained anew", KIND.load(fresh.artifact, spec))
    online = Online(scene, frozen, replace(request, budget=window_steps))
    yield online
    yield Replayed(ALONE, online.alone)


def played(
    data: Path, load: str, shift: str, steps: int, window_steps: int, seed: int
) -> dict[str, list[tuple[float, float]]]:
    """Mean return and response quality of each player in each window, of one seed; and the seconds of ``online``."""
    result = scene(data, load, SHIFTS[shift], seed)
    values: dict[str, list[tuple[float, float]]] = {}
    for player in players(result, steps, window_steps, seed):
        for number, window in enumerate(result.windows):
            scores = answered(result, window, player.policy, seed * 1_000 + number)
            values.setdefault(player.name, []).append(
                (float(scores.returns.mean()), float(scores.outcomes[:, 0].mean()))
            )
            if number + 1 < len(result.windows):
                player.met(window)
        if isinstance(player, Online):
            values[SECONDS] = [(one, 0.0) for one in player.seconds]
        course = ", ".join(f"{earned:+.4f}" for earned, _ in values[player.name])
        print(f"{load}-{shift}, seed {seed}, {player.name}: {course}", flush=True)
    return values


def compared(part: str, result: Sequence[Mapping[str, list[tuple[float, float]]]]) -> list[Row]:
    """Rows of all seeds: each player by window, and when it is back."""
    by_player = {name: np.array([one[name] for one in result]) for name in result[0]}  # [seeds, windows, 2]
    seconds = by_player.pop(SECONDS)[..., 0]
    fresh, frozen = by_player["trained anew"][..., 0], by_player["trained before"][..., 0]
    rows = []
    for name, values in by_player.items():
        returns, quality = values[..., 0], values[..., 1].mean(axis=0)
        course = ", ".join(f"{r:+.4f} ({q:.3f})" for r, q in zip(returns.mean(axis=0), quality, strict=True))
        after = mean_interval((returns - fresh)[:, BEFORE + 1 :].mean(axis=1))
        text = f"return (quality) by window {course}; from the second after the shift on over trained anew"
        text = f"{text} {after['mean']:+.4f} ({after['low']:+.4f} to {after['high']:+.4f})"
        rows.append(_row(f"{part}: {name} ({text})", float(returns[:, BEFORE + 1 :].mean()), ""))
        for yardstick, needed in (("value", BACK * (1 + fresh) - 1), ("gain", frozen + BACK * (fresh - frozen))):
            back, there = _back(returns, needed), int((returns >= needed)[:, BEFORE + 1].sum())
            goal = "" if name not in ("online", ALONE) else f"≤ 1: {'met' if back <= 1 else 'missed'}"
            text = f"mean of seeds; in the second window {there} of {len(returns)} seeds are"
            rows.append(_row(f"{part}: windows until {name} is back, by {yardstick} ({text})", back, goal))
    rows.append({**_row(f"{part}: {SECONDS}, mean", float(seconds.mean()), ""), "unit": "s"})
    for row in rows:
        print(row["name"], f"{row['value']:.4f}", flush=True)
    return rows


def _back(returns: NDArray[np.float64], needed: NDArray[np.float64]) -> float:
    """Windows after the shift that pass before the mean over seeds is as good as is needed; ``AFTER`` for never."""
    enough = (returns - needed).mean(axis=0)[BEFORE:] >= 0
    return float(np.argmax(enough)) if enough.any() else float(AFTER)


def _row(name: str, value: float, goal: str) -> Row:
    return {"name": name, "value": value, "unit": "", "peer": None, "peer_value": None, "ratio": None, "goal": goal}


def measured(data: Path, parts: Sequence[str], seeds: int, steps: int, window_steps: int) -> list[Row]:
    """Rows of parts."""
    rows = []
    for part in parts:
        load, _, shift = part.partition("-")
        rows += compared(part, [played(data, load, shift, steps, window_steps, seed) for seed in range(seeds)])
    return rows


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """A short run."""
    data = Path(os.environ.get("STEWARD_DATA", "../shared/data"))
    return measured(data, parts, RECORDED_SEEDS, RECORDED_STEPS, WINDOW_STEPS)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description="Agents of kind inference whose load shifts.")
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--seeds", type=int, default=RECORDED_SEEDS)
    parser.add_argument("--steps", type=int, default=RECORDED_STEPS, help="of whole trainings")
    parser.add_argument("--window-steps", type=int, default=WINDOW_STEPS, help="of a window")
    wanted = parser.parse_args()
    from benchmarks.__main__ import show

    begin = time.perf_counter()
    data = Path(os.environ.get("STEWARD_DATA", "../shared/data"))
    show("inference_shifts", measured(data, wanted.parts, wanted.seeds, wanted.steps, wanted.window_steps))
    print(f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
