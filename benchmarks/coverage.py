"""How often intervals of verdicts, evaluations and logged runs hold what is true, on planted cases.

``python -m benchmarks.coverage`` — of each case many samples are drawn of which the truth is known: in closed form, or
by one sample so large that its error is nothing. The goal is 90 to 98 % where 95 % is said. Peers are the usual
shortcuts: episodes that vary together taken as independent, and the percentiles of a bootstrap over seeds and episodes.

``seeds`` are evaluations, of five seeds of 256 episodes. ``windows`` are those of trainings that go on: five minutes of
requests of two runs, whose rate wanders, cut by the product; what an episode gains is planted, and depends on the
requests that come in it. Ten of them look at the same question: all ten intervals are to hold the truth together.
``logged`` are logs of requests and of runs. ``verdicts`` also says how often a gain is found to be better that the
verdict calls detectable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from app.agents.evidence import interval as shadow_interval
from app.drift.realised import compare_blocks
from app.kinds.inference.example import SPEC
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.spec import InferenceSpec
from workers.evaluation.candidate import Settings
from workers.evaluation.judge import Judgement
from workers.evaluation.statistics import (
    POWER,
    Clusters,
    Level,
    Record,
    confidence_at,
    estimate,
    interquartile_mean,
    mean_interval,
    share_interval,
    wins,
)
from workers.evaluation.summary import LevelScores
from workers.kinds.inference.kind import KIND
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.kinds.inference.windows import Batches, Stretch, rebuilt
from workers.kinds.iterative.off_policy import SOFTNESS, Trace, importance

Floats = NDArray[np.float64]
Random = np.random.Generator
Bounds = tuple[float, float]
Row = dict[str, Any]
REPEATS, SEQUENCES, LOOKS = 1_000, 100, 10
BOOTSTRAPPED = 100  # of the repeats, for the peer
LOWEST, HIGHEST = 0.90, 0.98
SEEDS, EPISODES, RESAMPLES = 5, 256, 200
WINDOW_SECONDS, RUNS, RATE = 300, 2, 8.0
HALF_HOUR, MINUTE = 1_800, 60
ITERATIONS, RIGHT = 4, 0.6  # of a logged run; how often it took the candidate's step
WORTH = np.array([0.0, -1.0, -0.4])  # of the three steps
PARTS = ("verdicts", "seeds", "windows", "logged")
INDEPENDENT, BOOTSTRAP = "episodes as independent", "percentile bootstrap"


class Case(NamedTuple):
    """An interval and what it should hold.

    Attributes:
        name: what it is of.
        bounds: of one drawn sample, the interval's and, where there is one, the peer's.
        truth: what they should hold.
        peer: what that is.
        repeats: how many samples are drawn.
    """

    name: str
    bounds: Callable[[Random], Sequence[Bounds]]
    truth: float
    peer: str = ""
    repeats: int = REPEATS


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """Rows of the parts."""
    result = {"verdicts": verdicts, "seeds": seeds, "windows": windows, "logged": logged}
    return [row for part in parts for row in result[part]()]


def covered(cases: Iterator[Case]) -> Iterator[Row]:
    """How often the intervals of each case hold the truth."""
    for case in cases:
        drawn = [case.bounds(np.random.default_rng([seed, 1])) for seed in range(case.repeats)]
        inside = np.array([[low <= case.truth <= high for low, high in bounds] for bounds in drawn]).mean(axis=0)
        yield row(case.name, float(inside[0]), case.peer, float(inside[1]) if case.peer else None)


def row(name: str, share: float, peer: str = "", peer_share: float | None = None) -> Row:
    """Of a share of intervals that hold the truth."""
    return {
        "name": name,
        "value": 100 * share,
        "unit": "%",
        "peer": peer or None,
        "peer_value": None if peer_share is None else 100 * peer_share,
        "goal": f"90 to 98 %: {'met' if LOWEST <= share <= HIGHEST else 'missed'}",
    }


def of(result: Any) -> Bounds:
    """The bounds of a reported interval."""
    return (result["low"], result["high"]) if isinstance(result, dict) else (result.low, result.high)


# Verdicts: means of episodes, some of which vary together.


def normal(random: Random, *shape: int) -> Floats:
    """Of mean 0 and variance 1."""
    return random.standard_normal(shape)


def skewed(random: Random, *shape: int) -> Floats:
    """Exponential, of mean 0 and variance 1: most episodes lose little, and few lose much."""
    return 1.0 - random.exponential(1.0, shape)


def verdicts() -> Iterator[Row]:
    """Rows of single and of clustered episodes."""
    yield from covered(_plain())
    yield from covered(_clustered())
    yield _found()


def _plain() -> Iterator[Case]:
    def mean(random: Random, draw: Any, count: int) -> list[Bounds]:
        return [of(mean_interval(draw(random, count)))]

    def share(random: Random, chance: float) -> list[Bounds]:
        return [of(share_interval((random.random(256) < chance).astype(np.float64)))]

    def realised(random: Random) -> list[Bounds]:
        return [of(compare_blocks([*normal(random, 8)], [*(2 * normal(random, 4))]).difference)]

    for count in (5, 30, 256):
        for draw in (normal, skewed):
            yield Case(f"mean of {count} {draw.__name__} episodes", partial(mean, draw=draw, count=count), 0.0)
    yield Case("shadow runs' gain, 5 runs", lambda random: [of(shadow_interval([*normal(random, 5)]))], 0.0)
    yield Case("reached by an agent less what was reached before, 4 and 8 blocks", realised, 0.0)
    for chance in (0.5, 0.02):
        yield Case(f"share of {chance:.0%} of 256 episodes", partial(share, chance=chance), chance)


def _clustered() -> Iterator[Case]:
    sizes = {"8 clusters of 256": [256] * 8, "4 clusters of 64": [64] * 4, "2 clusters of 64": [64] * 2}
    for name, each in (sizes | {"8 clusters of 16 to 256": [16, 16, 16, 32, 64, 64, 128, 256]}).items():
        clusters = np.repeat(np.arange(len(each)), each)
        for draw in (normal, skewed):

            def bounds(random: Random, clusters: Clusters = clusters, draw: Any = draw) -> list[Bounds]:
                values = 0.5 * draw(random, clusters.max() + 1)[clusters] + draw(random, len(clusters))
                return [of(mean_interval(values, clusters)), of(mean_interval(values))]

            yield Case(f"mean of {name} episodes, {draw.__name__}", bounds, 0.0, INDEPENDENT)
    for folds, members in ((2, 4), (4, 4), (5, 8)):
        places = np.indices((folds, members, 64)).reshape(3, -1)

        def two_ways(random: Random, places: Any = places, folds: int = folds, members: int = members) -> list[Bounds]:
            fold, member = places[0], places[1]
            values = 0.3 * normal(random, folds)[fold] + 0.3 * normal(random, members)[member]
            values += 0.2 * normal(random, folds, members)[fold, member] + normal(random, len(fold))
            return [of(mean_interval(values, places[:2].T)), of(mean_interval(values))]

        yield Case(f"mean of {folds} folds × {members} models, which vary both", two_ways, 0.0, INDEPENDENT)


def _found() -> Row:
    """How often a gain is found to be better that is called detectable; of 16 clusters of 16 episodes."""
    clusters, rule = np.repeat(np.arange(16), 16), np.full(256, -1.0)

    def judged(seed: int, gain: float) -> Judgement:
        random = np.random.default_rng([seed, 2])
        luck = 0.5 * normal(random, 16)[clusters] + normal(random, 256)
        return Judgement(rule + gain + luck, {"rule": rule}, clusters=clusters)

    detectable = float(np.mean([judged(seed, 0.0).detectable for seed in range(REPEATS)]))
    share = float(np.mean([judged(seed, detectable).better for seed in range(REPEATS, 2 * REPEATS)]))
    goal = f"{POWER:.0%} ± 5 %: {'met' if abs(share - POWER) <= 0.05 else 'missed'}"
    return row("gains that are called detectable and found to be better", share) | {"goal": goal}


# Seeds: what an evaluation reports.


def seeds() -> Iterator[Row]:
    """Rows of the protocol's figures: seeds that differ, that don't, and skewed episodes."""
    for name, draw, between in (("alike", normal, 0.0), ("that differ", normal, 0.5), ("that differ", skewed, 0.5)):
        text = f"5 seeds {name}, {draw.__name__} episodes"
        large = between * normal(np.random.default_rng(0), 2_000, 1) + draw(np.random.default_rng(1), 2_000, 1_000)
        for ahead in (0.2, 2.5):
            yield from _reported(text, draw, between, ahead, large + ahead)


def _reported(text: str, draw: Any, between: float, ahead: float, large: Floats) -> Iterator[Row]:
    """Of a candidate that is so far ahead of the rule on average."""
    truths = {
        "return": ahead,
        "iqm": interquartile_mean(large),
        "advantage": ahead,
        "probability_of_improvement": float((large > 0).mean()),
    }
    wanted = truths if ahead < 1 else {"probability_of_improvement": truths["probability_of_improvement"]}
    own, peers = [], []
    for seed in range(REPEATS):
        random = np.random.default_rng([seed, 3])
        values = ahead + between * normal(random, SEEDS, 1) + draw(random, SEEDS, EPISODES)
        own.append(figures(values))
        if seed < BOOTSTRAPPED:
            peers.append(bootstrapped(values, random))
    for name in wanted:
        ours = float(np.mean([_holds(one[name], truths[name]) for one in own]))
        theirs = float(np.mean([one[name][0] <= truths[name] <= one[name][1] for one in peers]))
        yield row(f"{name.replace('_', ' ')} of {truths[name]:.3f}, {text}", ours, BOOTSTRAP, theirs)


def figures(values: Floats) -> dict[str, Any]:
    """What an evaluation says of a candidate with these returns, [S, E], beside a rule that earns nothing."""
    details = {"terms": [0.0], "guarded": 0.0}
    records = {
        name: [Record(returns, np.zeros((returns.shape[0], 0), np.float32), details=details) for returns in played]
        for name, played in {
            "agent": values.astype(np.float32),
            "rule": np.zeros_like(values, np.float32),
            "random": np.full_like(values, -1.0, np.float32),
        }.items()
    }
    level = LevelScores(Level.SEEDS, records, ["rule"], Settings(), {})
    return level.figures("agent", ["all"], [])


def bootstrapped(values: Floats, random: Random) -> dict[str, Bounds]:
    """Percentiles of resampled seeds and, within them, resampled episodes (Agarwal et al. 2021)."""
    rows = random.integers(SEEDS, size=(RESAMPLES, SEEDS, 1))
    drawn = values[rows, random.integers(EPISODES, size=(RESAMPLES, SEEDS, EPISODES))].reshape(RESAMPLES, -1)
    middle = np.sort(drawn, axis=1)[:, SEEDS * EPISODES // 4 : -SEEDS * EPISODES // 4].mean(axis=1)
    mean = _percentiles(drawn.mean(axis=1))
    won = _percentiles(wins(drawn, np.zeros_like(drawn)).mean(axis=1))
    return {"return": mean, "iqm": _percentiles(middle), "advantage": mean, "probability_of_improvement": won}


def _percentiles(values: Floats) -> Bounds:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


# Windows: requests whose rate wanders, and what episodes gain that depend on them.


def counts(random: Random, seconds: int, lasting: float) -> NDArray[np.int64]:
    """Requests in each second, of a rate whose log wanders and forgets within so many seconds."""
    retained = float(np.exp(-1 / lasting))
    steps = random.standard_normal(seconds) * np.sqrt(1 - retained**2)
    steps[0] = random.standard_normal()
    level = np.exp(0.5 * lfilter([1.0], [1.0, -retained], steps) - 0.125)
    return random.poisson(RATE * level)


def gained(came: NDArray[np.int64]) -> Floats:
    """What each second with so many requests gains: much where many come, and a loss where few do."""
    return np.minimum(came, 2 * RATE) / RATE - 0.5


@cache
def true_gain(lasting: float) -> float:
    """Its mean over ten million seconds."""
    return float(gained(counts(np.random.default_rng(9), 10_000_000, lasting)).mean())


def within(came: NDArray[np.int64], begins: Floats, seconds: float) -> Floats:
    """Mean gain of episodes of so many seconds that begin then, [E]."""
    total = np.concatenate([[0.0], np.cumsum(gained(came))])
    at = np.arange(len(total))
    return (np.interp(begins + seconds, at, total) - np.interp(begins, at, total)) / seconds


def system() -> tuple[Layout, ServiceModel]:
    """The documentation's example, whose batches take 50 ms."""
    layout = Layout(InferenceSpec.model_validate(SPEC | {"users": SPEC["users"][:1]}))
    users, variants, batches = layout.shape
    log, measured = np.full((1, 1, variants, batches), np.log(0.05)), np.ones((1, variants), np.bool_)
    return layout, ServiceModel(log, np.zeros(variants), np.full((users, 1), RATE), np.zeros(users), measured)


