"""What years of use cost: decisions, lists, dashboard and start-up with very many runs and iterations stored.

``python -m benchmarks.years [--runs 100000] [--iterations 100] [--database sqlite|postgresql] [--folder …]`` fills a
database with so many ended runs of so many iterations each, packed as the service packs them, and asks the same of it
as of an empty one: reports and decisions one at a time, every list's first page of 50 and the dashboard. It also tells
the bytes that a report takes, its share of indices included. Without arguments, both databases at full size: about
4 GB each, and half an hour.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, insert, text

from app.database.base import UtcDateTime, new_id
from app.database.engine import Database
from app.database.packing import pack_iteration
from app.database.tables import Iteration, Run, Workload
from benchmarks.api_speed import ITERATIONS, SPEC, Row, publish
from benchmarks.api_speed import _post as post
from migrations.runner import upgrade
from tests.servers import postgres_server, start_steward

PARTS = ("sqlite", "postgresql")
RUNS, EACH = 100_000, 100
ASKED, AT_ONCE = 1_000, 500  # reports and decisions; runs of a transaction
LIST_SECONDS, DASHBOARD_SECONDS, SIZE = 0.05, 0.3, 500
DRAWN, RUN_ID = 20_000, "0" * 32  # reports that are drawn from
BEGUN = datetime(2023, 1, 1, tzinfo=UTC)


class Asked(NamedTuple):
    """Seconds of each question of a sort; of start-up the one."""

    seconds: dict[str, list[float]]

    def of(self, name: str, share: float = 0.5) -> float:
        """A quantile of them."""
        matches = sorted(self.seconds[name])
        return matches[min(int(len(matches) * share), len(matches) - 1)]


def fill(url: str, runs: int, each: int, seed: int = 0) -> None:
    """So many ended runs, of so many iterations each."""
    rng, database = random.Random(seed), Database(url)
    try:
        with database.reading() as session:
            row = session.query(Workload).filter_by(name=SPEC["name"]).one()
            last = session.query(Iteration).order_by(Iteration.run_id, Iteration.iteration.desc()).first()
            if last is None:
                raise LookupError("nothing was reported yet")
            owner, like, reported = row.id, session.get_one(Run, last.run_id), (last.report, last.decision)
        packs = [{"number": i, "data": pack} for i, pack in enumerate(_packs(reported, rng))]
        processes = [_run(like, owner, i, each) for i in range(runs)]
        with database.engine.connect() as connection:
            _prepare(connection, packs, processes, each)
            for start in range(0, runs, AT_ONCE):
                some = processes[start : start + AT_ONCE]
                connection.execute(insert(Run), some)
                where = {"start": start, "ends": start + len(some), "drawn": DRAWN, "at": BEGUN}
                connection.execute(_REPORTED[connection.dialect.name].bindparams(AT), where)
                connection.commit()
            connection.execute(text("ANALYZE"))
            connection.commit()
    finally:
        database.dispose()


def _prepare(connection: Connection, packs: list[dict[str, Any]], result: list[dict[str, Any]], each: int) -> None:
    """What iterations are put together from, within the database."""
    blob = "bytea" if connection.dialect.name == "postgresql" else "blob"
    for table in (
        f"packs (number integer PRIMARY KEY, data {blob})",
        "filled (number integer PRIMARY KEY, id text)",
        "counted (number integer PRIMARY KEY)",
    ):
        connection.execute(text(f"CREATE TEMPORARY TABLE {table}"))
    connection.execute(text("INSERT INTO packs VALUES (:number, :data)"), packs)
    ids = [{"number": i, "id": run["id"]} for i, run in enumerate(result)]
    connection.execute(text("INSERT INTO filled VALUES (:number, :id)"), ids)
    connection.execute(text("INSERT INTO counted VALUES (:number)"), [{"number": i} for i in range(each)])
    connection.commit()


_EACH = """
INSERT INTO iterations (run_id, iteration, tenant, digest, packed, reported_at)
SELECT filled.id, counted.number, 'default', {digest}, packs.data, :at
FROM filled CROSS JOIN counted JOIN packs ON packs.number = (filled.number * 7919 + counted.number * 1009) % :drawn
WHERE filled.number >= :start AND filled.number < :ends ORDER BY filled.id, counted.number
"""
_REPORTED = {
    "sqlite": text(_EACH.format(digest="lower(hex(randomblob(16)))")),
    "postgresql": text(_EACH.format(digest="md5(random()::text)").replace("::", "\\:\\:")),
}
AT = bindparam("at", type_=UtcDateTime())


def _run(like: Run, owner: str, number: int, each: int) -> dict[str, Any]:
    begun = BEGUN + timedelta(minutes=15 * number)
    return {
        "id": new_id(),
        "tenant": like.tenant,
        "workload_id": owner,
        "spec_version": 1,
        "state": "finished" if number % 9 else "failed",
        "start": {},
        "state_vector": like.state_vector,
        "next_iteration": each,
        "decision": like.decision,
        "created_at": begun,
        "finished_at": begun + timedelta(hours=1),
    }


def _packs(reported: tuple[Any, Any], rng: random.Random) -> list[bytes]:
    """Reports like one that was really made, their numbers drawn anew; a pack says nothing of whose run it is."""
    report, decision = reported
    sizes = []
    for number in range(DRAWN):
        values = {**report, "metrics": dict.fromkeys(report["metrics"], round(rng.lognormvariate(3.0, 0.2), 4))}
        answer = _answer(decision, RUN_ID, number % ITERATIONS, rng)
        sizes.append(pack_iteration(RUN_ID, _json(values), _json(answer)))
    return sizes


def _answer(decision: dict[str, Any], run: str, number: int, rng: random.Random) -> dict[str, Any]:
    predicted = {
        metric: {name: value if name == "level" else rng.lognormvariate(3.0, 0.2) for name, value in one.items()}
        for metric, one in decision["predicted"].items()
    }
    digits = str.maketrans({digit: rng.choice("0123456789") for digit in "0123456789"})
    reason = {**decision["reason"], "text": decision["reason"]["text"].translate(digits)}
    at = (BEGUN + timedelta(seconds=number, milliseconds=rng.randrange(1000))).isoformat()
    return {**decision, "run": run, "reported": number, "predicted": predicted, "reason": reason, "decided_at": at}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@contextmanager
def served(folder: Path, url: str) -> Iterator[int]:
    """An API on a database; gives its port."""
    server = start_steward(folder, "--workers", "0", wait="alive", database_url=url)
    try:
        yield int(server.url.rpartition(":")[2])
    finally:
        server.stop()


def request_all(url: str, folder: Path) -> Asked:
    """What a service that is started on a database takes to answer."""
    begun = time.perf_counter()
    with served(folder, url) as port:
        seconds = {"start-up": [time.perf_counter() - begun]}
        connection = HTTPConnection("127.0.0.1", port)
        run = _made(port)
        for name, paths in _questions(port, run).items():
            seconds[name] = [_timed(connection, *path) for path in paths]
    return Asked(seconds)


def _made(port: int) -> str:
    return str(post(port, "/runs", {"workload": SPEC["name"]})["id"])


def _questions(port: int, run: str) -> dict[str, list[tuple[str, str, bytes]]]:
    """Method, path and body of each question, by sort."""
    name, once = SPEC["name"], ASKED // 50
    reports = [_json({**REPORT, "metrics": {"iteration_seconds": 18 + i / 50}}) for i in range(ASKED)]
    runs = [run, *(_made(port) for _ in range(ASKED // ITERATIONS + 1))]
    lists = {
        "workloads": "/workloads",
        "runs": "/runs",
        "running runs": f"/runs?state=running&workload={name}",
        "failed runs": "/runs?state=failed",
        "iterations": f"/runs/{run}/iterations",
        "samples": f"/workloads/{name}/samples",
        "agents": f"/workloads/{name}/agents",
        "models": f"/workloads/{name}/models",
        "promotions": f"/workloads/{name}/agents/promotions",
        "jobs": "/jobs",
        "evaluations": "/evaluations",
    }
    puts = [(runs[i // ITERATIONS], i % ITERATIONS, body) for i, body in enumerate(reports)]
    return {
        "report": [("PUT", f"/runs/{of}/iterations/{n}", body) for of, n, body in puts],
        "decision": [("GET", f"/decision?run={run}", b"")] * ASKED,
        **{f"list of {what}": [("GET", path, b"")] * once for what, path in lists.items()},
        "dashboard": [("GET", "/", b"")] * once,
    }


REPORT: dict[str, Any] = {"allocation": {"gpus": 4}, "features": {"batch": 64}}


def _timed(connection: HTTPConnection, method: str, path: str, body: bytes) -> float:
    begun = time.perf_counter()
    connection.request(method, path, body or None, {"content-type": "application/json"} if body else {})
    answer = connection.getresponse()
    answer.read()
    if answer.status >= 400:
        raise RuntimeError(f"{method} {path}: {answer.status}")
    return time.perf_counter() - begun


def report_bytes(url: str) -> float:
    """Bytes of the iterations' table and its indices, for each iteration."""
    database = Database(url)
    try:
        with database.engine.connect() as connection:
            count = connection.scalar(text("SELECT count(*) FROM iterations")) or 1
            used = connection.scalar(text(_SIZES[connection.dialect.name]))
    finally:
        database.dispose()
    return float(used or 0) / int(count)


