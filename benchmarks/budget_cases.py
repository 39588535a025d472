"""Every operation of the API at its largest legal input: what ``benchmarks.budgets`` measures and a test checks.

A case makes one request. What it needs is made in the database by the services' own functions, or by requests before
it; so a case can be repeated, each time on something new where the request changes what is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from app.agents import service as agents
from app.agents.service import TrainingResult
from app.database.engine import Database
from app.database.tables import Job, Key
from app.domain_models import service as domain_models
from app.evaluations import service as evaluations
from app.evaluations.schemas import Verdict
from app.evaluations.service import EvaluationResult
from app.kinds.forecasting.answer import Forecaster, serialise
from app.kinds.forecasting.families import Last
from app.kinds.forecasting.series import Series
from app.kinds.inference.layout import Layout
from app.kinds.inference.spec import InferenceSpec
from app.kinds.registry import parse_spec
from app.samples.service import layout_of
from app.workloads import service as workloads
from tests.app.domain_models.published import TENANT, doubling, publish_agent, publish_model
from tests.app.kinds.inference.runs import model as inference_model

JSON = {"Content-Type": "application/json"}
MOST_ROWS = 500
DAY = datetime(2026, 1, 1, tzinfo=UTC)


class Sent(NamedTuple):
    """One request."""

    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = JSON


Call = Callable[[str, str, Any], Any]


@dataclass
class World:
    """What cases are made in: a database, a way to ask the service, and what was made before."""

    database: Database
    call: Call
    count: int = 0
    shared: dict[str, Any] = field(default_factory=dict)

    def number(self) -> int:
        """One that was not given before."""
        self.count += 1
        return self.count

    def once(self, name: str, make: Callable[[World], Any]) -> Any:
        """What is made once."""
        if name not in self.shared:
            self.shared[name] = make(self)
        return self.shared[name]

    def workload(self, spec: dict[str, Any]) -> str:
        """The name of a workload that is registered once."""

        def register(world: World) -> str:
            return workloads.register(world.database, TENANT, parse_spec(spec)).name

        return str(self.once(f"workload {spec['name']}", register))


class Case(NamedTuple):
    """An operation at one of its largest inputs; ``streamed``: sent in pieces or a file, of any length."""

    operation: str
    name: str
    prepare: Callable[[World], Sent]
    streamed: bool = False
    status: int = 200


def long(prefix: str, number: int, length: int = 63) -> str:
    """A name of that length."""
    return f"{prefix}{number}".ljust(length, "x")


def dumped(value: Any) -> bytes:
    """As JSON, without spaces: as much as there can be in a body."""
    return json.dumps(value, separators=(",", ":")).encode()


def iterative(name: str = "iterative") -> dict[str, Any]:
    """As many metrics, features, allocations and joint actions as there may be."""
    steps = (2, 1, 1, 1, 1)
    resources = [
        {"name": long("r", at), "unit": "u" * 63, "minimum": 1, "maximum": 7, "max_steps": most, "price_per_hour": 1.5}
        for at, most in enumerate(steps)
    ]
    metrics = [
        {"name": long("m", at), "unit": "u" * 63, "target": 9.5, "goal": "at_least", "scope": "run"} for at in range(13)
    ]
    timed = {"name": "iteration_seconds", "unit": "s", "target": 1800, "scope": "run"}
    features = [{"name": long("f", at), "minimum": 1, "maximum": 512} for at in range(8)]
    return {
        "name": name, "kind": "iterative", "resources": resources, "metrics": [*metrics, timed], "features": features,
        "iterations": 100_000,
    }  # fmt: skip


def small(name: str) -> dict[str, Any]:
    """A workload that a cluster may have as a member."""
    resource = {"name": "gpus", "minimum": 1, "maximum": 8}
    return {"name": name, "kind": "iterative", "resources": [resource], "iterations": 90}


def cluster(name: str = "cluster", nodes: int = 4_096, members: Sequence[str] = ()) -> dict[str, Any]:
    """As many classes, queues and GPUs as there may be."""
    each = [{"name": long("n", at), "count": nodes // 16, "gpus": 64, "price_per_hour": 1.5} for at in range(16)]
    queues = [{"name": long("q", at), "ageing_seconds": 99.5 if at else None} for at in range(16)]
    return {"name": name, "kind": "cluster", "nodes": each, "queues": queues, "members": list(members)}


def inference(name: str = "inference") -> dict[str, Any]:
    """As many variants, servers, users and requests as there may be."""
    quality = {"full_until": 0.5, "zero_at": 2.5}
    return {
        "name": name,
        "kind": "inference",
        "variants": [{"name": long("v", at), "accuracy": 0.5} for at in range(16)],
        "servers": [{"name": long("s", at), "minimum": 125, "maximum": 125} for at in range(8)],
        "users": [{"name": long("u", at), "quality": quality} for at in range(32)],
        "batches": [1, 2, 4, 8, 16, 32, 64, 128],
        "queue_limit": 312,
    }


def workflow(name: str = "workflow") -> dict[str, Any]:
    """As many nodes as there may be."""
    nodes = [{"name": long("n", at), "processors": 8, "minimum": 256, "maximum": 256} for at in range(16)]
    return {"name": name, "kind": "workflow", "nodes": nodes}


SPECS = {"iterative": iterative, "cluster": cluster, "inference": inference, "workflow": workflow}


def _members(world: World) -> list[str]:
    return world.once("members", lambda _: [world.workload(small(long("member", at))) for at in range(256)])


def _spec(world: World, kind: str, name: str) -> dict[str, Any]:
    return cluster(name, members=_members(world)) if kind == "cluster" else SPECS[kind](name)


def _largest(world: World, kind: str) -> str:
    return world.workload(_spec(world, kind, kind))


def _register(kind: str) -> Callable[[World], Sent]:
    def prepare(world: World) -> Sent:
        return Sent("POST", "/workloads", dumped(_spec(world, kind, long(kind, world.number()))))

    return prepare


def _patch(kind: str) -> Callable[[World], Sent]:
    def prepare(world: World) -> Sent:
        spec = _spec(world, kind, kind)
        _largest(world, kind)
        price = 2.0 + world.number()
        parts = {"iterative": "resources", "cluster": "nodes", "inference": "servers", "workflow": "nodes"}
        patch: dict[str, Any] = {"prices": {one["name"]: price for one in spec[parts[kind]]}}
        if kind == "iterative":
            patch["targets"] = {one["name"]: price for one in spec["metrics"]}
        if kind == "cluster":
            patch |= {"queues": {one["name"]: {"weight": price} for one in spec["queues"]}, "members": spec["members"]}
        if kind == "inference":
            patch["users"] = {one["name"]: price for one in spec["users"]}
            patch["qualities"] = {one["name"]: {"full_until": 0.5, "zero_at": price} for one in spec["users"]}
        return Sent("PATCH", f"/workloads/{kind}", dumped(patch))

    return prepare


def _read(path: str, *kinds: str) -> Callable[[World], Sent]:
    def prepare(world: World) -> Sent:
        for kind in kinds:
            _largest(world, kind)
        return Sent("GET", path, headers={})

    return prepare


def _many_workloads(world: World) -> Sent:
    world.once("many", lambda _: [_largest(world, kind) for kind in SPECS])
    world.once("copies", lambda _: [world.workload(inference(f"copy-{at}")) for at in range(150)])
    return Sent("GET", f"/workloads?limit={MOST_ROWS}", headers={})


def _deleted_workload(world: World) -> Sent:
    return Sent("DELETE", f"/workloads/{world.workload(iterative(f'gone-{world.number()}'))}", headers={})


def _samples(count: int) -> list[dict[str, Any]]:
    """Executions of the smallest workload, as many values as JSON may hold."""
    report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}}
    return [{"execution": long("e", at, 255), "reports": [report] * 4} for at in range(count)]


def _upload(media: str, size: int) -> Callable[[World], Sent]:
    def prepare(world: World) -> Sent:
        name, first = world.workload(small(f"samples-{media[-3:]}")), world.number()
        if media == "application/json":
            named = [one | {"execution": f"{first}-{one['execution'][:200]}"} for one in _samples(size)]
            body = dumped({"samples": named})
        else:
            head = "execution,iteration,allocation.gpus,metric.iteration_seconds\n"
            rows = "".join(f"{first}-{at // 90},{at % 90},4,31.5\n" for at in range(size))
            body = (head + rows).encode()
        return Sent("POST", f"/workloads/{name}/samples", body, {"Content-Type": media})

    return prepare


def _stored_samples(world: World) -> str:
    def store(_: World) -> str:
        name = world.workload(small("stored") | {"iterations": 100_000})
        world.call("POST", f"/workloads/{name}/samples", {"samples": _samples(600)})
        execution = {"execution": "long", "reports": [_samples(1)[0]["reports"][0]] * 9_000}
        world.call("POST", f"/workloads/{name}/samples", {"samples": [execution]})
        return name

    return str(world.once("samples", store))


def _samples_of(query: str, accept: str = "application/json") -> Callable[[World], Sent]:
    return lambda world: Sent("GET", f"/workloads/{_stored_samples(world)}/samples?{query}", headers={"Accept": accept})


def _deleted_samples(world: World) -> Sent:
    name = world.workload(small(f"emptied-{world.number()}"))
    world.call("POST", f"/workloads/{name}/samples", {"samples": _samples(500)})
    return Sent("DELETE", f"/workloads/{name}/samples?before=2100-01-01T00:00:00Z", headers={})


def _issue(world: World) -> dict[str, Any]:
    at = DAY + timedelta(seconds=world.number())
    rows = [
        {"time": (DAY + timedelta(hours=n)).isoformat(), "mean": 1.5e99, "low": 1.25e99, "high": 1.75e99}
        for n in range(2_000)
    ]
    return {"issued_at": at.isoformat(), "rows": rows}


def _put_series(world: World) -> Sent:
    name = world.workload(inference(f"series-{world.number()}"))
    return Sent("PUT", f"/workloads/{name}/exogenous/{long('s', 0)}", dumped(_issue(world)))


def _series(path: str, method: str = "GET") -> Callable[[World], Sent]:
    def store(world: World) -> str:
        name = world.workload(small(f"exogenous-{world.number()}"))
        world.call("PUT", f"/workloads/{name}/exogenous/{long('s', 0)}", _issue(world))
        return name

    def prepare(world: World) -> Sent:
        name = world.once("series", store) if method == "GET" else store(world)
        return Sent(method, f"/workloads/{name}/exogenous{path}", headers={})

    return prepare


TEXT = "a word or two of what came of it, "
FIGURES = {"mean": 0.123456789, "low": 0.012345678, "high": 0.234567891, "text": TEXT}
REPORT: dict[str, Any] = {"family": "none", "metrics": {long("m", at): [FIGURES] * 14 for at in range(16)}}
"""About what a worker tells of a model or an agent of the largest workload."""


def _publish_flat(database: Database, name: str) -> None:
    """A model by which everything takes two seconds."""
    with database.session() as session:
        workload = workloads.require(session, TENANT, name)
        table = doubling(layout_of(workload))
        table.log_mean[:] = np.log(2)
        domain_models.publish(session, workload.id, workload.spec_version, REPORT, table.to_bytes())


def _judged(world: World) -> str:
    """A workload with many models, agents, promotions, jobs and evaluations."""

    def make(_: World) -> str:
        name, database = _largest(world, "iterative"), world.database
        _publish_flat(database, name)
        publish_agent(database, name, promote=True)
        with database.session() as session:
            workload = workloads.require(session, TENANT, name)
            identifier, version = workload.id, workload.spec_version
        for _number in range(40):
            with database.session() as session:
                domain_models.publish(session, identifier, version, REPORT, b"x")
                trained = TrainingResult(
                    version, 1, "dqn", 0, {"algorithm": "dqn", **REPORT}, b"x", False, "good " * 200
                )
                agents.publish(session, identifier, trained)
        verdicts = [Verdict(agent=at + 1, level="L2", reason="r" * 500) for at in range(8)]
        request = {"agents": [*range(1, 9)], "held_out": {"executions": _executions(world)}}
        result = EvaluationResult(version, 1, request, verdicts, {"levels": [REPORT] * 4}, b"<p>word</p>" * 90_000)
        with database.session() as session:
            world.shared["evaluation"], *_others = [evaluations.publish(session, identifier, result) for _ in range(4)]
        return name

    return str(world.once("judged", make))


def _executions(world: World) -> list[str]:
    name = _training_set(world)
    names = [long("e", at, MOST_EXECUTION_NAMES // 1_000) for at in range(1_000)]
    report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}}
    samples = [{"execution": one, "reports": [report] * 4} for one in names]
    world.once("named", lambda _: world.call("POST", f"/workloads/{name}/samples", {"samples": samples}))
    return names


MOST_EXECUTION_NAMES = 200_000


def _judged_path(path: str, method: str = "GET", body: Any = None) -> Callable[[World], Sent]:
    def prepare(world: World) -> Sent:
        name = _judged(world)
        full = path.format(w=f"/workloads/{name}", evaluation=world.shared["evaluation"])
        return Sent(method, full, b"" if body is None else dumped(body), {} if body is None else JSON)

    return prepare


def _training_set(world: World) -> str:
    """A workload with samples, a model and an agent."""

    def make(_: World) -> str:
        name = world.workload(small("trained"))
        world.call("POST", f"/workloads/{name}/samples", {"samples": _samples(20)})
        publish_model(world.database, name)
        for _number in range(3):
            publish_agent(world.database, name)
        world.call("POST", f"/workloads/{name}/agents/1/promote", {})
        return name

    return str(world.once("training", make))


def _trained(path: str, method: str, body: Any = None) -> Callable[[World], Sent]:
    def prepare(world: World) -> Sent:
        full = path.format(w=f"/workloads/{_training_set(world)}")
        return Sent(method, full, b"" if body is None else dumped(body), {} if body is None else JSON)

    return prepare


def _evaluate(world: World) -> Sent:
    held_out = {"executions": _executions(world)}
    return Sent("POST", "/evaluations", dumped({"workload": _training_set(world), "held_out": held_out}))


def _deleted(path: str, of: str) -> Callable[[World], Sent]:
    def prepare(world: World) -> Sent:
        name = _training_set(world)
        if of == "agent":
            version = publish_agent(world.database, name)
        elif of == "model":
            version = publish_model(world.database, name)
            publish_model(world.database, name)
        return Sent("DELETE", path.format(w=f"/workloads/{name}", version=version), headers={})

    return prepare


def _rolled_back(world: World) -> Sent:
    name = _training_set(world)
    for agent in (2, 3):
        world.call("POST", f"/workloads/{name}/agents/{agent}/promote", {"reason": "r" * 500})
    return Sent("POST", f"/workloads/{name}/agents/3/rollback", dumped({"reason": "r" * 500}))


def _deleted_evaluation(world: World) -> Sent:
    name = _judged(world)
    with world.database.session() as session:
        workload = workloads.require(session, TENANT, name)
        result = EvaluationResult(1, 1, {}, [], {"levels": [REPORT] * 4}, b"x" * 1_000_000)
        return Sent("DELETE", f"/evaluations/{evaluations.publish(session, workload.id, result)}", headers={})


def _job(path: str, method: str = "GET") -> Callable[[World], Sent]:
    def prepare(world: World) -> Sent:
        name = _training_set(world)
        job = world.call("POST", f"/workloads/{name}/models", {"seed": world.number()})["id"]
        if path.endswith(("/events", "/retry")) or method == "DELETE":
            world.call("POST", f"/jobs/{job}/cancel", None)
        return Sent(method, path.format(job=job), headers={})

    return prepare


def _jobs(world: World) -> Sent:
    name = _training_set(world)

    def make(_: World) -> None:
        problem = {"type": "about:blank", "title": "Failed", "detail": "d" * 900, "status": 500}
        with world.database.session() as session:
            of = workloads.require(session, TENANT, name).id
            each = {"tenant": TENANT, "workload_id": of, "type": "fit", "request": {}, "state": "failed"}
            session.add_all([Job(**each, error=problem) for _ in range(MOST_ROWS)])

    world.once("jobs", make)
    return Sent("GET", f"/jobs?limit={MOST_ROWS}", headers={})


def _features() -> dict[str, float]:
    return {one["name"]: 123.456 for one in iterative()["features"]}


def _upcoming() -> list[dict[str, Any]]:
    return [{"features": _features()}] * 1_000


def _start_body(world: World, kind: str) -> dict[str, Any]:
    name = _largest(world, kind)
    if kind != "iterative":
        return {"workload": name}
    targets = {one["name"]: 9.5 for one in iterative()["metrics"]}
    return {"workload": name, "targets": targets, "features": _features(), "upcoming": _upcoming()}


def _started(world: World, spec: dict[str, Any]) -> str:
    return str(world.call("POST", "/runs", {"workload": world.workload(spec)})["id"])


def _start(kind: str) -> Callable[[World], Sent]:
    """The second run of a workload: before the first the workload itself is made ready to decide."""

    def prepare(world: World) -> Sent:
        body = _start_body(world, kind)
        world.once(f"ready {kind}", lambda _: world.call("POST", "/runs", body))
        return Sent("POST", "/runs", dumped(body))

    return prepare


Report = dict[str, Any]


def iterative_report(_: int = 0) -> Report:
    """With as much announced as there may be."""
    spec = iterative()
    return {
        "allocation": {one["name"]: 1 for one in spec["resources"]},
        "metrics": {one["name"]: 31.5 for one in spec["metrics"]},
        "features": _features(),
        "upcoming": _upcoming(),
    }


def jobs(count: int, name: int) -> list[dict[str, Any]]:
    """Jobs with all that may be said of them."""
    each = {"gpus": 1, "maximum": 8, "batch": 128, "data": 12.5, "iterations": 1e5, "queue": long("q", 15)}
    return [
        {"job": long("j", at, name), "application": long("a", at % 100), **each, "gpus": 1 + at % 4}
        for at in range(count)
    ]


def _progress(count: int, name: int) -> list[dict[str, Any]]:
    message = {"iteration": 10.5, "loss": 0.5, "seconds": 31.5, "gpus": 1, "batch": 128, "noise_scale": 99.5}
    return [{"job": long("j", at, name), **message} for at in range(count)]


def tasks(count: int, name: int) -> list[dict[str, Any]]:
    """Tasks of many users."""
    each = {"processors": 1, "estimate": 100.5}
    return [{"id": long("t", at, name), "user": f"u{at % 2_000}", **each} for at in range(count)]


def _woven(count: int) -> list[dict[str, Any]]:
    """Tasks that each wait for all before them."""
    return [{"id": f"{at}", "processors": 1, "parents": [f"{one}" for one in range(at)]} for at in range(count)]


def requests(count: int, name: int, prefix: str = "r") -> list[dict[str, Any]]:
    """Requests of all users."""
    users = [one["name"] for one in inference()["users"]]
    return [{"user": users[at % 32], "id": long(prefix, at, name), "at": 9.0} for at in range(count)]


def _reports(spec: dict[str, Any], *reports: Report) -> Callable[[World], Sent]:
    """The last of some reports of a new run."""

    def prepare(world: World) -> Sent:
        run = _started(world, spec)
        for number, report in enumerate(reports[:-1]):
            world.call("PUT", f"/runs/{run}/iterations/{number}", report)
        return Sent("PUT", f"/runs/{run}/iterations/{len(reports) - 1}", dumped(reports[-1]))

    return prepare


NAME, TASK = 63, 60
MOST_JOBS, MOST_TASKS, MOST_REQUESTS = 2_000, 5_000, 9_984
WIDE, NARROW = cluster("wide"), cluster("narrow", 496)
COME: Report = {"at": 10, "submitted": jobs(MOST_JOBS, NAME)}
ON_ALL: Report = {"at": 10, "submitted": jobs(244, NAME)}
GOES_ON: Report = {"at": 20, "progressed": _progress(MOST_JOBS, NAME)}
LOST: Report = {
    "at": 20,
    "ended": [{"job": long("j", at, NAME)} for at in range(200)],
    "nodes": [{"node": f"{long('n', at % 16)}-{at // 16}", "gpus": 0} for at in range(248)],
}
QUEUED: Report = {"now": 10, "queued": tasks(MOST_TASKS, TASK)}
ARRIVED: Report = {"at": 10, "arrived": requests(MOST_REQUESTS, NAME)}
AGAIN: Report = {"at": 11, "arrived": [one | {"at": 10.5} for one in requests(MOST_REQUESTS, NAME, "o")]}
REPORTS: dict[str, tuple[dict[str, Any], tuple[Report, ...]]] = {
    "iterative, 1,000 iterations announced": (iterative(), (iterative_report(),)),
    "iterative, nothing announced": (iterative(), ({**iterative_report(), "upcoming": []},)),
    "cluster, 2,000 jobs come to 496 nodes": (NARROW, (COME,)),
    "cluster, 2,000 jobs go on": (NARROW, (COME, GOES_ON)),
    "cluster, half of the nodes are lost": (NARROW, (COME, LOST)),
    "cluster, 244 jobs come to 4,096 nodes": (WIDE, (ON_ALL,)),
    "workflow, 5,000 tasks": (workflow(), (QUEUED,)),
    "workflow, 97,000 dependencies": (workflow(), ({"now": 10, "queued": _woven(440)},)),
    "inference, 9,984 requests come twice": (inference(), (ARRIVED, AGAIN)),
}


def _row(world: World, kind: str) -> str:
    """A run whose last row is the largest of its kind."""
    spec, reports = next(value for name, value in REPORTS.items() if name.startswith(kind))

    def make(_: World) -> str:
        run = _started(world, spec)
        for number in range(3):
            world.call("PUT", f"/runs/{run}/iterations/{number}", _later(kind, reports[0], number))
        return run

    return str(world.once(f"rows {kind}", make))


def _later(kind: str, report: Report, number: int) -> Report:
    if kind == "iterative" or number == 0:
        return report
    moment = "now" if kind == "workflow" else "at"
    if kind == "cluster":
        return {**report, "whole": True, moment: 10 + number}
    if kind == "inference":
        return {moment: 10 + number}
    return {**report, moment: 10 + number}


def _of_run(path: str, kind: str, method: str = "GET", body: Any = None) -> Callable[[World], Sent]:
    def prepare(world: World) -> Sent:
        run = _row(world, kind)
        return Sent(method, path.format(run=run), b"" if body is None else dumped(body), {} if body is None else JSON)

    return prepare


def _runs(choice: str = "") -> Callable[[World], Sent]:
    def prepare(world: World) -> Sent:
        for kind in SPECS:
            _row(world, kind)
        world.once("starts", lambda _: [world.call("POST", "/runs", _start_body(world, "iterative")) for _ in range(8)])
        return Sent("GET", f"/runs?limit={MOST_ROWS}{choice}", headers={})

    return prepare


def _ended(kind: str, *, method: str) -> Callable[[World], Sent]:
    def prepare(world: World) -> Sent:
        spec, reports = next(value for name, value in REPORTS.items() if name.startswith(kind))
        run = _started(world, spec)
        world.call("PUT", f"/runs/{run}/iterations/0", reports[0])
        end = {"state": "finished", "reason": "r" * 500}
        if method == "PATCH":
            return Sent(method, f"/runs/{run}", dumped(end))
        world.call("PATCH", f"/runs/{run}", end)
        return Sent(method, f"/runs/{run}", headers={})

    return prepare


def _state(world: World) -> Sent:
    """Of a workload's state, all of it."""
    _largest(world, "iterative")
    report = iterative_report()
    parts = {"allocation": "allocation", "metric": "metrics", "feature": "features"}
    query = [f"{name}={one}:{value}" for name, key in parts.items() for one, value in report[key].items()]
    query += [f"{name}={one}:9.5" for name in ("total", "target") for one in report["metrics"]]
    return Sent("GET", f"/decision?workload=iterative&iteration=11&{'&'.join(query)}", headers={})


