"""A service with something on every page: each kind's example, fitted, and a run of it that is played here."""

from __future__ import annotations

import heapq
import math
import random
import time
from typing import Any, NamedTuple

import httpx

from app.kinds.registry import KINDS

Json = dict[str, Any]
ROUNDS = 60
BUDGET = 1_000_000
"""Environment steps of the training: as many as give a curve to be looked at."""
NEIGHBOUR = range(30, 48)
"""Iterations of the training in which another takes its share of what it runs on."""


class Scene(NamedTuple):
    """What there is to be shown: workloads by name with what they are of, runs by that, and a training's job."""

    workloads: dict[str, str]
    runs: dict[str, str]
    training: str


def scene(api: httpx.Client) -> Scene:
    """Load all examples, fit and train, and play a run of each."""
    for kind in KINDS:
        if kind != "cluster":
            api.post(f"/ui/examples/{kind}").raise_for_status()
    _lab(api)
    _settled(api)
    request = {"algorithm": "dueling_double_dqn", "budget": BUDGET, "force": True}
    training = api.post("/workloads/resnet18/agents", json=request).raise_for_status().json()["id"]
    for seed in range(2):
        api.patch(f"/runs/{_training(api, seed, 90)}", json={"state": "finished"}).raise_for_status()
    runs = {"iterative": _training(api, 7, 72), "queue": _queue(api), "workflow": _graph(api)}
    runs |= {"inference": _serving(api), "cluster": _sharing(api)}
    _settled(api)
    return Scene({"resnet18": "iterative", "queue": "queue", "vision": "inference", "lab": "cluster"}, runs, training)


def _settled(api: httpx.Client, seconds: float = 1_200.0) -> None:
    """Wait until no job waits or runs.

    Raises:
        TimeoutError: it takes too long.
    """
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if all(job["state"] not in ("queued", "running") for job in api.get("/jobs").json()["items"]):
            return
        time.sleep(0.5)
    raise TimeoutError(f"jobs have not ended in {seconds:g} s")


def _start(api: httpx.Client, workload: str, **more: Any) -> tuple[str, Json]:
    body = api.post("/runs", json={"workload": workload, **more}).raise_for_status().json()
    return body["id"], body["decision"]


def _report(api: httpx.Client, run: str, number: int, body: Json) -> Json:
    answer = api.put(f"/runs/{run}/iterations/{number}", json=body)
    if answer.is_error:
        raise ValueError(answer.text)
    decision: Json = answer.json()
    return decision


def _training(api: httpx.Client, seed: int, iterations: int) -> str:
    """A training that takes 2 s and 56 GPU-seconds, and longer beside its neighbour."""
    rng = random.Random(seed)
    run, decision = _start(api, "resnet18", targets={"iteration_seconds": 1150})
    for number in range(iterations):
        gpus = decision["allocation"]["gpus"]
        slower = 1.45 if number in NEIGHBOUR else 1.0
        seconds = (2 + 56 / gpus) * rng.lognormvariate(0, 0.03) * slower
        body = {"allocation": {"gpus": gpus}, "metrics": {"iteration_seconds": seconds}}
        decision = _report(api, run, number, body)
    return run


def _queue(api: httpx.Client) -> str:
    """Batch jobs of some minutes on nodes of 16 processors."""
    rng, (run, _) = random.Random(3), _start(api, "queue")
    events: list[tuple[float, str, Json]] = []
    started: list[Json] = []
    at = 0.0
    for task in range(60):
        at += rng.expovariate(1 / 45)
        request = {"id": f"job-{task}", "processors": rng.choice((2, 4, 4, 8, 16)), "estimate": rng.uniform(120, 900)}
        heapq.heappush(events, (at, f"queued {task:03}", request))
    for number in range(130):
        if not events:
            break
        now, what, values = heapq.heappop(events)
        running = [one for one in started if one["id"] != values.get("id")]
        body: Json = {"now": now, "delta": True, "running": running, what.split()[0]: [values]}
        decision = _report(api, run, number, body)
        started = [{"id": one["task"], "node": one["node"], "start": now} for one in decision["placements"]]
        for one in decision["placements"]:
            ends = now + rng.uniform(0.3, 1.0) * 600
            done = {"id": one["task"], "end": ends, "node": one["node"], "start": now}
            heapq.heappush(events, (ends, f"finished {one['task']}", done))
        for node in decision["nodes"]["start"]:
            heapq.heappush(events, (now + 90, f"nodes {node}", {"name": node, "state": "up"}))
    return run


