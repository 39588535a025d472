"""What it costs to know who calls: processor time of an answer with keys, against the same without any guard.

``python -m benchmarks.authentication`` — two servers of the same code and data on one core, one of which asks for a key
and one whose gateway lets everybody in unseen, take turns under the same load; the processor time that each used is
divided by its answers. Processor time is what bounds throughput there, and other processes of the machine don't enter
it. On SQLite; with 10,000 other valid keys.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
from starlette.types import Scope

from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Key
from app.http.caller import ANYBODY, Caller
from app.keys import secrets
from app.keys import service as keys
from app.keys.schemas import KeyRequest
from app.kinds.iterative.spec import Spec
from app.settings import Settings
from app.workloads import service as workloads
from benchmarks import load
from benchmarks.api_speed import CONNECTIONS, ITERATIONS, SPEC, Row, _report, publish, states
from benchmarks.load import Plan
from migrations.runner import upgrade
from tests.servers import clean_environment, free_port, stop, wait_until

TURNS = 31
SECONDS = 1.0
OTHER_KEYS = 10_000
GOAL = 0.05
ROOT = Path(__file__).parent.parent


class Unguarded:
    """Lets everybody in."""

    async def admit(self, scope: Scope, route: str | None) -> Caller:  # noqa: ARG002 - the protocol's signature
        """Whoever it is."""
        return ANYBODY


def serve(port: int, folder: Path, guarded: bool) -> None:
    """The server process."""
    import uvicorn

    from app.cli.server.api import configuration

    settings = Settings(port=port, data_dir=folder)
    config = configuration(settings, Database(settings.database_url, settings))
    if not guarded:
        config.app.guard = Unguarded()  # type: ignore[union-attr]
    uvicorn.Server(config).run()


def prepare(folder: Path) -> str:
    """A database with the benchmark's workload and many keys; gives the header of one of them."""
    settings = Settings(data_dir=folder)
    upgrade(settings.database_url)
    database = Database(settings.database_url, settings)
    workloads.register(database, "default", Spec.model_validate(SPEC))
    publish(settings.database_url, str(SPEC["name"]))
    with database.session() as session:
        session.add_all(_key(number) for number in range(OTHER_KEYS))
    made = keys.create(database, "default", KeyRequest(scopes={"read", "report"}), "benchmark")
    database.dispose()
    return f"authorization: Bearer {made.key}\r\n"


def _key(number: int) -> Key:
    made = secrets.make()
    return Key(
        id=made.id,
        tenant=f"tenant-{number % 100}",
        name="",
        digest=made.digest,
        scopes=["report"],
        created_by="benchmark",
        created_at=utc_now(),
    )


class Server:
    """A running server, and the processor time that it has used."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], headers: str) -> None:
        self.port, self.headers = port, headers
        self._process = psutil.Process(process.pid)

    def microseconds(self, requests: list[list[load.Request]], circle: bool) -> float:
        """Processor time per answer."""
        before, plan = self._used(), Plan(self.port, SECONDS, requests, circle, warm_up=0.0, headers=self.headers)
        measured = load.run(plan, 1)
        if measured.odd:
            raise RuntimeError(f"{measured.statuses}: {measured.odd}")
        return 1e6 * (self._used() - before) / sum(measured.statuses.values())

    def _used(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system

    def reports(self, count: int) -> list[list[load.Request]]:
        """Reports of ``count`` new runs per connection."""
        import json
        import random
        from urllib.request import Request

        rng = random.Random(0)
        key = dict([self.headers.strip().split(": ", 1)])

        def run() -> list[load.Request]:
            asked = Request(f"http://127.0.0.1:{self.port}/runs", b'{"workload": "bench"}')
            asked.add_header("content-type", "application/json")
            asked.headers.update(key)
            with urlopen(asked) as answer:
                identifier = json.load(answer)["id"]
            return [("PUT", f"/runs/{identifier}/iterations/{n}", _report(rng)) for n in range(ITERATIONS)]

        return [[request for _ in range(count) for request in run()] for _ in range(CONNECTIONS)]


@contextmanager
def running(folder: Path, *, guarded: bool) -> Iterator[Server]:
    """A server on a core of its own."""
    headers, port = prepare(folder), free_port()
    command = ["taskset", "-c", "0", sys.executable, "-m", "benchmarks.authentication", "serve"]
    options = [str(port), str(folder), "guarded" if guarded else "open"]
    process = subprocess.Popen([*command, *options], env=clean_environment({}), cwd=ROOT)
    try:
        wait_until(lambda: answers(port), 120, "the server to answer")
        time.sleep(1.0)
        yield Server(port, process, headers)
    finally:
        stop(process)


def answers(port: int) -> bool:
    """Whether a server has started there."""
    try:
        urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
    except OSError:
        return False
    return True


def results() -> list[Row]:
    """Every figure with its peer, ratio and goal."""
    return in_turns(lambda folder, on: running(folder, guarded=on), "a guard", GOAL)


def in_turns(running: Callable[[Path, bool], AbstractContextManager[Server]], what: str, goal: float) -> list[Row]:
    """What something costs: two servers, one with it and one without, under the same load in turns.

    Args:
        running: a server on data in a folder, with it or without.
        what: it is.
        goal: at most so much more processor time.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="steward-bench-")))
        servers = [stack.enter_context(running(folder / str(on), on)) for on in (True, False)]
        asked: Any = states("/decision")
        taken: dict[str, Callable[[Server], float]] = {
            "GET /decision, full state": lambda server: server.microseconds(asked, True),
            "PUT iteration, durable": lambda server: server.microseconds(server.reports(4), False),
        }
        pairs = {name: [(take(servers[0]), take(servers[1])) for _ in range(TURNS)] for name, take in taken.items()}
    return [_row(name, found, what, goal) for name, found in pairs.items()]


def _row(name: str, pairs: Sequence[tuple[float, float]], what: str, goal: float) -> Row:
    ratios = sorted(dear / plain - 1 for dear, plain in pairs)
    outer = int((len(ratios) - 1.96 * len(ratios) ** 0.5) / 2) - 1  # of the median's interval: a sign test's
    low, high = ratios[outer], ratios[-1 - outer]
    return {
        "name": f"{name}: processor time more than without {what} (95 %: {low:+.1%} to {high:+.1%}, {TURNS} turns)",
        "value": round(statistics.median(dear for dear, _ in pairs), 1),
        "unit": "us an answer",
        "peer": f"the same server without {what}",
        "peer_value": round(statistics.median(plain for _, plain in pairs), 1),
        "ratio": round(1 + statistics.median(ratios), 3),
        "goal": f"<= {1 + goal:g} x",
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4] == "guarded")
    else:
        for row in results():
            print(row)
