"""Rates and quotas of keys and tenants: 429 with the time to come back at, for the one who asks too much alone."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.agents.algorithms import AUTO_SEEDS
from app.agents.service import TrainingResult, publish
from app.database.engine import Database
from app.database.tables import Execution, Workload
from app.errors import TooManyRequests
from app.http.caller import ALL, Caller
from app.keys.ring import Counts, Rates, RedisCounts, Sharing, share
from app.kinds.registry import KINDS
from app.main import create_app
from app.samples import intake as samples
from app.settings import Settings
from tests.app.keys.conftest import Headers, make_key
from tests.batched import SPEC as EXAMPLE
from workers.learning.training.request import SEEDS

SAMPLE = {"reports": [{"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 3}, "features": {"batch": 128}}]}
Limited = Callable[..., TestClient]


def caller(key: str, tenant: str = "blue") -> Caller:
    return Caller(tenant, ALL, f"key:{key}", key)


class Clock:
    """Time that passes when it is told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def let_through(rates: Rates, who: Caller, most: int = 1000) -> int:
    for number in range(most):
        try:
            rates.take(who)
        except TooManyRequests:
            return number
    return most


def test_a_key_gets_its_rate_and_another_one_its_own() -> None:
    clock = Clock()
    rates = Rates(10, 0, clock)
    assert let_through(rates, caller("a")) == 10
    assert let_through(rates, caller("b")) == 10
    clock.now += 1.0
    assert let_through(rates, caller("a")) == 10
    total = 0
    for _ in range(100):
        clock.now += 0.1
        total += let_through(rates, caller("a"))
    assert 95 <= total <= 110


def test_a_tenants_keys_share_its_rate() -> None:
    clock = Clock()
    rates = Rates(0, 10, clock)
    assert let_through(rates, caller("a"), 6) + let_through(rates, caller("b")) == 10
    assert let_through(rates, caller("c", "green")) == 10


def test_what_is_refused_is_not_counted_for_the_tenant() -> None:
    clock = Clock()
    rates = Rates(5, 10, clock)
    assert let_through(rates, caller("a")) == 5
    for _ in range(50):
        with pytest.raises(TooManyRequests):
            rates.take(caller("a"))
    assert let_through(rates, caller("b")) == 5


def test_a_slow_rate_says_when_to_come_back() -> None:
    clock = Clock()
    rates = Rates(0.1, 0, clock)
    assert let_through(rates, caller("a")) == 1
    with pytest.raises(TooManyRequests) as refused:
        rates.take(caller("a"))
    assert refused.value.retry_after == 10


def test_what_is_kept_in_mind_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.keys.ring.LARGEST", 100)
    clock = Clock()
    rates = Rates(10, 0, clock)
    for number in range(1000):
        clock.now += 0.1
        rates.take(caller(str(number)))
    assert len(rates._buckets) <= 101


class CountsInMemory:
    """Counts of a few processes, in memory."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}

    async def add(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Add to counts; gives their totals."""
        for name, number in counts.items():
            self.totals[name] = self.totals.get(name, 0) + number
        return {name: self.totals[name] for name in counts}


@pytest.fixture(params=["in memory", pytest.param("redis", marks=pytest.mark.servers)])
async def counts(request: pytest.FixtureRequest) -> AsyncIterator[Counts]:
    if request.param == "in memory":
        yield CountsInMemory()
        return
    redis_counts = RedisCounts(request.getfixturevalue("redis_url"))
    yield redis_counts
    await redis_counts.close()