def _endless_state(world: World) -> Sent:
    _largest(world, "iterative")
    return Sent("GET", "/decision?workload=iterative" + "&metric=a:1" * 5_900, headers={})


def _prediction(world: World) -> Sent:
    _judged(world)
    report = iterative_report()
    query = [f"allocation={','.join(f'{one}:1' for one in report['allocation'])}"]
    query += [f"feature={','.join(f'{one}:{value}' for one, value in report['features'].items())}"]
    return Sent("GET", f"/workloads/iterative/models/1/predict?{'&'.join(query)}", headers={})


def _forecast(world: World) -> Sent:
    def make(_: World) -> int:
        name = _largest(world, "inference")
        belief = inference_model(Layout(InferenceSpec.model_validate(inference())))
        ahead = tuple(range(1, 25))
        errors = np.array([[-0.5, 0.5, 1.5, 0.0]] * 24)
        series = Series(np.arange(1_000.0), DAY.timestamp(), 3600.0)
        forecasters = [
            Forecaster(one["name"], ahead, (0,) * 24, ("last_value",), (Last(ahead),), errors, series)
            for one in inference()["users"]
        ]
        with world.database.session() as session:
            workload = workloads.require(session, TENANT, name)
            table = replace(belief, forecasts=serialise(forecasters)).to_bytes()
            return domain_models.publish(session, workload.id, workload.spec_version, {"family": "none"}, table)

    return Sent("GET", f"/workloads/inference/models/{world.once('forecast', make)}/forecast", headers={})


