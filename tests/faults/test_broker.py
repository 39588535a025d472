"""A broker that holds still: callers are answered, and what they asked for is done once it goes on; nothing twice."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from app.database.engine import Database
from app.database.tables import DomainModel
from tests.conftest import StartSteward
from tests.faults.proxy import Proxy
from tests.integration.caller import Caller
from tests.recovering import recovering

STILL_SECONDS = 60  # longer than the broker's clients wait for it
RATE = 4  # requests per second, far fewer than even a slow machine answers


@pytest.mark.servers
@pytest.mark.slow
def test_a_broker_that_holds_still_costs_time_and_no_job(redis_url: str, steward_factory: StartSteward) -> None:
    port = int(redis_url.rpartition(":")[2].partition("/")[0])
    with Proxy(port).running() as proxy:
        url = redis_url.replace(f":{port}/", f":{proxy.port}/")
        server = steward_factory(broker_url=url, requeue_seconds="3")
        caller = Caller(server.url)
        caller.prepare()
        proxy.pause()
        begun = time.monotonic()
        first = caller.fit()
        assert caller.job(first)["state"] == "queued"
        time.sleep(max(STILL_SECONDS - (time.monotonic() - begun), 0))
        proxy.resume()
        with recovering():
            second = caller.fit()
            assert [caller.wait(job, 300)["state"] for job in (first, second)] == ["succeeded", "succeeded"]
        database = Database(server.database_url)
        try:
            with database.reading() as session:
                assert session.scalar(select(func.count()).select_from(DomainModel)) == 2
        finally:
            caller.http.close()
            database.dispose()


@pytest.mark.servers
@pytest.mark.slow
def test_two_services_let_through_one_rate(
    redis_url: str, postgres_url: str, tmp_path: Path, steward_factory: StartSteward
) -> None:
    shared = {"database_url": postgres_url, "broker_url": redis_url, "tenant_requests_per_second": str(RATE)}
    services = [steward_factory(tmp_path / name, "--workers", "0", wait="alive", **shared) for name in "ab"]
    answers, begun = Counter[int](), time.monotonic()
    while time.monotonic() - begun < 20:
        answers.update(httpx.get(f"{service.url}/workloads").status_code for service in services)
    passed = RATE * (time.monotonic() - begun)
    assert set(answers) == {200, 429}
    assert 0.7 * passed <= answers[200] <= 1.25 * passed + 2 * RATE  # each begins with a second's requests