@pytest.mark.parametrize("load", [(1000, 1000), (1000, 30), (30, 30)])
async def test_two_processes_let_through_one_rate(counts: Counts, load: tuple[int, int]) -> None:
    clock = Clock()
    processes = [Rates(100, 0, clock) for _ in load]
    sharing = [Sharing(rates, counts) for rates in processes]
    seconds, total = 20, 0
    for _ in range(seconds * 5):  # shared five times a second
        for rates, requests in zip(processes, load, strict=True):
            total += let_through(rates, caller("a"), requests // 5)
        for one in sharing:
            await one.once()
        clock.now += 0.2
    wanted = seconds * min(sum(load), 100)
    assert wanted * 0.9 <= total <= wanted * 1.02 + 200  # both begin with a full bucket


async def test_a_caller_far_below_its_rate_may_move_to_another_process(counts: Counts) -> None:
    clock = Clock()
    processes = [Rates(10, 0, clock) for _ in range(2)]
    sharing = [Sharing(rates, counts) for rates in processes]
    who = caller("moves")
    for at in (1, *[0] * 40, 1, 1, 1):  # one request a second
        assert let_through(processes[at], who, 1) == 1
        for one in sharing:
            await one.once()
        clock.now += 1.0


@pytest.mark.servers
async def test_processes_learn_in_the_background_what_others_let_through(redis_url: str) -> None:
    clock = Clock()  # the same second for both, however slow the machine is
    processes, counts = [Rates(100, 0, clock) for _ in range(2)], RedisCounts(redis_url)
    sharing = [asyncio.create_task(share(rates, counts, 0.02)) for rates in processes]
    total = quiet = 0
    for _ in range(500):
        passed = sum(let_through(rates, caller("both"), 1) for rates in processes)
        total, quiet = total + passed, 0 if passed else quiet + 1
        if quiet == 20:  # as often as what each refuses may have been shared
            break
        await asyncio.sleep(0.02)
    assert 100 <= total <= 150  # of one bucket, less what each lets through before it learns
    assert let_through(processes[1], caller("b")) == 100
    for task in sharing:
        task.cancel()
    await asyncio.gather(*sharing, return_exceptions=True)
    await counts.close()


async def test_without_redis_each_process_counts_for_itself() -> None:
    clock = Clock()
    rates, counts = Rates(10, 0, clock), RedisCounts("redis://127.0.0.1:1/0")
    sharing = asyncio.create_task(share(rates, counts, 0.01))
    assert let_through(rates, caller("a"), 5) == 5
    await asyncio.sleep(0.2)
    assert let_through(rates, caller("a")) == 5
    assert not sharing.done()
    sharing.cancel()
    await asyncio.gather(sharing, return_exceptions=True)
    await counts.close()


@pytest.fixture
def limited(settings: Settings, any_database: Database) -> Limited:
    return lambda **changes: TestClient(
        create_app(settings.model_copy(update=changes), any_database), raise_server_exceptions=False
    )


@pytest.fixture
def blue(any_database: Database) -> Headers:
    return make_key(any_database, "blue", ["admin"])


@pytest.fixture
def green(any_database: Database) -> Headers:
    return make_key(any_database, "green", ["admin"])


def test_too_many_requests_are_429_on_hot_and_ordinary_routes(limited: Limited, blue: Headers, green: Headers) -> None:
    client = limited(key_requests_per_second=2.0)
    for path in ("/workloads", "/decision?run=x"):
        responses = [client.get(path, headers=blue) for _ in range(60)]
        refused = [answer for answer in responses if answer.status_code == 429]
        assert refused
        assert {int(answer.headers["retry-after"]) for answer in refused} == {1}
        assert refused[0].json()["type"] == "/problems/too-many-requests"
        assert client.get(path, headers=green).status_code != 429
    assert client.get("/healthz").status_code == 200


def registered(client: TestClient, headers: Headers, name: str = "w") -> str:
    assert client.post("/workloads", json={**copy.deepcopy(EXAMPLE), "name": name}, headers=headers).is_success
    return f"/workloads/{name}"


def upload(client: TestClient, home: str, headers: Headers, names: list[str]) -> Any:
    samples = [{"execution": name, **SAMPLE} for name in names]
    return client.post(f"{home}/samples", json={"samples": samples}, headers=headers)


def test_a_tenant_has_no_more_jobs_than_it_may(limited: Limited, blue: Headers, green: Headers) -> None:
    client = limited(tenant_jobs=2)
    for headers in (blue, green):
        home = registered(client, headers)
        assert upload(client, home, headers, ["a"]).is_success
        jobs = [client.post(f"{home}/models", json={}, headers=headers) for _ in range(3)]
        assert [job.status_code for job in jobs] == [202, 202, 429]
        assert jobs[-1].headers["retry-after"] == "30"
        assert 'steward_refusals_total{limit="jobs"} 1.0' in client.get("/metrics", headers=headers).text
        assert client.post(f"/jobs/{jobs[0].json()['id']}/cancel", headers=headers).is_success
        assert client.post(f"{home}/models", json={}, headers=headers).status_code == 202


def test_a_tenant_stores_no_more_executions_than_it_may(limited: Limited, blue: Headers, green: Headers) -> None:
    client = limited(tenant_executions=3)
    home, other = registered(client, blue), registered(client, blue, "other")
    assert upload(client, home, blue, ["a", "b"]).is_success
    assert upload(client, other, blue, ["a"]).is_success
    refused = upload(client, home, blue, ["c"])
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "3600")
    assert len(client.get(f"{home}/samples", headers=blue).json()["items"]) == 2
    assert upload(client, home, blue, ["a", "b"]).is_success  # which are there already
    assert upload(client, registered(client, green), green, ["a", "b", "c"]).is_success


