"""An open-loop load of reports: they are due at moments that no answer shifts, and latency counts from those moments.

``python -m benchmarks.open_loop`` reads a plan from standard input (JSON) and prints what it measured. Reports come as
a Poisson process over all runs, which take turns, each on a connection of its own. A run's report is sent once the one
before is answered: what is due meanwhile waits here, and its wait counts. A report that is refused (429, 503) is not
sent again: the next one that is due takes its number. What is not answered at the end counts as if it were then.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import subprocess
import sys
import time
from collections import Counter, deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import uvloop

from benchmarks.load import encoded

GRACE = 10.0  # seconds for answers after the last report was due
TAKEN, REFUSED = (b"201", b"200"), (b"429", b"503")
ROOT = Path(__file__).parent.parent


def iterative(_: int, rng: random.Random) -> dict[str, Any]:
    """An iteration at some allocation, with its usual time and some noise."""
    gpus = rng.randint(2, 8)
    seconds = (2 + 60 / gpus + 0.1 * gpus) * rng.lognormvariate(0, 0.05)
    return {"allocation": {"gpus": gpus}, "metrics": {"iteration_seconds": seconds}, "features": {"batch": 256}}


def inference(n: int, _: random.Random) -> dict[str, Any]:
    """A request, and the end of the batch before."""
    at = 0.02 * n
    ended = {"finished": [{"server": "cpu-0", "at": at}]} if n else {}
    return {"at": at, "arrived": [{"user": ("shop", "archive")[n % 2], "at": at}], **ended}


def cluster(n: int, _: random.Random) -> dict[str, Any]:
    """A job is submitted, one goes on, one ends."""
    more: dict[str, Any] = {"progressed": [{"job": f"j{n - 1}", "iteration": 1}]} if n else {}
    more |= {"ended": [{"job": f"j{n - 2}"}]} if n > 1 else {}
    return {"at": 60 * n, "submitted": [{"job": f"j{n}", "application": "bert", "gpus": 2}], **more}


def workflow(n: int, _: random.Random) -> dict[str, Any]:
    """A task is queued, one runs, one has ended."""
    now = 60 * n
    more: dict[str, Any] = {"running": [{"id": f"t{n - 1}", "node": "pool-0", "start": now - 60}]} if n else {}
    more |= {"finished": [{"id": f"t{n - 2}", "end": now}]} if n > 1 else {}
    return {"now": now, "delta": n > 0, "queued": [{"id": f"t{n}", "processors": 4, "estimate": 100.0}], **more}


REPORTS = {"iterative": iterative, "inference": inference, "cluster": cluster, "workflow": workflow}


@dataclass
class Run:
    """A run as it stands: where it is reported, and what it reports next."""

    port: int
    kind: str
    id: str
    following: int = 0


@dataclass
class Plan:
    """``rate`` reports a second over all runs, for ``seconds``; what is due in the first ``warm_up`` isn't counted."""

    runs: list[Run]
    rate: float
    seconds: float
    warm_up: float = 0.5
    seed: int = 0
    window: float = 0.0
    """Seconds of each entry of ``windows``; 0: none."""


@dataclass
class Measured:
    """What became of the reports that were due: answers by status, and latencies of those that were taken, in ms."""

    due: int
    taken: int
    p50: float
    p99: float
    longest: float
    statuses: dict[str, int]
    following: list[int]
    odd: str = ""
    windows: list[list[float]] = field(default_factory=list)
    """Of each window: p50 and p99."""

    @property
    def refused(self) -> float:
        """Share of what was due that was refused."""
        return sum(self.statuses.get(status.decode(), 0) for status in REFUSED) / max(1, self.due)


