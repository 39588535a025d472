"""Schedulers in simulation: what is served and what is compiled are the same; search, choice, training."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import json

from app.kinds.fields import converted
from app.kinds.workflow.advance import advance
from app.kinds.workflow.decide import choose_by
from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.policies import SHIPPED, PriorityPolicy, Scheduler, StrategyPolicy, load
from app.kinds.workflow.queue import Layout, QueueReport, begin, pack, unpack
from app.kinds.workflow.run_times import UNKNOWN_SECONDS, Predictor
from app.kinds.workflow.scheduling.decide import decide
from app.kinds.workflow.scheduling.dispatch import EASY, MECHANISMS, NONE, RLS
from app.kinds.workflow.scheduling.planning import SAF, WEIGHTS
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.scheduling.situation import QueueSituation
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.trace import Seconds, Trace, independent_jobs
from workers.inputs import Workload
from workers.kinds.workflow.kind import KIND
from workers.kinds.workflow.run_times import predict_traces
from workers.kinds.workflow.simulator.simulate import play_agent
from workers.kinds.workflow.training.sequences import (
    Sequence,
    Source,
    draw_sequence,
    least_loss,
    measure_losses,
    objective_weights,
    piece,
    pieces,
    weighted_loss,
)
from workers.kinds.workflow.training.train import Search, _ahead, training
from workers.learning.training.driver import Training
from workers.learning.training.request import Request, Untrainable

MACHINE = 16
SHIPPED_AGENT = load(SHIPPED.read_bytes())
FCFS, SJF = (StrategyPolicy({"rule": rule}) for rule in ("fcfs", "sjf"))


def trace(seed: int, count: int = 60) -> Trace:
    """Jobs that crowd a machine of 16 processors, of three users who ask for more time than they need."""
    rng = np.random.default_rng(seed)
    runtime = np.exp(rng.uniform(1.0, 8.0, count)).round()
    return independent_jobs(
        np.cumsum(rng.exponential(150.0, count)).round(),
        runtime,
        (runtime * rng.uniform(1.0, 4.0, count)).round(),
        2 ** rng.integers(0, 5, count),
        rng.integers(-1, 3, count),
    )


def sequences(mechanism: int, count: int = 4, first: int = 0) -> list[Sequence]:
    return [Sequence(trace(first + seed), MACHINE, mechanism) for seed in range(count)]


def random_priority(seed: int) -> PriorityPolicy:
    rng = np.random.default_rng(seed)
    return PriorityPolicy(np.array(SAF) + rng.uniform(0.0, 0.5, (3, WEIGHTS)))


def served(policy: Scheduler, jobs: Trace, mechanism: int, predictor: Predictor | None = None) -> Seconds:
    """When each job starts by the service's code, which hears of every event by itself and starts what it decides."""
    own = spec(backfilling=MECHANISMS[mechanism])
    layout, begun = Layout(own), np.full(jobs.tasks, np.nan)
    state, ends = begin(layout), np.full(jobs.tasks, np.inf)
    arriving, started = 0, list[int]()
    while arriving < jobs.tasks or np.isfinite(ends).any():
        now = min(ends.min(), jobs.submit[arriving] if arriving < jobs.tasks else math.inf)
        report: dict[str, Any] = {"now": now, "delta": True, "running": [running(i, begun[i]) for i in started]}
        if arriving < jobs.tasks and jobs.submit[arriving] <= now:
            report["queued"] = [job(jobs, arriving)]
            arriving += 1
        else:
            last = int(ends.argmin())
            report["running"] = [one for one in report["running"] if one["id"] != str(last)]
            report["finished"] = [{**running(last, begun[last]), "end": now}]
            ends[last] = math.inf
        state = unpack(
            json.decode(
                json.encode(
                    pack(
                        advance(layout, state, converted(json.decode(json.encode(report, enc_hook=float)), QueueReport))
                    )
                )
            )
        )
        decided = decide(situation := QueueSituation(layout, state, predictor), lambda s: choose_by(policy, s, own))
        started = [int(situation.queue.names[row]) for row, _ in decided.started.starts]
        state = decided.state
        begun[started] = now
        ends[started] = now + jobs.runtime[started]
    return begun


