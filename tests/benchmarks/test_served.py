"""What benchmarks play in this process is what the service answers over HTTP: queues, workflows, runs and requests.

Clusters have a test of their own, ``test_cluster_served``.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from fastapi.testclient import TestClient
from steward_demos.service import Steward

from app.database.engine import Database
from app.domain_models import service as domain_models
from app.kinds.inference.heuristics import BASELINES
from app.kinds.inference.layout import WAIT
from app.kinds.iterative.layout import Layout
from app.kinds.workflow.engine import ENGINE
from app.kinds.workflow.queue import Layout as LayoutOfNodes
from app.kinds.workflow.queue import pool
from app.kinds.workflow.spec import Limits
from app.kinds.workflow.trace import Trace
from app.main import create_app
from app.settings import Settings
from app.workloads import service as workloads
from benchmarks import inference_servers, workflow_live
from benchmarks.held_out import planted_suite
from benchmarks.held_out.ellis import spark
from benchmarks.held_out.engine import Engine, fitted_model
from benchmarks.held_out.planted_suite import PLANTED, plant
from benchmarks.held_out.play import Advice, Report, play
from benchmarks.held_out.served import Served
from benchmarks.held_out.world import Floats, Profile
from benchmarks.workflow_dags import instances
from tests.app.kinds.workflow.played import Cluster
from tests.app.kinds.workflow.played import play as play_workflow
from tests.workers.kinds.workflow.simulator.logs import lublin
from workers.inputs import Conditions
from workers.kinds.inference.simulator.kernels import NOW
from workers.kinds.inference.simulator.world import InferenceWorld
from workers.kinds.iterative.grid import Executions
from workers.kinds.workflow.simulator.simulate import parse_arguments, schedule_by_agent, schedule_by_rule

Json = dict[str, Any]


class Over(Steward):
    """A service in this process, reached by its routes."""

    def __init__(self, http: TestClient, database: Database) -> None:
        self.url, self._database = "http://testserver", database
        self._http: Any = http

    def publish(self, workload: str, model: bytes) -> None:
        """Have decisions follow a domain model, as a worker that fitted it would."""
        with self._database.session() as session:
            row = workloads.require(session, "default", workload)
            domain_models.publish(session, row.id, 1, {"family": "none"}, model)


@pytest.fixture
def steward(settings: Settings, database: Database) -> Iterator[Over]:
    """A service without workloads; requests from several threads share its event loop."""
    with TestClient(create_app(settings, database)) as http:
        yield Over(http, database)


FITTED = 3

# --- runs -----------------------------------------------------------------------------------------------------------


class Published(Served):
    """A service with the domain model of the engine that it is compared with."""

    def __init__(self, steward: Over, profile: Profile, model: bytes) -> None:
        self.name, self.agent, self.layout = "Steward", {}, Layout(profile.spec)
        self._steward, self._workload = steward, profile.spec.name
        steward.register(profile.spec.model_dump(mode="json"))
        steward.publish(self._workload, model)


class Both:
    """The engine in process, which is followed, and beside it the service, which must say the same."""

    name = "both"

    def __init__(self, steward: Over, profile: Profile) -> None:
        few = replace(profile, executions=Executions(profile.executions.items[:FITTED]))  # any model will do, soon
        model = fitted_model(few)
        self.engine, self.served, self.compared = Engine(profile, model=model), Published(steward, profile, model), 0

    def begin(self, features: Floats, upcoming: Floats) -> Advice:
        """The first decisions."""
        return self._same(self.engine.begin(features, upcoming), self.served.begin(features, upcoming))

    def next(self, report: Report) -> Advice:
        """Those after a report."""
        return self._same(self.engine.next(report), self.served.next(report))

    def _same(self, own: Advice, theirs: Advice) -> Advice:
        for ours, answered in zip(own, theirs, strict=True):
            np.testing.assert_array_equal(ours, answered)
        self.compared += len(own.allocation)
        return own


@pytest.mark.parametrize("name", ["logisticregression", "announced-features"])
def test_runs(name: str, steward: Over, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted_suite, "LONG", 60)  # a course and the beginning of its next
    current = plant(name, 0) if name in PLANTED else spark(shared_data, name)
    both = list[Both]()

    def learner(profile: Profile) -> Both:
        both.append(Both(steward, profile))
        return both[0]

    played = play(current, learner, 2, 1)
    assert both[0].compared == 2 * current.spec.iterations
    assert (np.diff(played.allocations, axis=1) != 0).any()


# --- queues ---------------------------------------------------------------------------------------------------------

PROCESSORS, JOBS = 256, 150


def live(steward: Over, trace: Trace, spec: Json) -> Floats:
    """When a launcher that does what it is answered starts each job, seconds, [N]."""
    steward.register(spec)
    run, number = steward.start(spec["name"])["id"], 0
    coming = [(float(at), "submitted", i) for i, at in enumerate(trace.submit)]
    heapq.heapify(coming)
    started, begun = list[int](), np.full(trace.tasks, np.nan)
    wake: float | None = None
    while coming:
        now, report = min(coming[0][0], wake or np.inf), defaultdict[str, list[Json]](list)
        fresh = {i: {"id": f"j{i}", "node": "pool-0", "start": float(begun[i])} for i in started}
        while coming and coming[0][0] == now:
            _, what, i = heapq.heappop(coming)
            if what == "ended":
                report["finished"].append({"id": f"j{i}", "end": now} | fresh.pop(i, {}))
            else:
                job = {"id": f"j{i}", "processors": int(trace.processors[i]), "estimate": float(trace.expected[i])}
                report["queued"].append(job)
        decision = steward.report(run, number, {"now": now, "delta": True, "running": [*fresh.values()], **report})
        number, wake = number + 1, decision["wake_at"]
        started = [int(one["task"][1:]) for one in decision["placements"]]
        for i in started:
            begun[i] = now
            heapq.heappush(coming, (now + float(trace.runtime[i]), "ended", i))
    return begun


@pytest.mark.parametrize(
    ("strategy", "backfilling", "order"),
    [
        ("fcfs", "none", "fcfs"),
        ("sjf", "easy", "fcfs"),
        ("f4", "easy", "sjf"),
        ("fcfs", "conservative", "fcfs"),
        ("agent", "easy", "sjf"),
    ],
)
def test_queues(strategy: str, backfilling: str, order: str, steward: Over, shared_data: Path) -> None:
    trace = lublin(shared_data, 0, JOBS)
    trace = trace._replace(estimate=trace.runtime * np.random.default_rng(1).uniform(1, 3, JOBS))
    nodes = pool(PROCESSORS)
    if strategy == "agent":
        requested = parse_arguments(["-", "--strategy", strategy, "--backfilling", backfilling, "--order", order])
        own = schedule_by_agent(trace, nodes, requested, Limits())
    else:
        own = schedule_by_rule(trace, nodes, strategy, backfilling, order)
    spec = {
        "name": "queue",
        "kind": "workflow",
        "nodes": [{"name": "pool", "processors": PROCESSORS, "minimum": 1, "maximum": 1}],
        "strategy": strategy,
        "backfilling": backfilling,
        "backfill_order": order,
    }
    np.testing.assert_array_equal(live(steward, trace, spec), own.start)
    assert (own.start > trace.submit).sum() > JOBS / 10


# --- workflows ------------------------------------------------------------------------------------------------------

MOMENTS = ("decided_at", "run")


@pytest.mark.parametrize("strategy", ["heft", "cpop", "cheapest"])
def test_workflows(strategy: str, steward: Over, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEWARD_DATA", str(shared_data))
    trace = next(trace for trace in instances() if 50 <= trace.tasks <= 100)
    spec = workflow_live.spec(trace, 1.0, strategy)
    steward.register(spec.model_dump(mode="json"))
    run, own = steward.start(spec.name)["id"], workflow_live.deciding(ENGINE, spec)

    def decide(iteration: int, report: Json) -> Json:
        theirs, ours = steward.report(run, iteration, report), own(iteration, report)
        assert {k: v for k, v in theirs.items() if k not in MOMENTS} == {
            k: v for k, v in ours.items() if k not in MOMENTS
        }
        return ours

    on, stray = LayoutOfNodes(spec), np.random.default_rng(0).lognormal(0.0, 0.3, trace.tasks)
    played = play_workflow(Cluster(trace, on.names, on.nodes, trace.runtime * stray), decide)
    assert sum(len(one["placements"]) for one in played.decisions) == trace.tasks


# --- requests -------------------------------------------------------------------------------------------------------


SECONDS = 30.0


class Chosen(NamedTuple):
    """What is started or turned at a moment: seconds, class of servers, and what."""

    at: float
    server: str
    what: str


def simulated(case: inference_servers.Case, slower: float) -> tuple[list[Chosen], list[tuple[float, int]]]:
    """What the rule does in the benchmark's first window, where batches take so many times as long as is believed."""
    met = replace(case.model, log_seconds=case.model.log_seconds + np.log(slower))
    world = InferenceWorld(case.layout, [met], Conditions(1, 0), case.load.test, case.model)
    world.reset()
    origin, layout, chosens = float(world.load.origin[0]), case.layout, list[Chosen]()
    while True:
        now, requested = float(world.worlds.clock[0, NOW]), int(world.state.context[0])
        action = int(BASELINES[0].act(world.situation).action[0])
        if action > layout.dispatches:
            server, off = divmod(action - 1 - layout.dispatches, 2)
            chosens.append(Chosen(now, layout.servers[server], "off" if off else "on"))
        elif action != WAIT:
            user, variant, batch = (int(part) for part in layout.dispatch_of(action))
            what = f"{layout.users[user]} {layout.variants[variant]} {layout.batches[batch]}"
            chosens.append(Chosen(now, layout.servers[requested], what))
        if world.step(np.array([action])).done.all():
            break
    window = layout.spec.episode_seconds
    requests = [
        (float(at - origin), user)
        for user, own in enumerate(case.load.test.times)
        for at in own[(own > origin) & (own < origin + window)]
    ]
    return chosens, sorted(requests)


