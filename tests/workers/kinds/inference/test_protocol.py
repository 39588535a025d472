"""The evaluation protocol on workloads of kind ``inference``: planted candidates come out in the class they deserve."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.columns import MICRO
from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.inference.heuristics import BASELINES
from app.kinds.inference.samples import Content, Requests
from app.policies.network import NetworkPolicy
from tests.workers.evaluation.report.test_page import Seen
from tests.workers.kinds.inference.systems import layout, service
from workers.evaluation.arena import Bare, Scores, play
from workers.evaluation.candidate import Candidate, Settings
from workers.evaluation.protocol import Evaluation, evaluate
from workers.evaluation.report.page import page
from workers.evaluation.statistics import Level, mean_interval
from workers.inputs import Conditions, HoldOut, Workload
from workers.kinds.inference import KIND
from workers.kinds.inference.evaluation.problem import InferenceProblem, exchange_users, kept_back, users_kept_back
from workers.kinds.inference.kind import LearnedInference
from workers.kinds.inference.simulator.world import Clients
from workers.kinds.simulated.training import SimulatedTraining
from workers.learning.algorithms.registry import algorithm
from workers.learning.execution.joint import IndependentAgents
from workers.learning.training.driver import PlannedPolicy

SERVERS = [{"name": "cpu", "minimum": 1, "maximum": 2, "price_per_hour": 1.0}]
MADE = layout(
    users=2,
    variants=2,
    servers=SERVERS,
    episode_seconds=5,
    control_seconds=2,
    batches=[1, 4],
    queue_limit=50,
    quality={"full_until": 0.1, "zero_at": 1.0},
)
SECONDS = np.array([[[0.05, 0.1], [0.15, 0.3]]])
RULES = ("largest_batch", "lookahead")
SETTINGS = Settings(episodes=8, trials=3, tuning_episodes=4, demonstrations=2, seed=1)


def problem() -> InferenceProblem:
    """A busy pair of servers, of which one may be off; L3 is slower and has more to do."""
    own, other = (service(MADE, factor * SECONDS, [4.0 * factor, 3.0], 0.1, 0.1) for factor in (1.0, 1.2))
    problem = InferenceProblem(KIND, Workload(MADE.spec, own.to_bytes()), (other.to_bytes(),), "")
    problem.heuristics = {name: problem.heuristics[name] for name in RULES}
    return problem


class Memoriser:
    """Does what it did in one episode, decision by decision, as far as that is legal."""

    name = "memoriser"

    def __init__(self, actions: Sequence[int]) -> None:
        self.actions, self.taken = actions, 0

    def begin(self, seed: int) -> None:
        del seed
        self.taken = 0

    def act(self, situation: Situation) -> Choice:
        action = self.actions[min(self.taken, len(self.actions) - 1)]
        self.taken += 1
        return Choice(np.where(situation.view.mask[:, action], action, 0))


class Told:
    """Has seen every episode under every rule, and follows the one that is best in it."""

    name = "told"

    def __init__(self, rules: Sequence[Policy]) -> None:
        self.rules = rules

    def watch(self, world: Any) -> None:
        self.best = np.argmax([returns(copy.deepcopy(world), Bare(rule)) for rule in self.rules], axis=0)

    def act(self, situation: Situation) -> Choice:
        actions = np.stack([rule.act(situation).action for rule in self.rules])
        return Choice(actions[self.best, np.arange(len(self.best))])


def returns(world: Any, player: Bare) -> NDArray[np.float64]:
    world.reset()
    total, going = world.paid.copy(), np.ones(world.batch, bool)
    while going.any():
        done = world.step(player.move(world.situation).action).done
        total += world.paid * going
        going &= ~done
    return np.asarray(total)


def memorised(problem: InferenceProblem, rule: Policy) -> tuple[float, list[int]]:
    """What a rule earns in the fixed episode, and how."""
    actions = list[int]()
    world = problem.world(1, SETTINGS.seed)
    scores = play(world, Level.FIXED, 0, Bare(rule), lambda _, action, going: actions.extend(action[going].tolist()))
    return float(scores.returns[0]), actions


@pytest.fixture(scope="module")
def planted() -> Evaluation:
    result = problem()
    rules = list(result.heuristics.values())
    _, actions = max(memorised(result, rule) for rule in rules)
    candidates = [Candidate("memoriser", [Memoriser(actions)]), Candidate("told", [Told(rules)])]
    return evaluate(result, candidates, SETTINGS)


def candidate(evaluation: Evaluation, name: str) -> dict[str, Any]:
    return next(c for c in evaluation.as_dict()["candidates"] if c["name"] == name)


def test_a_memoriser_is_classed_l0(planted: Evaluation) -> None:
    levels = candidate(planted, "memoriser")["levels"]
    assert planted.class_of("memoriser") == "L0"
    assert levels[0]["advantage"]["mean"] == 0
    assert levels[1]["advantage"]["high"] < 0


def test_an_oracle_is_classed_l4(planted: Evaluation) -> None:
    assert planted.class_of("told") == "L4"
    assert [level["passed"] for level in candidate(planted, "told")["levels"]] == [True] * 5


def test_all_levels_are_played_and_each_adds_what_it_says(planted: Evaluation) -> None:
    fields = planted.as_dict()
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
    assert [level["available"] for level in fields["levels"]] == [True] * 6
    assert fields["levels"][3]["wrappers"] == ["seeds", "parameters"]
    assert fields["levels"][4]["wrappers"] == ["seeds", "parameters", "held_out"]
    last = fields["levels"][5]
    assert set(last["wrappers"]) > {"drift", "capacity", "load", "failures", "noise"}
    before, after = (
        level["policies"]["lookahead"]["outcomes"]["response_quality"]["mean"] for level in fields["levels"][4:]
    )
    assert after < before - 0.02
    assert set(fields["tuner"]["settings"]) == {"variant", "batch"}
    statics = problem()
    assert statics.static({"variant": 1, "batch": 0}).name == "v1_1"


def test_the_page_draws_what_became_of_requests(planted: Evaluation) -> None:
    fields = planted.as_dict()
    names = [series["name"] for series in fields["pictures"]["plots"][0]["panels"][0]["series"]]
    assert names[:2] == ["memoriser", "told"]
    assert set(names) <= {"memoriser", "told", *KIND.baselines(Workload(MADE.spec))}
    shown = Seen(page(fields))
    assert {"Requests, one by one", "Variants that answer, by when the requests came"} <= set(shown.texts)


def content(first: float, last: float, batches: int) -> Content:
    time = np.linspace(first, last, 400) * MICRO
    rows = np.array([[variant, 1, 0, 1, 0.1] for variant in (0, 1) for _ in range(batches)]).reshape(-1, 5)
    return Content(rows, Requests(time.astype(np.int64), np.zeros(400, np.uint8), np.full(400, np.nan)))


def test_logs_are_held_out_and_of_a_single_one_its_end() -> None:
    days = [(f"day-{i}", content(i * 86_400.0, (i + 1) * 86_400.0, 0)) for i in range(4)]
    measured = ("measured", content(0, 1, 3)._replace(requests=Requests(*(np.zeros(0, t) for t in (int, int, float)))))
    several = kept_back([*days, measured], 2, HoldOut(share=0.5, unseen=frozenset({"day-1"})), 0)
    assert len(several.chosen.names) == 2
    assert "day-1" in several.chosen.names
    assert {name for name, _ in several.samples} == {*several.chosen.names, "measured"}
    single = kept_back([days[0], measured], 2, HoldOut(share=0.25), 0)
    (_, selection), (_, batches) = single.samples
    assert selection.requests.time[0] == pytest.approx(0.75 * 86_400 * MICRO, rel=0.01)
    assert (len(batches.batches), len(batches.requests.time)) == (6, 0)
    named = kept_back([*days, measured], 2, HoldOut(executions=["day-3"]), 0)
    assert named.chosen.names == ("day-3",)
    own = kept_back([("a", content(0, 100, 3)), ("b", content(100, 200, 3))], 2, HoldOut(share=0.5), 0)
    assert len(own.samples) == 1, "its own measured batches suffice"


def of_user(user: int) -> Content:
    """A log of one user alone."""
    result = content(0.0, 100.0, 3)
    return result._replace(requests=result.requests._replace(user=np.full(400, user, np.uint8)))


def test_users_are_held_out_those_first_whose_requests_no_model_knew() -> None:
    logs = [("old", of_user(0)), ("new", of_user(1)), ("again", of_user(0))]
    hold_out = HoldOut(share=0.3, unseen=frozenset({"new"}), of="users")
    for seed in range(5):
        chosen = users_kept_back(["a", "b", "c"], logs, hold_out, seed)
        assert (chosen.names in {("b",), ("c",)}, chosen.unseen) == (True, 1), "c never came, b not before the model"
    everybody = users_kept_back(["a", "b", "c"], logs, HoldOut(share=0.99, of="users"), 0)
    assert (len(everybody.names), everybody.unseen) == (2, 1)
    assert users_kept_back(["a"], logs, hold_out, 0).names == ()


def test_who_is_held_out_changes_places_with_others_and_nothing_else_changes() -> None:
    result = service(layout(users=4, queue_limit=50), 0.1, [1.0, 2.0, 3.0, 4.0])
    result = replace(result, variation=np.array([0.1, 0.2, 0.3, 0.4]))
    service_models = exchange_users(result, ["a", "b", "c", "d"], ["b", "d"], 0)
    rates = [model.rate[:, 0].tolist() for model in service_models]
    assert rates == [[2, 1, 3, 4], [1, 3, 2, 4], [1, 4, 3, 2], [4, 2, 3, 1], [1, 2, 4, 3]]
    assert [model.variation.tolist() for model in service_models[:1]] == [[0.2, 0.1, 0.3, 0.4]]
    assert all(np.array_equal(model.log_seconds, result.log_seconds) for model in service_models)


def test_l3_of_users_plays_them_in_other_places() -> None:
    workload = Workload(MADE.spec, service(MADE, SECONDS, [120.0, 0.5], 0.1, 0.1).to_bytes(), [("one", of_user(0))])
    result, report = KIND.evaluation(workload, HoldOut(of="users"), 0)
    assert (report["names"], report["of"], report["users"], report["unseen"]) == (["u1"], "users", 1, 1)
    assert "change places" in report["note"]
    rule = next(iter(result.heuristics.values()))
    shares = [
        play(result.world(32, 3), level, 3, Bare(rule)).outcomes[:, -2:].mean(axis=0)
        for level in (Level.SEEDS, Level.COMPOSITION)
    ]
    assert shares[0][0] > 2 * shares[0][1], "of more than servers can do, whole batches of one user come first"
    assert shares[1][1] > 2 * shares[1][0]


@pytest.mark.slow
def test_agents_of_users_are_judged_together_at_every_level() -> None:
    """Users' delays and prices, users in other places, load and lost servers: an artifact by role goes through all."""
    spec = MADE.spec.model_copy(update={"policies": "per_user"})
    workload = Workload(spec, service(MADE, SECONDS, [4.0, 3.0], 0.1, 0.1).to_bytes(), [("one", of_user(0))])
    learning = Clients(KIND.world(workload, Conditions(4, 0, "learning")))
    untrained = IndependentAgents(algorithm("ppo").config, learning.roles, 0).export()
    policies = {
        name: NetworkPolicy.build({"algorithm": "ppo", **config}, dict(arrays))
        for name, (_, config, arrays) in untrained.items()
    }
    result, _ = KIND.evaluation(workload, HoldOut(of="users"), 0)
    assert isinstance(result, InferenceProblem)
    result.heuristics = {name: result.heuristics[name] for name in RULES}
    judged = evaluate(result, [Candidate("agents", [KIND.save(policies, spec)])], replace(SETTINGS, trials=0)).as_dict()
    assert [level["available"] for level in judged["levels"]] == [True] * 6
    assert {"held_out", "load", "capacity", "failures"} <= set(judged["levels"][5]["wrappers"])
    [agents] = judged["candidates"]
    assert len(agents["levels"]) == 5
    outcomes = judged["levels"][5]["policies"]["agents"]["outcomes"]
    assert {"jain", "quality.u0", "quality.u1"} <= set(outcomes)
    assert page(judged)