def _key(method: str) -> Callable[[World], Sent]:
    body = {"name": "n" * 120, "scopes": ["read", "report", "train", "admin"]}

    def prepare(world: World) -> Sent:
        if method == "POST":
            return Sent("POST", "/keys", dumped(body))
        key = world.call("POST", "/keys", body)
        return Sent("DELETE", f"/keys/{key['id']}", headers={})

    return prepare


def _keys(world: World) -> Sent:
    def make(_: World) -> None:
        with world.database.session() as session:
            each = {
                "tenant": TENANT,
                "name": "n" * 120,
                "digest": "0" * 64,
                "created_by": "b" * 255,
            }
            session.add_all([Key(**each, scopes=["admin"], id=f"{at:016}") for at in range(MOST_ROWS)])

    world.once("keys", make)
    return Sent("GET", f"/keys?limit={MOST_ROWS}", headers={})


def _audit(accept: str) -> Callable[[World], Sent]:
    def prepare(world: World) -> Sent:
        _many_workloads(world)
        return Sent("GET", f"/audit?limit={MOST_ROWS}", headers={"Accept": accept})

    return prepare


PROMOTION = {"reason": "r" * 500}
RETENTION = {"runs_days": 36_500, "jobs_days": 36_500}
W = "/workloads/{w}"
LIMIT = f"?limit={MOST_ROWS}"
CASES: tuple[Case, ...] = (
    Case("health", "", lambda _: Sent("GET", "/healthz", headers={})),
    Case("readiness", "", lambda _: Sent("GET", "/readyz?exclude=worker", headers={})),
    Case("metrics", "with many workloads", lambda world: _many_workloads(world)._replace(path="/metrics")),
    *(Case("register_workload", kind, _register(kind)) for kind in SPECS),
    *(Case("change_workload", kind, _patch(kind)) for kind in SPECS),
    *(Case("read_workload", kind, _read(f"/workloads/{kind}", kind)) for kind in SPECS),
    *(Case("read_savings", kind, _read(f"/workloads/{kind}/savings", kind)) for kind in SPECS),
    Case("list_workloads", "150 large specs", _many_workloads),
    Case("delete_workload", "", _deleted_workload),
    Case("upload_samples", "JSON, 3,000 executions", _upload("application/json", 3_000), streamed=True),
    Case("upload_samples", "CSV, 60,000 rows", _upload("text/csv", 60_000), streamed=True),
    Case("list_samples", "500 names", _samples_of(f"limit={MOST_ROWS}")),
    Case("list_samples", "500 with reports", _samples_of(f"limit={MOST_ROWS}&reports=true"), streamed=True),
    Case("list_samples", "a long one", _samples_of("reports=true&execution=long"), streamed=True),
    Case("list_samples", "as CSV", _samples_of("", "text/csv"), streamed=True),
    Case("delete_samples", "500", _deleted_samples),
    Case("put_exogenous", "2,000 rows", _put_series),
    Case("read_exogenous", "500 rows", _series(f"/{long('s', 0)}{LIMIT}")),
    Case("list_exogenous", "", _series(LIMIT)),
    Case("delete_exogenous", "2,000 rows", _series(f"/{long('s', 0)}", "DELETE")),
    Case("fit_model", "", _trained("{w}/models", "POST", {"seed": 1})),
    Case("list_models", "40 large reports", _judged_path("{w}/models" + LIMIT)),
    Case("read_model", "", _judged_path("{w}/models/1")),
    Case("delete_model", "", _deleted("{w}/models/{version}", "model")),
    Case("forecast", "32 users", _forecast),
    Case("predict", "iterative", _prediction),
    Case("train_agent", "64 seeds", _trained("{w}/agents", "POST", {"seeds": 64})),
    Case("list_agents", "40 large reports", _judged_path("{w}/agents" + LIMIT)),
    Case("list_promotions", "", _judged_path("{w}/agents/promotions" + LIMIT)),
    Case("read_agent", "", _judged_path("{w}/agents/2")),
    Case("delete_agent", "", _deleted("{w}/agents/{version}", "agent")),
    Case("promote_agent", "", _trained("{w}/agents/2/promote", "POST", PROMOTION)),
    Case("rollback_agent", "", _rolled_back),
    Case("read_shadow", "", _judged_path("{w}/agents/1/shadow")),
    Case("download_policy", "", _judged_path("{w}/agents/1/policy"), streamed=True),
    Case("read_drift", "", _judged_path("{w}/drift")),
    Case("respond_to_drift", "", _judged_path("{w}/drift", "PUT", {"respond": "retrain"})),
    Case("read_retention", "", _judged_path("{w}/retention")),
    Case("put_retention", "", _judged_path("{w}/retention", "PUT", RETENTION)),
    Case("read_caps", "", _judged_path("/caps")),
    Case("put_caps", "", _judged_path("/caps", "PUT", {"cost": 1e9, "seconds": 1e9})),
    Case("evaluate_agents", "names of 200,000 characters", _evaluate),
    Case("list_evaluations", "", _judged_path("/evaluations" + LIMIT)),
    Case("read_evaluation", "", _judged_path("/evaluations/{evaluation}")),
    Case("delete_evaluation", "", _deleted_evaluation),
    Case("read_evaluation_report", "", _judged_path("/evaluations/{evaluation}/report"), streamed=True),
    Case("list_jobs", "500", _jobs),
    Case("read_job", "", _job("/jobs/{job}")),
    Case("delete_job", "", _job("/jobs/{job}", "DELETE")),
    Case("cancel_job", "", _job("/jobs/{job}/cancel", "POST")),
    Case("retry_job", "", _job("/jobs/{job}/retry", "POST"), status=202),
    Case("follow_job", "to its end", _job("/jobs/{job}/events"), streamed=True),
    *(Case("start_run", kind, _start(kind)) for kind in SPECS),
    Case("list_runs", "of all kinds, the largest", _runs()),
    Case("list_runs", "the dearest of two outcomes", _runs("&sort=-cost&outcome=on_track&outcome=at_risk")),
    *(Case("read_run", kind, _of_run("/runs/{run}", kind)) for kind in SPECS),
    *(Case("end_run", kind, _ended(kind, method="PATCH")) for kind in SPECS),
    *(Case("delete_run", kind, _ended(kind, method="DELETE")) for kind in ("iterative", "cluster")),
    *(Case("list_iterations", kind, _of_run("/runs/{run}/iterations" + LIMIT, kind), streamed=True) for kind in SPECS),
    *(Case("report_iteration", name, _reports(spec, *reports)) for name, (spec, reports) in REPORTS.items()),
    *(Case("get_decision", f"of a run, {kind}", _of_run("/decision?run={run}", kind)) for kind in SPECS),
    Case("get_decision", "of a state", _state),
    Case("get_decision", "64 KiB of query", _endless_state, status=422),
    Case("list_audit", "500", _audit("application/json")),
    Case("list_audit", "500 as CSV", _audit("text/csv"), streamed=True),
    Case("create_key", "", _key("POST")),
    Case("list_keys", "500", _keys),
    Case("revoke_key", "", _key("DELETE")),
)  # fmt: skip