def job(jobs: Trace, i: int) -> dict[str, Any]:
    user = {} if jobs.user[i] < 0 else {"user": f"u{jobs.user[i]}"}
    how = {"processors": int(jobs.processors[i]), "submit": float(jobs.submit[i])}
    estimate = {} if math.isnan(jobs.estimate[i]) else {"estimate": float(jobs.estimate[i])}
    return {"id": str(i), **how, **estimate, **user}


def running(i: int, start: float) -> dict[str, Any]:
    return {"id": str(i), "node": "n-0", "start": float(start)}


@pytest.mark.parametrize("mechanism", [NONE, RLS, EASY])
def test_simulators_play_what_is_served(mechanism: int) -> None:
    """Of jobs that neither come nor end together: what then comes first is a simulator's own affair."""
    for seed in range(2):
        jobs, policy = trace(seed), random_priority(seed)
        jobs = jobs._replace(submit=jobs.submit + 0.001 * np.arange(60), runtime=jobs.runtime + 0.0173 * np.arange(60))
        jobs = jobs._replace(estimate=np.maximum(jobs.estimate, jobs.runtime + 0.5))
        np.testing.assert_allclose(play_agent(policy, jobs, MACHINE, mechanism, 0), served(policy, jobs, mechanism))


@pytest.mark.parametrize("mechanism", [NONE, RLS, EASY])
@pytest.mark.parametrize("policy", [random_priority(3), SJF, FCFS])
def test_simulators_plan_by_what_is_predicted_as_the_service_does(policy: Scheduler, mechanism: int) -> None:
    """Some users' jobs run longer than predicted, and are then expected to go on; some jobs have no estimate."""
    predictor = Predictor("mean", mean=300.0)
    for seed in range(2):
        jobs = trace(seed)
        jobs = jobs._replace(submit=jobs.submit + 0.001 * np.arange(60), runtime=jobs.runtime + 0.0173 * np.arange(60))
        estimate = np.where(np.arange(60) % 5 == 0, np.nan, np.maximum(jobs.estimate, jobs.runtime + 0.5))
        jobs = jobs._replace(estimate=estimate, users=("u0", "u1", "u2"))
        (planned,) = predict_traces([jobs], predictor)
        assert (planned.expected < jobs.runtime).mean() > 0.3
        ours = play_agent(policy, planned, MACHINE, mechanism, 0)
        np.testing.assert_allclose(ours, served(policy, jobs, mechanism, predictor))
        if mechanism == EASY or policy is SJF:
            assert (ours != play_agent(policy, jobs, MACHINE, mechanism, 0)).any()


def test_the_smallest_area_as_a_priority_is_the_rule() -> None:
    policy, rule = PriorityPolicy(np.tile(np.array(SAF), (3, 1))), StrategyPolicy({"rule": "saf"})
    jobs, saf = trace(0), RULES.index("saf")
    for mechanism in (NONE, RLS, EASY):
        ours, theirs = (play_agent(one, jobs, MACHINE, mechanism, saf) for one in (policy, rule))
        np.testing.assert_array_equal(ours, theirs)


def test_users_who_ask_for_too_much_are_found_out() -> None:
    """Planted: one user takes all that he asks for, the other a twentieth; predictions tell whose jobs are short."""
    rng = np.random.default_rng(0)
    user = rng.integers(0, 2, 400)
    estimate = np.exp(rng.uniform(5.0, 8.0, 400)).round()
    runtime = np.where(user == 0, estimate, np.maximum(estimate / 20.0, 1.0))
    submit = np.cumsum(rng.exponential(330.0, 400)).round()
    jobs = independent_jobs(submit, runtime, estimate, 2 ** rng.integers(0, 5, 400), user)
    believing, predicting = (PriorityPolicy(np.tile(np.array([*SAF[:-1], g]), (3, 1))) for g in (0.0, 1.0))
    losses = [measure_losses(policy, [Sequence(jobs, MACHINE, EASY)])[0] for policy in (believing, predicting)]
    assert losses[1] < 0.8 * losses[0]