def windows() -> Iterator[Row]:
    """Rows of single windows, and of ten in a row."""
    layout, model = system()
    for lasting in (3.0, 15.0):
        looks = [
            [_judged(layout, model, np.random.default_rng([sequence, look, 4]), lasting) for look in range(LOOKS)]
            for sequence in range(SEQUENCES)
        ]
        truth, text = true_gain(lasting), f"a rate that forgets in {lasting:g} s"
        single, naive, together, each = [], [], [], []
        for sequence in looks:
            estimates = [estimate(*one) for one in sequence]
            single += [_holds(one.interval(), truth) for one in estimates]
            naive += [_holds(estimate(values).interval(), truth) for values, _ in sequence]
            each.append(all(_holds(one.interval(), truth) for one in estimates))
            sure = [one.interval(confidence_at(look + 1)) for look, one in enumerate(estimates)]
            together.append(all(_holds(one, truth) for one in sure))
        yield row(f"gain on a window, {text}", float(np.mean(single)), INDEPENDENT, float(np.mean(naive)))
        message = f"gains on ten windows together, {text}"
        yield row(message, float(np.mean(together)), "95 % at each look", float(np.mean(each)))


def _judged(layout: Layout, model: ServiceModel, random: Random, lasting: float) -> tuple[Floats, Clusters]:
    """Gains of the judged episodes of a window, and which of them vary together, as verdicts on windows have them."""
    came, stretches = [], []
    none = Batches(*(np.zeros(0, np.int64),) * 3, np.zeros(0))
    for _ in range(RUNS):
        each = counts(random, WINDOW_SECONDS, lasting)
        times = np.sort(np.repeat(np.arange(len(each)), each) + random.random(each.sum()))
        came.append(each)
        stretches.append(Stretch([times], 0.0, float(WINDOW_SECONDS), none))
    window, several = rebuilt(layout, model, stretches), KIND.window_episodes
    origin, _ = window.judged.at((np.arange(several) + 0.5) / several)  # as episodes of worlds begin
    run, begins = np.divmod(origin, WINDOW_SECONDS + 2 * window.episode_seconds)  # runs lie so far apart
    gains = [within(each, begins, window.episode_seconds) for each in came]
    values = np.where(run == 0, *gains) + 0.3 * normal(random, several)
    return values, np.unique(origin, return_inverse=True)[1]


