"""How fast the compiled loop learns, beside torch and stable-baselines3: one core, same problem, same configs.

``python -m benchmarks.jax_speed`` (with ``--quick``: one seed, shorter runs). Problem, peer and its settings are those
of ``learning_speed``. Steps a second are of processor time, without the first chunk, in which the program is compiled;
the process is held on one core. Times to 95 % of the optimum are from scratch: they hold building, compiling and
learning, but not the import of jax. "Kept programs" are those that an earlier process left in the cache's folder.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from app.policies.network import NetworkPolicy
from benchmarks.learning_speed import Row, as_dqn, near, peer_speed, peer_time, row, vectorised
from benchmarks.problems import planted_one
from workers.kinds.iterative.evaluation.judge import Court
from workers.kinds.iterative.evaluation.optimum import solve
from workers.kinds.iterative.simulator import TRAINING, Ranges
from workers.kinds.iterative.simulator import described as simulator_of
from workers.learning.algorithms.config import Config, Memory, Network, named
from workers.learning.backends import available
from workers.learning.execution import Executor, Plan, make_executor

DQN_GOAL, PPO_GOAL, SOONER_GOAL = 400.0, 60.0, 20.0
ENVIRONMENTS, STEPS, SEEDS = 2_048, 3_000_000, 3
LIMIT_SECONDS, EPISODES = 60.0, 2_048
PPO_PEER_STEPS = 3 * 2_048
CHUNK = 512 * 40


def results() -> list[Row]:
    """Steps a second, what compiling takes and when it pays, and time to 95 % of the optimum."""
    if "jax" not in available():
        return []  # an optional extra
    hold_on_one_core()
    quick = "--quick" in sys.argv
    seeds = range(1 if quick else SEEDS)
    return [*speeds(seeds, STEPS // (3 if quick else 1)), *compiling(), *sooner(seeds)]


def hold_on_one_core() -> None:
    """One core for everything that follows, where the system lets us."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def speeds(seeds: range, steps: int) -> list[Row]:
    """Environment steps a second of processor time, and what torch makes of the same."""
    dqn = msgspec.structs.replace(as_dqn("dqn"), batch=1_024, updates_per_slab=1)
    theirs = {"DQN": peer_speed()[0], "PPO": peer_ppo_speed()}
    found = []
    for name, peer, config, goal in (
        ("DQN", "DQN", dqn, DQN_GOAL),
        ("dueling double DQN as served", "DQN", as_dqn("dueling_double_dqn"), None),
        ("PPO", "PPO", named("ppo"), PPO_GOAL),
    ):
        batch = 512 if "served" in name else ENVIRONMENTS
        ours, torch = (speed(executor, config, batch, seeds, steps) for executor in ("compiled", "serial"))
        title = f"{name}, 64-64, {batch} environments (torch {torch:,.0f}: {ours / torch:.2f} ×)"
        found.append(row(title, ours, "steps/s", f"stable-baselines3 {peer}", theirs[peer], goal))
    return found