def test_a_search_betters_weights_that_were_spoilt() -> None:
    """Planted: the widest first, so that the search has to find its way back."""
    rng = np.random.default_rng(0)
    source, spoilt = Source(trace(7, 200), MACHINE, whole=False), np.array(SAF)
    spoilt[0] = -1.0

    def draw(count: int) -> list[Sequence]:
        return [Sequence(draw_sequence(source, 60, rng), MACHINE, RLS) for _ in range(count)]

    search = Search(spoilt, draw, RLS, rng)
    for _ in range(8):
        search.advance()
    fresh = draw(40)
    gains = measure_losses(search.policy(spoilt), fresh) - measure_losses(search.policy(search.middle), fresh)
    assert search.curve[-1][1] < 1.0
    assert gains.mean() > 1.645 * gains.std(ddof=1) / np.sqrt(len(gains))


def spec(**changed: object) -> Spec:
    node = {"name": "n", "processors": MACHINE, "minimum": 1, "maximum": 1}
    return Spec.model_validate({"name": "w", "kind": "workflow", "nodes": [node], "backfilling": "rls", **changed})


def test_verdicts_plan_by_the_predictor_that_serves_fitted_to_what_comes_before() -> None:
    """Planted: at first jobs take a quarter of what is asked for, and later, where the verdict is, all of it."""
    jobs = trace(0, 300)
    share = np.where(np.arange(300) < 210, 0.25, 1.0)
    jobs = jobs._replace(runtime=jobs.estimate * share, users=("u0", "u1", "u2"))
    model = Predictor("ratio", ratio=0.9, ratios={"u0": 0.9}).to_bytes()
    trainer = KIND.trainer(Workload(spec(), model, (("a", jobs),)), Request(), None)
    unseen = trainer.parts[2][0].trace
    assert unseen.predicted is not None
    np.testing.assert_allclose(unseen.predicted, 0.25 * unseen.estimate)
    for one in trainer._pieces(2):
        np.testing.assert_allclose(one.trace.expected, 0.25 * one.trace.requested)
    believed = KIND.trainer(Workload(spec(), samples=(("a", jobs),)), Request(), None)
    np.testing.assert_allclose(believed.parts[2][0].trace.expected, unseen.estimate)


def test_no_run_time_that_the_service_does_not_know_is_planned_with() -> None:
    """Of two logs, one without estimates and one with those that are too short."""
    silent, short = trace(0, 300), trace(1, 300)
    silent = silent._replace(estimate=np.full(300, np.nan))
    short = short._replace(estimate=short.runtime / 2)
    model = Predictor("mean", mean=1.0).to_bytes()
    trainer = KIND.trainer(Workload(spec(), model, (("a", silent), ("b", short))), Request(), None)
    mean = np.concatenate([silent.runtime[:210], short.runtime[:210]]).mean()
    for source, jobs in zip(trainer.parts[2], (silent, short), strict=True):
        expected = np.fmin(mean, jobs.estimate[210:])
        np.testing.assert_allclose(source.trace.expected, expected)
        np.testing.assert_allclose(
            source.trace.requested, np.where(np.isnan(jobs.estimate[210:]), mean, jobs.estimate[210:])
        )
    again = draw_sequence(trainer.parts[0][1], 100, np.random.default_rng(0))
    assert (again.requested < again.runtime).any()
    unfitted = KIND.trainer(Workload(spec(), samples=(("a", silent), ("b", short))), Request(), None)
    first, second = (source.trace for source in unfitted.parts[0])
    assert first.expected[0] == UNKNOWN_SECONDS  # of a user of whom no job has ended
    assert not np.isclose(first.expected, first.runtime).any()
    np.testing.assert_allclose(second.expected, short.estimate[: second.tasks])