def _holds(result: Any, truth: float) -> bool:
    low, high = of(result)
    return low <= truth <= high


# Logs of requests and of runs.


def logged() -> Iterator[Row]:
    """Rows of recorded requests and of off-policy estimates."""
    for lasting in (3.0, 15.0):

        def minutes(random: Random, lasting: float = lasting) -> list[Bounds]:
            came = counts(random, HALF_HOUR, lasting)
            log = RecordedArrivals([np.zeros(0)], 0.0, float(HALF_HOUR - MINUTE))
            several = log.apart(MINUTE)
            apart = within(came, log.at((np.arange(several) + 0.5) / several)[0], MINUTE)
            anywhere = within(came, random.uniform(0, HALF_HOUR - MINUTE, 32), MINUTE)
            return [of(mean_interval(apart)), of(mean_interval(anywhere))]

        text = f"gain on minutes of half an hour of requests, a rate that forgets in {lasting:g} s"
        yield from covered(iter([Case(text, minutes, true_gain(lasting), "32 minutes anywhere")]))
    for runs in (15, 50, 100):
        yield from _estimated(runs)


def _estimated(runs: int) -> Iterator[Row]:
    names, truth = ("per_decision", "weighted", "doubly_robust"), target_return()
    importances = [importance(trace(np.random.default_rng([seed, 5]), runs), 3) for seed in range(REPEATS)]
    size = np.mean([one["effective_sample_size"] for one in importances])
    for name in names:
        inside = float(np.mean([_holds(one[name], truth) for one in importances]))
        yield row(f"off policy, {name.replace('_', ' ')}: {runs} runs, {size:.1f} effective", inside)