def test_rules_that_differ_by_their_scaler_play_once_where_servers_stay_on(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = layout(2, 2, servers=[{"name": "cpu", "minimum": 2, "maximum": 2}], episode_seconds=8, batches=[1, 4])
    model, played = service(fixed, SECONDS, [4.0, 3.0], 0.1, 0.1).to_bytes(), list[Policy]()
    workload, before = Workload(fixed.spec, model), SimulatedTraining._judged

    def judged(self: SimulatedTraining, policy: Policy) -> Scores:
        played.append(policy)
        return before(self, policy)

    monkeypatch.setattr(LearnedInference, "judged_episodes", 8)
    monkeypatch.setattr(SimulatedTraining, "_judged", judged)
    rules = KIND.baselines(workload)
    config = {"algorithm": "dqn", "layers": [4], "activation": "relu", "dueling": False}
    shapes = {"trunk.0": (4, len(fixed.entries)), "advantage": (fixed.actions, 4)}
    arrays: dict[str, Any] = {f"{name}.weight": np.zeros(shape, np.float32) for name, shape in shapes.items()}
    arrays |= {f"{name}.bias": np.zeros(rows, np.float32) for name, (rows, _) in shapes.items()}
    artifact = KIND.save(NetworkPolicy.build(config, arrays), fixed.spec)
    heuristics = SimulatedTraining(KIND, workload, 0).judge(artifact, PlannedPolicy(), None, 0.0)["heuristics"]
    assert [*rules] == [*heuristics] == [*KIND.baselines(Workload(MADE.spec))]
    assert heuristics["lookahead"] == heuristics["lookahead+expected_return"]
    assert len(played) == 1 + len(set(map(id, rules.values()))) == 6
    for name in rules:
        own = SimulatedTraining(KIND, workload, 0)._judged(next(one for one in BASELINES if one.name == name))
        assert mean_interval(own.returns.astype(np.float64)) == heuristics[name]
