"""A real service, killed while it is reported to: what was acknowledged is there, and nothing is there twice."""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

from app.database.engine import Database
from tests.app.domain_models.published import publish_agent, publish_model
from tests.batched import SPEC as EXAMPLE
from tests.servers import PostgresServer, StewardServer, start_steward, wait_until

LAUNCHERS = 12
Start = Callable[..., StewardServer]


class Connection:
    """HTTP over one kept connection."""

    def __init__(self, url: str) -> None:
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, data, {"Content-Type": "application/json"} if data else {})
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())


def report(seconds: float) -> dict[str, Any]:
    return {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": seconds}, "features": {"batch": 128}}


@dataclass
class Launcher:
    """Reports one run through the given addresses in turn, remembers what was acknowledged, and stops at an error."""

    run: str
    seed: int
    acknowledged: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    unsure: dict[str, Any] | None = None

    def go(self, urls: list[str], count: int = 90) -> None:
        """Report until an address is gone or the run's first `count` iterations (all of them) are there."""
        rng = random.Random(self.seed)
        with ExitStack() as stack:
            connections = [stack.enter_context(Connection(url)) for url in urls]
            while len(self.acknowledged) < count:
                number = len(self.acknowledged)
                body = self.unsure = self.unsure or report(rng.uniform(5, 50))
                path = f"/runs/{self.run}/iterations/{number}"
                try:
                    status, decision = connections[number % len(urls)].call("PUT", path, body)
                except (OSError, http.client.HTTPException):
                    return
                self.statuses.append(status)
                assert status in (200, 201), decision
                self.acknowledged.append((body, decision))
                self.unsure = None

    def check(self, url: str) -> None:
        """Everything acknowledged is kept as it was answered; at most the one report in flight is there besides."""
        with Connection(url) as caller:
            status, page = caller.call("GET", f"/runs/{self.run}/iterations?limit=500")
        assert status == 200
        items = page["items"]
        assert [item["iteration"] for item in items] == list(range(len(items)))
        assert len(self.acknowledged) <= len(items) <= len(self.acknowledged) + 1
        for item, (body, decision) in zip(items, self.acknowledged, strict=False):
            assert item["report"] == {"kind": "iterative", **body}
            assert item["decision"]["allocation"] == decision["allocation"]
            assert item["decision"]["reason"] == decision["reason"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[StewardServer]]:
    """Two processes on one database."""
    folder = tmp_path_factory.mktemp("pair")
    servers = [start_steward(folder, "--workers", "0", wait="alive") for _ in range(2)]
    yield servers
    for server in servers:
        server.stop()


def prepare(server: StewardServer) -> list[Launcher]:
    """A workload with a model and an agent, and a run for each launcher."""
    with Connection(server.url) as caller:
        assert caller.call("POST", "/workloads", EXAMPLE)[0] in (200, 201)
        database = Database(server.database_url)
        publish_model(database, "resnet18")
        publish_agent(database, "resnet18", promote=True)
        database.dispose()
        started = [caller.call("POST", "/runs", {"workload": "resnet18"}) for _ in range(LAUNCHERS)]
    assert {status for status, _ in started} == {201}
    return [Launcher(answer["id"], seed) for seed, (_, answer) in enumerate(started)]


def reporting(launchers: list[Launcher], urls: list[str]) -> list[threading.Thread]:
    """Each launcher in a thread of its own."""
    threads = [threading.Thread(target=launcher.go, args=(urls,)) for launcher in launchers]
    for thread in threads:
        thread.start()
    return threads


def total(launchers: list[Launcher]) -> int:
    return sum(len(launcher.acknowledged) for launcher in launchers)


@pytest.mark.slow
def test_an_acknowledged_report_survives_kill_9(steward_factory: Start, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    server = steward_factory(folder, "--workers", "0", wait="alive")
    launchers = prepare(server)
    for kill in range(2):
        before = total(launchers)
        threads = reporting(launchers, [server.url])
        wait_until(lambda since=before: total(launchers) >= since + 200, what="reports to come in")  # type: ignore[misc]
        server.kill()
        for thread in threads:
            thread.join(30)
        server = steward_factory(folder, "--workers", "0", wait="alive")
        for launcher in launchers:
            launcher.check(server.url)
        assert total(launchers) > before, kill
    for thread in reporting(launchers, [server.url]):
        thread.join(60)
    for launcher in launchers:
        assert len(launcher.acknowledged) == 90
        launcher.check(server.url)


@pytest.mark.slow
def test_two_processes_on_one_database_decide_nothing_twice(pair: list[StewardServer]) -> None:
    first, second = pair
    launchers = prepare(first)[:6]
    for thread in reporting(launchers, [first.url, second.url]):
        thread.join(90)
    for launcher in launchers:
        assert len(launcher.acknowledged) == 90
        assert set(launcher.statuses) == {201}
        launcher.check(second.url)


@pytest.mark.slow
def test_the_same_report_through_two_processes_at_once_is_decided_once(pair: list[StewardServer]) -> None:
    run = prepare(pair[0])[0].run
    answers: list[list[tuple[int, Any]]] = [[], []]

    def race(which: int, go: threading.Barrier) -> None:
        with Connection(pair[which].url) as connection:
            for number in range(40):
                go.wait(20)
                answers[which].append(connection.call("PUT", f"/runs/{run}/iterations/{number}", report(10 + number)))

    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=race, args=(which, barrier)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for one, other in zip(*answers, strict=True):
        assert sorted([one[0], other[0]]) == [200, 201]
        assert one[1] == other[1]
    assert len(answers[0]) == 40


@pytest.mark.slow
@pytest.mark.servers
def test_a_database_that_goes_away_is_503_and_nothing_is_half_written(
    steward_factory: Start, postgres: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    server = steward_factory(tmp_path / "data", "--workers", "0", wait="alive", database_url=postgres_url)
    launchers = prepare(server)
    for launcher in launchers:
        launcher.go([server.url], count=20)
    path = f"/runs/{launchers[0].run}/iterations/{len(launchers[0].acknowledged)}"
    with Connection(server.url) as caller:
        postgres.stop()
        try:
            caller.connection.request("PUT", path, json.dumps(report(9)), {"Content-Type": "application/json"})
            answer = caller.connection.getresponse()
            problem = json.loads(answer.read())
        finally:
            postgres.start()
        assert (answer.status, problem["type"]) == (503, "/problems/unavailable")
        assert int(answer.headers["Retry-After"]) >= 1
        assert answer.headers["Content-Type"] == "application/problem+json"
        for launcher in launchers:
            launcher.check(server.url)
        assert caller.call("PUT", path, report(9))[0] == 201