def speed(executor: str, config: Config, batch: int, seeds: range, steps: int) -> float:
    """Steps a second after the first chunk, median over seeds."""
    told = []
    for seed in seeds:
        runner = started(executor, config, batch, seed, Plan(steps, steps // 3), ranges=Ranges(), expected=False)
        runner.advance()
        told += [runner.advance().steps_per_second for _ in range(2)]
    return statistics.median(told)


def started(
    executor: str, config: Any, batch: int, seed: int, plan: Plan, *, ranges: Ranges, expected: bool = True
) -> Executor:
    """An executor on the planted problem, by processor time."""
    problem = planted_one()
    simulator = simulator_of(problem.spec, problem.table, batch, seed, ranges, expected=expected)
    place = msgspec.structs.replace(config.place, backend="jax" if executor == "compiled" else "torch", device="cpu")
    placed = msgspec.structs.replace(config, place=place)
    return make_executor(executor, placed, simulator, plan, seed, time.process_time)


def peer_ppo_speed() -> float:
    """Steps a second of the peer's PPO as it comes, on one environment."""
    import stable_baselines3

    peer = stable_baselines3.PPO(
        "MlpPolicy", vectorised(1, 0, expected=False), policy_kwargs={"net_arch": [64, 64]}, gamma=1.0, seed=0
    )
    peer.learn(1)
    start = time.process_time()
    peer.learn(PPO_PEER_STEPS, reset_num_timesteps=False)
    return PPO_PEER_STEPS / (time.process_time() - start)


def compiling() -> list[Row]:
    """Seconds until the first chunk of a served config is through, less what the same chunk takes later."""
    config, found = as_dqn("dueling_double_dqn"), []
    for how in ("from nothing", "kept programs"):
        with kept(how == "kept programs", partial(first_chunk, config)):
            found.append({"name": f"compiling, {how}", **plain(first_chunk(config), "s")})
    return found


def first_chunk(config: Config) -> float:
    """Seconds of processor time that building and the first chunk take, beyond those of the second chunk."""
    begun = time.process_time()
    runner = started("compiled", config, 512, 0, Plan(10**9, CHUNK), ranges=TRAINING)
    runner.advance()
    first = time.process_time() - begun
    before = runner.elapsed
    runner.advance()
    return first - (runner.elapsed - before)


class kept:  # noqa: N801  (used like a function)
    """Programs are kept in a folder of their own, and `fill` has left its there; or they are not."""

    def __init__(self, wanted: bool, fill: Callable[[], object]) -> None:
        self.wanted, self.fill, self.folder = wanted, fill, tempfile.TemporaryDirectory()

    def __enter__(self) -> None:
        from workers.learning.backends.loop import keep_programs

        keep_programs(Path(self.folder.name) if self.wanted else None)
        if self.wanted:
            self.fill()

    def __exit__(self, *_: object) -> None:
        from workers.learning.backends.loop import keep_programs

        keep_programs(None)
        self.folder.cleanup()


def sooner(seeds: range) -> list[Row]:
    """Seconds until within 5 % of the optimum, medians over seeds: compiled (twice) and torch, beside the peer."""
    court = Court(planted_one().spec, planted_one().table, 77, EPISODES)
    optimum = float(court.score(solve(court.layout, court.table).policy).returns.mean())
    ppo = statistics.median(peer_time(court, optimum, "PPO", seed) for seed in seeds)
    times = {"DQN": peer_time(court, optimum, "DQN"), "PPO": ppo}
    name = min(times, key=lambda peer: times[peer])
    found = []
    for how, advice in (("as served", True), ("network alone", False)):
        torch = median(court, optimum, "serial", seeds, advice)
        for programs in ("compiled from nothing", "kept programs"):
            with kept(programs == "kept programs", partial(until, court, optimum, "compiled", 0, advice)):
                ours = median(court, optimum, "compiled", seeds, advice)
            title = f"time to 95 % of the optimum, {how}, {programs} (torch {torch:.2f} s)"
            made = row(title, ours, "s", f"stable-baselines3 {name}", times[name], None)
            ratio = times[name] / ours
            verdict = f"≥ {SOONER_GOAL:g} × sooner: {'met' if ratio >= SOONER_GOAL else 'missed'}"
            found.append({**made, "ratio": ratio, "goal": verdict})
    return found


def median(court: Court, optimum: float, executor: str, seeds: range, advice: bool) -> float:
    """Of `until` over seeds."""
    return statistics.median(until(court, optimum, executor, seed, advice) for seed in seeds)


def until(court: Court, optimum: float, executor: str, seed: int, advice: bool) -> float:
    """Seconds of processor time until the greedy policy is there; evaluation is not counted."""
    config = msgspec.structs.replace(
        as_dqn("dueling_double_dqn"), network=Network(dueling=True, advice=advice), memory=Memory(warm_up=4_096)
    )
    begun = time.process_time()
    plan = Plan(10**9, CHUNK, LIMIT_SECONDS)
    learner = started(executor, config, 512, seed, plan, ranges=Ranges())
    built = time.process_time() - begun
    while not learner.done:
        learner.advance()
        kind, described, arrays = learner.agent.export()
        if near(court, optimum, NetworkPolicy.build({"algorithm": kind, **described}, dict(arrays))):
            return built + learner.elapsed
    return LIMIT_SECONDS


def plain(value: float, unit: str) -> Row:
    """A figure that stands alone."""
    return {"value": value, "unit": unit, "peer": None, "peer_value": None, "ratio": None, "goal": None}


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("jax_speed", results())