_SIZES = {
    "sqlite": "SELECT sum(pgsize) FROM dbstat WHERE name LIKE '%iterations%'",
    "postgresql": "SELECT pg_total_relation_size('iterations')",
}


def measure(urls: tuple[str, str], folder: Path, runs: int, each: int, label: str) -> list[Row]:
    """Figures of the first database, which stays empty, and then of the second, which was filled before."""
    for url in urls:
        _begin(url, folder)
    empty, full = urls
    fill(full, runs, each)
    print(f"{label} is filled", flush=True)
    before, after = request_all(empty, folder), request_all(full, folder)
    return _rows(before, after, report_bytes(full), f"{label}, {runs:,} runs, {runs * each:,} iterations")


def _begin(url: str, folder: Path) -> None:
    """A workload with a model, and one report."""
    upgrade(url)
    with served(folder, url) as port:
        post(port, "/workloads", SPEC)
        publish(url, SPEC["name"])
        time.sleep(1.5)
        _timed(HTTPConnection("127.0.0.1", port), "PUT", f"/runs/{_made(port)}/iterations/0", _json(_full()))


def _full() -> dict[str, Any]:
    return {**REPORT, "metrics": {"iteration_seconds": 19.5}}


def _rows(before: Asked, after: Asked, size: float, label: str) -> list[Row]:
    rows = [_against(f"{name}, p99, {label}", before.of(name, 0.99), after.of(name, 0.99)) for name in HOT]
    rows.append(_against(f"start-up, {label}", before.of("start-up"), after.of("start-up")))
    lists = {name: after.of(name) for name in after.seconds if name.startswith("list")}
    slowest = max(lists, key=lambda name: lists[name])
    rows.append(_limit(f"slowest list ({slowest}), median, {label}", lists[slowest], LIST_SECONDS))
    rows.append(_limit(f"dashboard, median, {label}", after.of("dashboard"), DASHBOARD_SECONDS))
    stored = {"name": f"bytes stored per report, {label}", "value": round(size), "unit": "B", "goal": f"≤ {SIZE} B"}
    return [*rows, {**stored, "peer": "", "peer_value": None, "ratio": round(size / SIZE, 2)}]