class _Reporting(asyncio.Protocol):
    """One run's connection, which is made anew when the server ends it; what was sent on it is sent again."""

    def __init__(self, run: Run, rng: random.Random) -> None:
        self.run, self._rng = run, rng
        self._due: deque[float] = deque()
        self._buffer, self._intended, self._sent = b"", 0.0, b""
        self._again: asyncio.Task[Any] | None = None
        self.log: list[tuple[float, float]] = []  # due at, seconds until it was taken
        self.statuses: Counter[bytes] = Counter()
        self.odd = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self._buffer = cast("asyncio.Transport", transport), b""
        if self._intended:
            self._transport.write(self._sent)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        loop = asyncio.get_running_loop()
        self._again = loop.create_task(loop.create_connection(lambda: self, "127.0.0.1", self.run.port))

    @property
    def open(self) -> list[float]:
        """When what isn't answered was due."""
        return [*([self._intended] if self._intended else []), *self._due]

    def due(self, at: float) -> None:
        """A report is due."""
        self._due.append(at)
        if not self._intended:
            self._send()

    def _send(self) -> None:
        run = self.run
        self._intended = self._due.popleft()
        body = json.dumps(REPORTS[run.kind](run.following, self._rng), separators=(",", ":"))
        self._sent = encoded(("PUT", f"/runs/{run.id}/iterations/{run.following}", body))
        self._transport.write(self._sent)  # on an ended connection nothing is; a new one sends it

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        start = self._buffer.lower().find(b"content-length: ", 0, end) + 16
        if len(self._buffer) < end + 4 + int(self._buffer[start : self._buffer.find(b"\r", start)]):
            return
        self._answered(self._buffer[9:12], time.perf_counter())
        self._buffer, self._intended = b"", 0.0
        if self._due:
            self._send()

    def _answered(self, status: bytes, now: float) -> None:
        self.statuses[status] += 1
        if status in TAKEN:
            self.run.following += 1
            self.log.append((self._intended, now - self._intended))
        elif status not in REFUSED and not self.odd:
            self.odd = self._buffer


async def generate(plan: Plan) -> Measured:
    """Send the plan's reports and measure."""
    loop, rng = asyncio.get_running_loop(), random.Random(plan.seed)
    reporting = [_Reporting(run, random.Random(f"{plan.seed} {run.id}")) for run in plan.runs]
    for one in reporting:
        await loop.create_connection(lambda result=one: result, "127.0.0.1", one.run.port)  # type: ignore[misc]
    begun = at = time.perf_counter() + 0.05
    end, turn = begun + plan.warm_up + plan.seconds, 0
    while at < end:
        wait = at - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        now = time.perf_counter()
        while at <= now and at < end:
            reporting[turn % len(reporting)].due(at)
            turn += 1
            at += rng.expovariate(plan.rate)
    patience = time.perf_counter() + GRACE
    while time.perf_counter() < patience and any(one.open for one in reporting):
        await asyncio.sleep(0.01)
    return _summary(plan, reporting, begun + plan.warm_up)


def _summary(plan: Plan, reporting: list[_Reporting], since: float) -> Measured:
    now, statuses = time.perf_counter(), Counter[str]()
    log = [entry for one in reporting for entry in [*one.log, *((at, now - at) for at in one.open)]]
    log = sorted(entry for entry in log if entry[0] >= since)
    for one in reporting:
        statuses.update({status.decode(): count for status, count in one.statuses.items()})
    windows, count = [], int(plan.seconds / plan.window) if plan.window else 0
    for number in range(count):
        first = since + number * plan.window
        windows.append(_quantiles([took for at, took in log if first <= at < first + plan.window]))
    odd = next((one.odd.decode(errors="replace") for one in reporting if one.odd), "")
    taken = [took for _, took in log]
    p50, p99 = _quantiles(taken)
    following = [one.run.following for one in reporting]
    due = sum(statuses.values()) + sum(len(one.open) for one in reporting)
    longest = 1e3 * max(taken, default=0.0)
    return Measured(due, len(taken), p50, p99, longest, dict(statuses), following, odd, windows)


def _quantiles(taken: list[float]) -> list[float]:
    ordered = sorted(taken) or [float("inf")]
    return [1e3 * ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99)]


def run(plan: Plan, core: int | None = None) -> Measured:
    """Run the plan in a process of its own, pinned to ``core``; its runs stand afterwards where they are.

    Raises:
        RuntimeError: a report was answered neither as taken nor as refused.
    """
    child = subprocess.run(
        [*([] if core is None else ["taskset", "-c", str(core)]), sys.executable, "-m", "benchmarks.open_loop"],
        input=json.dumps(asdict(plan)).encode(),
        stdout=subprocess.PIPE,
        cwd=ROOT,
        check=True,
        timeout=plan.warm_up + plan.seconds + GRACE + 60,
    )
    measured = Measured(**json.loads(child.stdout))
    for one, following in zip(plan.runs, measured.following, strict=True):
        one.following = following
    if measured.odd:
        raise RuntimeError(f"{measured.statuses}: {measured.odd}")
    return measured


def _main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    values = json.load(sys.stdin)
    plan = Plan(**values | {"runs": [Run(**one) for one in values["runs"]]})
    print(json.dumps(asdict(uvloop.run(generate(plan)))))


if __name__ == "__main__":
    _main()