def _graph(api: httpx.Client) -> str:
    """A workflow of five stages, each of some tasks that need all of the one before."""
    rng = random.Random(4)
    spec = {**KINDS["workflow"].example.spec, "name": "pipeline", "strategy": "heft"}
    api.post("/workloads", json=spec).raise_for_status()
    run, _ = _start(api, "pipeline")
    stages = {"read": 1, "align": 6, "merge": 2, "call": 5, "tell": 1}
    queued: list[Json] = []
    before: list[str] = []
    for stage, tasks in stages.items():
        own = [f"{stage}-{task}" for task in range(tasks)]
        request = {"workflow": "genome", "processors": 4, "parents": before}
        queued += [{"id": name, "estimate": rng.uniform(60, 300), **request} for name in own]
        before = own
    ends = {one["id"]: one["estimate"] * rng.uniform(0.7, 1.1) for one in queued}
    decision = _report(api, run, 0, {"now": 0, "queued": queued})
    at, number, events = 0.0, 0, list[tuple[float, str, Json]]()
    while True:
        running = [{"id": one["task"], "node": one["node"], "start": at} for one in decision["placements"]]
        for one in running:
            heapq.heappush(events, (at + ends[one["id"]], "finished", {**one, "end": at + ends[one["id"]]}))
        for node in decision["nodes"]["start"]:
            heapq.heappush(events, (at + 90, "nodes", {"name": node, "state": "up"}))
        if not events or number == ROUNDS:
            return run
        number += 1
        at, what, values = heapq.heappop(events)
        others = [one for one in running if one["id"] != values.get("id")]
        decision = _report(api, run, number, {"now": at, "delta": True, "running": others, what: [values]})


def _serving(api: httpx.Client) -> str:
    """Requests of two users, the first in bursts."""
    rng, (run, decision) = random.Random(5), _start(api, "vision")
    events: list[tuple[float, str, Json]] = []
    for user, pace in (("shop", 9.0), ("archive", 4.0)):
        at = 0.0
        while at < 20:
            at += rng.expovariate(pace * (4 if user == "shop" and 8 < at < 12 else 1))
            heapq.heappush(events, (at, f"arrived {user} {at}", {"user": user, "at": at}))
    for number in range(290):
        if not events:
            break
        now, what, values = heapq.heappop(events)
        decision = _report(api, run, number, {"at": now, what.split()[0]: [values]})
        for one in decision["start"]:
            ends = now + rng.lognormvariate(0, 0.1) * (0.019 if one["variant"] == "resnet18" else 0.05) * (
                0.4 + 0.6 * len(one["requests"])
            )
            heapq.heappush(events, (ends, f"finished {one['server']} {ends}", {"server": one["server"], "at": ends}))
    return run


def _lab(api: httpx.Client) -> None:
    """The example of kind ``cluster``, whose jobs give GPUs back when they have little left to gain."""
    example = KINDS["cluster"].example
    spec = {**example.spec, "name": "lab", "convergence": {"window_seconds": 300}}
    api.post("/workloads", json=spec).raise_for_status()
    for media, body in example.samples.items():
        answer = api.post("/workloads/lab/samples", content=body, headers={"content-type": media})
        answer.raise_for_status()
    curves = [
        {"job": f"{name}-ended-{job}", "application": name, "iteration": done, "loss": loss + 0.01 * job}
        for name in ("bert", "resnet50")
        for job in range(9)  # fewer limit nobody
        for done, loss in ((done, 0.4 + 2 * math.exp(-0.2 * done)) for done in range(1, 61))
    ]
    ended = {"samples": [{"execution": "ended", "curves": curves}]}
    api.post("/workloads/lab/samples", json=ended).raise_for_status()
    api.post("/workloads/lab/models", json={}).raise_for_status()


def _sharing(api: httpx.Client) -> str:
    """Trainings that share eight GPUs, learn less and less, and end."""
    rng, (run, _) = random.Random(9), _start(api, "lab")
    came = {f"job-{n}": (60 * 4 * n, rng.randint(25, 60)) for n in range(9)}
    done: dict[str, float] = {}
    current: dict[str, int] = {}
    for number in range(60):
        at = 60.0 * (number + 1)
        new = [name for name, (when, _) in came.items() if at - 60 <= when < at]
        for name in list(current):
            done[name] += current[name] * 0.5
        ended = [name for name in current if done[name] >= came[name][1]]
        progress = [
            {"job": n, "iteration": done[n], "loss": 0.4 + 2 * math.exp(-0.2 * done[n])}
            for n in current
            if n not in ended
        ]
        submitted = [
            {"job": n, "application": rng.choice(("bert", "resnet50")), "gpus": rng.choice((2, 4)), "maximum": 8}
            | {"iterations": came[n][1], "queue": "urgent" if rng.random() < 0.3 else "batch"}
            for n in new
        ]
        body = {"at": at, "submitted": submitted, "progressed": progress, "ended": [{"job": n} for n in ended]}
        decision = _report(api, run, number, body)
        current = {name: gpus for name, gpus in current.items() if name not in ended} | dict.fromkeys(new, 0)
        done |= dict.fromkeys(new, 0.0)
        current |= {change["job"]: change["gpus"] for change in decision["changes"]}
    return run
