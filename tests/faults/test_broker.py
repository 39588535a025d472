"""A broker that holds still: callers are answered, and what they asked for is done once it goes on; nothing twice."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import func, select

from app.database.engine import Database
from app.database.tables import DomainModel
from tests.conftest import StartSteward
from tests.faults.proxy import Proxy
from tests.integration.caller import Caller
from tests.recovering import recovering

STILL_SECONDS = 60  # longer than the broker's clients wait for it


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