def test_a_training_goes_on_from_its_checkpoint_and_ends_in_a_verdict() -> None:
    traces = (("a", trace(0, 300)),)
    first = training(spec(), traces, 0, 60_000)
    assert first.eta_seconds is None
    first.advance()  # the headroom
    first.advance()
    assert 0.0 < first.progress < 0.9
    assert (first.live["phase"], first.live["steps"]) == ("search", 16)
    assert first.eta_seconds is not None
    assert first.eta_seconds > 0.0
    again = training(spec(), traces, 0, 60_000, first.checkpoint())
    assert (again.progress, again.live) == (first.progress, first.live)
    for one in (first, again):
        while not one.done:
            one.advance()
    assert first.result().artifact == again.result().artifact
    report = again.result().report
    assert report["algorithm"] == load(again.result().artifact).name
    margin = 0.01 * report["heuristics"][report["best_heuristic"]]["mean"]
    assert report["promoted"] == (report["advantage"]["low"] >= -margin and report["gain"]["low"] > margin)
    assert (report["incumbent"], report["equivalence_margin"]) == ("sjf", 0.01)
    assert report["best_heuristic"] in report["reason"]
    assert report["return"]["mean"] == -report["terms"]["slowdown"]["mean"]
    assert set(report["candidates"]) == {"shipped", "tuned", *RULES}
    names = [one["name"] for one in report["pictures"]["schedules"]]
    assert names[:2] == ["agent", f"{report['best_heuristic']}+rls"]


@pytest.mark.parametrize("strategy", ["fcfs", "agent"])
def test_a_training_measures_first_what_true_run_times_would_give(strategy: str) -> None:
    values = [(name, trace(seed, 800)) for name, seed in (("a", 1), ("b", 2))]
    result = training(spec(strategy=strategy), values, 3, 20_000)
    while not result.done:
        result.advance()
    room = result.result().report["headroom"]
    assert room["rule"] == {"fcfs": "fcfs", "agent": "shipped"}[strategy]
    assert room["best"] in RULES
    assert room["left"]["mean"] > 0
    assert room["beyond"]["mean"] >= room["left"]["mean"]
    assert room["agent"]["mean"] <= room["tuned"]["mean"] + room["beyond"]["mean"]
    assert "knowing the true run times would give" in room["text"]
    assert {"share_won", "served", "gain"} <= set(room)


def idle(count: int = 400) -> Trace:
    """Jobs that never meet."""
    one, submitted = np.ones(count), np.arange(0.0, 1_000.0 * count, 1_000.0)
    return independent_jobs(submitted, 100 * one, 150 * one, one.astype(np.int64), np.arange(count) % 2)


def test_nothing_is_searched_where_no_job_waits_unless_forced() -> None:
    steps = []
    for force in (False, True):
        trainer = KIND.trainer(Workload(spec(), samples=[("a", idle())]), Request(budget=1, force=force), None)
        training = Training(trainer)
        while not training.done:
            training.advance()
        report = training.result().report
        steps.append(len(report["curve"]) - 1)
        assert report["headroom"]["beyond"]["high"] < report["headroom"]["margin"]
        assert report["headroom"]["share_won"] is None
    assert steps == [0, 1]


def test_no_schedule_loses_less_than_the_bound() -> None:
    weighted = objective_weights(spec(weights={"slowdown": 1.0, "cost": 0.5}))
    for one in (*sequences(EASY), *(each._replace(objective=weighted) for each in sequences(NONE))):
        assert measure_losses(FCFS, [one])[0] >= least_loss(one)


def test_a_training_minds_what_the_workload_pays_for() -> None:
    node = {"name": "n", "processors": MACHINE, "minimum": 1, "maximum": 1, "price_per_hour": 2.0}
    own = spec(nodes=[node], weights={"slowdown": 0.0, "wait": 0.5, "cost": 1.0})
    whole = training(own, (("a", trace(0, 300)),), 0, 30_000)
    while not whole.done:
        whole.advance()
    report = whole.result().report
    assert report["return"]["mean"] == -report["terms"]["objective"]["mean"]
    assert min(rule["mean"] for rule in report["heuristics"].values()) >= 1.5  # the sum of the weights is the best