HOT = ("report", "decision")


def _against(name: str, before: float, after: float) -> Row:
    return {
        "name": name,
        "value": round(after * 1e3, 2),
        "unit": "ms",
        "peer": "the same, empty",
        "peer_value": round(before * 1e3, 2),
        "ratio": round(after / before, 2),
        "goal": "≤ 1.2 ×",
    }


def _limit(name: str, seconds: float, goal: float) -> Row:
    limit = f"< {goal * 1e3:g} ms"
    value = {"name": name, "value": round(seconds * 1e3, 1), "unit": "ms", "goal": limit}
    return {**value, "peer": "", "peer_value": None, "ratio": round(seconds / goal, 2)}


def results(parts: list[str], runs: int = RUNS, each: int = EACH, folder: str | None = None) -> list[Row]:
    """Every figure with its goal."""
    rows: list[Row] = []
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="steward-bench-", dir=folder) as name:
            if part == "sqlite":
                urls = (f"sqlite:///{name}/empty.db", f"sqlite:///{name}/steward.db")
                rows += measure(urls, Path(name), runs, each, "SQLite")
            else:
                with postgres_server(durable=True) as server:
                    server.execute("CREATE DATABASE empty")
                    rows += measure((server.url("empty"), server.url()), Path(name), runs, each, "PostgreSQL")
    return rows


def main() -> None:
    """Print the figures of a size of one's own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.years")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--iterations", type=int, default=EACH)
    parser.add_argument("--database", choices=PARTS, action="append")
    parser.add_argument("--folder", help="where SQLite's file goes")
    options = parser.parse_args()
    for row in results(options.database or list(PARTS), options.runs, options.iterations, options.folder):
        print(f"{row['name']:90} {row['value']:>10} {row['unit']:3} {row['peer_value'] or '':>10} {row['goal']}")


if __name__ == "__main__":
    main()