def target_return() -> float:
    """What the candidate earns whose steps are drawn evenly now and then."""
    return (ITERATIONS - 1) * float((1 - SOFTNESS) * WORTH[0] + SOFTNESS * WORTH.mean())


def trace(random: Random, runs: int) -> Trace:
    """Logged runs of three steps, of which the candidate takes the first; the outlook is a third too small."""
    shape = (runs, ITERATIONS - 1)
    chances = np.array([RIGHT, (1 - RIGHT) / 2, (1 - RIGHT) / 2])
    actions = random.choice(3, p=chances, size=shape)
    rewards = 0.3 * normal(random, runs, ITERATIONS) + 0.3 * skewed(random, runs, 1)
    rewards[:, 1:] += WORTH[actions]
    later = np.arange(ITERATIONS - 2, -1, -1) * target_return() / (ITERATIONS - 1)
    outlook = (WORTH[:, None] + later) * 2 / 3
    return Trace(
        actions=actions,
        chosen=np.zeros(shape, np.int64),
        legal=np.ones((*shape, 3), np.bool_),
        advised=np.zeros(shape, np.int64),
        chance=chances[actions],
        rewards=rewards,
        taken_value=outlook[actions, np.arange(ITERATIONS - 1)],
        chosen_value=np.broadcast_to(outlook[0], shape),
        mean_value=np.broadcast_to(outlook.mean(axis=0), shape),
    )


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("coverage", results())