def test_what_is_charged_are_the_weighted_terms_and_their_weights() -> None:
    jobs = independent_jobs(
        np.array([0.0, 0.0]), np.array([3600.0, 3600.0]), np.full(2, 3600.0), np.array([16, 16]), np.full(2, -1)
    )
    node = {"name": "n", "processors": MACHINE, "minimum": 1, "maximum": 1, "price_per_hour": 2.0}
    weights = {"slowdown": 1.0, "wait": 10.0, "makespan": 100.0, "utilisation": 1_000.0, "cost": 10_000.0}
    objective = objective_weights(spec(nodes=[node], weights=weights))
    assert objective is not None
    first, second = (weighted_loss(objective, jobs, np.array([0.0, begun])) for begun in (3600.0, 7200.0))
    # slowdowns 1 and 2, waits 0 and 1 h, 2 h are the least, all of them busy, 2 h of the node are the work's price
    assert first == pytest.approx(11_111.0 + 0.5 + 10 * 0.5 + 0.0 + 0.0 + 10_000.0)
    assert second == pytest.approx(11_111.0 + 1.0 + 10 * 1.0 + 100 * 0.5 + 1_000 / 3 + 15_000.0)
    assert objective_weights(spec()) is None


def test_too_little_is_said_with_its_numbers() -> None:
    with pytest.raises(Untrainable, match=r"at least 64 finished tasks.*16 processors.*has 20"):
        training(spec(), (("a", trace(0, 20)),), 0)
    with pytest.raises(Untrainable, match=r"backfilling 'conservative'.*trained for none, rls, easy"):
        training(spec(backfilling="conservative"), (("a", trace(0, 200)),), 0)


TEN = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)  # of Lublin-1, as published


def test_what_is_not_shown_to_be_better_does_not_replace_what_ships() -> None:
    """Of thirteen contenders that are mere noise one is taken in at most a twentieth of choices; a real gain is."""
    rng = np.random.default_rng(0)
    others = 10.0 + rng.normal(size=(400, 24))
    noise = [any(_ahead(row + rng.normal(size=24), row, 13) for _ in range(13)) for row in others]
    assert np.mean(noise) <= 0.05 + 1.645 * np.sqrt(0.05 * 0.95 / 400)
    assert all(_ahead(row - 1.5 + rng.normal(size=24), row, 13) for row in others[:100])
    assert not _ahead(np.ones(1), np.full(1, 2.0), 13)


def test_pieces_do_not_overlap() -> None:
    source = Source(trace(0, 300), MACHINE, whole=False)
    result = pieces(source, 1_000)
    assert [one.tasks for one in result] == [37] * 8
    ends = np.concatenate([one.runtime for one in result])
    assert len(np.unique(np.stack([ends, np.concatenate([one.submit for one in result])]), axis=1).T) == 8 * 37


@pytest.mark.parametrize(("mechanism", "most"), [(NONE, 1.1 * 292.88), (RLS, 1.1 * 54.00)])
def test_what_ships_keeps_up_with_the_smallest_area_first(shared_data: Path, mechanism: int, most: float) -> None:
    """By the published definition: whole sequences from an empty machine; the standard error is 4 to 8 %."""
    log = read_swf(shared_data / "swf" / "lublin_256.swf.gz").trace
    results = []
    for start in TEN:
        part = piece(log, start, 1024)
        begun = play_agent(SHIPPED_AGENT, part, 256, mechanism, 0)
        results.append(np.maximum(1.0, (begun - part.submit + part.runtime) / np.maximum(part.runtime, 10.0)).mean())
    assert np.mean(results) < most


@pytest.mark.parametrize(("name", "machine", "peer"), [("KTH-SP2", 100, 45.80), ("SDSC-SP2", 128, 65.02)])
def test_what_ships_beats_the_best_learned_peer_on_a_whole_log(
    shared_data: Path, name: str, machine: int, peer: float
) -> None:
    log = read_swf(shared_data / "swf" / "pyss-schedules" / f"{name}.EASY.swf.gz", sort=True).trace
    begun = play_agent(SHIPPED_AGENT, log, machine, EASY, 0)
    assert np.maximum(1.0, (begun - log.submit + log.runtime) / np.maximum(log.runtime, 10.0)).mean() < peer