def dispatched(
    steward: Over, case: inference_servers.Case, slower: float, requests: list[tuple[float, int]]
) -> list[Chosen]:
    """What the service has a launcher do that meets the same requests, batches and starts of servers."""
    layout, name = case.layout, case.layout.spec.name
    steward.register(layout.spec.model_dump(mode="json"))
    steward.publish(name, case.model.to_bytes())
    run, number, chosens = steward.start(name)["id"], 0, list[Chosen]()
    coming: list[tuple[float, str, str]] = [(at, "arrived", layout.users[user]) for at, user in requests]
    coming += [(at, "control", "") for at in np.arange(0, layout.spec.episode_seconds, layout.spec.control_seconds)]
    heapq.heapify(coming)
    wake = np.inf
    while coming:
        now, report = min(coming[0][0], wake), defaultdict[str, list[Json]](list)
        while coming and coming[0][0] <= now:
            at, what, which = heapq.heappop(coming)
            if what == "arrived":
                report["arrived"].append({"user": which, "at": at})
            elif what == "finished":
                report["finished"].append({"server": which, "at": at})
            elif what == "up":
                report["servers"].append({"server": which, "state": "up", "at": at})
        decision = steward.report(run, number, {"at": now, **report})
        number, wake = number + 1, np.inf if decision["wake_at"] is None else decision["wake_at"]
        for server in decision["turn_off"]:
            coming = [one for one in coming if one[1:] != ("up", server)]
            heapq.heapify(coming)
            chosens.append(Chosen(now, server.rsplit("-", 1)[0], "off"))
        for server in decision["turn_on"]:
            kind = server.rsplit("-", 1)[0]
            heapq.heappush(coming, (now + float(layout.startup[layout.servers.index(kind)]), "up", server))
            chosens.append(Chosen(now, kind, "on"))
        for one in decision["start"]:
            heapq.heappush(coming, (now + one["expected_seconds"] * slower, "finished", one["server"]))
            what = f"{one['user']} {one['variant']} {one['batch']}"
            chosens.append(Chosen(now, one["server"].rsplit("-", 1)[0], what))
    return chosens


@pytest.mark.parametrize(("part", "slower"), [("bursty-8", 1.0), ("poisson-0", 1.3)])
def test_requests(part: str, slower: float, steward: Over, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEWARD_DATA", str(shared_data))
    monkeypatch.setattr(inference_servers, "WINDOW", SECONDS)
    case = inference_servers.case(part)
    own, requests = simulated(case, slower)
    theirs = dispatched(steward, case, slower, requests)
    assert len(own) > 100
    assert {"on"} <= {one.what for one in own}
    for ours, answered in zip(own, theirs, strict=True):
        assert (ours.server, ours.what) == (answered.server, answered.what), (ours, answered)
        assert answered.at == pytest.approx(ours.at, abs=1e-6)