def test_the_samples_of_runs_count_and_a_run_that_would_be_one_too_many_goes_on(
    limited: Limited, blue: Headers
) -> None:
    client = limited(tenant_executions=1)
    home = registered(client, blue)
    assert upload(client, home, blue, ["a"]).is_success
    named = client.get(home, headers=blue).json()["name"]
    run = client.post("/runs", json={"workload": named}, headers=blue).json()["id"]
    assert client.put(f"/runs/{run}/iterations/0", json=SAMPLE["reports"][0], headers=blue).is_success
    for state in ("finished", "failed"):
        refused = client.patch(f"/runs/{run}", json={"state": state}, headers=blue)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "3600")
    assert client.get(f"/runs/{run}", headers=blue).json()["state"] == "running"
    assert client.delete(f"{home}/samples?execution=a", headers=blue).is_success
    assert client.patch(f"/runs/{run}", json={"state": "finished"}, headers=blue).is_success
    assert len(client.get(f"{home}/samples", headers=blue).json()["items"]) == 1


def test_uploads_at_the_same_time_are_counted_together(limited: Limited, blue: Headers, any_database: Database) -> None:
    client = limited(tenant_executions=1)
    first, second = registered(client, blue), registered(client, blue, "second")
    answers: list[int] = []
    uploading = threading.Thread(target=lambda: answers.append(upload(client, second, blue, ["b"]).status_code))
    workload = client.get(first, headers=blue).json()["id"]
    with any_database.session() as session:
        session.add(
            Execution(tenant="blue", workload_id=workload, name="a", digest="", iterations=1, data=b"", source="upload")
        )
        session.flush()
        assert samples.count_of_tenant(session, "blue") == 1
        uploading.start()
        uploading.join(0.5)  # which it must not have come to an end in, however long that is
    uploading.join()
    assert answers == [429]


def test_a_training_takes_no_more_hours_than_estimated(limited: Limited, blue: Headers) -> None:
    client = limited(tenant_training_hours=2.0)
    home = registered(client, blue)
    hour = 3_600 * KINDS["iterative"].training.steps_per_second
    for request, seeds in (({}, AUTO_SEEDS), ({"seeds": 4}, 4), ({"algorithm": "ppo"}, 1)):
        most = int(2 * hour / seeds)
        refused = client.post(f"{home}/agents", json={**request, "budget": most + 1}, headers=blue)
        assert refused.status_code == 422
        (error,) = refused.json()["errors"]
        assert (error["pointer"], error["message"]) == ("/budget", f"must be at most {most:,} steps per seed")
        assert "take about 2 hours on one core" in refused.json()["detail"]
        accepted = client.post(f"{home}/agents", json={**request, "budget": most}, headers=blue)
        assert accepted.status_code == 409, "there is no sample yet"
    assert AUTO_SEEDS == SEEDS, "what a worker tries is what was estimated"


def test_the_pace_of_the_workloads_newest_training_counts(limited: Limited, blue: Headers) -> None:
    client = limited(tenant_training_hours=1.0)
    homes = [registered(client, blue, name) for name in ("w", "other")]
    database: Database = client.app.state.database  # type: ignore[attr-defined]
    with database.session() as session:
        for workload in session.scalars(select(Workload)):
            for version, pace in ((1, 900.0), (2, 100.0 if workload.name == "w" else 300.0), (3, 0.0)):
                report = {"steps_per_second": pace} if pace else {}
                trained = TrainingResult(1, 1, "ppo", 0, report, b"", promote=False, reason="")
                assert publish(session, workload.id, trained) == version
    for home, most in zip(homes, (360_000, 1_080_000), strict=True):
        refused = client.post(f"{home}/agents", json={"algorithm": "ppo", "budget": 10**10}, headers=blue).json()
        assert refused["errors"][0]["message"] == f"must be at most {most:,} steps per seed"
